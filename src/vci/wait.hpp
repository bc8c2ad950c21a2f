// Waiting: spin while it can pay, then yield, then park; woken by a doorbell.
#pragma once

#include <cstdint>

#include "vci/vci.hpp"

namespace heddle {

/// The state of one wait. Call `idle` after every look that found nothing and `busy` after one that found work.
///
/// A waiter polls the VCI of what it waits for; after 32 polls that found work, and after 64 idle polls (4 where cores are scarce) it polls every VCI in use once (MPI-5.0 §3.5 progress;
/// both programs of the VCI paper's figure 9 finish). Then, depending on whether cores are scarce (observed, never asked), it
/// spins or yields, and parks at last. Parked threads use no CPU.
class Waiter {
 public:
  Waiter() noexcept = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (since_) leave();
  }

  /// More processes than cores on this node, observed at start.
  static void set_scarce(bool scarce) noexcept { foreign_after_ = scarce ? 4 : 64; }

  /// One round: progress on `vci` (nullptr: on all), and a pause if there was nothing to do. `done()` is looked at before sleeping.
  template <typename Done>
  void step(Vci* vci, Done&& done) noexcept {
    if (vci ? poll_fairly(*vci) : progress_all()) {
      idle_ = 0;
      return;
    }
    // Without a pause: on cores of one's own nothing is gained by it, and a message is seen some nanoseconds later.
    if (++idle_ < foreign_after_) return;
    idle_ = 0;
    if (pause()) return;
    // Announce first, look again, then sleep: whoever publishes after our look sees the announcement.
    const std::uint32_t ticket = announce();
    if (!done() && !progress_all()) sleep(ticket);
    retract();
  }

 private:
  /// Idle looks before all VCIs get one, and the core is offered to others: few where cores are scarce.
  static unsigned foreign_after_;

  bool pause() noexcept;               ///< true: look again; false: time to park
  static void leave() noexcept;
  static std::uint32_t announce() noexcept;
  static void sleep(std::uint32_t ticket) noexcept;
  static void retract() noexcept;

  unsigned idle_ = 0;
  std::int64_t since_ = 0;             ///< nanoseconds, when this idle period began; 0: not idle for long
};

/// Returns once `done()` is true, making progress meanwhile. `done` may be asked again after it was true.
template <typename Done>
inline void wait_until(Vci* vci, Done&& done) noexcept {
  if (done()) return;
  Waiter waiter;
  do waiter.step(vci, done);
  while (!done());
}

/// Wakes this process's own sleepers: after completing something that another thread may wait for.
void wake_sleepers() noexcept;

/// \param node_cores that the job may use on this node as the launcher counted them, 0 when it did not say.
void start_waiting(int local_size, int node_cores) noexcept;

}  // namespace heddle
