// A peer with several addresses: which of them is used, where others lead nowhere, to strangers, or to somebody else of the job.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "side.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::tcp {
namespace {

Endpoint loopback(unsigned last, std::uint16_t port = 0) {
  sockaddr_storage any{};
  auto& in = reinterpret_cast<sockaddr_in&>(any);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last);
  in.sin_port = htons(port);
  return Endpoint::of(any);
}

HostAddress own(unsigned last, bool offered = true) {
  HostAddress one;
  one.address = loopback(last);
  one.prefix = 96 + 8;
  one.interface = "lo";
  one.offered = offered;
  return one;
}

/// Listens at an address, and does there what a test likes.
struct Somebody {
  Somebody(unsigned last, std::uint16_t port) {
    sockaddr_storage at;
    const socklen_t bytes = loopback(last, port).fill(at);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(listen(listener, 8), 0);
  }
  ~Somebody() {
    for (const int fd : {listener, line})
      if (fd >= 0) close(fd);
  }
  /// Lets who knocks in, and takes what it says.
  void look() {
    if (line < 0) line = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    char bytes[4096];
    const ssize_t n = line < 0 ? 0 : recv(line, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) heard.append(bytes, static_cast<std::size_t>(n));
  }
  [[nodiscard]] bool has_greeting() const { return heard.size() >= sizeof(PacketHead) + sizeof(Greeting); }
  void say(PacketKind kind, std::uint64_t id, std::uint64_t body) const {
    const struct {
      PacketHead head;
      std::uint64_t body;
    } packet{{sizeof body, kind, packet_version, id}, body};
    EXPECT_EQ(::send(line, &packet, sizeof packet, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof packet));
  }
  int listener = -1, line = -1;
  std::string heard;
};

class TcpConnectAttempt : public testing::Test {
 protected:
  /// a and b are at 127.0.0.1.
  TcpConnectAttempt() {
    set_host({own(1)});
    set_key(key);
    a = std::make_unique<Side>();
    b = std::make_unique<Side>();
  }
  [[nodiscard]] std::uint16_t port() const { return name_of(*b).addresses[0].address.port; }
  /// b's name, with other addresses that are tried before its own.
  [[nodiscard]] std::string b_also_at(const std::vector<unsigned>& others) const {
    Name name = name_of(*b);
    for (const unsigned last : others) name.addresses.push_back({loopback(last, port()), 0, true});
    return encode(name);
  }
  void send_to(const std::string& name) { a->context.send(a->context.insert(name), bytes.data(), bytes.size(), nullptr, sent); }
  bool arrives() {
    return until(*a, *b, [&] { return b->messages.size() == 1 && a->done.size() == 1; }) && b->messages[0] == bytes;
  }
  std::unique_ptr<Side> a, b;
  const std::vector<std::byte> bytes = pattern(5000, 1);
  wire::Operation sent;
};

TEST_F(TcpConnectAttempt, an_address_where_nobody_listens_is_passed_over) {
  send_to(b_also_at({9}));
  EXPECT_TRUE(arrives());
  EXPECT_EQ(a->context.way(a->context.insert(b->context.name())), "lo 127.0.0.1 to 127.0.0.1");
}

TEST_F(TcpConnectAttempt, a_stranger_who_hangs_up_is_passed_over) {
  Somebody stranger(9, port());
  send_to(b_also_at({9}));
  ASSERT_TRUE(until(*a, *b, [&] { return stranger.look(), stranger.has_greeting(); }));
  EXPECT_TRUE(b->messages.empty());
  close(std::exchange(stranger.line, -1));
  EXPECT_TRUE(arrives());
}

TEST_F(TcpConnectAttempt, beside_a_stranger_who_says_nothing_the_next_address_is_tried) {
  Somebody stranger(9, port()), other(10, port());
  send_to(b_also_at({9, 10}));
  ASSERT_TRUE(until(*a, *b, [&] { return stranger.look(), other.look(), b->messages.size() == 1; }));
  EXPECT_TRUE(arrives());
  // Both were greeted, and neither was told anything else, not even the job's key.
  for (const Somebody* one : {&stranger, &other}) {
    ASSERT_EQ(one->heard.size(), sizeof(PacketHead) + sizeof(Greeting));
    EXPECT_EQ(one->heard.find(std::string(reinterpret_cast<const char*>(&key), sizeof key)), std::string::npos);
  }
  char byte;
  EXPECT_EQ(recv(stranger.line, &byte, 1, 0), 0) << "the connection that is not needed is closed";
}

