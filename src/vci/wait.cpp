#include "vci/wait.hpp"

#include <sched.h>

#include "sync/futex.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/topology.hpp"
#include "transport/net/engine.hpp"
#include "transport/shm/node.hpp"
#include "vci/owned.hpp"

namespace heddle {

template class park::Waiter<detail::WaitingProcess>;

namespace {

HEDDLE_PARAM_INT(hang_report, "HEDDLE_HANG_REPORT", 0, 0, 1'000'000,
                 "seconds after which a thread that sleeps in an MPI function says in which and what for; 0: never");
HEDDLE_PARAM_INT(spin_us, "HEDDLE_SPIN_US", -1, -1, 1'000'000'000,
                 "microseconds that a waiting thread looks for work before it sleeps; -1: 5000 where it has a core of its own, 200 where cores are scarce");

void (*report_wait)(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept = nullptr;

/// Counts its thread from the first long wait to the thread's end.
struct KnownWaiter {
  KnownWaiter() noexcept { detail::WaitingProcess::crowding().add_waiters(1); }
  ~KnownWaiter() { detail::WaitingProcess::crowding().add_waiters(-1); }
};

}  // namespace

using Process = detail::WaitingProcess;

park::Crowding Process::crowding_;

void start_waiting(int local_size, int node_cores,
                   void (*report)(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept) noexcept {
  const sys::NodeShare share = sys::share_of_node(sys::topology(), sys::online_cores(), local_size, node_cores);
  report_wait = report;
  Process::crowding().start(share.oversubscribed, share.cores_per_rank);
  park::sleepers.start(shm::header->doorbell, sync::register_barrier());
}

void expect_threads() noexcept {
  if (runtime.threads.load(std::memory_order_relaxed)) return;
  lock_vcis();
  park::sleepers.expect_threads();
  runtime.threads.store(true, std::memory_order_relaxed);
}

park::Habits& Process::habits() noexcept {
  static constinit thread_local park::Habits habits;
  return habits;
}

void Process::note_waiter() noexcept { [[maybe_unused]] static thread_local const KnownWaiter known; }

std::int64_t Process::spin_ns() noexcept { return spin_us.value() * 1000; }

std::int64_t Process::report_after_ns() noexcept { return hang_report.value() * 1'000'000'000; }

void Process::report(park::Awaited awaited, const WaitSubject& subject) noexcept {
  // Relaxed: the thread waits on this VCI, and so has seen it before.
  Vci* vci = awaited == park::anything ? nullptr : detail::pool_table[awaited].load(std::memory_order_relaxed);
  report_wait(vci, subject, hang_report.value());
}

void Process::yield_core() noexcept { sched_yield(); }

void Process::before_sleep() noexcept {
  if (sys::bootstrap::launcher_gone()) sys::abort_job(1, "the launcher is gone");
}

void Process::falls_asleep(park::Awaited awaited) noexcept { note_own_sleep(awaited); }
void Process::wakes_up() noexcept { note_own_sleep(Owner::awake); }

bool Process::find_sources(const park::Sleepers::Announcement& announcement, park::NetworkSources& sources) noexcept {
  if (!network().is_open()) return false;
  const park::Awaited only = announcement.listens_to();
  for_each_vci([&](Vci& vci) {
    const auto place = static_cast<park::Awaited>(number(vci.index));
    net::Engine* const engine = vci.net.load(std::memory_order_acquire);  // pairs with open_network
    if (!engine) return;
    if (vci.owner.thread.load(std::memory_order_relaxed)) {
      if (!detail::is_owner(vci)) return;  // who serves it sleeps at its network
      // NetworkSleep has no place for one who waits for anything and is not the sentinel: it naps, as nobody else looks after this network.
      if (only == park::anything && !announcement.sentinel) return sources.add_silent();
    }
    const bool free = try_submit(vci, [&](VciGuard&) {
      if (engine->wait_fd() < 0) return sources.add_silent();
      if (!engine->may_sleep()) return sources.add_awake();
      if (only != park::anything && only != place) return;
      sources.add(engine->wait_fd(), engine->capabilities().waits_with_epoll);
      sources.set_bell(vci.network_bell);
    });
    if (!free) sources.add_awake();
  });
  return true;
}

bool Process::alone() noexcept {
  return !runtime.threads.load(std::memory_order_relaxed) && (!shm::enabled() || runtime.local_size == 1);
}

void Process::sleep_on_bell(const park::Sleepers::Announcement& announcement, long nanoseconds) noexcept {
  park::sleepers.sleep(announcement, nanoseconds);
}

}  // namespace heddle
