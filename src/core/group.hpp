// Groups: ordered sets of endpoints, stored through the most compressed map that fits.
#pragma once

#include <cstdint>
#include <memory>

#include "core/handle.hpp"
#include "vci/address.hpp"

namespace heddle {

/// The ranks of a group and who they are. Immutable once made; shared by reference count.
///
/// Storage: `stride` covers identity, offset and stride (rank r is process first + r*stride) in 16 bytes; `table` is the
/// general case. The maker functions choose. An endpoint group (threads issue) also has a table of VCIs.
struct Group : Object {
  static constexpr Kind object_kind = Kind::group;

  int size = 0;
  int rank = MPI_UNDEFINED;  ///< of this process (or endpoint) in the group
  std::int64_t first = 0, stride = 1;
  std::unique_ptr<ProcessIndex[]> table;         ///< null: first + r*stride
  std::unique_ptr<std::uint16_t[]> endpoint_vci; ///< null: the VCI follows from the context id
  std::uintptr_t predefined_value = 0;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
  [[nodiscard]] ProcessIndex process(int r) const noexcept {
    return table ? table[r] : static_cast<ProcessIndex>(first + r * stride);
  }
  [[nodiscard]] inline Address address(int r, std::uint64_t context) const noexcept;
};

extern Group group_empty;

template <>
struct HandleTraits<Group> {
  using handle = MPI_Group;
  static Group* builtin(std::uintptr_t value) noexcept {
    return value == reinterpret_cast<std::uintptr_t>(MPI_GROUP_EMPTY) ? &group_empty : nullptr;
  }
};

/// How many VCIs a process has; the context id chooses among them, so both ends agree without asking.
std::uint16_t vcis_of(ProcessIndex process) noexcept;

/// The VCI that a context id maps to in a process with `vcis` of them: neighbours in creation order get different ones.
inline std::uint16_t vci_of_context(std::uint64_t context, std::uint16_t vcis) noexcept {
  return static_cast<std::uint16_t>(((context >> 1) & 0x7fffffff) % vcis);
}

inline Address Group::address(int r, std::uint64_t context) const noexcept {
  const ProcessIndex p = process(r);
  if (endpoint_vci) [[unlikely]] return {p, endpoint_vci[r]};
  return {p, vci_of_context(context, vcis_of(p))};
}

/// Makes a group of `n` processes given in rank order, compressing the map. nullptr when memory is out.
Group* make_group(const ProcessIndex* processes, int n) noexcept;
/// Makes the group {first, first+stride, …}.
Group* make_strided_group(std::int64_t first, std::int64_t stride, int n) noexcept;
void release_group(Group* group) noexcept;

}  // namespace heddle
