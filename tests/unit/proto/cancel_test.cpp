// Cancelling: what is in this process's hands, what the receiver is asked about, and answers that come late or never.
#include "simulation.hpp"

namespace heddle::proto {
namespace {

/// How a send that may be cancelled waits for its receive.
struct Waiting {
  const char* name;
  std::size_t bytes;
  SendMode mode;
  bool gaps = false;
};
std::ostream& operator<<(std::ostream& out, const Waiting& waiting) { return out << waiting.name; }

class ProtoCancel : public ProtoTest {
 protected:
  static void say(shm::Stage stage) { shm::header->stage.store(stage); }
  std::size_t kept(Side& side) { return side.vci().matcher.unexpected(); }
};

class ProtoCancelSend : public ProtoCancel, public testing::WithParamInterface<Waiting> {
 protected:
  Data message(int seed = 1) { return Data::numbered(GetParam().bytes, seed, GetParam().gaps); }
  Data room() { return Data(GetParam().bytes); }
  Request* start(const Data& data, unsigned to = 1, int tag = 3) { return a().send(data, to, tag, GetParam().mode); }
};
INSTANTIATE_TEST_SUITE_P(, ProtoCancelSend,
                         testing::Values(Waiting{"synchronous", 300, SendMode::synchronous}, Waiting{"synchronous_empty", 0, SendMode::synchronous},
                                         Waiting{"synchronous_with_gaps", 300, SendMode::synchronous, true},
                                         Waiting{"large", 300'000, SendMode::standard}, Waiting{"large_with_gaps", 300'000, SendMode::standard, true},
                                         Waiting{"large_synchronous", 300'000, SendMode::synchronous}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ProtoCancelSend, a_message_that_nobody_has_asked_for_is_taken_back) {
  const Data from = message();
  Request* send = start(from);
  b().step();
  ASSERT_EQ(kept(b()), 1u);
  a().cancel(send);
  EXPECT_FALSE(send->is_done());  // the receiver alone knows
  settle();
  EXPECT_EQ(kept(b()), 0u);
  EXPECT_TRUE(finish(send).cancelled);
}

TEST_P(ProtoCancelSend, a_question_right_behind_the_message_finds_it) {
  const Data from = message();
  Request* send = start(from);
  a().cancel(send);
  settle();
  EXPECT_EQ(kept(b()), 0u);
  EXPECT_TRUE(finish(send).cancelled);
}

TEST_P(ProtoCancelSend, a_message_that_is_matched_before_the_question_comes_is_received) {
  const Data from = message(), to = room();
  Request* send = start(from);
  b().step();
  Request* receive = b().receive(to, 0, 3);
  a().cancel(send);
  EXPECT_NE(send->asked, 0u);
  run({send, receive});
  to.expect(GetParam().bytes, 1);
  finish(receive);
  const Outcome sent = finish(send);
  EXPECT_FALSE(sent.cancelled);
  EXPECT_EQ(sent.error_class, MPI_SUCCESS);
}

TEST_P(ProtoCancelSend, a_message_that_a_matched_probe_has_taken_is_received) {
  const Data from = message(), to = room();
  Request* send = start(from);
  b().step();
  Unexpected* message = nullptr;
  submit(b().turn().vci(), [&](VciGuard& guard) {
    message = static_cast<Unexpected*>(guard.vci().matcher.find_arrival({Side::context, 0, 3}));
    guard.vci().matcher.remove_arrival(*message);
  });
  a().cancel(send);
  settle();
  EXPECT_FALSE(send->is_done());
  Request* receive = nullptr;
  submit(b().turn().vci(), [&](VciGuard& guard) {
    receive = new_request(guard.vci(), Request::Type::recv, &b().comm());
    fill(*receive, to.buffer(), message->key);
    consume(guard, *receive, *message);
  });
  run({send, receive});
  to.expect(GetParam().bytes, 1);
  finish(receive);
  EXPECT_FALSE(finish(send).cancelled);
}

TEST_P(ProtoCancelSend, it_asks_once_however_often_the_user_does) {
  const Data from = message();
  Request* send = start(from, 2);
  for (int i = 0; i < 3; ++i) a().cancel(send);
  EXPECT_NE(c().take()->head.kind, PointToPoint::cancel);
  const auto question = c().take();
  ASSERT_TRUE(question);
  EXPECT_EQ(question->head.kind, PointToPoint::cancel);
  EXPECT_EQ(question->head.tag, 3);
  EXPECT_FALSE(c().take());
  const auto what = question->as<Cancel>();
  EXPECT_EQ(what.process, (ProcessName{1, 0}));
  c().push(0, PointToPoint::cancelled, what);
  settle();
  EXPECT_TRUE(finish(send).cancelled);
}

TEST_P(ProtoCancelSend, a_late_answer_does_not_cancel_what_the_request_is_used_for_next) {
  const Data from = message();
  Request* send = start(from, 2);
  const auto first = *c().take();
  a().cancel(send);
  const auto old = c().take()->as<Cancel>();
  c().push(0, PointToPoint::cancelled, old);
  settle();
  EXPECT_TRUE(finish(send).cancelled);
  Request* next = start(from, 2);
  ASSERT_EQ(next, send);  // the same memory
  c().take();
  c().push(0, PointToPoint::cancelled, old);
  a().step();
  EXPECT_FALSE(next->is_done());
  a().cancel(next);
  const auto question = c().take()->as<Cancel>();
  EXPECT_NE(question.number, old.number);
  c().push(0, PointToPoint::cancelled, old);
  a().step();
  EXPECT_FALSE(next->is_done());
  c().push(0, PointToPoint::cancelled, question);
  a().step();
  EXPECT_TRUE(finish(next).cancelled);
  EXPECT_EQ(first.head.lane, Lane{});
}

TEST_P(ProtoCancelSend, only_the_message_that_is_meant_goes) {
  const Data one = message(1), two = message(2), three = message(3), to = room();
  Request *first = start(one), *second = start(two), *third = start(three);
  b().step();
  a().cancel(second);
  settle();
  EXPECT_TRUE(finish(second).cancelled);
  EXPECT_EQ(kept(b()), 2u);
  for (const auto& [request, seed] : {std::pair{first, 1}, std::pair{third, 3}}) {
    const Data buffer = room();
    Request* receive = b().receive(buffer, 0, 3);
    run({request, receive});
    buffer.expect(GetParam().bytes, seed);
    finish(receive);
    EXPECT_FALSE(finish(request).cancelled);
  }
}

TEST_P(ProtoCancelSend, a_message_that_the_full_ring_has_refused_never_leaves) {
  const Data from = message();
  const int n = c().fill(1, 9);
  const Data none(0);
  Request *before = a().send(none, 1, 1), *send = start(from), *last = start(from);
  EXPECT_EQ(a().vci().backlogged.load(), 3u);
  a().cancel(send);
  a().cancel(last);
  EXPECT_EQ(a().vci().backlogged.load(), 1u);
  EXPECT_TRUE(finish(send).cancelled);
  EXPECT_TRUE(finish(last).cancelled);
  Request* after = a().send(none, 1, 2);
  settle();
  finish(before);
  finish(after);
  EXPECT_EQ(kept(b()), static_cast<std::size_t>(n) + 2);
  EXPECT_EQ(finish(b().receive(Data(0), 0)).tag, 1);
  EXPECT_EQ(finish(b().receive(Data(0), 0)).tag, 2);
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2));
}

TEST_P(ProtoCancelSend, a_question_that_the_full_ring_refuses_goes_when_there_is_room) {
  const Data from = message();
  Request* send = start(from);
  const int n = c().fill(1, 9);
  a().cancel(send);
  EXPECT_EQ(a().vci().backlogged.load(), 1u);
  settle();
  EXPECT_TRUE(finish(send).cancelled);
  EXPECT_EQ(kept(b()), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2));
}

TEST_P(ProtoCancelSend, a_question_that_a_match_has_answered_meanwhile_is_not_asked) {
  const Data from = message(), to = room();
  Request* receive = b().receive(to, 0, 3);
  Request* send = start(from);
  const int n = c().fill(1, 9);
  a().cancel(send);
  EXPECT_EQ(a().vci().backlogged.load(), 1u);
  step_until(b(), [&] { return kept(b()) == static_cast<std::size_t>(n); });
  run({send, receive});
  EXPECT_FALSE(finish(send).cancelled);
  finish(receive);
  to.expect(GetParam().bytes, 1);
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2));
}

