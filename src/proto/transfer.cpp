// Rendezvous: a large message waits for its receive, then moves by the best way both ends have.
//
//   sender                                          receiver
//   offer {address, bytes, heap, copy} -----------> matched
//                                                   mapped heap, other endpoint: copies alone -----> finished
//                                                   CMA, both blocks: accept ---------------------> (the sender claims pieces)
//   claims pieces, pushes them: data ... data ----> places them; where the sender does not turn up, claims pieces too
//                                                   and copies them (CMA) -------------------------> finished
//   the ring is full and nobody drains it:
//   places the piece itself (CMA): placed --------> counts
//                                                   CMA, receive buffer is not one block: copies alone -> finished
//                                                   neither: pull --------------------------------> data ... data (packed, in order)
//
// While both ends are at it, two copies in cache, one by each, are faster than one that the kernel makes page by page.
#include <time.h>

#include <cerrno>
#include <new>

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle::proto {
namespace {

HEDDLE_PARAM_SIZE(data_size, "HEDDLE_DATA", 8 << 10, 64, sys::ParamRange::unlimited, "bytes of each record when a large message goes through the ring (64 to a quarter of the ring)");

constexpr std::uint64_t step_bytes = 256 << 10;  ///< bounds one step of the progress engine
constexpr std::uint64_t piece_bytes = 64 << 10;  ///< that one end claims at once
constexpr std::int64_t sender_patience = 20'000;   ///< nanoseconds of a full ring before the sender places a piece by itself
constexpr std::int64_t receiver_patience = 4'000;  ///< nanoseconds without data before the receiver copies a piece by itself

/// True when the other end was not seen for `patience`. The clock starts with the first question.
bool waited_for(Transfer& t, std::int64_t patience) noexcept {
  const std::int64_t now = sys::now_ns();
  if (!t.since) t.since = now;
  return now - t.since >= patience;
}

void link(Vci& vci, Transfer& t) noexcept {
  // A ring of transfers, so that each gets its turn.
  if (!vci.transfers) {
    t.link = {&t, &t};
    vci.transfers = &t;
  } else {
    Transfer* first = vci.transfers;
    t.link = {first->link.prev, first};
    first->link.prev->link.next = &t;
    first->link.prev = &t;
  }
  vci.moving.fetch_add(1, std::memory_order_relaxed);
  leave_work(vci);
}

void unlink(Vci& vci, Transfer& t) noexcept {
  if (t.link.next == &t) vci.transfers = nullptr;
  else {
    t.link.prev->link.next = t.link.next;
    t.link.next->link.prev = t.link.prev;
    if (vci.transfers == &t) vci.transfers = t.link.next;
  }
  t.link = {};
  vci.moving.fetch_sub(1, std::memory_order_relaxed);
}

void send_finished(VciGuard& guard, const Transfer& t) noexcept {
  const RecordHead head{0, 0, 0, PointToPoint::finished, 0};
  push_or_queue(guard, *t.peer, t.lane, head, &t.other, sizeof t.other);
}

/// Counts bytes that are in place at the receiver; ends the message with the last.
void placed(VciGuard& guard, Transfer& t, std::uint64_t n) noexcept {
  t.moved += n;
  if (t.moved < t.bytes) return;
  if (t.own && !t.told) send_finished(guard, t);
  finish_transfer(guard, t);
}

/// The receiver's copy of `n` bytes at packed offset `at`, from the sender's memory.
bool fetch(Transfer& t, std::uint64_t at, std::uint64_t n) noexcept {
  Request& r = *t.request;
  if (r.datatype->contiguous) {
    auto* to = reinterpret_cast<std::byte*>(t.to + at);
    if (t.mapped) return std::memcpy(to, t.mapped + at, n), true;
    return shm::cma_read(t.peer->pid, to, t.from + at, n);
  }
  if (t.mapped) return unpack(r.buffer, r.count, *r.datatype, t.cursor, t.mapped + at, n), true;
  std::byte piece[16 << 10];
  for (std::uint64_t done = 0; done < n;) {
    const std::uint64_t part = n - done < sizeof piece ? n - done : sizeof piece;
    if (!shm::cma_read(t.peer->pid, piece, t.from + at + done, part)) return false;
    unpack(r.buffer, r.count, *r.datatype, t.cursor, piece, part);
    done += part;
  }
  return true;
}

/// \pre errno is that of the copy
[[noreturn]] void copying_failed(const Transfer& t, std::uint64_t bytes, bool receiver) noexcept {
  const int cause = errno;
  if (cause == ESRCH) {
    // The launcher knows of what that process died, says so and ends this one with the job; it should not take our death for the first.
    const timespec pause{0, 400'000'000};
    nanosleep(&pause, nullptr);
  }
  sys::fatal("copying %llu bytes %s rank %u failed: %s", static_cast<unsigned long long>(bytes), receiver ? "from" : "to", t.peer->process,
             cause == ESRCH ? "its process is gone" : "the buffer is not accessible memory");
}

/// The receiver copies alone, a piece a step.
bool copy_step(VciGuard& guard, Transfer& t) noexcept {
  const std::uint64_t n = t.bytes - t.moved < t.piece ? t.bytes - t.moved : t.piece;
  if (!fetch(t, t.moved, n)) copying_failed(t, n, true);
  t.moved += n;
  if (t.moved == t.bytes) {
    send_finished(guard, t);
    finish_transfer(guard, t);
  }
  return true;
}

/// The receiver of a message in pieces: copies one where the sender does not. Claims are relaxed: they order nothing, each piece is moved by
/// one end, and `data`, `placed` and `finished` say when it is in place.
bool claim_step(VciGuard& guard, Transfer& t) noexcept {
  std::uint64_t claimed = t.copy->claimed.load(std::memory_order_relaxed);
  const std::uint64_t at = claimed & shm::SharedCopy::bytes_mask;
  if (claimed >> shm::SharedCopy::stamp_at != t.stamp || at >= t.bytes) {
    // The sender has the rest. What this end copied is in place, and the sender waits to hear that.
    unlink(guard.vci(), t);
    if (t.own && !t.told) send_finished(guard, t);
    t.told = true;
    return false;
  }
  if (!waited_for(t, receiver_patience)) return false;
  if (!t.copy->claimed.compare_exchange_strong(claimed, claimed + t.piece, std::memory_order_relaxed)) return true;
  const std::uint64_t n = t.bytes - at < t.piece ? t.bytes - at : t.piece;
  if (!fetch(t, at, n)) copying_failed(t, n, true);
  t.own += n;
  placed(guard, t, n);
  return true;
}

/// The sender of a message in pieces claims the next. False when there is none left.
bool claim(Transfer& t) noexcept {
  if (t.end == t.bytes) return false;  // asked before: a counter that grows with every look would run into the stamp
  t.at = t.copy->claimed.fetch_add(t.piece, std::memory_order_relaxed) & shm::SharedCopy::bytes_mask;
  if (t.at >= t.bytes) return t.at = t.end = t.bytes, false;
  t.end = t.bytes - t.at < t.piece ? t.bytes : t.at + t.piece;
  return true;
}

/// The ring was full for long: whoever should drain it is busy elsewhere. The claimed piece goes straight into the receive buffer.
void place_step(Transfer& t) noexcept {
  const std::uint64_t n = t.end - t.at;
  if (!shm::cma_write(t.peer->pid, t.to + t.at, reinterpret_cast<const void*>(t.from + t.at), n)) copying_failed(t, n, false);
  t.at = t.end;
  t.moved += n;
  t.unsaid += n;
}

/// Tells the receiver of placed bytes; false when the ring has no room for that either.
bool say_placed(shm::Port& port, Transfer& t) noexcept {
  if (!t.unsaid) return true;
  const DataFor what{t.other, t.unsaid};
  if (!try_push(port, {0, 0, 0, PointToPoint::placed, 0}, &what, sizeof what)) return false;
  t.peer->ring_doorbell(port.vci);
  t.unsaid = 0;
  return true;
}

/// Pushes the next `data` records. True when something moved.
bool data_step(VciGuard& guard, Transfer& t) noexcept {
  Request& send = *t.request;
  shm::Port& port = port_of(*t.peer, t.lane);
  const auto most = static_cast<std::uint64_t>(data_size.value());
  const std::uint64_t largest = limits.record.load(std::memory_order_relaxed);
  const std::uint64_t room = most < largest ? most : largest;
  bool worked = false;
  const std::uint64_t before = t.moved;
  while (t.at < t.end || (t.shared_claims && claim(t))) {
    // A receiver that keeps up never lets the ring run full: others behind this VCI must have their turn all the same.
    if (t.moved - before >= step_bytes) return true;
    const std::uint64_t n = t.end - t.at < room ? t.end - t.at : room;
    const std::uint32_t lines = lines_for(n + sizeof(DataFor));
    const auto reservation = port.ring.reserve(lines, port.ring.lines() / 8);  // the rest is for what others have to say
    if (!reservation.line) {
      if (!t.shared_claims || !waited_for(t, sender_patience)) return worked;
      place_step(t);
      if (t.moved < t.bytes) return true;
      continue;
    }
    t.since = 0;
    auto* record = reinterpret_cast<Record*>(reservation.line);
    record->kind = PointToPoint::data;
    record->bytes = static_cast<std::uint32_t>(n + sizeof(DataFor));
    const DataFor to{t.other, t.at};
    std::memcpy(record->payload, &to, sizeof to);
    if (t.from) std::memcpy(record->payload + sizeof to, reinterpret_cast<const void*>(t.from + t.at), n);
    else pack(send.buffer, send.count, *send.datatype, t.cursor, record->payload + sizeof to, n);
    sync::RingProducer::publish(reservation, lines);
    t.peer->ring_doorbell(port.vci);
    t.at += n;
    t.moved += n;
    worked = true;
  }
  if (!say_placed(port, t)) return worked;
  if (t.moved == t.bytes || t.told) finish_transfer(guard, t);
  else unlink(guard.vci(), t);  // until the receiver has copied what it claimed
  return true;
}

}  // namespace

Transfer* new_transfer(Request& request) noexcept {
  auto* t = new (std::nothrow) Transfer;
  if (!t) sys::fatal("no memory for a large message");
  t->request = &request;
  request.transfer = t;
  return t;
}

void finish_transfer(VciGuard& guard, Transfer& t) noexcept {
  Request& request = *t.request;
  if (t.link.next) unlink(guard.vci(), t);
  if (t.own_copy >= 0) guard.vci().free_copies |= std::uint64_t{1} << t.own_copy;
  if (t.net) network::release(t);
  request.transfer = nullptr;
  delete &t;
  complete(request, guard);
}

void send_offer(VciGuard& guard, Request& send) noexcept {
  const Address to = send.to;
  shm::Peer& peer = peer_of(to.process);
  Transfer* t = new_transfer(send);
  t->peer = &peer;
  t->lane = to.vci;
  t->bytes = send.capacity;
  Offer offer{};
  offer.request = reinterpret_cast<RequestToken>(&send);
  offer.bytes = send.capacity;
  offer.process = runtime.self;
  if (send.datatype->contiguous) {
    const auto* bytes = static_cast<const std::byte*>(send.buffer) + send.datatype->true_lb;
    t->from = offer.address = reinterpret_cast<std::uint64_t>(bytes);
    offer.heap = shm::heap_offset_of(bytes, send.capacity);
    Vci& vci = guard.vci();
    if (!offer.heap && to.process != runtime.self && vci.free_copies && peer.cma_works()) {
      t->own_copy = __builtin_ctzll(vci.free_copies);
      vci.free_copies &= vci.free_copies - 1;
      t->copy = shm::shared_copies(shm::region.base, vci.index) + t->own_copy;
      t->stamp = ((t->copy->claimed.load(std::memory_order_relaxed) >> shm::SharedCopy::stamp_at) + 1) & 0xffff;
      t->copy->claimed.store(t->stamp << shm::SharedCopy::stamp_at, std::memory_order_relaxed);  // published with the offer
      offer.stamp = static_cast<std::uint32_t>(t->stamp);
      offer.copy = static_cast<std::uint32_t>(t->own_copy) + 1;
      offer.vci = vci.index;
    }
  }
  const RecordHead head{send.pattern.context, send.pattern.source, send.pattern.tag, PointToPoint::offer, lane_of(send)};
  push_or_queue(guard, peer, to.vci, head, &offer, sizeof offer);
}

void begin_transfer(VciGuard& guard, Request& receive, const Offer& offer, std::uint16_t lane, int source, int tag) noexcept {
  set_received(receive, offer.bytes, source, tag);
  if (net::reaches(offer.process)) return network::begin_transfer(guard, receive, offer, lane);
  Transfer* t = new_transfer(receive);
  t->peer = &peer_of(offer.process);
  t->lane = lane;
  t->other = offer.request;
  t->bytes = static_cast<std::uint64_t>(receive.bytes);
  t->from = offer.address;
  const bool contiguous = receive.datatype->contiguous;
  if (contiguous) t->to = reinterpret_cast<std::uint64_t>(receive.buffer) + static_cast<std::uint64_t>(receive.datatype->true_lb);
  if (!t->bytes) {
    send_finished(guard, *t);
    return finish_transfer(guard, *t);
  }
  if (offer.process == runtime.self) t->mapped = reinterpret_cast<const std::byte*>(offer.address);  // another endpoint
  else if (offer.heap) t->mapped = t->peer->heap_address(offer.heap);
  Accept accept{offer.request, reinterpret_cast<RequestToken>(&receive), t->to, t->bytes, 0, runtime.self, lane_of(receive)};
  RecordHead head{0, 0, 0, PointToPoint::accept, 0};
  if (t->mapped || (offer.address && t->peer->cma_works())) {
    t->piece = step_bytes;
    if (!t->mapped && offer.copy && contiguous) {
      t->piece = accept.piece = piece_bytes;
      t->shared_claims = true;
      t->copy = shm::shared_copies(t->peer->region.base, offer.vci) + (offer.copy - 1);
      t->stamp = offer.stamp;
      push_or_queue(guard, *t->peer, lane, head, &accept, sizeof accept);
    }
    link(guard.vci(), *t);
    return;
  }
  head.kind = PointToPoint::pull;
  push_or_queue(guard, *t->peer, lane, head, &accept, sizeof accept);
}

void handle_accept(VciGuard& guard, const Accept& accept) noexcept {
  auto& send = *reinterpret_cast<Request*>(accept.sender);
  Transfer* t = send.transfer;  // still there: `finished` can only follow `accept`
  t->other = accept.receiver;
  t->lane = static_cast<std::uint16_t>(accept.lane);
  t->to = accept.address;
  t->bytes = accept.bytes;
  t->piece = accept.piece;
  t->shared_claims = t->streams = true;
  link(guard.vci(), *t);
}

void handle_pull(VciGuard& guard, const Accept& accept) noexcept {
  auto& send = *reinterpret_cast<Request*>(accept.sender);
  Transfer* t = send.transfer;
  t->other = accept.receiver;
  t->lane = static_cast<std::uint16_t>(accept.lane);
  t->bytes = t->end = accept.bytes;
  t->streams = true;
  link(guard.vci(), *t);
  if (!t->net) return;
  bool finished = false;  // a small one leaves with the answers to the others that came with it
  network::stream_step(guard, *t, finished);
  if (finished) finish_transfer(guard, *t);
}

void handle_data(VciGuard& guard, const Record& record) noexcept {
  DataFor to;
  std::memcpy(&to, record.payload, sizeof to);
  auto& receive = *reinterpret_cast<Request*>(to.receiver);
  Transfer& t = *receive.transfer;
  const std::uint64_t n = record.bytes - sizeof to;
  if (t.shared_claims) {
    std::memcpy(reinterpret_cast<void*>(t.to + to.at), record.payload + sizeof to, n);
    t.since = 0;
  } else {
    unpack(receive.buffer, receive.count, *receive.datatype, t.cursor, record.payload + sizeof to, n);
  }
  placed(guard, t, n);
}

void handle_placed(VciGuard& guard, const DataFor& what) noexcept {
  placed(guard, *reinterpret_cast<Request*>(what.receiver)->transfer, what.at);
}

void handle_finished(VciGuard& guard, RequestToken token) noexcept {
  Transfer& t = *reinterpret_cast<Request*>(token)->transfer;
  if (t.streams && t.link.next) t.told = true;  // pieces of this end are still to go out
  else finish_transfer(guard, t);
}

bool advance_transfers(VciGuard& guard) noexcept {
  Vci& vci = guard.vci();
  Transfer* t = vci.transfers;
  vci.transfers = t->link.next;
  if (t->net && t->streams) {
    bool finished = false;
    const bool moved = network::stream_step(guard, *t, finished);
    if (finished) finish_transfer(guard, *t);
    return moved;
  }
  if (t->streams) return data_step(guard, *t);
  return t->shared_claims ? claim_step(guard, *t) : copy_step(guard, *t);
}

}  // namespace heddle::proto
