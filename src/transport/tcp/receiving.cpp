// Incoming packets, from sockets to events, and the step before threads sleep. Outgoing packets: sending.cpp.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "sys/log.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {
namespace {

constexpr std::size_t beside_reads = 4 << 10;  ///< bytes received into the buffer, beyond those in hand, while a read is pending
constexpr std::size_t large_write = 32 << 10;  ///< the same while more than this of a peer's write is to come: another may follow
constexpr unsigned looks_between_rounds = 16;  ///< polls of one connection between polls of the others and the listener
constexpr unsigned hot_misses = 4;             ///< idle polls after which one of several connections is no longer polled first

/// How many bytes the first packet in the connection's buffer still lacks.
std::size_t missing(const Connection& connection) noexcept {
  const std::size_t have = connection.end - connection.begin;
  if (have < sizeof(PacketHead)) return 0;
  PacketHead head;
  std::memcpy(&head, connection.buffer + connection.begin, sizeof head);
  const std::size_t whole = sizeof head + head.bytes + padding(head.bytes);
  return whole > have ? whole - have : 0;
}

/// Has the kernel acknowledge what has arrived now, and delay later acknowledgements. Otherwise it sends them inside the recv of a thread that
/// has just been woken, which costs an eighth of the time from the send to there.
void confirm_now_and_later(const Connection& connection) noexcept {
  for (const int quick : {1, 0}) setsockopt(connection.fd, IPPROTO_TCP, TCP_QUICKACK, &quick, sizeof quick);
}

}  // namespace

/// Receives what the socket has, as far as there is room. True if anything came.
bool Context::receive(Connection& connection) noexcept {
  std::byte* buffer = connection.buffer;
  if (!buffer) {
    if (free_buffers_.empty()) {
      buffer = static_cast<std::byte*>(std::aligned_alloc(4096, (buffer_bytes_ + 4095) & ~std::size_t{4095}));
      if (!buffer) sys::fatal("no memory to receive from the network");
      free_buffers_.push_back(buffer);
    }
    buffer = free_buffers_.back();  // taken from the list only if anything comes
  }
  std::byte padding_room[8];
  iovec parts[3];
  int count = 0;
  if (connection.landing_left) parts[count++] = {connection.landing, connection.landing_left};
  if (connection.skip) parts[count++] = {padding_room, connection.skip};
  // Replies to reads are received into the caller's memory, large writes into the region, so keep them out of the buffer as far as possible.
  std::size_t room = buffer_bytes_ - connection.end;
  if (connection.peer && (connection.peer->reads || connection.landing_left > large_write)) room = std::min(room, beside_reads + missing(connection));
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
    if (!connection.landing_left) end_landing(connection, connection.landing_head);
    if (connection.fd < 0) return false;
  }
  const std::size_t skipped = std::min(bytes, connection.skip);
  connection.skip -= skipped;
  connection.end += bytes - skipped;
  return true;
}

/// Moves the body of a connection's first packet, from its byte `from` on, to where it belongs; what is still to come is received there. True
/// if all of the packet was here.
bool Context::land(Connection& connection, const PacketHead& head, std::size_t from, std::byte* to) noexcept {
  const std::size_t have = connection.end - connection.begin, before = sizeof head + from, bytes = head.bytes - from;
  const std::size_t whole = sizeof head + head.bytes + padding(head.bytes), here = std::min(have - before, bytes);
  if (here) std::memcpy(to, connection.buffer + connection.begin + before, here);
  if (have >= whole) {
    connection.begin += whole;
    end_landing(connection, head);
    return true;
  }
  // The next packet begins at a multiple of eight, as all do.
  connection.begin = connection.end = (connection.end + 7) & ~std::size_t{7};
  if (head.kind == PacketKind::reply) reads_under_way_[head.id].landing = &connection;
  connection.landing = to + here;
  connection.landing_left = bytes - here;
  connection.landing_head = head;
  connection.skip = whole - have - connection.landing_left;
  if (!connection.landing_left) end_landing(connection, head);
  return false;
}

void Context::end_landing(Connection& connection, const PacketHead& head) noexcept {
  if (head.kind == PacketKind::reply) end_read(head.id, 0);
  else if (!has_written(connection, head)) break_off(connection, EPROTO);
}

