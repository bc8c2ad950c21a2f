// Opening and closing a context, and the life of its connections: connect, accept, greet, switch, end.
#include "transport/tcp/context.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/tcp/connection.hpp"

namespace heddle::tcp {
namespace {

HEDDLE_PARAM_SIZE(socket_buffer, "HEDDLE_TCP_BUFFER", 0, 0, 1 << 30, "bytes that the kernel buffers for each direction of a TCP connection; 0: as it sees fit");

HEDDLE_PARAM_TEXT(local_congestion, "HEDDLE_TCP_LOCAL_CONGESTION", "reno",
                  "how TCP connections inside one host avoid congestion, of which there is none; empty: as the system does elsewhere");

std::vector<HostAddress>& host = *new std::vector<HostAddress>;  // never destroyed: contexts may outlive static destructors
std::uint64_t job_key = 0;

/// Makes a descriptor, raising the soft limit to the hard one if the process has reached it.
template <typename Make>
int make_descriptor(Make&& make) noexcept {
  int fd = make();
  rlimit limit{};
  if (fd < 0 && errno == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (!setrlimit(RLIMIT_NOFILE, &limit)) fd = make();
  }
  return fd;
}

/// Whether a connection to `other` stays on this host.
bool is_own_host(const Endpoint& other) noexcept {
  return index_of(host, other) >= 0;
}

void prepare(int fd, const Endpoint& other) noexcept {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Retransmits soon after a short outage instead of backing off. Kernels before 6.15 know only the first option.
  setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
  constexpr int rto_max_ms = 44, longest = 1000;  // TCP_RTO_MAX_MS
  setsockopt(fd, IPPROTO_TCP, rto_max_ms, &longest, sizeof longest);
  // Pacing algorithms (bbr) mistake the moments in which the other end has no core for a slow path.
  const char* const congestion = local_congestion.text();
  if (*congestion && is_own_host(other) && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, static_cast<socklen_t>(std::strlen(congestion))) &&
      local_congestion.is_set())
    HEDDLE_NOTICE_ONCE("HEDDLE_TCP_LOCAL_CONGESTION=%.80s is ignored: %s. This host offers what is in "
                       "/proc/sys/net/ipv4/tcp_allowed_congestion_control.", congestion, std::strerror(errno));
  const int bytes = static_cast<int>(socket_buffer.value());
  if (bytes <= 0) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

/// A process of the job greets as soon as it connects, or as its cable is back. Anything slower is a stranger, which must not hold a descriptor
/// for ever, least of all when descriptors are scarce.
constexpr std::int64_t seconds_to_greet = 60, seconds_where_scarce = 1;

/// Index of this host's address that a connection uses; -1: unknown.
int own_of(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes)) return -1;
  return index_of(host, Endpoint::of(address));
}

bool failed(const char* what, std::string& problem) {
  problem = std::string("TCP: ") + what + ": " + std::strerror(errno);
  return false;
}

}  // namespace

void set_host(std::vector<HostAddress> addresses) { host = std::move(addresses); }
void set_address(const sockaddr_storage& address) {
  HostAddress one;
  one.address = Endpoint::of(address);
  one.address.port = 0;
  one.prefix = 128;
  host.assign(1, one);
}
const std::vector<HostAddress>& own_host() noexcept { return host; }
void set_key(std::uint64_t key) noexcept { job_key = key; }
std::uint64_t own_proof(PacketKind kind, std::uint64_t from, std::uint64_t to, std::uint64_t detail) noexcept {
  return proof_of(job_key, kind, from, to, detail);
}

Context::Context() = default;
Context::~Context() { Context::close(); }

/// Listens at one port of the offered address, or of all the host's addresses if several are offered: a socket for each would cost a descriptor
/// each. `accept_all` closes connections to addresses that were not offered.
bool Context::listen_at(std::string& problem) {
  Name name;
  const HostAddress* only = nullptr;
  bool all_v4 = true;
  for (const HostAddress& one : host) {
    if (!one.offered) continue;
    name.addresses.push_back({one.address, one.megabits, one.linked});
    only = &one;
    all_v4 = all_v4 && one.address.is_v4();
  }
  everywhere_ = name.addresses.size() != 1;
  sockaddr_storage at{};
  socklen_t bytes = sizeof(sockaddr_in6);
  if (!everywhere_) bytes = only->address.fill(at);
  else if (all_v4) at.ss_family = AF_INET, bytes = sizeof(sockaddr_in);
  else at.ss_family = AF_INET6;
  listener_ = make_descriptor([&] { return socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (listener_ < 0) return failed("opening a socket", problem);
  const int off = 0;
  if (everywhere_ && !all_v4) setsockopt(listener_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&at), bytes)) return failed("binding a socket to this host's address", problem);
  if (listen(listener_, SOMAXCONN)) return failed("listening", problem);
  bytes = sizeof at;
  if (getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &bytes)) return failed("asking for the socket's address", problem);
  for (OfferedAddress& one : name.addresses) one.address.port = Endpoint::of(at).port;
  if (getrandom(&identity_, sizeof identity_, 0) != sizeof identity_) return failed("asking for a random number", problem);
  name.identity = identity_;
  name_ = encode(name);
  return true;
}

