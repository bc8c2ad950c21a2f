// Rendezvous: a large message waits for its receive, then moves by the best way both ends have.
//
//   sender                                   receiver
//   offer {address, bytes, heap, copy} ----> matched
//                                            mapped heap: copies alone ------------------> finished
//                                            CMA: accept ------------------------------->  (sender helps: both claim pieces)
//                                                 copies pieces                            the one that places the last byte
//                                                                                          sends finished to the other
//                                            neither: pull -----------------------------> data … data (packed, in order)
#include <new>

#include "proto/net.hpp"
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle::proto {
namespace {

HEDDLE_PARAM_SIZE(share_from, "HEDDLE_SHARE_COPY", 32 << 10, "smallest message that sender and receiver copy together");
HEDDLE_PARAM_SIZE(data_size, "HEDDLE_DATA", 8 << 10, "bytes of each record when a large message goes through the ring");

constexpr std::uint64_t step_bytes = 256 << 10;  ///< bounds one step of the progress engine

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
  const RecordHead head{0, 0, 0, RecordKind::finished, 0};
  push_or_queue(guard, *t.peer, t.lane, head, &t.other, sizeof t.other);
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

/// Takes the next piece of a message that both ends copy. Relaxed: the claim orders nothing, each piece is copied by one end.
std::uint64_t claim(Transfer& t) noexcept { return t.copy->claimed.fetch_add(t.piece, std::memory_order_relaxed); }

/// Copies the piece at `t.at`. An end claims its next piece *before* it counts the one it has copied: when the count is full
/// nobody claims any more, and the sender may reuse the counters.
void copy_step(VciGuard& guard, Transfer& t) noexcept {
  const bool receiver = t.request->type == Request::Type::recv || t.request->type == Request::Type::persistent_recv;
  const std::uint64_t at = t.at;
  const std::uint64_t n = t.bytes - at < t.piece ? t.bytes - at : t.piece;
  const bool moved = receiver ? fetch(t, at, n)
                              : shm::cma_write(t.peer->pid, t.to + at, reinterpret_cast<const void*>(t.from + at), n);
  if (!moved)
    sys::fatal("copying %llu bytes %s rank %u failed: the buffer is not accessible memory, or the process is gone",
               static_cast<unsigned long long>(n), receiver ? "from" : "to", t.peer->process);
  bool last;
  if (t.shared_claims) {
    t.at = claim(t);
    // Release orders our bytes before the count; acquire makes the other end's bytes ours when the count is full.
    last = t.copy->copied.fetch_add(n, std::memory_order_acq_rel) + n == t.bytes;
  } else {
    t.at = at + n;
    last = t.at == t.bytes;
  }
  if (last) {
    send_finished(guard, t);
    finish_transfer(guard, t);
  } else if (t.at >= t.bytes) {
    unlink(guard.vci(), t);  // the other end has the last piece, and tells when it is in place
  }
}

/// Pushes the next `data` records of a message that the receiver cannot reach. True when all are out.
bool data_step(VciGuard& guard, Transfer& t) noexcept {
  Request& send = *t.request;
  shm::Port& port = port_of(*t.peer, t.lane);
  while (t.moved < t.bytes) {
    const auto room = static_cast<std::uint64_t>(data_size.value() < 64 ? 64 : data_size.value());
    std::uint64_t n = t.bytes - t.moved < room ? t.bytes - t.moved : room;
    const std::uint64_t eager = limits.eager.load(std::memory_order_relaxed);
    if (n > eager && eager >= 64) n = eager;
    const std::uint32_t lines = lines_for(n + sizeof(DataFor));
    const auto reservation = port.ring.reserve(lines);
    if (!reservation.line) return false;
    auto* record = reinterpret_cast<Record*>(reservation.line);
    record->kind = RecordKind::data;
    record->bytes = static_cast<std::uint32_t>(n + sizeof(DataFor));
    const DataFor to{t.other};
    std::memcpy(record->payload, &to, sizeof to);
    pack(send.buffer, send.count, *send.datatype, t.cursor, record->payload + sizeof to, n);
    sync::RingProducer::publish(reservation, lines);
    t.peer->ring_doorbell(port.vci);
    t.moved += n;
  }
  finish_transfer(guard, t);
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
  if (t.net) net::release(t);
  request.transfer = nullptr;
  delete &t;
  complete(request, guard);
}

void send_offer(VciGuard& guard, Request& send) noexcept {
  const bool user = !(send.pattern.context & 1);
  const Address to = user ? send.comm->route(send.peer, send.pattern.tag) : send.comm->address(send.peer);
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
    if (!offer.heap && to.process != runtime.self && send.capacity >= static_cast<std::uint64_t>(share_from.value()) && vci.free_copies && peer.cma_works()) {
      t->own_copy = __builtin_ctzll(vci.free_copies);
      vci.free_copies &= vci.free_copies - 1;
      t->copy = shm::shared_copies(shm::region.base, vci.index) + t->own_copy;
      t->copy->claimed.store(0, std::memory_order_relaxed);  // published with the offer
      t->copy->copied.store(0, std::memory_order_relaxed);
      offer.copy = static_cast<std::uint32_t>(t->own_copy) + 1;
      offer.vci = vci.index;
    }
  }
  const RecordHead head{send.pattern.context, send.pattern.source, send.pattern.tag, RecordKind::offer, lane_of(send)};
  push_or_queue(guard, peer, to.vci, head, &offer, sizeof offer);
}

void begin_transfer(VciGuard& guard, Request& receive, const Offer& offer, std::uint16_t lane, int source, int tag) noexcept {
  set_received(receive, offer.bytes, source, tag);
  if (net::reaches(offer.process)) return net::begin_transfer(guard, receive, offer, lane);
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
  RecordHead head{0, 0, 0, RecordKind::accept, 0};
  if (t->mapped || (offer.address && t->peer->cma_works())) {
    t->piece = step_bytes;
    if (!t->mapped && offer.copy && contiguous && t->bytes >= 16384) {  // less is left of a truncated one
      // Two pieces for the smallest, more for larger ones, so that neither end waits long for the other's last.
      t->piece = t->bytes <= (128 << 10) ? (t->bytes / 2 + 4095) & ~std::uint64_t{4095} : t->bytes <= (1 << 20) ? 64 << 10 : 128 << 10;
      t->shared_claims = true;
      t->copy = shm::shared_copies(t->peer->region.base, offer.vci) + (offer.copy - 1);
      t->at = claim(*t);  // before the sender knows: it cannot take everything and reuse the counters under us
      accept.piece = t->piece;
      push_or_queue(guard, *t->peer, lane, head, &accept, sizeof accept);
    }
    link(guard.vci(), *t);
    return;
  }
  head.kind = RecordKind::pull;
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
  t->shared_claims = true;
  t->at = claim(*t);
  if (t->at < t->bytes) link(guard.vci(), *t);
}

void handle_pull(VciGuard& guard, const Accept& accept) noexcept {
  auto& send = *reinterpret_cast<Request*>(accept.sender);
  Transfer* t = send.transfer;
  t->other = accept.receiver;
  t->lane = static_cast<std::uint16_t>(accept.lane);
  t->bytes = accept.bytes;
  t->streams = true;
  link(guard.vci(), *t);
}

void handle_data(VciGuard& guard, const Record& record) noexcept {
  DataFor to;
  std::memcpy(&to, record.payload, sizeof to);
  auto& receive = *reinterpret_cast<Request*>(to.receiver);
  Transfer& t = *receive.transfer;
  const std::uint64_t n = record.bytes - sizeof to;
  unpack(receive.buffer, receive.count, *receive.datatype, t.cursor, record.payload + sizeof to, n);
  t.moved += n;
  if (t.moved == t.bytes) finish_transfer(guard, t);
}

void handle_finished(VciGuard& guard, RequestToken token) noexcept {
  finish_transfer(guard, *reinterpret_cast<Request*>(token)->transfer);
}

bool advance_transfers(VciGuard& guard) noexcept {
  Vci& vci = guard.vci();
  Transfer* t = vci.transfers;
  vci.transfers = t->link.next;
  if (!t->streams) return copy_step(guard, *t), true;
  if (t->net) {
    bool finished = false;
    const bool moved = net::stream_step(guard, *t, finished);
    if (finished) finish_transfer(guard, *t);
    return moved;
  }
  const std::uint64_t before = t->moved;
  return data_step(guard, *t) || t->moved != before;
}

}  // namespace heddle::proto
