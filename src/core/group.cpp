#include "core/group.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/group_index.hpp"
#include "core/runtime.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

Group* new_group() noexcept { return pool<Group>().create(); }

int out_of_memory(int n) noexcept { return error(MPI_ERR_NO_MEM, "no memory for a group of %d ranks", n); }

/// Finds out which members share a process. nullptr when memory is out.
std::shared_ptr<const EndpointMap> map_endpoints(const ProcessIndex* processes, std::unique_ptr<std::uint32_t[]> ids, int n) noexcept {
  std::unique_ptr<EndpointMap> map(new (std::nothrow) EndpointMap);
  const std::unique_ptr<int[]> order(new (std::nothrow) int[n]);
  if (!map || !order) return nullptr;
  map->index.reset(new (std::nothrow) std::uint32_t[n]);
  if (!map->index) return nullptr;
  for (int r = 0; r < n; ++r) order[r] = r;
  std::sort(order.get(), order.get() + n,
            [=](int a, int b) { return processes[a] != processes[b] ? processes[a] < processes[b] : a < b; });
  for (int i = 0; i < n; ++i) {
    const int r = order[i];
    map->index[r] = i > 0 && processes[order[i - 1]] == processes[r] ? map->index[order[i - 1]] + 1 : 0;
    map->width = std::max(map->width, map->index[r] + 1);
  }
  map->id = std::move(ids);
  return map;
}

/// The group of `group`'s ranks rank_at(0), …, rank_at(n-1), which are valid and distinct.
template <typename RankAt>
int select(const Group& group, int n, RankAt&& rank_at, Group** out) noexcept {
  *out = &group_empty;
  if (n == 0) return MPI_SUCCESS;
  Group* made = new_group();
  if (!made) return out_of_memory(n);
  made->size = n;
  made->session = group.session;
  bool progression = !group.endpoints;
  made->first = group.process(rank_at(0));
  if (n > 1) made->stride = std::int64_t{group.process(rank_at(1))} - made->first;
  for (int i = 0; i < n; ++i) {
    const int r = rank_at(i);
    if (r == group.rank) made->rank = i;
    progression = progression && group.process(r) == made->first + i * made->stride;
  }
  if (!progression) {
    std::unique_ptr<ProcessIndex[]> table(new (std::nothrow) ProcessIndex[n]);
    std::unique_ptr<std::uint32_t[]> ids(group.endpoints ? new (std::nothrow) std::uint32_t[n] : nullptr);
    if (!table || (group.endpoints && !ids)) {
      release_group(made);
      return out_of_memory(n);
    }
    for (int i = 0; i < n; ++i) table[i] = group.process(rank_at(i));
    for (int i = 0; ids && i < n; ++i) ids[i] = group.endpoints->id[rank_at(i)];
    if (ids && !(made->endpoints = map_endpoints(table.get(), std::move(ids), n))) {
      release_group(made);
      return out_of_memory(n);
    }
    made->table = std::move(table);
  }
  *out = made;
  return MPI_SUCCESS;
}

/// One bit for each rank of a group.
class RankSet {
 public:
  explicit RankSet(int size) noexcept : words_(new (std::nothrow) std::uint64_t[size / 64 + 1]()) {}
  explicit operator bool() const noexcept { return words_ != nullptr; }
  [[nodiscard]] bool has(int r) const noexcept { return words_[r / 64] >> (r % 64) & 1; }
  /// False when `r` was there already.
  bool add(int r) noexcept {
    if (has(r)) return false;
    words_[r / 64] |= std::uint64_t{1} << (r % 64);
    return true;
  }

 private:
  std::unique_ptr<std::uint64_t[]> words_;
};

using RankList = std::unique_ptr<int[]>;

int check_rank(const Group& group, int r) noexcept {
  if (r >= 0 && r < group.size) return MPI_SUCCESS;
  return error(MPI_ERR_RANK, "rank %d is not in the group, whose ranks are 0 to %d", r, group.size - 1);
}

/// The ranks of `group` that `taken` has (or, with `wanted` false, has not), in rank order.
int select_from_set(const Group& group, const RankSet& taken, bool wanted, Group** out) noexcept {
  RankList ranks(new (std::nothrow) int[group.size + 1]);
  if (!ranks) return out_of_memory(group.size);
  int n = 0;
  for (int r = 0; r < group.size; ++r)
    if (taken.has(r) == wanted) ranks[n++] = r;
  return select(group, n, [&](int i) { return ranks[i]; }, out);
}

