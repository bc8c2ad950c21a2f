// The communicator: a context id, a map from ranks to addresses, and what users attach to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/attribute.hpp"
#include "core/comm_extension.hpp"
#include "core/errhandler.hpp"
#include "core/group.hpp"
#include "core/routing.hpp"
#include "core/session.hpp"
#include "sys/handle.hpp"
#include "transport/address.hpp"

namespace heddle {

struct Info;
struct Topology;  // cartesian, graph, dist_graph: core/topology.hpp

/// The 64-bit name of a message space: the leader's rank in its job plus one (high 32 bits, below 2^29), the leader's
/// counter (31 bits), and in the lowest bit 0 for user messages, 1 for the collectives' own. Never reused. Bit 63 marks the
/// space in which communicators are made out of this one (comm/create.cpp), bit 62 the communicator of each side of an
/// intercommunicator. \see §7
using ContextId = std::uint64_t;
inline constexpr ContextId local_side_space = ContextId{1} << 62;
inline constexpr ContextId creation_space = ContextId{1} << 63;
inline constexpr ContextId string_space = ContextId{3} << 62;  ///< MPI_Comm_create_from_group: named by a hash; low half 0

/// What the user asserted of a communicator's use (info keys mpi_assert_*), as bits of Comm::assertions.
enum Assertion : std::uint32_t {
  assert_no_any_tag = 1,
  assert_no_any_source = 2,
  assert_exact_length = 4,
  assert_allow_overtaking = 8,
  assert_strict_persistent_collective_ordering = 16,
};

/// One communicator as seen by one of its endpoints (a rank).
///
/// Immutable after creation, so that every query and every send reads it without a lock: context, rank, size, group,
/// vci. Mutable parts say what guards them. Lifetime: reference counted; an outstanding operation holds a reference only
/// where it has callbacks into it (schedules), or once MPI_Comm_free was called or the operation has failed, for the error handler.
struct Comm : Object {
  static constexpr Kind object_kind = Kind::comm;

  ContextId context = 0;       ///< what the communicator was named when it was made
  ContextId outbox = 0;        ///< of user messages to peers, plus twice the peer's Address::index; `| 1` of collectives
  ContextId inbox = 0;         ///< of user messages to this endpoint; `| 1` of collectives
  int rank = MPI_UNDEFINED;    ///< this endpoint's rank
  int size = 0;                ///< of the local group
  int peer_count = 0;          ///< of the group that ranks in messages name
  int remote_size = 0;         ///< of the remote group; 0 for an intracommunicator
  bool inter = false;
  bool low = false;            ///< intercommunicators: this side comes first wherever the two sides need an order
  bool of_threads = false;     ///< a rank of a thread communicator, or made of one (MPIX_Comm_test_threadcomm)
  bool predefined = false;     ///< WORLD or SELF: not reference counted
  Lane lane{};                 ///< home lane of this endpoint in this process
  int self = MPI_UNDEFINED;    ///< the rank that a message to this process names, on a plain intracommunicator
  bool plain = true;           ///< no endpoints, no routing: one member in a process, and the same lane everywhere
  const Routing* routing = nullptr;  ///< owned; nullptr: the lanes follow from the context id
  const Group* peers = nullptr;   ///< whom ranks in messages name: the group, or the remote one; an alias
  Group* group = nullptr;         ///< local group, owned reference
  Group* remote_group = nullptr;  ///< intercommunicators only, owned reference
  Comm* local_comm = nullptr;     ///< intercommunicators only: the local group's own communicator, owned

  const Session* session = nullptr;  ///< the one that its group came from; nullptr: the world model

  std::uintptr_t predefined_value = 0;
  ErrhandlerSlot errhandler;                      ///< empty means the default (ARE_FATAL)
  std::atomic<std::uint32_t> assertions{0};       ///< bits of Assertion, set by hints
  std::atomic<bool> user_freed{false};            ///< MPI_Comm_free was called; only references inside the library are left
  std::atomic<std::uint32_t> next_collective{0};  ///< tag of the next collective; same on all ranks by the standard's ordering rule
  std::atomic<const void*> collective_thread{nullptr};  ///< that is in a collective call of this communicator (coll/turn.hpp)
  std::atomic<const char*> collective_name{nullptr};    ///< and the call's name

  std::mutex mutex;            ///< guards name, info, attributes
  char name[MPI_MAX_OBJECT_NAME] = {};
  Info* info = nullptr;        ///< owned; hints given by the user, as the library took them (core/hints.hpp)
  AttributeMap attributes;
  std::atomic<CommExtension*> coll_state{nullptr};   ///< owned: what the collectives keep (coll::CommState)
  std::atomic<CommExtension*> send_buffer{nullptr};  ///< set when a buffer for MPI_Bsend was asked for (proto/send_buffer.hpp)
  CommExtension* streams = nullptr;  ///< owned, immutable after creation (CommStreams); nullptr: none. With it, `kind` is stream_comm
  std::uint32_t stream_width = 0;    ///< message spaces of a communicator with streams
  Comm* stands_for = nullptr;  ///< of two streams: the communicator that the user knows, whose handler gets errors
  Topology* topology = nullptr;  ///< owned, immutable after creation; nullptr: none

  Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm();

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }

