// What the protocols keep: unexpected messages, large messages under way. Private to proto/.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/datatype.hpp"
#include "match/matcher.hpp"
#include "proto/p2p.hpp"
#include "proto/records.hpp"
#include "proto/send_record.hpp"
#include "sync/intrusive.hpp"
#include "sys/copy.hpp"
#include "transport/record.hpp"
#include "transport/shm/node.hpp"
#include "vci/vci.hpp"

namespace heddle {

struct Transfer;  // proto/rendezvous.hpp

namespace proto {

struct Backlog;  // backlog.cpp
struct Unexpected;

/// What point-to-point keeps in a VCI.
struct State : VciState {
  Backlog* backlog = nullptr;         ///< records that found a full ring, and what keeps them in order; owned
  Transfer* transfers = nullptr;      ///< large messages to advance, a piece at a time (a ring, so that each gets its turn)
  std::uint64_t free_copies = ~std::uint64_t{0};  ///< which of the 64 SharedCopy of this VCI are free
  std::uint64_t unexpected_bytes = 0; ///< memory of messages that no receive has matched
  Unexpected* spare = nullptr;        ///< nodes of small unexpected messages, to be used again
  unsigned spares = 0;
};
inline State& state_of(Vci& vci) noexcept { return static_cast<State&>(*vci.modules[PointToPoint::module]); }

/// The message space in which this endpoint receives.
inline std::uint64_t own_context(const Comm& comm, Space space) noexcept {
  return comm.inbox | static_cast<std::uint64_t>(space);
}

/// Where a message goes, in which message space, and from which lane of this process.
struct Path {
  Address to;
  ContextId context;
  Lane from;
};

/// The path with endpoints, or with lanes that hints or streams chose.
Path resolve_routed(const Comm& comm, int dest, int tag, Space space) noexcept;
/// The path of a message: looked up here and nowhere else. \pre 0 <= dest < comm.peer_size()
inline Path resolve(const Comm& comm, int dest, int tag, Space space) noexcept {
  if (!comm.plain) [[unlikely]] return resolve_routed(comm, dest, tag, space);
  return {{comm.peers->process(dest), comm.lane, 0}, comm.outbox | static_cast<ContextId>(space), comm.lane};
}

/// Puts the message into a request. \pre a predefined datatype
inline void fill_builtin(Request& r, const Buffer& buffer, match::Pattern pattern) noexcept {
  r.buffer = buffer;
  r.capacity = buffer.bytes();
  r.pattern = pattern;
}
/// The same for all datatypes. Others are referenced: they may be freed while the operation runs.
inline void fill(Request& r, const Buffer& buffer, match::Pattern pattern) noexcept {
  fill_builtin(r, buffer, pattern);
  if (!buffer.type->builtin) [[unlikely]] {
    retain(*buffer.type);
    r.special = true;
  }
}
inline void fill_send(Request& r, const Buffer& buffer, int dest, match::Pattern pattern, Address to, SendMode mode) noexcept {
  fill(r, buffer, pattern);
  r.peer = dest;
  r.to = to;
  r.mode = static_cast<std::uint8_t>(mode);
}

/// The head of a record about the message of `send`.
inline RecordHead head_of(const Request& send, RecordKind kind) noexcept {
  return {send.pattern.context, send.pattern.source, send.pattern.tag, kind, lane_of(send)};
}

/// What the record of an eager message says before the message itself: who wants to hear that it was matched, if it is synchronous.
struct EagerHead {
  RecordHead record;
  AckTo ack{};
  std::size_t bytes = 0;  ///< of `ack`