/// The number of ranks that a (first, last, stride) triplet names, or -1 with `*code` set.
int range_length(const Group& group, const int (&range)[3], int* code) noexcept {
  const std::int64_t first = range[0], last = range[1], stride = range[2];
  if (stride == 0) {
    *code = error(MPI_ERR_ARG, "a range of ranks (%d, %d, 0) has stride 0", range[0], range[1]);
    return -1;
  }
  if (first != last && (last > first) != (stride > 0)) return 0;
  const std::int64_t length = (last - first) / stride + 1;
  for (const std::int64_t end : {first, first + (length - 1) * stride}) {
    if (end >= 0 && end < group.size) continue;
    *code = error(MPI_ERR_RANK, "rank %lld of the range (%d, %d, %d) is not in the group, whose ranks are 0 to %d",
                  static_cast<long long>(end), range[0], range[1], range[2], group.size - 1);
    return -1;
  }
  return static_cast<int>(length);
}

/// Expands ranges to a list and checks that the ranks are valid and distinct.
int expand(const Group& group, int n, const int (*ranges)[3], RankSet& seen, RankList& ranks, int* count) noexcept {
  int code = MPI_SUCCESS;
  std::int64_t total = 0;
  for (int i = 0; i < n; ++i) {
    const int length = range_length(group, ranges[i], &code);
    if (length < 0) return code;
    total += length;
  }
  if (total > group.size) total = group.size + std::int64_t{1};  // a duplicate is certain; it is found below
  ranks.reset(new (std::nothrow) int[total + 1]);
  if (!ranks || !seen) return out_of_memory(group.size);
  *count = 0;
  for (int i = 0; i < n; ++i) {
    const int length = range_length(group, ranges[i], &code);
    for (int k = 0; k < length; ++k) {
      const int r = ranges[i][0] + k * ranges[i][2];
      if (!seen.add(r)) return error(MPI_ERR_RANK, "rank %d is named twice", r);
      ranks[(*count)++] = r;
    }
  }
  return MPI_SUCCESS;
}

/// The ranks of `a` whose members `b` has (or, with `wanted` false, has not).
int filter(const Group& a, const Group& b, bool wanted, Group** out) noexcept {
  RankSet taken(a.size);
  if (!taken) return out_of_memory(a.size);
  for (int r = 0; r < a.size; ++r)
    if (rank_of_member(b, a.member(r)) != MPI_UNDEFINED) taken.add(r);
  return select_from_set(a, taken, wanted, out);
}

}  // namespace

Group group_empty;

namespace {
[[maybe_unused]] const bool group_empty_ready = [] {
  group_empty.kind.store(Kind::group, std::memory_order_relaxed);
  group_empty.predefined_value = reinterpret_cast<std::uintptr_t>(MPI_GROUP_EMPTY);
  return true;
}();
}  // namespace

Group::~Group() { delete by_member.load(std::memory_order_acquire); }

Group* make_strided_group(std::int64_t first, std::int64_t stride, int n) noexcept {
  if (n == 0) return &group_empty;
  Group* made = new_group();
  if (!made) return nullptr;
  made->size = n;
  made->first = first;
  made->stride = stride;
  made->rank = rank_of_process(*made, runtime.self);
  return made;
}

Group* make_group(const ProcessIndex* processes, int n, int rank) noexcept {
  if (n == 0) return &group_empty;
  const std::int64_t first = processes[0], stride = n > 1 ? processes[1] - first : 1;
  bool progression = true;
  for (int i = 0; i < n && progression; ++i) progression = processes[i] == first + i * stride;
  Group* made = new_group();
  if (!made) return nullptr;
  made->size = n;
  if (progression) {
    made->first = first;
    made->stride = stride;
  } else {
    std::unique_ptr<ProcessIndex[]> table(new (std::nothrow) ProcessIndex[n]);
    if (!table) {
      release_group(made);
      return nullptr;
    }
    std::memcpy(table.get(), processes, sizeof(ProcessIndex) * static_cast<std::size_t>(n));
    made->table = std::move(table);
  }
  made->rank = rank == find_self ? rank_of_process(*made, runtime.self) : rank;
  return made;
}

