// What passes over a connection: packets, each a multiple of eight bytes long, in the byte order of the hosts (which must agree).
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::tcp {

enum class PacketKind : std::uint16_t {
  greeting,  ///< first of all: the name of who connected. `id`: the job's key
  message,
  request,   ///< a ReadRequest. `id`: what the reply must carry
  reply,     ///< the memory asked for
  refusal,   ///< there is no such memory
};

struct PacketHead {
  std::uint32_t bytes;  ///< that follow, without the padding
  PacketKind kind;
  std::uint16_t version;
  std::uint64_t id;
};
inline constexpr std::uint16_t packet_version = 1;
static_assert(sizeof(PacketHead) == 16);

struct ReadRequest {
  std::uint64_t key, offset, bytes;
};

inline constexpr std::size_t padding(std::size_t bytes) noexcept { return -bytes & 7; }

}  // namespace heddle::tcp
