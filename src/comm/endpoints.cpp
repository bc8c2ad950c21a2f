#include "comm/endpoints.hpp"

#include <memory>
#include <new>

#include "coll/internal.hpp"
#include "coll/steps.hpp"
#include "comm/create.hpp"
#include "comm/routing.hpp"
#include "core/hints.hpp"
#include "core/runtime.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

/// Numbers of this process's endpoints, never used again: equal members of groups are the same endpoint. 0 is the plain process.
std::atomic<std::uint32_t> next_id{1};

int out_of_memory(int n) noexcept { return error(MPI_ERR_NO_MEM, "no memory for a communicator of %d endpoints", n); }

/// What each member of the parent says.
struct Entry {
  std::int32_t count;
  std::uint32_t first_id;
};

/// The group of everybody's endpoints. `first`: the rank of this member's first.
Group* make_members(const Comm& parent, const Entry* entries, int total, int first) noexcept {
  std::unique_ptr<ProcessIndex[]> processes(new (std::nothrow) ProcessIndex[total]);
  std::unique_ptr<std::uint32_t[]> ids(new (std::nothrow) std::uint32_t[total]);
  if (!processes || !ids) return nullptr;
  for (int r = 0, at = 0; r < parent.size; ++r)
    for (int i = 0; i < entries[r].count; ++i, ++at) {
      processes[at] = parent.group->process(r);
      ids[at] = entries[r].first_id + static_cast<std::uint32_t>(i);
    }
  return make_endpoint_group(std::move(processes), std::move(ids), total, first);
}

}  // namespace

int create_endpoints(Comm& parent, int count, Info* info, Comm** out) noexcept {
  if (parent.inter) return error(MPI_ERR_COMM, "endpoints are made of an intracommunicator");
  Entry own{count, next_id.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_relaxed)};
  const std::unique_ptr<Entry[]> entries(new (std::nothrow) Entry[parent.size]);
  if (!entries) return out_of_memory(count);
  Datatype& bytes = coll::byte_type();
  if (const int code = coll::allgather(&own, sizeof own, bytes, entries.get(), sizeof own, bytes, parent)) return code;
  std::int64_t total = 0, first = 0;
  for (int r = 0; r < parent.size; ++r) {
    if (r == parent.rank) first = total;
    total += entries[r].count;
  }
  if (total > INT32_MAX) return error(MPI_ERR_ARG, "%lld endpoints are more than a communicator can have", static_cast<long long>(total));
  if (total == 0) return MPI_SUCCESS;

  // All members make the group, because it says how many message spaces are needed. Those without an endpoint then let it go.
  Group* members = make_members(parent, entries.get(), static_cast<int>(total), count ? static_cast<int>(first) : MPI_UNDEFINED);
  RoutingWish wish = routing_wish(info, nullptr), agreed;
  wish.lanes = 0;  // an endpoint's lane is its own
  if (members && parent.rank == 0) wish.id = new_context_id(members->width());
  const int shared = agree_routing(parent, wish, agreed);
  const ContextId id = agreed.id;
  const int failed = !members ? out_of_memory(static_cast<int>(total)) : shared ? shared : !id ? out_of_contexts() : MPI_SUCCESS;
  if (failed || count == 0) {
    if (members) release_group(members);
    return failed;
  }
  members->session = parent.session;
  int code = MPI_SUCCESS;
  int made = 0;
  for (; made < count && !code; made += !code) {
    Group* group = clone_group(*members);
    if (group) group->rank = static_cast<int>(first) + made;
    code = group ? make_child(parent, id, group, &out[made]) : out_of_memory(static_cast<int>(total));
    if (code) break;
    take_hints(*out[made], info);
    code = apply_routing(*out[made], agreed, info);
    if (code) release_comm(out[made]);
  }
  release_group(members);
  while (code && made) release_comm(out[--made]);
  return code;
}

}  // namespace heddle
