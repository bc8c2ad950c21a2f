// Locks for the accumulates of a process's memory: who changes an element holds the lock of the stripe that the element begins in.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sync/cpu.hpp"

namespace heddle::sync {

/// One lock on a cache line of its own, for threads of all processes that map it.
///
/// Use it around short sections without system calls, where the holder may nevertheless be preempted or stopped for long.
/// Cost: lock 1 read-modify-write, unlock 1 release store. A waiter spins some microseconds, then yields, then sleeps for growing times:
/// behind a stopped holder it uses well below 1 % of a core, and goes on at most `longest_sleep` after the release. Fairness: none.
/// A lock of zero bytes is free, so zeroed shared memory needs no construction.
class alignas(cache_line) StripeLock {
 public:
  static constexpr long longest_sleep = 8'000'000;  ///< nanoseconds

  [[nodiscard]] bool try_lock() noexcept {
    // Acquire pairs with unlock's release: the next holder sees the whole section before. No look beforehand: it would fetch the line twice
    // where the lock is free, which is the rule.
    return held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void lock() noexcept {
    if (!try_lock()) [[unlikely]] lock_slowly();
  }
  void unlock() noexcept { held_.store(0, std::memory_order_release); }

 private:
  /// Takes nothing from the holder: it reads until the lock looks free.
  [[nodiscard]] bool try_again() noexcept { return held_.load(std::memory_order_relaxed) == 0 && try_lock(); }

  [[gnu::noinline]] void lock_slowly() noexcept {
    for (int pauses = 1; pauses <= 64; pauses *= 2) {
      for (int i = 0; i < pauses; ++i) relax();
      if (try_again()) return;
    }
    // The holder lost its core, or there are many waiters: a yield gives one of them ours.
    for (int i = 0; i < 64; ++i) {
      sched_yield();
      if (try_again()) return;
    }
    for (long sleep = longest_sleep >> 9;; sleep = sleep < longest_sleep ? sleep * 2 : sleep) {
      const timespec time{0, sleep};
      nanosleep(&time, nullptr);
      if (try_again()) return;
    }
  }

  std::atomic<std::uint32_t> held_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "works across processes");

/// The locks of one process's memory, in memory that all who accumulate there have mapped. Holds no pointers.
///
/// Memory is cut into stripes of `stripe_bytes` addresses *of the process that owns it*: all who touch it use the owner's addresses, wherever
/// they have mapped it themselves. Stripes share `locks` locks by a hash, neighbours having different ones.
///
/// Invariant: an element is read and written under the lock of the stripe that its *first byte* lies in, even where its end lies in the
/// next stripe. That is exclusive because accumulates are atomic only towards accumulates of the same basic type at the same place
/// (MPI-5.0 §12.7.1), which have the same first byte and so the same lock. So no thread ever holds two of them, and none can deadlock.
class StripeLocks {
 public:
  static constexpr std::uint64_t stripe_bytes = 4096;
  static constexpr std::size_t locks = 128;

  [[nodiscard]] static constexpr std::uint64_t stripe_of(std::uint64_t address) noexcept { return address / stripe_bytes; }
  /// Multiplication by the golden ratio spreads neighbours as well as stripes at any distance.
  [[nodiscard]] static constexpr std::size_t index_of(std::uint64_t address) noexcept {
    static_assert(locks == std::size_t{1} << 7);
    return static_cast<std::size_t>(stripe_of(address) * 0x9e3779b97f4a7c15 >> (64 - 7));
  }
  /// Bytes from `address` to the end of its stripe: 1 … stripe_bytes.
  [[nodiscard]] static constexpr std::uint64_t left_in_stripe(std::uint64_t address) noexcept {
    return stripe_bytes - address % stripe_bytes;
  }
  /// How many of `elements` elements, `size` bytes apart from `address` on, begin in the first one's stripe. \pre elements > 0
  [[nodiscard]] static constexpr std::uint64_t elements_here(std::uint64_t address, std::uint64_t elements, std::uint64_t size) noexcept {
    const std::uint64_t left = left_in_stripe(address);
    return elements == 1 || elements * size <= left ? elements : (left + size - 1) / size;
  }

  /// The lock of the stripe of an address of the owner.
  [[nodiscard]] StripeLock& at(std::uint64_t address) noexcept { return locks_[index_of(address)]; }

  /// Calls f(first, n) under the lock of each stripe for the elements [first, first+n) that begin there: `elements` of them, `size` bytes
  /// apart from `address` on. One read-modify-write for a single element.
  template <typename F>
  void for_each_chunk(std::uint64_t address, std::uint64_t elements, std::uint64_t size, F&& f) noexcept {
    for (std::uint64_t first = 0; first < elements;) {
      const std::uint64_t n = elements_here(address, elements - first, size);
      StripeLock& lock = at(address);
      lock.lock();
      f(first, n);
      lock.unlock();
      first += n;
      address += n * size;
    }
  }

 private:
  StripeLock locks_[locks];
};

/// The lock that a walk through scattered elements holds: it changes only with the stripe. Holds one lock at a time.
class HeldStripe {
 public:
  explicit HeldStripe(StripeLocks& locks) noexcept : locks_(locks) {}
  HeldStripe(const HeldStripe&) = delete;
  HeldStripe& operator=(const HeldStripe&) = delete;
  ~HeldStripe() {
    if (held_) held_->unlock();
  }
  /// Makes sure of the lock for elements that begin at an address.
  void move_to(std::uint64_t address) noexcept {
    StripeLock& wanted = locks_.at(address);
    if (held_ == &wanted) return;
    if (held_) held_->unlock();
    wanted.lock();
    held_ = &wanted;
  }

 private:
  StripeLocks& locks_;
  StripeLock* held_ = nullptr;
};

}  // namespace heddle::sync
