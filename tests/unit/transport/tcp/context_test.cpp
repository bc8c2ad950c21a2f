// Two contexts of one process stand for two processes: they meet over the loopback interface.
#include "transport/tcp/context.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "side.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::tcp {
namespace {

TEST_F(TcpContext, messages_of_all_lengths_arrive_in_order) {
  Side a, b;
  const wire::Address to = a.context.insert(b.context.name());
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t n : {0UL, 1UL, 7UL, 8UL, 9UL, 4096UL, 65536UL, largest, 3UL, 65537UL, 16UL}) sent.push_back(pattern(n, static_cast<unsigned>(n)));
  std::vector<wire::Operation> operations(sent.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const int code = a.context.send(to, sent[i].data(), sent[i].size(), nullptr, operations[i]);
    ASSERT_TRUE(code == 0 || code == 1);
    kept += code == 0;
  }
  ASSERT_TRUE(until(a, b, [&] { return b.messages.size() == sent.size() && a.done.size() == kept; }));
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(b.messages[i], sent[i]) << i;
}

TEST_F(TcpContext, what_the_kernel_does_not_take_waits_and_leaves_later) {
  Side a, b;
  const wire::Address to = a.context.insert(b.context.name());
  const auto bytes = pattern(largest, 1);
  std::vector<wire::Operation> operations(400);  // 38 MiB: more than two sockets hold
  std::size_t kept = 0;
  for (auto& operation : operations) {
    kept += a.context.send(to, bytes.data(), bytes.size(), nullptr, operation) == 0;
  }
  EXPECT_GT(kept, 0U);
  ASSERT_TRUE(a.context.may_sleep());
  ASSERT_TRUE(until(a, b, [&] { return b.messages.size() == operations.size() && a.done.size() == kept; }));
  for (const auto& message : b.messages) ASSERT_EQ(message, bytes);
}

TEST_F(TcpContext, both_may_connect_at_once) {
  Side a, b;
  const wire::Address to_b = a.context.insert(b.context.name()), to_a = b.context.insert(a.context.name());
  wire::Operation operation;
  for (int round = 0; round < 50; ++round) {
    const auto bytes = pattern(64, static_cast<unsigned>(round));
    while (a.context.send(to_b, bytes.data(), bytes.size(), nullptr, operation) == 0) a.done.clear(), a.look();
    while (b.context.send(to_a, bytes.data(), bytes.size(), nullptr, operation) == 0) b.done.clear(), b.look();
    ASSERT_TRUE(until(a, b, [&] { return a.messages.size() > static_cast<std::size_t>(round) && b.messages.size() > static_cast<std::size_t>(round); }));
    EXPECT_EQ(a.messages.back(), bytes);
    EXPECT_EQ(b.messages.back(), bytes);
  }
}

TEST_F(TcpContext, of_two_connections_between_two_contexts_one_is_closed) {
  for (int round = 0; round < 20; ++round) {
    const int before = open_sockets();
    Side a, b;
    const wire::Address to_b = a.context.insert(b.context.name()), to_a = b.context.insert(a.context.name());
    std::vector<wire::Operation> operations(40);
    const auto bytes = pattern(round % 2 ? largest : 64, 1);
    for (std::size_t i = 0; i < operations.size();) {
      a.context.send(to_b, bytes.data(), bytes.size(), nullptr, operations[i++]);
      b.context.send(to_a, bytes.data(), bytes.size(), nullptr, operations[i++]);
    }
    ASSERT_EQ(open_sockets(), before + 4) << "not connected at once";
    ASSERT_TRUE(until(a, b, [&] { return open_sockets() == before + 4 && a.messages.size() == 20 && b.messages.size() == 20; }));
    // Two listen, and the connection has two ends.
    ASSERT_TRUE(until(a, b, [&] { return open_sockets() == before + 4; }));
    for (const auto& message : a.messages) ASSERT_EQ(message, bytes);
    for (const auto& message : b.messages) ASSERT_EQ(message, bytes);
    // And it works both ways.
    a.context.send(to_b, bytes.data(), bytes.size(), nullptr, operations[0]);
    b.context.send(to_a, bytes.data(), bytes.size(), nullptr, operations[1]);
    ASSERT_TRUE(until(a, b, [&] { return a.messages.size() == 21 && b.messages.size() == 21; }));
    EXPECT_TRUE(a.failed.empty() && b.failed.empty());
  }
}