  explicit EagerHead(const Request& send) noexcept : record(head_of(send, PointToPoint::eager)) {
    if (static_cast<SendMode>(send.mode) != SendMode::synchronous) return;
    record.kind = PointToPoint::eager_sync;
    ack = {reinterpret_cast<RequestToken>(&send), runtime.name};
    bytes = sizeof ack;
  }
};

/// A message that arrived before its receive. The payload of an eager one follows the node.
struct Unexpected : match::Arrival {
  enum class Form : std::uint8_t { eager, sync, rendezvous, local };
  Form form = Form::eager;
  Lane lane{};                    ///< of the sender, for replies
  std::uint64_t bytes = 0;        ///< of the whole message
  std::size_t room = 0;           ///< bytes that this message takes, node and payload
  union {
    AckTo ack{};                  ///< of `sync`
    RendezvousRequest request;    ///< of `rendezvous`
    Request* sender;              ///< of `local`: the send request in this process
  };
  /// The sender's request, who may still cancel it. \pre sync or rendezvous
  [[nodiscard]] AckTo awaited_by() const noexcept { return form == Form::sync ? ack : AckTo{request.sender, request.process}; }
  [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// Sizes at which the protocol changes; read once at start.
struct Limits {
  /// Largest message pushed whole into a ring. Lowered when a peer with smaller rings turns up, before there is a way to its rings:
  /// look at it after the port (whose acquire orders the two).
  std::atomic<std::size_t> eager{8192};
  /// Largest payload of one record of any ring, whatever HEDDLE_EAGER says; lowered with `eager`.
  std::atomic<std::size_t> record{SIZE_MAX};
  std::size_t self_eager = 65536;  ///< largest unexpected self message that is copied so that the send completes
  std::size_t unexpected = 64 << 20;  ///< memory a VCI spends on messages nobody asked for before it asks senders to hold theirs
};
[[gnu::visibility("hidden")]] extern Limits limits;

/// Reads the parameters.
void read_limits() noexcept;
/// From now on no message exceeds what one record of a ring with `ring_lines` lines can carry.
void fit_limits(std::uint32_t ring_lines) noexcept;

/// A node for an unexpected message with room for `payload` bytes; counts them and asks senders to hold back when it gets too much.
Unexpected* new_unexpected(Vci& vci, std::size_t payload) noexcept;
/// Gives a message that no receive matched to the matcher; a thread asleep in a probe looks again.
void keep(Vci& vci, Unexpected& message) noexcept;
void free_unexpected(Vci& vci, Unexpected* message) noexcept;
/// Gives back the memory of messages that no receive ever matched, when the library ends. \pre nobody else uses the VCI
void discard_unexpected(Vci& vci) noexcept;

/// Fails a receive whose message is larger than its buffer.
[[gnu::cold]] void fail_truncated(Request& receive, std::uint64_t bytes, int source, int tag) noexcept;
inline void set_status(Request& receive, std::uint64_t bytes, int source, int tag) noexcept {
  receive.source = source;
  receive.tag = tag;
  receive.bytes = static_cast<MPI_Count>(bytes);
}
/// Sets a receive's status; with the truncation error when the message is larger than the buffer.
inline void set_received(Request& receive, std::uint64_t bytes, int source, int tag) noexcept {
  const std::uint64_t capacity = receive.capacity;
  set_status(receive, bytes, source, tag);
  if (bytes > capacity) [[unlikely]] fail_truncated(receive, bytes, source, tag);
}

/// Gives `bytes` bytes at `data` to a receive and completes it.
inline void deliver(VciGuard& guard, Request& receive, const std::byte* data, std::uint64_t bytes, int source, int tag) noexcept {
  receive.buffer.unpack(0, data, bytes < receive.capacity ? bytes : receive.capacity);
  set_received(receive, bytes, source, tag);
  complete(receive, guard);
}

/// Gives a receive whose fields are filled in a message that is here, or posts it.
void match_or_post(VciGuard& guard, Request& receive) noexcept;
/// Completes a receive from an unexpected message that was taken out of the matcher, and frees the message.
void consume(VciGuard& guard, Request& receive, Unexpected& message) noexcept;

Backlog* make_backlog() noexcept;
void destroy_backlog(Backlog* backlog) noexcept;
/// Pushes records that found a full ring, in order per destination. True if any went.
bool drain_backlog(VciGuard& guard) noexcept;
/// Moves a piece of the next large message. True if anything moved. \pre there is one
bool advance_transfers(VciGuard& guard) noexcept;
void free_spares(State& state) noexcept;

/// Acts on a question of a sender, and on the answer to one.
void handle_cancel(VciGuard& guard, const Record& record) noexcept;
void handle_cancelled(VciGuard& guard, const Cancel& what) noexcept;
/// Completes a send whose message is nowhere any more.
void end_cancelled(VciGuard& guard, Request& send) noexcept;
/// Whether another process waits for what becomes of a message that is kept here: it can still cancel it.
bool is_awaited() noexcept;

/// Pushes a record with a small payload to `lane` of `peer`; queues it in order behind what the ring refused before.
void push_or_queue(VciGuard& guard, shm::Peer& peer, Lane lane, const RecordHead& head, const void* payload,
                   std::uint32_t bytes) noexcept;
/// The same for a whole message of `send`, packed from its buffer. Completes it at once, or when the ring takes it.
void push_or_queue_message(VciGuard& guard, shm::Peer& peer, Lane lane, Request& send) noexcept;

/// Takes back a send of the held VCI that the ring of `lane` refused so far. False: nothing of it is here.
bool withdraw(VciGuard& guard, shm::Peer& peer, Lane lane, const Request& send) noexcept;
/// Asks a process of the node whether a send can be cancelled, behind what it was sent. Decides that here if it has left.
void push_cancel(VciGuard& guard, shm::Peer& peer, Lane lane, const RecordHead& head, const Cancel& what) noexcept;

/// Pushes a small record to `lane` of a process that reached us, by whatever leads there.
void reply(VciGuard& guard, ProcessName to, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept;

/// The process that a record names. A name that is nobody's ends the job.
ProcessIndex index_of(ProcessName name) noexcept;
/// The peer, attached if need be; ends the job where that fails: for what has no request that could fail.
shm::Peer& peer_of(ProcessIndex process) noexcept;

inline shm::Port& port_of(shm::Peer& peer, Lane lane) noexcept {
  shm::Port* port = peer.port(lane);
  return port ? *port : *peer.open_port(lane);
}

/// Copies a contiguous payload into the ring. False when the ring is full. No lock.
inline bool try_push(shm::Port& port, const RecordHead& head, const void* payload, std::size_t bytes) noexcept {
  const std::uint32_t lines = lines_for(bytes);
  const auto reservation = port.ring.reserve(lines);
  if (!reservation.line) [[unlikely]] return false;
  auto* record = reinterpret_cast<Record*>(reservation.line);
  set_head(*record, head, bytes);
  sys::copy_bytes(record->payload, payload, bytes);
  sync::RingProducer::publish(reservation, lines);
  return true;
}

}  // namespace proto
}  // namespace heddle
