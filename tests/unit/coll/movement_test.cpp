// Every algorithm that moves data, on 1 to 17 ranks in simulated, adversarial orders of events.
#include "unit/coll/collective.hpp"

namespace heddle::coll::testing {
namespace {

TEST_P(Collective, barrier_ends_only_when_all_ranks_came) {
  // Leaves the last rank out: then nobody may finish; that is: every rank depends on every other.
  for (int absent = 0; absent < n(); ++absent) {
    Simulation simulation(n(), 1, false);
    const std::string problem = simulation.run([&](Steps& s, int rank) {
      if (rank != absent) barrier(s);
    });
    int unfinished = 0;
    for (int r = 0; r < n(); ++r)
      if (problem.find(" rank " + std::to_string(r) + " ") != std::string::npos) ++unfinished;
    EXPECT_EQ(unfinished, n() - 1) << "without rank " << absent << ": " << problem;
  }
  both([&](Simulation& simulation, bool) { ASSERT_EQ(simulation.run([](Steps& s, int) { barrier(s); }), ""); });
}

void check_bcast(int n, Simulation& simulation, int root, MPI_Count words) {
  auto data = buffers(n, words);
  const Words expected = block(root, 0, words);
  data[static_cast<std::size_t>(root)].put(expected);
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Buffer& b = data[static_cast<std::size_t>(rank)];
    bcast(s, b.data(), b.count(), b.type(), root);
  }),
            "")
      << "root " << root << ", words " << words;
  for (Buffer& b : data) {
    ASSERT_EQ(b.get(), expected) << "root " << root << ", words " << words;
    ASSERT_TRUE(b.is_clean());
  }
}

TEST_P(Collective, bcast_gives_every_rank_the_roots_data_down_a_tree) {
  for (const int root : roots(n()))
    for (const MPI_Count words : lengths) both([&](Simulation& s, bool) { check_bcast(n(), s, root, words); });
}

TEST_P(Collective, bcast_gives_every_rank_the_roots_data_along_a_chain) {
  const With limit("HEDDLE_BCAST_TREE_LIMIT", 0), segment("HEDDLE_BCAST_SEGMENT", 16);
  for (const int root : roots(n()))
    for (const MPI_Count words : lengths) both([&](Simulation& s, bool) { check_bcast(n(), s, root, words); });
}

TEST_P(Collective, bcast_gives_every_rank_the_roots_data_by_scatter_and_ring) {
  const With limit("HEDDLE_BCAST_TREE_LIMIT", 0), segment("HEDDLE_BCAST_SEGMENT", 1 << 20);
  for (const int root : roots(n()))
    for (const MPI_Count words : lengths) both([&](Simulation& s, bool) { check_bcast(n(), s, root, words); });
}

void check_gather(int n, Simulation& simulation, int root, MPI_Count words, bool at_place) {
  auto send = buffers(n, words);
  Buffer recv(words * n, words % 2 == 0);
  Words expected, initial(static_cast<std::size_t>(words * n));
  for (int r = 0; r < n; ++r) {
    send[static_cast<std::size_t>(r)].put(block(r, 0, words));
    append(expected, block(r, 0, words));
  }
  std::copy_n(expected.begin() + root * words, words, initial.begin() + root * words);
  if (at_place) recv.put(initial);
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Buffer& b = send[static_cast<std::size_t>(rank)];
    const bool at_root = rank == root;
    const void* from = at_root && at_place ? MPI_IN_PLACE : b.data();
    gather(s, from, b.count(), &b.type(), at_root ? recv.data() : nullptr, recv.elements(words),
           at_root ? &recv.type() : nullptr, root);
  }),
            "")
      << "root " << root << ", words " << words;
  ASSERT_EQ(recv.get(), expected) << "root " << root << ", words " << words;
  ASSERT_TRUE(recv.is_clean());
}

