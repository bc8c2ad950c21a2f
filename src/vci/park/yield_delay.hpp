// Learning whether a thread should look for a while before it first offers its core to others.
#pragma once

#include <cstdint>

namespace heddle::park {

/// How long a thread looks before the first yield of a wait, where cores are scarce.
///
/// Two threads that answer each other from two cores must keep looking: one yield separates them, and every message then costs two context
/// switches. Members of a collective must yield at once, because those they wait for need the core. No rule tells which is the case, so
/// each thread learns it: now and then it delays the yield for a few waits, and keeps doing so while that pays. Trials that do not
/// pay become rarer.
///
/// One for each thread; not thread-safe. Reads no clock.
class YieldDelay {
 public:
  static constexpr std::int64_t delay = 8000;  ///< nanoseconds
  static constexpr int trial_waits = 8;
  static constexpr unsigned first_interval = 32, last_interval = 4096;  ///< waits between two trials

  /// A wait begins: nanoseconds to look before its first yield. Each call is followed by one of `end`.
  std::int64_t begin() noexcept {
    if (delays_) return delay;
    if (!trial_) {
      if (--until_trial_) return 0;
      trial_ = trial_waits;
      paid_ = 0;
    }
    return 2 * delay;  // longer than a thread that delays its yields keeps the core which the other one may need
  }

  /// The wait has ended. \param paid before it had yielded
  void end(bool paid) noexcept {
    if (trial_) {
      paid_ += paid;
      if (--trial_) return;
      delays_ = paid_ * 8 >= trial_waits * 7;
      failures_ = 0;
      interval_ = delays_ ? first_interval : interval_ < last_interval ? interval_ * 2 : interval_;
      until_trial_ = interval_;
    } else if (delays_) {
      failures_ = failures_ * 15 / 16 + (paid ? 0 : 64);
      delays_ = failures_ < 256;  // a moving average of one wait in four
    }
  }

 private:
  bool delays_ = false;
  int trial_ = 0;     ///< waits left of a trial
  int paid_ = 0;      ///< waits of the trial that ended before a yield
  int failures_ = 0;  ///< 64 for each wait that yielded all the same, fading
  unsigned interval_ = first_interval, until_trial_ = first_interval;
};

}  // namespace heddle::park
