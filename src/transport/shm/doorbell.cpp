#include "transport/shm/doorbell.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "sync/futex.hpp"

namespace heddle::shm {
namespace {

// The kernel chooses a free name of five letters in Linux's abstract space, where a killed process leaves nothing behind.
constexpr std::size_t letters = 5;
constexpr socklen_t name_bytes = offsetof(sockaddr_un, sun_path) + 1 + letters;

int new_socket() noexcept { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// The socket that all rings are sent from, never closed. It has no name and receives nothing. Made with the first bell, so that it exists when
/// the program has used up its descriptors. Relaxed: nothing else is published through the number.
std::atomic<int> from{-1};

bool open_from() noexcept {
  if (from.load(std::memory_order_relaxed) >= 0) return true;
  const int fd = new_socket();
  int none = -1;
  if (fd >= 0 && !from.compare_exchange_strong(none, fd, std::memory_order_relaxed)) close(fd);
  return fd >= 0 || none >= 0;
}

/// Rings that have not been received count against the buffer of the socket that they were sent from. When it is full, a new socket takes
/// over its number; the rings stay where they are. False: that was not the problem, or there is no descriptor.
bool renew(int fd) noexcept {
  int used = 0, most = 0;
  socklen_t bytes = sizeof most;
  if (ioctl(fd, SIOCOUTQ, &used) || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, &bytes) || used < most) return false;
  const int fresh = new_socket();
  if (fresh < 0) return false;
  const bool done = dup3(fresh, fd, O_CLOEXEC) >= 0;  // atomic, for threads that ring meanwhile
  close(fresh);
  return done;
}

void send_to(const Doorbell& doorbell, unsigned bell) noexcept {
  if (!open_from()) return;
  const int fd = from.load(std::memory_order_relaxed);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const std::uint64_t name = doorbell.sockets[bell].load(std::memory_order_relaxed);
  std::memcpy(to.sun_path + 1, &name, letters);
  const char byte = 0;
  const auto send = [&] {
    return sendto(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), name_bytes) == 1;
  };
  // A full socket at the other end holds enough rings, and one that is gone has nobody to wake.
  if (!send() && errno == EAGAIN && renew(fd)) send();
}

/// Counts the ring. This is also the barrier between what was published and the looks at who sleeps where: sequential consistency
/// pairs with AtNetwork (vci/park/network_sleep.cpp), which says that a thread sleeps at the network, then looks whether the bell has rung.
void count(Doorbell& doorbell) noexcept { doorbell.bell.fetch_add(1, std::memory_order_seq_cst); }
std::uint64_t at_network(const Doorbell& doorbell) noexcept {
  return doorbell.at_network.load(std::memory_order_seq_cst);
}
bool sentinel_there(const Doorbell& doorbell) noexcept { return doorbell.sentinel_at_network.load(std::memory_order_seq_cst); }

/// Wakes the server if it sleeps. Sequential consistency pairs with it as with those at the network.
void ring_server(Doorbell& doorbell) noexcept {
  switch (doorbell.server.load(std::memory_order_seq_cst)) {
    case ServerSleep::no: return;
    case ServerSleep::at_network: return send_to(doorbell, server_bell);
    case ServerSleep::on_word:
      doorbell.server_bell.fetch_add(1, std::memory_order_relaxed);
      sync::futex_wake(doorbell.server_bell, 1);
  }
}

}  // namespace

void ring(Doorbell& doorbell, unsigned vci, int most) noexcept {
  count(doorbell);
  // That thread serves the VCI for the others too, and tells the sentinel of what it leaves behind (Sleepers::leave).
  if (at_network(doorbell) >> vci & 1) return send_to(doorbell, vci);
  const long woken = sync::futex_wake_bits(doorbell.bell, doorbell_bits(vci), most);
  if (sentinel_there(doorbell)) return send_to(doorbell, sentinel_bell);
  if (woken <= 0) ring_server(doorbell);
}

void ring_sleepers(Doorbell& doorbell, unsigned vci) noexcept {
  count(doorbell);
  sync::futex_wake_bits(doorbell.bell, doorbell_bits(vci), INT_MAX);
  if (at_network(doorbell) >> vci & 1) send_to(doorbell, vci);
  if (sentinel_there(doorbell)) send_to(doorbell, sentinel_bell);
}

void ring_sentinel(Doorbell& doorbell) noexcept {
  count(doorbell);
  if (sentinel_there(doorbell)) return send_to(doorbell, sentinel_bell);
  ring_server(doorbell);
}

void call_server(Doorbell& doorbell) noexcept {
  count(doorbell);
  doorbell.server_bell.fetch_add(1, std::memory_order_seq_cst);
  sync::futex_wake(doorbell.server_bell, 1);
  if (doorbell.server.load(std::memory_order_seq_cst) == ServerSleep::at_network) send_to(doorbell, server_bell);
}

void ring_all(Doorbell& doorbell) noexcept {
  count(doorbell);
  sync::futex_wake_bits(doorbell.bell, all_doorbell_bits, INT_MAX);
  for (std::uint64_t mask = at_network(doorbell); mask; mask &= mask - 1)
    send_to(doorbell, static_cast<unsigned>(std::countr_zero(mask)));
  if (sentinel_there(doorbell)) send_to(doorbell, sentinel_bell);
  ring_server(doorbell);
}

void ring_any(Doorbell& doorbell) noexcept {
  count(doorbell);
  if (sync::futex_wake_bits(doorbell.bell, all_doorbell_bits, 1) > 0) return;
  if (const std::uint64_t mask = at_network(doorbell))
    send_to(doorbell, static_cast<unsigned>(std::countr_zero(mask)));
  else if (sentinel_there(doorbell))
    send_to(doorbell, sentinel_bell);
}

int open_bell(Doorbell& own, unsigned bell, std::string& problem) {
  const int fd = open_from() ? new_socket() : -1;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t bytes = sizeof name;
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)) ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) || bytes != name_bytes) {
    problem = std::string("a socket for wake-ups: ") + std::strerror(errno);
    if (fd >= 0) close(fd);
    return -1;
  }
  std::uint64_t text = 0;
  std::memcpy(&text, name.sun_path + 1, letters);
  own.sockets[bell].store(text, std::memory_order_relaxed);
  return fd;
}

void drain_bell(int fd) noexcept {
  char byte;
  for (int i = 0; i < 64 && recv(fd, &byte, 1, MSG_DONTWAIT) >= 0; ++i) {
  }
}

void publish_name_space(Doorbell& own) noexcept {
  struct stat about;
  own.name_space.store(stat("/proc/self/ns/net", &about) ? 0 : about.st_ino, std::memory_order_relaxed);
}

void check_reach(Doorbell& neighbour, const Doorbell& own) noexcept {
  if (neighbour.name_space.load(std::memory_order_relaxed) != own.name_space.load(std::memory_order_relaxed))
    neighbour.unreachable.store(1, std::memory_order_relaxed);
}

}  // namespace heddle::shm
