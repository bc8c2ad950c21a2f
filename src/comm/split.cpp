// MPI_Comm_split: one allgather of {color, key, id}, then every process finds its own group alone.
#include "comm/split.hpp"

#include <algorithm>
#include <new>

#include "coll/internal.hpp"
#include "coll/steps.hpp"
#include "comm/create.hpp"
#include "comm/inter_exchange.hpp"
#include "sys/error.hpp"

namespace heddle {

int color_group(const Group& from, const SplitEntry* entries, int color, Group** group, int* leader) noexcept {
  *group = nullptr;
  *leader = MPI_UNDEFINED;
  int n = 0;
  for (int r = 0; r < from.size; ++r) n += entries[r].color == color;
  if (n == 0) return MPI_SUCCESS;
  const std::unique_ptr<int[]> ranks(new (std::nothrow) int[n]);
  if (!ranks) return error(MPI_ERR_NO_MEM, "no memory for a group of %d ranks", n);
  n = 0;
  for (int r = 0; r < from.size; ++r)
    if (entries[r].color == color) ranks[n++] = r;
  // By key, then by old rank; most programs give keys that are in order already.
  const auto less = [=](int a, int b) { return entries[a].key != entries[b].key ? entries[a].key < entries[b].key : a < b; };
  if (!std::is_sorted(ranks.get(), ranks.get() + n, less)) std::sort(ranks.get(), ranks.get() + n, less);
  *leader = ranks[0];
  return group_incl(from, n, ranks.get(), group);
}

int gather_split_entries(Comm& comm, int color, int key, ContextId offer, SplitTable& table) noexcept {
  table.reset(new (std::nothrow) SplitEntry[comm.size]);
  if (!table) return error(MPI_ERR_NO_MEM, "no memory for the colors and keys of %d ranks", comm.size);
  const SplitEntry mine{color, key, offer};
  return coll::allgather(&mine, sizeof mine, coll::byte_type(), table.get(), sizeof mine, coll::byte_type(), comm);
}

int comm_split(Comm& parent, int color, int key, Comm** out) noexcept {
  *out = nullptr;
  if (color < 0 && color != MPI_UNDEFINED)
    return error(MPI_ERR_ARG, "color is %d; it must be MPI_UNDEFINED or not negative", color);
  return split_by_color(parent, color, key, out);
}

int split_by_color(Comm& parent, int color, int key, Comm** out) noexcept {
  *out = nullptr;
  if (parent.inter) return inter_split(parent, color, key, out);
  ContextOffer offer(parent.width());
  SplitTable table;
  if (const int code = gather_split_entries(parent, color, key, offer.id(), table)) return code;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  Group* group = nullptr;
  int leader = 0;
  if (const int code = color_group(*parent.group, table.get(), color, &group, &leader)) return code;
  const ContextId id = table[leader].offer;
  if (leader == parent.rank) offer.taken();
  if (!id) {
    release_group(group);
    return out_of_contexts();
  }
  return make_child(parent, id, group, out);
}

}  // namespace heddle