TEST_F(TcpConnectAttempt, who_is_not_meant_cannot_pretend_to_be) {
  const std::uint64_t self = name_of(*a).identity, meant = name_of(*b).identity;
  const std::vector<std::pair<PacketKind, std::uint64_t>> answers = {
      {PacketKind::welcome, 0}, {PacketKind::welcome, key}, {PacketKind::message, 0}, {PacketKind::welcome, proof_of(key + 1, PacketKind::welcome, meant, self, 7)},
      {PacketKind::welcome, proof_of(key, PacketKind::welcome, meant + 1, self, 7)}, {PacketKind::welcome, proof_of(key, PacketKind::welcome, meant, self, 8)},
      {PacketKind::welcome, proof_of(key, PacketKind::greeting, self, meant, 1)}};
  for (const auto& [kind, id] : answers) {
    Side from;
    b->messages.clear();
    Somebody stranger(9, port());
    wire::Operation operation;
    from.context.send(from.context.insert(b_also_at({9})), bytes.data(), bytes.size(), nullptr, operation);
    ASSERT_TRUE(until(from, *b, [&] { return stranger.look(), stranger.has_greeting(); }));
    stranger.say(kind, id, 7);
    ASSERT_TRUE(until(from, *b, [&] { return stranger.look(), b->messages.size() == 1; }));
    EXPECT_EQ(stranger.heard.size(), sizeof(PacketHead) + sizeof(Greeting));
  }
}

TEST_F(TcpConnectAttempt, another_process_of_the_job_hangs_up_when_it_is_not_meant) {
  Side other;
  const int fd = client_of(other);
  const struct {
    PacketHead head;
    Greeting body;
  } packet{{sizeof(Greeting), PacketKind::greeting, packet_version, proof_of(key, PacketKind::greeting, 4711, name_of(*b).identity, 1)},
           {4711, name_of(*b).identity, 1}};
  ASSERT_EQ(::send(fd, &packet, sizeof packet, 0), static_cast<ssize_t>(sizeof packet));
  char byte;
  ssize_t n = -1;
  EXPECT_TRUE(until(*a, other, [&] { return (n = recv(fd, &byte, 1, MSG_DONTWAIT)) == 0; })) << n;
  close(fd);
}

TEST_F(TcpConnectAttempt, a_peer_that_all_addresses_fail_for_fails_what_was_posted_and_each_is_named) {
  const std::string name = b_also_at({9, 10});
  b.reset();
  Side other;
  send_to(name);
  wire::Operation read;
  std::vector<std::byte> room(100);
  const wire::Address peer = a->context.insert(name);
  a->context.read(peer, room.data(), room.size(), nullptr, 0, 1, read);
  a->context.flush();
  ASSERT_TRUE(until(*a, other, [&] { return a->failed.size() == 2; }));
  EXPECT_TRUE(a->context.has_left(peer));
  EXPECT_EQ(a->context.way(peer), "lo 127.0.0.1 to 127.0.0.9 (Connection refused), lo 127.0.0.1 to 127.0.0.10 (Connection refused), "
                                  "lo 127.0.0.1 to 127.0.0.1 (Connection refused)");
  a->failed.clear();
  a->context.send(peer, bytes.data(), bytes.size(), nullptr, sent);
  ASSERT_TRUE(until(*a, other, [&] { return a->failed.size() == 1; }));
}

TEST_F(TcpConnectAttempt, messages_and_reads_that_wait_for_the_search_are_served_in_order_after_it) {
  Somebody stranger(9, port());
  const auto memory = pattern(300'000, 3);
  wire::Registration registration;
  ASSERT_TRUE(b->context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registration));
  const wire::Address to = a->context.insert(b_also_at({9}));
  std::vector<std::vector<std::byte>> messages;
  std::vector<wire::Operation> sends(20), reads(3);
  std::vector<std::vector<std::byte>> rooms(reads.size(), std::vector<std::byte>(memory.size()));
  for (std::size_t i = 0; i < sends.size(); ++i) {
    messages.push_back(pattern(i * 4000, static_cast<unsigned>(i)));
    EXPECT_EQ(a->context.send(to, messages[i].data(), messages[i].size(), nullptr, sends[i]), 0) << "the buffer is not free yet";
    if (i >= reads.size()) continue;
    EXPECT_EQ(a->context.read(to, rooms[i].data(), rooms[i].size(), nullptr, registration.base, registration.key, reads[i]), 0);
  }
  ASSERT_TRUE(until(*a, *b, [&] { return stranger.look(), stranger.has_greeting(); }));
  close(std::exchange(stranger.line, -1));
  ASSERT_TRUE(until(*a, *b, [&] { return b->messages.size() == sends.size() && a->done.size() == sends.size() + reads.size(); }));
  EXPECT_EQ(b->messages, messages);
  for (const auto& room : rooms) EXPECT_EQ(room, memory);
}

