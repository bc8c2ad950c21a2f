// Sleeping on a word of shared memory, and the barrier that spares the waker a fence.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace heddle::sync {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Sleeps while `word` is `expected`, at most `nanoseconds` (< 0: for ever). May return spuriously. Works across processes.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, long nanoseconds) noexcept {
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, nanoseconds < 0 ? nullptr : &limit, nullptr, 0);
}

/// The same for a sleeper that only wakers whose bits intersect `bits` shall wake. \pre `bits` is not 0, `nanoseconds` >= 0
inline void futex_wait_bits(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint32_t bits, long nanoseconds) noexcept {
  timespec until;  // FUTEX_WAIT_BITSET takes an absolute time
  clock_gettime(CLOCK_MONOTONIC, &until);
  nanoseconds += until.tv_nsec;
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &until, nullptr, bits);
}

/// Wakes up to `count` sleepers of `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}
/// Wakes up to `count` sleepers whose bits intersect `bits`. Returns how many.
inline long futex_wake_bits(std::atomic<std::uint32_t>& word, std::uint32_t bits, int count) noexcept {
  return syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, bits);
}

/// Asks the kernel to let this process take part in `barrier_everywhere`. False where it cannot.
inline bool register_barrier() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// A full memory barrier on every running thread of every registered process.
///
/// It moves the cost of the sleeper's handshake (store "I sleep", then look again; against: store data, then look whether anyone
/// sleeps) from each send to each sleep: senders need no fence between the two.
inline void barrier_everywhere() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

}  // namespace heddle::sync