TEST_P(Collective, gather_puts_blocks_in_rank_order) {
  for (const std::int64_t tree : {0, 1 << 20}) {
    const With limit("HEDDLE_GATHER_TREE_LIMIT", tree);
    for (const int root : roots(n()))
      for (const MPI_Count words : lengths)
        both([&](Simulation& s, bool late) { check_gather(n(), s, root, words, late); });
  }
}

void check_scatter(int n, Simulation& simulation, int root, MPI_Count words, bool at_place) {
  Buffer send(words * n, words % 2 == 0);
  auto recv = buffers(n, words);
  Words all;
  for (int r = 0; r < n; ++r) append(all, block(r, 1, words));
  send.put(all);
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Buffer& b = recv[static_cast<std::size_t>(rank)];
    const bool at_root = rank == root;
    void* to = at_root && at_place ? MPI_IN_PLACE : b.data();
    scatter(s, at_root ? send.data() : nullptr, send.elements(words), at_root ? &send.type() : nullptr, to, b.count(),
            &b.type(), root);
  }),
            "")
      << "root " << root << ", words " << words;
  for (int r = 0; r < n; ++r) {
    if (r == root && at_place) continue;
    ASSERT_EQ(recv[static_cast<std::size_t>(r)].get(), block(r, 1, words)) << "root " << root << " rank " << r;
    ASSERT_TRUE(recv[static_cast<std::size_t>(r)].is_clean());
  }
  ASSERT_EQ(send.get(), all);
}

TEST_P(Collective, scatter_gives_each_rank_its_block) {
  for (const std::int64_t tree : {0, 1 << 20}) {
    const With limit("HEDDLE_GATHER_TREE_LIMIT", tree);
    for (const int root : roots(n()))
      for (const MPI_Count words : lengths)
        both([&](Simulation& s, bool late) { check_scatter(n(), s, root, words, late); });
  }
}

/// Blocks of different even lengths (some empty), with gaps between, in descending order.
struct Uneven {
  explicit Uneven(int n, MPI_Count step = 2) {
    MPI_Count at = 0;
    std::vector<MPI_Count> places;
    for (int r = 0; r < n; ++r) {
      counts.push_back((r * 5 + 3) % 4 * step);
      places.push_back(at);
      at += counts.back() + 2;
    }
    for (int r = 0; r < n; ++r)
      displacements.push_back(at - places[static_cast<std::size_t>(r)] - counts[static_cast<std::size_t>(r)]);
    room = at + 2;
  }
  std::vector<MPI_Count> counts, displacements;
  MPI_Count room;
};

TEST_P(Collective, gatherv_and_scatterv_serve_uneven_blocks) {
  const Uneven layout(n());
  for (const int root : roots(n())) {
    both([&](Simulation& simulation, bool late) {
      Words all(static_cast<std::size_t>(layout.room), 7), packed_expected = all;
      std::vector<Buffer> send;
      for (int r = 0; r < n(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        send.emplace_back(layout.counts[i], r % 2 == 1);
        send.back().put(block(r, 2, layout.counts[i]));
        const Words b = block(r, 2, layout.counts[i]);
        std::copy(b.begin(), b.end(), packed_expected.begin() + layout.displacements[i]);
      }
      Buffer recv(layout.room, false);
      Words initial = all;
      if (late) {
        const auto i = static_cast<std::size_t>(root);
        const Words own = block(root, 2, layout.counts[i]);
        std::copy(own.begin(), own.end(), initial.begin() + layout.displacements[i]);
      }
      recv.put(initial);
      const CountArray counts(layout.counts.data()), displacements(layout.displacements.data());
      ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
        Buffer& b = send[static_cast<std::size_t>(rank)];
        gatherv(s, rank == root && late ? MPI_IN_PLACE : b.data(), b.count(), &b.type(), recv.data(), counts,
                displacements, &recv.type(), root);
      }),
                "");
      ASSERT_EQ(recv.get(), packed_expected);

      std::vector<Buffer> back;
      for (int r = 0; r < n(); ++r) back.emplace_back(layout.counts[static_cast<std::size_t>(r)], r % 2 == 0);
      ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
        Buffer& b = back[static_cast<std::size_t>(rank)];
        scatterv(s, recv.data(), counts, displacements, &recv.type(), b.data(), b.count(), &b.type(), root);
      }),
                "");
      for (int r = 0; r < n(); ++r) {
        ASSERT_EQ(back[static_cast<std::size_t>(r)].get(), block(r, 2, layout.counts[static_cast<std::size_t>(r)]));
        ASSERT_TRUE(back[static_cast<std::size_t>(r)].is_clean());
      }
    });
  }
}

