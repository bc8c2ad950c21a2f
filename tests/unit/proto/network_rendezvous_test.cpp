// Large messages, cancelling and replies over the network, which the test runs: tests/unit/transport/net/simulation.hpp.
#include "proto/network.hpp"
#include "simulation.hpp"
#include "transport/net/engine.hpp"
#include "unit/transport/net/simulation.hpp"

namespace heddle::proto {
namespace {

/// The processes of ProtoTest, each on a node of its own. Their engines call themselves VCI 0, so that nobody has to ask for an address.
class ProtoNetwork : public ProtoTest {
 protected:
  ProtoNetwork() : ProtoTest([](std::uint32_t) noexcept { return ProcessPlace{Route::network, false}; }, false) {
    register_module(net::control());
    for (ProcessIndex i = 0; i < Side::count; ++i) {
      net::Common& common = commons[i];
      common.host = &network_host();
      common.factory = &factory;
      common.choice.provider = "simulated";
      common.address_of = [](ProcessIndex process) noexcept -> const net::ProcessAddress& { return addresses.at(process); };
      common.wake_helper = []() noexcept {};
      common.key = 0x1234;
      common.self = {1, i};
      common.ranks = Side::count;
      common.frame_bytes = 2048;
      common.copy_limit = 1024;
      common.eager = 1024;
      common.largest_frame = 4096;
      common.window = 64 << 10;
      auto context = std::make_unique<net::SimulatedContext>(world, name_of(i), true);
      contexts[i] = context.get();
      world.contexts[name_of(i)] = context.get();
      engines[i] = new net::Engine(common, VciIndex{}, std::move(context));
      sides[i]->vci().net.store(engines[i]);
    }
  }
  ~ProtoNetwork() override {
    for (const auto& side : sides) close_network(side->vci());
  }

  static std::string name_of(ProcessIndex process) { return std::to_string(process); }
  /// Everybody makes progress, everything sent arrives, and a piece of what is read.
  void turn_all() {
    for (const auto& side : sides) side->step();
    world.deliver_all();
    for (net::SimulatedContext* context : contexts) context->complete_read();
  }
  void run_all(std::vector<Request*> requests) {
    for (int rounds = 0; rounds < 10'000; ++rounds) {
      if (std::ranges::all_of(requests, [](Request* request) { return request->is_done(); })) return;
      turn_all();
    }
    ADD_FAILURE() << "nothing moves any more";
  }
  void settle_all() {
    for (int i = 0; i < 20; ++i) turn_all();
  }

