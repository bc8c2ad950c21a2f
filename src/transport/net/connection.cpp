// Who is at the other end: connections, the addresses they need, and what is said of one that is lost.
#include "transport/net/connection.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/log.hpp"
#include "transport/net/control.hpp"
#include "transport/net/engine.hpp"
#include "transport/net/liveness.hpp"
#include "transport/shm/node.hpp"

namespace heddle::net {
namespace {

/// By lane, as senders ask, or by VCI: two maps.
template <typename LaneOrVci>
std::uint64_t key_of(ProcessIndex process, LaneOrVci way) noexcept { return std::uint64_t{process} << 16 | number(way); }

const char* advice_for(const Connection& connection) noexcept {
  return connection.expected || connection.acked ? "" : ". Nothing has ever come from there: HEDDLE_NET says which network is the one between the hosts";
}

}  // namespace

Connection& Engine::new_connection(ProcessIndex process, VciIndex vci) noexcept {
  auto connection = std::make_unique<Connection>();
  connection->engine = this;
  connection->process = process;
  connection->vci = vci;
  return *(connections_[key_of(process, vci)] = std::move(connection));
}

Connection* Engine::find(ProcessIndex process, VciIndex vci) const noexcept {
  const auto found = connections_.find(key_of(process, vci));
  return found == connections_.end() ? nullptr : found->second.get();
}

Connection& Engine::connection_to(ProcessIndex process, Lane lane) noexcept {
  const auto known = by_lane_.find(key_of(process, lane));
  if (known != by_lane_.end()) [[likely]] return *known->second;
  const ProcessAddress& peer = common_.address_of(process);
  const VciIndex vci = vci_at(number(lane) % peer.vcis);
  Connection* connection = find(process, vci);
  if (!connection) {
    connection = &new_connection(process, vci);
    connection->greet = true;
    if (vci == VciIndex{}) {
      context_->watch(peer.name, process);
      connection->address = context_->insert(peer.name);
      if (connection->address == wire::no_address) lost(*connection, "looking up its address", EADDRNOTAVAIL);
    }
  }
  by_lane_[key_of(process, lane)] = connection;
  return *connection;
}

void Engine::append_name(Held& held, Connection& connection, RecordKind kind, VciIndex vci, std::string_view name) noexcept {
  const NetworkName head{vci, static_cast<std::uint16_t>(name.size()), 0};
  std::byte* to = append(held, connection, {0, 0, 0, kind}, sizeof head + name.size());
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, name.data(), name.size());
}

/// Begins the first frame to a peer with our address, and asks for its own if that is not known.
void Engine::greet(Held& held, Connection& connection) noexcept {
  connection.greet = false;
  append_name(held, connection, Control::hello, vci_, name());
  if (connection.address == wire::no_address) ask_address(held, connection);
}

/// Asks VCI 0 of the peer's process for the connection's address. The answer comes to this VCI.
void Engine::ask_address(Held& held, Connection& connection) noexcept {
  Connection& first = connection_to(connection.process, Lane{});
  const std::uint32_t wanted = number(connection.vci);
  std::memcpy(append(held, first, {0, 0, 0, Control::where}, sizeof wanted), &wanted, sizeof wanted);
  flush(held, first);
}

/// Gives the connection its address from a `hello` or `here`, and sends what waited for it.
void Engine::learn_address(Held& held, Connection& connection, const Record& record) noexcept {
  if (connection.address != wire::no_address) return;
  NetworkName head;
  std::memcpy(&head, record.payload, sizeof head);
  const std::string_view name(reinterpret_cast<const char*>(record.payload + sizeof head), head.length);
  context_->watch(name, connection.process);
  connection.address = context_->insert(name);
  if (connection.address == wire::no_address) lost(connection, "looking up its address", EADDRNOTAVAIL);
  flush(held, connection);
}

std::string Engine::way_to(const Connection& connection) const {
  const Connection* first = connection.address == wire::no_address ? find(connection.process, VciIndex{}) : &connection;
  if (first && first->address != wire::no_address)
    if (std::string way = context_->way(first->address); !way.empty()) return way;
  const wire::Choice& own = common_.choice;
  return own.address.empty() ? own.interface : own.interface + " " + own.address;
}

void Engine::lost(const Connection& connection, const char* doing, int error) const noexcept {
  await_the_launcher(common_.self.rank);
  sys::fatal("the connection to rank %u was lost while %s (%s, %s: %s): the process has died, its host is down, or the network between is "
             "cut%s", connection.process, doing, common_.choice.provider.c_str(), way_to(connection).c_str(),
             common_.factory->error_text(error).c_str(), advice_for(connection));
}

void Engine::give_up(const Connection& connection) const noexcept {
  await_the_launcher(common_.self.rank);
  sys::fatal("rank %u has not confirmed for %lld s what was sent to it (%s): its host is down, its process is stopped, or the network "
             "between is cut (HEDDLE_NET_TIMEOUT sets the time; 0: wait for ever)%s", connection.process,
             static_cast<long long>(common_.patience), way_to(connection).c_str(), advice_for(connection));
}

void await_the_launcher(ProcessIndex self) noexcept {
  constexpr useconds_t longest = 1'000'000, turn = 250'000;
  constexpr std::uint32_t turns = 8;
  usleep(longest + self % turns * turn);
}

}  // namespace heddle::net
