// Every algorithm that reduces, on 1 to 17 ranks in simulated, adversarial orders of events.
#include "unit/coll/collective.hpp"

namespace heddle::coll::testing {
namespace {

/// x → a*x + b over the integers mod 2^32, as one 64-bit word: composition is associative and does not commute.
std::uint64_t after(std::uint64_t first, std::uint64_t second) {
  const auto a1 = static_cast<std::uint32_t>(first >> 32), b1 = static_cast<std::uint32_t>(first);
  const auto a2 = static_cast<std::uint32_t>(second >> 32), b2 = static_cast<std::uint32_t>(second);
  return std::uint64_t{a2 * a1} << 32 | static_cast<std::uint32_t>(a2 * b1 + b2);
}
void compose(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* from = static_cast<const std::uint64_t*>(in);
  auto* to = static_cast<std::uint64_t*>(inout);
  for (int i = 0; i < *length; ++i) to[i] = after(from[i], to[i]);
}

Datatype& long_type() { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_UINT64_T)); }
using Longs = std::vector<std::uint64_t>;

Longs values_of(int rank, MPI_Count count) {
  std::minstd_rand random(static_cast<unsigned>(rank + 1));
  Longs v(static_cast<std::size_t>(count));
  for (auto& x : v) x = std::uint64_t{random() | 1u} << 32 | random();
  return v;
}

/// The values of ranks [0, last] combined one by one.
Longs combined(int last, MPI_Count count, bool commutes) {
  Longs result = values_of(0, count);
  for (int r = 1; r <= last; ++r) {
    const Longs next = values_of(r, count);
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = commutes ? result[i] + next[i] : after(result[i], next[i]);
  }
  return result;
}

Op& composition() {
  static Op op;
  op.commutative = false;
  op.builtin = false;
  op.references.store(1000);
  op.user = compose;
  return op;
}
Op& sum() { return *builtin_op(reinterpret_cast<std::uintptr_t>(MPI_SUM)); }

const std::vector<MPI_Count> vector_lengths = {0, 1, 3, 16, 17, 40, 101};

/// One rank's buffers of a reduction, with canaries; in place: the values are in the receive buffer.
struct Operands {
  Operands(int rank, MPI_Count count, MPI_Count result_count, bool at_place)
      : send(values_of(rank, count)),
        recv(static_cast<std::size_t>(std::max(count, result_count) + 2), 0xabab),
        at_place(at_place) {
    if (at_place) std::copy(send.begin(), send.end(), recv.begin() + 1);
    original = send;
  }
  const void* from() const { return at_place ? MPI_IN_PLACE : send.data(); }
  void* to() { return recv.data() + 1; }
  Longs result(MPI_Count first, MPI_Count count) const {
    return {recv.begin() + 1 + first, recv.begin() + 1 + first + count};
  }
  bool is_clean() const { return recv.front() == 0xabab && recv.back() == 0xabab && send == original; }
  Longs send, recv, original;
  bool at_place;
};

using ReduceFunction = void (*)(Steps&, const void*, void*, MPI_Count, Datatype&, const Op&, int) noexcept;
void check_reduce(int n, Simulation& simulation, ReduceFunction function, int root, MPI_Count count, const Op& op,
                  bool at_place) {
  std::vector<Operands> operands;
  for (int r = 0; r < n; ++r) operands.emplace_back(r, count, count, at_place && r == root);
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Operands& o = operands[static_cast<std::size_t>(rank)];
    function(s, o.from(), rank == root ? o.to() : nullptr, count, long_type(), op, root);
  }),
            "")
      << "root " << root << ", count " << count;
  ASSERT_EQ(operands[static_cast<std::size_t>(root)].result(0, count), combined(n - 1, count, op.commutative))
      << "root " << root << ", count " << count;
  for (const Operands& o : operands) ASSERT_TRUE(o.is_clean());
}

TEST_P(Collective, reduce_combines_in_rank_order_at_any_root) {
  for (const int root : roots(n())) {
    for (const MPI_Count count : vector_lengths) {
      for (const Op* op : {&sum(), &composition()}) {
        both([&](Simulation& s, bool late) { check_reduce(n(), s, reduce, root, count, *op, late); });
        if (n() > 1 && count > 0)
          both([&](Simulation& s, bool late) { check_reduce(n(), s, reduce_binomial, root, count, *op, late); });
        if (n() > 1 && count >= floor_power_of_two(n()))
          both([&](Simulation& s, bool late) { check_reduce(n(), s, reduce_halving, root, count, *op, late); });
      }
    }
  }
}

using AllreduceFunction = void (*)(Steps&, const void*, void*, MPI_Count, Datatype&, const Op&) noexcept;
void check_allreduce(int n, Simulation& simulation, AllreduceFunction function, MPI_Count count, const Op& op,
                     bool at_place) {
  std::vector<Operands> operands;
  for (int r = 0; r < n; ++r) operands.emplace_back(r, count, count, at_place);
  ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
    Operands& o = operands[static_cast<std::size_t>(rank)];
    function(s, o.from(), o.to(), count, long_type(), op);
  }),
            "")
      << "count " << count;
  const Longs expected = combined(n - 1, count, op.commutative);
  for (const Operands& o : operands) {
    ASSERT_EQ(o.result(0, count), expected) << "count " << count;
    ASSERT_TRUE(o.is_clean());
  }
}

