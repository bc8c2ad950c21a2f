// The other end of a tcp::Context, for its fuzzer: raw sockets that send what a fuzzer makes up, a reading of the protocol of its own
// (packet.hpp) that says what must come of it, and the check that just that came.
//
// What is checked after every step, when the context has come to rest:
//   - whole good messages were handed out, byte for byte and in order, up to the first bad packet of their connection, and no other
//   - a connection with a bad packet is closed, and whatever was posted to its peer and cannot arrive any more has failed
//   - a reply carries the bytes of registered memory that were asked for; what is not registered, or not any more, is refused
//   - an operation completes once; a read has brought the bytes of its reply, wrote no other byte, and none after it was complete
//   - no good connection is closed
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/context.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::test {

inline constexpr std::size_t largest = 20'000;  ///< message
inline constexpr std::uint64_t job = 0x1122334455667788;

[[noreturn, gnu::noinline]] inline void wrong(const char* what) {
  std::fprintf(stderr, "tcp_fuzz: %s\n", what);
  std::abort();
}
inline void must(bool right, const char* what) {
  if (!right) wrong(what);
}

/// Bytes that differ with their place and with `seed`.
inline std::byte byte_of(std::size_t seed, std::size_t i) noexcept {
  return static_cast<std::byte>((i + seed * 29) * 0x9e3779b97f4a7c15U >> 56);
}
inline void fill(std::byte* to, std::size_t n, std::size_t seed) noexcept {
  for (std::size_t i = 0; i < n; ++i) to[i] = byte_of(seed, i);
}

inline std::string name_of(std::uint32_t address, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  in.sin_port = htons(port);
  return {reinterpret_cast<const char*>(&in), sizeof in};
}
inline constexpr std::uint32_t loopback = INADDR_LOOPBACK;

/// What the context was asked to send or read. The first member is what it knows.
struct Posted {
  wire::Operation operation;
  std::string peer;
  std::size_t number = 0, bytes = 0;
  bool complete = false, arrived = false;
  // Of a read:
  static constexpr std::size_t guard = 16;
  std::vector<std::byte> room;          ///< between two guards
  std::vector<std::byte> expected;      ///< of the reply, as far as it was sent
  bool asked = false;                   ///< its request has come, so its id is known
  std::uint64_t id = 0;
  struct Line* landing = nullptr;       ///< where its reply is under way
  bool finished = false, refused = false;
  [[nodiscard]] std::byte* at() { return room.data() + guard; }
};

/// Memory that may be read. After it is withdrawn it holds what nobody may see.
struct Region {
  std::vector<std::byte> memory;
  std::size_t seed = 0;
  wire::Registration registration;
  bool used = false;
};

/// What the context owes for a request.
struct Answer {
  std::string peer;
  std::uint64_t id;
  bool good, withdrawn;
  std::size_t region, seed, offset, bytes;
};

/// A connection, seen from outside.
struct Line {
  int fd = -1;
  int inside = -1;                 ///< the context's descriptor of it, found by its addresses
  bool accepted = false;           ///< that was found once
  sockaddr_storage here{}, there{};
  std::vector<std::byte> pending;  ///< made up, and not yet sent
  std::size_t sent = 0;
  bool stalled = false;            ///< nobody takes what the context sends
  bool bad = false;                ///< a bad packet was sent
  bool over = false;               ///< nothing more is sent here
  bool closing = false;            ///< its end was announced
  bool ours = false;               ///< the context has connected
  std::string peer;                ///< empty: has not greeted
  // How far the protocol was read in what was sent.
  std::byte head[sizeof(tcp::PacketHead)]{};
  std::size_t have = 0, left = 0, pad = 0;
  std::vector<std::byte> body;
  Posted* reply = nullptr;
  // What came.
  std::vector<std::byte> in;
  bool greeted_us = false, ended = false;
  bool silent = false;             ///< the context has announced that no more comes
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

class Stranger {
 public:
  explicit Stranger(int events_at_once) : events_(static_cast<std::size_t>(events_at_once)) {
    first_free_ = lowest_descriptor();
    std::string problem;
    must(context.open(largest, true, problem), "the context does not open");
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    context.close();
    for (const auto& line : lines)
      if (line->fd >= 0) shut(*line, true);
    for (const int listener : listeners())
      for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) ::close(fd);
    must(lowest_descriptor() == first_free_, "a descriptor was left open");
  }

  /// Two places where a context can connect to; the first has a lesser, the second a greater name than any context.
  static const std::vector<int>& listeners() {
    static const std::vector<int> both = {listen_at(1024, 30'000), listen_at(61'000, 65'535)};
    return both;
  }
  static std::string listener_name(int i) {
    sockaddr_in in;
    socklen_t bytes = sizeof in;
    getsockname(listeners()[static_cast<std::size_t>(i)], reinterpret_cast<sockaddr*>(&in), &bytes);
    return {reinterpret_cast<const char*>(&in), sizeof in};
  }

  Line& connect() {
    auto line = std::make_unique<Line>();
    std::memcpy(&line->there, context.name().data(), context.name().size());
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(line->fd >= 0 && !::connect(line->fd, reinterpret_cast<sockaddr*>(&line->there), sizeof(sockaddr_in)), "cannot connect to the context");
    socklen_t bytes = sizeof line->here;
    getsockname(line->fd, reinterpret_cast<sockaddr*>(&line->here), &bytes);
    lines.push_back(std::move(line));
    return *lines.back();
  }

  void add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes, std::uint32_t said, std::uint16_t version) {
    const tcp::PacketHead head{said, kind, version, id};
    const auto* at = reinterpret_cast<const std::byte*>(&head);
    line.pending.insert(line.pending.end(), at, at + sizeof head);
    at = static_cast<const std::byte*>(body);
    line.pending.insert(line.pending.end(), at, at + bytes);
    line.pending.resize(line.pending.size() + tcp::padding(bytes));
  }
  void add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes) {
    add(line, kind, id, body, bytes, static_cast<std::uint32_t>(bytes), tcp::packet_version);
  }
  void greet(Line& line, std::string_view name) { add(line, tcp::PacketKind::greeting, job, name.data(), name.size()); }

  /// Sends up to `bytes` of what is pending. What it does is to be awaited by `settle` before anything is done elsewhere.
  void send(Line& line, std::size_t bytes) {
    bytes = std::min(bytes, line.pending.size());
    if (line.over || !bytes) return;
    const std::size_t read = follow(line, line.pending.data(), bytes);
    std::size_t at = 0;
    for (const Patience patience; at < read;) {
      const ssize_t n = ::send(line.fd, line.pending.data() + at, read - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        at += static_cast<std::size_t>(n);
        line.sent += static_cast<std::size_t>(n);
        continue;
      }
      if (errno != EAGAIN) break;  // closed; whether it may be is seen later
      look();
      take_in(line);
      must(!patience.ended(), "the context does not receive");
    }
    line.pending.erase(line.pending.begin(), line.pending.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (at < read) line.pending.clear();
    if (read < bytes || line.bad) line.over = true;
    if (line.bad && !line.peer.empty()) trouble(line.peer);
  }

  void post_read(const std::string& peer, std::size_t bytes) {
    Posted& read = post(wire::Operation::Kind::read, peer, bytes);
    read.room.assign(bytes + 2 * Posted::guard, std::byte{0x5a});
    const wire::Address from = context.insert(peer);
    if (from == wire::no_address) wrong("a peer's name is refused");
    // Its number stands where the offset in the peer's memory belongs, so that the request tells which read it is of.
    must(context.read(from, read.at(), bytes, nullptr, read.number, 0x5eed, read.operation) == 0, "a read is not taken");
    context.flush();
  }

  void post_message(const std::string& peer, std::size_t bytes) {
    bytes = std::max(bytes, sizeof(std::size_t));
    Posted& message = post(wire::Operation::Kind::send, peer, bytes);
    message.room.resize(bytes);
    fill(message.room.data(), bytes, message.number);
    std::memcpy(message.room.data(), &message.number, sizeof message.number);
    const std::size_t half = bytes / 2;
    const iovec parts[2] = {{message.room.data(), half}, {message.room.data() + half, bytes - half}};
    const int code = context.send_parts(context.insert(peer), parts, 2, message.operation);
    must(code == 0 || code == 1, "a message is not taken");
    if (code == 1) message.complete = true;
  }

  void register_region(std::size_t bytes) {
    regions.push_back(std::make_unique<Region>());
    Region& region = *regions.back();
    region.seed = regions.size() + 1000;
    region.memory.resize(bytes);
    fill(region.memory.data(), bytes, region.seed);
    must(context.register_memory(region.memory.data(), bytes, wire::Use::read_by_peers, region.registration), "memory is not registered");
    keys.push_back(region.registration.key);
    region.used = true;
  }

  void withdraw_region(std::size_t i) {
    Region& region = *regions[i];
    if (!region.used) return;
    region.used = false;
    for (Answer& answer : answers)
      if (answer.good && answer.region == i) {
        answer.withdrawn = true;
        trouble(answer.peer);  // where a part of it has left, the connection ends
      }
    context.deregister(region.registration);
    std::fill(region.memory.begin(), region.memory.end(), std::byte{0xee});
    region.memory.clear();
    region.memory.shrink_to_fit();
  }

  /// From now on nothing is taken of what the context sends, or all of it again.
  void stall(Line& line, bool stalled) {
    line.stalled = stalled;
    const int little = 32 << 10;  // so that what does not leave waits in the context, instead of the kernel
    if (stalled && inside_of(line) >= 0) setsockopt(line.inside, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
  }

  /// Closes a connection, with a reset or without.
  void shut(Line& line, bool reset) {
    if (line.fd < 0) return;
    // Where the context has changed over to another connection, this is the end that it waits for.
    const bool polite = !reset && line.silent && !line.have && !line.bad;
    if (reset) {
      const linger now{1, 0};
      setsockopt(line.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      ::close(line.fd);
      line.fd = -1;
    } else {
      shutdown(line.fd, SHUT_WR);
      line.closing = true;
    }
    line.over = true;
    if (!line.peer.empty() && !polite) trouble(line.peer);
  }

  /// What the context has, once.
  void look() {
    const int n = context.poll(events_.data(), static_cast<int>(events_.size()));
    must(n >= 0 && n <= static_cast<int>(events_.size()), "poll gives a wrong number");
    for (int i = 0; i < n; ++i) arrived(events_[static_cast<std::size_t>(i)]);
  }

  /// Lets the context and the peers work until nothing moves any more, and looks whether all is as it must be.
  void settle() {
    for (const Patience patience;;) {
      look();
      accept_lines();
      for (std::size_t i = 0; i < lines.size(); ++i) take_in(*lines[i]);
      if (at_rest() && nothing_is_missing()) break;
      if (patience.ended()) wrong(why_not());
    }
    verify();
  }

  /// At the end: a connection that was not there before is served, and nothing that was posted is forgotten.
  void finish() {
    settle();
    for (auto& line : lines) stall(*line, false);
    settle();
    const std::string name = name_of(loopback + 5, 77);
    Line& line = connect();
    greet(line, name);
    std::byte text[100];
    fill(text, sizeof text, 42);
    add(line, tcp::PacketKind::message, 0, text, sizeof text);
    const tcp::ReadRequest request{regions[0]->registration.key, 10, 500};
    add(line, tcp::PacketKind::request, 4711, &request, sizeof request);
    const std::size_t before = messages_;
    send(line, line.pending.size());
    settle();
    must(messages_ == before + 1 && answered_.count(4711), "a good connection is not served");
    for (auto& one : lines) shut(*one, true);
    settle();
    for (const auto& one : posted) {
      must(one->complete, "something that was posted to a peer that is gone never completes");
      if (one->operation.kind != wire::Operation::Kind::read) continue;
      for (std::size_t i = 0; i < Posted::guard; ++i)
        must(one->room[i] == std::byte{0x5a} && one->room[one->room.size() - 1 - i] == std::byte{0x5a}, "a read wrote outside its bounds");
      for (std::size_t i = 0; i < one->bytes; ++i) must(one->at()[i] == std::byte{0xa5}, "a read wrote after it was complete");
    }
  }

  /// A read whose id is known and whose reply was not sent yet.
  [[nodiscard]] Posted* waiting_read(std::size_t which) {
    std::vector<Posted*> waiting;
    for (const auto& one : posted)
      if (one->operation.kind == wire::Operation::Kind::read && one->asked && !one->complete) waiting.push_back(one.get());
    return waiting.empty() ? nullptr : waiting[which % waiting.size()];
  }

  tcp::Context context;
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::uint64_t> keys;  ///< of all regions that were ever registered
  std::vector<std::unique_ptr<Posted>> posted;

 private:
  /// Generous: what is waited for comes at once, unless it never comes.
  class Patience {
   public:
    [[nodiscard]] bool ended() const { return ++looks_ % 64 == 0 && std::chrono::steady_clock::now() > end_; }

   private:
    mutable unsigned looks_ = 0;
    std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  };

  static int lowest_descriptor() {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(fd);
    return fd;
  }
  static int listen_at(int from, int to) {
    for (int port = from + getpid() % 2000; port < to; ++port) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      const std::string name = name_of(loopback, static_cast<std::uint16_t>(port));
      if (!bind(fd, reinterpret_cast<const sockaddr*>(name.data()), static_cast<socklen_t>(name.size())) && !listen(fd, 64)) return fd;
      ::close(fd);
    }
    wrong("no port is free");
  }

  Posted& post(wire::Operation::Kind kind, const std::string& peer, std::size_t bytes) {
    if (!lines_of(peer) && peer != listener_name(0) && peer != listener_name(1)) trouble(peer);  // nobody is there
    posted.push_back(std::make_unique<Posted>());
    Posted& one = *posted.back();
    one.operation.kind = kind;
    one.peer = peer;
    one.number = posted.size();
    one.bytes = bytes;
    may_connect_ = may_connect_ || peer == listener_name(0) || peer == listener_name(1);
    return one;
  }

  void trouble(const std::string& peer) { troubled_[peer] = true; }
  [[nodiscard]] bool is_troubled(const std::string& peer) const { return troubled_.count(peer); }

  /// How many connections of a peer are not known to be closed.
  [[nodiscard]] std::size_t lines_of(const std::string& peer) const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line->peer == peer && !line->ended; }));
  }

  // --- the protocol, read once more -------------------------------------------------------------------------------------------------

  /// Reads what is about to be sent. Fewer bytes than given: the rest cannot be foretold.
  std::size_t follow(Line& line, const std::byte* at, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      if (line.bad) return bytes;
      if (line.have < sizeof line.head) {
        const std::size_t n = std::min(bytes - done, sizeof line.head - line.have);
        std::memcpy(line.head + line.have, at + done, n);
        line.have += n;
        done += n;
        if (line.have < sizeof line.head) return done;
        tcp::PacketHead head;
        std::memcpy(&head, line.head, sizeof head);
        if (is_unclear(line, head)) return done - n;
        line.bad = !is_good(line, head);
        if (line.bad) continue;
        line.left = head.bytes;
        line.pad = tcp::padding(head.bytes);
        line.body.clear();
        line.reply = nullptr;
        if (head.kind == tcp::PacketKind::reply) {
          line.reply = read_of(line, head.id);
          line.reply->landing = &line;
        }
        if (!line.left) end_body(line);
        continue;
      }
      const std::size_t n = std::min(bytes - done, line.left + line.pad), of_body = std::min(n, line.left);
      std::vector<std::byte>& to = line.reply ? line.reply->expected : line.body;
      to.insert(to.end(), at + done, at + done + of_body);
      done += n;
      line.pad -= n - of_body;
      line.left -= of_body;
      if (of_body && !line.left) end_body(line);
      else if (!line.left && !line.pad) end_packet(line);
    }
    return done;
  }

  Posted* read_of(const Line& line, std::uint64_t id) {
    for (const auto& one : posted)
      if (one->operation.kind == wire::Operation::Kind::read && one->asked && !one->complete && !one->finished && !one->refused && one->id == id &&
          one->peer == line.peer)
        return one.get();
    return nullptr;
  }

  /// An id may be that of a read whose request has not come yet.
  bool is_unclear(const Line& line, const tcp::PacketHead& head) {
    if (head.kind != tcp::PacketKind::reply && head.kind != tcp::PacketKind::refusal) return false;
    return !read_of(line, head.id) && std::any_of(posted.begin(), posted.end(), [&](const auto& one) {
      return one->operation.kind == wire::Operation::Kind::read && !one->asked && !one->complete && one->peer == line.peer;
    });
  }

  bool is_good(const Line& line, const tcp::PacketHead& head) {
    if (head.version != tcp::packet_version) return false;
    if (line.peer.empty()) return head.kind == tcp::PacketKind::greeting && head.id == job && head.bytes >= 16 && head.bytes <= 28;
    switch (head.kind) {
      case tcp::PacketKind::message: return head.bytes <= largest;
      case tcp::PacketKind::request: return head.bytes == sizeof(tcp::ReadRequest);
      case tcp::PacketKind::reply:
      case tcp::PacketKind::refusal: {
        const Posted* read = read_of(line, head.id);
        return read && !read->landing && head.bytes == (head.kind == tcp::PacketKind::reply ? read->bytes : 0);
      }
      default: return false;
    }
  }

  /// All of a packet but its padding was sent. A reply is received by then.
  void end_body(Line& line) {
    if (line.reply) {
      line.reply->finished = true;
      line.reply->landing = nullptr;
      line.reply = nullptr;
    }
    if (!line.pad) end_packet(line);
  }

  void end_packet(Line& line) {
    tcp::PacketHead head;
    std::memcpy(&head, line.head, sizeof head);
    line.have = 0;
    switch (head.kind) {
      case tcp::PacketKind::greeting: {
        sa_family_t family;
        std::memcpy(&family, line.body.data(), sizeof family);
        line.bad = !(family == AF_INET && head.bytes == sizeof(sockaddr_in)) && !(family == AF_INET6 && head.bytes == sizeof(sockaddr_in6));
        if (!line.bad) line.peer.assign(reinterpret_cast<const char*>(line.body.data()), line.body.size());
        break;
      }
      case tcp::PacketKind::message: expected_.push_back(line.body); break;
      case tcp::PacketKind::refusal: read_of(line, head.id)->refused = true; break;
      case tcp::PacketKind::request: {
        tcp::ReadRequest request;
        std::memcpy(&request, line.body.data(), sizeof request);
        Answer answer{line.peer, head.id, false, false, 0, 0, request.offset, request.bytes};
        for (std::size_t i = 0; i < regions.size(); ++i) {
          const Region& region = *regions[i];
          if (!region.used || region.registration.key != request.key) continue;
          answer.good = request.offset <= region.memory.size() && request.bytes <= region.memory.size() - request.offset;
          answer.region = i;
          answer.seed = region.seed;
        }
        answers.push_back(answer);
        break;
      }
      default: break;
    }
  }

  // --- what comes out of the context --------------------------------------------------------------------------------------------------

  void arrived(const wire::Event& event) {
    if (event.operation->kind == wire::Operation::Kind::receive) {
      must(!expected_.empty(), "a message is handed out that was not sent");
      must(!(reinterpret_cast<std::uintptr_t>(event.data) & 7), "a message does not lie at a multiple of eight");
      const std::vector<std::byte>& right = expected_.front();
      must(event.bytes == right.size() && std::equal(right.begin(), right.end(), event.data), "a message is handed out changed, or not in order");
      expected_.pop_front();
      ++messages_;
      return;
    }
    Posted& one = *reinterpret_cast<Posted*>(event.operation);
    must(!one.complete, "an operation completes twice");
    one.complete = true;
    if (one.operation.kind == wire::Operation::Kind::send) {
      must(!event.error || is_troubled(one.peer), "a message to a good peer fails");
      return;
    }
    if (event.error) {
      must(one.refused || (is_troubled(one.peer) && !one.finished), "a read from a good peer fails");
      if (!one.refused) fail_reads(one.peer);
    } else {
      must(one.finished, "a read completes without its reply");
      must(std::equal(one.expected.begin(), one.expected.end(), one.at()) && one.expected.size() == one.bytes, "a read brings other bytes than its reply");
    }
    std::fill(one.at(), one.at() + one.bytes, std::byte{0xa5});  // it is the caller's again
  }

  /// One read failed because of its peer: so must all, and replies that are under way go nowhere.
  void fail_reads(const std::string& peer) {
    failing_.push_back(peer);
    for (auto& line : lines)
      if (line->peer == peer && line->reply) {
        line->reply = nullptr;
        line->over = line->bad = true;
      }
  }

  void accept_lines() {
    if (!may_connect_) return;
    for (int i = 0; i < 2; ++i) {
      sockaddr_storage from;
      socklen_t bytes = sizeof from;
      const int fd = accept4(listeners()[static_cast<std::size_t>(i)], reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_CLOEXEC);
      if (fd < 0) continue;
      lines.push_back(std::make_unique<Line>());
      Line& line = *lines.back();
      line.fd = fd;
      line.there = from;
      bytes = sizeof line.here;
      getsockname(fd, reinterpret_cast<sockaddr*>(&line.here), &bytes);
      line.ours = true;
      line.peer = listener_name(i);
    }
  }

  void take_in(Line& line) {
    if (line.fd < 0 || line.stalled || line.ended) return;
    std::byte room[16 << 10];
    for (;;) {
      const ssize_t n = recv(line.fd, room, sizeof room, MSG_DONTWAIT);
      if (n == 0) line.silent = true;
      if (n < 0 && errno != EAGAIN) line.ended = true;
      if (n <= 0) break;
      line.in.insert(line.in.end(), room, room + n);
    }
    std::size_t at = 0;
    for (tcp::PacketHead head; line.in.size() - at >= sizeof head;) {
      std::memcpy(&head, line.in.data() + at, sizeof head);
      const std::size_t whole = sizeof head + head.bytes + tcp::padding(head.bytes);
      if (line.in.size() - at < whole) break;
      came(line, head, line.in.data() + at + sizeof head);
      at += whole;
    }
    line.in.erase(line.in.begin(), line.in.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void came(Line& line, const tcp::PacketHead& head, const std::byte* body) {
    must(head.version == tcp::packet_version, "the context sends another version");
    if (line.ours && !line.greeted_us) {
      must(head.kind == tcp::PacketKind::greeting && head.id == job && std::string_view(reinterpret_cast<const char*>(body), head.bytes) == context.name(),
           "the context does not greet");
      line.greeted_us = true;
      return;
    }
    switch (head.kind) {
      case tcp::PacketKind::message: {
        std::size_t number = 0;
        if (head.bytes >= sizeof number) std::memcpy(&number, body, sizeof number);
        must(number && number <= posted.size(), "the context sends a message that nobody posted");
        Posted& one = *posted[number - 1];
        must(!one.arrived && one.peer == line.peer && one.room.size() == head.bytes && std::equal(one.room.begin(), one.room.end(), body),
             "the context sends a message twice, changed or elsewhere");
        one.arrived = true;
        return;
      }
      case tcp::PacketKind::request: {
        tcp::ReadRequest request;
        must(head.bytes == sizeof request, "a request is of another size");
        std::memcpy(&request, body, sizeof request);
        must(request.offset && request.offset <= posted.size(), "the context asks for what nobody posted");
        Posted& one = *posted[request.offset - 1];
        must(!one.asked && one.peer == line.peer && one.bytes == request.bytes && request.key == 0x5eed, "the context asks twice, for something else or elsewhere");
        must(one.complete || !read_of(line, head.id), "two reads have one id");
        one.asked = true;
        one.id = head.id;
        return;
      }
      case tcp::PacketKind::reply:
      case tcp::PacketKind::refusal: {
        const bool reply = head.kind == tcp::PacketKind::reply;
        for (auto answer = answers.begin(); answer != answers.end(); ++answer) {
          if (answer->peer != line.peer || answer->id != head.id || (reply ? !answer->good : answer->good && !answer->withdrawn)) continue;
          bool same = head.bytes == (reply ? answer->bytes : 0);
          for (std::size_t i = 0; same && i < head.bytes; ++i) same = body[i] == byte_of(answer->seed, answer->offset + i);
          if (!same) continue;
          if (reply) ++answered_[head.id];
          answers.erase(answer);
          return;
        }
        wrong(reply ? "the context gives out memory that it was not asked for, or may not" : "the context refuses what it should give");
      }
      default: wrong("the context sends something unknown");
    }
  }

  // --- at rest -----------------------------------------------------------------------------------------------------------------------

  static bool same_place(const sockaddr_storage& a, const sockaddr_storage& b) { return !std::memcmp(&a, &b, 8); }  // family, port, address

  /// The context's descriptor of a connection; -1: it has none.
  int inside_of(Line& line) {
    const auto is_it = [&](int fd) {
      sockaddr_storage own, other;
      socklen_t bytes = sizeof own;
      if (fd == line.fd || getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) || !same_place(own, line.there)) return false;
      bytes = sizeof other;
      return !getpeername(fd, reinterpret_cast<sockaddr*>(&other), &bytes) && same_place(other, line.here);
    };
    if (line.inside >= 0 && is_it(line.inside)) return line.inside;
    for (int fd = first_free_; fd < first_free_ + 40; ++fd)
      if (is_it(fd)) {
        line.accepted = true;
        return line.inside = fd;
      }
    return line.inside = -1;
  }

  static tcp_info about(int fd) {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
    return info;
  }
  static bool is_established(int fd) { return about(fd).tcpi_state == 1; }

  /// Nothing that was sent is unread, and the context has nothing that it would do if it were asked.
  bool at_rest() {
    if (!context.may_sleep()) return false;
    pollfd waits{context.wait_fd(), POLLIN, 0};
    if (::poll(&waits, 1, 0)) return false;
    for (auto& line : lines) {
      if (line->fd < 0 || line->ended) continue;
      const int fd = inside_of(*line);
      if (fd < 0) {
        if (!line->accepted && is_established(line->fd)) return false;
        continue;
      }
      int unread = 0;
      if (line->bad || line->closing || about(fd).tcpi_bytes_received < line->sent || ioctl(fd, FIONREAD, &unread) || unread) return false;
    }
    return true;
  }

  /// What the peers are to get has come.
  bool nothing_is_missing() {
    if (!expected_.empty()) return false;
    for (const auto& one : posted) {
      if (one->operation.kind == wire::Operation::Kind::read && !one->complete && (one->finished || one->refused)) return false;
      if (!is_reachable(one->peer)) continue;
      if (one->operation.kind == wire::Operation::Kind::read ? !one->asked : !one->arrived || !one->complete) return false;
    }
    return std::none_of(answers.begin(), answers.end(), [&](const Answer& answer) { return is_reachable(answer.peer); });
  }

  /// What is sent to it comes to be seen.
  bool is_reachable(const std::string& peer) const {
    if (is_troubled(peer)) return false;
    for (const auto& line : lines)
      if (line->peer == peer && line->stalled) return false;
    return true;
  }

  const char* why_not() {
    if (!expected_.empty()) return "a message is not handed out";
    for (const auto& line : lines)
      if (line->fd >= 0 && line->bad && inside_of(*line) >= 0) return "a connection with a bad packet is not closed";
    if (!at_rest()) return "the context does not come to rest";
    return "what was posted or asked for does not come";
  }

  void verify() {
    for (const std::string& peer : failing_)
      for (const auto& one : posted)
        must(one->peer != peer || one->operation.kind != wire::Operation::Kind::read || one->complete, "one read fails because of its peer, and another does not");
    failing_.clear();
    for (auto& line : lines) {
      if (line->ended && line->over) continue;
      const bool closed = line->fd < 0 || inside_of(*line) < 0;
      if (!closed) continue;
      // Of a peer in trouble the context may close what else there is of it.
      // And who has not greeted for a minute, in a process that was stopped meanwhile, is sent away.
      const bool late = line->peer.empty() && std::chrono::steady_clock::now() - line->since > std::chrono::seconds(30);
      must(line->over || late || (!line->peer.empty() && is_troubled(line->peer)), "a good connection is closed");
      if (line->reply) line->reply->landing = nullptr;
      line->reply = nullptr;
      line->over = line->ended = true;
      if (line->peer.empty()) continue;
      for (const auto& one : posted) {
        if (one->peer != line->peer || one->complete) continue;
        if (line->bad && one->operation.kind == wire::Operation::Kind::read) wrong("a read survives the bad packet of its peer");
        if (!lines_of(line->peer)) wrong("what was posted to a peer without a connection does not fail");
      }
    }
  }

  std::vector<wire::Event> events_;
  int first_free_ = -1;
  std::deque<std::vector<std::byte>> expected_;  ///< messages that were sent and not handed out
  std::vector<Answer> answers;
  std::map<std::uint64_t, int> answered_;
  std::map<std::string, bool> troubled_;
  std::vector<std::string> failing_;
  std::size_t messages_ = 0;
  bool may_connect_ = false;  ///< the context, to where it finds somebody who listens
};

}  // namespace heddle::test
