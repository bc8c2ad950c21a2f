// Accumulates into memory that this process can reach, under the locks of the process that owns it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/accumulate.hpp"

namespace heddle::rma {

/// What an accumulate does with each element.
struct Combination {
  OpCode op;
  BasicType basic;
};

/// `bytes` bytes of elements at `to`, which are read into `result` (nullptr: not wanted), then combined with those at `from` (nullptr with
/// MPI_NO_OP). \param to_owner see accumulate() in core/accumulate.hpp
inline void combine(sync::StripeLocks& locks, Combination what, const std::byte* from, std::byte* to, std::size_t bytes, std::byte* result,
                    std::uint64_t to_owner) noexcept {
  const std::uint64_t each = basic_info(what.basic).extent;
  locks.for_each_chunk(reinterpret_cast<std::uintptr_t>(to) + to_owner, bytes / each, each, [&](std::uint64_t first, std::uint64_t n) {
    const std::uint64_t at = first * each;
    heddle::accumulate(what.op, what.basic, from ? from + at : nullptr, to + at, static_cast<std::int64_t>(n), result ? result + at : nullptr);
  });
}

inline void compare_and_swap(sync::StripeLocks& locks, BasicType basic, const void* value, const void* compare, std::byte* to, void* result,
                             std::uint64_t to_owner) noexcept {
  sync::StripeLock& lock = locks.at(reinterpret_cast<std::uintptr_t>(to) + to_owner);
  lock.lock();
  heddle::compare_and_swap(basic, value, compare, to, result);
  lock.unlock();
}

}  // namespace heddle::rma
