// Waiting for something of a VCI, and waking those who wait: how VCIs and park/ meet.
#pragma once

#include <cstdint>

#include "vci/park/sleepers.hpp"
#include "vci/park/waiter.hpp"
#include "vci/poll.hpp"

namespace heddle {

/// What a thread waits for, as far as it knows: for the hang report. Pointers are valid during the wait.
struct WaitSubject {
  const Request* request = nullptr;
  const Comm* comm = nullptr;  ///< without a request: a message on it, or with `rank_is_late` its rank `rank` in a collective
  int rank = 0, tag = 0;
  bool rank_is_late = false;
  const char* of_rank = nullptr;  ///< without a request: what is awaited of `rank`, "for … of"
  const char* function = nullptr;  ///< the MPI function, where its own frame is gone from the stack (a call at its end)
};

namespace detail {

/// This process, as a waiter sees it.
struct WaitingProcess {
  using Clock = park::MonotonicClock;
  using Subject = WaitSubject;

  static bool progress() noexcept { return progress_all(); }
  static bool work_is_left() noexcept { return has_backlog() || has_arrivals(); }
  static park::Crowding& crowding() noexcept { return crowding_; }
  static park::Habits& habits() noexcept;
  static park::Sleepers& sleepers() noexcept { return park::sleepers; }
  static void note_waiter() noexcept;
  static std::int64_t spin_ns() noexcept;
  static std::int64_t report_after_ns() noexcept;
  static void report(park::Awaited awaited, const WaitSubject& subject) noexcept;
  static void yield_core() noexcept;
  static void before_sleep() noexcept;
  static void falls_asleep(park::Awaited awaited) noexcept;
  static void wakes_up() noexcept;
  static bool find_sources(const park::Sleepers::Announcement& announcement, park::NetworkSources& sources) noexcept;
  static park::NetworkSleep& network() noexcept { return park::network_sleep; }
  static bool alone() noexcept;
  static void sleep_on_bell(const park::Sleepers::Announcement& announcement, long nanoseconds) noexcept;

  [[gnu::visibility("hidden")]] static park::Crowding crowding_;
};

}  // namespace detail

/// One thread's wait. It looks at the VCI of what it waits for; after every 32 looks that found work, and after a number of idle ones
/// (Crowding::idle_looks), it makes a step on every VCI in use, which MPI-5.0 §3.5 demands of progress and both programs of the VCI paper's
/// figure 9 need to finish. Then, depending on whether cores are scarce, it looks on or yields, and sleeps at last.
using Waiter = park::Waiter<detail::WaitingProcess>;
extern template class park::Waiter<detail::WaitingProcess>;

/// Returns once `done()` is true, making progress meanwhile. `done` may be asked again after it was true.
/// \param vci where it comes true, or nullptr: anywhere
/// \param awaited the one request that `done` asks about, if so (see `progress`)
/// \param subject for the hang report
/// \param reap see `poll_fairly`
template <typename Done, typename Reap>
inline void wait_until(Vci* vci, Done&& done, const Request* awaited, Reap&& reap, const WaitSubject& subject) noexcept {
  if (done()) return;
  Waiter waiter(subject);
  const park::Awaited place = vci ? static_cast<park::Awaited>(number(vci->index)) : park::anything;
  do waiter.step(place, [&] { return vci ? poll_fairly(*vci, awaited, reap) : progress_all(); }, done);
  while (!done());
}
template <typename Done>
inline void wait_until(Vci* vci, Done&& done, const WaitSubject& subject = {}) noexcept {
  wait_until(vci, done, nullptr, [](VciGuard&) {}, subject);
}

/// For how many looks it pays to wait for what another core is about to send: fewer where cores are scarce.
inline unsigned idle_looks() noexcept { return detail::WaitingProcess::crowding().idle_looks(); }

/// Wakes this process's own threads that wait for something of this VCI: after completing it. One load when nobody sleeps.
inline void wake_sleepers(const Vci& vci) noexcept {
  if (park::sleepers.any()) [[unlikely]] park::sleepers.wake(number(vci.index));
}
/// The same for all VCIs.
inline void wake_all_sleepers() noexcept { park::sleepers.wake_all(); }

/// After leaving work in a VCI, which is held, for later steps: a record that a full ring refused, a large message to move, a continuation.
/// A thread that sleeps and looks after the VCI (the sentinel above all, or the server) wakes up for it, because the caller may make no further
/// MPI call for long. Not for what a step itself leaves: whoever caused that step has rung, or is waiting.
inline void leave_work(const Vci& vci) noexcept {
  if (park::sleepers.any_to_call() && vci.use.load(std::memory_order_relaxed) != VciUse::in_use) [[unlikely]]
    park::sleepers.call(number(vci.index));
}

/// From now on several threads of the program may be inside the library together: VCIs are locked, threads wake each other, and
/// `runtime.threads` says so. \pre one thread of the program at most is inside, and holds no VCI
void expect_threads() noexcept;

/// Before the first VCI exists.
/// \param node_cores that the job may use on this node as the launcher counted them, 0 when it did not say
/// \param report says in one line what the calling thread has been waiting for, for `seconds`, on `vci` or, if null, on all
void start_waiting(int local_size, int node_cores,
                   void (*report)(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept) noexcept;

}  // namespace heddle
