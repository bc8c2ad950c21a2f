// How a context finds the address at which a peer answers: one after the other, best first, until the process that is meant says so.
// docs/design/tcp.md
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/ofi/tcp_watch.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {
namespace {

/// How long an address is given before the next one is tried beside it. A peer that computes answers within a second: its helper thread does.
constexpr std::int64_t seconds_alone = 2;

}  // namespace

Experience& experience() noexcept {
  static Experience& one = *new Experience;  // never destroyed: contexts may outlive static destructors
  return one;
}

namespace {

/// Whether nothing comes back from an address, in contrast to one where somebody else is, or nobody listens.
bool is_unreachable(int error) noexcept { return error == EHOSTUNREACH || error == ETIMEDOUT || error == EHOSTDOWN || error == ENETUNREACH; }

/// Whether the other end's kernel has answered.
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

/// Tries the next address, or the ones after it where that fails at once. Where none is left and none is being tried the peer is given up,
/// or all are tried again.
void Context::try_next(Peer& peer) noexcept {
  Trial& trial = *peer.trial;
  for (;;) {
    while (trial.next < trial.paths.size()) {
      const std::size_t path = trial.next++;
      const int fd = begin_connecting(trial.paths[path].to);
      if (fd >= 0) return begin_attempt(peer, path, fd);
      trial.errors[path] = -fd;
    }
    if (trial.live) return;
    if (!std::exchange(trial.cable, false)) return give_up(peer);
    trial.next = 0;
  }
}

void Context::begin_attempt(Peer& peer, std::size_t path, int fd) noexcept {
  Trial& trial = *peer.trial;
  ++trial.live;
  trial.errors[path] = 0;
  trial.since = seconds_now();
  Connection& connection = new_connection(fd);
  connection.peer = &peer;
  connection.phase = Connection::Phase::trying;
  connection.path = path;
  connection.there = trial.paths[path].to;
  connection.own = static_cast<std::int16_t>(trial.paths[path].own);
  greet(connection, true);
}

/// An address was tried in vain.
void Context::end_attempt(Connection& connection, int error) noexcept {
  end(connection);
  drop(connection.head, connection.tail, error);
  Peer& peer = *connection.peer;
  Trial& trial = *peer.trial;
  --trial.live;
  if (trial.found == &connection) trial.found = nullptr;
  trial.errors[connection.path] = error;
  // Not a router that says so at once: a cable, which may be back in a moment. Who waits for the peer knows for how long.
  if ((error == EHOSTUNREACH || error == ETIMEDOUT) && seconds_now() - connection.since >= 1) trial.cable = true;
  try_next(peer);
}

/// What waits for a peer that cannot be found fails.
void Context::give_up(Peer& peer) noexcept {
  Trial& trial = *peer.trial;
  std::erase(trials_, &peer);
  // Who is refused by all has been told so by the peer's host, if its first address is one. Who was let in and then thrown out met the peer,
  // as it left, or a stranger.
  peer.error = trial.errors.empty() ? EDESTADDRREQ : trial.errors[0];
  for (const int error : trial.errors)
    if (error == ECONNRESET || error == EPIPE) peer.error = ECONNRESET;
  drop(trial.head, trial.tail, peer.error);
  for (std::size_t slot = 0; slot < reads_under_way_.size(); ++slot)
    if (reads_under_way_[slot].operation && reads_under_way_[slot].peer == &peer) end_read(slot, peer.error);
}

/// Ends the search: what waited for it is sent on this connection.
void Context::take_over(Peer& peer, Connection& connection) noexcept {
  const std::unique_ptr<Trial> trial = std::move(peer.trial);
  std::erase(trials_, &peer);
  std::string().swap(peer.name);
  peer.out = &connection;
  for (auto& other : connections_) {
    if (other->fd < 0 || other->peer != &peer || other->phase != Connection::Phase::trying) continue;
    end(*other);
    drop(other->head, other->tail, ECANCELED);  // its greeting
  }
  if (trial->head) {
    if (connection.head) connection.tail->next = trial->head; else connection.head = trial->head;
    connection.tail = trial->tail;
  }
  if (!connection.head) return;
  later_ = true;  // it leaves at the end of the step
  if (connection.waiting) return;
  connection.waiting = true;
  backlog_.push_back(&connection);
}

/// The peer that was meant answers. Where it was merely slow it may have been tried at another address too, and answers there as well: the best of
/// these is used. False when this is somebody else.
bool Context::welcomed(Connection& connection, std::uint64_t proof, const std::byte* body) noexcept {
  std::memcpy(&connection.challenge, body, sizeof connection.challenge);
  if (proof != own_proof(PacketKind::welcome, connection.peer->identity, identity_, connection.challenge)) return false;
  Connection*& found = connection.peer->trial->found;
  if (!found || connection.path < found->path) found = &connection;
  return found_ = true;
}

/// Ends the searches that have found somebody.
void Context::end_searches() noexcept {
  found_ = false;
  for (std::size_t i = trials_.size(); i-- > 0;) {  // it goes from the list
    Peer& peer = *trials_[i];
    const Trial& trial = *peer.trial;
    Connection* const found = trial.found;
    if (!found) continue;
    std::vector<Path> failed;
    for (std::size_t path = 0; path < found->path; ++path)
      if (is_unreachable(trial.errors[path])) failed.push_back(trial.paths[path]);
    for (const auto& other : connections_)
      if (other->fd >= 0 && other->peer == &peer && other->phase == Connection::Phase::trying && other->path < found->path && !is_connected(other->fd))
        failed.push_back(trial.paths[other->path]);
    experience().learn(failed, trial.paths[found->path]);
    found->phase = Connection::Phase::joined;
    Packet& choice = *new_packet();
    choice.fill(PacketKind::choice, own_proof(PacketKind::choice, identity_, peer.identity, found->challenge), 0);
    choice.finish();
    if (found->head) found->tail->next = &choice; else found->head = &choice;  // it leaves with what waits
    found->tail = &choice;
    take_over(peer, *found);
  }
}

/// Where an address is silent, the next one is tried as well.
void Context::look_at_trials() noexcept {
  const std::int64_t now = seconds_now();
  if (std::exchange(looked_at_trials_, now) == now) return;
  for (std::size_t i = trials_.size(); i-- > 0;) {  // giving up removes one
    Trial& trial = *trials_[i]->trial;
    if (trial.next < trial.paths.size() && now - trial.since >= seconds_alone) try_next(*trials_[i]);
  }
}

std::string Context::way(wire::Address address) const {
  const Peer& peer = *peers_[address];
  const auto text = [](const Endpoint& to, int own) {
    const std::vector<HostAddress>& host = own_host();
    Endpoint from;
    if (own < 0 && route_of_kernel(to, from)) own = index_of(host, from);
    else for (std::size_t i = 0; own < 0 && i < host.size(); ++i)  // without a route: the best one that this job uses
      if (host[i].offered) own = static_cast<int>(i);
    return text_of(to, own, host);
  };
  if (peer.out) return text(peer.out->there, peer.out->own);
  if (!peer.trial) return {};
  std::string tried;
  for (std::size_t i = 0; i < peer.trial->paths.size(); ++i) {
    const Path& path = peer.trial->paths[i];
    if (i) tried += ", ";
    tried += text(path.to, path.own);
    if (peer.trial->paths.size() > 1) tried += std::string(" (") + text_of_error(peer.trial->errors[i]) + ")";
  }
  return tried;
}

wire::Address Context::find_silent(int seconds, std::string& host) noexcept {
  for (const auto& connection : connections_) {
    if (connection->fd < 0 || connection->phase != Connection::Phase::joined) continue;
    ofi::ask_when_silent(connection->fd, seconds);
    if (!ofi::is_silent(connection->fd, seconds)) continue;
    host = connection->there.text();
    return connection->peer->address;
  }
  return wire::no_address;
}

}  // namespace heddle::tcp
