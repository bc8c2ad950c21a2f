// From a group's member to its rank.
#pragma once

#include <cstdint>
#include <memory>

namespace heddle {

struct Group;

/// An open-addressing hash table of ranks, keyed by the members they stand for: 4 bytes a slot, at most half full.
///
/// Use it where many members are looked up in one tabled group. Not for strided groups: those need arithmetic only.
/// Read-only once made, so any number of threads may look up.
class MemberIndex {
 public:
  /// nullptr when memory is out. O(size).
  static MemberIndex* make(const Group& group) noexcept;
  /// The rank of `member`, or MPI_UNDEFINED. \pre `group` is the one that the index was made of
  [[nodiscard]] int find(const Group& group, std::uint64_t member) const noexcept;

 private:
  static std::uint64_t hash(std::uint64_t member) noexcept { return member * 0x9e3779b97f4a7c15u; }

  std::unique_ptr<std::int32_t[]> slots_;  ///< rank + 1; 0: empty
  int shift_ = 0;                          ///< the hash's upper bits choose the slot
  std::uint64_t mask_ = 0;
};

}  // namespace heddle
