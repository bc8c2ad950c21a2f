// Intercommunicators: made of two groups, taken apart and merged.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "coll/run.hpp"
#include "comm/create.hpp"
#include "comm/inter_exchange.hpp"
#include "comm/split.hpp"
#include "comm/stream.hpp"
#include "core/hints.hpp"
#include "proto/p2p.hpp"
#include "sys/error.hpp"
#include "transport/process.hpp"

namespace heddle {
namespace {

Datatype& bytes() noexcept { return coll::byte_type(); }

/// Bytes that one side tells the other.
struct Bytes {
  std::unique_ptr<char[]> data;
  std::int64_t size = 0;

  bool resize(std::int64_t n) noexcept {
    data.reset(new (std::nothrow) char[static_cast<std::size_t>(n) + 1]);
    size = data ? n : 0;
    return data != nullptr;
  }
};

int out_of_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for what the two groups tell each other"); }

int exchange_with(Comm& comm, Space space, int tag, int peer, const Bytes& mine, Bytes& theirs) noexcept {
  std::int64_t size = 0;
  if (const int code = sendrecv({{&mine.size, sizeof size, bytes()}, peer, tag}, {{&size, sizeof size, bytes()}, peer, tag}, comm, space))
    return code;
  if (!theirs.resize(size)) return out_of_memory();
  return sendrecv({{mine.data.get(), mine.size, bytes()}, peer, tag}, {{theirs.data.get(), size, bytes()}, peer, tag}, comm, space);
}

/// Gives all of the local group what its leader has, or the leader's error.
int share(Comm& local, int leader, int leader_code, Bytes& payload) noexcept {
  struct {
    std::int64_t size;
    int error_class;
  } head{payload.size, error_class(leader_code)};
  if (const int code = coll::bcast(&head, sizeof head, bytes(), leader, local)) return code;
  if (head.error_class)
    return leader_code ? leader_code
                       : error(head.error_class, "the leader of the local group (rank %d) could not reach the remote one",
                               leader);
  if (local.rank != leader && !payload.resize(head.size)) return out_of_memory();
  return coll::bcast(payload.data.get(), head.size, bytes(), leader, local);
}

/// What a group looks like in a message: its head and, unless it is strided within a job, the names of its processes.
struct GroupHead {
  ProcessName first;
  std::int64_t stride;
  ContextId offer;
  int size;
  bool tabled, endpoints;
};

int pack_group(const Group& group, ContextId offer, Bytes& out) noexcept {
  const ProcessName first = processes.name_of(group.process(0)), last = processes.name_of(group.process(group.size - 1));
  const GroupHead head{first, group.stride, offer, group.size, !group.strided() || first.job != last.job, group.endpoints != nullptr};
  const auto n = static_cast<std::size_t>(group.size);
  const std::size_t table = head.tabled ? n * sizeof(ProcessName) : 0, ids = head.endpoints ? n * sizeof(std::uint32_t) : 0;
  if (!out.resize(static_cast<std::int64_t>(sizeof head + table + ids))) return out_of_memory();
  std::memcpy(out.data.get(), &head, sizeof head);
  for (int r = 0; table && r < group.size; ++r) {
    const ProcessName name = processes.name_of(group.process(r));
    std::memcpy(out.data.get() + sizeof head + static_cast<std::size_t>(r) * sizeof name, &name, sizeof name);
  }
  if (ids) std::memcpy(out.data.get() + sizeof head + table, group.endpoints->id.get(), ids);
  return MPI_SUCCESS;
}

int unpack_group(const Bytes& in, ContextId* offer, Group** out) noexcept {
  GroupHead head;
  std::memcpy(&head, in.data.get(), sizeof head);
  *offer = head.offer;
  const auto n = static_cast<std::size_t>(head.size);
  const auto unknown = [](ProcessName name) {
    return error(MPI_ERR_GROUP, "the remote group has a process that this one does not know: rank %u of another job", name.rank);
  };
  if (!head.tabled) {
    const ProcessName last{head.first.job, static_cast<std::uint32_t>(head.first.rank + head.stride * (head.size - 1))};
    const ProcessIndex first = processes.find(head.first);
    if (first == ProcessTable::unknown || processes.find(last) == ProcessTable::unknown) return unknown(last);
    Group* group = pool<Group>().create();
    if (!group) return out_of_memory();
    group->size = head.size;
    group->first = first;
    group->stride = head.stride;
    *out = group;
    return MPI_SUCCESS;
  }
  std::unique_ptr<ProcessIndex[]> table(new (std::nothrow) ProcessIndex[n]);
  std::unique_ptr<std::uint32_t[]> ids(head.endpoints ? new (std::nothrow) std::uint32_t[n] : nullptr);
  if (!table || (head.endpoints && !ids)) return out_of_memory();
  const char* at = in.data.get() + sizeof head;
  for (std::size_t r = 0; r < n; ++r, at += sizeof(ProcessName)) {
    ProcessName name;
    std::memcpy(&name, at, sizeof name);
    table[r] = processes.find(name);
    if (table[r] == ProcessTable::unknown) return unknown(name);
  }
  if (!ids) {
    *out = make_group(table.get(), head.size, MPI_UNDEFINED);
  } else {
    std::memcpy(ids.get(), at, n * sizeof(std::uint32_t));
    *out = make_endpoint_group(std::move(table), std::move(ids), head.size, MPI_UNDEFINED);
  }
  return *out ? MPI_SUCCESS : out_of_memory();
}

/// The last step of making an intercommunicator: everybody in `local` knows `theirs`, what the other side packed.
int join(Comm& local, ContextId mine, ContextOffer* offer, const Bytes& theirs, Errhandler* errhandler, Comm** out) noexcept {
  ContextId other = 0;
  Group* remote = nullptr;
  if (const int code = unpack_group(theirs, &other, &remote)) return code;
  if (!mine || !other) return release_group(remote), out_of_contexts();
  for (int r = 0; r < remote->size; ++r)
    if (rank_of_member(*local.group, remote->member(r)) != MPI_UNDEFINED) {
      release_group(remote);
      return error(MPI_ERR_GROUP, "the two groups overlap: rank %d of the remote group is also in the local one", r);
    }
  const bool low = mine < other;  // ids are unique, so both sides find the same order
  const bool endpoints = local.group->endpoints || remote->endpoints;
  if ((low || endpoints) && offer) offer->taken();
  // Neither leader knew how many message spaces the other side needs, so endpoints receive in their own side's.
  return make_intercomm(low ? mine : other, retain_group(local.group), remote, low, errhandler, out, endpoints ? low ? other : mine : 0);
}

/// Intercomm_create once the leader has a way to reach the other one: `exchange(mine, theirs)`, called by the leader only.
template <typename Exchange>
int create_with(Comm& local, int leader, Errhandler* errhandler, Exchange&& exchange, Comm** out) noexcept {
  ContextOffer offer(local.width());
  Bytes theirs;
  int code = MPI_SUCCESS;
  if (local.rank == leader) {
    Bytes mine;
    code = pack_group(*local.group, offer.id(), mine);
    if (!code) code = exchange(mine, theirs);
  }
  if (const int shared = share(local, leader, code, theirs)) return shared;
  ContextId id = offer.id();  // the leader's, of which the others know nothing yet
  if (const int failed = coll::bcast(&id, sizeof id, bytes(), leader, local)) return failed;
  return join(local, id, local.rank == leader ? &offer : nullptr, theirs, errhandler, out);
}

/// Gives every process of this side what the other side's rank 0 sends. Collective over both.
int swap_sides(Comm& inter, const Bytes& mine, Bytes& theirs) noexcept {
  const int tag = coll::next_tag(inter);
  int code = MPI_SUCCESS;
  if (inter.rank == 0) code = exchange_with(inter, Space::collective, tag, 0, mine, theirs);
  return share(*inter.local_comm, 0, code, theirs);
}

/// A tree over both sides in which every edge joins one process of each, for that is how messages travel here: low rank i
/// has the high ranks 2i and 2i+1 as children, high rank j the low ranks 2j+1 and 2j+2, wrapped around when a side is small.
void bcast_steps(coll::Steps& steps, Comm& inter, ContextId* id) noexcept {
  constexpr MPI_Count size = sizeof *id;
  const std::int64_t me = inter.rank, here = inter.size, there = inter.remote_size;
  if (!inter.low)
    steps.recv_round(id, size, bytes(), static_cast<int>(me / 2 % there));
  else if (me > 0)
    steps.recv_round(id, size, bytes(), static_cast<int>((me - 1) / 2 % there));
  for (std::int64_t at = me; at < there; at += here) {
    const std::int64_t first = 2 * at + (inter.low ? 0 : 1);
    if (first >= there) break;
    for (std::int64_t child = first; child < std::min(first + 2, there); ++child)
      steps.send(id, size, bytes(), static_cast<int>(child));
  }
  steps.wait();
}

}  // namespace

int make_intercomm(ContextId context, Group* local, Group* remote, bool low, Errhandler* errhandler, Comm** out,
                   ContextId high_context) noexcept {
  *out = nullptr;
  Comm* side = make_comm(context | local_side_space, retain_group(local), local->rank);
  Comm* comm = make_comm(context, local, local->rank);
  if (!side || !comm) {
    release_group(remote);
    if (side) release_comm(side);
    if (comm) release_comm(comm);
    return out_of_memory();
  }
  comm->inter = true;
  comm->low = low;
  comm->remote_group = remote;
  comm->remote_size = remote->size;
  comm->local_comm = side;
  comm->errhandler.set(errhandler);
  set_context(*comm, context, high_context);  // now that it is known as an intercommunicator
  *out = comm;
  return MPI_SUCCESS;
}

int inter_bcast(Comm& inter, ContextId* id) noexcept {
  if (inter.low && inter.rank == 0) *id = new_context_id(inter.width());
  return coll::run_blocking(inter, "MPI_Comm_dup", [&](coll::Steps& steps) { bcast_steps(steps, inter, id); });
}

int inter_ibcast(Comm& inter, ContextId* id, Request** request, coll::Finish finish) noexcept {
  if (inter.low && inter.rank == 0) *id = new_context_id(inter.width());
  return coll::run_nonblocking(inter, "MPI_Comm_idup", request, finish,
                               [&](coll::Steps& steps) { bcast_steps(steps, inter, id); });
}

int inter_barrier(Comm& inter) noexcept {
  if (const int code = coll::barrier(*inter.local_comm)) return code;
  Bytes mine, theirs;
  if (!mine.resize(0)) return out_of_memory();
  return swap_sides(inter, mine, theirs);
}

int intercomm_create(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Comm** out) noexcept {
  *out = nullptr;
  if (local.inter) return error(MPI_ERR_COMM, "the local communicator must be an intracommunicator");
  Errhandler* handler = local.errhandler.get(errhandler_fatal);
  const int code = create_with(
      local, local_leader, handler,
      [&](const Bytes& mine, Bytes& theirs) {
        if (!peer) return error(MPI_ERR_COMM, "the peer communicator is not valid at the local leader");
        if (remote_leader < 0 || remote_leader >= peer->peer_size())
          return error(MPI_ERR_RANK, "the remote leader, rank %d, is not in the peer communicator of %d ranks", remote_leader,
                       peer->peer_size());
        CreationSpace space(*peer);
        return exchange_with(space.comm(), Space::user, tag, remote_leader, mine, theirs);
      },
      out);
  release_errhandler(handler);
  return code;
}

int intercomm_create_from_groups(const Group& local, int local_leader, const Group& remote, int remote_leader,
                                 const char* string_tag, Info* info, Errhandler* errhandler, Comm** out) noexcept {
  *out = nullptr;
  if (local_leader < 0 || local_leader >= local.size || remote_leader < 0 || remote_leader >= remote.size)
    return error(MPI_ERR_ARG, "the leaders, ranks %d and %d, are not in their groups of %d and %d ranks", local_leader,
                 remote_leader, local.size, remote.size);
  const std::string tag = std::string(string_tag) + "\x1f" + "intercomm";
  Comm* side = nullptr;  // for the exchange only
  if (const int code = comm_create_from_group(local, tag.c_str(), nullptr, errhandler, &side)) return code;
  if (!side) return error(MPI_ERR_GROUP, "this process is not in the local group");
  const int code = create_with(
      *side, local_leader, errhandler,
      [&](const Bytes& mine, Bytes& theirs) {
        // The two leaders as a group that both sides write the same way.
        Group *one = nullptr, *other = nullptr, *pair = nullptr;
        int failed = group_incl(local, 1, &local_leader, &one);
        if (!failed) failed = group_incl(remote, 1, &remote_leader, &other);
        if (!failed) {
          const bool first = one->member(0) < other->member(0);
          failed = first ? group_union(*one, *other, &pair) : group_union(*other, *one, &pair);
        }
        if (!failed && pair->size != 2) failed = error(MPI_ERR_GROUP, "the two leaders are one and the same process");
        if (!failed) {
          int message_tag = 0;
          // A space of its own: the local group may be as large as the pair, and another process is rank 0 there.
          CreationSpace space(*pair, (tag + "\x1f" + "leaders").c_str(), &message_tag);
          failed = exchange_with(space.comm(), Space::user, message_tag, 1 - pair->rank, mine, theirs);
        }
        for (Group* group : {one, other, pair})
          if (group) release_group(group);
        return failed;
      },
      out);
  release_comm(side);
  if (*out) take_hints(**out, info);
  return code;
}

int intercomm_merge(Comm& inter, bool high, Comm** out) noexcept {
  *out = nullptr;
  if (!inter.inter) return error(MPI_ERR_COMM, "the communicator is not an intercommunicator");
  struct Wish {
    ContextId offer;
    int high;
  };
  ContextOffer offer(inter.width());
  Wish wish{offer.id(), high};
  if (const int code = coll::bcast(&wish, sizeof wish, bytes(), 0, *inter.local_comm)) return code;
  Bytes mine, theirs;
  if (!mine.resize(sizeof wish)) return out_of_memory();
  std::memcpy(mine.data.get(), &wish, sizeof wish);
  if (const int code = swap_sides(inter, mine, theirs)) return code;
  Wish other;
  std::memcpy(&other, theirs.data.get(), sizeof other);
  const bool first = wish.high != other.high ? !wish.high : inter.low;
  const ContextId id = inter.low ? wish.offer : other.offer;
  if (inter.low && inter.rank == 0) offer.taken();
  if (!id) return out_of_contexts();
  Group* all = nullptr;
  if (const int code = first ? group_union(*inter.group, *inter.remote_group, &all)
                             : group_union(*inter.remote_group, *inter.group, &all))
    return code;
  return make_child(inter, id, all, out);
}

int inter_create(Comm& inter, const Group& group, Comm** out) noexcept {
  // Ranks of the local group are what the other side can find again in its remote group.
  struct Head {
    ContextId offer;
    int size;
  };
  ContextOffer offer(inter.width());
  Bytes mine, theirs;
  int code = MPI_SUCCESS;
  const int rank = own_rank(group, inter);
  const auto n = static_cast<std::size_t>(group.size);
  if (!mine.resize(static_cast<std::int64_t>(sizeof(Head) + n * sizeof(int)))) return out_of_memory();
  Head head{offer.id(), group.size};
  int* ranks = reinterpret_cast<int*>(mine.data.get() + sizeof head);
  for (int r = 0; r < group.size && !code; ++r) {
    ranks[r] = rank_of_member(*inter.group, group.member(r));
    if (ranks[r] == MPI_UNDEFINED)
      code = error(MPI_ERR_GROUP, "member %d of the group is not in the intercommunicator's local group", r);
  }
  if (code) head.size = -1;  // the others take part in the exchange and learn of it
  std::memcpy(mine.data.get(), &head, sizeof head);
  if (const int failed = swap_sides(inter, mine, theirs)) return failed;
  if (const int failed = coll::bcast(&head, sizeof head, bytes(), 0, *inter.local_comm)) return failed;
  if (code) return code;
  Head other;
  std::memcpy(&other, theirs.data.get(), sizeof other);
  if (other.size < 0) return error(MPI_ERR_GROUP, "the remote side gave a group with members that it does not have");
  if (group.size == 0 || other.size == 0 || rank == MPI_UNDEFINED) return MPI_SUCCESS;
  const ContextId id = inter.low ? head.offer : other.offer;
  if (inter.low && inter.rank == 0) offer.taken();
  if (!id) return out_of_contexts();
  Group* remote = nullptr;
  const int* remote_ranks = reinterpret_cast<const int*>(theirs.data.get() + sizeof other);
  if (const int failed = group_incl(*inter.remote_group, other.size, remote_ranks, &remote)) return failed;
  Group* local = clone_group(group);
  if (!local) return release_group(remote), out_of_memory();
  local->rank = rank;
  Errhandler* handler = inter.errhandler.get(errhandler_fatal);
  const int result = make_intercomm(id, local, remote, inter.low, handler, out);
  release_errhandler(handler);
  return result;
}

int inter_split(Comm& inter, int color, int key, Comm** out) noexcept {
  ContextOffer offer(inter.width());
  SplitTable table;
  if (const int code = gather_split_entries(*inter.local_comm, color, key, offer.id(), table)) return code;
  Bytes mine, theirs;
  const std::int64_t size = static_cast<std::int64_t>(sizeof(SplitEntry)) * inter.size;
  if (!mine.resize(inter.rank == 0 ? size : 0)) return out_of_memory();
  if (mine.size) std::memcpy(mine.data.get(), table.get(), static_cast<std::size_t>(mine.size));
  if (const int code = swap_sides(inter, mine, theirs)) return code;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  const auto* others = reinterpret_cast<const SplitEntry*>(theirs.data.get());
  Group *local = nullptr, *remote = nullptr;
  int leader = 0, remote_leader = 0;
  if (const int code = color_group(*inter.group, table.get(), color, &local, &leader)) return code;
  if (const int code = color_group(*inter.remote_group, others, color, &remote, &remote_leader))
    return release_group(local), code;
  if (!remote) return release_group(local), MPI_SUCCESS;  // nobody there has this color
  const ContextId id = inter.low ? table[leader].offer : others[remote_leader].offer;
  if (inter.low && leader == inter.rank) offer.taken();
  if (!id) return release_group(local), release_group(remote), out_of_contexts();
  Errhandler* handler = inter.errhandler.get(errhandler_fatal);
  const int result = make_intercomm(id, local, remote, inter.low, handler, out);
  release_errhandler(handler);
  return result;
}

}  // namespace heddle
