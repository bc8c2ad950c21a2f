// Large messages over the network.
//
//   sender                                   receiver
//   offer {address, key, bytes} -----------> matched
//                                            the network can read: fetches the bytes -------------------> finished
//                                            else, or small, or not one block at either end: pull ------> data … data
#include <cstring>
#include <new>

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"

namespace heddle::proto::network {

/// The network part of a large message, at either end.
struct Move : net::RemoteRead {
  Transfer* transfer = nullptr;
  wire::Registration memory;  ///< of the buffer at this end
};

namespace {

Transfer& new_transfer_on(net::Connection& connection, Request& request) noexcept {
  Transfer* t = new_transfer(request);
  t->net = new (std::nothrow) Move;
  if (!t->net) sys::fatal("no memory for a large message");
  t->net->connection = &connection;
  t->net->transfer = t;
  return *t;
}

void fetched(net::Completion& self, Held& held, int) noexcept {
  auto& move = static_cast<Move&>(self);
  Transfer& t = *move.transfer;
  move.connection->engine->push(held, *move.connection, {0, 0, 0, PointToPoint::finished, 0}, &t.other, sizeof t.other);
  finish_transfer(VciGuard::of(held), t);
}

}  // namespace

void send_offer(VciGuard& guard, net::Connection& connection, Request& send) noexcept {
  net::Engine& engine = *connection.engine;
  Transfer& t = new_transfer_on(connection, send);
  t.bytes = send.capacity;
  Offer offer{};
  offer.request = reinterpret_cast<RequestToken>(&send);
  offer.bytes = send.capacity;
  offer.process = runtime.self;
  // Small ones are offered when there is no credit for more, many at a time: those are asked for, and sent, several in a frame.
  if (send.datatype->contiguous && send.capacity > engine.common().copy_limit && engine.capabilities().reads) {
    const auto* bytes = static_cast<const std::byte*>(send.buffer) + send.datatype->true_lb;
    if (engine.register_memory(bytes, send.capacity, wire::Use::read_by_peers, t.net->memory)) {
      offer.address = t.net->memory.base;
      offer.heap = t.net->memory.key;
      offer.copy = 1;  // there is a key
    }
  }
  const RecordHead head{send.pattern.context, send.pattern.source, send.pattern.tag, PointToPoint::offer, lane_of(send)};
  engine.push(guard, connection, head, &offer, sizeof offer);
}

void begin_transfer(VciGuard& guard, Request& receive, const Offer& offer, std::uint16_t lane) noexcept {
  net::Engine& engine = network_of(guard.vci());
  net::Connection& connection = engine.connection_to(offer.process, lane);
  const auto bytes = static_cast<std::uint64_t>(receive.bytes);
  if (!bytes) {
    engine.push(guard, connection, {0, 0, 0, PointToPoint::finished, 0}, &offer.request, sizeof offer.request);
    return complete(receive, guard);
  }
  Transfer& t = new_transfer_on(connection, receive);
  t.bytes = bytes;
  t.other = offer.request;
  t.lane = lane;
  Move& move = *t.net;
  if (receive.datatype->contiguous) {
    auto* to = static_cast<std::byte*>(receive.buffer) + receive.datatype->true_lb;
    const bool can_read = offer.copy && engine.capabilities().reads &&
                          (!engine.capabilities().registers_local || engine.register_memory(to, bytes, wire::Use::read_into, move.memory));
    if (can_read) {
      move.done = fetched;
      move.to = to;
      move.descriptor = move.memory.descriptor;
      move.bytes = bytes;
      move.from = offer.address;
      move.key = offer.heap;
      return engine.read(guard, move);
    }
  }
  const Accept accept{offer.request, reinterpret_cast<RequestToken>(&receive), 0, bytes, 0, runtime.self, lane_of(receive)};
  engine.push(guard, connection, {0, 0, 0, PointToPoint::pull, 0}, &accept, sizeof accept);
}

bool stream_step(VciGuard& guard, Transfer& t, bool& finished) noexcept {
  net::Connection& connection = *t.net->connection;
  net::Engine& engine = *connection.engine;
  Request& send = *t.request;
  const std::uint64_t room = engine.largest_payload() - sizeof(DataFor);
  bool moved = false;
  while (t.moved < t.bytes && !engine.is_congested(connection)) {
    const std::uint64_t n = t.bytes - t.moved < room ? t.bytes - t.moved : room;
    std::byte* to = engine.append(guard, connection, {0, 0, 0, PointToPoint::data, 0}, n + sizeof(DataFor));
    const DataFor whose{t.other, t.moved};
    std::memcpy(to, &whose, sizeof whose);
    pack(send.buffer, send.count, *send.datatype, t.cursor, to + sizeof whose, n);
    if (n == room) engine.flush(guard, connection);
    else engine.send_appended(guard, connection);  // what others have for the peer leaves with it
    t.moved += n;
    moved = true;
  }
  finished = t.moved == t.bytes;
  return moved;
}

void release(Transfer& t) noexcept {
  t.net->connection->engine->deregister(t.net->memory);
  delete t.net;
  t.net = nullptr;
}

}  // namespace heddle::proto::network