bool Context::open(std::size_t largest, bool, std::string& problem) {
  largest_ = largest;
  buffer_bytes_ = (std::max<std::size_t>(4 * (largest + sizeof(PacketHead) + 8), 256 << 10) + 7) & ~std::size_t{7};
  capabilities_.sends_parts = capabilities_.reads = capabilities_.tells_departures = capabilities_.keeps_messages = true;
  capabilities_.writes = capabilities_.writes_with_data = capabilities_.confirms = true;
  capabilities_.largest_read = capabilities_.largest_write = std::size_t{1} << 30;
  capabilities_.copied_write = largest_copied_write;
  if (!listen_at(problem)) return false;
  epoll_ = make_descriptor([] { return epoll_create1(EPOLL_CLOEXEC); });
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event)) return failed("epoll", problem);
  wait_fd_ = epoll_;
  capabilities_.waits_with_epoll = true;
  return true;
}

void Context::close() noexcept {
  for (auto& connection : connections_) {
    std::free(connection->buffer);  // also of connections that the peer has closed
    if (connection->fd < 0) continue;
    // Closing with unread data sends a reset, which discards what the peer has not read yet.
    shutdown(connection->fd, SHUT_WR);
    std::byte rest[4096];
    for (int i = 0; i < 256 && recv(connection->fd, rest, sizeof rest, MSG_DONTWAIT) > 0; ++i) {}
    ::close(connection->fd);
    while (Packet* packet = connection->head) {
      connection->head = packet->next;
      std::free(packet->block);
      delete packet;
    }
  }
  for (const auto& peer : peers_) {
    while (Packet* packet = peer->attempt ? peer->attempt->head : nullptr) {
      peer->attempt->head = packet->next;
      std::free(packet->block);
      delete packet;
    }
  }
  connections_.clear();
  peers_.clear();
  by_identity_.clear();
  attempts_.clear();
  touched_.clear();
  heard_.clear();
  ready_.clear();
  backlog_.clear();
  done_.clear();
  for (std::byte* buffer : free_buffers_) std::free(buffer);
  for (std::byte* block : free_blocks_) std::free(block);
  free_buffers_.clear();
  free_blocks_.clear();
  while (Packet* packet = free_packets_) {
    free_packets_ = packet->next;
    delete packet;
  }
  if (listener_ >= 0) ::close(listener_);
  if (epoll_ >= 0) ::close(epoll_);
  listener_ = epoll_ = wait_fd_ = -1;
  hot_ = nullptr;
}

// --- peers and connections ---------------------------------------------------------------------------------------------------------

Peer& Context::peer_of(std::uint64_t identity) {
  const auto found = by_identity_.find(identity);
  if (found != by_identity_.end()) return *found->second;
  peers_.push_back(std::make_unique<Peer>());
  Peer& peer = *peers_.back();
  peer.identity = identity;
  peer.address = peers_.size() - 1;
  by_identity_.emplace(identity, &peer);
  return peer;
}

wire::Address Context::insert(std::string_view name) noexcept {
  Name read;
  if (!decode(name, read) || read.addresses.empty()) return wire::no_address;
  Peer& peer = peer_of(read.identity);
  if (!peer.out && !peer.attempt) peer.name = name;
  return peer.address;
}

Connection& Context::new_connection(int fd) noexcept {
  ++living_;
  connections_.push_back(std::make_unique<Connection>());
  Connection& connection = *connections_.back();
  connection.fd = fd;
  connection.since = seconds_now();
  watch(connection);
  return connection;
}

void Context::watch(Connection& connection) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  connection.armed = false;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event)) sys::fatal("watching a connection: %s", std::strerror(errno));
}

/// Returns a socket that is connecting to an address, or a negative errno.
int Context::begin_connecting(const Endpoint& endpoint) noexcept {
  sockaddr_storage to;
  const socklen_t bytes = endpoint.fill(to);
  const auto make = [&] { return make_descriptor([&] { return socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }); };
  int fd = make();
  if (fd < 0 && (errno == EMFILE || errno == ENFILE) && send_strangers_away(seconds_where_scarce)) fd = make();
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE)
      sys::fatal("no connection to another rank: this process has too many files open, one for each rank it talks to; raise the limit (`ulimit -n`)");
    return -errno;
  }
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), bytes) && errno != EINPROGRESS) {
    const int error = errno;
    ::close(fd);
    return -error;
  }
  prepare(fd, endpoint);
  return fd;
}