Group* make_endpoint_group(std::unique_ptr<ProcessIndex[]> processes, std::unique_ptr<std::uint32_t[]> ids, int n,
                           int rank) noexcept {
  if (n == 0) return &group_empty;
  Group* made = new_group();
  if (!made) return nullptr;
  made->size = n;
  made->rank = rank;
  made->endpoints = map_endpoints(processes.get(), std::move(ids), n);
  made->table = std::move(processes);
  if (made->endpoints) return made;
  release_group(made);
  return nullptr;
}

Group* retain_group(Group* group) noexcept {
  if (!group->predefined_value) group->retain();
  return group;
}

void release_group(Group* group) noexcept {
  if (!group->predefined_value && group->release()) pool<Group>().destroy(group);
}

Group* clone_group(const Group& group) noexcept {
  if (group.size == 0) return &group_empty;
  Group* made = new_group();
  if (!made) return nullptr;
  made->size = group.size;
  made->rank = group.rank;
  made->session = group.session;
  made->first = group.first;
  made->stride = group.stride;
  made->table = group.table;
  made->endpoints = group.endpoints;
  return made;
}

int rank_of_member(const Group& group, std::uint64_t member) noexcept {
  if (group.strided()) {
    if (group.size == 0 || member & 0xffffffff) return MPI_UNDEFINED;  // an endpoint is no member of a plain group
    const std::int64_t offset = static_cast<std::int64_t>(member >> 32) - group.first;
    if (group.size == 1) return offset == 0 ? 0 : MPI_UNDEFINED;
    const std::int64_t r = offset / group.stride;
    return r >= 0 && r < group.size && r * group.stride == offset ? static_cast<int>(r) : MPI_UNDEFINED;
  }
  constexpr int worth_an_index = 32;
  MemberIndex* index = group.by_member.load(std::memory_order_acquire);  // pairs with the exchange below
  if (!index && group.size >= worth_an_index) {
    if (MemberIndex* made = MemberIndex::make(group)) {
      if (group.by_member.compare_exchange_strong(index, made, std::memory_order_acq_rel, std::memory_order_acquire))
        index = made;
      else
        delete made;  // another thread was faster; `index` is its
    }
  }
  if (index) return index->find(group, member);
  for (int r = 0; r < group.size; ++r)
    if (group.member(r) == member) return r;
  return MPI_UNDEFINED;
}

bool same_members(const Group& a, const Group& b) noexcept {
  if (a.size != b.size) return false;
  if (a.strided() && b.strided()) {
    if (a.size == 0) return true;
    return a.first == b.first && (a.size == 1 || a.stride == b.stride);
  }
  if (a.table == b.table && a.endpoints == b.endpoints && a.table) return true;
  for (int r = 0; r < a.size; ++r)
    if (a.member(r) != b.member(r)) return false;
  return true;
}

int compare_groups(const Group& a, const Group& b) noexcept {
  if (same_members(a, b)) return MPI_IDENT;
  if (a.size != b.size) return MPI_UNEQUAL;
  for (int r = 0; r < a.size; ++r)
    if (rank_of_member(b, a.member(r)) == MPI_UNDEFINED) return MPI_UNEQUAL;
  return MPI_SIMILAR;
}

int group_union(const Group& a, const Group& b, Group** out) noexcept {
  Group* rest = nullptr;  // the members of b that a has not, in b's order
  if (const int code = group_difference(b, a, &rest)) return code;
  const Group& g = *rest;
  const int n = a.size + g.size;
  if (n < a.size) {
    release_group(rest);
    return error(MPI_ERR_GROUP, "the union of groups of %d and %d ranks is larger than a group can be", a.size, b.size);
  }
  if (g.size == 0 || a.size == 0) {
    *out = clone_group(g.size == 0 ? a : g);
    release_group(rest);
    return *out ? MPI_SUCCESS : out_of_memory(n);
  }
  const bool endpoints = a.endpoints || g.endpoints;
  std::unique_ptr<ProcessIndex[]> table(new (std::nothrow) ProcessIndex[n]);
  std::unique_ptr<std::uint32_t[]> ids(endpoints ? new (std::nothrow) std::uint32_t[n] : nullptr);
  if (!table || (endpoints && !ids)) {
    release_group(rest);
    return out_of_memory(n);
  }
  for (int i = 0; i < n; ++i) table[i] = i < a.size ? a.process(i) : g.process(i - a.size);
  for (int i = 0; endpoints && i < n; ++i) {
    const Group& from = i < a.size ? a : g;
    ids[i] = from.endpoints ? from.endpoints->id[i < a.size ? i : i - a.size] : 0;
  }
  const int rank = a.rank != MPI_UNDEFINED ? a.rank : g.rank != MPI_UNDEFINED ? a.size + g.rank : MPI_UNDEFINED;
  *out = endpoints ? make_endpoint_group(std::move(table), std::move(ids), n, rank) : make_group(table.get(), n, rank);
  release_group(rest);
  if (!*out) return out_of_memory(n);
  (*out)->session = a.session ? a.session : b.session;
  return MPI_SUCCESS;
}

