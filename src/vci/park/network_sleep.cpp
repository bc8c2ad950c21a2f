#include "vci/park/network_sleep.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace heddle::park {

NetworkSleep network_sleep;

namespace {

/// Says that a thread sleeps at the network for a VCI, or for all as the sentinel, from when it is made until it goes.
class AtNetwork {
 public:
  AtNetwork(shm::Doorbell& doorbell, Awaited only) noexcept
      : doorbell_(doorbell), bit_(only == anything ? 0 : std::uint64_t{1} << only) {
    // Sequential consistency pairs with shm::ring: it finds that somebody sleeps here, or we find that it has rung.
    if (bit_)
      taken_ = doorbell_.at_network.fetch_or(bit_, std::memory_order_seq_cst) & bit_;
    else
      doorbell_.sentinel_at_network.store(1, std::memory_order_seq_cst);
  }
  AtNetwork(const AtNetwork&) = delete;
  AtNetwork& operator=(const AtNetwork&) = delete;
  ~AtNetwork() {
    if (taken_) return;
    if (!bit_) {
      doorbell_.sentinel_at_network.store(0, std::memory_order_relaxed);
      return;
    }
    doorbell_.at_network.fetch_and(~bit_, std::memory_order_seq_cst);
    // Whoever has found the bit has published before it what this thread looks for from here on (Sleepers::leave).
    // ThreadSanitizer does not see fences; it needs none here, for all that is looked at is atomic.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Another thread sleeps there for this VCI, and has its bell.
  [[nodiscard]] bool taken() const noexcept { return taken_; }
  [[nodiscard]] bool rung_since(std::uint32_t ticket) const noexcept {
    return doorbell_.bell.load(std::memory_order_seq_cst) != ticket;
  }

 private:
  shm::Doorbell& doorbell_;
  const std::uint64_t bit_;  ///< 0: the sentinel
  bool taken_ = false;
};

}  // namespace

bool NetworkSleep::open(shm::Doorbell& doorbell, std::string& problem) {
  doorbell_ = &doorbell;
  server_bell_ = shm::open_bell(doorbell, shm::server_bell, problem);
  if (server_bell_ >= 0) sentinel_bell_ = shm::open_bell(doorbell, shm::sentinel_bell, problem);
  return is_open();
}

void NetworkSleep::close() noexcept {
  for (int* bell : {&sentinel_bell_, &server_bell_})
    if (*bell >= 0) ::close(std::exchange(*bell, -1));
}

long NetworkSleep::limit(const NetworkSources& sources, Nap& nap, long nanoseconds) const noexcept {
  if (sources.awake_) return 0;
  if (sources.silent_ && nap.length() <= nanoseconds) {
    nanoseconds = nap.length();
    nap.lengthen();
    return nanoseconds;
  }
  return unreachable() ? std::min(nanoseconds, 1'000'000L) : nanoseconds;
}

NetworkSleep::Ended NetworkSleep::sleep(const Sleepers::Announcement& announcement, NetworkSources& sources, bool alone,
                                        long nanoseconds) noexcept {
  const Awaited only = announcement.listens_to();
  if (!wakes(sources)) return Ended::not_here;
  // Only the sentinel has a bell for everything: others that wait for anything sleep on the word.
  if (only == anything && !announcement.sentinel) return Ended::not_here;

  const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  if (alone) {
    // The library's thread may have served what is waited for between our looks, of which the last failed because it had the VCI.
    if (doorbell_->bell.load(std::memory_order_acquire) != announcement.ticket) return Ended::woken;
    // epoll_pwait2 spares one queue between the socket and us, where there is but one. A sandbox may refuse it, as it is new.
    epoll_event event;
    if (sources.count_ != 1 || !sources.epoll_ ||
        (epoll_pwait2(sources.fds_[0].fd, &event, 1, &time, nullptr) < 0 && errno != EINTR))
      ppoll(sources.fds_, sources.count_, &time, nullptr);
    return Ended::in_vain;  // the question is whether somebody was served by others, of whom there are none
  }
  const AtNetwork here(*doorbell_, only);
  if (here.taken()) return Ended::not_here;
  const int bell = only == anything ? sentinel_bell_ : sources.bell_;
  sources.add(bell, false);
  if (here.rung_since(announcement.ticket)) return Ended::woken;
  const int found = ppoll(sources.fds_, sources.count_, &time, nullptr);
  if (sources.fds_[sources.count_ - 1].revents) shm::drain_bell(bell);
  return found > 0 ? Ended::woken : Ended::in_vain;
}

bool NetworkSleep::sleep_server(const Sleepers::ServerView& view, NetworkSources& sources, long nanoseconds) noexcept {
  if (!wakes(sources)) return false;
  sources.add(server_bell_, false);
  // Sequential consistency: as in AtNetwork.
  doorbell_->server.store(shm::ServerSleep::at_network, std::memory_order_seq_cst);
  if (doorbell_->bell.load(std::memory_order_seq_cst) == view.bell) {
    const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    ppoll(sources.fds_, sources.count_, &time, nullptr);
  }
  doorbell_->server.store(shm::ServerSleep::no, std::memory_order_relaxed);
  if (sources.fds_[sources.count_ - 1].revents) shm::drain_bell(server_bell_);
  return true;
}

}  // namespace heddle::park
