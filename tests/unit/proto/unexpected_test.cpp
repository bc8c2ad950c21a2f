// Messages that nobody asked for: what is kept of them, and when senders are asked to hold theirs back.
#include "proto/message.hpp"
#include "simulation.hpp"

namespace heddle::proto {
namespace {

class ProtoUnexpected : public ProtoTest {
 protected:
  ProtoUnexpected() { limits.unexpected = 64 << 10; }
  ~ProtoUnexpected() override { EXPECT_EQ(b().state().unexpected_bytes, 0u); }
};

TEST_F(ProtoUnexpected, senders_are_asked_to_hold_back_at_the_limit_and_released_at_half_of_it) {
  const Data from = Data::numbered(4'000, 1);
  int sent = 0;
  a().send(from, 1, sent++);
  b().step();
  while (!b().held() && sent < 100) {
    EXPECT_LE(b().state().unexpected_bytes, limits.unexpected);
    a().send(from, 1, sent++);
    b().step();
  }
  EXPECT_GT(b().state().unexpected_bytes, limits.unexpected);
  EXPECT_LE(b().state().unexpected_bytes, limits.unexpected + 5'000);
  EXPECT_EQ(sent, 16);  // of 4 KB and a node each
  for (int i = 0; i < sent; ++i) {
    const bool above_half = b().state().unexpected_bytes > limits.unexpected / 2;
    EXPECT_EQ(b().held(), above_half) << i;
    const Data to(4'000);
    EXPECT_EQ(finish(b().receive(to, 0)).tag, i);
    to.expect(4'000, 1);
  }
}

TEST_F(ProtoUnexpected, while_they_hold_back_memory_does_not_grow_and_order_is_kept) {
  constexpr int messages = 400;
  std::vector<Data> from, to;
  for (int i = 0; i < messages; ++i) from.push_back(Data::numbered(1'000, i)), to.emplace_back(1'000);
  std::vector<Request*> requests;
  std::size_t most = 0;
  for (int i = 0; i < messages; ++i) {
    requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i));
    b().step();
    most = std::max(most, b().state().unexpected_bytes);
  }
  // A message that waits at its sender takes a node here.
  EXPECT_LT(most, limits.unexpected + messages * (sizeof(Unexpected) + 64));
  EXPECT_FALSE(requests.back()->is_done());
  for (int i = 0; i < messages; ++i) {
    requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0));
    if (i % 7 == 0) settle();
  }
  run_until([&] { return std::ranges::all_of(requests, [](Request* request) { return request->is_done(); }); });
  for (int i = 0; i < messages; ++i) {
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(messages + i)]).tag, i);
    to[static_cast<std::size_t>(i)].expect(1'000, i);
    finish(requests[static_cast<std::size_t>(i)]);
  }
  EXPECT_FALSE(b().held());
}

TEST_F(ProtoUnexpected, a_small_message_to_one_that_holds_back_is_announced) {
  a().send(Data::numbered(8, 0), 2, 1);
  c().take();
  c().vci().ring.set_hold(true);
  const Data from = Data::numbered(100, 1, false);
  Request* send = a().send(from, 2, 2);
  EXPECT_FALSE(send->is_done());
  const auto record = c().take();
  ASSERT_EQ(record->head.kind, PointToPoint::request);
  EXPECT_EQ(record->as<RendezvousRequest>().bytes, 100u);
  c().push(0, PointToPoint::data_request, DataRequest{record->as<RendezvousRequest>().sender, 5, 100, lane_at(2), {}});
  a().step();
  EXPECT_EQ(c().take()->payload.size(), 100 + sizeof(StreamData));
  finish(send);
  c().vci().ring.set_hold(false);
  EXPECT_TRUE(a().send(from, 2, 3)->is_done());
  EXPECT_EQ(c().take()->head.kind, PointToPoint::eager);
}

TEST_F(ProtoUnexpected, messages_to_oneself_above_the_limit_wait_for_their_receive) {
  limits.unexpected = 3'000;
  std::vector<Request*> sends;
  const Data from = Data::numbered(1'000, 1);
  for (int i = 0; i < 6; ++i) sends.push_back(a().send(from, 0, i));
  EXPECT_TRUE(sends.front()->is_done());
  EXPECT_FALSE(sends.back()->is_done());
  for (int i = 0; i < 6; ++i) {
    const Data to(1'000);
    EXPECT_EQ(finish(a().receive(to, 0)).tag, i);
    to.expect(1'000, 1);
    finish(sends[static_cast<std::size_t>(i)]);
  }
  limits.unexpected = 64 << 10;
}

TEST_F(ProtoUnexpected, a_probe_is_told_the_size_of_a_message_that_is_kept_or_announced) {
  const Data small = Data::numbered(700, 1), large = Data::numbered(70'000, 2);
  Request* sends[] = {a().send(small, 1, 1, SendMode::synchronous), a().send(large, 1, 2)};
  b().step();
  b().turn();
  Envelope envelope{};
  ASSERT_TRUE(find_message(0, 1, b().comm(), envelope));
  EXPECT_EQ(envelope.bytes, 700);
  ASSERT_TRUE(find_message(MPI_ANY_SOURCE, 2, b().comm(), envelope));
  EXPECT_EQ(envelope.bytes, 70'000);
  EXPECT_EQ(envelope.source, 0);
  EXPECT_FALSE(find_message(0, 3, b().comm(), envelope));
  for (int i = 0; i < 2; ++i) {
    const Data to(70'000);
    Request* receive = b().receive(to, 0, i + 1);
    run({sends[i], receive});
    finish(receive);
    finish(sends[i]);
  }
}

TEST_F(ProtoUnexpected, a_kept_message_that_is_too_long_fails_its_receive) {
  for (const SendMode mode : {SendMode::standard, SendMode::synchronous}) {
    Request* send = a().send(Data::numbered(1'000, 1), 1, 1, mode);
    b().step();
    const Data to(400);
    Request* receive = b().receive(to, 0);
    const Outcome got = finish(receive);
    EXPECT_EQ(got.error_class, MPI_ERR_TRUNCATE);
    EXPECT_EQ(got.bytes, 400u);
    to.expect(400, 1);
    settle();
    EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
  }
}

}  // namespace
}  // namespace heddle::proto
