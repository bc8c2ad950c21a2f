// What one network message holds: a head, and one or more records.
//
//   FrameHead | record head, payload, padding | record head, payload, padding | …
//
// A record on the wire is a Record without its stamp. The stamp's place is taken by what lies before it, so a record can
// be handled where it lies. Everything is a multiple of eight bytes long, in the byte order of the hosts (which must agree).
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/record.hpp"

namespace heddle::net {

struct FrameHead {
  std::uint64_t key;       ///< the job's: what does not carry it is not ours
  std::uint32_t rank;      ///< the sender's: with the key, which stands for the job, its global name
  std::uint32_t sequence;  ///< counts the frames from this VCI to the receiving VCI, from 0
  std::uint32_t bytes;     ///< of the whole frame
  VciIndex vci;            ///< of the sender
  std::uint8_t version;
  std::uint8_t reserved;
};
inline constexpr std::uint8_t frame_version = 3;
inline constexpr std::size_t record_head_bytes = Record::head_bytes - sizeof(std::uint64_t);
static_assert(sizeof(FrameHead) == 24 && record_head_bytes == 24);

/// What a record with `payload` bytes takes in a frame.
inline constexpr std::size_t record_room(std::size_t payload) noexcept {
  return record_head_bytes + ((payload + 7) & ~std::size_t{7});
}

/// The record whose head begins at `at`. Its stamp must not be touched.
inline Record* record_at(std::byte* at) noexcept { return reinterpret_cast<Record*>(at - sizeof(std::uint64_t)); }

enum class Verdict : std::uint8_t {
  good,
  truncated,  ///< shorter than it says, or than anything we send
  foreign,    ///< without the job's key
  malformed,  ///< with the key, but not what this version of the library sends
};

/// Checks everything that the handling of a frame relies on: lengths, kinds, the sender's rank. Reads no byte beyond `bytes`.
/// `data` is aligned to eight bytes; the eight bytes before a record's head are inside the frame.
Verdict check_frame(const std::byte* data, std::size_t bytes, std::uint64_t key, std::uint32_t ranks) noexcept;

/// For messages to the user.
const char* verdict_text(Verdict verdict) noexcept;

}  // namespace heddle::net
