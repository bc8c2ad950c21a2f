// What a context does with bytes: packets out, packets in, memory that peers read. Its connections' life: connections.cpp.
#include "transport/tcp/context.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sys/log.hpp"
#include "transport/tcp/connection.hpp"

namespace heddle::tcp {
namespace {

constexpr std::size_t beside_reads = 4 << 10;  ///< bytes taken beyond those that a read has asked for, while one is under way
constexpr unsigned looks_between_rounds = 16;  ///< at one connection, before the others and the listener are looked at too
constexpr std::size_t parts_at_once = 64, bytes_at_once = std::size_t{1} << 20;  ///< of packets that leave with a call
constexpr unsigned hot_misses = 4;             ///< after which a connection among several is not looked at first any more

}  // namespace

// --- sending -----------------------------------------------------------------------------------------------------------------------

Packet* Context::new_packet() noexcept {
  Packet* packet = free_packets_;
  if (packet) free_packets_ = packet->next;
  else packet = new (std::nothrow) Packet;
  if (!packet) sys::fatal("no memory for a message to the network");
  packet->next = nullptr;
  packet->operation = nullptr;
  packet->region = no_region;
  return packet;
}

void Context::release(Packet& packet) noexcept {
  if (packet.region != no_region) --regions_[packet.region].answers;
  packet.next = free_packets_;
  free_packets_ = &packet;
}

/// Sends what waits on a connection until the kernel takes no more: many packets with a call, and what follows at once is announced, so that
/// the end of a packet does not travel alone. True if anything left.
bool Context::push(Connection& connection) noexcept {
  bool any = false;
  if (connection.refused) return any;
  for (int i = 0; i < 8; ++i) {  // so that arrivals get their turn
    iovec parts[parts_at_once];
    std::size_t count = 0, bytes = 0;
    const Packet* packet = connection.head;
    for (; packet && bytes < bytes_at_once && count + (packet->count - packet->first) <= parts_at_once; packet = packet->next) {
      for (unsigned k = packet->first; k < packet->count; ++k) bytes += (parts[count++] = packet->parts[k]).iov_len;
    }
    if (!count) return any;
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t result = sendmsg(connection.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (packet ? MSG_MORE : 0));
    if (result < 0) {
      if (errno == EINTR) continue;
      // The peer has left. What it sent before that is still to be read, up to the end that `receive` will come to.
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
      if (first->operation) done_.push_back({first->operation, 0, 0, nullptr, 0});
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

/// The same on a connection that is not, or not yet, the peer's.
void Context::post_on(Connection& connection, Packet& packet) noexcept {
  if (connection.head) connection.tail->next = &packet; else connection.head = &packet;
  connection.tail = &packet;
  push(connection);
  if (connection.fd < 0 || !connection.head || connection.waiting) return;
  connection.waiting = true;
  backlog_.push_back(&connection);
}

/// Sends a packet at once or keeps it; `later`: until `flush`, or the end of `poll`. 1: it has left, and its memory is free.
int Context::post(Peer& peer, Packet& packet, bool later) noexcept {
  if (!peer.error && !peer.out && !peer.trial) connect(peer);
  if (peer.error) {
    if (packet.operation) done_.push_back({packet.operation, 0, 0, nullptr, peer.error});
    release(packet);
    return 0;
  }
  if (!peer.out) {
    Trial& trial = *peer.trial;
    if (trial.head) trial.tail->next = &packet; else trial.head = &packet;
    trial.tail = &packet;
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
      if (operation) done_.push_back({operation, 0, 0, nullptr, peer.error});
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
  if (free_reads_.empty()) {
    free_reads_.push_back(static_cast<std::uint32_t>(reads_under_way_.size()));
    reads_under_way_.emplace_back();
  }
  const std::uint32_t slot = free_reads_.back();
  free_reads_.pop_back();
  Peer& peer = *peers_[from];
  reads_under_way_[slot] = {&operation, static_cast<std::byte*>(to), bytes, &peer};
  ++peer.reads;
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

void Context::end_read(std::size_t slot, int error) noexcept {
  done_.push_back({reads_under_way_[slot].operation, 0, reads_under_way_[slot].bytes, nullptr, error});
  --reads_under_way_[slot].peer->reads;
  reads_under_way_[slot] = {};
  free_reads_.push_back(static_cast<std::uint32_t>(slot));
}

void Context::answer(Connection& connection, std::uint64_t id, const std::byte* body) noexcept {
  ReadRequest request;
  std::memcpy(&request, body, sizeof request);
  Packet& packet = *new_packet();
  const auto index = static_cast<std::uint32_t>(request.key);
  const Region* region = index < regions_.size() ? &regions_[index] : nullptr;
  if (!region || !region->used || region->generation != request.key >> 32 || request.offset > region->bytes ||
      request.bytes > region->bytes - request.offset || request.bytes > largest_read_) {
    packet.fill(PacketKind::refusal, id, 0);
  } else {
    packet.fill(PacketKind::reply, id, request.bytes);
    packet.add(const_cast<std::byte*>(region->base) + request.offset, request.bytes);
    packet.region = index;
    ++regions_[index].answers;
  }
  packet.finish();
  post(*connection.peer, packet, true);
}

bool Context::register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept {
  registration = {};
  if (use != wire::Use::read_by_peers) return true;
  if (free_regions_.empty()) {
    free_regions_.push_back(static_cast<std::uint32_t>(regions_.size()));
    regions_.emplace_back();
  }
  const std::uint32_t index = free_regions_.back();
  free_regions_.pop_back();
  Region& region = regions_[index];
  region.base = static_cast<const std::byte*>(address);
  region.bytes = bytes;
  region.used = true;
  registration.memory = this;  // says that there is something to undo
  registration.key = std::uint64_t{region.generation} << 32 | index;
  return true;
}

void Context::deregister(wire::Registration& registration) noexcept {
  if (!registration.memory) return;
  const auto index = static_cast<std::uint32_t>(registration.key);
  regions_[index].used = false;
  ++regions_[index].generation;
  if (regions_[index].answers) withdraw(index);
  free_regions_.push_back(index);
  registration = {};
}

/// The memory of answers that still wait may not be looked at any more. No good peer waits for one: it has told that it is done.
void Context::withdraw(std::uint32_t region) noexcept {
  for (std::size_t i = 0; i < backlog_.size(); ++i) {  // nothing is added to it here
    Connection& connection = *backlog_[i];
    bool cut = false;
    for (Packet* packet = connection.head; packet; packet = packet->next) {
      if (packet->region != region) continue;
      if (!packet->is_whole() && !connection.refused) {
        cut = true;  // its rest cannot be anything else
        continue;
      }
      packet->fill(PacketKind::refusal, packet->head.id, 0);
      packet->region = no_region;
      --regions_[region].answers;
    }
    if (cut) break_off(connection, ECANCELED);
  }
}

// --- receiving ---------------------------------------------------------------------------------------------------------------------

/// How many bytes the first packet lacks that lies in the connection's buffer.
static std::size_t missing(const Connection& connection) noexcept {
  const std::size_t have = connection.end - connection.begin;
  if (have < sizeof(PacketHead)) return 0;
  PacketHead head;
  std::memcpy(&head, connection.buffer + connection.begin, sizeof head);
  const std::size_t whole = sizeof head + head.bytes + padding(head.bytes);
  return whole > have ? whole - have : 0;
}

/// Receives what the socket has, at most what there is room for. True if anything came.
bool Context::receive(Connection& connection) noexcept {
  std::byte* buffer = connection.buffer;
  if (!buffer) {
    if (free_buffers_.empty()) {
      buffer = static_cast<std::byte*>(std::aligned_alloc(4096, (buffer_bytes_ + 4095) & ~std::size_t{4095}));
      if (!buffer) sys::fatal("no memory to receive from the network");
      free_buffers_.push_back(buffer);
    }
    buffer = free_buffers_.back();  // lent if anything comes
  }
  std::byte padding_room[8];
  iovec parts[3];
  int count = 0;
  if (connection.landing_left) parts[count++] = {connection.landing, connection.landing_left};
  if (connection.skip) parts[count++] = {padding_room, connection.skip};
  // What was asked for by `read` is received where it belongs, so little of it is to come here first.
  std::size_t room = buffer_bytes_ - connection.end;
  if (connection.peer && connection.peer->reads) room = std::min(room, beside_reads + missing(connection));
  if (room) parts[count++] = {buffer + connection.end, room};
  if (!count) return false;
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<std::size_t>(count);
  const ssize_t got = count == 1 ? recv(connection.fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                 : recvmsg(connection.fd, &message, MSG_DONTWAIT);
  if (got <= 0) {
    if (got == 0 && part_with(connection)) return false;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) break_off(connection, got ? errno : ECONNRESET);
    return false;
  }
  if (!connection.buffer) {
    connection.buffer = buffer;
    free_buffers_.pop_back();
    touched_.push_back(&connection);
  }
  moved_ = true;
  if (!connection.heard) {
    connection.heard = true;
    heard_.push_back(&connection);
  }
  auto bytes = static_cast<std::size_t>(got);
  if (const std::size_t n = std::min(bytes, connection.landing_left)) {
    connection.landing += n;
    bytes -= n;
    connection.landing_left -= n;
    if (!connection.landing_left) end_read(connection.landing_read, 0);
  }
  const std::size_t skipped = std::min(bytes, connection.skip);
  connection.skip -= skipped;
  connection.end += bytes - skipped;
  return true;
}

/// Hands out whole packets of a connection, and does what those ask for that are for this context. False when the connection is no more.
bool Context::take(Connection& connection, wire::Event* events, int n, int& found) noexcept {
  while (found < n) {
    const std::size_t have = connection.end - connection.begin;
    if (have < sizeof(PacketHead)) break;
    std::byte* const at = connection.buffer + connection.begin;
    PacketHead head;
    std::memcpy(&head, at, sizeof head);
    std::byte* const body = at + sizeof head;
    const std::size_t whole = sizeof head + head.bytes + padding(head.bytes);
    if (connection.phase == Connection::Phase::greeted) join(connection, peer_of(connection.from));  // it has chosen this connection
    if (connection.phase == Connection::Phase::trying && connection.peer->trial->found) {  // more after the welcome
      end_searches();
      if (connection.fd < 0) return false;
    }
    const bool first = connection.phase == Connection::Phase::nameless, answer_due = connection.phase == Connection::Phase::trying;
    bool good = head.version == packet_version && first == (head.kind == PacketKind::greeting) && answer_due == (head.kind == PacketKind::welcome);
    switch (head.kind) {
      case PacketKind::greeting: good = good && head.bytes == sizeof(Greeting); break;
      case PacketKind::welcome:
        good = good && head.bytes == 0 && head.id == own_proof(PacketKind::welcome, connection.peer->identity, identity_);
        break;
      case PacketKind::message: good = good && head.bytes <= largest_; break;
      case PacketKind::request: good = good && head.bytes == sizeof(ReadRequest); break;
      case PacketKind::reply:
      case PacketKind::refusal:
        good = good && head.id < reads_under_way_.size() && reads_under_way_[head.id].operation &&
               reads_under_way_[head.id].peer == connection.peer && !reads_under_way_[head.id].landing &&
               head.bytes == (head.kind == PacketKind::reply ? reads_under_way_[head.id].bytes : 0);
        break;
      default: good = false;
    }
    if (good && head.kind == PacketKind::reply) {
      Read& read = reads_under_way_[head.id];
      const std::size_t here = std::min<std::size_t>(have - sizeof head, head.bytes);
      if (here) std::memcpy(read.to, body, here);
      if (here == head.bytes && have >= whole) {
        connection.begin += whole;
        end_read(head.id, 0);
        continue;
      }
      // The rest is received where it belongs. What follows it begins at a multiple of eight, as all packets do.
      connection.begin = connection.end = (connection.end + 7) & ~std::size_t{7};
      read.landing = &connection;
      connection.landing = read.to + here;
      connection.landing_left = head.bytes - here;
      connection.landing_read = head.id;
      connection.skip = whole - have - connection.landing_left;
      if (!connection.landing_left) end_read(head.id, 0);
      break;
    }
    if (good && have < whole) break;
    if (good && head.kind == PacketKind::greeting) good = greeted(connection, head.id, body);
    if (!good) {
      if (!connection.peer)
        HEDDLE_NOTICE_ONCE("a connection was refused that does not begin as those of this job do: something that does not belong to it "
                           "reaches its ports (further ones are refused silently)");
      break_off(connection, EPROTO);
      return false;
    }
    connection.begin += whole;
    if (head.kind == PacketKind::message) events[found++] = {&received_, 0, head.bytes, body, 0};
    else if (head.kind == PacketKind::request) answer(connection, head.id, body);
    else if (head.kind == PacketKind::refusal) end_read(head.id, EACCES);
    else if (head.kind == PacketKind::welcome) welcomed(connection);
    if (connection.fd < 0) return false;
  }
  return true;
}

/// After the caller is done with what was handed out: buffers without bytes go back, bytes move to where the rest of their packet has room.
void Context::tidy() noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    Connection& connection = *touched_[i];
    if (connection.begin == connection.end || connection.fd < 0) {
      free_buffers_.push_back(connection.buffer);
      connection.buffer = nullptr;
      connection.begin = connection.end = 0;
      continue;
    }
    if (connection.begin && buffer_bytes_ - connection.begin < largest_ + sizeof(PacketHead) + 8) {
      std::memmove(connection.buffer, connection.buffer + connection.begin, connection.end - connection.begin);
      connection.end -= connection.begin;
      connection.begin = 0;
    }
    touched_[kept++] = &connection;
  }
  touched_.resize(kept);
}

/// Takes from a connection, and remembers it if it may have more.
void Context::take_in_turn(Connection& connection, wire::Event* events, int n, int& found) noexcept {
  if (!take(connection, events, n, found) || found < n || connection.queued || connection.begin == connection.end) return;
  connection.queued = true;
  ready_.push_back(&connection);
}

/// Looks at every connection that has something, and lets new ones in.
void Context::look_at_all(wire::Event* events, int n, int& found) noexcept {
  if (deaf_since_ && seconds_now() != deaf_since_) listen_on(true);
  epoll_event seen[16];
  const int count = epoll_wait(epoll_, seen, 16, 0);
  bool knocks = false;
  for (int i = 0; i < count; ++i) {
    auto* connection = static_cast<Connection*>(seen[i].data.ptr);
    if (!connection) {
      knocks = true;
      continue;
    }
    // With packets in hand it waits: what was handed out must stay, and others get their turn.
    if (connection->fd < 0 || connection->queued || !(seen[i].events & ~std::uint32_t{EPOLLOUT})) continue;
    if (!receive(*connection)) continue;
    hot_ = connection;
    misses_ = 0;
    take_in_turn(*connection, events, n, found);
  }
  if (knocks) accept_all();
}

int Context::poll(wire::Event* events, int n) noexcept {
  moved_ = false;
  if (!touched_.empty()) tidy();
  if (!backlog_.empty()) push_all();
  if (!trials_.empty()) look_at_trials();
  int found = 0;
  for (std::size_t turns = ready_.size(); turns && found < n; --turns) {
    Connection& connection = *ready_.front();
    ready_.pop_front();
    connection.queued = false;
    if (connection.fd >= 0) take_in_turn(connection, events, n, found);
  }
  bool came = false;
  if (found < n && hot_ && !hot_->queued) {
    came = receive(*hot_);
    if (came) {
      misses_ = 0;
      take_in_turn(*hot_, events, n, found);
    } else if (++misses_ >= hot_misses && living_ > 1) {
      hot_ = nullptr;
    }
  }
  // One connection is looked at by itself; several, by asking the kernel which of them have something. Now and then also when there is
  // enough in hand: a peer that sends without pause must not keep the others from being heard.
  const bool round = ++looks_ % looks_between_rounds == 0;
  if (round || (found < n && (!hot_ || (living_ > 1 && !came)))) look_at_all(events, n, found);
  while (found < n && !done_.empty()) {
    events[found++] = done_.front();
    done_.pop_front();
  }
  if (found_) end_searches();
  if (later_) push_all();
  return found;
}

void Context::flush() noexcept {
  if (later_) push_all();
}

bool Context::has_left(wire::Address address) const noexcept { return peers_[address]->error != 0; }

/// Lets the kernel confirm now what has come, and what comes next only with an answer or after a while. Else it would do that in the call that
/// receives, before it returns, for who has just been woken (an eighth of the time from the send to there).
static void confirm_now_and_later(const Connection& connection) noexcept {
  for (const int quick : {1, 0}) setsockopt(connection.fd, IPPROTO_TCP, TCP_QUICKACK, &quick, sizeof quick);
}

bool Context::may_sleep() noexcept {
  if (!ready_.empty() || !done_.empty()) return false;
  for (Connection* connection : backlog_) want_writable(*connection, true);
  for (Connection* connection : heard_) {
    connection->heard = false;
    if (connection->fd >= 0) confirm_now_and_later(*connection);
  }
  heard_.clear();
  return true;
}

}  // namespace heddle::tcp
