// The communicator: a context id, a map from ranks to addresses, and what users attach to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/attribute.hpp"
#include "core/group.hpp"
#include "core/handle.hpp"
#include "vci/address.hpp"

namespace heddle {

namespace coll {
struct CommState;  // what the collectives keep per communicator (node layout, flags, …); owned by coll/
}

/// The 64-bit name of a message space: the leader's globally unique process number (high 32 bits), the leader's
/// counter (31 bits), and in the lowest bit 0 for user messages, 1 for the collectives' own. Never reused. \see §7
using ContextId = std::uint64_t;

/// One communicator as seen by one of its endpoints (a rank).
///
/// Immutable after creation, so that every query and every send reads it without a lock: context, rank, size, group,
/// vci. Mutable parts say what guards them. Lifetime: reference counted; each outstanding operation holds a reference only
/// where it must survive MPI_Comm_free (requests with callbacks into it, schedules).
struct Comm : Object {
  static constexpr Kind object_kind = Kind::comm;

  ContextId context = 0;       ///< of user point-to-point messages; `context | 1` of collectives
  int rank = MPI_UNDEFINED;    ///< this endpoint's rank
  int size = 0;                ///< of the local group
  int remote_size = 0;         ///< of the remote group; 0 for an intracommunicator
  bool inter = false;
  bool predefined = false;     ///< WORLD or SELF: not reference counted
  std::uint16_t vci = 0;       ///< home VCI of this endpoint in this process
  Group* group = nullptr;         ///< local group, owned reference
  Group* remote_group = nullptr;  ///< intercommunicators only, owned reference
  Comm* local_comm = nullptr;     ///< intercommunicators only: the local group's own communicator, owned

  std::uintptr_t predefined_value = 0;
  std::atomic<Errhandler*> errhandler{nullptr};  ///< owned reference; nullptr means the default (ARE_FATAL)
  std::atomic<std::uint32_t> next_collective{0};  ///< tag of the next collective; same on all ranks by the standard's ordering rule
  std::atomic<std::uint32_t> next_child{0};       ///< counter for the ids of communicators that this rank leads

  std::mutex mutex;            ///< guards name, info, attributes
  char name[MPI_MAX_OBJECT_NAME] = {};
  Info* info = nullptr;        ///< owned; hints given by the user, as the library took them
  AttributeMap attributes;
  std::atomic<coll::CommState*> coll_state{nullptr};
  void* topology = nullptr;    ///< cartesian, graph, dist_graph: core/topology (chapter not built yet)

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }

  /// Who `rank` is: the process and the VCI that matches messages sent to it on this communicator. Intercommunicators:
  /// of the remote group. \pre 0 <= rank < peer_size()
  [[nodiscard]] inline Address address(int rank) const noexcept;
  [[nodiscard]] int peer_size() const noexcept { return inter ? remote_size : size; }
};

extern Comm comm_world, comm_self;

template <>
struct HandleTraits<Comm> {
  using handle = MPI_Comm;
  static Comm* builtin(std::uintptr_t value) noexcept {
    if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_WORLD)) return &comm_world;
    if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_SELF)) return &comm_self;
    return nullptr;
  }
};

/// Makes a communicator object out of parts whose ids are already agreed: takes over the reference to `group`.
/// Attributes, name, info and error handler are the caller's to set. nullptr when memory is out.
Comm* make_comm(ContextId context, Group* group, int rank) noexcept;

/// Drops a reference; destroys the communicator with the last one (attribute delete callbacks ran before, in MPI_Comm_free).
void release_comm(Comm* comm) noexcept;

/// A fresh context id led by this process. Lock-free.
ContextId new_context_id() noexcept;

inline Address Comm::address(int r) const noexcept {
  const Group& g = inter ? *remote_group : *group;
  return g.address(r, context);
}

}  // namespace heddle