void Context::greet(Connection& connection, bool asks_for_welcome) noexcept {
  const Greeting greeting{identity_, connection.peer->identity, asks_for_welcome};
  Packet& packet = *new_packet();
  static_assert(sizeof greeting <= sizeof packet.small);
  std::memcpy(packet.small, &greeting, sizeof greeting);
  packet.fill(PacketKind::greeting, own_proof(PacketKind::greeting, greeting.from, greeting.to, greeting.asks_for_welcome), sizeof greeting);
  packet.add(packet.small, sizeof greeting);
  packet.finish();
  post_on(connection, packet);
}

/// Begins to connect to a peer. False: failed at once.
bool Context::connect(Peer& peer) noexcept {
  Name name;
  if (!decode(peer.name, name)) name.addresses.clear();  // known only by its greeting, and that connection is gone
  auto attempt = std::make_unique<ConnectAttempt>();
  attempt->paths = paths_to(name, host, name.addresses.size() > 1 ? route_of_kernel : nullptr);
  experience().sort(attempt->paths);
  attempt->errors.assign(attempt->paths.size(), 0);
  if (attempt->paths.size() != 1) {
    peer.attempt = std::move(attempt);
    attempts_.push_back(&peer);
    try_next(peer);
    return !peer.error;
  }
  // With a single address there is nothing to choose: no welcome is awaited.
  const Path path = attempt->paths[0];
  const int fd = begin_connecting(path.to);
  if (fd < 0) {
    attempt->errors[0] = peer.error = -fd;
    peer.attempt = std::move(attempt);
    return false;
  }
  Connection& connection = new_connection(fd);
  connection.peer = &peer;
  connection.phase = Connection::Phase::joined;
  connection.there = path.to;
  connection.own = static_cast<std::int16_t>(path.own);
  peer.out = &connection;
  std::string().swap(peer.name);
  greet(connection, false);
  return !peer.error;
}

/// Connects again after a cable fault. The kernel fails a connect within seconds, when no host answers for the address; established connections
/// outlast that, so this must too. The layer above bounds the waiting. True if retrying: queued packets stay queued.
bool Context::connect_again(Connection& connection, int error) noexcept {
  if (connection.stands || !connection.peer || connection.peer->out != &connection || (error != EHOSTUNREACH && error != ETIMEDOUT)) return false;
  if (seconds_now() - connection.since < 1) return false;  // a router's rejection comes at once: not a cable
  const int fd = begin_connecting(connection.there);
  if (fd < 0) return false;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
  ::close(connection.fd);
  connection.fd = fd;
  connection.since = seconds_now();
  watch(connection);
  return true;
}

/// Closes connections that have not greeted for `seconds`. True if there were any.
bool Context::send_strangers_away(std::int64_t seconds) noexcept {
  const std::int64_t now = seconds_now();
  bool any = false;
  for (auto& connection : connections_)
    if (connection->fd >= 0 && connection->phase == Connection::Phase::nameless && now - connection->since > seconds) end(*connection), any = true;
  return any;
}

void Context::listen_on(bool wanted) noexcept {
  epoll_event event{};
  if (wanted) event.events = EPOLLIN;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
  deaf_since_ = wanted ? 0 : seconds_now();
}

