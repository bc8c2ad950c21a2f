// Peers that leave, or fall silent.
#include <bit>
#include <cerrno>
#include <vector>

#include "sys/log.hpp"
#include "transport/net/control.hpp"
#include "transport/net/engine.hpp"

namespace heddle::net {
namespace {

constexpr std::uint32_t notice_after = 5;  ///< seconds without a word of a peer that MPI_Finalize waits for

}  // namespace

/// A send failure is harmless if the peer may exit, or both ends are finalizing: the peer's word of that, or its confirmation, may be unread.
bool Engine::may_fail(const Connection& connection, int error) const noexcept {
  if (connection.peer_may_go) return true;
  const bool closed = error == ECONNRESET || error == EPIPE;
  return closed && common_.finishing.load(std::memory_order_relaxed) && capabilities().tells_departures;
}

/// While two ends take leave of each other, nothing unnecessary is sent: a message to a process that has left makes its system discard what
/// the peer has not read yet.
bool Engine::is_parting(const Connection& connection) const noexcept {
  return !capabilities().tells_departures && (connection.said_closing || connection.peer_closing);
}

/// Whether this process may leave as far as the peer is concerned: it has confirmed what it was sent, or does not want it; and it has read
/// our last word, where nobody would tell it that we have left.
bool Engine::has_parted(const Connection& connection) const noexcept {
  if (connection.gone || connection.peer_closing) return true;
  if (!capabilities().tells_departures) return connection.said_closing && connection.heard_farewell;
  return connection.sent == connection.acked || (connection.address != wire::no_address && context_->has_left(connection.address));
}

/// Where the network tells who has left; elsewhere only who has said a last word is known to be about to go.
bool Engine::is_known_to_have_left(const Connection& connection) const noexcept {
  return connection.gone ||
         (capabilities().tells_departures && connection.address != wire::no_address && context_->has_left(connection.address));
}

bool Engine::has_left(ProcessIndex process, Lane lane) noexcept { return is_known_to_have_left(connection_to(process, lane)); }

bool Engine::is_finishing(ProcessIndex process, VciIndex vci) const noexcept {
  const Connection* connection = find(process, vci);
  return !connection || connection->peer_closing || is_known_to_have_left(*connection);
}

/// Tells the peer that this process is about to leave; where it would learn of that by itself, only if something is to be confirmed.
void Engine::say_closing(Held& held, Connection& connection) noexcept {
  const bool needless = capabilities().tells_departures ? connection.sent == connection.acked && connection.received == connection.told
                                                        : has_parted(connection);
  if (needless) return;
  tell(held, connection, Control::closing);
  connection.said_closing = true;
}

void Engine::begin_closing(Held& held) noexcept {
  context_->report_all_sends(true);
  std::vector<Connection*> all;
  for (auto& entry : connections_) all.push_back(entry.second.get());
  for (Connection* connection : all) say_closing(held, *connection);
  flush(held);
}

bool Engine::has_closed(Held& held) noexcept {
  // What this process has sent can be lost though it is in the peer's kernel, if the process goes and the peer says something first.
  bool closed = dirty_.empty() && !under_way_;
  std::vector<Connection*> unsaid;
  for (const auto& entry : connections_) {
    Connection& connection = *entry.second;
    if (connection.head || connection.open || !has_parted(connection)) closed = false;
    // A message was exchanged since, or this is a newcomer: begin again.
    if (!capabilities().tells_departures && !connection.said_closing && !has_parted(connection)) unsaid.push_back(&connection);
  }
  for (Connection* connection : unsaid) say_closing(held, *connection);
  if (!unsaid.empty()) flush(held);
  return closed;
}

void Engine::tick(Held& held) noexcept {
  if (epoch_ == epoch_before_) {
    // Not the whole progress step: what runs at the end of one may be the program's own functions, which belong to its threads.
    for (int i = 0; i < 64 && poll(held, false); ++i) {}
    flush(held);
  }
  epoch_before_ = epoch_;
  const bool closing = common_.finishing.load(std::memory_order_relaxed);
  std::vector<Connection*> silent;
  for (auto& entry : connections_) {
    Connection& connection = *entry.second;
    const bool waits = (closing ? !has_parted(connection) : connection.sent != connection.acked && !connection.peer_closing) ||
                       connection.unanswered || connection.stalled;
    if (!waits || connection.acked != connection.acked_before || connection.moved != connection.moved_before) connection.silent = 0;
    else ++connection.silent;
    connection.acked_before = connection.acked;
    connection.moved_before = connection.moved;
    connection.stalled = false;  // who still wants to post says so again
    if (!connection.silent) continue;
    // Less and less often: a peer that is stopped finds every question as a connection to be accepted.
    if (closing && std::has_single_bit(connection.silent) && connection.address != wire::no_address && context_->has_left(connection.address)) {
      if (!connection.expected) lost(connection, "sending", ECONNREFUSED);  // it has never said a word: it may be there, and not to be reached
      connection.gone = true;
      flush(held, connection);
      common_.host->wake_sleepers(held);
      continue;
    }
    if (common_.patience > 0 && connection.silent > common_.patience) give_up(connection);
    if (closing && connection.silent == notice_after)
      HEDDLE_NOTICE_ONCE("MPI_Finalize waits for rank %u, which has not confirmed for %u s what was sent to it: it is stopped, or its host is busy "
                         "or cut off (HEDDLE_NET_TIMEOUT, %lld s, ends the wait and the job; 0: never)", connection.process, notice_after,
                         static_cast<long long>(common_.patience));
    if (!is_parting(connection)) silent.push_back(&connection);
  }
  for (Connection* connection : silent) {
    tell(held, *connection, Control::probe);
    flush(held, *connection);
  }
}

bool Engine::find_silent(int seconds, ProcessIndex& process, std::string& host) noexcept {
  const wire::Address silent = context_->find_silent(seconds, host);
  if (silent == wire::no_address) return false;
  bool found = false;
  for (const auto& entry : connections_) {
    if (entry.second->address != silent) continue;
    process = entry.second->process;
    found = true;
  }
  return found;
}

}  // namespace heddle::net
