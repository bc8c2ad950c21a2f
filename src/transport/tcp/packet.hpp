// The packets on a connection, each a multiple of eight bytes long, in host byte order (which all hosts must share).
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::tcp {

enum class PacketKind : std::uint16_t {
  greeting,  ///< first of all: a Greeting. `id`: the proof that the sender knows the job's key
  message,
  request,   ///< a ReadRequest. `id`: what the reply must carry
  reply,     ///< the memory asked for
  refusal,   ///< there is no such memory
  welcome,   ///< answers a greeting that asks for it, with a challenge. `id`: proof that the sender is the process that was meant
  choice,    ///< the answer to that: this connection is used. `id`: the proof of the challenge, which nobody can have heard before
  write,     ///< a WriteHead, and the bytes for that place. `id`: the number of the write
  write_with_data,  ///< the same; the upper half of `id` is handed out with it
  confirm,   ///< a WriteAwaited. `id`: what the answer must carry
  confirmed,
};

struct PacketHead {
  std::uint32_t bytes;  ///< that follow, without the padding
  PacketKind kind;
  std::uint16_t version;
  std::uint64_t id;
};
inline constexpr std::uint16_t packet_version = 4;
static_assert(sizeof(PacketHead) == 16);

/// Who connects to whom, by identity: the same address may exist on many hosts.
struct Greeting {
  std::uint64_t from, to;
  std::uint64_t asks_for_welcome;  ///< 1: nothing else follows before that has come
};

/// Proves knowledge of the job's key in a greeting, welcome or choice (SipHash-2-4). The key itself is never sent: the listener may be a stranger.
/// \param detail Greeting::asks_for_welcome, or the challenge
inline std::uint64_t proof_of(std::uint64_t key, PacketKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t detail = 0) noexcept {
  const std::uint64_t second = key ^ 0x9e3779b97f4a7c15;
  std::uint64_t v0 = key ^ 0x736f6d6570736575, v1 = second ^ 0x646f72616e646f6d, v2 = key ^ 0x6c7967656e657261, v3 = second ^ 0x7465646279746573;
  const auto turn = [](std::uint64_t x, int bits) { return x << bits | x >> (64 - bits); };
  const auto rounds = [&](int n) {
    for (; n; --n) {
      v0 += v1, v1 = turn(v1, 13) ^ v0, v0 = turn(v0, 32);
      v2 += v3, v3 = turn(v3, 16) ^ v2;
      v0 += v3, v3 = turn(v3, 21) ^ v0;
      v2 += v1, v1 = turn(v1, 17) ^ v2, v2 = turn(v2, 32);
    }
  };
  for (const std::uint64_t word : {static_cast<std::uint64_t>(kind), from, to, detail, std::uint64_t{32} << 56}) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

struct ReadRequest {
  std::uint64_t key, offset, bytes;
};

/// The writes of one context to another are numbered from 1, modulo 2^32, whichever connection they take.
struct WriteHead {
  std::uint64_t key, offset;
};

/// Asks for an answer when all writes up to this number are in place.
struct WriteAwaited {
  std::uint32_t number, reserved;
};

inline constexpr std::size_t padding(std::size_t bytes) noexcept { return -bytes & 7; }

}  // namespace heddle::tcp
