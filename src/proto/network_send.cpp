// Sends to processes that shared memory does not reach.
#include <cstring>

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"

namespace heddle::proto::network {
namespace {

/// The network's word that the bytes of a send are out of its user's hands.
net::Completion& when_sent(Request& send) noexcept {
  send.network.done = [](net::Completion& self, Held& held, int) noexcept {
    complete(*static_cast<Request::NetworkCompletion&>(self).request, VciGuard::of(held));
  };
  send.network.request = &send;
  return send.network;
}

/// A small message is copied, and may share a frame with others.
void send_copy(VciGuard& guard, net::Engine& engine, net::Connection& connection, Request& send) noexcept {
  const EagerHead head(send);
  std::byte* to = engine.append(guard, connection, head.record, head.bytes + send.capacity);
  if (head.bytes) std::memcpy(to, &head.ack, head.bytes);
  to += head.bytes;
  send.buffer.pack(0, to, send.capacity);
  if (head.bytes) engine.send_appended(guard, connection);  // complete when it is acknowledged
  else engine.send_appended(guard, connection, when_sent(send));
}

/// Mid-size: eager, but from the user's buffer, in a frame of its own.
void send_uncopied(VciGuard& guard, net::Engine& engine, net::Connection& connection, Request& send) noexcept {
  const EagerHead head(send);
  engine.send_uncopied(guard, connection, head.record, &head.ack, head.bytes, send.buffer.data(),
                       send.capacity, head.bytes ? nullptr : &when_sent(send));
}

}  // namespace

bool try_send(VciGuard& guard, Address to, const RecordHead& head, const std::byte* bytes, std::size_t n) noexcept {
  net::Engine& engine = network_of(guard.vci());
  return engine.try_send(guard, engine.connection_to(to.process, to.lane), head, bytes, n);
}

void send(VciGuard& guard, Request& send, Address to) noexcept {
  net::Engine& engine = network_of(guard.vci());
  net::Connection& connection = engine.connection_to(to.process, to.lane);
  const bool eager = send.capacity <= engine.common().eager && engine.has_credit(connection);
  if (eager && send.capacity <= engine.common().copy_limit) return send_copy(guard, engine, connection, send);
  if (eager && send.buffer.contiguous() && engine.capabilities().sends_parts) return send_uncopied(guard, engine, connection, send);
  send_request(guard, connection, send);
}

void push(VciGuard& guard, ProcessIndex process, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept {
  net::Engine& engine = network_of(guard.vci());
  engine.push(guard, engine.connection_to(process, lane), head, payload, bytes);
}

bool has_left(Vci& vci, ProcessIndex process, Lane lane) noexcept { return network_of(vci).has_left(process, lane); }

bool is_finishing(Vci& vci, ProcessIndex process, Lane lane) noexcept {
  const net::Engine* engine = vci.net.load(std::memory_order_acquire);  // pairs with open_network
  return !engine || engine->is_finishing(process, vci_of(lane));
}

}  // namespace heddle::proto::network
