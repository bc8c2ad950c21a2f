// Rendezvous at the sender: announcing a large message, and pushing its bytes where the receiver wants them pushed.
#include <cstring>

#include "proto/network.hpp"
#include "proto/rendezvous_steps.hpp"
#include "sys/params.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {
namespace {

HEDDLE_PARAM_SIZE(data_size, "HEDDLE_DATA", 8 << 10, 64, sys::ParamRange::unlimited, "bytes of each record when a large message goes through the ring (64 to a quarter of the ring)");

constexpr std::int64_t patience = 20'000;  ///< nanoseconds of a full ring before the sender writes a piece into the receive buffer by itself

/// Bytes that a record of a large message may have.
std::uint64_t record_bytes() noexcept {
  const auto wanted = static_cast<std::uint64_t>(data_size.value());
  const std::uint64_t largest = limits.record.load(std::memory_order_relaxed);
  return wanted < largest ? wanted : largest;
}

/// Room in the ring for a record whose payload is `head` and then `bytes` bytes of the message. Null when the ring is full, but for what others
/// have to say.
template <typename Head>
Record* reserve(sync::RingProducer& ring, RecordKind kind, const Head& head, std::uint64_t bytes, sync::RingProducer::Reservation& reservation) noexcept {
  reservation = ring.reserve(lines_for(bytes + sizeof head), ring.lines() / 8);
  if (!reservation.line) return nullptr;
  auto* record = reinterpret_cast<Record*>(reservation.line);
  record->kind = kind;
  record->bytes = static_cast<std::uint32_t>(bytes + sizeof head);
  std::memcpy(record->payload, &head, sizeof head);
  return record;
}

void publish(shm::Port& port, const sync::RingProducer::Reservation& reservation, const Record& record) noexcept {
  sync::RingProducer::publish(reservation, lines_for(record.bytes));
  port.ring_doorbell();
}

/// Claims the next piece. False when there is none left.
bool claim(Sending& t) noexcept {
  if (t.end == t.bytes) return false;  // asked before: a counter that grows with every look would run into the stamp
  // Relaxed, as all claims: they order nothing. Each piece is moved by one end; `piece`, `placed` and `finished` say when it is in place.
  t.at = t.claims.copy->claimed.fetch_add(t.claims.piece, std::memory_order_relaxed) & shm::SharedCopy::bytes_mask;
  if (t.at >= t.bytes) return t.at = t.end = t.bytes, false;
  t.end = t.bytes - t.at < t.claims.piece ? t.bytes : t.at + t.claims.piece;
  return true;
}

/// The ring was full for long: whoever should drain it is busy elsewhere. The rest of the claimed piece goes straight into the receive buffer.
void write_piece(Sending& t) noexcept {
  const std::uint64_t n = t.end - t.at;
  if (!shm::cma_write(t.peer->pid, t.receive_buffer + t.at, t.from + t.at, n)) copying_failed(t, n);
  t.at = t.end;
  t.sent += n;
  t.unannounced += n;
}

/// Tells the receiver of written bytes; false when the ring has no room for that either.
bool announce_written(shm::Port& port, Sending& t) noexcept {
  if (!t.unannounced) return true;
  const Placed placed{t.receiver, t.unannounced};
  if (!try_push(port, {0, 0, 0, PointToPoint::placed}, &placed, sizeof placed)) return false;
  port.ring_doorbell();
  t.unannounced = 0;
  return true;
}

Sending& sending_of(RequestToken token) noexcept { return *static_cast<Sending*>(transfer_of(*reinterpret_cast<Request*>(token))); }

}  // namespace

