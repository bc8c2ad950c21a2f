#include "vci/park/sleepers.hpp"

#include <mutex>

#include "sync/futex.hpp"

namespace heddle::park {

Sleepers sleepers;

void Sleepers::start(shm::Doorbell& doorbell, bool barrier) noexcept {
  const std::lock_guard hold(lock_);
  doorbell_ = &doorbell;
  barrier_ = barrier;
}

void Sleepers::expect_threads() noexcept {
  const std::lock_guard hold(lock_);
  threads_ = true;
}

void Sleepers::count(Awaited awaited, int n) noexcept {
  const auto more = static_cast<unsigned>(n);  // wraps around for -1
  total_ += more;
  if (awaited == anything) {
    everywhere_ += more;
    return;
  }
  const std::uint64_t bit = std::uint64_t{1} << awaited;
  bits_ = (on_[awaited] += more) ? bits_ | bit : bits_ & ~bit;
}

void Sleepers::publish() noexcept {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  // Sequential consistency for the sleeper without a barrier: its own looks come after the announcement.
  awaited_.store(!threads_ ? 0 : everywhere_ ? all : bits_, std::memory_order_seq_cst);
  doorbell_->asleep.store(on_watch_ || everywhere_ ? all : bits_, std::memory_order_seq_cst);
}

Sleepers::Announcement Sleepers::announce(Awaited awaited, bool resting) noexcept {
  // The bell comes first: a ring between the two then makes the sleep return at once. Acquire, so that nothing after it is done before.
  Announcement made{awaited, doorbell_->bell.load(std::memory_order_acquire), false, false};
  {
    const std::lock_guard hold(lock_);
    count(awaited, 1);
    if (!has_sentinel_) {
      has_sentinel_ = made.sentinel = true;
      made.resting = resting;
      on_watch_ = !resting;
    }
    publish();
  }
  if (barrier_) sync::barrier_everywhere();
  return made;
}

void Sleepers::retract(const Announcement& announcement) noexcept {
  const std::lock_guard hold(lock_);
  count(announcement.awaited, -1);
  if (announcement.sentinel) has_sentinel_ = on_watch_ = false;
  publish();
}

void Sleepers::sleep(const Announcement& announcement, long nanoseconds) noexcept {
  const Awaited only = announcement.listens_to();
  const std::uint32_t bits = only == anything ? shm::all_doorbell_bits : shm::doorbell_bits(static_cast<unsigned>(only));
  sync::futex_wait_bits(doorbell_->bell, announcement.ticket, bits, nanoseconds);
}

Sleepers::Watch Sleepers::look() noexcept {
  const std::lock_guard hold(lock_);
  return !total_ ? Watch::needless : has_sentinel_ ? Watch::kept : Watch::missing;
}

void Sleepers::wake_all() noexcept {
  if (doorbell_->asleep.load(std::memory_order_relaxed)) shm::ring_all(*doorbell_);
}

void Sleepers::wake(unsigned vci) noexcept {
  if (awaited_.load(std::memory_order_relaxed) >> vci & 1) shm::ring_sleepers(*doorbell_, vci);
}

void Sleepers::call(unsigned vci) noexcept {
  if (any() && doorbell_->asleep.load(std::memory_order_relaxed) >> vci & 1) shm::ring(*doorbell_, vci, 1);
}

}  // namespace heddle::park
