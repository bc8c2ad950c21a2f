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
#include <utility>
#include <vector>

#include "transport/tcp/address.hpp"
#include "transport/tcp/packet.hpp"
#include "transport/wire.hpp"

namespace heddle::tcp {

/// Seconds of CLOCK_MONOTONIC.
inline std::int64_t seconds_now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

/// The proof that a process of this job puts into a packet of this kind.
std::uint64_t own_proof(PacketKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t detail) noexcept;
/// Which of them have led nowhere so far.
Experience& experience() noexcept;

inline constexpr std::uint32_t no_region = ~std::uint32_t{0};
inline constexpr std::size_t largest_copied_write = 4 << 10;  ///< bytes

struct Peer;

/// An outgoing packet: where its pieces lie.
struct Packet {
  Packet* next;
  wire::Operation* operation;  ///< complete when the packet has left; may be null
  unsigned first, count;       ///< of `parts`: those not sent yet
  std::size_t bytes;
  std::uint32_t region;        ///< whose memory it carries; `no_region`
  Peer* writes_to;             ///< with a write: in whose Peer::unsent it counts; null
  std::size_t weight;          ///< for how much
  std::byte* block;            ///< whole packets one behind the other, small writes: this instead of head and body; null
  std::size_t last;            ///< where in it the last one begins
  PacketHead head;
  std::byte small[40];         ///< body of packets that the context itself makes
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
  [[nodiscard]] bool is_whole() const noexcept {
    return first == 0 && (block ? parts[0].iov_base == block : parts[0].iov_len == sizeof head);
  }
  /// Removes the bytes that were sent. True when none are left.
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
  /// How far the handshake has come.
  enum class Phase : std::uint8_t {
    nameless,  ///< accepted; no greeting yet
    greeted,   ///< accepted and welcomed; the connecting end decides whether it is used
    trying,    ///< connecting to one of the peer's addresses; no welcome yet (ConnectAttempt)
    joined,    ///< in use
  };
  int fd = -1;                ///< -1: broken
  Peer* peer = nullptr;       ///< null: `nameless` or `greeted`
  Phase phase = Phase::nameless;
  std::int16_t own = -1;      ///< index of this host's address that it uses; -1: unknown
  Endpoint there;             ///< the other end
  std::uint64_t from = 0;     ///< with `greeted`: the identity in the greeting
  std::uint64_t challenge = 0;  ///< of the welcome that was sent or received
  std::size_t path = 0;       ///< with `trying`: index in ConnectAttempt::paths
  std::int64_t since = 0;     ///< when it was accepted or last began to connect; seconds of CLOCK_MONOTONIC
  bool stands = false;        ///< established, as far as both ends know
  Packet *head = nullptr, *tail = nullptr;  ///< outgoing packets, the first perhaps partly sent
  bool waiting = false;       ///< in Context::backlog_
  bool refused = false;       ///< the peer accepts no more data: read only
  bool armed = false;         ///< epoll tells when it can be written
  bool queued = false;        ///< in Context::ready_
  bool heard = false;         ///< in Context::heard_
  std::byte* buffer = nullptr;  ///< lent by the context while it holds data
  std::size_t begin = 0, end = 0;
  // The reply, or write, being received: the rest of it goes to the caller's memory, or to a region.
  std::byte* landing = nullptr;
  std::size_t landing_left = 0, skip = 0;
  PacketHead landing_head{};
  std::uint32_t landing_region = no_region;  ///< with a write
};

struct Connection;

/// The attempt to reach a peer: its addresses and what became of each. Packets to the peer wait here meanwhile.
struct ConnectAttempt {
  std::vector<Path> paths;      ///< best first
  std::vector<int> errors;      ///< errno of each; 0: not tried, or pending
  std::size_t next = 0;         ///< the next path to try
  std::size_t live = 0;         ///< paths being tried now
  std::int64_t since = 0;       ///< when the last path was begun; seconds of CLOCK_MONOTONIC
  bool cable = false;           ///< one failed as if a cable were out: start over instead of giving up
  Connection* found = nullptr;  ///< where the peer has answered; the attempt ends in the same poll
  Packet *head = nullptr, *tail = nullptr;
};

struct Peer {
  std::uint64_t identity = 0;
  std::string name;           ///< its encoded addresses, until there is a connection
  wire::Address address = wire::no_address;
  Connection* out = nullptr;  ///< the connection to send on
  Connection* offered = nullptr;  ///< the connection to switch to when `out` is drained
  std::size_t reads = 0;      ///< pending reads of its memory
  std::size_t confirms = 0;   ///< pending
  std::size_t unsent = 0;     ///< bytes that writes to its memory take here until they have left
  std::uint32_t written = 0;  ///< number of the last write to its memory
  // Of its writes to our memory. It changes over from one connection to another once (change_over), and what comes on the second may be
  // read first; so the numbers from `early_from` on may be in place before all up to `landed` are.
  std::uint32_t landed = 0, early_from = 0, early = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unconfirmed;  ///< numbers that it asks for, and ids of the questions
  int error = 0;              ///< errno once it can no longer be reached
  std::unique_ptr<ConnectAttempt> attempt;  ///< while there is no connection; after a failure, for the error text
};

}  // namespace heddle::tcp