TEST_F(TcpContext, a_closed_connection_that_a_child_process_has_inherited_wakes_nobody) {
  const int before = open_sockets();
  Side a, b;
  wire::Operation operations[2];
  const auto bytes = pattern(64, 1);
  a.context.send(a.context.insert(b.context.name()), bytes.data(), bytes.size(), nullptr, operations[0]);
  b.context.send(b.context.insert(a.context.name()), bytes.data(), bytes.size(), nullptr, operations[1]);
  ASSERT_TRUE(until(a, b, [&] { return open_sockets() == before + 6; })) << "two connections, and two that listen";
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_TRUE(until(a, b, [&] { return open_sockets() == before + 4 && a.messages.size() == 1 && b.messages.size() == 1; }));
  for (int i = 0; i < 100; ++i) a.look(), b.look();
  EXPECT_TRUE(a.context.may_sleep() && b.context.may_sleep());
  pollfd both[2] = {{a.context.wait_fd(), POLLIN, 0}, {b.context.wait_fd(), POLLIN, 0}};
  EXPECT_EQ(::poll(both, 2, 100), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(TcpContext, messages_between_the_answers_to_reads_arrive_whole) {
  Side a, b;
  const auto memory = pattern(2'000'003, 5);
  wire::Registration registration;
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registration));
  const wire::Address from = a.context.insert(b.context.name());
  std::vector<wire::Operation> reads(6), sends(60);
  std::vector<std::vector<std::byte>> rooms(reads.size(), std::vector<std::byte>(memory.size()));
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t i = 0; i < sends.size(); ++i) sent.push_back(pattern(i % 3 ? i * 1601 % largest : largest, static_cast<unsigned>(i)));
  const wire::Address to = b.context.insert(a.context.name());
  std::size_t next = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    ASSERT_EQ(a.context.read(from, rooms[i].data(), rooms[i].size(), nullptr, registration.base, registration.key, reads[i]), 0);
    for (std::size_t k = 0; k < 10; ++k, ++next) {
      b.context.send(to, sent[next].data(), sent[next].size(), nullptr, sends[next]);
      a.look();
      b.look();
    }
  }
  ASSERT_TRUE(until(a, b, [&] { return a.done.size() == reads.size() && a.messages.size() == sent.size(); }));
  for (const auto& room : rooms) EXPECT_EQ(room, memory);
  for (const auto& message : sent) EXPECT_NE(std::find(a.messages.begin(), a.messages.end(), message), a.messages.end()) << message.size();
}

TEST_F(TcpContext, reads_bring_the_bytes_that_were_asked_for_and_nothing_else) {
  Side a, b;
  const auto memory = pattern(3'000'001, 5);
  wire::Registration registration;
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registration));
  const wire::Address from = a.context.insert(b.context.name());
  struct Piece {
    std::size_t offset, bytes;
  };
  const std::vector<Piece> pieces = {{0, 1}, {0, 3'000'001}, {13, 77'777}, {2'000'000, 1'000'001}, {5, 8}, {100, 0}};
  std::vector<wire::Operation> operations(pieces.size());
  std::vector<std::vector<std::byte>> rooms;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    rooms.emplace_back(pieces[i].bytes + 2, std::byte{0x5a});
    ASSERT_EQ(a.context.read(from, rooms[i].data() + 1, pieces[i].bytes, nullptr, registration.base + pieces[i].offset, registration.key, operations[i]), 0);
  }
  ASSERT_TRUE(until(a, b, [&] { return a.done.size() == pieces.size(); }));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(std::memcmp(rooms[i].data() + 1, memory.data() + pieces[i].offset, pieces[i].bytes), 0) << i;
    EXPECT_EQ(rooms[i].front(), std::byte{0x5a}) << i;
    EXPECT_EQ(rooms[i].back(), std::byte{0x5a}) << i;
  }
}