void check_allgather(int n, Simulation& simulation, MPI_Count words, bool at_place) {
  auto send = buffers(n, words);
  std::vector<Buffer> recv;
  Words expected;
  for (int r = 0; r < n; ++r) append(expected, block(r, 3, words));
  for (int r = 0; r < n; ++r) {
    send[static_cast<std::size_t>(r)].put(block(r, 3, words));
    recv.emplace_back(words * n, words % 2 == 0 && r % 3 == 0);
    if (at_place) {
      Words own(static_cast<std::size_t>(words * n), 9);
      std::copy_n(expected.begin() + r * words, words, own.begin() + r * words);
      recv.back().put(own);
    }
  }
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Buffer &from = send[static_cast<std::size_t>(rank)], &to = recv[static_cast<std::size_t>(rank)];
    allgather(s, at_place ? MPI_IN_PLACE : from.data(), from.count(), &from.type(), to.data(), to.elements(words),
              to.type());
  }),
            "")
      << "words " << words;
  for (Buffer& b : recv) {
    ASSERT_EQ(b.get(), expected) << "words " << words;
    ASSERT_TRUE(b.is_clean());
  }
}

TEST_P(Collective, allgather_gives_all_blocks_to_all) {
  for (const std::int64_t ring : {1, 1 << 20}) {
    const With limit("HEDDLE_ALLGATHER_RING_LIMIT", ring);
    for (const MPI_Count words : lengths) both([&](Simulation& s, bool late) { check_allgather(n(), s, words, late); });
  }
}

TEST_P(Collective, allgatherv_gives_all_uneven_blocks_to_all) {
  const Uneven layout(n());
  for (const std::int64_t ring : {1, 1 << 20}) {
    const With limit("HEDDLE_ALLGATHER_RING_LIMIT", ring);
    both([&](Simulation& simulation, bool late) {
      std::vector<Buffer> send, recv;
      Words expected(static_cast<std::size_t>(layout.room), 7);
      for (int r = 0; r < n(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        const Words own = block(r, 4, layout.counts[i]);
        std::copy(own.begin(), own.end(), expected.begin() + layout.displacements[i]);
        send.emplace_back(layout.counts[i], r % 2 == 0);
        send.back().put(own);
        recv.emplace_back(layout.room, false);
        Words initial(static_cast<std::size_t>(layout.room), 7);
        if (late) std::copy(own.begin(), own.end(), initial.begin() + layout.displacements[i]);
        recv.back().put(initial);
      }
      ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
        Buffer &from = send[static_cast<std::size_t>(rank)], &to = recv[static_cast<std::size_t>(rank)];
        allgatherv(s, late ? MPI_IN_PLACE : from.data(), from.count(), &from.type(), to.data(),
                   CountArray(layout.counts.data()), CountArray(layout.displacements.data()), to.type());
      }),
                "");
      for (Buffer& b : recv) ASSERT_EQ(b.get(), expected);
    });
  }
}

