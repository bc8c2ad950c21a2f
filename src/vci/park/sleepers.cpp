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
  const std::uint64_t asleep = on_watch_ || everywhere_ || server_ ? all : bits_;
  on_call_.store(threads_ ? asleep : 0, std::memory_order_relaxed);
  doorbell_->asleep.store(asleep, std::memory_order_seq_cst);
}

Sleepers::Announcement Sleepers::announce(Awaited awaited, bool resting) noexcept {
  // The bell comes first: a ring between the two then makes the sleep return at once. Acquire, so that nothing after it is done before.
  Announcement made{awaited, doorbell_->bell.load(std::memory_order_acquire), false, false};
  {
    const std::lock_guard hold(lock_);
    count(awaited, 1);
    if (!has_sentinel_ && !server_) {
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
  return has_sentinel_ || server_ ? Watch::kept : total_ ? Watch::missing : Watch::needless;
}

bool Sleepers::announce_server() noexcept {
  bool company;
  {
    const std::lock_guard hold(lock_);
    server_ = true;
    company = total_ > 0;
    publish();
  }
  if (barrier_) sync::barrier_everywhere();
  return company;
}

void Sleepers::retract_server() noexcept {
  const std::lock_guard hold(lock_);
  server_ = false;
  publish();
}

Sleepers::ServerView Sleepers::server_view() const noexcept {
  // Acquire, so that nothing after it is done before.
  return {doorbell_->bell.load(std::memory_order_acquire), doorbell_->server_bell.load(std::memory_order_acquire)};
}

void Sleepers::sleep_server(const ServerView& view, long nanoseconds) noexcept {
  // Sequential consistency pairs with the rings: they find that the server sleeps, or it finds that they have rung.
  doorbell_->server.store(shm::ServerSleep::on_word, std::memory_order_seq_cst);
  if (doorbell_->bell.load(std::memory_order_seq_cst) == view.bell) sync::futex_wait(doorbell_->server_bell, view.word, nanoseconds);
  doorbell_->server.store(shm::ServerSleep::no, std::memory_order_relaxed);
}

void Sleepers::pause_server(const ServerView& view, long nanoseconds) noexcept {
  sync::futex_wait(doorbell_->server_bell, view.word, nanoseconds);
}

void Sleepers::call_program(unsigned vci) noexcept {
  const std::uint64_t awaited = awaited_.load(std::memory_order_relaxed);
  if (awaited >> vci & 1) shm::ring_sleepers(*doorbell_, vci);
  else if (awaited) shm::ring_any(*doorbell_);
}

bool Sleepers::program_sleeps() noexcept {
  const std::lock_guard hold(lock_);
  return total_ > 0;
}

void Sleepers::wake_all() noexcept {
  if (doorbell_->asleep.load(std::memory_order_relaxed)) shm::ring_all(*doorbell_);
}

void Sleepers::wake(unsigned vci) noexcept {
  if (awaited_.load(std::memory_order_relaxed) >> vci & 1) shm::ring_sleepers(*doorbell_, vci);
}

void Sleepers::call(unsigned vci) noexcept {
  if (on_call_.load(std::memory_order_relaxed) >> vci & 1) shm::ring(*doorbell_, vci, 1);
}

}  // namespace heddle::park
