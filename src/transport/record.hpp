// What travels between VCIs: a record, the same on every transport.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sync/record_ring.hpp"
#include "transport/address.hpp"

namespace heddle {

/// What a record asks for: an operation of a module (transport/module.hpp).
struct RecordKind {
  std::uint8_t module, operation;
  /// One comparison of 16 bits.
  friend constexpr bool operator==(RecordKind a, RecordKind b) noexcept { return std::bit_cast<std::uint16_t>(a) == std::bit_cast<std::uint16_t>(b); }
};

/// The head of a record, laid over the first line of a ring record. `payload` continues over the following lines.
struct Record {
  std::atomic<std::uint64_t> stamp;  ///< the ring's
  std::uint64_t context;
  std::int32_t source;  ///< rank of the sender in the communicator
  std::int32_t tag;
  std::uint32_t bytes;  ///< of payload
  RecordKind kind;
  Lane lane;            ///< for replies: leads to the VCI of the sender
  std::byte payload[32];

  static constexpr std::size_t head_bytes = 32;
};
static_assert(sizeof(Record) == sync::cache_line && offsetof(Record, payload) == Record::head_bytes);

constexpr std::uint32_t lines_for(std::size_t payload) noexcept {
  return static_cast<std::uint32_t>((Record::head_bytes + payload + sync::cache_line - 1) / sync::cache_line);
}

/// What a record says besides its payload.
struct RecordHead {
  std::uint64_t context;
  std::int32_t source, tag;
  RecordKind kind;
  Lane lane{};  ///< of this process, for replies; of no account where there are none
};

/// Fills in all but the ring's stamp and the payload, of which there are `bytes`.
inline void set_head(Record& record, const RecordHead& head, std::size_t bytes) noexcept {
  record.context = head.context;
  record.source = head.source;
  record.tag = head.tag;
  record.bytes = static_cast<std::uint32_t>(bytes);
  record.kind = head.kind;
  record.lane = head.lane;
}

}  // namespace heddle
