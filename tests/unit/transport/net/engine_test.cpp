// Records over a network that a test holds in its hands: order, flow control, partial writes, late completions, remote reads.
#include "transport/net/engine.hpp"

#include <algorithm>
#include <random>

#include "simulation.hpp"

namespace heddle::net {
namespace {

INSTANTIATE_TEST_SUITE_P(, NetEngine, testing::Bool(), departures);

TEST_P(NetEngine, records_arrive_in_order_and_whole) {
  for (int i = 0; i < 500; ++i) send(0, 1, i, static_cast<std::size_t>(i) % 900);
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(500));
}

TEST_P(NetEngine, frames_that_overtake_each_other_are_handled_in_the_order_in_which_they_were_sent) {
  std::mt19937 random(1);
  send(0, 1, 0);
  settle();
  for (int i = 1; i < 300; ++i) {
    send(0, 1, i, 700);  // a frame each
    stations[0]->poll();
    if (random() % 3 == 0) {
      world.deliver_newest("0.0", "1.0");
      stations[1]->poll();
    }
  }
  EXPECT_LT(tags_from(1, 0).size(), 300U);  // some have come, and wait for their turn
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(300));
}

TEST_P(NetEngine, order_between_connections_is_free_and_within_each_is_kept) {
  for (int i = 0; i < 100; ++i) {
    send(0, 2, i, 300);
    send(1, 2, i, 300);
  }
  for (auto& station : stations) station->poll();
  while (world.deliver("1.0", "2.0")) {}  // all of the one, then the other's
  stations[2]->poll();
  EXPECT_TRUE(tags_from(2, 0).empty());
  settle();
  EXPECT_EQ(tags_from(2, 0), up_to(100));
  EXPECT_EQ(tags_from(2, 1), up_to(100));
}

TEST_P(NetEngine, two_that_send_to_each_other_first_at_the_same_time_lose_nothing) {
  for (int i = 0; i < 50; ++i) {
    send(0, 1, i);
    send(1, 0, i);
  }
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(50));
  EXPECT_EQ(tags_from(0, 1), up_to(50));
}

TEST_P(NetEngine, a_vci_whose_address_is_unknown_is_asked_for_and_gets_what_waited) {
  Station& s = *stations[0];
  for (int i = 0; i < 20; ++i) {
    const auto payload = pattern(8, i);
    s.engine(2).push(s.held(2), s.to(1, 3, 2), {2, 0, i, numbered, lane_at(2)}, payload.data(), 8);
  }
  stations[0]->poll();
  EXPECT_EQ(world.wires.count({"0.2", "1.3"}), 0U);  // nothing could be sent there
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(20));
}

TEST_P(NetEngine, small_records_after_the_first_share_a_frame_until_the_next_step) {
  send(0, 1, 0);
  settle();
  const std::size_t before = stations[0]->context().sends;
  for (int i = 1; i < 11; ++i) send(0, 1, i);
  EXPECT_EQ(stations[0]->context().sends, before + 1);  // the first since the last step; the others are gathered
  EXPECT_TRUE(stations[0]->engine().has_gathered());
  stations[0]->poll();
  EXPECT_FALSE(stations[0]->engine().has_gathered());
  EXPECT_EQ(stations[0]->context().sends, before + 2);
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(11));
}

TEST_P(NetEngine, gathered_records_have_the_helper_woken_once) {
  send(0, 1, 0);
  const int before = Station::wakes;
  for (int i = 1; i < 10; ++i) send(0, 1, i);
  EXPECT_EQ(Station::wakes, before + 1);
}

TEST_P(NetEngine, what_the_network_does_not_take_leaves_later_in_order) {
  send(0, 1, 0);
  settle();
  stations[0]->context().room = 0;
  for (int i = 1; i < 60; ++i) send(0, 1, i, 700);
  for (int round = 0; round < 5; ++round) stations[0]->poll();
  world.deliver_all();
  stations[1]->poll();
  EXPECT_EQ(tags_from(1, 0), up_to(1));
  for (int taken = 0; taken < 60; ++taken) {  // a message at a time
    stations[0]->context().room = 1;
    stations[0]->poll();
    world.deliver_all();
    stations[1]->poll();
  }
  stations[0]->context().room = stations[1]->context().room = 1 << 30;
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(60));
}