TEST_F(TcpContext, reads_of_what_is_not_registered_are_refused) {
  Side a, b;
  const auto memory = pattern(1000, 5);
  wire::Registration registration;
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registration));
  const std::uint64_t good = registration.key;
  wire::Registration gone;
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, gone));
  const std::uint64_t old = gone.key;
  b.context.deregister(gone);
  ASSERT_TRUE(b.context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, gone));  // in its place
  ASSERT_NE(gone.key, old);
  const wire::Address from = a.context.insert(b.context.name());
  std::vector<std::byte> room(2000, std::byte{0x5a});
  std::vector<wire::Operation> operations(5);
  a.context.read(from, room.data(), 1001, nullptr, 0, good, operations[0]);
  a.context.read(from, room.data(), 1, nullptr, 1000, good, operations[1]);
  a.context.read(from, room.data(), 8, nullptr, ~std::uint64_t{0} - 3, good, operations[2]);
  a.context.read(from, room.data(), 8, nullptr, 0, old, operations[3]);
  a.context.read(from, room.data(), 8, nullptr, 0, 99, operations[4]);
  ASSERT_TRUE(until(a, b, [&] { return a.failed.size() + a.done.size() == operations.size(); }));
  EXPECT_EQ(a.failed.size(), operations.size());
  EXPECT_EQ(room, std::vector<std::byte>(2000, std::byte{0x5a}));
}

TEST_F(TcpContext, a_peer_that_is_gone_fails_what_was_posted_to_it) {
  Side a;
  auto b = std::make_unique<Side>();
  const auto bytes = pattern(64, 1);
  const wire::Address to = a.context.insert(b->context.name());
  std::vector<wire::Operation> operations(3);
  a.context.send(to, bytes.data(), bytes.size(), nullptr, operations[0]);
  ASSERT_TRUE(until(a, *b, [&] { return b->messages.size() == 1; }));
  a.done.clear();
  std::vector<std::byte> room(10);
  a.context.read(to, room.data(), 10, nullptr, 0, 1, operations[1]);
  b->context.close();
  Side other;
  ASSERT_TRUE(until(a, other, [&] { return a.failed.size() == 1; }));
  EXPECT_EQ(a.failed[0], &operations[1]);
  a.context.send(to, bytes.data(), bytes.size(), nullptr, operations[2]);
  ASSERT_TRUE(until(a, other, [&] { return a.failed.size() == 2; }));
  EXPECT_EQ(a.failed[1], &operations[2]);
}

