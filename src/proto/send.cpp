// Sends: from the arguments to a record in the destination's ring, or to a match in this process.
#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "proto/rendezvous.hpp"
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

Path resolve_routed(const Comm& comm, int dest, int tag, Space space) noexcept {
  const bool user = space == Space::user;  // only users' tags choose
  const Address to = user ? comm.route(dest, tag) : comm.address(dest);
  return {to, (comm.outbox + 2 * ContextId{to.index}) | static_cast<ContextId>(space), user ? comm.send_lane(tag) : comm.lane};
}

}  // namespace proto

CompletedRequest detail::completed_send{Request::Type::send, Request::done_bit, MPI_ANY_SOURCE, last_index};

namespace {

using detail::completed_send;
using proto::limits;
using proto::Path;
using proto::PointToPoint;
using proto::Unexpected;

/// A message on its way out: what was asked for, and what `resolve` adds. Each step reads it, none changes it:
///
///   resolve -> push_now, without the VCI                               (a message to another process of the node; `send` does it for a few words)
///           -> post, in the VCI: match_here, send_small                (to this VCI; small, over the network)
///                                launch, with a request: by route and size
struct Send {
  Buffer buffer;
  Comm& comm;
  int dest, tag;
  Space space;
  SendMode mode;
  Path path;

