// Sends: from the arguments to a record in the destination's ring, or to a match in this process.
#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "sys/error.hpp"
#include "sys/params.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace proto {

Limits limits;

namespace {

HEDDLE_PARAM_SIZE(eager_size, "HEDDLE_EAGER", 8192, 0, 128 << 10,
                  "largest message that is pushed whole through shared memory; larger ones wait for their receive (at most a quarter of the receiver's ring)");
HEDDLE_PARAM_SIZE(self_eager_size, "HEDDLE_SELF_EAGER", 65536, 0, sys::ParamRange::unlimited,
                  "largest message to the own process that is buffered when no receive waits");
HEDDLE_PARAM_SIZE(unexpected_size, "HEDDLE_UNEXPECTED", 64 << 20, 0, sys::ParamRange::unlimited,
                  "bytes of unexpected messages that each VCI keeps before senders must hold theirs back");

}  // namespace

void fit_limits(std::uint32_t ring_lines) noexcept {
  const std::size_t largest =
      (ring_lines / 4 < 2047 ? ring_lines / 4 : 2047) * sync::cache_line - Record::head_bytes - sizeof(AckTo);
  // Calls are serialized. Relaxed: the port to such a ring is published after it.
  if (limits.eager.load(std::memory_order_relaxed) > largest) limits.eager.store(largest, std::memory_order_relaxed);
  if (limits.record.load(std::memory_order_relaxed) > largest) limits.record.store(largest, std::memory_order_relaxed);
}

void read_limits() noexcept {
  limits.eager.store(static_cast<std::size_t>(eager_size.value()), std::memory_order_relaxed);
  limits.self_eager = static_cast<std::size_t>(self_eager_size.value());
  limits.unexpected = static_cast<std::size_t>(unexpected_size.value());
}

}  // namespace proto

