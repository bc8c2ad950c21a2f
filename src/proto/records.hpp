// The records of point-to-point communication: what they ask for, and what they carry.
#pragma once

#include <cstdint>

#include "transport/module.hpp"
#include "transport/process.hpp"

namespace heddle::proto {

/// The operations of the module, in the order of its table (dispatch.cpp).
struct PointToPoint {
  static constexpr std::uint8_t module = 0;

  static constexpr RecordKind eager{module, 0};       ///< a whole message
  static constexpr RecordKind eager_sync{module, 1};  ///< the same, and the sender wants an `ack` when it is matched: payload begins with AckTo
  static constexpr RecordKind ack{module, 2};         ///< a synchronous message was matched; payload is the sender's RequestToken
  static constexpr RecordKind request{module, 3};       ///< rendezvous: a message too large to push; payload is RendezvousRequest
  static constexpr RecordKind clear_to_send{module, 4}; ///< both ends copy: the sender claims pieces and pushes them; payload is ClearToSend
  static constexpr RecordKind data_request{module, 5};  ///< the receiver cannot reach the sender's buffer: push the bytes; payload is DataRequest
  static constexpr RecordKind data{module, 6};          ///< the next bytes of a stream; payload is StreamData, then the bytes
  static constexpr RecordKind piece{module, 7};         ///< bytes of a claimed piece; payload is PieceData, then the bytes
  static constexpr RecordKind placed{module, 8};        ///< the sender has written bytes into the receive buffer itself; payload is Placed
  static constexpr RecordKind finished{module, 9};      ///< what the receiver was to copy is in place; payload is the sender's RequestToken
  static constexpr RecordKind cancel{module, 10};       ///< the sender wants an eager_sync or request back, whose context, source and tag the record has; payload is Cancel
  static constexpr RecordKind cancelled{module, 11};    ///< the answer, where no receive had matched the message: it is gone; payload is that Cancel
};

/// Makes the module known. Before the first VCI.
void register_point_to_point() noexcept;

/// Names a request at the other end. The value is opaque to everyone but the process that made it.
using RequestToken = std::uint64_t;

struct AckTo {
  RequestToken request;  ///< the sender's
  ProcessName process;
};

struct Cancel {
  RequestToken request;  ///< the sender's
  ProcessName process;   ///< the sender
  std::uint32_t number;  ///< of the question: a late answer must not cancel what the request is used for next
  std::uint32_t reserved;
};

/// What the receiver of a large message needs to choose how its bytes move.
struct RendezvousRequest {
  RequestToken sender;
  std::uint64_t bytes;
  std::uint64_t address;      ///< of the bytes in the sender's address space, or what a remote read names them by; 0: not one block
  std::uint64_t heap_offset;  ///< of the bytes in the sender's region when they lie in shared memory, else 0
  std::uint64_t key;          ///< for a remote read, if `readable`
  ProcessName process;        ///< the sender
  std::uint8_t readable;      ///< the network may read the bytes
  std::uint8_t claims;        ///< index + 1 of a SharedCopy of the sender's VCI, from which both ends claim pieces; 0: none
  std::uint16_t claims_vci;   ///< whose
  std::uint32_t claims_stamp; ///< of this message in it
};

/// The receiver's word that both ends copy.
struct ClearToSend {
  RequestToken sender, receiver;
  std::uint64_t address;  ///< of the receive buffer
  std::uint64_t bytes;    ///< to move: the smaller of message and buffer
  std::uint32_t piece;    ///< bytes that one end claims at once
  Lane lane;              ///< leads to the VCI of the receiver's request
  std::uint16_t reserved;
};

struct DataRequest {
  RequestToken sender, receiver;
  std::uint64_t bytes;  ///< to send: the smaller of message and buffer
  Lane lane;            ///< leads to the VCI of the receiver's request
  std::uint16_t reserved[3];
};

struct StreamData {
  RequestToken receiver;
};
struct PieceData {
  RequestToken receiver;
  std::uint64_t at;  ///< where in the message
};
struct Placed {
  RequestToken receiver;
  std::uint64_t bytes;
};
static_assert(sizeof(PieceData) <= sizeof(AckTo));  // what the largest payload of a record leaves room for

}  // namespace heddle::proto