  /// What the receiver matches.
  [[nodiscard]] match::Pattern key() const noexcept { return {path.context, comm.rank, tag}; }
  [[nodiscard]] RecordHead head() const noexcept {
    return {path.context, comm.rank, tag, PointToPoint::eager, path.from};
  }
};

inline Send resolve(const Buffer& buffer, int dest, int tag, Comm& comm, Space space, SendMode mode) noexcept {
  return {buffer, comm, dest, tag, space, mode, proto::resolve(comm, dest, tag, space)};
}

/// Whether the receiver is behind the very VCI that sends. Endpoints behind another VCI of this process are reached as other processes
/// are, through a ring, so that no thread waits for another's VCI.
inline bool is_here(const Path& path) noexcept {
  return path.to.process == runtime.self && (path.to.lane == path.from || &vci_of_lane(path.to.lane) == &vci_of_lane(path.from));
}

/// The ring of an address on this node, if a message of so many bytes may be pushed whole into it now.
inline shm::Port* free_port(const Address& to, std::uint64_t bytes) noexcept {
  shm::Peer* peer = shm::find(to.process);
  if (!peer) [[unlikely]]
    return nullptr;
  shm::Port* port = peer->port(to.lane);
  if (!port || bytes > limits.eager.load(std::memory_order_relaxed) || port->ring.held()) [[unlikely]]
    return nullptr;
  // Backlogged messages go first; acquire pairs with the backlog's append.
  return port->backlogged.load(std::memory_order_acquire) ? nullptr : port;
}

/// A small contiguous message to another process of the node, or to another VCI of this one. No lock, no allocation. False: not this way.
inline bool push_now(const Send& message) noexcept {
  if (message.mode == SendMode::synchronous || !message.buffer.contiguous()) return false;
  const std::uint64_t bytes = message.buffer.bytes();
  shm::Port* port = free_port(message.path.to, bytes);
  if (!port || !proto::try_push(*port, message.head(), message.buffer.data(), bytes)) [[unlikely]]
    return false;
  port->ring_doorbell();
  return true;
}

/// Copies a message of this process straight into the receive that it has matched.
inline void deliver_here(VciGuard& guard, const Buffer& buffer, int source, int tag, Request& receive) noexcept {
  const std::uint64_t bytes = buffer.bytes();
  copy(buffer, receive.buffer, bytes < receive.capacity ? bytes : receive.capacity);
  proto::set_received(receive, bytes, source, tag);
  complete(receive, guard);
}

/// A message to the VCI that is held, which no posted receive has matched: kept as a copy. False: it must wait for its receive.
inline bool keep_here(Vci& vci, const Buffer& buffer, match::Pattern key, SendMode mode) noexcept {
  const std::uint64_t bytes = buffer.bytes();
  if (mode == SendMode::synchronous || bytes > limits.self_eager || proto::state_of(vci).unexpected_bytes > limits.unexpected)
    return false;
  Unexpected* message = proto::new_unexpected(vci, bytes);
  message->key = key;
  message->bytes = bytes;
  buffer.pack(0, message->payload(), bytes);
  proto::keep(vci, *message);
  return true;
}

/// A message to the VCI that is held. False: it must wait for its receive.
inline bool match_here(VciGuard& guard, const Buffer& buffer, match::Pattern key, SendMode mode) noexcept {
  auto* receive = static_cast<Request*>(guard.vci().matcher.take_posted(key));
  return receive ? deliver_here(guard, buffer, key.source, key.tag, *receive), true : keep_here(guard.vci(), buffer, key, mode);
}

/// The same with a request: what cannot be copied waits for its receive as a pointer to the buffer.
void launch_here(VciGuard& guard, Request& send) noexcept {
  if (match_here(guard, send.buffer, send.pattern, static_cast<SendMode>(send.mode))) return complete(send, guard);
  Unexpected* message = proto::new_unexpected(guard.vci(), 0);
  message->key = send.pattern;
  message->bytes = send.capacity;
  message->form = Unexpected::Form::local;
  message->sender = &send;
  proto::keep(guard.vci(), *message);
}

/// A small contiguous message over the network, without a request. False: not this way.
inline bool send_small(VciGuard& guard, const Send& message) noexcept {
  if (message.mode == SendMode::synchronous || !message.buffer.contiguous()) return false;
  return proto::network::try_send(guard, message.path.to, message.head(), message.buffer.data(), message.buffer.bytes());
}

/// Any message whose request says where it goes: mode, datatype and size do not matter.
int launch(VciGuard& guard, Request& send) noexcept {
  if (send.to.process == runtime.self && &vci_of_lane(send.to.lane) == &guard.vci()) return launch_here(guard, send), MPI_SUCCESS;
  shm::Peer* peer = shm::find(send.to.process);
  if (!peer) {
    if (route(send.to) == Route::network) return proto::network::send(guard, send, send.to), MPI_SUCCESS;
    std::string problem;
    peer = shm::attach(send.to.process, problem);
    if (!peer) return error(MPI_ERR_OTHER, "cannot send to rank %d: %s", send.peer, problem.c_str());
  }
  const bool held = proto::port_of(*peer, send.to.lane).ring.held();
  if (send.capacity <= limits.eager.load(std::memory_order_relaxed) && !held)
    proto::push_or_queue_message(guard, *peer, send.to.lane, send);
  else
    proto::send_request(guard, send);
  return MPI_SUCCESS;
}

/// By value: so the message stays in registers where it does not come to this.
[[gnu::noinline]] Request* launch_new(VciGuard& guard, Send message) noexcept {
  Request* send = new_request(guard.vci(), Request::Type::send, &message.comm);
  proto::fill_send(*send, message.buffer, message.dest, message.key(), message.path.to, message.mode);
  start_send(guard, *send);
  return send;
}

/// What `push_now` has left. \pre the VCI of `path.from` is held
inline Request* post(VciGuard& guard, const Send& message) noexcept {
  const bool posted = is_here(message.path) ? match_here(guard, message.buffer, message.key(), message.mode)
                                            : route(message.path.to) == Route::network && send_small(guard, message);
  return posted ? &completed_send : launch_new(guard, message);
}

// The ways that a send begins, each out of line with the arguments of `send` where they are, so that none saves registers for another. The
// most common ones, a few words for another process of the node or for a receive of this process that waits, call nothing and save none.

/// In the VCI: what has found no other way.
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_in_vci(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  const Send message = resolve({buffer, count, type}, dest, tag, comm, space, mode);
  return submit(vci_of_lane(message.path.from), [&](VciGuard& guard) { return post(guard, message); });
}

/// With endpoints, or with lanes that hints chose, or to another process.
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_away(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  const Send message = resolve({buffer, count, type}, dest, tag, comm, space, mode);
  if (!is_here(message.path) && push_now(message)) [[likely]]
    return &completed_send;
  return send_in_vci<space, mode>(buffer, count, type, dest, tag, comm);
}

/// To the own process, in any way. \pre the home VCI is held; released at the end
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_here_held(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  HandOver held(home_vci(comm));
  return post(held.guard(), resolve({buffer, count, type}, dest, tag, comm, space, mode));
}

/// To the own process, where no receive waits, but perhaps one with wildcards. \pre as before
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_unmatched(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  Vci& vci = home_vci(comm);
  const match::Pattern key{comm.outbox | static_cast<ContextId>(space), comm.rank, tag};
  if (vci.matcher.awaits_wildcards() || !keep_here(vci, {buffer, count, type}, key, mode))
    return send_here_held<space, mode>(buffer, count, type, dest, tag, comm);
  HandOver::release(vci);
  return &completed_send;
}

/// To a receive of this process that has matched exactly. \pre its VCI is held; released at the end
[[gnu::noinline]] Request* send_matched(const void* buffer, MPI_Count count, Datatype& type, Request& receive) noexcept {
  HandOver held(*receive.vci);
  deliver_here(held.guard(), {buffer, count, type}, receive.pattern.source, receive.pattern.tag, receive);
  return &completed_send;
}

/// The end of a send that has completed a receive, where other threads may wait for that.
[[gnu::noinline]] Request* leave(Vci& vci) noexcept {
  HandOver::release(vci);
  wake_sleepers(vci);
  return &completed_send;
}

/// To the own process on a plain communicator.
template <Space space, SendMode mode>
[[gnu::noinline]] Request* send_here(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  Vci* vci = detail::lane_table[number(comm.lane)].load(std::memory_order_acquire);  // pairs with open_lane
  if (!vci || !HandOver::try_hold(*vci)) [[unlikely]]
    return send_in_vci<space, mode>(buffer, count, type, dest, tag, comm);
  auto* receive = static_cast<Request*>(vci->matcher.take_exact({comm.outbox | static_cast<ContextId>(space), comm.rank, tag}));
  if (!receive) return send_unmatched<space, mode>(buffer, count, type, dest, tag, comm);
  const Buffer from(buffer, count, type), &to = receive->buffer;
  const std::uint64_t bytes = from.bytes();
  if (!sys::is_copied_inline(bytes) || bytes > receive->capacity || !from.contiguous() || !to.contiguous() || receive->special)
    return send_matched(buffer, count, type, *receive);
  sys::copy_bytes(to.data(), from.data(), bytes);
  proto::set_status(*receive, bytes, receive->pattern.source, receive->pattern.tag);
  mark_complete(*receive);
  return vci->mode == VciMode::exclusive ? &completed_send : leave(*vci);
}

template <Space space, SendMode mode>
inline Request* send(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  if (dest == comm.self) return send_here<space, mode>(buffer, count, type, dest, tag, comm);
  if (dest == MPI_PROC_NULL) [[unlikely]]
    return &completed_send;
  if (!comm.plain) [[unlikely]]
    return send_away<space, mode>(buffer, count, type, dest, tag, comm);
  const Buffer from(buffer, count, type);
  const std::uint64_t bytes = from.bytes();
  if (mode == SendMode::synchronous || !sys::is_copied_inline(bytes) || !from.contiguous())
    return send_away<space, mode>(buffer, count, type, dest, tag, comm);
  static_assert(lines_for(sys::copied_inline) == 1);
  shm::Port* port = free_port({comm.peers->process(dest), comm.lane, 0}, bytes);
  const auto reservation = port ? port->ring.reserve_at_once() : sync::RingProducer::Reservation{};
  if (!reservation.line) [[unlikely]]
    return send_away<space, mode>(buffer, count, type, dest, tag, comm);
  auto& record = *reinterpret_cast<Record*>(reservation.line);
  set_head(record, {comm.outbox | static_cast<ContextId>(space), comm.rank, tag, PointToPoint::eager, comm.lane}, bytes);
  sys::copy_bytes(record.payload, from.data(), bytes);
  sync::RingProducer::publish(reservation, 1);
  port->ring_doorbell();
  return &completed_send;
}

}  // namespace