TEST_P(Collective, allreduce_combines_in_rank_order_everywhere) {
  for (const MPI_Count count : vector_lengths) {
    for (const Op* op : {&sum(), &composition()}) {
      for (const bool at_place : {false, true}) {
        const auto check = [&](AllreduceFunction function) {
          both([&](Simulation& s, bool) { check_allreduce(n(), s, function, count, *op, at_place); });
        };
        check(allreduce);
        if (n() == 1 || count == 0) continue;
        check(allreduce_doubling);
        if (count >= floor_power_of_two(n())) check(allreduce_halving);
        if (count >= n() && op->commutative) check(allreduce_ring);
      }
    }
  }
}

TEST_P(Collective, reduce_scatter_gives_each_rank_its_share) {
  for (const std::int64_t halving : {0, 1 << 20}) {
    const With limit("HEDDLE_REDUCE_SCATTER_HALVING_LIMIT", halving);
    for (const MPI_Count each : {MPI_Count{0}, MPI_Count{1}, MPI_Count{7}}) {
      for (const Op* op : {&sum(), &composition()}) {
        for (const bool uneven : {false, true}) {
          std::vector<MPI_Count> counts, starts(1, 0);
          for (int r = 0; r < n(); ++r) {
            counts.push_back(uneven ? r * 3 % 4 * each : each);
            starts.push_back(starts.back() + counts.back());
          }
          const MPI_Count total = starts.back();
          const Longs expected = combined(n() - 1, total, op->commutative);
          both([&](Simulation& simulation, bool late) {
            std::vector<Operands> operands;
            for (int r = 0; r < n(); ++r) operands.emplace_back(r, total, total, late);
            ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
              Operands& o = operands[static_cast<std::size_t>(rank)];
              if (uneven)
                reduce_scatter(s, o.from(), o.to(), CountArray(counts.data()), long_type(), *op);
              else
                reduce_scatter_block(s, o.from(), o.to(), each, long_type(), *op);
            }),
                      "")
                << "each " << each << " uneven " << uneven;
            for (int r = 0; r < n(); ++r) {
              const auto i = static_cast<std::size_t>(r);
              ASSERT_EQ(operands[i].result(0, counts[i]),
                        Longs(expected.begin() + starts[i], expected.begin() + starts[i + 1]))
                  << "each " << each << " uneven " << uneven << " rank " << r;
              ASSERT_TRUE(operands[i].is_clean());
            }
          });
        }
      }
    }
  }
}

TEST_P(Collective, scan_and_exscan_combine_the_ranks_below) {
  for (const MPI_Count count : vector_lengths) {
    for (const Op* op : {&sum(), &composition()}) {
      for (const bool inclusive : {true, false}) {
        for (const bool at_place : {false, true}) {
          both([&](Simulation& simulation, bool) {
            std::vector<Operands> operands;
            for (int r = 0; r < n(); ++r) operands.emplace_back(r, count, count, at_place);
            ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
              Operands& o = operands[static_cast<std::size_t>(rank)];
              (inclusive ? scan : exscan)(s, o.from(), o.to(), count, long_type(), *op);
            }),
                      "");
            for (int r = inclusive ? 0 : 1; r < n(); ++r) {
              const Operands& o = operands[static_cast<std::size_t>(r)];
              ASSERT_EQ(o.result(0, count), combined(inclusive ? r : r - 1, count, op->commutative)) << "rank " << r;
              ASSERT_TRUE(o.is_clean());
            }
          });
        }
      }
    }
  }
}

TEST_P(Collective, a_recorded_schedule_can_run_again_with_new_data) {
  const MPI_Count count = 40;
  std::vector<Operands> operands;
  for (int r = 0; r < n(); ++r) operands.emplace_back(r, count, count, false);
  Simulation simulation(n(), 3, true);
  ASSERT_EQ(simulation.run(
                [&](Steps& s, int rank) {
                  Operands& o = operands[static_cast<std::size_t>(rank)];
                  allreduce_halving(s, o.from(), o.to(), n() > 1 ? count : 0, long_type(), composition());
                },
                3),
            "");
  if (n() > 1) {
    for (const Operands& o : operands) ASSERT_EQ(o.result(0, count), combined(n() - 1, count, false));
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, Collective, ::testing::Range(1, 18));

TEST(Reductions, floating_point_results_are_the_same_bits_on_all_ranks_and_in_any_order_of_events) {
  Datatype& type = *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_DOUBLE));
  constexpr MPI_Count count = 33;
  for (const AllreduceFunction function : {allreduce_doubling, allreduce_halving, allreduce_ring}) {
    for (const int n : {3, 5, 8, 13}) {
      std::vector<double> first;
      for (unsigned seed = 0; seed < 20; ++seed) {
        std::vector<std::vector<double>> send, recv;
        for (int r = 0; r < n; ++r) {
          std::minstd_rand random(static_cast<unsigned>(r + 17));
          std::vector<double> v(count);
          for (double& x : v) x = (static_cast<double>(random()) - 1e9) * 1e-7 * (r % 2 ? 1e8 : 1e-8);
          send.push_back(v);
          recv.emplace_back(count);
        }
        Simulation simulation(n, seed, seed % 2);
        ASSERT_EQ(simulation.run([&](Steps& s, int rank) {
          const auto i = static_cast<std::size_t>(rank);
          function(s, send[i].data(), recv[i].data(), count, type, sum());
        }),
                  "");
        if (first.empty()) first = recv[0];
        for (const auto& result : recv)
          ASSERT_EQ(std::memcmp(result.data(), first.data(), count * sizeof(double)), 0)
              << n << " ranks, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::coll::testing
