// Outgoing packets, and the memory that peers read. Incoming packets: receiving.cpp; connections: connections.cpp.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "sys/log.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {

namespace {

constexpr std::size_t parts_at_once = 64, bytes_at_once = std::size_t{1} << 20;  ///< limits of one send call

/// Copies small messages together: the kernel's handling of a list of pieces costs more than the copy (60 ns of a 3.7 µs ping-pong).
ssize_t send_pieces(int fd, iovec* parts, std::size_t count, std::size_t bytes, int flags) noexcept {
  constexpr std::size_t small = 512;
  if (bytes <= small) {
    std::byte gathered[small];
    std::byte* at = gathered;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
      at += parts[i].iov_len;
    }
    return ::send(fd, gathered, bytes, flags);
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(fd, &message, flags);
}

}  // namespace

Packet* Context::new_packet() noexcept {
  Packet* packet = free_packets_;
  if (packet) free_packets_ = packet->next;
  else packet = new (std::nothrow) Packet;
  if (!packet) sys::fatal("no memory for a message to the network");
  packet->next = nullptr;
  packet->operation = nullptr;
  packet->region = no_region;
  packet->writes_to = nullptr;
  packet->block = nullptr;
  return packet;
}

void Context::release(Packet& packet) noexcept {
  if (packet.region != no_region) --regions_[packet.region].answers;
  if (packet.writes_to) packet.writes_to->unsent -= packet.weight;
  if (packet.block) free_blocks_.push_back(packet.block);
  packet.next = free_packets_;
  free_packets_ = &packet;
}

/// Fails packets that will never be sent.
void Context::drop(Packet*& head, Packet*& tail, int error) noexcept {
  while (Packet* packet = head) {
    head = packet->next;
    if (packet->operation) done_.push_back({packet->operation, 0, nullptr, error});
    release(*packet);
  }
  tail = nullptr;
}

/// Sends what is queued on a connection until the kernel takes no more: many packets a call, with MSG_MORE when another call follows, so that no
/// packet's tail travels alone. True if anything was sent.
bool Context::push(Connection& connection) noexcept {
  bool any = false;
  if (connection.refused) return any;
  for (int i = 0; i < 8; ++i) {  // bounded, so that receiving gets its turn
    iovec parts[parts_at_once];
    std::size_t count = 0, bytes = 0;
    const Packet* packet = connection.head;
    for (; packet && bytes < bytes_at_once && count + (packet->count - packet->first) <= parts_at_once; packet = packet->next) {
      for (unsigned k = packet->first; k < packet->count; ++k) bytes += (parts[count++] = packet->parts[k]).iov_len;
    }
    if (!count) return any;
    const ssize_t result = send_pieces(connection.fd, parts, count, bytes, MSG_NOSIGNAL | MSG_DONTWAIT | (packet ? MSG_MORE : 0));
    if (result < 0) {
      if (errno == EINTR) continue;
      // The peer has left. What it sent before is still read, until `receive` reaches the end.
      if (errno == EPIPE || errno == ECONNRESET) connection.refused = true;
      else if (errno != EAGAIN) break_off(connection, errno);
      return any;
    }
    any = connection.stands = moved_ = true;
    for (auto sent = static_cast<std::size_t>(result); Packet* first = connection.head;) {
      const std::size_t left = first->left();
      if (sent < left) {
        first->advance(sent);
        break;
      }
      sent -= left;
      connection.head = first->next;
      if (!connection.head) connection.tail = nullptr;
      if (first->operation) done_.push_back({first->operation, 0, nullptr, 0});
      release(*first);
      if (!sent) break;
    }
    if (static_cast<std::size_t>(result) < bytes) return any;  // the socket is full
  }
  return any;
}

void Context::push_all() noexcept {
  later_ = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < backlog_.size(); ++i) {
    Connection& connection = *backlog_[i];
    push(connection);
    if (connection.head) {
      backlog_[kept++] = &connection;
    } else {
      connection.waiting = false;
      want_writable(connection, false);
      if (connection.peer && connection.peer->out == &connection) change_over(*connection.peer);
    }
  }
  backlog_.resize(kept);
}

/// Sends a packet on a connection that is not, or not yet, the peer's `out`.
void Context::post_on(Connection& connection, Packet& packet) noexcept {
  if (connection.head) connection.tail->next = &packet; else connection.head = &packet;
  connection.tail = &packet;
  push(connection);
  if (connection.fd < 0 || !connection.head || connection.waiting) return;
  connection.waiting = true;
  backlog_.push_back(&connection);
}

/// Sends or queues a packet; with `later` it is queued until `flush` or the end of `poll`. Returns 1 if it was sent and its memory is free.
int Context::post(Peer& peer, Packet& packet, bool later) noexcept {
  if (!peer.error && !peer.out && !peer.attempt) connect(peer);
  if (peer.error) {
    if (packet.operation) done_.push_back({packet.operation, 0, nullptr, peer.error});
    release(packet);
    return 0;
  }
  if (!peer.out) {
    ConnectAttempt& attempt = *peer.attempt;
    if (attempt.head) attempt.tail->next = &packet; else attempt.head = &packet;
    attempt.tail = &packet;
    return 0;
  }
  Connection& connection = *peer.out;
  wire::Operation* const operation = packet.operation;
  const bool first = !connection.head;
  if (first) connection.head = &packet; else connection.tail->next = &packet;
  connection.tail = &packet;
  if (later) {
    later_ = true;
  } else if (first) {
    packet.operation = nullptr;
    push(connection);
    if (connection.fd < 0) {
      if (operation) done_.push_back({operation, 0, nullptr, peer.error});
      return 0;
    }
    if (!connection.head) return 1;
    packet.operation = operation;
  }
  if (!connection.waiting) {
    connection.waiting = true;
    backlog_.push_back(&connection);
  }
  return 0;
}

