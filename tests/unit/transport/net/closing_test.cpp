// Peers that leave: before, while and after the others do.
#include <algorithm>

#include "simulation.hpp"

namespace heddle::net {
namespace {

class NetClosing : public NetEngine {
 protected:
  void begin(ProcessIndex who) {
    Station& s = *stations[who];
    s.common.finishing = true;
    for (unsigned i = 0; i < s.engines.size(); ++i) s.engine(i).begin_closing(s.held(i));
  }
  bool has_closed(ProcessIndex who) {
    Station& s = *stations[who];
    bool closed = true;
    for (unsigned i = 0; i < s.engines.size(); ++i) closed &= s.engine(i).has_closed(s.held(i));
    return closed;
  }
  /// These take leave; each is gone as soon as it may go.
  void all_leave(std::vector<ProcessIndex> order) {
    for (int round = 0; round < 1000 && !order.empty(); ++round) {
      for (auto& station : stations) station->poll();
      world.deliver_all();
      for (auto who = order.begin(); who != order.end();) {
        if (!has_closed(*who)) {
          ++who;
          continue;
        }
        stations[*who]->leave();
        who = order.erase(who);
      }
    }
    EXPECT_TRUE(order.empty()) << order.size() << " wait for ever";
  }
};
INSTANTIATE_TEST_SUITE_P(, NetClosing, testing::Bool(), departures);

TEST_P(NetClosing, a_process_that_has_talked_to_nobody_may_go_at_once) {
  begin(0);
  EXPECT_TRUE(has_closed(0));
}

TEST_P(NetClosing, a_process_does_not_go_before_its_peer_has_what_it_sent) {
  send(0, 1, 0);
  begin(0);
  for (int i = 0; i < 10; ++i) {
    stations[0]->poll();
    EXPECT_FALSE(has_closed(0));
  }
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(1));
  EXPECT_TRUE(has_closed(0));
}

TEST_P(NetClosing, all_may_leave_at_once_and_nothing_is_lost) {
  for (int i = 0; i < 30; ++i)
    for (ProcessIndex from = 0; from < 3; ++from) send(from, (from + 1) % 3, i, 300);
  for (ProcessIndex who = 0; who < 3; ++who) begin(who);
  all_leave({0, 1, 2});
  for (ProcessIndex at = 0; at < 3; ++at) EXPECT_EQ(tags_from(at, (at + 2) % 3), up_to(30));
}

TEST_P(NetClosing, one_after_the_other_may_leave_while_the_rest_goes_on) {
  for (int i = 0; i < 10; ++i) {
    send(0, 1, i);
    send(1, 2, i);
  }
  settle();
  begin(0);
  all_leave({0});
  for (int i = 10; i < 20; ++i) send(1, 2, i);
  settle();
  EXPECT_EQ(tags_from(2, 1), up_to(20));
  begin(1);
  begin(2);
  all_leave({2, 1});
}

TEST_P(NetClosing, a_peer_that_goes_on_talking_is_heard_before_a_process_leaves) {
  send(0, 1, 0);
  settle();
  begin(0);
  stations[0]->poll();
  send(1, 0, 0);  // crosses the last word
  settle();
  EXPECT_EQ(tags_from(0, 1), up_to(1));
  begin(1);
  all_leave({0, 1});
}

TEST_P(NetClosing, a_failed_send_to_a_peer_that_has_announced_its_leave_is_dropped_and_told) {
  Station& s = *stations[0];
  send(0, 1, 0);
  send(1, 0, 0);
  settle();
  begin(1);
  settle();  // its last word is read here
  stations[1]->leave();
  s.context().failure = ECONNRESET;
  const auto body = pattern(2000, 1);
  Told told;
  s.engine().send_uncopied(s.held(), s.to(1), {2, 0, 1, numbered}, nullptr, 0, body.data(), body.size(), &told);
  settle();
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.error, ECONNRESET);
  EXPECT_TRUE(s.engine().has_left(1, Lane{}));
  s.context().failure = 0;
  begin(0);
  EXPECT_TRUE(has_closed(0));
}

