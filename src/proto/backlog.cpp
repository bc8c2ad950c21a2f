// Records that found a full ring: kept in order per destination, pushed by the progress engine when there is room.
#include <new>
#include <string>
#include <unordered_map>

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"

namespace heddle::proto {

namespace {

static_assert(sizeof(RendezvousRequest) <= largest_small_payload);

/// One refused record: its head, and either a small payload or the send whose message it is.
struct Outgoing {
  RecordHead head;
  Request* message;
  std::uint32_t bytes;
  std::byte payload[largest_small_payload];
  Outgoing* next;
};

/// The queue before one ring.
struct Queue {
  shm::Peer* peer = nullptr;
  shm::Port* port = nullptr;
  Outgoing *head = nullptr, *tail = nullptr;
  sync::Link<Queue> link;  ///< among the queues that are not empty
};

}  // namespace

/// Only the slow path comes here, so a hash map from ports to queues will do; queues live as long as the VCI.
struct Backlog {
  std::unordered_map<shm::Port*, Queue> queues;
  sync::List<Queue, &Queue::link> waiting;
};

Backlog* make_backlog() noexcept { return new (std::nothrow) Backlog; }
void destroy_backlog(Backlog* backlog) noexcept { delete backlog; }

namespace {

/// Packs the message of `send` straight into the ring. False when the ring is full.
bool try_push_message(shm::Port& port, Request& send) noexcept {
  const EagerHead head(send);
  const std::size_t bytes = head.bytes + send.capacity;
  const std::uint32_t lines = lines_for(bytes);
  const auto reservation = port.ring.reserve(lines);
  if (!reservation.line) return false;
  auto* record = reinterpret_cast<Record*>(reservation.line);
  set_head(*record, head.record, bytes);
  std::memcpy(record->payload, &head.ack, head.bytes);
  send.buffer.pack(0, record->payload + head.bytes, send.capacity);
  sync::RingProducer::publish(reservation, lines);
  return true;
}

/// A synchronous send completes when it is acknowledged.
void sent(VciGuard& guard, Request& send) noexcept {
  if (static_cast<SendMode>(send.mode) != SendMode::synchronous) complete(send, guard);
}

void append(Vci& vci, shm::Peer& peer, shm::Port& port, const Outgoing& item) noexcept {
  auto* outgoing = new (std::nothrow) Outgoing(item);
  if (!outgoing) sys::fatal("no memory to queue a message to rank %u", peer.process);
  Queue& queue = state_of(vci).backlog->queues[&port];
  queue.peer = &peer;
  queue.port = &port;
  if (queue.tail) queue.tail->next = outgoing;
  else {
    queue.head = outgoing;
    state_of(vci).backlog->waiting.push_back(&queue);
  }
  queue.tail = outgoing;
  // Release: a thread ordered after us that sees the count goes behind this record.
  port.backlogged.fetch_add(1, std::memory_order_release);
  vci.backlogged.fetch_add(1, std::memory_order_relaxed);
  leave_work(vci);
}

/// A record of the queue has gone. Release: whoever no longer sees it counted pushes behind it.
void uncount(Vci& vci, Queue& queue) noexcept {
  queue.port->backlogged.fetch_sub(1, std::memory_order_release);
  vci.backlogged.fetch_sub(1, std::memory_order_relaxed);
}

/// \param before the item before it, or nullptr
void remove(Vci& vci, Queue& queue, Outgoing* before, Outgoing& item) noexcept {
  (before ? before->next : queue.head) = item.next;
  if (queue.tail == &item) queue.tail = before;
  if (!queue.head) state_of(vci).backlog->waiting.remove(&queue);
  delete &item;
  uncount(vci, queue);
}

bool is_waiting(Vci& vci, shm::Port& port) noexcept {
  if (!vci.backlogged.load(std::memory_order_relaxed)) return false;
  const auto found = state_of(vci).backlog->queues.find(&port);
  return found != state_of(vci).backlog->queues.end() && found->second.head;
}

}  // namespace

void push_or_queue(VciGuard& guard, shm::Peer& peer, Lane lane, const RecordHead& head, const void* payload,
                   std::uint32_t bytes) noexcept {
  shm::Port& port = port_of(peer, lane);
  if (!is_waiting(guard.vci(), port) && try_push(port, head, payload, bytes)) return port.ring_doorbell();
  Outgoing item{head, nullptr, bytes, {}, nullptr};
  std::memcpy(item.payload, payload, bytes);
  append(guard.vci(), peer, port, item);
}

void push_or_queue_message(VciGuard& guard, shm::Peer& peer, Lane lane, Request& send) noexcept {
  shm::Port& port = port_of(peer, lane);
  if (!is_waiting(guard.vci(), port) && try_push_message(port, send)) {
    port.ring_doorbell();
    return sent(guard, send);
  }
  append(guard.vci(), peer, port, {{}, &send, 0, {}, nullptr});
}

bool withdraw(VciGuard& guard, shm::Peer& peer, Lane lane, const Request& send) noexcept {
  Vci& vci = guard.vci();
  shm::Port& port = port_of(peer, lane);
  if (!is_waiting(vci, port)) return false;
  Queue& queue = state_of(vci).backlog->queues[&port];
  const auto is_it = [&](const Outgoing& item) {
    if (item.message || item.head.kind != PointToPoint::request) return item.message == &send;
    RendezvousRequest request;
    std::memcpy(&request, item.payload, sizeof request);
    return request.sender == reinterpret_cast<RequestToken>(&send);
  };
  Outgoing *before = nullptr, *item = queue.head;
  for (; item && !is_it(*item); item = item->next) before = item;
  if (!item) return false;
  remove(vci, queue, before, *item);
  return true;
}

void push_cancel(VciGuard& guard, shm::Peer& peer, Lane lane, const RecordHead& head, const Cancel& what) noexcept {
  Outgoing item{head, nullptr, sizeof what, {}, nullptr};
  std::memcpy(item.payload, &what, sizeof what);
  append(guard.vci(), peer, port_of(peer, lane), item);
  drain_backlog(guard);
}

ProcessIndex index_of(ProcessName name) noexcept {
  const ProcessIndex process = processes.find(name);
  if (process == ProcessTable::unknown) sys::fatal("a message names a process that this one does not know: rank %u of another job", name.rank);
  return process;
}

void reply(VciGuard& guard, ProcessName to, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept {
  send_record(guard, index_of(to), lane, head, payload, bytes);
}

namespace {

/// Whether a process of the node has left, and so can never receive the message of a question. It cannot come back to what its communicator
/// was made of, unless that is the world and it has not called MPI_Init yet.
bool is_away(const shm::Peer& peer, const Cancel& what) noexcept {
  const shm::Stage stage = peer.stage();
  return stage == shm::Stage::away || (stage == shm::Stage::paused && reinterpret_cast<const Request*>(what.request)->comm->session);
}

/// Pushes a question. True when it is out of our hands: in the ring of a process that answers, or the receiver has left and we have decided.
bool try_push_cancel(VciGuard& guard, const Queue& queue, const Outgoing& item) noexcept {
  Cancel what;
  std::memcpy(&what, item.payload, sizeof what);
  if (reinterpret_cast<const Request*>(what.request)->asked != what.number) return true;  // it was answered meanwhile, by a match
  if (!is_away(*queue.peer, what)) {
    if (!try_push(*queue.port, item.head, item.payload, item.bytes)) return false;
    // Who leaves says so, then looks into its rings for the last time: either it finds the question there, or we see that it has left.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!is_away(*queue.peer, what)) return true;
  }
  if (!guard.vci().ring.is_drained()) return false;  // it may have said before it left that the message was matched: at the next step
  handle_cancelled(guard, what);
  return true;
}

bool try_push_item(VciGuard& guard, const Queue& queue, const Outgoing& item) noexcept {
  if (item.message) return try_push_message(*queue.port, *item.message);
  if (item.head.kind == PointToPoint::cancel) return try_push_cancel(guard, queue, item);
  return try_push(*queue.port, item.head, item.payload, item.bytes);
}

/// Decides the questions behind what the full ring of a process that has left will never take.
bool answer_questions(VciGuard& guard, Queue& queue) noexcept {
  bool worked = false;
  Outgoing *before = nullptr, *item = queue.head;
  while (item) {
    Outgoing* following = item->next;
    if (!item->message && item->head.kind == PointToPoint::cancel && try_push_cancel(guard, queue, *item)) {
      remove(guard.vci(), queue, before, *item);
      worked = true;
    } else {
      before = item;
    }
    item = following;
  }
  return worked;
}

}  // namespace

bool drain_backlog(VciGuard& guard) noexcept {
  Vci& vci = guard.vci();
  bool worked = false;
  for (Queue* queue = state_of(vci).backlog->waiting.front(); queue;) {
    Queue* following = state_of(vci).backlog->waiting.next(queue);
    bool pushed = false;
    while (Outgoing* item = queue->head) {
      if (!try_push_item(guard, *queue, *item)) break;
      queue->head = item->next;
      if (!queue->head) {
        queue->tail = nullptr;
        state_of(vci).backlog->waiting.remove(queue);
      }
      uncount(vci, *queue);
      if (item->message) sent(guard, *item->message);
      delete item;
      pushed = true;
    }
    if (pushed) queue->port->ring_doorbell();
    worked |= pushed;
    if (queue->head && queue->peer->stage() > shm::Stage::finishing) [[unlikely]] worked |= answer_questions(guard, *queue);
    queue = following;
  }
  return worked;
}

shm::Peer& peer_of(ProcessIndex process) noexcept {
  if (shm::Peer* peer = shm::find(process)) return *peer;
  std::string problem;
  shm::Peer* peer = shm::attach(process, problem);
  if (!peer) sys::fatal("cannot reach rank %u: %s", process, problem.c_str());
  return *peer;
}

}  // namespace heddle::proto

namespace heddle {

void send_record(VciGuard& guard, ProcessIndex to, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept {
  if (processes.route(to) == Route::network) return proto::network::push(guard, to, lane, head, payload, bytes);
  proto::push_or_queue(guard, proto::peer_of(to), lane, head, payload, bytes);
}

}  // namespace heddle
