// What a context keeps of its peers. Private to transport/tcp.
#pragma once

#include <netinet/in.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/address.hpp"
#include "transport/tcp/packet.hpp"
#include "transport/wire.hpp"

namespace heddle::tcp {

/// Of CLOCK_MONOTONIC.
inline std::int64_t seconds_now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

/// What a process of this job says in a packet of this kind.
std::uint64_t own_proof(PacketKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t detail) noexcept;
/// The addresses of this host. They change only before the first `Context::open`.
const std::vector<HostAddress>& own_host() noexcept;
/// What has been learnt about them.
Experience& experience() noexcept;

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

struct Peer;

struct Connection {
  /// How far the two ends know each other.
  enum class Phase : std::uint8_t {
    nameless,  ///< accepted, and has not greeted
    greeted,   ///< accepted and welcomed: who connected decides whether it is used
    trying,    ///< connected to one of the peer's addresses, and not yet welcomed (Trial)
    joined,    ///< in use
  };
  int fd = -1;                ///< -1: broken
  Peer* peer = nullptr;       ///< null: `nameless` or `greeted`
  Phase phase = Phase::nameless;
  std::int16_t own = -1;      ///< index of the address of this host that it uses; -1: not known
  Endpoint there;             ///< the other end
  std::uint64_t from = 0;     ///< with `greeted`: the identity of who greeted
  std::uint64_t challenge = 0;  ///< in the welcome that was sent or has come
  std::size_t path = 0;       ///< with `trying`: index in Trial::paths
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

struct Connection;

/// The search for the address at which a peer answers. What is sent to it waits meanwhile.
struct Trial {
  std::vector<Path> paths;      ///< best first
  std::vector<int> errors;      ///< what became of each; 0: not over
  std::size_t next = 0;         ///< to be tried
  std::size_t live = 0;         ///< being tried
  std::int64_t since = 0;       ///< when the last one was begun; seconds of CLOCK_MONOTONIC
  bool cable = false;           ///< one failed as where a cable is out: it may be back in a moment
  Connection* found = nullptr;  ///< where the peer has answered; the search ends with this look
  Packet *head = nullptr, *tail = nullptr;
};

struct Peer {
  std::uint64_t identity = 0;
  std::string name;           ///< its addresses, until there is a connection
  wire::Address address = wire::no_address;
  Connection* out = nullptr;  ///< what is sent goes here
  Connection* offered = nullptr;  ///< where to change over to when `out` is empty
  std::size_t reads = 0;      ///< of its memory, under way
  int error = 0;              ///< it cannot be reached any more
  std::unique_ptr<Trial> trial;  ///< while there is no connection; and, where it has failed, for the message
};

}  // namespace heddle::tcp
