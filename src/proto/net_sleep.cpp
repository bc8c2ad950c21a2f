// How a thread sleeps that the network is to wake: in a system call on the descriptors of the network and on a socket
// that is rung. docs/design/core.md, parking
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "proto/net_state.hpp"
#include "transport/shm/doorbell.hpp"

namespace heddle::net {
namespace {

/// What the network has for the sleeper to wait on. On the stack: who is woken has no time to give memory back, and what a thread keeps for
/// itself is gone when destructors of global objects sleep here.
struct Sources {
  pollfd fds[std::size(heddle::detail::pool_table) + 1];  ///< of each VCI, and a socket that is rung
  nfds_t count = 0;
  bool with_epoll = false;  ///< the last of `fds`
  bool awake = false;       ///< there is something to do now, or somebody at work
  bool silent = false;      ///< of some network no descriptor tells

  void add(int fd) noexcept { fds[count++] = {fd, POLLIN, 0}; }
};

void find_sources(const Vci* only, Sources& found) noexcept {
  for_each_vci([&](Vci& vci) {
    Net* net = vci.net.load(std::memory_order_acquire);
    if (!net) return;
    if (!VciGuard::try_hold(vci)) {
      found.awake = true;
      return;
    }
    VciGuard held(vci, VciGuard::Adopt{});
    if (net->context.wait_fd() < 0) {
      found.silent = true;
    } else if (!net->context.may_sleep()) {
      found.awake = true;
    } else if (!only || only == &vci) {
      found.add(net->context.wait_fd());
      found.with_epoll = net->context.waits_with_epoll();
    }
  });
}

/// For a process in which nobody rings but the helper.
void sleep_alone(Sources& sources, const timespec& limit) noexcept {
  // One queue less between the socket and us, where there is but one.
  epoll_event event;
  const bool one = sources.count == 1 && sources.with_epoll;
  if (one && (epoll_pwait2(sources.fds[0].fd, &event, 1, &limit, nullptr) >= 0 || errno == EINTR)) return;
  ppoll(sources.fds, sources.count, &limit, nullptr);  // also where a sandbox refuses what it does not know
}

/// Says that a thread sleeps at the network for a VCI (nullptr: for all), from when it is made until it goes.
class AtNetwork {
 public:
  explicit AtNetwork(const Vci* only) noexcept : only_(only), bit_(only ? std::uint64_t{1} << only->index : 0) {
    // Sequential consistency pairs with shm::ring: it finds that somebody sleeps here, or we find that it has rung.
    if (only)
      taken_ = doorbell_.at_network.fetch_or(bit_, std::memory_order_seq_cst) & bit_;
    else
      doorbell_.sentinel_at_network.store(1, std::memory_order_seq_cst);
  }
  AtNetwork(const AtNetwork&) = delete;
  AtNetwork& operator=(const AtNetwork&) = delete;
  ~AtNetwork() {
    if (taken_) return;
    if (!only_) {
      doorbell_.sentinel_at_network.store(0, std::memory_order_relaxed);
      return;
    }
    doorbell_.at_network.fetch_and(~bit_, std::memory_order_seq_cst);
    // Whoever has found the bit has published before it what this thread looks for from here on (Waiter::leave).
    // ThreadSanitizer does not see fences; it needs none here, for all that is looked at is atomic.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Another thread sleeps there for this VCI: it has the socket.
  [[nodiscard]] bool taken() const noexcept { return taken_; }
  [[nodiscard]] int bell() const noexcept {
    return only_ ? only_->net.load(std::memory_order_acquire)->bell : sentinel_bell;
  }
  [[nodiscard]] bool rung_since(std::uint32_t ticket) const noexcept {
    return doorbell_.bell.load(std::memory_order_seq_cst) != ticket;
  }

 private:
  shm::Doorbell& doorbell_ = shm::header->doorbell;
  const Vci* only_;
  std::uint64_t bit_;
  bool taken_ = false;
};

}  // namespace

proto::Slept sleep(bool sentinel, Vci* only, std::uint32_t ticket, long nap, long& limit) noexcept {
  Sources sources;
  find_sources(only, sources);
  const bool unreachable = shm::header->doorbell.unreachable.load(std::memory_order_relaxed);
  if (sources.awake)
    limit = 0;
  else if (sources.silent)
    limit = std::min(limit, nap);
  else if (unreachable)
    limit = std::min(limit, 1'000'000L);
  if (sources.awake || sources.silent || unreachable || !sources.count || !(sentinel || only))
    return proto::Slept::not_here;

  const timespec time{limit / 1'000'000'000, limit % 1'000'000'000};
  if (!runtime.threads.load(std::memory_order_relaxed) && (!shm::enabled() || runtime.local_size == 1)) {
    // The helper may have served what is waited for between our looks, of which the last failed because it had the VCI.
    if (shm::header->doorbell.bell.load(std::memory_order_acquire) != ticket) return proto::Slept::woken;
    sleep_alone(sources, time);
    return proto::Slept::in_vain;  // for others, of whom there are none
  }
  const AtNetwork here(only);
  if (here.taken()) return proto::Slept::not_here;
  sources.add(here.bell());
  if (here.rung_since(ticket)) return proto::Slept::woken;
  const int found = ppoll(sources.fds, sources.count, &time, nullptr);
  if (sources.fds[sources.count - 1].revents) shm::drain_bell(here.bell());
  return found > 0 ? proto::Slept::woken : proto::Slept::in_vain;
}

}  // namespace heddle::net