Request* detail::isend(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept {
  return send<Space::user, SendMode::standard>(buffer, count, type, dest, tag, comm);
}

Request* isend(const Buffer& buffer, int dest, int tag, Comm& comm, Space space, SendMode mode) noexcept {
  if (space == Space::collective)
    return send<Space::collective, SendMode::standard>(buffer.base, buffer.count, *buffer.type, dest, tag, comm);
  if (mode == SendMode::synchronous)
    return send<Space::user, SendMode::synchronous>(buffer.base, buffer.count, *buffer.type, dest, tag, comm);
  return isend(buffer, dest, tag, comm);  // ready: the receive is there, nothing to gain
}

Request* isend(VciGuard& guard, const Buffer& buffer, int dest, int tag, Comm& comm, Space space) noexcept {
  if (dest == MPI_PROC_NULL) [[unlikely]]
    return &completed_send;
  const Send message = resolve(buffer, dest, tag, comm, space, SendMode::standard);
  if (!is_here(message.path) && push_now(message)) [[likely]]
    return &completed_send;
  return post(guard, message);
}

bool send_at_once(const Request& send) noexcept {
  if (!send.buffer.contiguous() || (send.to.process == runtime.self && &vci_of_lane(send.to.lane) == send.vci)) return false;
  shm::Port* port = free_port(send.to, send.capacity);
  if (!port || !proto::try_push(*port, proto::head_of(send, PointToPoint::eager), send.buffer.data(), send.capacity)) return false;
  port->ring_doorbell();
  return true;
}

void start_send(VciGuard& guard, Request& send) noexcept {
  if (int code = launch(guard, send)) {
    send.fail(code);
    complete(send, guard);
  }
}

}  // namespace heddle
