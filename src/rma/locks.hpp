// The words behind MPI_Win_lock and MPI_Win_lock_all. \see MPI-5.0 §12.5.3, paper 003 §3.2
#pragma once

#include "rma/window.hpp"

namespace heddle::rma {

/// What is asked of a word. Those of a rank: `shared`, `alone`. Those of the window (in the exposure of rank 0): `all`, by who holds every rank
/// shared, and `some_alone`, by who holds, or is about to take, some rank alone: the two exclude each other, each for many at a time.
enum class LockKind : std::uint8_t { shared, alone, all, some_alone };

namespace detail {
inline constexpr std::uint64_t one_shared = 1, one_alone = std::uint64_t{1} << 32;
}

/// Takes the lock if nobody has one that it does not go with. One atomic operation if so, two if not. Acquire.
inline bool try_lock(Exposure& exposure, LockKind kind) noexcept {
  const bool of_rank = kind == LockKind::shared || kind == LockKind::alone;
  LockWord& word = of_rank ? exposure.lock : exposure.all;
  if (kind == LockKind::alone) {
    std::uint64_t nobody = 0;
    return word.compare_exchange_strong(nobody, detail::one_alone, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  const bool low = kind != LockKind::some_alone;
  const std::uint64_t mine = low ? detail::one_shared : detail::one_alone;
  const std::uint64_t before = word.fetch_add(mine, std::memory_order_acq_rel);
  if (low ? !(before >> 32) : !(before & 0xffff'ffff)) return true;
  word.fetch_sub(mine, std::memory_order_acq_rel);
  return false;
}

/// Release.
inline void unlock(Exposure& exposure, LockKind kind) noexcept {
  const bool of_rank = kind == LockKind::shared || kind == LockKind::alone;
  const bool low = kind == LockKind::shared || kind == LockKind::all;
  (of_rank ? exposure.lock : exposure.all).fetch_sub(low ? detail::one_shared : detail::one_alone, std::memory_order_acq_rel);
}

}  // namespace heddle::rma
