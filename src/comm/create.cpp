#include "comm/create.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "coll/internal.hpp"
#include "coll/run.hpp"
#include "comm/inter_exchange.hpp"
#include "comm/routing.hpp"
#include "comm/stream.hpp"
#include "core/hints.hpp"
#include "core/runtime.hpp"
#include "core/topology.hpp"
#include "proto/p2p.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

Datatype& bytes() noexcept { return coll::byte_type(); }

int out_of_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for a communicator"); }

/// What every new communicator has of its parent. (Not its name, not its hints. MPI-5.0 §7.4.2)
void inherit(Comm& child, Comm& parent) noexcept {
  child.of_threads = parent.of_threads;
  Errhandler* handler = parent.errhandler.get(errhandler_fatal);
  child.errhandler.set(handler);
  release_errhandler(handler);
}

/// Gives up a communicator that nobody but its maker knows.
int discard(Comm* comm, int code) noexcept {
  delete_all_attributes(attributes_of(*comm));
  release_comm(comm);
  return code;
}

/// Sends `data` from group rank 0 to all members of `group`, of which the caller is member `me`, along a binomial tree of messages
/// on `comm`.
int tree_bcast(Comm& comm, Space space, int tag, const Group& group, int me, void* data, std::size_t size) noexcept {
  const int n = group.size;
  const auto peer = [&](int r) { return rank_of_member(*comm.group, group.member(r)); };
  int mask = 1;
  for (; mask < n; mask <<= 1) {
    if (!(me & mask)) continue;
    if (const int code = recv({data, static_cast<MPI_Count>(size), bytes()}, peer(me - mask), tag, comm, space)) return code;
    break;
  }
  int first_error = MPI_SUCCESS;
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (me + mask >= n) continue;
    // The other branches get theirs even when one cannot be reached.
    const int code = send({data, static_cast<MPI_Count>(size), bytes()}, peer(me + mask), tag, comm, space);
    if (code && !first_error) first_error = code;
  }
  return first_error;
}

/// What all members of `group` want, told to all of them: up the same tree, and down again.
int tree_agree(Comm& comm, Space space, int tag, const Group& group, int me, RoutingWish& wish) noexcept {
  const int n = group.size;
  const auto peer = [&](int r) { return rank_of_member(*comm.group, group.member(r)); };
  int first_error = MPI_SUCCESS;
  for (int mask = 1; mask < n && !(me & mask); mask <<= 1) {
    if (me + mask >= n) continue;
    RoutingWish theirs;
    const int code = recv({&theirs, sizeof theirs, bytes()}, peer(me + mask), tag, comm, space);
    if (!code) wish |= theirs;
    else if (!first_error) first_error = code;
  }
  // Those above get theirs even when one below cannot be reached.
  if (me != 0)
    if (const int code = send({&wish, sizeof wish, bytes()}, peer(me & (me - 1)), tag, comm, space)) return code;
  if (const int code = tree_bcast(comm, space, tag, group, me, &wish, sizeof wish)) return code;
  return first_error;
}

/// MPI_SUCCESS when every member of `group` is one of `parent`'s.
int check_subgroup(const Comm& parent, const Group& group) noexcept {
  if (same_members(*parent.group, group)) return MPI_SUCCESS;
  for (int r = 0; r < group.size; ++r)
    if (rank_of_member(*parent.group, group.member(r)) == MPI_UNDEFINED)
      return error(MPI_ERR_GROUP, "member %d of the group (process %u) is not in the communicator's group", r,
                   group.process(r));
  return MPI_SUCCESS;
}

/// The members agree on an id by a tree over `over`, then make their communicator.
int create_by_tree(Comm& parent, Comm& over, Space space, int tag, const Group& group, int rank, Comm** out) noexcept {
  ContextId id = rank == 0 ? new_context_id(group.width()) : 0;
  if (const int code = tree_bcast(over, space, tag, group, rank, &id, sizeof id)) return code;
  if (!id) return out_of_contexts();
  Group* members = clone_group(group);
  if (!members) return out_of_memory();
  members->rank = rank;
  return make_child(parent, id, members, out);
}

