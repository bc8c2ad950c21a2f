// Peers that do what no good one does: strangers, half replies, requests for what is not offered any more.
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "side.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::tcp {
namespace {

TEST_F(TcpContext, what_does_not_begin_with_the_jobs_key_is_thrown_out_and_hands_nothing_over) {
  Side a, b;
  std::mt19937 random(3);
  const Greeting text{name_of(a).identity, name_of(b).identity, 0};
  const auto greeting = [&](std::uint64_t with, PacketKind kind, std::uint32_t bytes, std::uint64_t to = 0) {
    const Greeting body{text.from, text.to + to, 0};
    std::vector<std::byte> packet(sizeof(PacketHead) + sizeof body);
    const PacketHead head{bytes, kind, packet_version, proof_of(with, PacketKind::greeting, text.from, text.to + to)};
    std::memcpy(packet.data(), &head, sizeof head);
    std::memcpy(packet.data() + sizeof head, &body, sizeof body);
    return packet;
  };
  constexpr auto whole = static_cast<std::uint32_t>(sizeof text);
  std::vector<std::vector<std::byte>> rubbish = {greeting(key + 1, PacketKind::greeting, whole), greeting(key, PacketKind::message, whole),
                                                 greeting(key, PacketKind::greeting, whole - 1), greeting(key, PacketKind::greeting, 1 << 30),
                                                 greeting(key, PacketKind::reply, whole), greeting(key, static_cast<PacketKind>(99), whole),
                                                 greeting(key, PacketKind::greeting, whole, 1), greeting(key, PacketKind::welcome, 0)};
  for (int i = 0; i < 20; ++i) rubbish.push_back(pattern(16 + random() % 5000, static_cast<unsigned>(i)));
  for (const auto& bytes : rubbish) {
    const int client = client_of(b);
    ASSERT_GT(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    bool out = false;  // the other end has closed
    ASSERT_TRUE(until(a, b, [&] {
      pollfd look{client, POLLIN, 0};
      char byte;
      return out = out || (::poll(&look, 1, 0) == 1 && recv(client, &byte, 1, 0) <= 0);
    }));
    ::close(client);
  }
  EXPECT_TRUE(b.messages.empty());
  // And who belongs here is served as before.
  wire::Operation operation;
  const auto bytes = pattern(100, 9);
  a.context.send(a.context.insert(b.context.name()), bytes.data(), bytes.size(), nullptr, operation);
  ASSERT_TRUE(until(a, b, [&] { return b.messages.size() == 1; }));
  EXPECT_EQ(b.messages[0], bytes);
}

TEST_F(TcpContext, strangers_leave_no_memory_behind_where_nobody_ever_sleeps) {
  Side side;
  const auto visits = [&](int n) {
    for (int i = 0; i < n; ++i) {
      const int client = client_of(side);
      ASSERT_EQ(::send(client, "GET / HTTP/1.1\r\nHost: somebody else's\r\n\r\n", 40, MSG_NOSIGNAL), 40);
      pollfd out{client, POLLIN, 0};
      for (int looks = 0; looks < 10'000'000 && ::poll(&out, 1, 0) == 0; ++looks) side.look();
      ASSERT_NE(out.revents, 0);
      ::close(client);
    }
  };
  visits(100);
  const std::size_t before = mallinfo2().uordblks;
  visits(1000);
  EXPECT_LT(mallinfo2().uordblks, before + 32'000);
}

/// A read whose reply has begun on one of two connections of its peer.
struct HalfRead {
  HalfRead() {
    a.context.read(a.context.insert(peer.name), room.data(), room.size(), nullptr, 0, 1, operation);
    id = peer.next_request();
    peer.send(first, PacketKind::reply, id, body.data(), body.size(), 1000);
  }
  /// The caller has its memory back: what comes on the first connection may not end up there.
  void rest_goes_nowhere() {
    std::fill(room.begin(), room.end(), std::byte{0xa5});
    ::send(first, body.data(), body.size() - 1000, MSG_NOSIGNAL);
    for (int i = 0; i < 100; ++i) a.look();
    EXPECT_EQ(room, std::vector<std::byte>(room.size(), std::byte{0xa5}));
  }
  Side a, b;
  RawPeer peer{a};
  const int first = peer.connect(), second = peer.connect();
  const std::vector<std::byte> body = pattern(50'000, 1);
  std::vector<std::byte> room{body.size(), std::byte{0x5a}};
  wire::Operation operation;
  std::uint64_t id = 0;
};

TEST_F(TcpContext, a_look_that_brings_a_part_of_a_reply_has_moved_bytes_though_it_completes_nothing) {
  HalfRead h;
  h.a.look();
  EXPECT_FALSE(h.a.context.has_moved());
  ASSERT_EQ(::send(h.first, h.body.data(), 1000, MSG_NOSIGNAL), 1000);
  ASSERT_TRUE(until(h.b, h.a, [&] { return h.a.context.has_moved(); }));
  EXPECT_TRUE(h.a.done.empty() && h.a.failed.empty() && h.a.messages.empty());
}

TEST_F(TcpContext, a_reply_that_comes_while_another_connection_brings_the_same_one_ends_the_reads_once_and_writes_no_more) {
  HalfRead read;
  Side &a = read.a, &b = read.b;
  EXPECT_TRUE(a.done.empty() && a.failed.empty());
  read.peer.send(read.second, PacketKind::reply, read.id, read.body.data(), read.body.size(), read.body.size());
  ASSERT_TRUE(until(a, b, [&] { return a.done.size() + a.failed.size() == 1; }));
  EXPECT_EQ(a.failed.size(), 1U);
  read.rest_goes_nowhere();
  EXPECT_EQ(a.done.size() + a.failed.size(), 1U);
}

TEST_F(TcpContext, a_read_that_fails_with_one_connection_of_its_peer_is_not_written_by_another) {
  HalfRead read;
  Side &a = read.a, &b = read.b;
  read.peer.send(read.second, static_cast<PacketKind>(99), 0, read.body.data(), 8, 8);
  ASSERT_TRUE(until(a, b, [&] { return a.failed.size() == 1; }));
  read.rest_goes_nowhere();
  EXPECT_TRUE(a.done.empty() && a.failed.size() == 1);
}

TEST_F(TcpContext, memory_is_not_given_out_after_it_was_withdrawn_though_it_was_asked_for_before) {
  for (const bool part_has_left : {false, true}) {
    Side a;
    RawPeer peer(a);
    const int fd = peer.connect();
    std::vector<std::byte> memory(part_has_left ? 30'000'000 : 1000, std::byte{0x11});  // more than two sockets hold, or little
    wire::Registration registration;
    ASSERT_TRUE(a.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registration));
    wire::Registration other = registration;
    std::vector<std::byte> before(30'000'000);
    ASSERT_TRUE(a.context.register_memory(before.data(), before.size(), wire::Use::read_by_peers, other));
    // What is asked for first fills the sockets, so that the answer to the second request waits whole.
    const ReadRequest first{other.key, 0, before.size()}, second{registration.key, 0, memory.size()};
    if (!part_has_left) peer.send(fd, PacketKind::request, 1, &first, sizeof first, sizeof first);
    peer.send(fd, PacketKind::request, 2, &second, sizeof second, sizeof second);
    a.context.deregister(registration);
    std::fill(memory.begin(), memory.end(), std::byte{0xee});
    std::vector<std::byte> got, room(1 << 16);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::size_t all = part_has_left ? ~std::size_t{0} : before.size() + 2 * sizeof(PacketHead);
    while (got.size() < all && std::chrono::steady_clock::now() < deadline) {
      a.look();
      const ssize_t n = recv(fd, room.data(), room.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) break;
      if (n > 0) got.insert(got.end(), room.begin(), room.begin() + n);
    }
    EXPECT_EQ(std::count(got.begin() + sizeof(PacketHead), got.end(), std::byte{0xee}), 0);
    if (part_has_left) {
      EXPECT_GT(got.size(), sizeof(PacketHead));
      EXPECT_LT(got.size(), memory.size()) << "the connection ends where the memory was withdrawn";
    } else {
      ASSERT_EQ(got.size(), all);
      PacketHead head;
      std::memcpy(&head, got.data() + sizeof head + before.size(), sizeof head);
      EXPECT_EQ(head.kind, PacketKind::refusal);
      EXPECT_EQ(head.id, 2U);
    }
  }
}

}  // namespace
}  // namespace heddle::tcp