namespace {

using proto::context_of;
using proto::fill;
using proto::limits;
using proto::PointToPoint;
using proto::Unexpected;

proto::CompletedRequest completed_send{Request::Type::send, MPI_ANY_SOURCE, last_index};

/// Where a message goes: with the lane that a user's tag chooses, if there is a choice.
Address route_of(const Comm& comm, int dest, int tag, Space space) noexcept {
  return space == Space::user ? comm.route(dest, tag) : comm.address(dest);
}

/// Copies a message to the receive that it matched. Contiguous on both sides is one branch and one copy.
inline void copy_to_receive(const void* buffer, MPI_Count count, const Datatype& type, std::uint64_t bytes,
                            Request& receive) noexcept {
  if (type.contiguous && receive.datatype->contiguous) [[likely]] {
    const std::uint64_t n = bytes < receive.capacity ? bytes : receive.capacity;
    const auto* from = static_cast<const std::byte*>(buffer) + type.true_lb;
    auto* to = static_cast<std::byte*>(receive.buffer) + receive.datatype->true_lb;
    if (from != to) sys::copy_bytes(to, from, n);
    return;
  }
  copy_typed(buffer, count, type, receive.buffer, receive.count, *receive.datatype);
}

/// A message to the own process, without a request: matched here and copied straight into the receive buffer, or kept
/// as a copy. False when it must wait for its receive.
inline bool try_send_self(VciGuard& guard, const void* buffer, MPI_Count count, const Datatype& type,
                          match::Pattern key, SendMode mode) noexcept {
  Vci& vci = guard.vci();
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  if (auto* receive = static_cast<Request*>(vci.matcher.take_posted(key))) [[likely]] {
    copy_to_receive(buffer, count, type, bytes, *receive);
    proto::set_received(*receive, bytes, key.source, key.tag);
    complete(*receive, guard);
    return true;
  }
  if (mode == SendMode::synchronous || bytes > limits.self_eager || vci.unexpected_bytes > limits.unexpected)
    return false;
  Unexpected* message = proto::new_unexpected(vci, bytes);
  message->key = key;
  message->bytes = bytes;
  if (type.contiguous) [[likely]] {
    sys::copy_bytes(message->payload(), static_cast<const std::byte*>(buffer) + type.true_lb, bytes);
  } else {
    PackCursor cursor;
    pack(buffer, count, type, cursor, message->payload(), bytes);
  }
  proto::keep(vci, *message);
  return true;
}

/// The same with a request: a message that cannot be copied waits for its receive with a pointer to its buffer.
void launch_self(VciGuard& guard, Request& send) noexcept {
  const auto mode = static_cast<SendMode>(send.mode);
  if (try_send_self(guard, send.buffer, send.count, *send.datatype, send.pattern, mode)) return complete(send, guard);
  Unexpected* message = proto::new_unexpected(guard.vci(), 0);
  message->key = send.pattern;
  message->bytes = send.capacity;
  message->form = Unexpected::Form::local;
  message->sender = &send;
  proto::keep(guard.vci(), *message);
}

/// The general send, with a request: any mode, any datatype, any size.
int launch_send(VciGuard& guard, Request& send) noexcept {
  const Address to = route_of(*send.comm, send.peer, send.pattern.tag, static_cast<Space>(send.pattern.context & 1));
  // Behind this very VCI the sender matches the message itself. Members of one process behind different VCIs reach each
  // other as other processes do, through the ring, so that no thread waits for another's VCI.
  if (to.process == runtime.self && &vci_of_lane(to.vci) == &guard.vci()) {
    launch_self(guard, send);
    return MPI_SUCCESS;
  }
  shm::Peer* peer = shm::find(to.process);
  if (!peer) {
    if (net::reaches(to.process)) return proto::network::send(guard, send, to), MPI_SUCCESS;
    std::string problem;
    peer = shm::attach(to.process, problem);
    if (!peer) return error(MPI_ERR_OTHER, "cannot send to rank %d: %s", send.peer, problem.c_str());
  }
  const bool held = proto::port_of(*peer, to.vci).ring.held();
  if (send.capacity <= limits.eager.load(std::memory_order_relaxed) && !held)
    proto::push_or_queue_message(guard, *peer, to.vci, send);
  else
    proto::send_offer(guard, send);
  return MPI_SUCCESS;
}

[[gnu::noinline]] Request* send_with_request(VciGuard& guard, const void* buffer, MPI_Count count, Datatype& type,
                                             int peer, int tag, Comm& comm, Space space, SendMode mode) noexcept {
  Request* send = new_request(guard.vci(), Request::Type::send, &comm);
  fill(*send, Request::Type::send, buffer, count, type, peer, tag, comm, space, mode);
  if (int code = launch_send(guard, *send)) {
    send->fail(code);
    complete(*send, guard);
  }
  return send;
}

/// The fast path to another process of the node: a small contiguous message. No lock, no allocation.
/// \param context in which the receiver gets it  \param lane from which it is sent
inline bool try_send(const void* buffer, MPI_Count count, const Datatype& type, ProcessIndex process, unsigned to_lane,
                     ContextId context, int tag, const Comm& comm, unsigned lane, SendMode mode) noexcept {
  if (mode == SendMode::synchronous || !type.contiguous) return false;
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  shm::Peer* peer = shm::find(process);
  if (!peer) [[unlikely]]
    return false;
  shm::Port* port = peer->port(to_lane);
  if (!port) [[unlikely]]
    return false;
  if (bytes > limits.eager.load(std::memory_order_relaxed)) return false;
  if (port->ring.held()) [[unlikely]]
    return false;
  // What the ring refused before goes first. Whoever is ordered before us has counted it there.
  if (vci_of_lane(lane).backlogged.load(std::memory_order_acquire)) [[unlikely]]
    return false;
  const RecordHead head{context, comm.rank, tag, PointToPoint::eager, static_cast<std::uint16_t>(lane)};
  if (!proto::try_push(*port, head, static_cast<const std::byte*>(buffer) + type.true_lb, bytes)) [[unlikely]]
    return false;
  peer->ring_doorbell(port->vci);
  return true;
}

/// The same through the network. The VCI of `lane` is held.
inline bool try_send_network(VciGuard& guard, const void* buffer, MPI_Count count, const Datatype& type, Address to, ContextId context, int tag,
                         const Comm& comm, unsigned lane, SendMode mode) noexcept {
  if (mode == SendMode::synchronous || !type.contiguous || !net::reaches(to.process)) return false;
  const RecordHead head{context, comm.rank, tag, PointToPoint::eager, static_cast<std::uint16_t>(lane)};
  return proto::network::try_send(guard, to, head, static_cast<const std::byte*>(buffer) + type.true_lb,
                       static_cast<std::size_t>(count) * static_cast<std::size_t>(type.size));
}

/// A message to the own process on a plain communicator. Out of line, so that the path to another process keeps its
/// registers.
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_to_self(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag,
                                        Comm& comm) noexcept {
  VciGuard guard(home_vci(comm));
  if (try_send_self(guard, buffer, count, type, {comm.outbox | static_cast<ContextId>(space), comm.rank, tag}, mode))
    return &completed_send;
  return send_with_request(guard, buffer, count, type, dest, tag, comm, space, mode);
}

template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_slowly(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag,
                                       Comm& comm) noexcept {
  VciGuard guard(home_vci(comm));
  if (try_send_network(guard, buffer, count, type, {comm.peers->process(dest), comm.vci, 0}, comm.outbox | static_cast<ContextId>(space), tag, comm,
                   comm.vci, mode))
    return &completed_send;
  return send_with_request(guard, buffer, count, type, dest, tag, comm, space, mode);
}

template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_to_node(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag,
                                        Comm& comm) noexcept {
  // On a plain communicator both ends have the same lane.
  if (try_send(buffer, count, type, comm.peers->process(dest), comm.vci, comm.outbox | static_cast<ContextId>(space),
               tag, comm, comm.vci, mode)) [[likely]]
    return &completed_send;
  return send_slowly<space, mode>(buffer, count, type, dest, tag, comm);
}

/// With endpoints, or with lanes that hints chose.
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_routed(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag,
                                       Comm& comm) noexcept {
  const Address to = route_of(comm, dest, tag, space);
  const unsigned lane = space == Space::user ? comm.send_lane(tag) : comm.vci;
  const ContextId context = (comm.outbox + 2 * ContextId{to.index}) | static_cast<ContextId>(space);
  Vci& vci = vci_of_lane(lane);
  if (to.process == runtime.self && (to.vci == lane || &vci_of_lane(to.vci) == &vci)) {
    VciGuard guard(vci);
    if (try_send_self(guard, buffer, count, type, {context, comm.rank, tag}, mode)) return &completed_send;
    return send_with_request(guard, buffer, count, type, dest, tag, comm, space, mode);
  }
  if (try_send(buffer, count, type, to.process, to.vci, context, tag, comm, lane, mode)) [[likely]]
    return &completed_send;
  VciGuard guard(vci);
  if (try_send_network(guard, buffer, count, type, to, context, tag, comm, lane, mode)) return &completed_send;
  return send_with_request(guard, buffer, count, type, dest, tag, comm, space, mode);
}

template <Space space, SendMode mode>
inline Request* send(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  if (dest == MPI_PROC_NULL) [[unlikely]]
    return &completed_send;
  if (!comm.plain) [[unlikely]]
    return send_routed<space, mode>(buffer, count, type, dest, tag, comm);
  if (comm.peers->process(dest) != runtime.self) return send_to_node<space, mode>(buffer, count, type, dest, tag, comm);
  return send_to_self<space, mode>(buffer, count, type, dest, tag, comm);
}

}  // namespace