/// A copy of `parent` but for its context id. Runs no callback.
Comm* make_twin(Comm& parent) noexcept {
  Comm* twin = nullptr;
  if (parent.inter) {
    if (make_intercomm(0, retain_group(parent.group), retain_group(parent.remote_group), parent.low, nullptr, &twin))
      return nullptr;
  } else {
    twin = make_comm(0, retain_group(parent.group), parent.rank);
    if (!twin) return nullptr;
  }
  if (parent.streams && !copy_streams(*twin, parent)) return release_comm(twin), nullptr;
  inherit(*twin, parent);
  twin->topology = retain_topology(parent.topology);
  return twin;
}

struct PendingDup {
  Comm* comm = nullptr;  ///< nullptr: this process has given up and takes part for the others only
  ContextId id = 0;
  RoutingWish wish, agreed;
  Info* info = nullptr;  ///< a copy, owned
  bool hinted = false;
  ~PendingDup() { release_info(info); }
};

/// The last step of an idup: runs with a VCI held, before the request is complete.
int finish_dup(void* data, int code, VciGuard&) noexcept {
  std::unique_ptr<PendingDup> pending(static_cast<PendingDup*>(data));
  if (code || !pending->comm) return code;
  const ContextId id = pending->hinted ? pending->agreed.id : pending->id;
  if (!id) return out_of_contexts();
  set_context(*pending->comm, id);
  if (pending->hinted) {
    // Lanes that differ would have to be told, by a further exchange for which there is no time here: as if not asked for.
    if (needs_lanes(pending->agreed)) pending->agreed.lanes = 0;
    if (const int failed = apply_routing(*pending->comm, pending->agreed, pending->info)) return failed;
  }
  show_routing(*pending->comm);
  return MPI_SUCCESS;
}

}  // namespace

MPI_Comm give_comm(Comm& made) noexcept {
  show_routing(made);
  return to_handle(&made);
}

int own_rank(const Group& group, const Comm& parent) noexcept {
  return parent.group->endpoints ? rank_of_member(group, parent.group->member(parent.rank)) : group.rank;
}

int make_child(Comm& parent, ContextId context, Group* group, Comm** out) noexcept {
  *out = nullptr;
  if (!group || group->size == 0 || group->rank == MPI_UNDEFINED) {
    if (group) release_group(group);
    return MPI_SUCCESS;
  }
  *out = make_comm(context, group, group->rank);
  if (!*out) return out_of_memory();
  inherit(**out, parent);
  return MPI_SUCCESS;
}

int comm_dup(Comm& parent, bool hinted, Info* info, Comm** out) noexcept {
  // The exchange comes first: a callback or an allocation that fails here must not leave others waiting.
  RoutingWish wish = routing_wish(info, &parent), agreed;
  if (parent.inter) {
    if (const int code = inter_bcast(parent, &agreed.id)) return code;
  } else {
    if (parent.rank == 0) wish.id = new_context_id(parent.width());
    const int code = hinted ? agree_routing(parent, wish, agreed) : coll::bcast(&wish.id, sizeof wish.id, bytes(), 0, parent);
    if (code) return code;
    if (!hinted) agreed.id = wish.id;
  }
  if (!agreed.id) return out_of_contexts();
  Comm* twin = make_twin(parent);
  if (!twin) return out_of_memory();
  set_context(*twin, agreed.id);
  take_hints(*twin, info);
  if (hinted && !parent.inter)
    if (const int code = apply_routing(*twin, agreed, info)) return discard(twin, code);
  const int copied = copy_attributes(attributes_of(parent), twin->attributes);
  if (hinted && !parent.inter && needs_lanes(agreed))  // also where copying failed, for the others
    if (const int code = gather_lanes(*twin, wanted_lane(info, &parent)); code && !copied) return discard(twin, code);
  if (copied) return discard(twin, copied);
  *out = twin;
  return MPI_SUCCESS;
}