int Context::send(wire::Address to, const void* data, std::size_t bytes, void*, wire::Operation& operation) noexcept {
  const iovec part{const_cast<void*>(data), bytes};
  return send_parts(to, &part, 1, operation);
}

int Context::send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept {
  Packet& packet = *new_packet();
  packet.operation = &operation;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  packet.fill(PacketKind::message, 0, bytes);
  for (std::size_t i = 0; i < count; ++i) packet.add(parts[i].iov_base, parts[i].iov_len);
  packet.finish();
  return post(*peers_[to], packet);
}

int Context::read(wire::Address from, void* to, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key,
                  wire::Operation& operation) noexcept {
  Peer& peer = *peers_[from];
  ++peer.reads;
  const std::uint32_t slot = new_read({&operation, static_cast<std::byte*>(to), bytes, &peer});
  Packet& packet = *new_packet();
  const ReadRequest request{key, address, bytes};
  std::memcpy(packet.small, &request, sizeof request);
  packet.fill(PacketKind::request, slot, sizeof request);
  packet.add(packet.small, sizeof request);
  packet.finish();
  post(peer, packet, true);
  if (peer.error && reads_under_way_[slot].operation == &operation) end_read(slot, peer.error);
  return 0;
}

std::uint32_t Context::new_read(const Read& read) noexcept {
  if (free_reads_.empty()) {
    free_reads_.push_back(static_cast<std::uint32_t>(reads_under_way_.size()));
    reads_under_way_.emplace_back();
  }
  const std::uint32_t slot = free_reads_.back();
  free_reads_.pop_back();
  reads_under_way_[slot] = read;
  return slot;
}

void Context::end_read(std::size_t slot, int error) noexcept {
  const Read& read = reads_under_way_[slot];
  done_.push_back({read.operation, read.bytes, nullptr, error});
  --(read.confirms ? read.peer->confirms : read.peer->reads);
  reads_under_way_[slot] = {};
  free_reads_.push_back(static_cast<std::uint32_t>(slot));
}

void Context::answer(Connection& connection, std::uint64_t id, const std::byte* body) noexcept {
  ReadRequest request;
  std::memcpy(&request, body, sizeof request);
  Packet& packet = *new_packet();
  const Region* region = region_of(request.key, request.offset, request.bytes);
  if (!region || !region->may_read || request.bytes > capabilities_.largest_read) {
    packet.fill(PacketKind::refusal, id, 0);
  } else {
    packet.fill(PacketKind::reply, id, request.bytes);
    packet.add(region->base + request.offset, request.bytes);
    packet.region = static_cast<std::uint32_t>(request.key);
    ++regions_[packet.region].answers;
  }
  packet.finish();
  post(*connection.peer, packet, true);
}

bool Context::register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept {
  registration = {};
  const bool both = use == wire::Use::read_and_written_by_peers, may_read = both || use == wire::Use::read_by_peers,
             may_write = both || use == wire::Use::written_by_peers;
  if (!may_read && !may_write) return true;
  if (free_regions_.empty()) {
    free_regions_.push_back(static_cast<std::uint32_t>(regions_.size()));
    regions_.emplace_back();
  }
  const std::uint32_t index = free_regions_.back();
  free_regions_.pop_back();
  Region& region = regions_[index];
  region.base = static_cast<std::byte*>(const_cast<void*>(address));
  region.bytes = bytes;
  region.may_read = may_read;
  region.may_write = may_write;
  region.used = true;
  registration.memory = this;  // non-null: deregister has something to undo
  registration.key = std::uint64_t{region.generation} << 32 | index;
  return true;
}

void Context::deregister(wire::Registration& registration) noexcept {
  if (!registration.memory) return;
  const auto index = static_cast<std::uint32_t>(registration.key);
  regions_[index].used = false;
  ++regions_[index].generation;
  if (regions_[index].answers) withdraw(index);
  // A correct peer writes no more. The rest of a write that has begun has nowhere to go.
  for (std::size_t i = 0; regions_[index].may_write && i < connections_.size(); ++i)
    if (Connection& connection = *connections_[i]; connection.fd >= 0 && connection.landing_left && connection.landing_region == index)
      break_off(connection, ECANCELED);
  free_regions_.push_back(index);
  registration = {};
}

/// The memory that a peer means; null: it may not.
const Context::Region* Context::region_of(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const auto index = static_cast<std::uint32_t>(key);
  if (index >= regions_.size()) return nullptr;
  const Region& region = regions_[index];
  const bool inside = region.used && region.generation == key >> 32 && offset <= region.bytes && bytes <= region.bytes - offset;
  return inside ? &region : nullptr;
}

/// Turns queued replies from withdrawn memory into refusals, since it may no longer be read. A correct peer waits for none: it has said that it
/// is done.
void Context::withdraw(std::uint32_t region) noexcept {
  for (std::size_t i = 0; i < backlog_.size(); ++i) {  // does not grow in this loop
    Connection& connection = *backlog_[i];
    bool cut = false;
    for (Packet* packet = connection.head; packet; packet = packet->next) {
      if (packet->region != region) continue;
      if (!packet->is_whole() && !connection.refused) {
        cut = true;  // partly sent: cannot become a refusal any more
        continue;
      }
      packet->fill(PacketKind::refusal, packet->head.id, 0);
      packet->region = no_region;
      --regions_[region].answers;
    }
    if (cut) break_off(connection, ECANCELED);
  }
}

}  // namespace heddle::tcp