int group_intersection(const Group& a, const Group& b, Group** out) noexcept {
  if (same_members(a, b)) return (*out = clone_group(a)) ? MPI_SUCCESS : out_of_memory(a.size);
  return filter(a, b, true, out);
}

int group_difference(const Group& a, const Group& b, Group** out) noexcept {
  if (same_members(a, b)) return *out = &group_empty, MPI_SUCCESS;
  return filter(a, b, false, out);
}

int group_incl(const Group& group, int n, const int* ranks, Group** out) noexcept {
  if (n < 0) return error(MPI_ERR_ARG, "the number of ranks, %d, is negative", n);
  bool progression = true;
  for (int i = 0; i < n; ++i) {
    if (const int code = check_rank(group, ranks[i])) return code;
    progression = progression && (i < 2 || ranks[i] - ranks[i - 1] == ranks[1] - ranks[0]);
  }
  if (!progression || (n > 1 && ranks[0] == ranks[1])) {  // else they are distinct
    RankSet seen(group.size);
    if (!seen) return out_of_memory(group.size);
    for (int i = 0; i < n; ++i)
      if (!seen.add(ranks[i])) return error(MPI_ERR_RANK, "rank %d is named twice", ranks[i]);
  }
  return select(group, n, [=](int i) { return ranks[i]; }, out);
}

int group_excl(const Group& group, int n, const int* ranks, Group** out) noexcept {
  if (n < 0) return error(MPI_ERR_ARG, "the number of ranks, %d, is negative", n);
  RankSet left_out(group.size);
  if (!left_out) return out_of_memory(group.size);
  for (int i = 0; i < n; ++i) {
    if (const int code = check_rank(group, ranks[i])) return code;
    if (!left_out.add(ranks[i])) return error(MPI_ERR_RANK, "rank %d is named twice", ranks[i]);
  }
  return select_from_set(group, left_out, false, out);
}

int group_range_incl(const Group& group, int n, const int (*ranges)[3], Group** out) noexcept {
  if (n < 0) return error(MPI_ERR_ARG, "the number of ranges, %d, is negative", n);
  if (n == 1) {  // a stride of a strided group: no list of a million ranks
    int code = MPI_SUCCESS;
    const int length = range_length(group, ranges[0], &code);
    if (length < 0) return code;
    return select(group, length, [=](int i) { return ranges[0][0] + i * ranges[0][2]; }, out);
  }
  RankSet seen(group.size);
  RankList ranks;
  int count = 0;
  if (const int code = expand(group, n, ranges, seen, ranks, &count)) return code;
  return select(group, count, [&](int i) { return ranks[i]; }, out);
}

int group_range_excl(const Group& group, int n, const int (*ranges)[3], Group** out) noexcept {
  if (n < 0) return error(MPI_ERR_ARG, "the number of ranges, %d, is negative", n);
  RankSet left_out(group.size);
  RankList ranks;
  int count = 0;
  if (const int code = expand(group, n, ranges, left_out, ranks, &count)) return code;
  return select_from_set(group, left_out, false, out);
}

int translate_ranks(const Group& from, int n, const int* ranks, const Group& to, int* out) noexcept {
  if (n < 0) return error(MPI_ERR_ARG, "the number of ranks, %d, is negative", n);
  const bool same = same_members(from, to);
  for (int i = 0; i < n; ++i) {
    if (ranks[i] == MPI_PROC_NULL) {
      out[i] = MPI_PROC_NULL;
      continue;
    }
    if (const int code = check_rank(from, ranks[i])) return code;
    out[i] = same ? ranks[i] : rank_of_member(to, from.member(ranks[i]));
  }
  return MPI_SUCCESS;
}

}  // namespace heddle