TEST_P(NetEngine, a_completion_is_told_when_its_record_is_on_its_way_and_once) {
  send(0, 1, 0);  // so that what follows is gathered
  Station& s = *stations[0];
  Told told[3];
  const RecordHead head{2, 0, 1, numbered};
  for (Told& one : told) {
    s.engine().append(s.held(), s.to(1), head, 0);
    s.engine().send_appended(s.held(), s.to(1), one);
    EXPECT_EQ(one.times, 0);
  }
  s.poll();
  for (const Told& one : told) EXPECT_EQ(one.times, 1);
  settle();
  for (const Told& one : told) EXPECT_EQ(one.times, 1);
  EXPECT_EQ(tags_from(1, 0).size(), 4U);
}

TEST_P(NetEngine, memory_that_is_sent_uncopied_is_the_callers_again_only_when_the_network_says_so) {
  Station& s = *stations[0];
  s.context().completes_late = true;
  const auto body = pattern(3001, 5);
  Told told;
  s.engine().send_uncopied(s.held(), s.to(1), {2, 0, 5, numbered}, nullptr, 0, body.data(), body.size(), &told);
  for (int i = 0; i < 3; ++i) s.poll();
  EXPECT_EQ(told.times, 0);
  world.deliver_all();
  stations[1]->poll();
  EXPECT_EQ(stations[1]->got.at(0).payload, body);  // arrived, and yet the sender is not told
  EXPECT_EQ(told.times, 0);
  s.context().complete_sends();
  s.poll();
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.error, 0);
}

TEST_P(NetEngine, frames_are_used_again_only_when_their_writes_are_complete) {
  Station& s = *stations[0];
  s.context().completes_late = true;
  for (int i = 0; i < 100; ++i) {
    send(0, 1, i, 700);
    s.poll();
    if (i % 10 == 9) s.context().complete_sends();
  }
  s.context().complete_sends();
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(100));
}

TEST_P(NetEngine, credit_runs_out_when_the_peer_confirms_nothing_and_comes_back_when_it_does) {
  Station& s = *stations[0];
  const auto payload = pattern(400, 0);
  int sent = 0;
  const auto send_one = [&] {
    s.poll();  // or the message would be gathered
    return s.engine().try_send(s.held(), s.to(1), {2, 0, 0, numbered}, payload.data(), payload.size());
  };
  while (sent < 1000 && send_one()) ++sent;
  EXPECT_GE(sent, 16 * 1024 / 424);
  EXPECT_LT(sent, 60);
  EXPECT_FALSE(s.engine().has_credit(s.to(1)));
  EXPECT_FALSE(send_one());
  settle();  // the peer takes it all, and says so
  EXPECT_TRUE(s.engine().has_credit(s.to(1)));
  EXPECT_TRUE(send_one());
  settle();
  EXPECT_EQ(stations[1]->got.size(), static_cast<std::size_t>(sent) + 1);
}

TEST_P(NetEngine, a_peer_that_keeps_too_much_gives_no_credit_until_it_has_room) {
  Station& s = *stations[0];
  stations[1]->holding = true;
  for (int i = 0; i < 60; ++i) send(0, 1, i, 400);  // records that have to be sent need no credit
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(60));
  EXPECT_FALSE(s.engine().has_credit(s.to(1)));
  stations[1]->holding = false;
  settle();
  EXPECT_TRUE(s.engine().has_credit(s.to(1)));
}

TEST_P(NetEngine, large_memory_is_fetched_in_pieces_and_told_once) {
  Station& s = *stations[0];
  send(0, 1, 0);  // the connection stands
  const auto source = pattern(1'000'003, 3);
  std::vector<std::byte> to(source.size());
  struct Read : RemoteRead {
    int times = 0;
  } read;
  read.done = [](Completion& self, Held&, int) noexcept { ++static_cast<Read&>(self).times; };
  read.connection = &s.to(1);
  read.to = to.data();
  read.bytes = to.size();
  read.from = reinterpret_cast<std::uint64_t>(source.data());
  s.context().read_room = 0;  // the network takes none at first
  s.engine().read(s.held(), read);
  s.poll();
  EXPECT_EQ(s.context().reads_waiting(), 0U);
  s.context().read_room = 1 << 30;
  for (int step = 0; step < 10'000 && !read.times; ++step) {
    s.poll();
    EXPECT_LE(s.context().reads_waiting(), 4U);
    s.context().complete_read();
  }
  EXPECT_EQ(read.times, 1);
  EXPECT_EQ(to, source);
  EXPECT_FALSE(s.context().complete_read());
}

TEST_P(NetEngine, what_is_not_of_this_job_changes_nothing) {
  send(0, 1, 0);
  settle();
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> noise((random() % 100) * 8);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    stations[1]->context().deliver(noise);
    stations[1]->poll();
  }
  for (int i = 1; i < 10; ++i) send(0, 1, i);
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(10));
}

}  // namespace
}  // namespace heddle::net
