// What strangers and peers of a fuzzed context do, and when it has come to rest.
#include "tcp_peer.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace heddle::test {

Stranger::Stranger(int events_at_once) : events_(static_cast<std::size_t>(events_at_once)) {
  first_free_ = lowest_descriptor();
  std::string problem;
  must(context.open(largest, true, problem), "the context does not open");
}

Stranger::~Stranger() {
  context.close();
  for (const auto& line : lines)
    if (line->fd >= 0) shut(*line, true);
  for (const int listener : listeners())
    for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) ::close(fd);
  must(lowest_descriptor() == first_free_, "a descriptor was left open");
}

const std::vector<int>& Stranger::listeners() {
  static const std::vector<int> both = {listen_at(1024, 30'000), listen_at(61'000, 65'535)};
  return both;
}

static sockaddr_storage place_of_listener(int i) {
  sockaddr_storage place{};
  socklen_t bytes = sizeof place;
  getsockname(Stranger::listeners()[static_cast<std::size_t>(i)], reinterpret_cast<sockaddr*>(&place), &bytes);
  return place;
}

std::string Stranger::listener_name(int i) { return name_of(i ? ~std::uint64_t{0} : 1, {place_of_listener(i)}); }

std::string Stranger::searched_name(int i) {
  const sockaddr_storage place = place_of_listener(i);
  return name_of(i ? ~std::uint64_t{4} : 4, {place_of(loopback + 1, tcp::Endpoint::of(place).port), place});
}

bool Stranger::listens(std::uint64_t peer) {
  for (const int i : {0, 1})
    if (peer == identity_of(listener_name(i)) || peer == identity_of(searched_name(i))) return true;
  return false;
}

Line& Stranger::connect() {
  auto line = std::make_unique<Line>();
  tcp::Name name;
  must(tcp::decode(context.name(), name) && name.addresses.size() == 1, "the context has no name");
  name.addresses[0].address.fill(line->there);
  line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(line->fd >= 0 && !::connect(line->fd, reinterpret_cast<sockaddr*>(&line->there), sizeof(sockaddr_in)), "cannot connect to the context");
  socklen_t bytes = sizeof line->here;
  getsockname(line->fd, reinterpret_cast<sockaddr*>(&line->here), &bytes);
  lines.push_back(std::move(line));
  return *lines.back();
}

void Stranger::add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes, std::uint32_t said, std::uint16_t version) {
  const tcp::PacketHead head{said, kind, version, id};
  const auto* at = reinterpret_cast<const std::byte*>(&head);
  line.pending.insert(line.pending.end(), at, at + sizeof head);
  at = static_cast<const std::byte*>(body);
  line.pending.insert(line.pending.end(), at, at + bytes);
  line.pending.resize(line.pending.size() + tcp::padding(bytes));
}

void Stranger::add(Line& line, tcp::PacketKind kind, std::uint64_t id, const void* body, std::size_t bytes) {
  add(line, kind, id, body, bytes, static_cast<std::uint32_t>(bytes), tcp::packet_version);
}

void Stranger::send(Line& line, std::size_t bytes) {
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
  if (line.bad && (line.peer || line.meant)) trouble(line.peer ? line.peer : line.meant);
}

void Stranger::post_read(const std::string& peer, std::size_t bytes) {
  Posted& read = post(true, identity_of(peer), bytes);
  read.room.assign(bytes + 2 * Posted::guard, std::byte{0x5a});
  const wire::Address from = context.insert(peer);
  if (from == wire::no_address) wrong("a peer's name is refused");
  // Its number stands where the offset in the peer's memory belongs, so that the request tells which read it is of.
  must(context.read(from, read.at(), bytes, nullptr, read.number, 0x5eed, read.operation) == 0, "a read is not taken");
  context.flush();
}

void Stranger::post_message(const std::string& peer, std::size_t bytes) {
  bytes = std::max(bytes, sizeof(std::size_t));
  Posted& message = post(false, identity_of(peer), bytes);
  message.room.resize(bytes);
  fill(message.room.data(), bytes, message.number);
  std::memcpy(message.room.data(), &message.number, sizeof message.number);
  const std::size_t half = bytes / 2;
  const iovec parts[2] = {{message.room.data(), half}, {message.room.data() + half, bytes - half}};
  const int code = context.send_parts(context.insert(peer), parts, 2, message.operation);
  must(code == 0 || code == 1, "a message is not taken");
  if (code == 1) message.complete = true;
}

void Stranger::post_write(const std::string& peer, std::size_t bytes, bool uncopied) {
  const wire::Address to = context.insert(peer);
  Posted& write = post(false, identity_of(peer), bytes);
  write.writes = true;
  write.room.resize(bytes);
  fill(write.room.data(), bytes, write.number);
  uncopied = uncopied || bytes > context.capabilities().copied_write;
  const int code = context.write(to, write.room.data(), bytes, nullptr, std::uint64_t{write.number} << 32, 0x5eed, uncopied ? &write.operation : nullptr);
  must(code >= 0 || code == -EAGAIN || is_troubled(write.peer), "a write is not taken");
  if (code == -EAGAIN || code < 0) {
    write.complete = write.arrived = true;
    return;
  }
  if (code == 1) write.complete = true;
  write.count = ++posted_writes_[write.peer];
  context.flush();
}

void Stranger::post_confirm(const std::string& peer) {
  Posted& question = post(true, identity_of(peer), 0);
  question.confirms = true;
  question.room.assign(2 * Posted::guard, std::byte{0x5a});
  question.count = posted_writes_[question.peer];
  must(context.confirm(context.insert(peer), question.operation) == 0, "a confirmation is not taken");
  context.flush();
}

void Stranger::register_region(std::size_t bytes, bool may_write) {
  regions.push_back(std::make_unique<Region>());
  Region& region = *regions.back();
  region.seed = regions.size() + 1000;
  region.bytes = bytes;
  region.may_write = may_write;
  region.memory.assign(bytes + 2 * Region::guard, std::byte{0x5a});
  fill(region.at(), bytes, region.seed);
  region.right = region.memory;
  region.unsure.assign(region.memory.size(), false);
  must(context.register_memory(region.at(), bytes, may_write ? wire::Use::written_by_peers : wire::Use::read_by_peers, region.registration),
       "memory is not registered");
  keys.push_back(region.registration.key);
  region.used = true;
}

void Stranger::withdraw_region(std::size_t i) {
  Region& region = *regions[i];
  if (!region.used) return;
  region.used = false;
  for (Answer& answer : answers_)
    if (answer.good && answer.region == i) {
      answer.withdrawn = true;
      trouble(answer.peer);  // where a part of it has left, the connection ends
    }
  for (auto& line : lines)
    if (line->writing == &region && line->left) {  // the rest has nowhere to go
      line->writing = nullptr;
      line->over = line->bad = true;
      trouble(line->peer);
    }
  context.deregister(region.registration);
  std::fill(region.memory.begin(), region.memory.end(), std::byte{0xee});
  region.memory.clear();
  region.memory.shrink_to_fit();
}

void Stranger::stall(Line& line, bool stalled) {
  line.stalled = stalled;
  const int little = 32 << 10;  // so that what does not leave waits in the context, instead of the kernel
  if (stalled && inside_of(line) >= 0) setsockopt(line.inside, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
}

void Stranger::shut(Line& line, bool reset) {
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
  if (line.peer && !polite) trouble(line.peer);
  if (!line.peer && line.meant) trouble(line.meant);
}

void Stranger::look() {
  const int n = context.poll(events_.data(), static_cast<int>(events_.size()));
  must(n >= 0 && n <= static_cast<int>(events_.size()), "poll gives a wrong number");
  for (int i = 0; i < n; ++i) arrived(events_[static_cast<std::size_t>(i)]);
}

void Stranger::settle() {
  for (const Patience patience;;) {
    look();
    accept_lines();
    for (std::size_t i = 0; i < lines.size(); ++i) take_in(*lines[i]);
    if (at_rest() && nothing_is_missing()) break;
    if (patience.ended()) wrong(why_not());
  }
  verify();
}

void Stranger::finish() {
  settle();
  for (auto& line : lines) stall(*line, false);
  settle();
  Line& line = connect();
  greet(line, 77);
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
    if (!one->reads) continue;
    for (std::size_t i = 0; i < Posted::guard; ++i)
      must(one->room[i] == std::byte{0x5a} && one->room[one->room.size() - 1 - i] == std::byte{0x5a}, "a read wrote outside its bounds");
    for (std::size_t i = 0; i < one->bytes; ++i) must(one->at()[i] == std::byte{0xa5}, "a read wrote after it was complete");
  }
}

Posted* Stranger::waiting_read(std::size_t which, bool confirms) {
  std::vector<Posted*> waiting;
  for (const auto& one : posted)
    if (one->reads && one->confirms == confirms && one->asked && !one->complete) waiting.push_back(one.get());
  return waiting.empty() ? nullptr : waiting[which % waiting.size()];
}

int Stranger::lowest_descriptor() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

int Stranger::listen_at(int from, int to) {
  for (int port = from + getpid() % 2000; port < to; ++port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const sockaddr_storage place = place_of(loopback, static_cast<std::uint16_t>(port));
    if (!bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof(sockaddr_in)) && !listen(fd, 64)) return fd;
    ::close(fd);
  }
  wrong("no port is free");
}

