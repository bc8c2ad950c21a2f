#include "core/group_index.hpp"

#include <new>

#include "core/group.hpp"

namespace heddle {

MemberIndex* MemberIndex::make(const Group& group) noexcept {
  int bits = 3;
  while ((std::int64_t{1} << bits) < 2 * std::int64_t{group.size}) ++bits;
  std::unique_ptr<MemberIndex> index(new (std::nothrow) MemberIndex);
  if (!index) return nullptr;
  index->slots_.reset(new (std::nothrow) std::int32_t[std::size_t{1} << bits]());
  if (!index->slots_) return nullptr;
  index->shift_ = 64 - bits;
  index->mask_ = (std::uint64_t{1} << bits) - 1;
  for (int r = 0; r < group.size; ++r) {
    std::uint64_t slot = hash(group.member(r)) >> index->shift_;
    while (index->slots_[slot]) slot = (slot + 1) & index->mask_;
    index->slots_[slot] = r + 1;
  }
  return index.release();
}

int MemberIndex::find(const Group& group, std::uint64_t member) const noexcept {
  for (std::uint64_t slot = hash(member) >> shift_; slots_[slot]; slot = (slot + 1) & mask_)
    if (group.member(slots_[slot] - 1) == member) return slots_[slot] - 1;
  return MPI_UNDEFINED;
}

}  // namespace heddle
