// The records of point-to-point communication: what they ask for, and what they carry.
#pragma once

#include <cstdint>

#include "transport/module.hpp"

namespace heddle::proto {

/// The operations of the module, in the order of its table (dispatch.cpp).
struct PointToPoint {
  static constexpr std::uint8_t module = 0;

  static constexpr RecordKind eager{module, 0};       ///< a whole message
  static constexpr RecordKind eager_sync{module, 1};  ///< the same, and the sender wants an `ack` when it is matched: payload begins with AckTo
  static constexpr RecordKind ack{module, 2};         ///< a synchronous message was matched; payload is the sender's RequestToken
  static constexpr RecordKind offer{module, 3};       ///< rendezvous: a message too large to push; payload is Offer
  static constexpr RecordKind accept{module, 4};      ///< the receiver is ready: the sender claims pieces and sends them as `data`; payload is Accept
  static constexpr RecordKind pull{module, 5};        ///< the receiver cannot reach the sender's buffer: send the bytes as `data`; payload is Accept
  static constexpr RecordKind data{module, 6};        ///< bytes of an accepted message; payload is DataFor, then the bytes
  static constexpr RecordKind placed{module, 7};      ///< the sender has put bytes into the receive buffer itself; payload is DataFor, `at` their number
  static constexpr RecordKind finished{module, 8};    ///< the other end may complete its request: all bytes are in place, or all that this end was to copy
  static constexpr RecordKind cancel{module, 9};      ///< the sender wants an eager_sync or offer back, whose context, source and tag the record has; payload is Cancel
  static constexpr RecordKind cancelled{module, 10};  ///< the answer, where no receive had matched the message: it is gone; payload is that Cancel
};

/// The module, for register_module.
const Module& point_to_point() noexcept;

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

}  // namespace heddle::proto
