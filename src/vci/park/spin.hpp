// What a waiting thread does when it found nothing to do: look again, offer its core to others, or go to sleep.
//
// Four observations decide, each a type of its own: whether the process is crowded (Crowding), whether other programs use this
// core (Contention), whether delaying the yield pays (YieldDelay), and how long the thread has looked already (Spin).
// All but Crowding belong to one thread. None reads a clock: times are handed in, in nanoseconds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "vci/park/yield_delay.hpp"

namespace heddle::park {

/// Whether there are more threads that wait than cores to wait on. Observed, never asked of the user.
///
/// Shared by all threads; everything is relaxed, since nothing else is read through it.
class Crowding {
 public:
  /// \param oversubscribed the node has more processes of the job than cores \param own_cores that this process can count on
  void start(bool oversubscribed, int own_cores) noexcept {
    node_crowded_ = oversubscribed;
    own_cores_ = own_cores;
    add_waiters(0);
  }
  /// `n` more threads of this process wait now and then; negative: fewer.
  void add_waiters(int n) noexcept {
    waiters_.fetch_add(n, std::memory_order_relaxed);
    idle_looks_.store(scarce() ? 8 : 64, std::memory_order_relaxed);
  }
  [[nodiscard]] bool scarce() const noexcept {
    return node_crowded_ || waiters_.load(std::memory_order_relaxed) > own_cores_;
  }
  /// Idle looks at one VCI before a waiter looks at all of them and offers its core: few where cores are scarce.
  [[nodiscard]] unsigned idle_looks() const noexcept { return idle_looks_.load(std::memory_order_relaxed); }

 private:
  std::atomic<unsigned> idle_looks_{64};
  std::atomic<int> waiters_{0};
  bool node_crowded_ = false;
  int own_cores_ = 1;
};

/// Whether other programs have used a thread's core lately: between two looks of an idle thread more time has passed than looks take.
class Contention {
 public:
  static constexpr std::int64_t lost_core = 500'000;     ///< between two looks: somebody else had the core
  static constexpr std::int64_t remembered = 100'000'000;  ///< for how long the core then counts as shared

  /// Two looks with no work in between were `between` apart. (A piece of a large message takes long as well.)
  void note(std::int64_t now, std::int64_t between) noexcept {
    if (between > lost_core) until_ = now + remembered;
  }
  [[nodiscard]] bool shared(std::int64_t now) const noexcept { return now < until_; }

 private:
  std::int64_t until_ = 0;
};

/// What a thread remembers from one wait to the next.
struct Habits {
  YieldDelay yield_delay;
  Contention contention;
};

/// Nanoseconds of the interval between two looks that count as the thread's own: the rest, beyond what a few looks take (they are
/// system calls over TCP), others had the core.
inline std::int64_t own_time(std::int64_t between, bool scarce) noexcept {
  return std::min<std::int64_t>(between, scarce ? 1'000 : 50'000);
}

/// Nanoseconds to look before going to sleep. A wake-up costs 50 µs and more, so a thread with a core of its own looks for a hundred times
/// that: ranks that arrive some milliseconds apart lose nothing. On a shared core looking delays everybody.
/// \param configured by the user; negative: not
inline std::int64_t spin_limit(std::int64_t configured, bool own_core) noexcept {
  return configured >= 0 ? configured : own_core ? 5'000'000 : 200'000;
}

enum class Next : std::uint8_t { look, yield, park };

/// The looking of one wait: from its first look that found nothing to its end.
class Spin {
 public:
  /// The last look found work: looking begins anew.
  void found_work() noexcept {
    spent_ = 0;
    worked_ = true;
  }
  /// The last step did something, but the wait goes on as it was.
  void note_work() noexcept { worked_ = true; }
  /// After a sleep that somebody ended. One that timed out leaves the budget used up: the thread looks once and sleeps on.
  void woken() noexcept { spent_ = 0; }

  struct Observed {
    std::int64_t now;         ///< nanoseconds, > 0
    bool scarce;              ///< Crowding::scarce
    std::int64_t configured;  ///< see spin_limit
    bool resting = false;     ///< the thread wants to sleep in any case
  };
  /// Another pause: looking has found nothing for a while.
  Next next(const Observed& observed, Habits& habits) noexcept {
    const auto [now, scarce, configured, resting] = observed;
    if (!last_) {
      last_ = now;
      if (scarce) yield_after_ = habits.yield_delay.begin();
    }
    const std::int64_t between = now - std::exchange(last_, now);
    spent_ += own_time(between, scarce);
    if (!std::exchange(worked_, false)) habits.contention.note(now, between);
    if (resting) return Next::park;
    // Another program that shares this core would be delayed by our looking, and we by it.
    const bool own_core = !scarce && !habits.contention.shared(now);
    if (spent_ >= spin_limit(configured, own_core)) return Next::park;
    if (!scarce || spent_ < yield_after_) return Next::look;
    yielded_ = true;
    return Next::yield;
  }

  /// The wait is over: what it teaches about delaying yields. Only where `has_lesson`.
  void end(Habits& habits) const noexcept { habits.yield_delay.end(!yielded_); }
  [[nodiscard]] bool has_lesson() const noexcept { return yield_after_ >= 0; }

 private:
  std::int64_t last_ = 0;          ///< when the last pause was; 0: there was none yet
  std::int64_t spent_ = 0;         ///< nanoseconds of its own that the thread has looked since there was work
  std::int64_t yield_after_ = -1;  ///< of them, before the first yield; -1: cores were not scarce when the wait began
  bool worked_ = false;            ///< since the last pause
  bool yielded_ = false;
};

}  // namespace heddle::park
