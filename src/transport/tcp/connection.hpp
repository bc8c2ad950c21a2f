// What a context keeps of its peers. Private to transport/tcp.
#pragma once

#include <netinet/in.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "transport/tcp/packet.hpp"
#include "transport/wire.hpp"

namespace heddle::tcp {

inline constexpr std::size_t largest_name = sizeof(sockaddr_in6);  ///< of a peer: its address as the kernel has it

/// Of CLOCK_MONOTONIC.
inline std::int64_t seconds_now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

/// Whether a greeting with this key comes from a process of this job.
bool is_key(std::uint64_t key) noexcept;

inline constexpr std::uint32_t no_region = ~std::uint32_t{0};

/// A packet on its way out: where its pieces lie.
struct Packet {
  Packet* next;
  wire::Operation* operation;  ///< complete when the packet has left; may be null
  unsigned first, count;       ///< of `parts`: those not sent yet
  std::size_t bytes;
  std::uint32_t region;        ///< whose memory it carries; `no_region`
  PacketHead head;
  std::byte small[40];         ///< for what the context itself sends
  iovec parts[5];              ///< head, up to three of the caller's, padding

  void fill(PacketKind kind, std::uint64_t id, std::size_t n) noexcept {
    head = {static_cast<std::uint32_t>(n), kind, packet_version, id};
    bytes = n;
    first = 0;
    count = 0;
    add(&head, sizeof head);
  }
  void add(void* data, std::size_t n) noexcept {
    if (n) parts[count++] = {data, n};
  }
  void finish() noexcept {
    static std::byte zeros[8] = {};
    add(zeros, padding(bytes));
  }
  [[nodiscard]] std::size_t left() const noexcept {
    std::size_t n = 0;
    for (unsigned i = first; i < count; ++i) n += parts[i].iov_len;
    return n;
  }
  /// Whether none of it has left.
  [[nodiscard]] bool is_whole() const noexcept { return first == 0 && parts[0].iov_len == sizeof head; }
  /// Takes away what was sent. True when that was all.
  bool advance(std::size_t sent) noexcept {
    for (; first < count; ++first) {
      iovec& part = parts[first];
      if (sent < part.iov_len) {
        part.iov_base = static_cast<std::byte*>(part.iov_base) + sent;
        part.iov_len -= sent;
        return false;
      }
      sent -= part.iov_len;
    }
    return true;
  }
};

struct Connection {
  int fd = -1;                ///< -1: broken
  Peer* peer = nullptr;       ///< null: has not greeted yet
  std::int64_t since = 0;     ///< when it was accepted, or last tried to connect; seconds of CLOCK_MONOTONIC
  bool stands = false;        ///< both ends know of it
  Packet *head = nullptr, *tail = nullptr;  ///< not sent yet, or not whole
  bool waiting = false;       ///< in Context::backlog_
  bool refused = false;       ///< the peer takes no more: only to be read
  bool armed = false;         ///< epoll tells when it can be written
  bool queued = false;        ///< in Context::ready_
  bool heard = false;         ///< in Context::heard_
  std::byte* buffer = nullptr;  ///< lent while it holds something
  std::size_t begin = 0, end = 0;
  // A reply that arrives: the rest of it goes to the caller's memory.
  std::byte* landing = nullptr;
  std::size_t landing_left = 0, landing_read = 0, skip = 0;
};

struct Peer {
  std::string name;
  wire::Address address = wire::no_address;
  Connection* out = nullptr;  ///< what is sent goes here
  Connection* offered = nullptr;  ///< where to change over to when `out` is empty
  std::size_t reads = 0;      ///< of its memory, under way
  int error = 0;              ///< it cannot be reached any more
};

}  // namespace heddle::tcp