void check_alltoall(int n, Simulation& simulation, MPI_Count words, bool at_place) {
  std::vector<Buffer> send, recv;
  std::vector<Words> expected;
  for (int r = 0; r < n; ++r) {
    Words out, in;
    for (int q = 0; q < n; ++q) append(out, block(r, q, words)), append(in, block(q, r, words));
    send.emplace_back(words * n, words % 2 == 0 && r % 2 == 1);
    recv.emplace_back(words * n, words % 2 == 0 && r % 3 == 0);
    send.back().put(out);
    if (at_place) recv.back().put(out);
    expected.push_back(in);
  }
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Buffer &from = send[static_cast<std::size_t>(rank)], &to = recv[static_cast<std::size_t>(rank)];
    alltoall(s, at_place ? MPI_IN_PLACE : from.data(), from.elements(words), &from.type(), to.data(),
             to.elements(words), to.type());
  }),
            "")
      << "words " << words;
  for (int r = 0; r < n; ++r) {
    ASSERT_EQ(recv[static_cast<std::size_t>(r)].get(), expected[static_cast<std::size_t>(r)]) << "words " << words;
    ASSERT_TRUE(recv[static_cast<std::size_t>(r)].is_clean());
  }
}

TEST_P(Collective, alltoall_sends_each_block_to_its_rank) {
  for (const std::int64_t bruck : {0, 1 << 20}) {
    const With bruck_limit("HEDDLE_ALLTOALL_BRUCK_LIMIT", bruck), pairs("HEDDLE_ALLTOALL_PAIRWISE_LIMIT", 1000);
    for (const MPI_Count words : lengths) {
      both([&](Simulation& s, bool) { check_alltoall(n(), s, words, false); });
      both([&](Simulation& s, bool) { check_alltoall(n(), s, words, true); });
    }
  }
}

/// Words that rank `from` sends to rank `to` in the tests of alltoallv: symmetric, for MPI_IN_PLACE; sometimes none.
MPI_Count pair_words(int from, int to) { return (from + to) % 3 * 2; }

void check_alltoallv(int n, Simulation& simulation, bool at_place, bool w) {
  struct Side {
    std::vector<MPI_Count> counts, displacements;
    std::vector<MPI_Datatype> types;
  };
  std::vector<Side> sides(static_cast<std::size_t>(n));
  std::vector<Words> out(static_cast<std::size_t>(n)), expected(static_cast<std::size_t>(n)),
      in(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    Side& side = sides[static_cast<std::size_t>(r)];
    MPI_Count at = 1;
    Words& words = out[static_cast<std::size_t>(r)];
    Words& wanted = expected[static_cast<std::size_t>(r)];
    words.push_back(5), wanted.push_back(5);
    for (int q = 0; q < n; ++q) {
      side.counts.push_back(pair_words(r, q));
      side.displacements.push_back(w ? at * 4 : at);
      side.types.push_back(MPI_UINT32_T);
      append(words, block(r, q, pair_words(r, q)));
      append(wanted, block(q, r, pair_words(q, r)));
      words.push_back(5), wanted.push_back(5);
      at += pair_words(r, q) + 1;
    }
    in[static_cast<std::size_t>(r)] = at_place ? words : Words(words.size(), 5);
  }
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    const auto i = static_cast<std::size_t>(rank);
    const Side& side = sides[i];
    const CountArray counts(side.counts.data()), displacements(side.displacements.data());
    Blocks send{out[i].data(), counts, displacements, w ? nullptr : &word_type(), w ? side.types.data() : nullptr};
    Blocks recv = send;
    recv.buffer = in[i].data();
    if (at_place) send = Blocks{MPI_IN_PLACE, {}, {}, nullptr, nullptr};
    alltoallv(s, send, recv);
  }),
            "");
  for (int r = 0; r < n; ++r) ASSERT_EQ(in[static_cast<std::size_t>(r)], expected[static_cast<std::size_t>(r)]);
}

TEST_P(Collective, alltoallv_and_alltoallw_send_each_block_to_its_rank) {
  for (const bool at_place : {false, true})
    for (const bool w : {false, true}) both([&](Simulation& s, bool) { check_alltoallv(n(), s, at_place, w); });
}

TEST_P(Collective, exchanges_with_many_ranks_keep_few_messages_outstanding) {
  Simulation simulation(n(), 1, true);
  check_alltoall(n(), simulation, 301, false);
  EXPECT_LE(simulation.most_outstanding(), window);
}

INSTANTIATE_TEST_SUITE_P(ranks, Collective, ::testing::Range(1, 18));

}  // namespace
}  // namespace heddle::coll::testing