/// Hands out a connection's complete messages and handles the other packets. False when the connection has ended.
bool Context::take(Connection& connection, wire::Event* events, int n, int& found) noexcept {
  while (found < n) {
    const std::size_t have = connection.end - connection.begin;
    if (have < sizeof(PacketHead)) break;
    std::byte* const at = connection.buffer + connection.begin;
    PacketHead head;
    std::memcpy(&head, at, sizeof head);
    std::byte* const body = at + sizeof head;
    const std::size_t whole = sizeof head + head.bytes + padding(head.bytes);
    if (connection.phase == Connection::Phase::trying && connection.peer->attempt->found) {  // more packets follow the welcome
      finish_attempts();
      if (connection.fd < 0) return false;
    }
    using Phase = Connection::Phase;
    bool good = head.version == packet_version && (connection.phase == Phase::nameless) == (head.kind == PacketKind::greeting) &&
                (connection.phase == Phase::trying) == (head.kind == PacketKind::welcome) &&
                (connection.phase == Phase::greeted) == (head.kind == PacketKind::choice);
    switch (head.kind) {
      case PacketKind::greeting: good = good && head.bytes == sizeof(Greeting); break;
      case PacketKind::welcome: good = good && head.bytes == sizeof connection.challenge; break;
      case PacketKind::choice:
        good = good && head.bytes == 0 && head.id == own_proof(PacketKind::choice, connection.from, identity_, connection.challenge);
        break;
      case PacketKind::message: good = good && head.bytes <= largest_; break;
      case PacketKind::request: good = good && head.bytes == sizeof(ReadRequest); break;
      case PacketKind::reply:
      case PacketKind::refusal:
      case PacketKind::confirmed: {
        const Read* const read = head.id < reads_under_way_.size() ? &reads_under_way_[head.id] : nullptr;
        good = good && read && read->operation && read->peer == connection.peer && !read->landing &&
               read->confirms == (head.kind == PacketKind::confirmed) && head.bytes == (head.kind == PacketKind::reply ? read->bytes : 0);
        break;
      }
      case PacketKind::write:
      case PacketKind::write_with_data:
        good = good && head.bytes >= sizeof(WriteHead) && head.bytes - sizeof(WriteHead) <= capabilities_.largest_write;
        break;
      case PacketKind::confirm: good = good && head.bytes == sizeof(WriteAwaited); break;
      default: good = false;
    }
    if (good && head.kind == PacketKind::reply) {
      connection.landing_region = no_region;
      if (land(connection, head, 0, reads_under_way_[head.id].to)) continue;
      break;
    }
    if (good && (head.kind == PacketKind::write || head.kind == PacketKind::write_with_data)) {
      if (have < sizeof head + sizeof(WriteHead)) break;
      WriteHead where;
      std::memcpy(&where, body, sizeof where);
      if (std::byte* const to = place_of_write(connection, head, where)) {
        connection.landing_region = static_cast<std::uint32_t>(where.key);
        const bool all = land(connection, head, sizeof where, to);
        if (connection.fd < 0) return false;
        if (all) continue;
        break;
      }
      good = false;
    }
    if (good && have < whole) break;
    if (good && head.kind == PacketKind::greeting) good = greeted(connection, head.id, body);
    if (good && head.kind == PacketKind::welcome) good = welcomed(connection, head.id, body);
    if (!good) {
      if (!connection.peer)
        HEDDLE_NOTICE_ONCE("a connection was refused that does not begin as those of this job do: something that does not belong to it "
                           "reaches its ports (further ones are refused silently)");
      break_off(connection, EPROTO);
      return false;
    }
    connection.begin += whole;
    if (head.kind == PacketKind::message) events[found++] = {nullptr, head.bytes, body, 0};
    else if (head.kind == PacketKind::request) answer(connection, head.id, body);
    else if (head.kind == PacketKind::refusal) end_read(head.id, EACCES);
    else if (head.kind == PacketKind::confirmed) end_read(head.id, 0);
    else if (head.kind == PacketKind::confirm) confirm_later(connection, head.id, body);
    else if (head.kind == PacketKind::choice) join(connection, peer_of(connection.from));
    if (connection.fd < 0) return false;
  }
  return true;
}

/// Called when handed-out messages are no longer used: returns empty buffers, and moves partial packets to where the rest fits.
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

/// Takes packets from a connection, and queues it if it may have more.
void Context::take_in_turn(Connection& connection, wire::Event* events, int n, int& found) noexcept {
  if (!take(connection, events, n, found) || found < n || connection.queued || connection.begin == connection.end) return;
  connection.queued = true;
  ready_.push_back(&connection);
}

/// Polls every connection that has data, and accepts new ones.
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
    // A connection with packets in hand waits: handed-out data must stay in place, and others get their turn.
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
  if (!attempts_.empty()) check_attempts();
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
  // A single connection is polled directly; with several, epoll says which have data. Every so often epoll is asked in any case, so that a
  // peer that floods us cannot starve the others.
  const bool round = ++looks_ % looks_between_rounds == 0;
  if (round || (found < n && (!hot_ || (living_ > 1 && !came)))) look_at_all(events, n, found);
  while (found < n && !done_.empty()) {
    events[found++] = done_.front();
    done_.pop_front();
  }
  if (found_) finish_attempts();
  if (later_) push_all();
  return found;
}

void Context::flush() noexcept {
  if (later_) push_all();
}

bool Context::has_left(wire::Address address) const noexcept { return peers_[address]->error != 0; }

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
