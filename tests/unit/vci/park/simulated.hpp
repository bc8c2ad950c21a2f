// What the tests of waiting share: a clock that moves when told to, and a process that exists only as what a waiter asks it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vci/park/waiter.hpp"

namespace heddle::park::simulated {

struct SimulatedClock {
  static inline std::int64_t now = 1;
  static std::int64_t now_ns() noexcept { return now; }
};
static_assert(Clock<SimulatedClock>);

/// One process with one waiting thread; a test sets what it observes and reads what the waiter did.
struct State {
  ~State() { network.close(); }

  shm::Doorbell doorbell{};
  Sleepers sleepers;
  Crowding crowding;
  Habits habits;
  NetworkSleep network;
  std::int64_t look_takes = 1000;  ///< nanoseconds between two pauses
  std::int64_t spin = -1, report_after = 0;
  bool work_is_left = false, has_network = false, silent = false, awake = false;
  int works = 0;  ///< the next so many steps on all VCIs find work
  std::int64_t slept_at = 0;

  int yields = 0, notes = 0, launcher_looks = 0;
  std::vector<long> sleeps;  ///< nanoseconds that each was allowed
  std::vector<Awaited> listened, reports;
  void (*during_sleep)(State&) = nullptr;  ///< what others do meanwhile
};

struct Process {
  using Clock = SimulatedClock;
  struct Subject {};
  static inline std::unique_ptr<State> s;

  static bool progress() noexcept {
    Clock::now += s->look_takes;
    return s->works > 0 && s->works--;
  }
  static bool work_is_left() noexcept { return s->work_is_left; }
  static Crowding& crowding() noexcept { return s->crowding; }
  static Habits& habits() noexcept { return s->habits; }
  static Sleepers& sleepers() noexcept { return s->sleepers; }
  static void note_waiter() noexcept { ++s->notes; }
  static std::int64_t spin_ns() noexcept { return s->spin; }
  static std::int64_t report_after_ns() noexcept { return s->report_after; }
  static void report(Awaited awaited, const Subject&) noexcept { s->reports.push_back(awaited); }
  static void yield_core() noexcept { ++s->yields; }
  static void before_sleep() noexcept { ++s->launcher_looks; }
  static void falls_asleep(Awaited) noexcept {}
  static void wakes_up() noexcept {}
  static bool find_sources(const Sleepers::Announcement&, NetworkSources& sources) noexcept {
    if (s->silent) sources.add_silent();
    if (s->awake) sources.add_awake();
    return s->has_network;
  }
  static NetworkSleep& network() noexcept { return s->network; }
  static bool alone() noexcept { return false; }
  static void sleep_on_bell(const Sleepers::Announcement& announcement, long nanoseconds) noexcept {
    s->sleeps.push_back(nanoseconds);
    s->listened.push_back(announcement.listens_to());
    s->slept_at = Clock::now;
    if (s->during_sleep) s->during_sleep(*s);
    if (!s->sleepers.rung_since(announcement.ticket)) Clock::now += nanoseconds;
  }

  /// A new process whose time begins at one.
  static State& begin() {
    s = std::make_unique<State>();
    Clock::now = 1;
    s->sleepers.start(s->doorbell, true);
    s->crowding.start(false, 8);
    std::string problem;
    if (!s->network.open(s->doorbell, problem)) std::abort();
    return *s;
  }
};

/// Waits on VCI 3, where no look finds anything, until `done`.
template <typename Done>
void wait(Done&& done, Awaited awaited = 3) {
  const Process::Subject subject;
  Waiter<Process> waiter(subject);
  while (!done()) waiter.step(awaited, [] { return false; }, done);
}

}  // namespace heddle::park::simulated