int comm_idup(Comm& parent, bool hinted, Info* info, Comm** out, Request** request) noexcept {
  auto* pending = new (std::nothrow) PendingDup;
  Comm* twin = pending ? make_twin(parent) : nullptr;
  if (!twin) {
    delete pending;
    return out_of_memory();
  }
  take_hints(*twin, info);
  const int failed = copy_attributes(attributes_of(parent), twin->attributes);  // as they are now
  if (!failed) pending->comm = twin;
  const coll::Finish finish{finish_dup, pending};
  int code;
  if (parent.inter) {
    code = inter_ibcast(parent, &pending->id, request, finish);
  } else {
    if (parent.rank == 0) pending->id = new_context_id(parent.width());
    if (hinted) {
      pending->hinted = true;
      pending->info = info ? clone_info(*info) : nullptr;
      pending->wish = routing_wish(info, &parent);
      pending->wish.id = pending->id;
      code = agree_routing_later(parent, pending->wish, pending->agreed, request, finish);
    } else {
      code = coll::ibcast(&pending->id, sizeof pending->id, bytes(), 0, parent, request, finish);
    }
  }
  if (code) {
    delete pending;
    return discard(twin, code);
  }
  if (failed) {  // the others must get their id all the same
    release_by_user(**request);
    return discard(twin, failed);
  }
  *out = twin;
  return MPI_SUCCESS;
}

int free_comm(Comm& comm) noexcept {
  if (comm.predefined) return error(MPI_ERR_COMM, "%s cannot be freed", comm.name);
  if (comm.user_freed.exchange(true, std::memory_order_acq_rel))
    return error(MPI_ERR_COMM, "the communicator was freed before");
  if (const int code = delete_all_attributes(attributes_of(comm))) {
    comm.user_freed.store(false, std::memory_order_release);  // a callback refused: it stays as it is
    return code;
  }
  keep_for_pending(comm);
  release_comm(&comm);
  return MPI_SUCCESS;
}

int disconnect_comm(Comm& comm) noexcept {
  if (comm.predefined) return error(MPI_ERR_COMM, "%s cannot be disconnected", comm.name);
  if (const int code = comm.inter ? inter_barrier(comm) : coll::barrier(comm)) return code;
  return free_comm(comm);
}

int comm_create(Comm& parent, const Group& group, Comm** out) noexcept {
  *out = nullptr;
  if (parent.inter) return inter_create(parent, group, out);
  coll::Turn turn(parent, "MPI_Comm_create");
  if (const int taken = turn.refusal()) return taken;
  const int tag = coll::next_tag(parent);  // by members and others: all call in the same order
  int code = check_subgroup(parent, group);
  const int rank = own_rank(group, parent);
  if (!code && rank != MPI_UNDEFINED)
    code = create_by_tree(parent, parent, Space::collective, tag, group, rank, out);
  return turn.leave("MPI_Comm_create", code);
}

int comm_create_group(Comm& parent, const Group& group, int tag, Comm** out) noexcept {
  *out = nullptr;
  // Its members could not reach each other in it: they would wait for messages that the remote group gets.
  if (parent.inter) return error(MPI_ERR_COMM, "MPI_Comm_create_group needs an intracommunicator; this is an intercommunicator");
  if (const int code = check_subgroup(parent, group)) return code;
  const int rank = own_rank(group, parent);
  if (rank == MPI_UNDEFINED) return MPI_SUCCESS;
  CreationSpace space(parent);
  return create_by_tree(parent, space.comm(), Space::user, tag, group, rank, out);
}

int comm_create_from_group(const Group& group, const char* string_tag, Info* info, Errhandler* errhandler,
                           Comm** out) noexcept {
  *out = nullptr;
  if (group.rank == MPI_UNDEFINED) {
    if (group.size == 0) return MPI_SUCCESS;
    return error(MPI_ERR_GROUP, "this process is not in the group; only its members may call");
  }
  int tag = 0;
  CreationSpace space(group, string_tag, &tag);
  // There is no parent whose traffic could say who hints at what: one more way up the tree than the id alone would need.
  RoutingWish agreed = routing_wish(info, nullptr);
  if (group.rank == 0) agreed.id = new_context_id(group.width());
  if (const int code = tree_agree(space.comm(), Space::user, tag, group, group.rank, agreed)) return code;
  if (!agreed.id) return out_of_contexts();
  Group* members = clone_group(group);
  if (!members) return out_of_memory();
  Comm* comm = make_comm(agreed.id, members, members->rank);
  if (!comm) return out_of_memory();
  comm->errhandler.set(errhandler);
  take_hints(*comm, info);
  if (const int code = apply_routing(*comm, agreed, info)) return discard(comm, code);
  if (needs_lanes(agreed))
    if (const int code = gather_lanes(*comm, wanted_lane(info, nullptr))) return discard(comm, code);
  *out = comm;
  return MPI_SUCCESS;
}

}  // namespace heddle
