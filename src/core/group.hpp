// Groups: ordered sets of endpoints, stored through the most compressed map that fits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sys/handle.hpp"
#include "transport/address.hpp"

namespace heddle {

struct Session;
class MemberIndex;  // core/group_index.hpp: from member to rank

/// What a group with endpoints knows beside the processes. Shared by the groups that have the same members; never changes.
struct EndpointMap {
  std::unique_ptr<std::uint32_t[]> id;     ///< the endpoint's number in its process; 0: a plain process
  std::unique_ptr<std::uint32_t[]> index;  ///< how many members of lower rank live in the same process
  std::uint32_t width = 1;                 ///< the largest number of members in one process
};

/// The ranks of a group and who they are. Immutable once made; shared by reference count inside the library.
///
/// Storage: `first`/`stride` covers identity, offset and stride (rank r is process first + r*stride) in 16 bytes; `table` is
/// the general case. The maker functions choose. A group with endpoints is always tabled and has a map of them. A user's handle is always an
/// object of its own (`clone_group` shares the tables), so that a handle freed twice is detected and never pulls the group
/// from under a communicator.
struct Group : Object {
  static constexpr Kind object_kind = Kind::group;

  int size = 0;
  int rank = MPI_UNDEFINED;  ///< of this process (or endpoint) in the group
  std::int64_t first = 0, stride = 1;
  std::shared_ptr<const ProcessIndex[]> table;         ///< null: first + r*stride
  std::shared_ptr<const EndpointMap> endpoints;        ///< null: all members are plain processes
  const Session* session = nullptr;  ///< the one whose process set it came from, also by way of other groups; else nullptr
  std::uintptr_t predefined_value = 0;
  mutable std::atomic<MemberIndex*> by_member{nullptr}; ///< made by the first look-up in a tabled group; owned

  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
  [[nodiscard]] ProcessIndex process(int r) const noexcept {
    return table ? table[r] : static_cast<ProcessIndex>(first + r * stride);
  }
  [[nodiscard]] inline Address address(int r, std::uint64_t context) const noexcept;

  /// Who rank `r` is, as one number: the process and, for an endpoint, its number there. Equal for equal members only.
  [[nodiscard]] std::uint64_t member(int r) const noexcept {
    return std::uint64_t{process(r)} << 32 | (endpoints ? endpoints->id[r] : 0);
  }
  [[nodiscard]] bool strided() const noexcept { return !table; }
  /// Message spaces that a communicator of this group needs in each process.
  [[nodiscard]] std::uint32_t width() const noexcept { return endpoints ? endpoints->width : 1; }
};

extern Group group_empty;

template <>
struct HandleTraits<Group> {
  using handle = MPI_Group;
  static Group* builtin(std::uintptr_t value) noexcept {
    return value == reinterpret_cast<std::uintptr_t>(MPI_GROUP_EMPTY) ? &group_empty : nullptr;
  }
};

/// The lane that a context id maps to: communicators made one after another get different ones. Each process spreads the
/// lanes over the VCIs it has (`lane % vcis`), so both ends agree without asking and may have different numbers of VCIs.
inline Lane lane_of_context(std::uint64_t context) noexcept { return lane_at(static_cast<unsigned>((context >> 1) % lanes)); }

inline Address Group::address(int r, std::uint64_t context) const noexcept {
  const ProcessIndex p = process(r);
  if (endpoints) [[unlikely]] {
    const std::uint32_t index = endpoints->index[r];
    return {p, lane_of_context(context + 2 * std::uint64_t{index}), index};
  }
  return {p, lane_of_context(context), 0};
}

/// Makes a group of `n` processes given in rank order, compressing the map; `rank` is that of this process, looked up
/// when it is `find_self`. `group_empty` for n = 0, nullptr when memory is out.
inline constexpr int find_self = -1;
Group* make_group(const ProcessIndex* processes, int n, int rank = find_self) noexcept;
/// The same with endpoints: `ids` are their numbers in their processes, 0 for a plain process. `rank` may be MPI_UNDEFINED.
Group* make_endpoint_group(std::unique_ptr<ProcessIndex[]> processes, std::unique_ptr<std::uint32_t[]> ids, int n,
                           int rank) noexcept;
/// Makes the group {first, first+stride, …}.
Group* make_strided_group(std::int64_t first, std::int64_t stride, int n) noexcept;
/// Drops a reference (predefined: nothing happens).
void release_group(Group* group) noexcept;
/// One more reference to `group` (predefined: nothing happens). Returns it.
Group* retain_group(Group* group) noexcept;
/// A new object with the same members: what a user's handle refers to. nullptr when memory is out.
Group* clone_group(const Group& group) noexcept;

/// The rank of `member` in `group`, or MPI_UNDEFINED. O(1) after the first look-up in a tabled group. Thread-safe.
int rank_of_member(const Group& group, std::uint64_t member) noexcept;
/// The same for a process of a group without endpoints.
inline int rank_of_process(const Group& group, ProcessIndex process) noexcept {
  return rank_of_member(group, std::uint64_t{process} << 32);
}

/// True when both have the same members in the same order; constant time for strided and shared maps.
bool same_members(const Group& a, const Group& b) noexcept;

/// The set operations of MPI-5.0 §7.3. Cost O(n) time; strided results of strided groups stay strided. Results are new
/// objects, of the same session, or `group_empty`. Return an error code.
int compare_groups(const Group& a, const Group& b) noexcept;  ///< MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL
int group_union(const Group& a, const Group& b, Group** out) noexcept;
int group_intersection(const Group& a, const Group& b, Group** out) noexcept;
int group_difference(const Group& a, const Group& b, Group** out) noexcept;
int group_incl(const Group& group, int n, const int* ranks, Group** out) noexcept;
int group_excl(const Group& group, int n, const int* ranks, Group** out) noexcept;
int group_range_incl(const Group& group, int n, const int (*ranges)[3], Group** out) noexcept;
int group_range_excl(const Group& group, int n, const int (*ranges)[3], Group** out) noexcept;
int translate_ranks(const Group& from, int n, const int* ranks, const Group& to, int* out) noexcept;

}  // namespace heddle