Request* isend(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  return send<Space::user, SendMode::standard>(buffer, count, type, dest, tag, comm);
}

Request* isend(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm, Space space,
               SendMode mode) noexcept {
  if (space == Space::collective)
    return send<Space::collective, SendMode::standard>(buffer, count, type, dest, tag, comm);
  if (mode == SendMode::synchronous)
    return send<Space::user, SendMode::synchronous>(buffer, count, type, dest, tag, comm);
  return send<Space::user, SendMode::standard>(buffer, count, type, dest, tag,
                                               comm);  // ready: the receive is there, nothing to gain
}

Request* isend(VciGuard& guard, const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm,
               Space space) noexcept {
  if (dest == MPI_PROC_NULL) [[unlikely]]
    return &completed_send;
  const Address to = route_of(comm, dest, tag, space);
  const bool own = to.process == runtime.self && &vci_of_lane(to.vci) == &guard.vci();
  if (!own && try_send(buffer, count, type, to.process, to.vci, context_of(comm, dest, space), tag, comm,
                       guard.vci().index, SendMode::standard)) [[likely]]
    return &completed_send;
  return send_with_request(guard, buffer, count, type, dest, tag, comm, space, SendMode::standard);
}

Request* completed_request() noexcept { return &completed_send; }

void start_send(VciGuard& guard, Request& send) noexcept {
  if (int code = launch_send(guard, send)) {
    send.fail(code);
    complete(send, guard);
  }
}

}  // namespace heddle