TEST_F(TcpContext, a_peer_that_sends_without_pause_does_not_keep_another_from_being_heard) {
  Side flooded, flood, other;
  const wire::Address to = flood.context.insert(flooded.context.name()), from_other = other.context.insert(flooded.context.name());
  const auto small = pattern(40, 1), rare = pattern(24, 2);
  wire::Operation operation;
  std::vector<wire::Operation> operations(100'000);
  std::size_t next = 0;
  const auto more = [&] {  // always more than one look takes
    while (next < operations.size() - 200 && next < flooded.messages.size() + 4000) {
      flood.context.send(to, small.data(), small.size(), nullptr, operations[next++]);
    }
    flood.look();
  };
  ASSERT_NE(other.context.send(from_other, rare.data(), rare.size(), nullptr, operation), -EAGAIN);
  ASSERT_TRUE(until(flooded, other, [&] { return flooded.messages.size() == 1; }));  // it is connected
  flooded.messages.clear();
  more();
  ASSERT_TRUE(until(flooded, flood, [&] { return flooded.messages.size() > 500; }));
  other.context.send(from_other, rare.data(), rare.size(), nullptr, operation);
  const auto heard = [&] { return std::find(flooded.messages.begin(), flooded.messages.end(), rare) != flooded.messages.end(); };
  int looks = 0;
  for (; looks < 2000 && !heard(); ++looks) {
    more();
    flooded.look();
  }
  EXPECT_LT(looks, 200);
}

TEST_F(TcpContext, what_a_peer_sent_before_it_left_arrives_though_sending_to_it_fails) {
  Side a;
  auto b = std::make_unique<Side>();
  const auto bytes = pattern(64, 1);
  const wire::Address to_b = a.context.insert(b->context.name()), to_a = b->context.insert(a.context.name());
  std::vector<wire::Operation> operations(4);
  a.context.send(to_b, bytes.data(), bytes.size(), nullptr, operations[0]);
  ASSERT_TRUE(until(a, *b, [&] { return b->messages.size() == 1; }));
  constexpr std::size_t many = 100;
  for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(b->context.send(to_a, bytes.data(), bytes.size(), nullptr, operations[1]), 1);
  b->context.close();
  usleep(200'000);  // until the kernel has brought it all
  a.done.clear();
  for (int i = 0; i < 3; ++i) {  // the first one is answered by a reset, the next ones are refused
    a.context.send(to_b, bytes.data(), bytes.size(), nullptr, operations[2]);
    usleep(20'000);
  }
  Side other;
  ASSERT_TRUE(until(a, other, [&] { return a.messages.size() == many && !a.failed.empty(); })) << a.messages.size() << " have come";
  for (const auto& message : a.messages) ASSERT_EQ(message, bytes);
}

TEST_F(TcpContext, messages_and_reads_among_several_arrive_whole_and_once) {
  constexpr std::size_t sides = 4, rounds = 4000;
  const char* const given = std::getenv("HEDDLE_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : 1;
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Side>> side;
  for (std::size_t i = 0; i < sides; ++i) side.push_back(std::make_unique<Side>());
  const auto memory = pattern(1'000'003, 3);
  wire::Registration registrations[sides];
  wire::Address to[sides][sides];
  for (std::size_t i = 0; i < sides; ++i) {
    ASSERT_TRUE(side[i]->context.register_memory(memory.data(), memory.size(), wire::Use::read_by_peers, registrations[i]));
    for (std::size_t k = 0; k < sides; ++k) to[i][k] = side[i]->context.insert(side[k]->context.name());
  }
  struct Read {
    std::vector<std::byte> room;
    std::size_t offset;
    const wire::Operation* operation;
  };
  std::vector<std::unique_ptr<std::vector<std::byte>>> kept;  // what is sent stays in place
  std::vector<std::unique_ptr<wire::Operation>> operations;
  std::vector<std::unique_ptr<Read>> reads;
  std::vector<std::uint64_t> sent[sides];  // what each is to receive
  std::size_t read_count[sides] = {};
  std::uint64_t next = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t from = random() % sides, other = (from + 1 + random() % (sides - 1)) % sides;
    operations.push_back(std::make_unique<wire::Operation>());
    if (random() % 5 == 0) {
      const std::size_t offset = random() % memory.size(), most = memory.size() - offset + 1;
      const std::size_t bytes = random() % (random() % 8 ? std::min<std::size_t>(most, 3000) : most);
      reads.push_back(std::make_unique<Read>(Read{std::vector<std::byte>(bytes), offset, operations.back().get()}));
      ASSERT_EQ(side[from]->context.read(to[from][other], reads.back()->room.data(), bytes, nullptr, registrations[other].base + offset,
                                         registrations[other].key, *operations.back()), 0);
      ++read_count[from];
    } else {
      const std::size_t bytes = 8 + (random() % 8 ? random() % 300 : random() % (largest - 8));
      kept.push_back(std::make_unique<std::vector<std::byte>>(bytes, static_cast<std::byte>(next)));
      std::memcpy(kept.back()->data(), &next, sizeof next);
      sent[other].push_back(next++);
      side[from]->context.send(to[from][other], kept.back()->data(), bytes, nullptr, *operations.back());
    }
    if (random() % 4 == 0) side[random() % sides]->look();
    if (random() % 16 == 0) side[random() % sides]->context.flush();
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto over = [&] {
    for (std::size_t i = 0; i < sides; ++i) {
      std::size_t done = 0;
      for (const auto* operation : side[i]->done)
        done += std::any_of(reads.begin(), reads.end(), [&](const auto& read) { return read->operation == operation; });
      if (side[i]->messages.size() < sent[i].size() || done < read_count[i]) return false;
    }
    return true;
  };
  while (!over() && std::chrono::steady_clock::now() < deadline)
    for (int i = 0; i < 16; ++i) side[random() % sides]->look();
  ASSERT_TRUE(over()) << "seed " << seed;
  for (std::size_t i = 0; i < sides; ++i) {
    EXPECT_TRUE(side[i]->failed.empty());
    std::vector<std::uint64_t> got;
    for (const auto& message : side[i]->messages) {
      std::uint64_t number;
      ASSERT_GE(message.size(), sizeof number);
      std::memcpy(&number, message.data(), sizeof number);
      ASSERT_EQ(message, *kept[number]) << "seed " << seed;
      got.push_back(number);
    }
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got, sent[i]) << "seed " << seed;
  }
  for (const auto& read : reads) ASSERT_EQ(std::memcmp(read->room.data(), memory.data() + read->offset, read->room.size()), 0) << "seed " << seed;
}

TEST_F(TcpContext, its_descriptor_tells_sleepers_of_messages_and_of_room_to_send) {
  Side a, b;
  const auto bytes = pattern(largest, 1);
  const wire::Address to = a.context.insert(b.context.name());
  std::vector<wire::Operation> operations(400);
  for (auto& operation : operations) {
    a.context.send(to, bytes.data(), bytes.size(), nullptr, operation);
  }
  int sender_woke = 0;
  while (b.messages.size() < operations.size()) {
    while (!b.context.may_sleep()) b.look();
    while (!a.context.may_sleep()) a.look();
    if (b.messages.size() == operations.size()) break;
    pollfd both[2] = {{b.context.wait_fd(), POLLIN, 0}, {a.context.wait_fd(), POLLIN, 0}};
    ASSERT_GE(::poll(both, 2, 20'000), 1) << "asleep for ever, with " << b.messages.size() << " messages";
    if (both[0].revents) b.look();
    if (both[1].revents) ++sender_woke, a.look();
  }
  EXPECT_GT(sender_woke, 0);
}

TEST_F(TcpContext, who_has_slept_receives_without_confirming_at_once) {
  Side side;
  RawPeer peer{side};
  const int fd = peer.connect();
  const std::uint64_t body = 7;
  // The kernel confirms the first segments of a connection by itself, before they are received.
  for (int i = 0; i < 64; ++i) peer.send(fd, PacketKind::message, 0, &body, sizeof body, sizeof body);
  const auto confirmed = [&] {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    return info.tcpi_segs_in;
  };
  int at_once = 0;
  constexpr int trials = 20;
  for (int i = 0; i < trials; ++i) {
    ASSERT_TRUE(side.context.may_sleep());
    struct {
      PacketHead head{sizeof body, PacketKind::message, packet_version, 0};
      std::uint64_t body = 7;
    } packet;
    ASSERT_EQ(::send(fd, &packet, sizeof packet, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof packet));
    pollfd awake{side.context.wait_fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&awake, 1, 20'000), 1);
    const std::size_t before = confirmed(), messages = side.messages.size();
    side.look();
    at_once += confirmed() != before;
    EXPECT_EQ(side.messages.size(), messages + 1);
  }
  EXPECT_LT(at_once, trials / 2) << "of " << trials;  // not none: on a busy machine the kernel's timer may run out between the two counts
}

}  // namespace
}  // namespace heddle::tcp
