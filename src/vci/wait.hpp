// Waiting: spin while it can pay, then yield, then park; woken by a doorbell.
#pragma once

#include <cstdint>

#include "vci/protocol.hpp"
#include "vci/vci.hpp"

namespace heddle {

/// The state of one wait. Call `idle` after every look that found nothing and `busy` after one that found work.
///
/// A waiter polls the VCI of what it waits for; after 32 polls that found work, and after 64 idle polls (4 where cores are scarce) it polls every VCI in use once (MPI-5.0 §3.5 progress;
/// both programs of the VCI paper's figure 9 finish). Then, depending on whether cores are scarce (observed, never asked), it
/// spins or yields, and parks at last. Parked threads use no CPU, and only what they wait for wakes them; but one of them, the
/// sentinel, is woken by a message for any VCI, so that the process makes progress while nobody else does.
class Waiter {
 public:
  explicit Waiter(const WaitSubject& subject) noexcept : subject_(subject) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (patience_ >= 0) [[unlikely]] learn();
    if (slept_) [[unlikely]] leave();
  }

  /// One round: progress on `vci` (nullptr: on all), and a pause if there was nothing to do. `done()` is looked at before sleeping.
  /// \param awaited, reap for poll_fairly
  template <typename Done, typename Reap>
  void step(Vci* vci, Done&& done, const Request* awaited, Reap&& reap) noexcept {
    if (vci ? poll_fairly(*vci, awaited, reap) : progress_all()) {
      idle_ = 0;
      spun_ = 0;
      worked_ = true;
      return;
    }
    // Without a pause: on cores of one's own nothing is gained by it, and a message is seen some nanoseconds later.
    if (++idle_ < foreign_after.load(std::memory_order_relaxed)) return;
    idle_ = 0;
    if (pause()) return;
    // Announce first, look again, then sleep: whoever publishes after our look sees the announcement.
    const std::uint32_t ticket = announce(vci);
    const bool rung = !done() && !progress_all() && sleep(vci, ticket);
    retract(vci);
    if (rung) spun_ = 0;  // else it is the end of a second, and not the time to look for long again
    // A ring for others, who served it themselves: no use in being woken for each of theirs.
    calm_ = rung && sentinel_ && !calm_ && !done() && !progress_all();
  }

  /// Idle looks before all VCIs get one, and the core is offered to others: few where cores are scarce (more processes on
  /// the node, or more threads in this process's waits, than cores: observed).
  static std::atomic<unsigned> foreign_after;

 private:
  bool pause() noexcept;               ///< true: look again; false: time to park
  std::uint32_t announce(Vci* vci) noexcept;
  bool sleep(Vci* vci, std::uint32_t ticket) noexcept;
  void watch(Vci* vci) noexcept;  ///< reports a long wait
  void retract(Vci* vci) noexcept;
  void learn() noexcept;
  static void leave() noexcept;

  const WaitSubject& subject_;
  unsigned idle_ = 0;
  long nap_ = 500'000;    ///< nanoseconds of the next sleep where the network wakes nobody
  bool sentinel_ = false;  ///< in the last sleep this thread was the sentinel
  bool calm_ = false;   ///< the next sleep as the sentinel is a short one that only the own VCI ends
  bool slept_ = false;
  std::int64_t patience_ = -1;  ///< nanoseconds to look before the first yield; -1: cores are not scarce
  bool yielded_ = false;
  bool worked_ = false;  ///< since the last pause
  std::int64_t last_ = 0;  ///< nanoseconds, when the last pause was; 0: not idle for long
  std::int64_t since_ = 0;  ///< nanoseconds, when it first slept, where long waits are reported; -1: it was reported
  std::int64_t spun_ = 0;  ///< nanoseconds of looking since there was anything, without those that others had the core
};

/// Returns once `done()` is true, making progress meanwhile. `done` may be asked again after it was true.
/// \param awaited the one request that `done` asks about, if so (see `progress`)
/// \param subject for the hang report
/// \param reap see `poll_fairly`
template <typename Done, typename Reap>
inline void wait_until(Vci* vci, Done&& done, const Request* awaited, Reap&& reap, const WaitSubject& subject) noexcept {
  if (done()) return;
  Waiter waiter(subject);
  do waiter.step(vci, done, awaited, reap);
  while (!done());
}
template <typename Done>
inline void wait_until(Vci* vci, Done&& done, const WaitSubject& subject = {}) noexcept {
  wait_until(vci, done, nullptr, [](VciGuard&) {}, subject);
}

namespace detail {
[[gnu::visibility("hidden")]] alignas(sync::cache_line) extern std::atomic<std::uint32_t> sleepers_everywhere;  ///< that wait for something of any VCI
void wake_slowly(Vci& vci) noexcept;
void rouse(const Vci& vci) noexcept;
}
/// Wakes this process's own threads that wait for something of this VCI: after completing it.
inline void wake_sleepers(Vci& vci) noexcept {
  if (vci.sleepers.load(std::memory_order_relaxed) | detail::sleepers_everywhere.load(std::memory_order_relaxed)) [[unlikely]]
    detail::wake_slowly(vci);
}
/// The same for all of them.
void wake_all_sleepers() noexcept;

/// After leaving work in a VCI, which is held, for later steps: a record that a full ring refused, a large message to move, a continuation.
/// If a thread sleeps that looks after the VCI (the sentinel above all), it wakes up for it, because the caller may make no further MPI call
/// for long. Not for what a step itself leaves: whoever made that come has rung, or is waiting.
inline void leave_work(const Vci& vci) noexcept {
  if (runtime.threads.load(std::memory_order_relaxed) && !vci.stepping) detail::rouse(vci);
}

/// \param node_cores that the job may use on this node as the launcher counted them, 0 when it did not say.
void start_waiting(int local_size, int node_cores) noexcept;

}  // namespace heddle
