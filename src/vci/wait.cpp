#include "vci/wait.hpp"

#include <sched.h>

#include <utility>

#include "sync/futex.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/topology.hpp"
#include "transport/shm/doorbell.hpp"
#include "transport/shm/node.hpp"
#include "vci/protocol.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_INT(hang_report, "HEDDLE_HANG_REPORT", 0, 0, 1'000'000,
                 "seconds after which a thread that sleeps in an MPI function says in which and what for; 0: never");
HEDDLE_PARAM_INT(spin_us, "HEDDLE_SPIN_US", -1, -1, 1'000'000'000,
                 "microseconds that a waiting thread looks for work before it sleeps; -1: 5000 where it has a core of its own, 200 where cores are scarce");

bool barrier_works = false;  ///< the kernel's process-wide barrier: sleepers pay, senders do not
bool node_crowded = false;   ///< more processes of the job than cores on this node
int own_cores = 1;           ///< that this process can count on
std::atomic<int> waiters{0}; ///< living threads of this process that have waited here

bool crowded() noexcept { return node_crowded || waiters.load(std::memory_order_relaxed) > own_cores; }

void note_crowding() noexcept { Waiter::foreign_after.store(crowded() ? 8 : 64, std::memory_order_relaxed); }

/// Whether a thread on a crowded node should look for some microseconds before it offers its core to others. Two threads that answer
/// each other on two cores should, or they would be torn apart at every message; members of a collective should not, for those they wait
/// for need the core. So it is learned: a spell of patience is tried now and then, less and less often, and kept up while it pays.
class Patience {
 public:
  /// Nanoseconds to look before the first yield of a wait.
  std::int64_t begin() noexcept {
    if (patient_) return spell;
    if (!trial_) {
      if (--until_trial_) return 0;
      trial_ = trial_waits;
      paid_ = 0;
    }
    return 2 * spell;  // longer than a patient thread keeps the core that the other one may need
  }
  /// \param paid the wait ended before a yield
  void end(bool paid) noexcept {
    if (trial_) {
      paid_ += paid;
      if (--trial_) return;
      patient_ = paid_ * 8 >= trial_waits * 7;
      bad_ = 0;
      interval_ = patient_ ? first_interval : interval_ < last_interval ? interval_ * 2 : interval_;
      until_trial_ = interval_;
    } else if (patient_) {
      bad_ = bad_ * 15 / 16 + (paid ? 0 : 64);
      patient_ = bad_ < 256;  // one in four in vain
    }
  }

 private:
  static constexpr std::int64_t spell = 8000;
  static constexpr int trial_waits = 8;
  static constexpr unsigned first_interval = 32, last_interval = 4096;
  bool patient_ = false;
  int trial_ = 0, paid_ = 0, bad_ = 0;
  unsigned interval_ = first_interval, until_trial_ = first_interval;
};
thread_local Patience patience;

/// Whether others than this job have used a thread's core lately.
constexpr std::int64_t lost_core = 500'000, memory_of_contention = 100'000'000;  ///< nanoseconds between two looks; after the last such time
thread_local std::int64_t contended_until = 0;

constexpr long longest_nap = 8'000'000;  ///< nanoseconds

/// Counts its thread from the first long wait to the thread's end.
struct KnownWaiter {
  KnownWaiter() noexcept { add(1); }
  ~KnownWaiter() { add(-1); }
  static void add(int n) noexcept {
    waiters.fetch_add(n, std::memory_order_relaxed);
    note_crowding();
  }
};

}  // namespace

std::atomic<unsigned> Waiter::foreign_after{64};
std::atomic<std::uint32_t> detail::sleepers_everywhere{0};

void start_waiting(int local_size, int node_cores) noexcept {
  const sys::NodeShare share = sys::share_of_node(sys::topology(), sys::online_cores(), local_size, node_cores);
  node_crowded = share.oversubscribed;
  own_cores = share.cores_per_rank;
  note_crowding();
  barrier_works = sync::register_barrier();
}

