// What travels between VCIs: a record, the same on every transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sync/record_ring.hpp"

namespace heddle {

enum class RecordKind : std::uint8_t {
  eager,        ///< a whole message
  eager_sync,   ///< the same, and the sender wants an `ack` when it is matched: payload begins with AckTo
  ack,          ///< a synchronous message was matched
  offer,        ///< rendezvous: a message too large to push; payload is Offer
  accept,       ///< the receiver is ready: the sender claims pieces and sends them as `data`; payload is Accept
  pull,         ///< the receiver cannot reach the sender's buffer: send the bytes as `data`; payload is Accept
  data,         ///< bytes of an accepted message; payload is DataFor, then the bytes
  placed,       ///< the sender has put bytes into the receive buffer itself; payload is DataFor, `at` their number
  finished,     ///< the other end may complete its request: all bytes are in place, or all that this end was to copy
  cancel,       ///< the sender wants an eager_sync or offer back, whose context, source and tag the record has; payload is Cancel
  cancelled,    ///< the answer, where no receive had matched the message: it is gone; payload is that Cancel

  // Between the network parts of two VCIs; they never reach the protocols.
  hello,        ///< first record to a VCI that may not know the sender: its address; payload is NetworkName
  where,        ///< what is the address of your VCI (payload: its index, 32 bits)?
  here,         ///< the answer
  credit,       ///< how many bytes of messages have arrived from the receiver of this (64 bits), so that it may send more
  closing,      ///< the same, from a process that is about to leave: it waits until what it has sent has arrived
  probe,        ///< the same, from a process that has had no credit for a while: it wants one now
  farewell,     ///< the same: the answer to `closing`, where networks do not tell who has left
};

/// A VCI's address in the network; `length` bytes follow.
struct NetworkName {
  std::uint16_t vci;
  std::uint16_t length;
  std::uint32_t reserved;
};

/// The head of a record, laid over the first line of a ring record. `payload` continues over the following lines.
struct Record {
  std::atomic<std::uint64_t> stamp;  ///< the ring's
  std::uint64_t context;
  std::int32_t source;  ///< rank of the sender in the communicator
  std::int32_t tag;
  std::uint32_t bytes;  ///< of payload
  RecordKind kind;
  std::uint8_t reserved;
  std::uint16_t lane;   ///< for replies: which VCI of the sender
  std::byte payload[32];

  static constexpr std::size_t head_bytes = 32;
  static constexpr std::size_t inline_bytes = 32;
};
static_assert(sizeof(Record) == sync::cache_line && offsetof(Record, payload) == Record::head_bytes);

inline std::uint32_t lines_for(std::size_t payload) noexcept {
  return static_cast<std::uint32_t>((Record::head_bytes + payload + sync::cache_line - 1) / sync::cache_line);
}

/// Names a request at the other end. The value is opaque to everyone but the process that made it.
using RequestToken = std::uint64_t;

struct AckTo {
  RequestToken request;  ///< the sender's
  std::uint32_t process;
  std::uint32_t reserved;
};

struct Cancel {
  RequestToken request;  ///< the sender's
  std::uint32_t process; ///< the sender
  std::uint32_t number;  ///< of the question: a late answer must not cancel what the request is used for next
};

struct Offer {
  RequestToken request;    ///< the sender's
  std::uint64_t address;   ///< of the bytes in the sender's address space; 0: not one block, only `pull` will do
  std::uint64_t bytes;
  std::uint64_t heap;      ///< offset of the bytes in the sender's region when they lie in shared memory, else 0
  std::uint32_t process;
  std::uint32_t copy;      ///< index + 1 of a SharedCopy of the sender's VCI; 0: none, the receiver copies alone
  std::uint32_t vci;       ///< whose SharedCopy
  std::uint32_t stamp;     ///< of this message in it
};

struct Accept {
  RequestToken sender;     ///< the sender's request
  RequestToken receiver;   ///< the receiver's request
  std::uint64_t address;   ///< of the receive buffer
  std::uint64_t bytes;     ///< to move: the smaller of message and buffer
  std::uint64_t piece;     ///< size of a piece to claim
  std::uint32_t process;   ///< the receiver
  std::uint32_t lane;      ///< VCI of the receiver's request
};

struct DataFor {
  RequestToken receiver;
  std::uint64_t at;        ///< where in the message, if its pieces are claimed; else they come in order
};
static_assert(sizeof(DataFor) <= sizeof(AckTo));  // what the largest payload of a record leaves room for

}  // namespace heddle