TEST_P(ProtoCancelSend, where_the_receiver_has_left_it_is_decided_here) {
  const Data from = message();
  Request* send = start(from, 2);
  c().take();
  say(shm::Stage::away);
  a().cancel(send);
  EXPECT_TRUE(finish(send).cancelled);
  EXPECT_FALSE(c().take());
}

TEST_P(ProtoCancelSend, what_a_receiver_said_before_it_left_counts) {
  const Data from = message();
  Request* send = start(from, 2);
  const auto record = *c().take();
  // It takes the message, says so, and leaves; its word lies unread in the ring.
  if (record.head.kind == PointToPoint::request) {
    const auto offer = record.as<RendezvousRequest>();
    c().push(0, PointToPoint::finished, offer.sender);
  } else {
    c().push(0, PointToPoint::ack, record.as<AckTo>().request);
  }
  say(shm::Stage::away);
  a().cancel(send);
  EXPECT_FALSE(send->is_done());
  a().step();
  EXPECT_FALSE(finish(send).cancelled);
  settle();
}

TEST_P(ProtoCancelSend, a_full_ring_of_a_process_that_has_left_keeps_no_question) {
  const Data from = message();
  Request* send = start(from, 2);
  b().fill(2, 9);
  Request* stuck = a().send(Data::numbered(0, 0), 2, 1);
  a().cancel(send);
  EXPECT_EQ(a().vci().backlogged.load(), 2u);
  say(shm::Stage::away);
  a().step();
  EXPECT_TRUE(finish(send).cancelled);
  EXPECT_EQ(a().vci().backlogged.load(), 1u);
  while (c().take()) {}
  a().step();
  finish(stuck);
}

