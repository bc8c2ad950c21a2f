// Finds the address at which a peer answers: tries its addresses best first until the right process identifies itself.
// docs/design/tcp.md
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/socket_silence.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {
namespace {

/// How long an address may be silent before the next one is tried in parallel. A peer that computes answers within a second, by its helper thread.
constexpr std::int64_t seconds_alone = 2;

}  // namespace

Experience& experience() noexcept {
  static Experience& one = *new Experience;  // never destroyed: contexts may outlive static destructors
  return one;
}

namespace {

/// Whether an address is silent, as opposed to used by another host or refusing connections.
bool is_unreachable(int error) noexcept { return error == EHOSTUNREACH || error == ETIMEDOUT || error == EHOSTDOWN || error == ENETUNREACH; }

/// Whether the TCP handshake is complete.
bool is_connected(int fd) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state != TCP_SYN_SENT;
}

const char* text_of_error(int error) noexcept {
  switch (error) {
    case 0: return "no answer";
    case ECONNRESET:
    case EPIPE:
    case EPROTO: return "something else answers there";
    default: return std::strerror(error);
  }
}

}  // namespace

/// Tries the next address that does not fail at once. With none left and none pending, it starts over after a cable fault, else gives up.
void Context::try_next(Peer& peer) noexcept {
  ConnectAttempt& attempt = *peer.attempt;
  for (;;) {
    while (attempt.next < attempt.paths.size()) {
      const std::size_t path = attempt.next++;
      const int fd = begin_connecting(attempt.paths[path].to);
      if (fd >= 0) return try_address(peer, path, fd);
      attempt.errors[path] = -fd;
    }
    if (attempt.live) return;
    if (!std::exchange(attempt.cable, false)) return give_up(peer);
    attempt.next = 0;
  }
}

void Context::try_address(Peer& peer, std::size_t path, int fd) noexcept {
  ConnectAttempt& attempt = *peer.attempt;
  ++attempt.live;
  attempt.errors[path] = 0;
  attempt.since = seconds_now();
  Connection& connection = new_connection(fd);
  connection.peer = &peer;
  connection.phase = Connection::Phase::trying;
  connection.path = path;
  connection.there = attempt.paths[path].to;
  connection.own = static_cast<std::int16_t>(attempt.paths[path].own);
  greet(connection, true);
}

/// Records that an address failed, and tries the next one.
void Context::address_failed(Connection& connection, int error) noexcept {
  end(connection);
  drop(connection.head, connection.tail, error);
  Peer& peer = *connection.peer;
  ConnectAttempt& attempt = *peer.attempt;
  --attempt.live;
  if (attempt.found == &connection) attempt.found = nullptr;
  attempt.errors[connection.path] = error;
  // Timed out rather than rejected by a router: probably a cable, so retry. The layer above bounds the waiting (HEDDLE_NET_TIMEOUT).
  if ((error == EHOSTUNREACH || error == ETIMEDOUT) && seconds_now() - connection.since >= 1) attempt.cable = true;
  try_next(peer);
}

/// Fails everything that waits for a peer none of whose addresses works.
void Context::give_up(Peer& peer) noexcept {
  ConnectAttempt& attempt = *peer.attempt;
  std::erase(attempts_, &peer);
  // The error of the best address, unless a connection was accepted and then closed: that was the peer leaving, or a stranger.
  peer.error = attempt.errors.empty() ? EDESTADDRREQ : attempt.errors[0];
  for (const int error : attempt.errors)
    if (error == ECONNRESET || error == EPIPE) peer.error = ECONNRESET;
  drop(attempt.head, attempt.tail, peer.error);
  for (std::size_t slot = 0; slot < reads_under_way_.size(); ++slot)
    if (reads_under_way_[slot].operation && reads_under_way_[slot].peer == &peer) end_read(slot, peer.error);
}

