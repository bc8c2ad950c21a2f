// Writes to the memory of peers: what arrives where, in which numbers, when it is confirmed, and what is refused.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "side.hpp"
#include "transport/tcp/packet.hpp"

namespace heddle::tcp {
namespace {

/// Memory between two guards that nobody may touch, exposed.
struct Exposed {
  static constexpr std::size_t guard = 4096;
  Exposed(Side& s, std::size_t bytes, wire::Use use = wire::Use::written_by_peers)
      : side(s), size(bytes), room(bytes + 2 * guard, std::byte{0x5a}), expected(room) {
    EXPECT_TRUE(side.context.register_memory(at(), bytes, use, registration));
  }
  ~Exposed() { side.context.deregister(registration); }
  std::byte* at() { return room.data() + guard; }
  void expect(std::size_t offset, const std::byte* bytes, std::size_t n) { std::copy(bytes, bytes + n, expected.begin() + static_cast<std::ptrdiff_t>(guard + offset)); }
  [[nodiscard]] bool is_right() const { return room == expected; }
  Side& side;
  std::size_t size;
  std::vector<std::byte> room, expected;
  wire::Registration registration;
};

/// Posts a write, however often it takes.
int write(Side& from, Side& to, wire::Address peer, const std::byte* bytes, std::size_t n, const Exposed& region, std::size_t offset, wire::Operation* operation) {
  for (;;) {
    const int code = from.context.write(peer, bytes, n, nullptr, region.registration.base + offset, region.registration.key, operation);
    if (code != -EAGAIN) return code;
    from.look();
    to.look();
  }
}

TEST_F(TcpContext, writes_of_all_lengths_are_in_place_once_they_are_confirmed) {
  Side a, b;
  Exposed region(b, 6'000'000);
  const wire::Address to = a.context.insert(b.context.name());
  std::vector<std::vector<std::byte>> sources;
  std::vector<wire::Operation> operations(40);
  std::size_t offset = 0, next = 0, kept = 0;
  for (const std::size_t n : {0UL, 1UL, 7UL, 8UL, 9UL, 500UL, 4096UL, 4097UL, 65536UL, 300'001UL, 3UL, 2'000'003UL, 16UL, 1'000'000UL, 4000UL}) {
    sources.push_back(pattern(n, static_cast<unsigned>(n)));
    wire::Operation* const operation = n <= a.context.capabilities().copied_write && n % 2 ? nullptr : &operations[next++];
    const int code = write(a, b, to, sources.back().data(), n, region, offset, operation);
    ASSERT_TRUE(code == 1 || (code == 0 && operation)) << code;
    kept += code == 0;
    region.expect(offset, sources.back().data(), n);
    offset += n + n % 3;
  }
  wire::Operation confirmed;
  ASSERT_EQ(a.context.confirm(to, confirmed), 0);
  ASSERT_TRUE(until(a, b, [&] { return !a.done.empty() && a.done.back() == &confirmed; }));
  EXPECT_TRUE(region.is_right());
  EXPECT_EQ(a.done.size(), kept + 1);
  EXPECT_TRUE(a.failed.empty());
}

TEST_F(TcpContext, small_writes_leave_together_and_are_the_callers_again_at_once) {
  Side a, b;
  Exposed region(b, 100'000);
  RawPeer peer(a);
  const int fd = peer.connect();
  const wire::Address to = a.context.insert(peer.name);
  std::byte eight[8];
  for (unsigned i = 0; i < 64; ++i) {
    std::memset(eight, static_cast<int>(i), sizeof eight);
    ASSERT_EQ(a.context.write(to, eight, sizeof eight, nullptr, (i * 37 % 64) * 16, 7, nullptr), 1);
  }
  char bytes[16 << 10];
  EXPECT_EQ(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), -1);
  a.context.flush();
  ASSERT_EQ(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), static_cast<ssize_t>(64 * (sizeof(PacketHead) + sizeof(WriteHead) + 8)));
  for (unsigned i = 0; i < 64; ++i) {
    const char* at = bytes + i * 40;
    PacketHead head;
    WriteHead where;
    std::memcpy(&head, at, sizeof head);
    std::memcpy(&where, at + sizeof head, sizeof where);
    EXPECT_EQ(head.kind, PacketKind::write);
    EXPECT_EQ(head.id, i + 1);
    EXPECT_EQ(where.offset, (i * 37 % 64) * 16);
    EXPECT_EQ(at[32], static_cast<char>(i));
  }
}

TEST_F(TcpContext, writes_to_adjacent_places_leave_as_one) {
  Side a;
  RawPeer peer(a);
  const int fd = peer.connect();
  const wire::Address to = a.context.insert(peer.name);
  const auto source = pattern(100, 1);
  for (std::size_t at = 0; at < 96; at += 8) ASSERT_EQ(a.context.write(to, source.data() + at, 8, nullptr, 40 + at, 7, nullptr), 1);
  ASSERT_EQ(a.context.write(to, source.data() + 96, 3, nullptr, 40 + 96, 7, nullptr), 1);
  ASSERT_EQ(a.context.write(to, source.data() + 99, 1, nullptr, 40 + 99, 7, nullptr), 1);  // not after a length that was padded
  a.context.flush();
  std::byte bytes[1024];
  ASSERT_EQ(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), 32 + 104 + 32 + 8);
  PacketHead head;
  std::memcpy(&head, bytes, sizeof head);
  EXPECT_EQ(head.bytes, sizeof(WriteHead) + 99);
  EXPECT_EQ(std::memcmp(bytes + 32, source.data(), 99), 0);
  std::memcpy(&head, bytes + 136, sizeof head);
  EXPECT_EQ(head.id, 2U);
}

TEST_F(TcpContext, what_a_write_announces_is_heard_when_its_bytes_are_in_place) {
  Side a, b;
  Exposed region(b, 3'000'000);
  const wire::Address to = a.context.insert(b.context.name());
  const auto source = pattern(1'000'000, 4);
  wire::Operation operations[3];
  std::size_t sizes[] = {1'000'000, 8, 0};
  for (std::uint32_t i = 0; i < 3; ++i) {
    wire::Operation* const operation = i ? nullptr : &operations[i];
    ASSERT_GE(a.context.write_with_data(to, source.data(), sizes[i], nullptr, 1'000'000 * i, region.registration.key, 0xfedcba98 + i, operation), 0);
    region.expect(1'000'000 * i, source.data(), sizes[i]);
  }
  while (b.announced.empty()) a.look(), b.look();
  EXPECT_EQ(std::memcmp(region.at(), source.data(), 1'000'000), 0);
  ASSERT_TRUE(until(a, b, [&] { return b.announced.size() == 3; }));
  EXPECT_EQ(b.announced, (std::vector<std::uint32_t>{0xfedcba98, 0xfedcba99, 0xfedcba9a}));
  EXPECT_TRUE(region.is_right());
}

TEST_F(TcpContext, writes_to_a_peer_that_takes_nothing_are_bounded) {
  Side a, b;
  Exposed region(b, 1 << 20);
  const wire::Address to = a.context.insert(b.context.name());
  const auto source = pattern(4096, 4);
  std::vector<wire::Operation> operations(100'000);
  std::size_t copied = 0, large = 0;
  for (int code = 1; code >= 0 && copied < 1'000'000; copied += code >= 0) {
    code = a.context.write(to, source.data(), 8, nullptr, copied % 1000 * 16, region.registration.key, nullptr);
    if (code >= 0 && copied % 1000 == 0) a.look();
  }
  EXPECT_LT(copied, 1'000'000U);
  for (;;) {  // it takes again
    a.look();
    b.look();
    if (a.context.write(to, source.data(), 8, nullptr, 0, region.registration.key, nullptr) >= 0) break;
  }
  for (int code = 0; code >= 0 && large < operations.size(); large += code >= 0)
    code = a.context.write(to, source.data(), source.size(), nullptr, 0, region.registration.key, &operations[large]);
  EXPECT_LT(large, operations.size());
  wire::Operation confirmed;
  ASSERT_EQ(a.context.confirm(to, confirmed), 0);
  ASSERT_TRUE(until(a, b, [&] { return std::find(a.done.begin(), a.done.end(), &confirmed) != a.done.end(); }));
}

TEST_F(TcpContext, both_may_connect_at_once_and_a_confirmation_waits_for_what_took_the_other_connection) {
  for (int round = 0; round < 40; ++round) {
    Side a, b;
    Exposed on_a(a, 400'000), on_b(b, 400'000);
    const wire::Address to_b = a.context.insert(b.context.name()), to_a = b.context.insert(a.context.name());
    const auto source = pattern(300'000, static_cast<unsigned>(round));
    wire::Operation of_a[20], of_b[20], confirmed_a, confirmed_b;
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t n = round % 2 ? 20'000 : 8;
      write(a, a, to_b, source.data() + i * 9, n, on_b, i * 20'000, n > 4096 ? &of_a[i] : nullptr);
      write(b, b, to_a, source.data() + i * 7, n, on_a, i * 20'000, n > 4096 ? &of_b[i] : nullptr);
      on_b.expect(i * 20'000, source.data() + i * 9, n);
      on_a.expect(i * 20'000, source.data() + i * 7, n);
      if (i % 3 == static_cast<std::size_t>(round) % 3) a.look();
      if (i % 4 == static_cast<std::size_t>(round) % 4) b.look();
    }
    ASSERT_EQ(a.context.confirm(to_b, confirmed_a), 0);
    ASSERT_EQ(b.context.confirm(to_a, confirmed_b), 0);
    bool by_a = false, by_b = false;
    ASSERT_TRUE(until(a, b, [&] {
      if (!by_a && std::find(a.done.begin(), a.done.end(), &confirmed_a) != a.done.end()) {
        by_a = true;
        EXPECT_TRUE(on_b.is_right());
      }
      if (!by_b && std::find(b.done.begin(), b.done.end(), &confirmed_b) != b.done.end()) {
        by_b = true;
        EXPECT_TRUE(on_a.is_right());
      }
      return by_a && by_b;
    })) << round;
  }
}

/// A peer in the hands of a test that writes.
struct RawWriter : RawPeer {
  using RawPeer::RawPeer;
  /// \param said bytes after the head, if not as many as there are
  void write(int fd, std::uint64_t id, std::uint64_t region, std::uint64_t offset, const std::vector<std::byte>& bytes, std::size_t said = ~std::size_t{0},
             PacketKind kind = PacketKind::write) {
    std::vector<std::byte> body(sizeof(WriteHead) + bytes.size() + padding(said == ~std::size_t{0} ? bytes.size() : 0));
    const WriteHead where{region, offset};
    std::memcpy(body.data(), &where, sizeof where);
    std::copy(bytes.begin(), bytes.end(), body.begin() + sizeof where);
    send(fd, kind, id, body.data(), sizeof where + (said == ~std::size_t{0} ? bytes.size() : said), body.size());
  }
  void ask(int fd, std::uint64_t id, std::uint32_t number) {
    const WriteAwaited question{number, 0};
    send(fd, PacketKind::confirm, id, &question, sizeof question, sizeof question);
  }
  /// Ids of the confirmations that came since, on any connection.
  std::vector<std::uint64_t> answers() {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 100; ++i) side.look();
    for (const int fd : fds) {
      PacketHead head;
      while (recv(fd, &head, sizeof head, MSG_DONTWAIT) == sizeof head) {
        EXPECT_EQ(head.kind, PacketKind::confirmed);
        ids.push_back(head.id);
      }
    }
    return ids;
  }
  bool is_closed(int fd) {
    for (int i = 0; i < 100; ++i) side.look();
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
  }
};

TEST_F(TcpContext, what_takes_a_second_connection_counts_when_all_before_it_has_come_on_the_first) {
  Side a;
  Exposed region(a, 1000);
  RawWriter peer(a);
  const int first = peer.connect(), second = peer.connect();
  const auto bytes = pattern(64, 1);
  peer.write(first, 1, region.registration.key, 0, bytes);
  peer.write(second, 4, region.registration.key, 300, bytes);
  peer.write(second, 5, region.registration.key, 400, bytes);
  peer.ask(second, 50, 5);
  peer.ask(second, 30, 3);
  peer.ask(second, 10, 1);
  EXPECT_EQ(peer.answers(), std::vector<std::uint64_t>{10});
  peer.write(first, 2, region.registration.key, 100, bytes);
  peer.ask(second, 60, 6);
  EXPECT_TRUE(peer.answers().empty());
  peer.write(first, 3, region.registration.key, 200, bytes);
  EXPECT_EQ(peer.answers(), (std::vector<std::uint64_t>{50, 30}));
  peer.write(second, 6, region.registration.key, 500, bytes);
  EXPECT_EQ(peer.answers(), std::vector<std::uint64_t>{60});
  for (std::size_t i = 0; i < 6; ++i) region.expect(i * 100, bytes.data(), bytes.size());
  EXPECT_TRUE(region.is_right());
}

TEST_F(TcpContext, a_number_that_two_connections_bring_ends_the_one_that_is_late) {
  Side a;
  Exposed region(a, 1000);
  RawWriter peer(a);
  const int first = peer.connect(), second = peer.connect();
  const auto bytes = pattern(64, 1);
  peer.write(first, 1, region.registration.key, 0, std::vector<std::byte>(bytes.begin(), bytes.begin() + 16), bytes.size());
  peer.write(second, 1, region.registration.key, 100, bytes);
  EXPECT_EQ(::send(first, bytes.data() + 16, 47, MSG_NOSIGNAL), 47);
  for (int i = 0; i < 100; ++i) a.look();
  EXPECT_EQ(::send(first, bytes.data() + 63, 1, MSG_NOSIGNAL), 1) << "all but a byte has come";
  ssize_t more = 0;
  for (int i = 0; i < 10 && more >= 0; ++i) {  // less than a head
    for (int k = 0; k < 100; ++k) a.look();
    more = ::send(first, bytes.data(), 1, MSG_NOSIGNAL);
  }
  EXPECT_LT(more, 0);
}

TEST_F(TcpContext, nothing_is_written_outside_of_what_is_exposed_and_whoever_tries_is_thrown_out) {
  struct Attempt {
    const char* what;
    std::uint64_t id, key_flip, offset;
    std::size_t bytes;
    std::size_t said = ~std::size_t{0};
    PacketKind kind = PacketKind::write;
    bool read_only = false;
  };
  constexpr std::uint64_t no = 0;
  const Attempt attempts[] = {
      {"one byte too long", 1, no, 0, 1001},
      {"begins at the end", 1, no, 1000, 1},
      {"begins behind the end", 1, no, 1001, 0},
      {"begins before the beginning", 1, no, ~std::uint64_t{0} - 7, 16},
      {"wraps around", 1, no, ~std::uint64_t{0}, 2},
      {"another index", 1, 1, 0, 8},
      {"another generation", 1, std::uint64_t{1} << 32, 0, 8},
      {"says that it is too long, and is not there yet", 1, no, 0, 8, 1001},
      {"says that it is huge", 1, no, 0, 8, std::size_t{0xfffffff0}},
      {"announced", 1, no, 1000, 1, ~std::size_t{0}, PacketKind::write_with_data},
      {"a number that was", 0, no, 0, 8},
      {"a number far behind", 0x80000002, no, 0, 8},
      {"for reading only", 1, no, 0, 8, ~std::size_t{0}, PacketKind::write, true},
  };
  for (const Attempt& attempt : attempts) {
    Side a;
    Exposed region(a, 1000, attempt.read_only ? wire::Use::read_by_peers : wire::Use::written_by_peers);
    RawWriter peer(a);
    const int fd = peer.connect();
    peer.write(fd, attempt.id, region.registration.key ^ attempt.key_flip, attempt.offset, pattern(attempt.bytes, 1), attempt.said, attempt.kind);
    EXPECT_TRUE(peer.is_closed(fd)) << attempt.what;
    EXPECT_TRUE(region.is_right()) << attempt.what;
    EXPECT_TRUE(a.announced.empty() && a.messages.empty()) << attempt.what;
  }
}

TEST_F(TcpContext, memory_that_was_withdrawn_is_not_written_though_a_write_had_begun) {
  Side a;
  RawWriter peer(a);
  const int fd = peer.connect();
  std::vector<std::byte> memory(500'000, std::byte{0x11});
  wire::Registration registration;
  ASSERT_TRUE(a.context.register_memory(memory.data(), memory.size(), wire::Use::written_by_peers, registration));
  const auto bytes = pattern(1000, 1);
  peer.write(fd, 1, registration.key, 0, bytes, memory.size());
  EXPECT_EQ(std::memcmp(memory.data(), bytes.data(), bytes.size()), 0);
  a.context.deregister(registration);
  std::fill(memory.begin(), memory.end(), std::byte{0xee});
  ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(peer.is_closed(fd));
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0xee}), static_cast<std::ptrdiff_t>(memory.size()));
}

TEST_F(TcpContext, memory_that_may_be_written_only_is_not_given_out) {
  Side a, b;
  Exposed hidden(b, 1000), open(b, 1000, wire::Use::read_and_written_by_peers);
  const wire::Address from = a.context.insert(b.context.name());
  std::byte room[8];
  wire::Operation refused, allowed;
  a.context.read(from, room, sizeof room, nullptr, 0, hidden.registration.key, refused);
  a.context.read(from, room, sizeof room, nullptr, 0, open.registration.key, allowed);
  ASSERT_TRUE(until(a, b, [&] { return a.failed.size() + a.done.size() == 2; }));
  EXPECT_EQ(a.failed, std::vector<wire::Operation*>{&refused});
  EXPECT_EQ(a.done, std::vector<wire::Operation*>{&allowed});
}

TEST_F(TcpContext, confirmations_from_a_peer_that_goes_fail) {
  Side a, other;
  auto b = std::make_unique<Side>();
  auto region = std::make_unique<Exposed>(*b, 1000);
  const wire::Address to = a.context.insert(b->context.name());
  const auto bytes = pattern(8, 1);
  wire::Operation first, second, third;
  ASSERT_EQ(a.context.write(to, bytes.data(), 8, nullptr, 0, region->registration.key, nullptr), 1);
  ASSERT_EQ(a.context.confirm(to, first), 0);
  ASSERT_TRUE(until(a, *b, [&] { return a.done.size() == 1; }));
  ASSERT_EQ(a.context.write(to, bytes.data(), 8, nullptr, 0, region->registration.key, nullptr), 1);
  ASSERT_EQ(a.context.confirm(to, second), 0);
  region.reset();
  b->context.close();
  ASSERT_TRUE(until(a, other, [&] { return a.failed.size() == 1; }));
  EXPECT_LT(a.context.write(to, bytes.data(), 8, nullptr, 0, 7, nullptr), 0);
  ASSERT_EQ(a.context.confirm(to, third), 0);
  ASSERT_TRUE(until(a, other, [&] { return a.failed.size() == 2; }));
}

TEST_F(TcpContext, writes_messages_and_reads_among_several_arrive_whole) {
  constexpr std::size_t sides = 3, rounds = 6000, part = 60'000;
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Side>> side;
  std::vector<std::unique_ptr<Exposed>> region;
  wire::Address to[sides][sides];
  for (std::size_t i = 0; i < sides; ++i) side.push_back(std::make_unique<Side>());
  for (std::size_t i = 0; i < sides; ++i) {
    region.push_back(std::make_unique<Exposed>(*side[i], part * sides, wire::Use::read_and_written_by_peers));
    for (std::size_t k = 0; k < sides; ++k) to[i][k] = side[i]->context.insert(side[k]->context.name());
  }
  std::vector<std::unique_ptr<std::vector<std::byte>>> kept;
  std::vector<std::unique_ptr<wire::Operation>> operations;
  std::size_t announced[sides] = {}, messages[sides] = {};
  const auto all_look = [&] {
    for (auto& one : side) one->look();
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t from = random() % sides, other = (from + 1 + random() % (sides - 1)) % sides;
    if (random() % 8 == 0) {
      kept.push_back(std::make_unique<std::vector<std::byte>>(pattern(random() % largest, static_cast<unsigned>(round))));
      operations.push_back(std::make_unique<wire::Operation>());
      side[from]->context.send(to[from][other], kept.back()->data(), kept.back()->size(), nullptr, *operations.back());
      ++messages[other];
    } else {  // each writes into a part of its own: writes have no order among them that different origins could agree on
      const std::size_t offset = random() % part, n = random() % 4 ? random() % std::min<std::size_t>(part - offset + 1, 64) : random() % (part - offset + 1);
      kept.push_back(std::make_unique<std::vector<std::byte>>(pattern(n, static_cast<unsigned>(round))));
      operations.push_back(std::make_unique<wire::Operation>());
      wire::Operation* const operation = n <= 4096 && random() % 2 ? nullptr : operations.back().get();
      const bool announce = random() % 5 == 0;
      int code = -EAGAIN;
      while (code == -EAGAIN) {
        code = announce ? side[from]->context.write_with_data(to[from][other], kept.back()->data(), n, nullptr, from * part + offset,
                                                              region[other]->registration.key, 1, operation)
                        : side[from]->context.write(to[from][other], kept.back()->data(), n, nullptr, from * part + offset,
                                                    region[other]->registration.key, operation);
        if (code == -EAGAIN) all_look();
      }
      ASSERT_GE(code, 0);
      announced[other] += announce;
      region[other]->expect(from * part + offset, kept.back()->data(), n);
    }
    if (random() % 4 == 0) side[random() % sides]->look();
    // Two that connect at once change over, which takes writes to the same place out of their order; so only from the first answers on.
    if (round < 200) {
      for (int i = 0; i < 20; ++i) all_look();
    }
  }
  wire::Operation confirmed[sides][sides];
  for (std::size_t i = 0; i < sides; ++i)
    for (std::size_t k = 0; k < sides; ++k) {
      if (i != k) { ASSERT_EQ(side[i]->context.confirm(to[i][k], confirmed[i][k]), 0); }
    }
  ASSERT_TRUE(until(*side[0], *side[1], [&] {
    all_look();
    for (std::size_t i = 0; i < sides; ++i) {
      if (side[i]->announced.size() < announced[i] || side[i]->messages.size() < messages[i]) return false;
      for (std::size_t k = 0; k < sides; ++k)
        if (i != k && std::find(side[i]->done.begin(), side[i]->done.end(), &confirmed[i][k]) == side[i]->done.end()) return false;
    }
    return true;
  }));
  for (std::size_t i = 0; i < sides; ++i) {
    EXPECT_TRUE(region[i]->is_right()) << i;
    EXPECT_TRUE(side[i]->failed.empty());
    EXPECT_EQ(side[i]->announced.size(), announced[i]);
  }
}

}  // namespace
}  // namespace heddle::tcp