TEST_P(NetClosing, a_write_that_ends_after_its_peer_has_left_harms_nothing) {
  Station& s = *stations[0];
  send(0, 1, 0);
  send(1, 0, 0);
  settle();
  s.context().completes_late = true;
  send(0, 1, 1);
  world.deliver_all();
  begin(1);
  stations[1]->poll();
  world.deliver_all();
  s.poll();
  s.context().complete_sends(EPIPE);
  settle();
  s.context().complete_sends();
  s.context().completes_late = false;
  begin(0);
  all_leave({1, 0});
}

TEST_P(NetClosing, a_silent_peer_is_asked_once_a_tick_and_its_answer_is_a_sign_of_life) {
  send(0, 1, 0);
  settle();  // too little for credit to be given unasked
  Station& s = *stations[0];
  const std::size_t before = s.context().sends;
  s.engine().tick(s.held());  // now it counts
  s.engine().tick(s.held());
  EXPECT_GT(s.context().sends, before);
  settle();
  const std::size_t asked = s.context().sends;
  for (int i = 0; i < 5; ++i) s.engine().tick(s.held());
  EXPECT_EQ(s.context().sends, asked);  // everything is confirmed
}

TEST_P(NetClosing, a_session_that_follows_the_last_one_talks_to_the_same_peers_again) {
  for (int session = 0; session < 3; ++session) {
    for (int i = 0; i < 10; ++i) {
      send(0, 1, session * 10 + i);
      send(1, 0, session * 10 + i);
      if (i == 0) settle();  // as the session's first communicator does
    }
    for (const ProcessIndex who : {0U, 1U}) begin(who);
    for (int round = 0; round < 100 && !(has_closed(0) & has_closed(1)); ++round) settle();
    EXPECT_TRUE(has_closed(0) & has_closed(1)) << session;
    for (const ProcessIndex who : {0U, 1U}) {
      stations[who]->common.finishing = false;
      for (auto& engine : stations[who]->engines) engine->end_closing();
    }
  }
  EXPECT_EQ(tags_from(0, 1), up_to(30));
  EXPECT_EQ(tags_from(1, 0), up_to(30));
}

TEST_P(NetClosing, what_is_sent_to_a_peer_that_closed_in_an_earlier_session_is_waited_for_and_asked_about) {
  send(0, 1, 0);
  send(1, 0, 0);
  for (const ProcessIndex who : {0U, 1U}) begin(who);
  for (int round = 0; round < 100 && !(has_closed(0) & has_closed(1)); ++round) settle();
  for (const ProcessIndex who : {0U, 1U}) {
    stations[who]->common.finishing = false;
    for (auto& engine : stations[who]->engines) engine->end_closing();
  }
  // The next session: the peer's last word was for the one before.
  Station& s = *stations[0];
  send(0, 1, 1);
  s.poll();
  const std::size_t before = s.context().sends;
  for (int i = 0; i < 3; ++i) s.engine().tick(s.held());
  EXPECT_GT(s.context().sends, before) << "a peer that answers nothing is not noticed";
  begin(0);
  for (int i = 0; i < 10; ++i) {
    s.poll();
    EXPECT_FALSE(has_closed(0)) << "its message may be lost with it";
  }
  settle();
  EXPECT_EQ(tags_from(1, 0), up_to(2));
  for (int round = 0; round < 100 && !has_closed(0); ++round) settle();
  EXPECT_TRUE(has_closed(0));
}

using NetClosingDeathTest = NetClosing;
INSTANTIATE_TEST_SUITE_P(, NetClosingDeathTest, testing::Values(true), departures);

TEST_P(NetClosingDeathTest, a_peer_that_vanishes_without_a_word_ends_the_job_by_name) {
  send(0, 1, 0);
  settle();
  stations[0]->context().failure = ECONNRESET;
  EXPECT_DEATH({ send(0, 1, 1); settle(); }, "the connection to rank 1 was lost while sending \\(simulated, sim0: Connection reset by peer\\)");
}

}  // namespace
}  // namespace heddle::net