Posted& Stranger::post(bool reads, std::uint64_t peer, std::size_t bytes) {
  if (!lines_of(peer) && !listens(peer)) trouble(peer);  // nobody is there
  posted.push_back(std::make_unique<Posted>());
  Posted& one = *posted.back();
  one.reads = reads;
  one.peer = peer;
  one.number = posted.size();
  one.bytes = bytes;
  may_connect_ = may_connect_ || listens(peer);
  return one;
}

void Stranger::accept_lines() {
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
  }
}

void Stranger::take_in(Line& line) {
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

int Stranger::inside_of(Line& line) {
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

tcp_info Stranger::about(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
  return info;
}

bool Stranger::at_rest() {
  if (!context.may_sleep()) return false;
  pollfd waits{context.wait_fd(), POLLIN, 0};
  if (::poll(&waits, 1, 0)) return false;
  for (auto& line : lines) {
    if (line->fd < 0 || line->ended) continue;
    if (line->ours && !line->greeted_us && !line->stalled && inside_of(*line) >= 0) return false;
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

bool Stranger::nothing_is_missing() {
  if (!expected_.empty()) return false;
  for (const auto& one : posted) {
    if (one->reads && !one->complete && (one->finished || one->refused)) return false;
    if (!is_reachable(one->peer)) continue;
    if (one->reads ? !one->asked : !one->arrived || !one->complete) return false;
  }
  if (!announced_.empty()) return false;
  if (std::any_of(confirmed_.begin(), confirmed_.end(), [&](const auto& one) { return is_reachable(one.first); })) return false;
  return std::none_of(answers_.begin(), answers_.end(), [&](const Answer& answer) { return is_reachable(answer.peer); });
}

bool Stranger::is_reachable(std::uint64_t peer) const {
  if (is_troubled(peer)) return false;
  bool joined = false, looked_for = false;
  for (const auto& line : lines) {
    if (line->peer == peer && line->stalled) return false;
    joined = joined || (line->peer == peer && !line->ended);
    looked_for = looked_for || (line->meant == peer && !line->peer && !line->ended);
  }
  return joined || !looked_for;
}

const char* Stranger::why_not() {
  if (!expected_.empty()) return "a message is not handed out";
  if (!announced_.empty()) return "a write is not announced";
  for (const auto& line : lines)
    if (line->fd >= 0 && line->bad && inside_of(*line) >= 0) return "a connection with a bad packet is not closed";
  if (!at_rest()) return "the context does not come to rest";
  return "what was posted or asked for does not come";
}

}  // namespace heddle::test
