// The lock of a VCI: a few words of code, because it is taken for tens of nanoseconds and mostly by one thread.
#pragma once

#include <sched.h>

#include <atomic>

#include "sync/cpu.hpp"

namespace heddle::sync {

/// Test-and-test-and-set with growing pauses, then `sched_yield`.
///
/// Use it around sections without system calls, where waiting threads are few and can do something else (`try_lock`).
/// Not where sections are long or waiters many: use std::mutex there.
/// Cost: lock 1 read-modify-write, unlock 1 release store. Fairness: none by itself; progress uses try_lock, so that nobody
/// queues for a lock whose holder does the work anyway.
class Lock {
 public:
  [[nodiscard]] bool try_lock() noexcept {
    // Acquire pairs with unlock's release: the next holder sees the whole section before.
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]] lock_slowly();
  }
  /// The same for whoever may find meanwhile that it need not: false when `needless()` is true, and the lock is not taken.
  template <typename Needless>
  [[nodiscard]] bool lock_unless(Needless&& needless) noexcept {
    // If the holder shares our core, only a yield lets it finish, so spinning is short.
    for (int pauses = 1;; pauses = pauses < 64 ? pauses * 2 : pauses) {
      for (int i = 0; i < pauses; ++i) relax();
      if (try_lock()) return true;
      if (needless()) return false;
      if (pauses >= 64) sched_yield();
    }
  }

  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void lock_slowly() noexcept {
    while (!lock_unless([] { return false; })) {
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace heddle::sync
