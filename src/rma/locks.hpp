// The locks behind MPI_Win_lock and MPI_Win_lock_all: words that the processes of a node share, and change for those of other nodes.
// \see MPI-5.0 §12.5.3, paper 003 §3.2
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle::rma {

/// Two groups of holders that exclude each other. Of a rank's lock: those who hold it shared, and the one who holds it alone. Of the window's
/// (in the exposure of rank 0): those who hold every rank shared, and those who hold, or are about to take, some rank alone.
///
/// Free locks are taken by one atomic operation. Who finds one taken, or others waiting, draws a ticket and waits for its turn, then for the
/// holders of the other group to leave: first come, first served, so nobody starves. Zeroed memory is a free lock. Works across processes.
struct alignas(64) WindowLock {
  std::atomic<std::uint64_t> holders;   ///< of the first group in the low half, of the second in the high half
  std::atomic<std::uint32_t> next;      ///< ticket to be drawn
  std::atomic<std::uint32_t> serving;   ///< ticket whose turn it is
  std::atomic<std::uint32_t> asked_for;  ///< how many wait on other nodes: whoever lets go, or hands on its turn, tells the owner's process
};

enum class LockKind : std::uint8_t { shared, alone, all, some_alone };

using Ticket = std::uint32_t;

namespace detail {
inline constexpr std::uint64_t one_of_first = 1, one_of_second = std::uint64_t{1} << 32, first_half = one_of_second - 1;

inline bool is_first(LockKind kind) noexcept { return kind == LockKind::shared || kind == LockKind::all; }

inline bool enter(WindowLock& lock, LockKind kind) noexcept {
  if (kind == LockKind::alone) {
    std::uint64_t nobody = 0;
    return lock.holders.compare_exchange_strong(nobody, one_of_second, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  const std::uint64_t mine = is_first(kind) ? one_of_first : one_of_second, others = is_first(kind) ? ~first_half : first_half;
  if (!(lock.holders.fetch_add(mine, std::memory_order_acq_rel) & others)) return true;
  lock.holders.fetch_sub(mine, std::memory_order_acq_rel);
  return false;
}
}  // namespace detail

/// Takes the lock if nobody waits and nobody has it who excludes this one. Acquire.
inline bool try_lock(WindowLock& lock, LockKind kind) noexcept {
  // Relaxed: who comes at the same moment as another may go before it.
  return lock.next.load(std::memory_order_relaxed) == lock.serving.load(std::memory_order_relaxed) && detail::enter(lock, kind);
}

inline Ticket draw_ticket(WindowLock& lock) noexcept { return lock.next.fetch_add(1, std::memory_order_relaxed); }

/// Takes the lock if it is this ticket's turn and nobody has it who excludes this one. True once; then the ticket is used up. Acquire.
inline bool try_lock(WindowLock& lock, LockKind kind, Ticket ticket) noexcept {
  // Look first: a failed attempt to enter would keep others from leaving.
  if (lock.serving.load(std::memory_order_acquire) != ticket) return false;
  const std::uint64_t now = lock.holders.load(std::memory_order_relaxed);
  if (kind == LockKind::alone ? now : detail::is_first(kind) ? now >> 32 : now & detail::first_half) return false;
  if (!detail::enter(lock, kind)) return false;
  lock.serving.store(ticket + 1, std::memory_order_release);  // pairs with the next one's look
  return true;
}

/// Release.
inline void unlock(WindowLock& lock, LockKind kind) noexcept {
  lock.holders.fetch_sub(detail::is_first(kind) ? detail::one_of_first : detail::one_of_second, std::memory_order_acq_rel);
}

}  // namespace heddle::rma