TEST_P(ProtoCancelSend, a_process_that_pauses_between_sessions_answers_only_what_its_next_life_may_still_want) {
  const Data from = message();
  say(shm::Stage::paused);
  for (const bool of_session : {false, true}) {
    a().comm().session = of_session ? reinterpret_cast<const Session*>(this) : nullptr;
    Request* send = start(from, 2);
    const auto record = *c().take();
    a().cancel(send);
    EXPECT_EQ(send->is_done(), of_session);
    const auto question = c().take();
    EXPECT_EQ(question.has_value(), !of_session);
    if (question) c().push(0, PointToPoint::cancelled, question->as<Cancel>());
    a().step();
    EXPECT_TRUE(finish(send).cancelled);
  }
  a().comm().session = nullptr;
}

TEST_P(ProtoCancelSend, a_request_that_is_freed_after_the_question_goes_back_whatever_the_answer_is) {
  const Data from = message(), to = room();
  Request* send = start(from);
  b().step();
  a().cancel(send);
  a().free(send);
  EXPECT_TRUE(has_freed_operations());
  settle();
  EXPECT_FALSE(has_freed_operations());
  Request* matched = start(from);
  b().step();
  Request* receive = b().receive(to, 0, 3);
  a().cancel(matched);
  a().free(matched);
  run({receive});
  EXPECT_FALSE(has_freed_operations());
  finish(receive);
}

TEST_P(ProtoCancelSend, a_message_to_the_own_process_is_taken_back_at_once) {
  const Data from = message(), to = room();
  Request* send = start(from, 0);
  if (send->is_done()) {  // small: it was copied
    finish(send);
    return;
  }
  a().cancel(send);
  EXPECT_TRUE(finish(send).cancelled);
  EXPECT_EQ(kept(a()), 0u);
  Request* matched = start(from, 0);
  Request* receive = a().receive(to, 0, 3);
  EXPECT_TRUE(matched->is_done());
  a().cancel(matched);
  EXPECT_FALSE(finish(matched).cancelled);
  finish(receive);
}

TEST_P(ProtoCancelSend, a_process_waits_in_its_end_for_those_who_may_still_ask) {
  const Data from = message();
  Request* send = start(from);
  b().step();
  b().turn();
  EXPECT_TRUE(is_awaited());
  say(shm::Stage::finishing);
  EXPECT_FALSE(is_awaited());
  say(shm::Stage::running);
  a().cancel(send);
  settle();
  b().turn();
  EXPECT_FALSE(is_awaited());
  EXPECT_TRUE(finish(send).cancelled);
}

TEST_F(ProtoCancel, a_send_whose_bytes_the_receiver_has_asked_for_is_not_cancelled) {
  refuse_single_copy();
  const Data from = Data::numbered(1 << 20, 1), to(1 << 20);
  Request* send = a().send(from, 1);
  Request* receive = b().receive(to);
  b().step();
  a().step();
  EXPECT_EQ(transfer_of(*send)->strategy, Strategy::stream);
  a().cancel(send);
  EXPECT_EQ(send->asked, 0u);
  run({send, receive});
  EXPECT_FALSE(finish(send).cancelled);
  finish(receive);
  to.expect(1 << 20, 1);
}

TEST_F(ProtoCancel, a_small_message_that_has_left_completes_and_one_that_has_not_is_taken_back) {
  const Data from = Data::numbered(100, 1), to(100);
  Request* send = a().send(from, 1, 1);
  EXPECT_TRUE(send->is_done());
  a().cancel(send);  // of no effect: the shared completed request
  EXPECT_FALSE(finish(send).cancelled);
  settle();
  EXPECT_EQ(kept(b()), 1u);
  finish(b().receive(to, 0, 1));
  const int n = c().fill(1, 9);
  Request* queued = a().send(from, 1, 2);
  EXPECT_FALSE(queued->is_done());
  a().cancel(queued);
  EXPECT_TRUE(finish(queued).cancelled);
  settle();
  EXPECT_EQ(kept(b()), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2));
}

TEST_F(ProtoCancel, a_posted_receive_is_taken_back_and_matches_nothing_any_more) {
  const Data from = Data::numbered(100, 1), to(100), other(100);
  Request* receive = b().receive(to, 0, 1);
  Request* later = b().receive(other, 0, 1);
  b().turn();
  cancel_receive(*receive);
  const Outcome outcome = finish(receive);
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(outcome.bytes, 0u);
  a().send(from, 1, 1);
  settle();
  to.expect(0, 0);
  other.expect(100, 1);
  cancel_receive(*later);  // too late
  EXPECT_FALSE(finish(later).cancelled);
}

TEST_F(ProtoCancel, a_receive_whose_large_message_is_on_its_way_is_not_cancelled) {
  const Data from = Data::numbered(1 << 20, 1), to(1 << 20);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  b().step();
  ASSERT_NE(transfer_of(*receive), nullptr);
  cancel_receive(*receive);
  EXPECT_FALSE(receive->is_done());
  run({send, receive});
  EXPECT_FALSE(finish(receive).cancelled);
  finish(send);
  to.expect(1 << 20, 1);
}

}  // namespace
}  // namespace heddle::proto