  /// Who `rank` is: the process and the VCI that matches messages sent to it on this communicator. Intercommunicators:
  /// of the remote group. \pre 0 <= rank < peer_size()
  [[nodiscard]] inline Address address(int rank) const noexcept;
  /// The same for a user's message with this tag.
  [[nodiscard]] Address route(int dest, int tag) const noexcept {
    Address to = address(dest);
    if (routing && routing->spread) to.lane = lane_at(number(to.lane) + Routing::distance(rank, tag));
    return to;
  }
  /// The lane in which this endpoint receives a user's messages with this source and tag, and the one from which it sends.
  [[nodiscard]] Lane receive_lane(int source, int tag) const noexcept {
    return routing && routing->spread ? lane_at(number(lane) + Routing::distance(source, tag)) : lane;
  }
  [[nodiscard]] Lane send_lane(int tag) const noexcept {
    if (!routing) return lane;
    if (routing->free_sender) return lane_of_thread();
    if (routing->sender != no_lane) return routing->sender;
    return routing->spread ? lane_at(number(lane) + Routing::distance(rank, tag)) : lane;
  }
  /// The context in which `rank` receives this endpoint's messages. \pre as of `address`
  [[nodiscard]] ContextId context_to(int rank) const noexcept {
    if (peers->endpoints) [[unlikely]] return outbox + 2 * ContextId{peers->endpoints->index[rank]};
    return outbox;
  }
  [[nodiscard]] int peer_size() const noexcept { return peer_count; }
  /// Message spaces that a copy of this communicator needs: one, unless there are endpoints or several streams of a rank.
  [[nodiscard]] std::uint32_t width() const noexcept;
};

[[gnu::visibility("hidden")]] extern Comm comm_world, comm_self;

template <>
struct HandleTraits<Comm> {
  using handle = MPI_Comm;
  static Comm* builtin(std::uintptr_t value) noexcept {
    Comm* comm = value == reinterpret_cast<std::uintptr_t>(MPI_COMM_WORLD)  ? &comm_world
                 : value == reinterpret_cast<std::uintptr_t>(MPI_COMM_SELF) ? &comm_self
                                                                            : nullptr;
    return comm && comm->is(Kind::comm) ? comm : nullptr;  // they exist between MPI_Init and MPI_Finalize only
  }
};

/// Makes a communicator object out of parts whose ids are already agreed: takes over the reference to `group`.
/// Attributes, name, info and error handler are the caller's to set. nullptr when memory is out (`group` is released then).
Comm* make_comm(ContextId context, Group* group, int rank) noexcept;
/// Sets the context id, and what follows from it, of a communicator that was made before the id was known. An
/// intercommunicator with endpoints receives on its high side in the spaces from `high_context` on; 0: those that follow the low side's.
void set_context(Comm& comm, ContextId context, ContextId high_context = 0) noexcept;

/// Reference counting that skips MPI_COMM_WORLD and MPI_COMM_SELF (nothing that all threads share is written on the path).
inline void retain_comm(Comm& comm) noexcept { if (!comm.predefined) comm.retain(); }
/// Drops a reference; destroys the communicator with the last one (attribute delete callbacks ran before, in MPI_Comm_free).
void release_comm(Comm* comm) noexcept;

/// The first of `width` fresh context ids led by this process; 0 after two billion of them (an error code says so:
/// `out_of_contexts`). Lock-free.
ContextId new_context_id(std::uint32_t width) noexcept;
int out_of_contexts() noexcept;

/// Makes and ends MPI_COMM_WORLD and MPI_COMM_SELF. Called by MPI_Init and MPI_Finalize.
int make_predefined_comms() noexcept;
void end_predefined_comms() noexcept;

inline AttributeOwner attributes_of(Comm& comm) noexcept {
  return {KeyvalKind::comm, to_handle(&comm), comm.attributes, comm.mutex};
}

/// MPI_Comm_set_name, cut to MPI_MAX_OBJECT_NAME-1 characters.
void set_comm_name(Comm& comm, const char* name) noexcept;

/// MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare_comms(const Comm& a, const Comm& b) noexcept;

inline Address Comm::address(int r) const noexcept {
  Address to = peers->address(r, outbox);
  if (routing) [[unlikely]] {
    if (const Lane chosen = routing->lane_of(r); chosen != no_lane) to.lane = chosen;
  }
  return to;
}

}  // namespace heddle
