#include "core/comm.hpp"

#include <cstdio>
#include <cstring>

#include "core/info.hpp"
#include "core/runtime.hpp"
#include "core/topology.hpp"
#include "sys/error.hpp"

namespace heddle {

Comm comm_world, comm_self;

namespace {

/// Ids that are the same in every process without asking: those of the predefined communicators. Process number 0 is nobody's.
constexpr ContextId world_context = 0;
constexpr ContextId self_context = ContextId{0x3fffffff} << 32;  // a counter of 0, so VCI 0 like the world's

std::atomic<std::uint64_t> next_context{1};

void release_parts(Comm& comm) noexcept {
  const auto end = [&](CommExtension* extension) {
    if (extension) extension->end(*extension, comm);
  };
  end(comm.coll_state.exchange(nullptr, std::memory_order_acq_rel));
  end(std::exchange(comm.streams, nullptr));
  if (comm.group) release_group(std::exchange(comm.group, nullptr));
  if (comm.remote_group) release_group(std::exchange(comm.remote_group, nullptr));
  if (comm.local_comm) release_comm(std::exchange(comm.local_comm, nullptr));
  end(comm.send_buffer.exchange(nullptr, std::memory_order_acq_rel));
  release_info(std::exchange(comm.info, nullptr));
  release_topology(std::exchange(comm.topology, nullptr));
  delete std::exchange(comm.routing, nullptr);
  comm.errhandler.set(nullptr);
}

bool make_predefined(Comm& comm, MPI_Comm value, const char* name, ContextId context, Group* group, int rank) noexcept {
  if (!group) return false;
  comm.predefined = true;
  comm.predefined_value = reinterpret_cast<std::uintptr_t>(value);
  comm.group = group;
  comm.rank = rank;
  comm.size = group->size;
  set_context(comm, context);
  set_comm_name(comm, name);
  comm.errhandler.set(&initial_errhandler());
  comm.kind.store(Kind::comm, std::memory_order_release);
  return true;
}

}  // namespace

Comm::Comm() = default;
Comm::~Comm() = default;

std::uint32_t Comm::width() const noexcept {
  if (streams) return stream_width;
  if (!inter) return group->width();
  return group->endpoints || remote_group->endpoints ? group->width() + remote_group->width() : 1;
}

Comm* make_comm(ContextId context, Group* group, int rank) noexcept {
  Comm* comm = pool<Comm>().create();
  if (!comm) {
    release_group(group);
    return nullptr;
  }
  comm->group = group;
  comm->rank = rank;
  comm->size = group->size;
  comm->session = group->session;
  set_context(*comm, context);
  return comm;
}

void set_context(Comm& comm, ContextId context, ContextId high_context) noexcept {
  comm.context = comm.outbox = comm.inbox = context;
  comm.peers = comm.inter ? comm.remote_group : comm.group;
  comm.peer_count = comm.peers->size;
  comm.plain = !comm.group->endpoints && !comm.peers->endpoints && !comm.routing;
  comm.self = comm.plain && !comm.inter ? comm.rank : MPI_UNDEFINED;
  if (comm.inter && (comm.group->endpoints || comm.remote_group->endpoints)) {
    // Members of both sides may live in one process.
    if (!high_context) high_context = context + 2 * std::uint64_t{(comm.low ? comm.group : comm.remote_group)->width()};
    (comm.low ? comm.outbox : comm.inbox) = high_context;
  }
  const ContextId own_side = comm.inbox;
  if (comm.rank >= 0) {
    // Not `address`: that of an intercommunicator is about the remote group.
    const Address own = comm.group->address(comm.rank, comm.inbox);
    comm.inbox += 2 * std::uint64_t{own.index};
    const Lane chosen = comm.routing ? comm.routing->lane_of(comm.rank) : no_lane;
    comm.lane = chosen != no_lane ? chosen : own.lane;
  }
  if (comm.local_comm) set_context(*comm.local_comm, own_side | local_side_space);
}

void release_comm(Comm* comm) noexcept {
  if (comm->predefined || !comm->release()) return;
  release_parts(*comm);
  pool<Comm>().destroy(comm);
}

ContextId new_context_id(std::uint32_t width) noexcept {
  const std::uint64_t count = next_context.fetch_add(width, std::memory_order_relaxed);
  if (count + width > 0x80000000u) {
    next_context.store(0x80000000u, std::memory_order_relaxed);  // stay out for good
    return 0;
  }
  return (ContextId{runtime.self} + 1) << 32 | ContextId{count} << 1;
}

int out_of_contexts() noexcept {
  return error(MPI_ERR_INTERN, "this process has led the making of two billion communicators; there are no more ids");
}

int make_predefined_comms() noexcept {
  const auto self = static_cast<std::int64_t>(runtime.self);
  if (make_predefined(comm_world, MPI_COMM_WORLD, "MPI_COMM_WORLD", world_context,
                      make_strided_group(0, 1, runtime.size), runtime.rank) &&
      make_predefined(comm_self, MPI_COMM_SELF, "MPI_COMM_SELF", self_context, make_strided_group(self, 1, 1), 0))
    return MPI_SUCCESS;
  return error(MPI_ERR_NO_MEM, "no memory for MPI_COMM_WORLD");
}

void end_predefined_comms() noexcept {
  for (Comm* comm : {&comm_self, &comm_world}) {
    comm->kind.store(Kind::freed, std::memory_order_release);
    release_parts(*comm);
  }
}

void set_comm_name(Comm& comm, const char* name) noexcept {
  std::lock_guard lock(comm.mutex);
  std::snprintf(comm.name, sizeof comm.name, "%s", name);
}

int compare_comms(const Comm& a, const Comm& b) noexcept {
  if (&a == &b) return MPI_IDENT;
  if (a.inter != b.inter) return MPI_UNEQUAL;
  const auto compare = [](const Group& x, const Group& y) {
    const int result = compare_groups(x, y);
    return result == MPI_IDENT ? MPI_CONGRUENT : result;
  };
  const int local = compare(*a.group, *b.group);
  if (!a.inter || local == MPI_UNEQUAL) return local;
  const int remote = compare(*a.remote_group, *b.remote_group);
  if (remote == MPI_UNEQUAL || local == MPI_SIMILAR) return remote == MPI_UNEQUAL ? remote : local;
  return remote;
}

}  // namespace heddle