void send_request(VciGuard& guard, Request& send) noexcept {
  Vci& vci = guard.vci();
  State& state = state_of(vci);
  Sending& t = new_sending(send);
  t.peer = &peer_of(send.to.process);
  t.lane = send.to.lane;
  RendezvousRequest request{};
  request.sender = reinterpret_cast<RequestToken>(&send);
  request.bytes = send.capacity;
  request.process = runtime.name;
  if (const Buffer buffer = send.buffer; buffer.contiguous()) {
    t.from = buffer.data();
    request.address = reinterpret_cast<std::uint64_t>(t.from);
    request.heap_offset = shm::heap_offset_of(t.from, send.capacity);
    if (!request.heap_offset && send.to.process != runtime.self && state.free_copies && t.peer->cma_works()) {
      t.own_claims = __builtin_ctzll(state.free_copies);
      state.free_copies &= state.free_copies - 1;
      t.claims.copy = shm::shared_copies(shm::region.base, number(vci.index)) + t.own_claims;
      t.claims.stamp = ((t.claims.copy->claimed.load(std::memory_order_relaxed) >> shm::SharedCopy::stamp_at) + 1) & 0xffff;
      t.claims.copy->claimed.store(t.claims.stamp << shm::SharedCopy::stamp_at, std::memory_order_relaxed);  // published with the request
      request.claims = static_cast<std::uint8_t>(t.own_claims + 1);
      request.claims_vci = static_cast<std::uint16_t>(number(vci.index));
      request.claims_stamp = static_cast<std::uint32_t>(t.claims.stamp);
    }
  }
  push_or_queue(guard, *t.peer, t.lane, head_of(send, PointToPoint::request), &request, sizeof request);
}

void handle_clear_to_send(VciGuard& guard, const ClearToSend& clear) noexcept {
  Sending& t = sending_of(clear.sender);  // still there: `finished` follows
  t.strategy = Strategy::both_copy;
  t.receiver = clear.receiver;
  t.lane = clear.lane;
  t.receive_buffer = clear.address;
  t.bytes = clear.bytes;
  t.claims.piece = clear.piece;
  start_moving(guard.vci(), t);
}

void handle_data_request(VciGuard& guard, const DataRequest& request) noexcept {
  Sending& t = sending_of(request.sender);
  t.strategy = Strategy::stream;
  t.receiver = request.receiver;
  t.lane = request.lane;
  t.bytes = request.bytes;
  start_moving(guard.vci(), t);
  if (t.move) network::stream_step(guard, t);  // a small one leaves with the answers to the others that came with it
}

bool stream_step(VciGuard& guard, Sending& t) noexcept {
  shm::Port& port = port_of(*t.peer, t.lane);
  const std::uint64_t room = record_bytes(), before = t.sent;
  while (t.sent < t.bytes) {
    // A receiver that keeps up never lets the ring run full: others behind this VCI must have their turn all the same.
    if (t.sent - before >= step_bytes) return true;
    const std::uint64_t n = t.bytes - t.sent < room ? t.bytes - t.sent : room;
    sync::RingProducer::Reservation reservation;
    Record* record = reserve(port.ring, PointToPoint::data, StreamData{t.receiver}, n, reservation);
    if (!record) return t.sent != before;
    t.request->buffer.pack(t.sent, record->payload + sizeof(StreamData), n);
    publish(port, reservation, *record);
    t.sent += n;
  }
  finish_transfer(guard, t);
  return true;
}

bool piece_step(VciGuard& guard, Sending& t) noexcept {
  shm::Port& port = port_of(*t.peer, t.lane);
  const std::uint64_t room = record_bytes(), before = t.sent;
  bool pushed = false;
  while (t.at < t.end || claim(t)) {
    if (t.sent - before >= step_bytes) return true;
    const std::uint64_t n = t.end - t.at < room ? t.end - t.at : room;
    sync::RingProducer::Reservation reservation;
    if (Record* record = reserve(port.ring, PointToPoint::piece, PieceData{t.receiver, t.at}, n, reservation)) {
      t.receiver_absence.end();
      std::memcpy(record->payload + sizeof(PieceData), t.from + t.at, n);
      publish(port, reservation, *record);
      t.at += n;
      t.sent += n;
      pushed = true;
    } else if (t.receiver_absence.lasts(patience)) {
      write_piece(t);
      if (t.sent < t.bytes) return true;
    } else {
      return pushed;
    }
  }
  if (!announce_written(port, t)) return pushed;
  if (t.sent == t.bytes || t.receiver_finished) finish_transfer(guard, t);
  else stop_moving(guard.vci(), t);  // until the receiver has copied what it claimed
  return true;
}

void handle_finished(VciGuard& guard, RequestToken sender) noexcept {
  Sending& t = sending_of(sender);
  if (t.strategy == Strategy::both_copy && t.link.next) t.receiver_finished = true;
  else finish_transfer(guard, t);
}

}  // namespace heddle::proto