/// Ends the attempt: everything that waited for it is sent on this connection.
void Context::take_over(Peer& peer, Connection& connection) noexcept {
  const std::unique_ptr<ConnectAttempt> attempt = std::move(peer.attempt);
  std::erase(attempts_, &peer);
  std::string().swap(peer.name);
  peer.out = &connection;
  for (auto& other : connections_) {
    if (other->fd < 0 || other->peer != &peer || other->phase != Connection::Phase::trying) continue;
    end(*other);
    drop(other->head, other->tail, ECANCELED);  // its greeting
  }
  if (attempt->head) {
    if (connection.head) connection.tail->next = attempt->head; else connection.head = attempt->head;
    connection.tail = attempt->tail;
  }
  if (!connection.head) return;
  later_ = true;  // sent at the end of the step
  if (connection.waiting) return;
  connection.waiting = true;
  backlog_.push_back(&connection);
}

/// Checks a welcome. A slow peer may answer at several addresses; the best of these is used. False if another process answered.
bool Context::welcomed(Connection& connection, std::uint64_t proof, const std::byte* body) noexcept {
  std::memcpy(&connection.challenge, body, sizeof connection.challenge);
  if (proof != own_proof(PacketKind::welcome, connection.peer->identity, identity_, connection.challenge)) return false;
  Connection*& found = connection.peer->attempt->found;
  if (!found || connection.path < found->path) found = &connection;
  return found_ = true;
}

/// Ends the attempts whose peer has answered.
void Context::finish_attempts() noexcept {
  found_ = false;
  for (std::size_t i = attempts_.size(); i-- > 0;) {  // take_over removes it from the list
    Peer& peer = *attempts_[i];
    const ConnectAttempt& attempt = *peer.attempt;
    Connection* const found = attempt.found;
    if (!found) continue;
    std::vector<Path> failed;
    for (std::size_t path = 0; path < found->path; ++path)
      if (is_unreachable(attempt.errors[path])) failed.push_back(attempt.paths[path]);
    for (const auto& other : connections_)
      if (other->fd >= 0 && other->peer == &peer && other->phase == Connection::Phase::trying && other->path < found->path && !is_connected(other->fd))
        failed.push_back(attempt.paths[other->path]);
    experience().learn(failed, attempt.paths[found->path]);
    found->phase = Connection::Phase::joined;
    Packet& choice = *new_packet();
    choice.fill(PacketKind::choice, own_proof(PacketKind::choice, identity_, peer.identity, found->challenge), 0);
    choice.finish();
    if (found->head) found->tail->next = &choice; else found->head = &choice;  // sent together with what waits
    found->tail = &choice;
    take_over(peer, *found);
  }
}

/// Tries the next address in parallel where one stays silent.
void Context::check_attempts() noexcept {
  const std::int64_t now = seconds_now();
  if (std::exchange(attempts_checked_, now) == now) return;
  for (std::size_t i = attempts_.size(); i-- > 0;) {  // give_up removes it from the list
    ConnectAttempt& attempt = *attempts_[i]->attempt;
    if (attempt.next < attempt.paths.size() && now - attempt.since >= seconds_alone) try_next(*attempts_[i]);
  }
}

std::string Context::way(wire::Address address) const {
  const Peer& peer = *peers_[address];
  const auto text = [](const Endpoint& to, int own) {
    const std::vector<HostAddress>& host = own_host();
    Endpoint from;
    if (own < 0 && route_of_kernel(to, from)) own = index_of(host, from);
    else for (std::size_t i = 0; own < 0 && i < host.size(); ++i)  // no route: the best address that this job uses
      if (host[i].offered) own = static_cast<int>(i);
    return text_of(to, own, host);
  };
  if (peer.out) return text(peer.out->there, peer.out->own);
  if (!peer.attempt) return {};
  std::string tried;
  for (std::size_t i = 0; i < peer.attempt->paths.size(); ++i) {
    const Path& path = peer.attempt->paths[i];
    if (i) tried += ", ";
    tried += text(path.to, path.own);
    if (peer.attempt->paths.size() > 1) tried += std::string(" (") + text_of_error(peer.attempt->errors[i]) + ")";
  }
  return tried;
}

wire::Address Context::find_silent(int seconds, std::string& host) noexcept {
  for (const auto& connection : connections_) {
    if (connection->fd < 0 || connection->phase != Connection::Phase::joined) continue;
    ask_when_silent(connection->fd, seconds);
    if (!is_silent(connection->fd, seconds)) continue;
    host = connection->there.text();
    return connection->peer->address;
  }
  return wire::no_address;
}

}  // namespace heddle::tcp