void Context::accept_all() noexcept {
  send_strangers_away(seconds_to_greet);
  // Frees closed strangers and redundant connections. Nothing refers to them any more once they have left heard_ too, which a
  // process that never sleeps would never clear.
  std::erase_if(heard_, [](Connection* c) { return c->fd < 0 && !(c->heard = false); });
  std::erase_if(connections_, [](const auto& c) {
    return c->fd < 0 && (!c->peer || c->peer->out != c.get()) && !c->buffer && !c->queued && !c->waiting && !c->heard;
  });
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    const int fd = make_descriptor([&] { return accept4(listener_, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (fd >= 0) {
      const int own = everywhere_ ? own_of(fd) : -1;
      if (everywhere_ && (own < 0 || !host[static_cast<std::size_t>(own)].offered)) {
        ::close(fd);  // an address that was not offered: a network this job does not use
        continue;
      }
      const Endpoint there = Endpoint::of(from);
      prepare(fd, there);
      Connection& connection = new_connection(fd);
      connection.stands = true;
      connection.there = there;
      connection.own = static_cast<std::int16_t>(own);
      continue;
    }
    const bool scarce = errno == EMFILE || errno == ENFILE;
    if (!scarce) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (!send_strangers_away(seconds_where_scarce)) {
      HEDDLE_NOTICE_ONCE("a connection waits because this process has too many files open: raise the limit (`ulimit -n`)");
      return listen_on(false);  // the pending connection would wake us again and again
    }
  }
}

/// Handles a greeting. False if its proof is not of this job.
bool Context::greeted(Connection& connection, std::uint64_t proof, const std::byte* body) noexcept {
  Greeting greeting;
  std::memcpy(&greeting, body, sizeof greeting);
  if (proof != own_proof(PacketKind::greeting, greeting.from, greeting.to, greeting.asks_for_welcome)) return false;
  if (greeting.to != identity_) {  // this job, but another process: the address exists on several hosts
    break_off(connection, ECONNREFUSED);
    return true;
  }
  if (!greeting.asks_for_welcome) {
    join(connection, peer_of(greeting.from));
    return true;
  }
  connection.phase = Connection::Phase::greeted;
  connection.from = greeting.from;
  if (getrandom(&connection.challenge, sizeof connection.challenge, 0) != sizeof connection.challenge) sys::fatal("asking for a random number: %s", std::strerror(errno));
  Packet& packet = *new_packet();
  std::memcpy(packet.small, &connection.challenge, sizeof connection.challenge);
  packet.fill(PacketKind::welcome, own_proof(PacketKind::welcome, identity_, greeting.from, connection.challenge), sizeof connection.challenge);
  packet.add(packet.small, sizeof connection.challenge);
  packet.finish();
  post_on(connection, packet);
  return true;
}

/// Puts a connection from a peer to use.
void Context::join(Connection& connection, Peer& peer) noexcept {
  connection.phase = Connection::Phase::joined;
  connection.peer = &peer;
  if (!peer.out && peer.attempt && !peer.error) {
    take_over(peer, connection);  // the connect attempt is no longer needed
  } else if (!peer.out) {
    peer.out = &connection;
    std::string().swap(peer.name);
  } else if (peer.identity < identity_) {
    // Both ends have connected; one connection is enough, and the end with the greater identity switches.
    peer.offered = &connection;
    change_over(peer);
  }
}

/// Switches to the peer's connection once our own is drained. The peer reads ours to its end and closes it: an idle second connection would
/// cost every poll a system call.
void Context::change_over(Peer& peer) noexcept {
  if (!peer.offered || peer.out->head) return;
  shutdown(peer.out->fd, SHUT_WR);
  peer.out = std::exchange(peer.offered, nullptr);
}

/// Handles the other end's close. True if this was the redundant connection and it has been read to its end.
bool Context::part_with(Connection& connection) noexcept {
  if (connection.phase != Connection::Phase::joined || connection.peer->out == &connection || connection.peer->offered == &connection ||
      connection.begin != connection.end || connection.landing_left || connection.skip)
    return false;
  end(connection);
  return true;
}

/// Shuts the socket down before closing it: child processes may have inherited it, and an open copy would keep waking us and keep the peer
/// from seeing the end.
void Context::end(Connection& connection) noexcept {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
  shutdown(connection.fd, SHUT_RDWR);
  ::close(connection.fd);
  connection.fd = -1;
  --living_;
  if (hot_ == &connection) hot_ = nullptr;
}

void Context::break_off(Connection& connection, int error) noexcept {
  if (connection.fd < 0 || connect_again(connection, error)) return;
  if (connection.phase == Connection::Phase::trying) return address_failed(connection, error);
  end(connection);
  if (connection.peer && connection.peer->offered == &connection) connection.peer->offered = nullptr;
  drop(connection.head, connection.tail, error);
  Peer* peer = connection.peer;
  if (!peer) return;
  bool concerned = peer->out == &connection;
  for (std::size_t slot = 0; slot < reads_under_way_.size(); ++slot)
    if (reads_under_way_[slot].operation && reads_under_way_[slot].peer == peer) {
      Connection* const landing = reads_under_way_[slot].landing;
      end_read(slot, error);
      concerned = true;
      // The buffer belongs to the caller again, so the rest of the reply has nowhere to go.
      if (landing && landing != &connection) break_off(*landing, error);
    }
  if (concerned && !peer->error) peer->error = error;
}

void Context::want_writable(Connection& connection, bool wanted) noexcept {
  if (connection.armed == wanted || connection.fd < 0) return;
  connection.armed = wanted;
  epoll_event event{};
  event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = &connection;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
}

}  // namespace heddle::tcp