  static inline const std::vector<net::ProcessAddress> addresses{{{}, 1, "0"}, {{}, 1, "1"}, {{}, 1, "2"}};
  net::World world;
  wire::Factory factory{};
  net::Common commons[Side::count];
  net::SimulatedContext* contexts[Side::count] = {};
  net::Engine* engines[Side::count] = {};
};

struct Way {
  const char* name;
  Strategy strategy;
  bool gaps_at_sender = false, gaps_at_receiver = false;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

class ProtoNetworkRendezvous : public ProtoNetwork, public testing::WithParamInterface<Way> {
 protected:
  Data message(std::size_t n, int seed) { return Data::numbered(n, seed, GetParam().gaps_at_sender); }
  Data room(std::size_t n) { return Data(n, GetParam().gaps_at_receiver); }
};
INSTANTIATE_TEST_SUITE_P(, ProtoNetworkRendezvous,
                         testing::Values(Way{"remote_read", Strategy::remote_read}, Way{"out_of_gaps", Strategy::stream, true, false},
                                         Way{"into_gaps", Strategy::stream, false, true}, Way{"between_gaps", Strategy::stream, true, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ProtoNetworkRendezvous, a_message_arrives_whole_before_or_after_its_receive) {
  for (const std::size_t n : {std::size_t{1'026}, std::size_t{4'098}, std::size_t{8'193}, std::size_t{300'003}}) {
    for (const bool receive_first : {true, false}) {
      SCOPED_TRACE(std::to_string(n) + (receive_first ? ", posted" : ", unexpected"));
      const Data from = message(n, 1), to = room(n);
      Request* receive = receive_first ? b().receive(to) : nullptr;
      Request* send = a().send(from, 1, 5);
      a().step();
      world.deliver_all();
      b().step();
      if (!receive) receive = b().receive(to);
      ASSERT_NE(transfer_of(*receive), nullptr);
      EXPECT_EQ(transfer_of(*receive)->strategy, GetParam().strategy);
      run_all({send, receive});
      to.expect(n, 1);
      EXPECT_EQ(finish(receive).bytes, n);
      EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
    }
  }
}

TEST_P(ProtoNetworkRendezvous, a_message_that_is_too_long_fills_the_buffer_and_fails_its_receive_only) {
  for (const std::size_t room_for : {std::size_t{0}, std::size_t{9}, std::size_t{99'999}}) {
    SCOPED_TRACE(room_for);
    const Data from = message(300'003, 2), to = room(room_for);
    Request* receive = b().receive(to);
    Request* send = a().send(from, 1);
    run_all({send, receive});
    to.expect(room_for, 2);
    EXPECT_EQ(finish(receive).error_class, MPI_ERR_TRUNCATE);
    EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
  }
}

TEST_P(ProtoNetworkRendezvous, a_network_that_takes_nothing_for_a_while_delays_and_loses_nothing) {
  const Data from = message(300'003, 3), to = room(300'003);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  for (int round = 0; round < 3'000 && !(send->is_done() && receive->is_done()); ++round) {
    for (net::SimulatedContext* context : contexts) context->room = round % 3 ? 0 : 1, context->read_room = round % 5 ? 0 : 1;
    turn_all();
  }
  to.expect(300'003, 3);
  finish(receive);
  finish(send);
}

TEST_P(ProtoNetworkRendezvous, requests_that_the_user_frees_meanwhile_go_on_and_go_back) {
  const Data from = message(300'003, 4), to = room(300'003);
  Request *receive = b().receive(to), *send = a().send(from, 1);
  a().free(send);
  turn_all();
  b().free(receive);
  for (int rounds = 0; has_freed_operations() && rounds < 10'000; ++rounds) turn_all();
  EXPECT_FALSE(has_freed_operations());
  to.expect(300'003, 4);
}

TEST_P(ProtoNetworkRendezvous, messages_of_many_stay_in_order_while_their_writes_complete_late) {
  contexts[0]->completes_late = contexts[1]->completes_late = true;
  std::vector<Data> from, to;
  std::vector<Request*> requests;
  for (int i = 0; i < 30; ++i) from.push_back(message(9'000, i)), to.push_back(room(9'000));
  for (int i = 0; i < 30; ++i) requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i));
  for (int i = 0; i < 30; ++i) requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0));
  for (int rounds = 0; rounds < 10'000 && !std::ranges::all_of(requests, [](Request* r) { return r->is_done(); }); ++rounds) {
    turn_all();
    if (rounds % 4 == 3)
      for (net::SimulatedContext* context : contexts) context->complete_sends();
  }
  for (int i = 0; i < 30; ++i) {
    to[static_cast<std::size_t>(i)].expect(9'000, i);
    finish(requests[static_cast<std::size_t>(i)]);
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(i + 30)]).tag, i);
  }
  for (net::SimulatedContext* context : contexts) context->complete_sends();
  settle_all();
}

TEST_P(ProtoNetworkRendezvous, a_message_that_nobody_has_asked_for_is_taken_back_and_one_that_is_matched_is_received) {
  const Data from = message(300'003, 5), to = room(300'003);
  for (const bool matched : {false, true}) {
    Request* send = a().send(from, 1, 3);
    settle_all();
    EXPECT_EQ(b().vci().matcher.unexpected(), 1u);
    Request* receive = matched ? b().receive(to, 0, 3) : nullptr;
    a().cancel(send);
    EXPECT_FALSE(send->is_done());
    run_all({send});
    EXPECT_EQ(finish(send).cancelled, !matched);
    settle_all();
    EXPECT_EQ(b().vci().matcher.unexpected(), 0u);
    if (receive) finish(receive), to.expect(300'003, 5);
  }
}

TEST_F(ProtoNetwork, a_long_stream_leaves_the_network_room_and_goes_on_when_writes_are_done) {
  contexts[0]->completes_late = true;
  const Data from = Data::numbered(300'000, 1, true), to(300'000);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  for (int i = 0; i < 10; ++i) turn_all();
  const auto& sending = *static_cast<Sending*>(transfer_of(*send));
  EXPECT_EQ(sending.strategy, Strategy::stream);
  const std::uint64_t sent = sending.sent;
  EXPECT_GT(sent, 0u);
  EXPECT_LE(sent, (net::most_streamed + 1) * 2048);
  for (int i = 0; i < 10; ++i) turn_all();
  EXPECT_EQ(sending.sent, sent);
  for (int i = 0; i < 1'000 && !(send->is_done() && receive->is_done()); ++i) {
    contexts[0]->complete_sends();
    turn_all();
  }
  to.expect(300'000, 1);
  finish(send);
  finish(receive);
  contexts[0]->complete_sends();
  settle_all();
}

TEST_F(ProtoNetwork, where_the_sender_has_no_credit_a_small_message_waits_for_its_receive) {
  commons[0].window = 2'000;
  std::vector<Data> from, to;
  std::vector<Request*> requests;
  for (int i = 0; i < 20; ++i) from.push_back(Data::numbered(300, i)), to.emplace_back(300);
  for (int i = 0; i < 20; ++i) requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i));
  for (int i = 0; i < 3; ++i) a().step(), world.deliver_all(), a().step();
  EXPECT_TRUE(requests.front()->is_done());
  EXPECT_FALSE(requests.back()->is_done());
  EXPECT_NE(transfer_of(*requests.back()), nullptr);
  for (int i = 0; i < 20; ++i) requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0));
  run_all(requests);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(i + 20)]).tag, i);
    to[static_cast<std::size_t>(i)].expect(300, i);
    finish(requests[static_cast<std::size_t>(i)]);
  }
}

