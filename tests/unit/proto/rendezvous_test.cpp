// Large messages between processes of a node: every strategy at both ends, at whatever moment something else happens.
#include "simulation.hpp"

namespace heddle::proto {
namespace {

Strategy strategy_of(const Request* request) { return transfer_of(*request) ? transfer_of(*request)->strategy : Strategy::undecided; }

/// What the two ends have, and the strategy that follows.
struct Way {
  const char* name;
  Strategy strategy;
  bool gaps_at_sender = false, gaps_at_receiver = false;
  bool shared_heap = false;    ///< the message lies where the receiver maps it
  bool one_process = false;    ///< both ends are endpoints of one process
  bool single_copy = true;     ///< the kernel copies between processes
  bool claims_left = true;     ///< the sender has a SharedCopy to spare
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

constexpr Way ways[] = {
    {.name = "shared_heap", .strategy = Strategy::mapped, .shared_heap = true},
    {.name = "shared_heap_into_gaps", .strategy = Strategy::mapped, .gaps_at_receiver = true, .shared_heap = true},
    {.name = "endpoints", .strategy = Strategy::mapped, .one_process = true},
    {.name = "endpoints_into_gaps", .strategy = Strategy::mapped, .gaps_at_receiver = true, .one_process = true},
    {.name = "no_claims_left", .strategy = Strategy::single_copy, .claims_left = false},
    {.name = "into_gaps", .strategy = Strategy::single_copy, .gaps_at_receiver = true},
    {.name = "both_ends_copy", .strategy = Strategy::both_copy},
    {.name = "no_single_copy", .strategy = Strategy::stream, .single_copy = false},
    {.name = "no_single_copy_into_gaps", .strategy = Strategy::stream, .gaps_at_receiver = true, .single_copy = false},
    {.name = "out_of_gaps", .strategy = Strategy::stream, .gaps_at_sender = true},
    {.name = "between_gaps", .strategy = Strategy::stream, .gaps_at_sender = true, .gaps_at_receiver = true},
};

class ProtoRendezvous : public ProtoTest, public testing::WithParamInterface<Way> {
 protected:
  ProtoRendezvous() : ProtoTest(GetParam().one_process) {
    if (!GetParam().single_copy) refuse_single_copy();
    if (!GetParam().claims_left) a().state().free_copies = 0;
  }
  ~ProtoRendezvous() override { a().state().free_copies |= GetParam().claims_left ? 0 : ~std::uint64_t{0}; }

  Data message(std::size_t n, int seed) {
    std::byte* place = nullptr;
    if (GetParam().shared_heap) {
      place = shm::region.base + shm::heap_offset + heap_used_;
      heap_used_ += n * 2 + 4096;
    }
    return Data::numbered(n, seed, GetParam().gaps_at_sender, place);
  }
  Data room(std::size_t n) { return Data(n, GetParam().gaps_at_receiver); }

