// Records that a full ring refused: kept in order, pushed when there is room, in nobody else's way.
#include "simulation.hpp"

namespace heddle::proto {
namespace {

class ProtoBacklog : public ProtoTest {
 protected:
  /// Takes what `fill` put before the messages of a test.
  void take_filling(Side& side, int n) {
    for (int i = 0; i < n; ++i) ASSERT_EQ(side.take()->head.kind, PointToPoint::eager);
  }
};

TEST_F(ProtoBacklog, messages_of_every_kind_stay_in_order_behind_a_full_ring) {
  constexpr int messages = 200;
  struct Kind {
    std::size_t bytes;
    SendMode mode;
    bool gaps;
  };
  constexpr Kind kinds[] = {{0, SendMode::standard, false},     {90, SendMode::standard, false},    {9'000, SendMode::standard, false},
                            {60, SendMode::synchronous, false}, {8'100, SendMode::standard, true}, {30'000, SendMode::standard, true}};
  const auto kind = [&](int i) { return kinds[static_cast<unsigned>(i) % std::size(kinds)]; };
  const int n = c().fill(1, 9);
  std::vector<Data> from, to;
  for (int i = 0; i < messages; ++i) {
    from.push_back(Data::numbered(kind(i).bytes, i, kind(i).gaps));
    to.emplace_back(kind(i).bytes);
  }
  std::vector<Request*> requests;
  for (int i = 0; i < messages; ++i) requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i, kind(i).mode));
  EXPECT_EQ(a().vci().backlogged.load(), static_cast<unsigned>(messages));
  for (Request* send : requests) EXPECT_FALSE(send->is_done());
  for (int i = 0; i < messages; ++i) requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0, MPI_ANY_TAG));
  run_until([&] { return std::ranges::all_of(requests, [](Request* request) { return request->is_done(); }); });
  for (int i = 0; i < messages; ++i) {
    to[static_cast<std::size_t>(i)].expect(kind(i).bytes, i);
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(messages + i)]).tag, i);
    finish(requests[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2));
}

TEST_F(ProtoBacklog, a_message_that_would_fit_goes_behind_those_that_wait) {
  const int n = c().fill(1, 9);
  const Data large = Data::numbered(8'000, 1), small = Data::numbered(8, 2);
  Request* first = a().send(large, 1, 1);
  take_filling(b(), 3);  // room for the small one, not for the large one
  Request* second = a().send(small, 1, 2);
  EXPECT_FALSE(second->is_done());
  EXPECT_FALSE(a().step());
  EXPECT_EQ(a().vci().backlogged.load(), 2u);
  take_filling(b(), n - 3);
  EXPECT_TRUE(a().step());
  EXPECT_EQ(b().take()->head.tag, 1);
  EXPECT_EQ(b().take()->head.tag, 2);
  EXPECT_FALSE(b().take());
  finish(first);
  finish(second);
}

TEST_F(ProtoBacklog, replies_go_behind_messages_that_wait_for_the_same_ring) {
  const int n = c().fill(1, 9);
  const Data large = Data::numbered(8'000, 1), in(0);
  Request* send = a().send(large, 1, 1);
  take_filling(b(), 3);  // room for the reply, not for the message
  Request* receive = a().receive(in, 1);
  b().push(0, PointToPoint::eager_sync, AckTo{4711, {1, 1}}, {Side::context, 1, 5});
  a().step();
  EXPECT_EQ(finish(receive).tag, 5);
  EXPECT_EQ(a().vci().backlogged.load(), 2u);
  take_filling(b(), n - 3);
  a().step();
  EXPECT_EQ(b().take()->head.kind, PointToPoint::eager);
  const auto ack = b().take();
  EXPECT_EQ(ack->head.kind, PointToPoint::ack);
  EXPECT_EQ(ack->as<RequestToken>(), 4711u);
  finish(send);
}

TEST_F(ProtoBacklog, one_full_ring_keeps_nobody_else_waiting) {
  const int n = c().fill(1, 9);
  const Data data = Data::numbered(100, 1), to(100);
  Request* stuck = a().send(data, 1, 1);
  Request* receive = c().receive(to, 0);
  EXPECT_TRUE(a().send(data, 0, 3)->is_done());  // to itself
  Request* send = a().send(data, 2, 2);
  for (int i = 0; i < 3; ++i) a().step(), c().step();
  EXPECT_FALSE(stuck->is_done());
  EXPECT_TRUE(send->is_done());
  to.expect(100, 1);
  EXPECT_EQ(finish(receive).tag, 2);
  finish(send);
  take_filling(b(), n);
  a().step();
  EXPECT_EQ(b().take()->head.tag, 1);
  finish(stuck);
  Data self(100);
  finish(a().receive(self, 0, 3));
}

TEST_F(ProtoBacklog, a_message_is_packed_when_it_leaves_and_its_buffer_is_the_librarys_until_then) {
  const int n = c().fill(1, 9);
  Data from = Data::numbered(300, 1, true);
  Request* send = a().send(from, 1, 1);
  EXPECT_FALSE(send->is_done());
  const std::vector<std::byte> newer = Data::pattern(300, 2);
  from.buffer().unpack(0, newer.data(), 300);  // a program must not; it shows that no copy was taken
  take_filling(b(), n);
  a().step();
  const auto record = b().take();
  EXPECT_TRUE(record->payload == newer);
  finish(send);
}

TEST_F(ProtoBacklog, a_synchronous_send_that_waited_is_complete_when_it_is_matched_and_not_when_it_leaves) {
  const int n = c().fill(1, 9);
  const Data from = Data::numbered(30, 1);
  Request* send = a().send(from, 1, 1, SendMode::synchronous);
  take_filling(b(), n);
  a().step();
  EXPECT_EQ(a().vci().backlogged.load(), 0u);
  EXPECT_FALSE(send->is_done());
  b().step();
  Data to(30);
  finish(b().receive(to, 0, 1));
  to.expect(30, 1);
  settle();
  finish(send);
}

TEST_F(ProtoBacklog, a_send_that_is_freed_while_it_waits_still_arrives) {
  const int n = c().fill(1, 9);
  const Data from = Data::numbered(500, 1);
  a().free(a().send(from, 1, 1));
  EXPECT_TRUE(has_freed_operations());
  a().step();
  EXPECT_TRUE(has_freed_operations());
  take_filling(b(), n);
  a().step();
  EXPECT_FALSE(has_freed_operations());
  EXPECT_TRUE(b().take()->payload == Data::pattern(500, 1));
}

TEST_F(ProtoBacklog, a_ring_that_takes_one_record_at_a_time_still_takes_them_all) {
  const int n = c().fill(1, 9);
  std::vector<Request*> sends;
  for (int i = 0; i < 50; ++i) sends.push_back(a().send(Data::numbered(0, 0), 1, i));
  for (int i = 0; i < 50; ++i) {
    take_filling(b(), 1);
    EXPECT_TRUE(a().step());
    EXPECT_EQ(a().vci().backlogged.load(), 49u - static_cast<unsigned>(i));
    EXPECT_TRUE(finish(sends[static_cast<std::size_t>(i)]).error_class == MPI_SUCCESS);
  }
  take_filling(b(), n - 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(b().take()->head.tag, i);
}

}  // namespace
}  // namespace heddle::proto