bool Waiter::pause() noexcept {
  if (progress_all()) {
    worked_ = true;
    return true;
  }
  [[maybe_unused]] static thread_local const KnownWaiter known;
  const std::int64_t now = sys::now_ns();
  if (!last_) {
    last_ = now;
    patience_ = crowded() ? patience.begin() : -1;
  }
  // A wake-up costs 50 µs and more, so who has a core looks for a hundred times that: ranks that arrive some milliseconds apart lose nothing.
  // What goes beyond the time of some looks (which are system calls over TCP), others had the core.
  const bool scarce = crowded();
  const std::int64_t longest = scarce ? 1'000 : 50'000, between = now - last_;
  spun_ += between < longest ? between : longest;
  last_ = now;
  // Programs of others want this core: whoever waits on it keeps it from them, and they from it what it waits for. (A piece of a large message
  // takes long as well.)
  if (!std::exchange(worked_, false) && between > lost_core) contended_until = now + memory_of_contention;
  if (calm_) return false;
  const bool own_core = !scarce && now >= contended_until;
  if (spun_ < (spin_us.value() >= 0 ? spin_us.value() : own_core ? 5'000 : 200) * 1000) {
    if (scarce && spun_ >= patience_) {
      yielded_ = true;
      sched_yield();
    }
    return true;
  }
  return false;
}

void Waiter::learn() noexcept { patience.end(!yielded_); }

namespace {

/// Who sleeps. Changed only by those who go to sleep or wake up.
struct Parked {
  sync::Lock lock;
  bool has_sentinel = false;     ///< one of them is the sentinel
  bool alert = false;       ///< and wants to be woken for all VCIs
  unsigned everywhere = 0;  ///< threads that wait for anything at all
  unsigned total = 0;
  std::uint64_t awaited = 0;  ///< the VCIs that threads wait for something of
  unsigned on[64] = {};       ///< how many
} parked;

/// The mask that senders look at. \pre parked.lock
void publish_asleep() noexcept {
  const std::uint64_t mask = parked.alert || parked.everywhere ? ~std::uint64_t{0} : parked.awaited;
  shm::header->doorbell.asleep.store(mask, std::memory_order_seq_cst);
}

}  // namespace

std::uint32_t Waiter::announce(Vci* vci) noexcept {
  // Read the bell before announcing: a ring between the two then makes the sleep return at once.
  const std::uint32_t ticket = shm::header->doorbell.bell.load(std::memory_order_acquire);
  parked.lock.lock();
  ++parked.total;
  if (!vci) ++parked.everywhere;
  else if (!parked.on[vci->index]++) parked.awaited |= std::uint64_t{1} << vci->index;
  sentinel_ = !parked.has_sentinel;
  if (sentinel_) {
    parked.has_sentinel = true;
    parked.alert = !calm_;
  }
  (vci ? vci->sleepers : detail::sleepers_everywhere).fetch_add(1, std::memory_order_seq_cst);
  publish_asleep();
  parked.lock.unlock();
  slept_ = true;
  if (barrier_works) sync::barrier_everywhere();
  return ticket;
}

bool Waiter::sleep(Vci* vci, std::uint32_t ticket) noexcept {
  if (hang_report.value() > 0) [[unlikely]] watch(vci);
  // Nobody rings when a full ring drains, so with refused records we look again soon. So we do when a record is there that the last look
  // could not take because another thread holds its VCI: that one may let go of it and leave. Without the barrier a sender may miss the
  // announcement: then every millisecond. Otherwise once a second, for a launcher that died without a signal.
  long limit = has_backlog() || has_arrivals() ? 50'000 : barrier_works ? 1'000'000'000 : 1'000'000;
  if (sentinel_ && calm_ && limit > 1'000'000) limit = 1'000'000;
  // Before the sleep, not after it: whoever is woken is waited for.
  if (sys::bootstrap::launcher_gone()) sys::abort_job(1, "the launcher is gone");
  Vci* const only = sentinel_ && !calm_ ? nullptr : vci;
  const proto::Slept slept = proto::sleep_on_network(sentinel_, only, ticket, nap_, limit);
  // An eighth more each time: what comes then is late by an eighth of the time that was waited, or 4 ms, and a thread that waits for seconds looks
  // a hundred times in each and not two thousand.
  if (limit == nap_ && nap_ < longest_nap) nap_ += nap_ / 8;
  if (slept == proto::Slept::not_here && limit)
    sync::futex_wait_bits(shm::header->doorbell.bell, ticket, only ? shm::doorbell_bits(only->index) : shm::all_doorbell_bits, limit);
  return slept == proto::Slept::woken || shm::header->doorbell.bell.load(std::memory_order_relaxed) != ticket;
}

void Waiter::watch(Vci* vci) noexcept {
  if (since_ < 0) return;
  const std::int64_t now = sys::now_ns();
  if (!since_) since_ = now;
  if (now - since_ < hang_report.value() * 1'000'000'000) return;
  proto::report_wait(vci, subject_, hang_report.value());
  since_ = -1;
}

void Waiter::retract(Vci* vci) noexcept {
  parked.lock.lock();
  --parked.total;
  if (!vci) --parked.everywhere;
  else if (!--parked.on[vci->index]) parked.awaited &= ~(std::uint64_t{1} << vci->index);
  if (sentinel_) parked.has_sentinel = parked.alert = false;
  (vci ? vci->sleepers : detail::sleepers_everywhere).fetch_sub(1, std::memory_order_relaxed);
  publish_asleep();
  parked.lock.unlock();
}

// From its first sleep on this thread looked after all VCIs whenever it was awake, and may have been the sentinel: one of those who
// still sleep takes over. The sentinel sleeps on at the network when a ring is for a VCI that a thread sleeps for, so what that leaves behind
// it is told of.
void Waiter::leave() noexcept {
  parked.lock.lock();
  const bool nobody = parked.total && !parked.has_sentinel, others = parked.total;
  parked.lock.unlock();
  if (nobody) shm::ring_any(shm::header->doorbell);
  else if (others && (has_backlog() || has_arrivals())) shm::ring_sentinel(shm::header->doorbell);
}

void detail::wake_slowly(Vci& vci) noexcept { shm::ring_sleepers(shm::header->doorbell, vci.index); }

void detail::rouse(const Vci& vci) noexcept {
  // Relaxed, as in ring_doorbell: the sleeper's barrier comes between its announcement and its last look.
  if (shm::header->doorbell.asleep.load(std::memory_order_relaxed) >> vci.index & 1) shm::ring(shm::header->doorbell, vci.index, 1);
}

void wake_all_sleepers() noexcept {
  if (shm::header->doorbell.asleep.load(std::memory_order_relaxed)) shm::ring_all(shm::header->doorbell);
}

}  // namespace heddle