TEST_F(ProtoNetwork, a_message_of_no_bytes_into_no_room_is_over_at_once) {
  const Data from = Data::numbered(5'000, 1), none(0);
  Request* send = a().send(from, 1);
  settle_all();
  Request* receive = b().receive(none);
  EXPECT_TRUE(receive->is_done());
  EXPECT_FALSE(send->is_done());
  run_all({send});
  EXPECT_EQ(finish(receive).error_class, MPI_ERR_TRUNCATE);
  finish(send);
}

TEST_F(ProtoNetwork, where_the_receiver_has_left_a_cancelled_send_is_decided_here) {
  Data from = Data::numbered(100, 1);
  Request* send = a().send(from, 1, 3, SendMode::synchronous);
  a().step();
  world.deliver_all();
  world.contexts.erase(name_of(1));  // the network tells
  a().cancel(send);
  EXPECT_TRUE(finish(send).cancelled);
}

TEST_F(ProtoNetwork, a_synchronous_message_is_acknowledged_when_it_is_matched) {
  const Data from = Data::numbered(700, 1), to(700);
  Request* send = a().send(from, 1, 3, SendMode::synchronous);
  settle_all();
  EXPECT_FALSE(send->is_done());
  Request* receive = b().receive(to);
  EXPECT_TRUE(receive->is_done());
  run_all({send});
  to.expect(700, 1);
  finish(receive);
  finish(send);
}

TEST_F(ProtoNetwork, a_process_waits_in_its_end_for_those_who_may_still_ask) {
  const Data from = Data::numbered(100, 1);
  Request* send = a().send(from, 1, 3, SendMode::synchronous);
  settle_all();
  b().turn();
  EXPECT_TRUE(is_awaited());
  a().cancel(send);
  run_all({send});
  b().turn();
  EXPECT_FALSE(is_awaited());
  EXPECT_TRUE(finish(send).cancelled);
}

}  // namespace
}  // namespace heddle::proto