 private:
  std::size_t heap_used_ = 4096;
};
INSTANTIATE_TEST_SUITE_P(, ProtoRendezvous, testing::ValuesIn(ways), [](const auto& info) { return std::string(info.param.name); });

constexpr std::size_t sizes[] = {9'000, 65'535, 65'538, 131'073, 300'003, 1'500'000};

TEST_P(ProtoRendezvous, a_message_arrives_whole_before_or_after_its_receive) {
  for (const std::size_t n : sizes) {
    for (const bool receive_first : {true, false}) {
      SCOPED_TRACE(std::to_string(n) + (receive_first ? ", posted" : ", unexpected"));
      const Data from = message(n, 1), to = room(n);
      Request* receive = receive_first ? b().receive(to) : nullptr;
      Request* send = a().send(from, 1, 5);
      EXPECT_FALSE(send->is_done());
      EXPECT_EQ(strategy_of(send), Strategy::undecided);
      if (receive_first) b().step();
      else b().step(), receive = b().receive(to);
      if (!receive->is_done()) {
        EXPECT_EQ(strategy_of(receive), GetParam().strategy);
      }
      run({send, receive});
      to.expect(n, 1);
      const Outcome got = finish(receive), sent = finish(send);
      EXPECT_EQ(got.source, 0);
      EXPECT_EQ(got.tag, 5);
      EXPECT_EQ(got.bytes, n);
      EXPECT_EQ(got.error_class, MPI_SUCCESS);
      EXPECT_EQ(sent.error_class, MPI_SUCCESS);
    }
  }
}

TEST_P(ProtoRendezvous, a_message_that_is_too_long_fills_the_buffer_and_fails_its_receive_only) {
  for (const std::size_t room_for : {std::size_t{0}, std::size_t{9}, std::size_t{65'535}, std::size_t{299'994}}) {
    SCOPED_TRACE(room_for);
    const Data from = message(300'003, 2), to = room(room_for);
    Request* receive = b().receive(to);
    Request* send = a().send(from, 1);
    run({send, receive});
    to.expect(room_for, 2);
    const Outcome got = finish(receive);
    EXPECT_EQ(got.error_class, MPI_ERR_TRUNCATE);
    EXPECT_EQ(got.bytes, room_for);
    EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
  }
}

TEST_P(ProtoRendezvous, a_synchronous_send_is_over_with_its_transfer_and_not_before) {
  const Data from = message(300'003, 3), to = room(300'003);
  Request* send = a().send(from, 1, 0, SendMode::synchronous);
  settle();
  EXPECT_FALSE(send->is_done());
  Request* receive = b().receive(to);
  run({send, receive});
  to.expect(300'003, 3);
  finish(receive);
  finish(send);
}

TEST_P(ProtoRendezvous, requests_that_the_user_frees_meanwhile_go_on_and_go_back) {
  const Data from = message(300'003, 4), to = room(300'003), next = room(300'003);
  for (int round = 0; round < 3; ++round) {
    Request* send = a().send(from, 1);
    if (round == 0) a().free(send);
    Request* receive = b().receive(to);
    if (round == 1) b().free(receive), a().free(send);
    for (int i = 0; i < 2; ++i) a().step(), b().step();
    if (round == 2) b().free(receive), a().free(send);
    EXPECT_TRUE(has_freed_operations() || round == 2);
    if (round) run_until([] { return !has_freed_operations(); });
    else run_until([&] { return !has_freed_operations() && receive->is_done(); }), finish(receive);
    to.expect(300'003, 4);
  }
}

TEST_P(ProtoRendezvous, the_receivers_answers_wait_their_turn_where_the_senders_ring_is_full) {
  const Data from = message(300'003, 5), to = room(300'003);
  Request* send = a().send(from, 1);
  const int n = c().fill(0, 77);
  ASSERT_GT(n, 100);
  Request* receive = b().receive(to);
  const auto refused = [&] { return b().vci().backlogged.load() > 0; };
  step_until(b(), refused);  // it asked, or has copied everything and says so
  EXPECT_FALSE(send->is_done());
  run({send, receive});
  to.expect(300'003, 5);
  finish(receive);
  finish(send);
  EXPECT_EQ(a().vci().matcher.unexpected(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) finish(a().receive(Data(0), 2, 77));
}

TEST_P(ProtoRendezvous, many_at_a_time_between_the_same_two_arrive_in_order) {
  std::vector<Data> from, to;
  std::vector<Request*> requests;
  for (int i = 0; i < 100; ++i) {
    from.push_back(message(30'000, i));
    to.push_back(room(30'000));
  }
  for (int i = 0; i < 100; ++i) requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i % 3));
  for (int i = 0; i < 100; ++i) requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0));
  run_until([&] { return std::ranges::all_of(requests, [](Request* request) { return request->is_done(); }); });
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    to[static_cast<std::size_t>(i)].expect(30'000, i);
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(i)]).error_class, MPI_SUCCESS);
    EXPECT_EQ(finish(requests[static_cast<std::size_t>(i + 100)]).tag, i % 3);
  }
}

TEST_P(ProtoRendezvous, both_ways_at_once) {
  const Data out = message(300'003, 6), in = room(300'003);
  const Data back = Data::numbered(300'003, 7), taken = Data(300'003);
  Request* requests[] = {a().send(out, 1), b().send(back, 0), b().receive(in), a().receive(taken)};
  run({requests[0], requests[1], requests[2], requests[3]});
  in.expect(300'003, 6);
  taken.expect(300'003, 7);
  for (Request* request : requests) EXPECT_EQ(finish(request).error_class, MPI_SUCCESS);
}

class ProtoTransfers : public ProtoTest {};

TEST_F(ProtoTransfers, a_message_of_no_bytes_that_was_announced_is_over_at_once) {
  b().turn().vci().ring.set_hold(true);
  Data none(0);
  b().receive(none);  // opens a's way to the ring below
  Request* first = a().send(none, 1, 0, SendMode::synchronous);
  settle();
  EXPECT_TRUE(first->is_done());
  finish(first);
  Request* send = a().send(none, 1, 4);
  EXPECT_NE(transfer_of(*send), nullptr);
  settle();
  EXPECT_FALSE(send->is_done());
  Request* receive = b().receive(none);
  EXPECT_TRUE(receive->is_done());
  settle();
  EXPECT_EQ(finish(receive).tag, 4);
  EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
  b().vci().ring.set_hold(false);
}

// --- both ends copy ---

constexpr std::size_t pieces = 6, whole = pieces * (64 << 10);

TEST_F(ProtoTransfers, a_receiver_whose_sender_is_busy_elsewhere_copies_everything) {
  const Data from = Data::numbered(whole, 1), to(whole);
  Request* send = a().send(from, 1);
  Request* receive = b().receive(to);
  step_until(b(), [&] { return receive->is_done(); });
  to.expect(whole, 1);
  EXPECT_FALSE(send->is_done());
  // What it was told comes late, and together.
  settle();
  EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
  finish(receive);
}

TEST_F(ProtoTransfers, a_receiver_gives_its_sender_time_before_it_copies_and_again_after_each_piece) {
  const Data from = Data::numbered(whole, 1), to(whole);
  Request* send = a().send(from, 1);
  Request* receive = b().receive(to);
  b().step();  // matches, and looks for the first time
  const auto claimed = [&] { return static_cast<Receiving*>(transfer_of(*receive))->claims.copy->claimed.load() & shm::SharedCopy::bytes_mask; };
  ASSERT_EQ(strategy_of(receive), Strategy::both_copy);
  EXPECT_EQ(claimed(), 0u);
  let_patience_end();
  a().step();  // takes the word, and pushes pieces until the ring is full
  ASSERT_EQ(strategy_of(send), Strategy::both_copy);
  const std::uint64_t of_sender = claimed();
  EXPECT_GT(of_sender, 0u);
  b().step();  // a piece arrives: the sender is there, whatever time it was before
  EXPECT_EQ(claimed(), of_sender);
  run({send, receive});
  to.expect(whole, 1);
  finish(send);
  finish(receive);
}

TEST_F(ProtoTransfers, a_sender_whose_receiver_is_busy_elsewhere_writes_into_its_buffer) {
  const Data from = Data::numbered(2 * whole, 1), to(2 * whole);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  b().step();
  ASSERT_EQ(strategy_of(receive), Strategy::both_copy);
  step_until(a(), [&] { return send->is_done(); });  // but for the ring's length nothing went through the ring
  EXPECT_EQ(std::memcmp(to.base() + 2 * whole - 1000, from.base() + 2 * whole - 1000, 1000), 0);
  EXPECT_FALSE(receive->is_done());
  settle();
  to.expect(2 * whole, 1);
  finish(send);
  finish(receive);
}

TEST_F(ProtoTransfers, what_the_sender_has_written_is_announced_when_the_ring_has_room_again) {
  const Data from = Data::numbered(whole, 1), to(whole);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  b().step();
  const int n = c().fill(1, 9);
  a().step();
  let_patience_end();
  for (int i = 0; i < 20; ++i) a().step(), let_patience_end();
  to.expect(whole, 1);  // all of it is there, and nobody knows
  EXPECT_FALSE(send->is_done());
  EXPECT_FALSE(receive->is_done());
  const auto& sending = *static_cast<Sending*>(transfer_of(*send));
  EXPECT_EQ(sending.unannounced, whole);
  EXPECT_EQ(sending.claims.copy->claimed.load() & shm::SharedCopy::bytes_mask, whole) << "it goes on claiming, into the stamp";
  run({send, receive});
  finish(send);
  finish(receive);
  for (int i = 0; i < n; ++i) finish(b().receive(Data(0), 2, 9));
}

TEST_F(ProtoTransfers, a_receiver_that_is_through_while_a_piece_of_the_sender_is_on_its_way_waits_for_it) {
  const Data from = Data::numbered(whole, 1), to(whole);
  Request* receive = b().receive(to);
  Request* send = a().send(from, 1);
  b().step();
  a().step();  // as many pieces as the ring takes; one of them is claimed and not all out
  ASSERT_EQ(strategy_of(send), Strategy::both_copy);
  const auto& sending = *static_cast<Sending*>(transfer_of(*send));
  ASSERT_LT(sending.at, sending.end);
  const auto& receiving = *static_cast<Receiving*>(transfer_of(*receive));
  for (int looks = 0; receiving.link.next && looks < 1000; ++looks) b().move(), let_patience_end();
  EXPECT_EQ(receiving.link.next, nullptr);  // nothing left to claim
  EXPECT_TRUE(receiving.said_finished);
  EXPECT_FALSE(receive->is_done());
  EXPECT_LT(receiving.arrived, whole);
  a().step();  // hears it, with its own piece not delivered
  run({send, receive});
  to.expect(whole, 1);
  finish(send);
  finish(receive);
}

TEST_F(ProtoTransfers, a_late_look_of_the_receiver_does_not_claim_from_the_senders_next_message) {
  const Data first = Data::numbered(128 << 10, 1), to(128 << 10), second = Data::numbered(whole, 2), to_second(whole);
  Request* receive = b().receive(to, 0, 1);
  Request* send = a().send(first, 1, 1);
  b().step();
  step_until(a(), [&] { return send->is_done(); });  // all in the ring, and the receiver has not looked
  finish(send);
  Request* next = a().send(second, 1, 2);  // gets the counter that the first one had
  const auto& receiving = *static_cast<Receiving*>(transfer_of(*receive));
  const auto& sending = *static_cast<Sending*>(transfer_of(*next));
  ASSERT_EQ(sending.claims.copy, a().state().free_copies ? shm::shared_copies(shm::region.base, 0) + sending.own_claims : nullptr);
  ASSERT_NE(sending.claims.stamp, receiving.claims.stamp);
  const std::uint64_t before = sending.claims.copy->claimed.load();
  for (int i = 0; i < 3; ++i) b().move(), let_patience_end();
  EXPECT_EQ(sending.claims.copy->claimed.load(), before);
  Request* last = b().receive(to_second, 0, 2);
  run({receive, next, last});
  to.expect(128 << 10, 1);
  to_second.expect(whole, 2);
  for (Request* request : {receive, next, last}) finish(request);
}

TEST_F(ProtoTransfers, a_sender_has_64_counters_and_gets_along_without) {
  std::vector<Data> from, to;
  std::vector<Request*> requests;
  for (int i = 0; i < 70; ++i) from.push_back(Data::numbered(20'000, i)), to.emplace_back(20'000);
  for (int i = 0; i < 70; ++i) requests.push_back(a().send(from[static_cast<std::size_t>(i)], 1, i));
  EXPECT_EQ(a().state().free_copies, 0u);
  while (b().step()) {}
  for (int i = 69; i >= 0; --i) {
    requests.push_back(b().receive(to[static_cast<std::size_t>(i)], 0, i));
    EXPECT_EQ(strategy_of(requests.back()), i < 64 ? Strategy::both_copy : Strategy::single_copy);
  }
  run_until([&] { return std::ranges::all_of(requests, [](Request* request) { return request->is_done(); }); });
  for (int i = 0; i < 70; ++i) to[static_cast<std::size_t>(i)].expect(20'000, i);
  for (Request* request : requests) finish(request);
}

// --- streams, and turns ---

TEST_F(ProtoTransfers, two_streams_of_one_sender_take_turns) {
  refuse_single_copy();
  const Data one = Data::numbered(1 << 20, 1), two = Data::numbered(1 << 20, 2), to_one(1 << 20), to_two(1 << 20);
  Request* requests[] = {b().receive(to_one, 0, 1), b().receive(to_two, 0, 2), a().send(one, 1, 1), a().send(two, 1, 2)};
  const auto arrived = [&](int i) { return transfer_of(*requests[i]) ? static_cast<Receiving*>(transfer_of(*requests[i]))->arrived : 1 << 20; };
  b().step();
  for (int i = 0; i < 2; ++i) {
    a().step();
    b().step();
  }
  EXPECT_GT(arrived(0), 0u);
  EXPECT_GT(arrived(1), 0u);
  EXPECT_LT(arrived(0), 1u << 20);
  EXPECT_LT(arrived(1), 1u << 20);
  run({requests[0], requests[1], requests[2], requests[3]});
  to_one.expect(1 << 20, 1);
  to_two.expect(1 << 20, 2);
  for (Request* request : requests) finish(request);
}

TEST_F(ProtoTransfers, a_stream_leaves_room_in_the_ring_for_what_others_have_to_say) {
  refuse_single_copy();
  const Data from = Data::numbered(1 << 20, 1), to(1 << 20);
  Request* receive = b().receive(to, 0);
  Request* send = a().send(from, 1);
  b().step();
  while (a().step()) {}
  EXPECT_FALSE(send->is_done());
  EXPECT_GT(c().fill(1, 3), 100);  // a thousand lines of which the stream took none
  run({send, receive});
  to.expect(1 << 20, 1);
  finish(send);
  finish(receive);
  while (b().vci().matcher.unexpected()) finish(b().receive(Data(0), 2));
}

TEST_F(ProtoTransfers, a_receiver_copies_a_bounded_piece_at_each_step) {
  const Data from = Data::numbered(3 << 20, 1, true), to(3 << 20, true);
  const Data plain = Data::numbered(3 << 20, 1);
  Request* receive = b().receive(to);
  Request* send = a().send(plain, 1);
  b().step();
  ASSERT_EQ(strategy_of(receive), Strategy::single_copy);
  std::uint64_t before = static_cast<Receiving*>(transfer_of(*receive))->arrived;
  EXPECT_LE(before, 256u << 10);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(b().step());
    const std::uint64_t now = static_cast<Receiving*>(transfer_of(*receive))->arrived;
    EXPECT_EQ(now - before, 256u << 10);
    before = now;
  }
  run({send, receive});
  to.expect(3 << 20, 1);
  finish(send);
  finish(receive);
}

// --- the test plays the receiver ---

TEST_F(ProtoTransfers, the_announcement_says_what_the_sender_offers) {
  const Data plain = Data::numbered(9'000, 1), gaps = Data::numbered(9'000, 1, true);
  Request* sends[] = {a().send(plain, 2, 11), a().send(gaps, 2, 12)};
  const auto first = *c().take(), second = *c().take();
  EXPECT_EQ(first.head.kind, PointToPoint::request);
  EXPECT_EQ(first.head.tag, 11);
  const auto offer = first.as<RendezvousRequest>();
  EXPECT_EQ(offer.bytes, 9'000u);
  EXPECT_EQ(offer.address, reinterpret_cast<std::uint64_t>(plain.base()));
  EXPECT_EQ(offer.heap_offset, 0u);
  EXPECT_EQ(offer.readable, 0);
  EXPECT_NE(offer.claims, 0);
  EXPECT_EQ(offer.process, (ProcessName{1, 0}));
  const auto other = second.as<RendezvousRequest>();
  EXPECT_EQ(other.address, 0u);  // not one block: only the sender can pack it
  EXPECT_EQ(other.claims, 0);
  // Both are asked for, the second one first, and one of them in part.
  c().push(0, PointToPoint::data_request, DataRequest{other.sender, 41, 9'000, lane_at(2), {}});
  c().push(0, PointToPoint::data_request, DataRequest{offer.sender, 42, 3'000, lane_at(2), {}});
  std::vector<std::byte> got[2];
  step_until(a(), [&] { return sends[0]->is_done() && sends[1]->is_done(); });
  while (const auto record = c().take()) {
    ASSERT_EQ(record->head.kind, PointToPoint::data);
    auto& to = got[record->as<StreamData>().receiver == 42];
    to.insert(to.end(), record->payload.begin() + sizeof(StreamData), record->payload.end());
  }
  EXPECT_TRUE(got[0] == Data::pattern(9'000, 1));
  EXPECT_TRUE(got[1] == std::vector<std::byte>(plain.base(), plain.base() + 3'000));
  for (Request* send : sends) finish(send);
}

TEST_F(ProtoTransfers, a_sender_counts_every_byte_of_its_pieces_once) {
  const Data from = Data::numbered(whole, 1);
  Request* send = a().send(from, 2);
  const auto offer = c().take()->as<RendezvousRequest>();
  Data to(whole);
  c().push(0, PointToPoint::clear_to_send, ClearToSend{offer.sender, 43, reinterpret_cast<std::uint64_t>(to.base()), whole, 64 << 10, lane_at(2), 0});
  // The receiver takes the second piece: the counter stands behind the first one when it looks.
  shm::SharedCopy& copy = shm::shared_copies(shm::region.base, offer.claims_vci)[offer.claims - 1];
  EXPECT_EQ(copy.claimed.load() >> shm::SharedCopy::stamp_at, offer.claims_stamp);
  a().step();
  std::vector<bool> seen(whole);
  std::uint64_t bytes = 0;
  const std::uint64_t at = copy.claimed.fetch_add(64 << 10) & shm::SharedCopy::bytes_mask;
  ASSERT_LT(at, whole);
  const std::uint64_t mine = std::min<std::uint64_t>(64 << 10, whole - at);
  const auto place = [&](std::uint64_t from_byte, std::uint64_t n) {
    for (std::uint64_t i = from_byte; i < from_byte + n; ++i) EXPECT_FALSE(seen[i]) << i, seen[i] = true;
    bytes += n;
  };
  place(at, mine);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::uint64_t written = 0;
  while (bytes + written < whole && std::chrono::steady_clock::now() < end) {
    a().step();
    while (const auto record = c().take()) {
      if (record->head.kind == PointToPoint::placed) {
        written += record->as<Placed>().bytes;
        continue;
      }
      ASSERT_EQ(record->head.kind, PointToPoint::piece);
      const auto piece = record->as<PieceData>();
      EXPECT_EQ(piece.receiver, 43u);
      EXPECT_EQ(std::memcmp(record->payload.data() + sizeof piece, from.base() + piece.at, record->payload.size() - sizeof piece), 0);
      place(piece.at, record->payload.size() - sizeof piece);
    }
  }
  EXPECT_EQ(bytes + written, whole);
  EXPECT_FALSE(send->is_done());  // the piece that the receiver has claimed is not copied as far as anybody knows
  c().push(0, PointToPoint::finished, offer.sender);
  a().step();
  EXPECT_EQ(finish(send).error_class, MPI_SUCCESS);
}

}  // namespace
}  // namespace heddle::proto
