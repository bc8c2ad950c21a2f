// Memory of peers (transport/net/region.hpp), over a network that a test holds in its hands: what is posted, counted, confirmed, refused and put off.
#include <algorithm>
#include <cerrno>
#include <random>

#include "simulation.hpp"

namespace heddle::net {
namespace {

class NetWrites : public NetEngine {
 protected:
  NetWrites() {
    EXPECT_TRUE(stations[1]->engine().expose(memory.data(), memory.size(), wire::Use::read_and_written_by_peers, region));
  }
  Station& origin() { return *stations[0]; }
  SimulatedContext& context() { return origin().context(); }
  Connection& target() { return origin().engine().connection_to(1, region.name); }
  int write(const std::vector<std::byte>& bytes, std::uint64_t offset) {
    return origin().engine().write(origin().held(), target(), bytes.data(), bytes.size(), region.name, offset, pending);
  }
  int confirm(Pending& waiting) { return origin().engine().confirm_writes(origin().held(), target(), waiting); }
  /// Polls a few times; true if nothing is counted any more.
  bool until_counted(const Pending& waiting) {
    for (int i = 0; i < 10'000 && waiting; ++i) origin().poll();
    return !waiting;
  }
  /// All that was posted is carried out, in some order that this network allows.
  void carry_out() {
    std::mt19937 random(3);
    while (context().writes_waiting()) context().complete_write(context().capabilities().confirms ? 0 : random() % context().writes_waiting());
  }

  std::vector<std::byte> memory = std::vector<std::byte>(200'000);
  Region region;
  Pending pending = 0;
};

INSTANTIATE_TEST_SUITE_P(, NetWrites, testing::Bool(), departures);

TEST_P(NetWrites, writes_of_all_lengths_are_in_place_after_their_confirmation) {
  std::vector<std::vector<std::byte>> sources;
  std::size_t offset = 0;
  for (const std::size_t n : {0UL, 1UL, 64UL, 65UL, 256UL, 257UL, 2048UL, 2049UL, 100'000UL}) {
    sources.push_back(pattern(n, static_cast<int>(n)));
    const Pending before = pending;
    const int code = write(sources.back(), offset);
    ASSERT_GE(code, 0);
    EXPECT_EQ(pending, before + (code == 0));
    if (n <= 64) { EXPECT_EQ(code, 1); }
    offset += n;
  }
  EXPECT_GT(pending, 0U);
  Pending confirmed = 0;
  ASSERT_EQ(confirm(confirmed), 0);
  EXPECT_EQ(confirmed, 1U);
  carry_out();
  stations[0]->poll();
  EXPECT_TRUE(until_counted(confirmed));
  EXPECT_EQ(pending, 0U);
  std::vector<std::byte> all;
  for (const auto& source : sources) all.insert(all.end(), source.begin(), source.end());
  EXPECT_TRUE(std::equal(all.begin(), all.end(), memory.begin()));
  EXPECT_EQ(confirm(confirmed), 1) << "nothing was written since";
}

TEST_P(NetWrites, a_small_write_is_the_callers_again_at_once) {
  auto source = pattern(64, 1);
  const auto original = source;
  ASSERT_EQ(write(source, 8), 1);
  std::fill(source.begin(), source.end(), std::byte{0xee});
  carry_out();
  EXPECT_TRUE(std::equal(original.begin(), original.end(), memory.begin() + 8));
}

TEST_P(NetWrites, a_confirmation_waits_for_all_writes_before_it_and_for_none_after_it) {
  const auto source = pattern(300, 1);
  ASSERT_EQ(write(source, 0), 0);
  ASSERT_EQ(write(source, 300), 0);
  Pending first = 0, second = 0;
  ASSERT_EQ(confirm(first), 0);
  ASSERT_EQ(write(source, 600), 0);
  ASSERT_EQ(confirm(second), 0);
  ASSERT_EQ(write(source, 900), 0);
  const bool confirms = context().capabilities().confirms;
  // The writes and, with a network that confirms, the two questions: what comes after the first one is not waited for.
  if (!confirms) {
    context().complete_write(2);
    context().complete_write(0);
    stations[0]->poll();
    EXPECT_EQ(first, 1U);
    EXPECT_EQ(second, 1U) << "the writes before the first confirmation are not in place";
    context().complete_write(0);
  } else {
    for (int i = 0; i < 3; ++i) context().complete_write();
  }
  EXPECT_TRUE(until_counted(first));
  if (confirms) { EXPECT_EQ(second, 1U); }
  while (context().complete_write()) {}
  EXPECT_TRUE(until_counted(second));
  EXPECT_TRUE(until_counted(pending));
}

TEST_P(NetWrites, who_asks_while_another_waits_for_the_same_writes_waits_as_well) {
  const auto source = pattern(300, 1);  // the network reads it until the write is counted
  ASSERT_EQ(write(source, 0), 0);
  Pending first = 0, second = 0;
  ASSERT_EQ(confirm(first), 0);
  ASSERT_EQ(confirm(second), 0);
  EXPECT_EQ(second, 1U);
  carry_out();
  EXPECT_TRUE(until_counted(first) && until_counted(second));
}

TEST_P(NetWrites, what_lies_outside_of_the_region_is_refused_before_anything_is_sent) {
  const auto source = pattern(100, 1);
  for (const std::uint64_t offset : {memory.size() - 99, memory.size(), memory.size() + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 99}) {
    EXPECT_EQ(write(source, offset), -ERANGE);
    std::byte room[100];
    EXPECT_EQ(origin().engine().read(origin().held(), target(), room, sizeof room, region.name, offset, pending), -ERANGE);
  }
  EXPECT_EQ(write(std::vector<std::byte>(2 << 20), 0), -ERANGE);
  Region empty;
  EXPECT_TRUE(stations[1]->engine().expose(nullptr, 0, wire::Use::written_by_peers, empty));
  EXPECT_EQ(origin().engine().write(origin().held(), target(), source.data(), 1, empty.name, 0, pending), -ERANGE);
  EXPECT_EQ(context().writes_waiting(), 0U);
  EXPECT_EQ(pending, 0U);
}

TEST_P(NetWrites, what_the_network_does_not_take_is_the_callers_to_repeat) {
  context().write_room = 3;
  const auto small = pattern(8, 1), large = pattern(3000, 1);
  ASSERT_EQ(write(small, 0), 1);
  ASSERT_EQ(write(large, 8), 0);
  ASSERT_EQ(write(small, 16), 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(write(small, 24), -EAGAIN);
    EXPECT_EQ(write(large, 24), -EAGAIN);
  }
  EXPECT_EQ(pending, 1U);
  context().write_room = 1;
  EXPECT_EQ(write(small, 24), 1);
}

TEST_P(NetWrites, what_is_under_way_is_bounded) {
  std::byte room[8];
  int code = 0, taken = 0;
  for (; code == 0 && taken < 1'000'000; ++taken)
    code = origin().engine().read(origin().held(), target(), room, sizeof room, region.name, 0, pending);
  EXPECT_EQ(code, -EAGAIN);
  EXPECT_LT(taken, 100'000);
  while (context().complete_read()) {}
  EXPECT_TRUE(until_counted(pending));
  EXPECT_EQ(origin().engine().read(origin().held(), target(), room, sizeof room, region.name, 0, pending), 0);
  context().complete_read();
  EXPECT_TRUE(until_counted(pending));
}

TEST_P(NetWrites, a_vci_whose_address_is_unknown_is_asked_for_and_then_written_to) {
  Region at_three;
  ASSERT_TRUE(stations[1]->engine(3).expose(memory.data(), memory.size(), wire::Use::written_by_peers, at_three));
  EXPECT_EQ(number(at_three.name.vci), 3U);
  Station& s = *stations[0];
  const auto source = pattern(8, 1);
  const auto try_it = [&] { return s.engine(2).write(s.held(2), s.engine(2).connection_to(1, at_three.name), source.data(), 8, at_three.name, 0, pending); };
  ASSERT_EQ(try_it(), -EAGAIN);
  settle();
  ASSERT_EQ(try_it(), 1);
  EXPECT_EQ(s.context(2).writes_waiting(), 1U);
  s.context(2).complete_write();
  settle();
}

TEST_P(NetWrites, reads_bring_what_lies_there) {
  memory = pattern(memory.size(), 9);
  region.name.base = reinterpret_cast<std::uint64_t>(memory.data());
  std::vector<std::byte> room(3000);
  ASSERT_EQ(origin().engine().read(origin().held(), target(), room.data(), room.size(), region.name, 777, pending), 0);
  EXPECT_EQ(origin().engine().read(origin().held(), target(), room.data(), 5000, region.name, 777, pending), -EMSGSIZE);
  EXPECT_EQ(origin().engine().read(origin().held(), target(), room.data(), 0, region.name, 777, pending), 1);
  context().complete_read();
  EXPECT_TRUE(until_counted(pending));
  EXPECT_TRUE(std::equal(room.begin(), room.end(), memory.begin() + 777));
}

TEST_P(NetWrites, updates_tell_what_was_there) {
  std::int64_t before = 0, five = 5;
  auto& number = *reinterpret_cast<std::int64_t*>(memory.data() + 16);
  number = 37;
  Engine& engine = origin().engine();
  EXPECT_FALSE(engine.has_atomic(wire::Atomic::max, wire::AtomicType::int64, true));
  EXPECT_EQ(engine.update(origin().held(), target(), wire::Atomic::max, wire::AtomicType::int64, &five, nullptr, &before, region.name, 16, pending), -ENOSYS);
  EXPECT_EQ(engine.update(origin().held(), target(), wire::Atomic::add, wire::AtomicType::int64, &five, nullptr, &before, region.name, memory.size() - 7, pending), -ERANGE);
  ASSERT_EQ(engine.update(origin().held(), target(), wire::Atomic::add, wire::AtomicType::int64, &five, nullptr, &before, region.name, 16, pending), 0);
  ASSERT_EQ(engine.update(origin().held(), target(), wire::Atomic::add, wire::AtomicType::int64, &five, nullptr, nullptr, region.name, 16, pending), 0);
  EXPECT_TRUE(until_counted(pending));
  EXPECT_EQ(before, 37);
  EXPECT_EQ(number, 47);
}

TEST_P(NetWrites, what_a_write_announces_is_heard_at_the_target) {
  const auto source = pattern(300, 1);
  ASSERT_GE(origin().engine().write_with_data(origin().held(), target(), source.data(), source.size(), region.name, 0, 4711, pending), 0);
  EXPECT_EQ(context().flushes, 1U) << "leaves at once";
  ASSERT_GE(origin().engine().write_with_data(origin().held(), target(), nullptr, 0, region.name, 0, 4712, pending), 0);
  EXPECT_TRUE(stations[1]->announced.empty());
  carry_out();
  settle();
  EXPECT_EQ(stations[1]->announced.size(), 2U);
  EXPECT_EQ(pending, 0U);
}

TEST_P(NetWrites, the_helper_sends_what_waits_for_more) {
  const int before = Station::wakes;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(write(pattern(8, i), 0), 1);
  EXPECT_EQ(Station::wakes, before + 1);
  EXPECT_EQ(context().flushes, 0U);
  EXPECT_TRUE(origin().engine().has_gathered());
  origin().engine().flush(origin().held());
  EXPECT_EQ(context().flushes, 1U);
  EXPECT_FALSE(origin().engine().has_gathered());
}

}  // namespace
}  // namespace heddle::net
