// One thread's wait: look, yield, sleep. What it knows of the process is injected, so that tests can simulate it.
#pragma once

#include <cstdint>

#include "vci/park/clock.hpp"
#include "vci/park/network_sleep.hpp"
#include "vci/park/sleepers.hpp"
#include "vci/park/spin.hpp"

namespace heddle::park {

/// The state of one wait. `Process` is a class of static functions, all noexcept:
/// - `Clock`, and `Subject`: what is waited for, for the report of a long wait;
/// - `progress()`: a step on every VCI; true if there was any work. `work_is_left()`: there is work that nobody will ring for;
/// - `crowding()`, `habits()` of this thread, `sleepers()`; `note_waiter()`: this thread counts as one that waits, until it ends;
/// - `spin_ns()`: see spin_limit; `report_after_ns()`: after which a sleeper reports its wait, 0: never; `report(awaited, subject)`;
/// - `yield_core()`; `falls_asleep(awaited)`, before it announces itself, and `wakes_up()`; `before_sleep()`: a last look at who may have died;
/// - `find_sources(announcement, sources)`: false in a process without a network; `network()`: NetworkSleep; `alone()`: see NetworkSleep::sleep;
/// - `sleep_on_bell(announcement, nanoseconds)`.
template <typename Process>
class Waiter {
 public:
  explicit Waiter(const typename Process::Subject& subject) noexcept : subject_(subject) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (spin_.has_lesson()) [[unlikely]] spin_.end(Process::habits());
    if (slept_) [[unlikely]] Process::sleepers().leave(Process::work_is_left);
  }

  /// One round: a look, and a pause if there was nothing to do. `done()` is asked before sleeping.
  /// \param look makes progress where the thread waits; true if there was work
  template <typename Look, typename Done>
  void step(Awaited awaited, Look&& look, Done&& done) noexcept {
    if (look()) {
      idle_ = 0;
      spin_.found_work();
      return;
    }
    // Without a pause: on cores of one's own nothing is gained by it, and a message is seen some nanoseconds later.
    if (++idle_ < Process::crowding().idle_looks()) return;
    idle_ = 0;
    if (pause()) return;
    Process::falls_asleep(awaited);
    const Sleepers::Announcement announcement = Process::sleepers().announce(awaited, rest_);
    const bool woken = !done() && !Process::progress() && sleep(announcement);
    Process::sleepers().retract(announcement);
    Process::wakes_up();
    slept_ = true;
    if (woken) spin_.woken();
    // A sentinel that is woken again and again for what awake threads serve themselves delays them: it rests for one short sleep.
    rest_ = woken && announcement.on_watch() && !done() && !Process::progress();
  }

 private:
  bool pause() noexcept;  ///< true: look again; false: time to sleep
  bool sleep(const Sleepers::Announcement& announcement) noexcept;  ///< true: it was woken; false: in vain
  void watch(Awaited awaited) noexcept;

  const typename Process::Subject& subject_;
  unsigned idle_ = 0;   ///< looks that found nothing since the last pause
  bool slept_ = false;
  bool rest_ = false;   ///< if the thread is the sentinel in its next sleep, it is not on watch
  Spin spin_;
  Nap nap_;
  std::int64_t asleep_since_ = 0;  ///< when it first slept, where long waits are reported; -1: it was reported
};

template <typename Process>
bool Waiter<Process>::pause() noexcept {
  if (Process::progress()) {
    spin_.note_work();
    return true;
  }
  Process::note_waiter();
  const Spin::Observed observed{Process::Clock::now_ns(), Process::crowding().scarce(), Process::spin_ns(), rest_};
  const Next next = spin_.next(observed, Process::habits());
  if (next == Next::yield) Process::yield_core();
  return next != Next::park;
}

/// Nanoseconds that a thread may sleep on the bell.
/// \param work_is_left a full ring refused records, and nobody rings when it drains; or a record has come which the last look could not take
///        because another thread holds the VCI, and that one may let go of it and leave
/// \param reliable see Sleepers. A launcher may die without a signal, so even then a sleep lasts a second at most.
inline long sleep_limit(bool work_is_left, bool reliable, bool resting) noexcept {
  if (work_is_left) return 50'000;
  return reliable && !resting ? 1'000'000'000 : 1'000'000;
}

template <typename Process>
bool Waiter<Process>::sleep(const Sleepers::Announcement& announcement) noexcept {
  if (Process::report_after_ns() > 0) [[unlikely]] watch(announcement.awaited);
  long limit = sleep_limit(Process::work_is_left(), Process::sleepers().reliable(), announcement.resting);
  Process::before_sleep();  // not after the sleep: whoever is woken is waited for
  NetworkSources sources;
  if (Process::find_sources(announcement, sources)) {
    NetworkSleep& network = Process::network();
    limit = network.limit(sources, nap_, limit);
    const auto ended = limit ? network.sleep(announcement, sources, Process::alone(), limit) : NetworkSleep::Ended::in_vain;
    if (ended != NetworkSleep::Ended::not_here)
      return ended == NetworkSleep::Ended::woken || Process::sleepers().rung_since(announcement.ticket);
  }
  Process::sleep_on_bell(announcement, limit);
  return Process::sleepers().rung_since(announcement.ticket);
}

template <typename Process>
void Waiter<Process>::watch(Awaited awaited) noexcept {
  if (asleep_since_ < 0) return;
  const std::int64_t now = Process::Clock::now_ns();
  if (!asleep_since_) asleep_since_ = now;
  if (now - asleep_since_ < Process::report_after_ns()) return;
  Process::report(awaited, subject_);
  asleep_since_ = -1;
}

}  // namespace heddle::park
