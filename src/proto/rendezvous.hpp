// Rendezvous: a large message waits for its receive, then its bytes move by the best way that both ends have. Private to proto/.
//
//   sender                                  receiver
//   request {address, bytes, ...} --------> matched: chooses a strategy
//                                           mapped: copies from memory that it maps ------------------> finished
//                                           single_copy: copies through the kernel (CMA) -------------> finished
//                                           both_copy: clear_to_send --------> (the sender claims pieces, too)
//   claims pieces, pushes them: piece ----> places them; where the sender does not turn up, claims
//                                           pieces, too, and copies them (CMA) -----------------------> finished
//   the ring is full and nobody drains it:
//   writes the piece itself: placed ------> counts
//                                           stream: data_request -------------> data … data (packed, in order)
//                                           remote_read: the network fetches the bytes ---------------> finished
//
// While both ends are at it, two copies in cache, one by each, are faster than one that the kernel makes page by page.
#pragma once

#include <cstdint>

#include "proto/protocol_state.hpp"
#include "proto/records.hpp"
#include "sync/intrusive.hpp"
#include "transport/shm/node.hpp"

namespace heddle {

namespace proto::network {
struct Move;
}

/// How the bytes of a large message move. The receiver chooses, once it has matched the message and knows both ends.
enum class Strategy : std::uint8_t {
  undecided,    ///< at the sender: nothing has been heard of the receiver. With `mapped`, `single_copy` and `remote_read` that stays so to the end
  mapped,       ///< the receiver copies from memory that it maps: the shared heap, another endpoint
  single_copy,  ///< the receiver copies from the sender's memory through the kernel
  both_copy,    ///< both ends claim pieces: the sender pushes its own through the ring, the receiver copies its own through the kernel
  stream,       ///< the sender pushes all bytes in order, through the ring or the network
  remote_read,  ///< the network reads the sender's memory
};

/// A large message under way, as one of its ends sees it. Guarded by the VCI of its request.
struct Transfer : OperationState {
  Transfer(Request& r, bool at_sender, std::uint64_t n) noexcept : request(&r), sends(at_sender), bytes(n) {}

  Request* const request;
  const bool sends;  ///< a Sending, else a Receiving
  Strategy strategy = Strategy::undecided;
  Lane lane{};                       ///< of the other end
  std::uint64_t bytes;               ///< to move
  shm::Peer* peer = nullptr;         ///< the other end's process; null over the network
  proto::network::Move* move = nullptr;  ///< what the network keeps of it; null on a node
  sync::Link<Transfer> link{};       ///< in the VCI's ring of transfers, while this end has something to do
};

namespace proto {

/// Null: none is under way.
inline Transfer* transfer_of(const Request& request) noexcept { return static_cast<Transfer*>(request.under_way); }

/// The pieces of a message that both ends copy. An end that has claimed a piece moves it; nobody else does.
struct Claims {
  shm::SharedCopy* copy = nullptr;  ///< in the sender's region
  std::uint64_t stamp = 0;          ///< of this message in it: a late look must not claim from the next message
  std::uint64_t piece = 0;          ///< bytes to claim at once
};

/// How long the other end has not been seen at work. The clock starts with the first question.
class Absence {
 public:
  bool lasts(std::int64_t nanoseconds) noexcept;
  void end() noexcept { since_ = 0; }

 private:
  std::int64_t since_ = 0;
};

struct Sending : Transfer {
  Sending(Request& send) noexcept : Transfer(send, true, send.capacity) {}

  RequestToken receiver = 0;         ///< both_copy, stream
  std::uint64_t sent = 0;            ///< bytes that are out of this end's hands
  const std::byte* from = nullptr;   ///< the bytes, if they are one block
  // both_copy:
  Claims claims;
  int own_claims = -1;               ///< index of `claims.copy` among this VCI's, to be given back
  std::uint64_t receive_buffer = 0;  ///< address in the receiver
  std::uint64_t at = 0, end = 0;     ///< of the claimed piece, what is still to be sent
  std::uint64_t unannounced = 0;     ///< bytes that this end has written itself and not told the receiver of
  bool receiver_finished = false;    ///< while pieces of this end are still to go out
  Absence receiver_absence;
};

struct Receiving : Transfer {
  Receiving(Request& receive) noexcept : Transfer(receive, false, static_cast<std::uint64_t>(receive.bytes)) {}

  RequestToken sender = 0;
  std::uint64_t arrived = 0;          ///< bytes in place
  std::uint64_t source = 0;           ///< address of the bytes in the sender (single_copy, both_copy)
  const std::byte* mapped = nullptr;  ///< the same, mapped here
  // both_copy:
  Claims claims;
  std::uint64_t copied_here = 0;      ///< of `arrived`, what this end has copied
  bool said_finished = false;
  Absence sender_absence;
};

/// The state of a large message, its request's `transfer`; the job ends when memory is out. `finish_transfer` frees it and completes the request.
Sending& new_sending(Request& send) noexcept;
Receiving& new_receiving(Request& receive) noexcept;
void finish_transfer(VciGuard& guard, Transfer& transfer) noexcept;
/// From now on progress calls this end's step.
void start_moving(Vci& vci, Transfer& transfer) noexcept;

/// Announces the message of `send` to a process of the node.
void send_request(VciGuard& guard, Request& send) noexcept;
/// A receive has matched the request: chooses the strategy and begins.
void begin_transfer(VciGuard& guard, Request& receive, const RendezvousRequest& request, Lane lane, int source, int tag) noexcept;

void handle_clear_to_send(VciGuard& guard, const ClearToSend& clear) noexcept;
void handle_data_request(VciGuard& guard, const DataRequest& request) noexcept;
void handle_data(VciGuard& guard, const Record& record) noexcept;
void handle_piece(VciGuard& guard, const Record& record) noexcept;
void handle_placed(VciGuard& guard, const Placed& placed) noexcept;
void handle_finished(VciGuard& guard, RequestToken sender) noexcept;

}  // namespace proto
}  // namespace heddle
