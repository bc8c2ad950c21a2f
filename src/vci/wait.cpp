#include "vci/wait.hpp"

#include <sched.h>
#include <time.h>

#include "sync/futex.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/topology.hpp"
#include "transport/shm/node.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_INT(spin_us, "HEDDLE_SPIN_US", 200, "microseconds that a waiting thread looks for work before it sleeps");

bool barrier_works = false;  ///< the kernel's process-wide barrier: sleepers pay, senders do not
bool node_crowded = false;   ///< more processes of the job than cores on this node
int own_cores = 1;           ///< that this process can count on
std::atomic<int> waiting{0}; ///< threads of this process in a long wait

std::int64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

}  // namespace

unsigned Waiter::foreign_after_ = 64;

void start_waiting(int local_size, int node_cores) noexcept {
  const sys::NodeShare share = sys::share_of_node(sys::topology(), sys::online_cores(), local_size, node_cores);
  node_crowded = share.oversubscribed;
  own_cores = share.cores_per_rank;
  Waiter::set_scarce(node_crowded);
  barrier_works = sync::register_barrier();
}

bool Waiter::pause() noexcept {
  if (progress_all()) return true;
  const std::int64_t now = now_ns();
  if (!since_) {
    since_ = now;
    waiting.fetch_add(1, std::memory_order_relaxed);
  }
  if (now - since_ < spin_us.value() * 1000) {
    // Oversubscribed: what we wait for may need this very core, so hand it over at once.
    if (node_crowded || waiting.load(std::memory_order_relaxed) > own_cores) sched_yield();
    return true;
  }
  since_ = now;  // after the sleep, look for as long again
  return false;
}

void Waiter::leave() noexcept { waiting.fetch_sub(1, std::memory_order_relaxed); }

std::uint32_t Waiter::announce() noexcept {
  shm::Doorbell& doorbell = shm::header->doorbell;
  // Read the bell before announcing: a ring between the two then makes the sleep return at once.
  const std::uint32_t ticket = doorbell.bell.load(std::memory_order_acquire);
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (barrier_works) sync::barrier_everywhere();
  return ticket;
}

void Waiter::sleep(std::uint32_t ticket) noexcept {
  // Nobody rings when a full ring drains, so with refused records we look again soon. Without the barrier a sender may miss the
  // announcement: then every millisecond. Otherwise once a second, for a launcher that died without a signal.
  const long limit = has_backlog() ? 50'000 : barrier_works ? 1'000'000'000 : 1'000'000;
  sync::futex_wait(shm::header->doorbell.bell, ticket, limit);
  if (sys::bootstrap::launcher_gone()) sys::abort_job(1, "the launcher is gone");
}

void Waiter::retract() noexcept { shm::header->doorbell.sleepers.fetch_sub(1, std::memory_order_relaxed); }

void wake_sleepers() noexcept {
  shm::Doorbell& doorbell = shm::header->doorbell;
  if (!doorbell.sleepers.load(std::memory_order_relaxed)) return;
  doorbell.bell.fetch_add(1, std::memory_order_release);
  sync::futex_wake(doorbell.bell);
}

}  // namespace heddle
