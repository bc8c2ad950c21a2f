// Rendezvous over the network: the strategies `remote_read` and `stream`.
#include <cstring>
#include <new>

#include "proto/network.hpp"
#include "proto/rendezvous.hpp"
#include "sys/log.hpp"

namespace heddle::proto::network {

/// The network part of a large message, at either end.
struct Move : net::RemoteRead {
  Transfer* transfer = nullptr;
  wire::Registration memory;  ///< of the buffer at this end
};

namespace {

void attach(Transfer& t, net::Connection& connection) noexcept {
  t.move = new (std::nothrow) Move;
  if (!t.move) sys::fatal("no memory for a large message");
  t.move->connection = &connection;
  t.move->transfer = &t;
}

void fetched(net::Completion& self, Held& held, int) noexcept {
  auto& move = static_cast<Move&>(self);
  auto& t = static_cast<Receiving&>(*move.transfer);
  move.connection->engine->push(held, *move.connection, {0, 0, 0, PointToPoint::finished}, &t.sender, sizeof t.sender);
  finish_transfer(VciGuard::of(held), t);
}

/// False where the network cannot read the sender's memory into this buffer.
bool begin_read(VciGuard& guard, Receiving& t, const RendezvousRequest& request) noexcept {
  net::Engine& engine = *t.move->connection->engine;
  const Buffer buffer = t.request->buffer;
  if (!request.readable || !buffer.contiguous() || !engine.capabilities().reads) return false;
  Move& move = *t.move;
  if (engine.capabilities().registers_local && !engine.register_memory(buffer.data(), t.bytes, wire::Use::read_into, move.memory)) return false;
  t.strategy = Strategy::remote_read;
  move.done = fetched;
  move.to = buffer.data();
  move.descriptor = move.memory.descriptor;
  move.bytes = t.bytes;
  move.from = request.address;
  move.key = request.key;
  engine.read(guard, move);
  return true;
}

}  // namespace

void send_request(VciGuard& guard, net::Connection& connection, Request& send) noexcept {
  net::Engine& engine = *connection.engine;
  Sending& t = new_sending(send);
  attach(t, connection);
  RendezvousRequest request{};
  request.sender = reinterpret_cast<RequestToken>(&send);
  request.bytes = send.capacity;
  request.process = runtime.name;
  // Small ones wait because there is no credit for more, many at a time: those are asked for, and sent, several in a frame.
  const Buffer buffer = send.buffer;
  const bool may_be_read = buffer.contiguous() && send.capacity > engine.common().copy_limit && engine.capabilities().reads;
  if (may_be_read && engine.register_memory(buffer.data(), send.capacity, wire::Use::read_by_peers, t.move->memory)) {
    request.readable = 1;
    request.address = t.move->memory.base;
    request.key = t.move->memory.key;
  }
  engine.push(guard, connection, head_of(send, PointToPoint::request), &request, sizeof request);
}

void begin_transfer(VciGuard& guard, Request& receive, const RendezvousRequest& request, Lane lane) noexcept {
  net::Engine& engine = network_of(guard.vci());
  net::Connection& connection = engine.connection_to(index_of(request.process), lane);
  if (!receive.bytes) {
    engine.push(guard, connection, {0, 0, 0, PointToPoint::finished}, &request.sender, sizeof request.sender);
    return complete(receive, guard);
  }
  Receiving& t = new_receiving(receive);
  attach(t, connection);
  t.sender = request.sender;
  t.lane = lane;
  if (begin_read(guard, t, request)) return;
  t.strategy = Strategy::stream;
  const DataRequest wanted{t.sender, reinterpret_cast<RequestToken>(&receive), t.bytes, lane_of(receive), {}};
  engine.push(guard, connection, {0, 0, 0, PointToPoint::data_request}, &wanted, sizeof wanted);
}

bool stream_step(VciGuard& guard, Sending& t) noexcept {
  net::Connection& connection = *t.move->connection;
  net::Engine& engine = *connection.engine;
  const std::uint64_t room = engine.largest_payload() - sizeof(StreamData);
  bool moved = false;
  while (t.sent < t.bytes && !engine.is_congested(connection)) {
    const std::uint64_t n = t.bytes - t.sent < room ? t.bytes - t.sent : room;
    std::byte* to = engine.append(guard, connection, {0, 0, 0, PointToPoint::data}, n + sizeof(StreamData));
    const StreamData head{t.receiver};
    std::memcpy(to, &head, sizeof head);
    t.request->buffer.pack(t.sent, to + sizeof head, n);
    if (n == room) engine.flush(guard, connection);
    else engine.send_appended(guard, connection);  // what others have for the peer leaves with it
    t.sent += n;
    moved = true;
  }
  if (t.sent == t.bytes) finish_transfer(guard, t);
  return moved;
}

void release(Transfer& t) noexcept {
  t.move->connection->engine->deregister(t.move->memory);
  delete t.move;
  t.move = nullptr;
}

}  // namespace heddle::proto::network