TEST_F(TcpConnectAttempt, a_peer_that_is_slow_to_answer_is_used_at_its_best_address_all_the_same) {
  set_host({own(5), own(6)});
  a = std::make_unique<Side>();
  b = std::make_unique<Side>();
  send_to(std::string(b->context.name()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);  // twice as long as one address is tried alone
  while (std::chrono::steady_clock::now() < end) a->look(), usleep(1000);
  const int before = open_sockets();
  EXPECT_TRUE(arrives());
  EXPECT_EQ(a->context.way(a->context.insert(b->context.name())), "lo 127.0.0.5 to 127.0.0.5");
  EXPECT_TRUE(until(*a, *b, [&] { return open_sockets() == before; })) << "one of two connections goes, and one has another end now";
}

TEST_F(TcpConnectAttempt, two_that_look_for_each_other_end_with_one_connection) {
  for (int round = 0; round < 30; ++round) {
    const int before = open_sockets();
    Side one, two;
    const auto with_more = [](const Side& side, unsigned last) {
      Name name = name_of(side);
      name.addresses.push_back({loopback(last, name.addresses[0].address.port), 0, true});
      return encode(name);
    };
    const wire::Address to_two = one.context.insert(with_more(two, 9)), to_one = two.context.insert(with_more(one, 10));
    std::vector<wire::Operation> operations(40);
    for (std::size_t i = 0; i < operations.size();) {
      if (i == 20 && round % 3 == 1) one.look();
      if (i == 30 && round % 3 == 2) two.look();
      one.context.send(to_two, bytes.data(), bytes.size(), nullptr, operations[i++]);
      two.context.send(to_one, bytes.data(), bytes.size(), nullptr, operations[i++]);
    }
    ASSERT_TRUE(until(one, two, [&] { return one.messages.size() == 20 && two.messages.size() == 20 && open_sockets() == before + 4; }))
        << one.messages.size() << " and " << two.messages.size() << " messages, " << open_sockets() - before << " sockets";
    for (const Side* side : {&one, &two}) {
      EXPECT_TRUE(side->failed.empty());
      for (const auto& message : side->messages) ASSERT_EQ(message, bytes);
    }
  }
}

/// Somebody who looks for a context, and has been welcomed.
struct Seeker {
  Seeker(Side& other, Side& side) : fd(client_of(side)) {
    const std::uint64_t self = name_of(side).identity;
    const struct {
      PacketHead head;
      Greeting body;
    } packet{{sizeof(Greeting), PacketKind::greeting, packet_version, proof_of(key, PacketKind::greeting, identity, self, 1)}, {identity, self, 1}};
    EXPECT_EQ(::send(fd, &packet, sizeof packet, 0), static_cast<ssize_t>(sizeof packet));
    struct {
      PacketHead head;
      std::uint64_t challenge;
    } answer{};
    EXPECT_TRUE(until(other, side, [&] { return recv(fd, &answer, sizeof answer, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof answer); }));
    EXPECT_TRUE(answer.head.kind == PacketKind::welcome && answer.head.bytes == sizeof answer.challenge &&
                answer.head.id == proof_of(key, PacketKind::welcome, self, identity, answer.challenge));
    choice = proof_of(key, PacketKind::choice, identity, self, answer.challenge);
  }
  ~Seeker() { close(fd); }
  /// A message behind an answer to the challenge.
  void say(std::uint64_t proof) const {
    const struct {
      PacketHead choice, head;
      std::uint64_t body;
    } packet{{0, PacketKind::choice, packet_version, proof}, {8, PacketKind::message, packet_version, 0}, 0};
    EXPECT_EQ(::send(fd, &packet, sizeof packet, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof packet));
  }
  static constexpr std::uint64_t identity = 4711;
  int fd;
  std::uint64_t choice = 0;
};

TEST_F(TcpConnectAttempt, who_repeats_what_others_have_said_is_not_taken_for_them) {
  Seeker good(*a, *b);
  for (const std::uint64_t proof : {good.choice, std::uint64_t{0}, key}) {
    Seeker other(*a, *b);  // it could greet because it has heard somebody's greeting
    ASSERT_NE(other.choice, good.choice);
    other.say(proof);
    char byte;
    EXPECT_TRUE(until(*a, *b, [&] {
      const ssize_t n = recv(other.fd, &byte, 1, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno != EAGAIN);
    }));
  }
  EXPECT_TRUE(b->messages.empty());
  // Nor does it help to say that no welcome is wanted.
  const std::uint64_t self = name_of(*b).identity;
  const int fd = client_of(*b);
  const struct {
    PacketHead head;
    Greeting body;
  } packet{{sizeof(Greeting), PacketKind::greeting, packet_version, proof_of(key, PacketKind::greeting, Seeker::identity, self, 1)}, {Seeker::identity, self, 0}};
  ASSERT_EQ(::send(fd, &packet, sizeof packet, 0), static_cast<ssize_t>(sizeof packet));
  char byte;
  EXPECT_TRUE(until(*a, *b, [&] { return recv(fd, &byte, 1, MSG_DONTWAIT) == 0; }));
  close(fd);
  good.say(good.choice);
  EXPECT_TRUE(until(*a, *b, [&] { return b->messages.size() == 1; }));
}

TEST_F(TcpConnectAttempt, who_was_welcomed_and_leaves_without_a_word_has_not_been_a_peer) {
  // Somebody who tries two of our addresses and uses one; the other one must not count as a connection that broke.
  auto unused = std::make_unique<Seeker>(*a, *b);
  const Seeker used(*a, *b);
  used.say(used.choice);
  ASSERT_TRUE(until(*a, *b, [&] { return b->messages.size() == 1; }));
  unused.reset();
  for (int i = 0; i < 200; ++i) b->look();
  const wire::Address peer = b->context.insert(encode({Seeker::identity, {{loopback(9, 1), 0, true}}}));
  EXPECT_FALSE(b->context.has_left(peer));
  EXPECT_EQ(b->context.send(peer, bytes.data(), 8, nullptr, sent), 1);
  char packet[sizeof(PacketHead) + 8];
  EXPECT_EQ(recv(used.fd, packet, sizeof packet, 0), static_cast<ssize_t>(sizeof packet)) << "the answer comes on the connection that was chosen";
}

TEST_F(TcpConnectAttempt, of_a_host_with_several_addresses_those_that_are_offered_are_served_and_no_other) {
  set_host({own(1), own(5), own(6, false)});
  const int before = open_sockets();
  Side one, two;
  const Name name = name_of(two);
  ASSERT_EQ(name.addresses.size(), 2U);
  EXPECT_EQ(name.addresses[0].address.port, name.addresses[1].address.port);
  for (const unsigned last : {6U, 7U}) {
    sockaddr_storage at;
    const socklen_t length = loopback(last, name.addresses[0].address.port).fill(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), length), 0);
    char byte;
    EXPECT_TRUE(until(one, two, [&] { return recv(fd, &byte, 1, MSG_DONTWAIT) == 0; })) << last;
    close(fd);
  }
  one.context.send(one.context.insert(two.context.name()), bytes.data(), bytes.size(), nullptr, sent);
  ASSERT_TRUE(until(one, two, [&] { return two.messages.size() == 1 && open_sockets() == before + 4; }));
  EXPECT_EQ(two.messages[0], bytes);
}

TEST_F(TcpConnectAttempt, its_descriptor_wakes_a_sleeper_for_each_step_of_the_search) {
  Somebody stranger(9, port());
  send_to(b_also_at({9}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool hung_up = false;
  while (b->messages.empty() && std::chrono::steady_clock::now() < end) {
    while (!a->context.may_sleep()) a->look();
    while (!b->context.may_sleep()) b->look();
    pollfd both[2] = {{a->context.wait_fd(), POLLIN, 0}, {b->context.wait_fd(), POLLIN, 0}};
    ::poll(both, 2, 100);  // the stranger wakes nobody
    if (both[0].revents) a->look();
    if (both[1].revents) b->look();
    stranger.look();
    if (stranger.has_greeting() && !std::exchange(hung_up, true)) close(std::exchange(stranger.line, -1));
  }
  EXPECT_EQ(b->messages.size(), 1U);
}

}  // namespace
}  // namespace heddle::tcp
