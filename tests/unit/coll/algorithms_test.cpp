// Every algorithm on 1 to 17 ranks in simulated, adversarial orders of events.
#include <cstdint>
#include <cstring>
#include <numeric>

#include "core/datatype_envelope.hpp"
#include "sys/params.hpp"
#include "unit/coll/simulation.hpp"

namespace heddle::coll::testing {
namespace {

using Word = std::uint32_t;
using Words = std::vector<Word>;

Datatype& word_type() { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_UINT32_T)); }

/// Two words with a gap between them and another at the end.
Datatype& gappy_type() {
  static Datatype* type = [] {
    Datatype *vector = nullptr, *resized = nullptr;
    EXPECT_EQ(make_vector(2, 1, 2, word_type(), false, vector), MPI_SUCCESS);
    EXPECT_EQ(make_resized(*vector, 0, 16, false, resized), MPI_SUCCESS);
    EXPECT_EQ(commit(*resized), MPI_SUCCESS);
    return resized;
  }();
  return *type;
}

/// Room for `words` 4-byte words, described by a plain or (for even numbers of words) by a gappy type.
class Buffer {
 public:
  Buffer(MPI_Count words, bool gappy)
      : type_(gappy && words % 2 == 0 ? &gappy_type() : &word_type()),
        per_element_(type_ == &word_type() ? 1 : 2),
        count_(words / per_element_),
        storage_(static_cast<std::size_t>(count_ * type_->extent + 32), fill) {}
  void* data() { return storage_.data() + 16; }
  Datatype& type() { return *type_; }
  MPI_Count count() const { return count_; }
  /// Words as elements of the type, for counts and displacements.
  MPI_Count elements(MPI_Count words) const { return words / per_element_; }
  bool is_whole(MPI_Count words) const { return words % per_element_ == 0; }

  void put(const Words& words) {
    copy_typed(words.data(), static_cast<MPI_Count>(words.size()), word_type(), data(), count_, *type_);
  }
  Words get() {
    Words words(static_cast<std::size_t>(count_ * per_element_));
    copy_typed(data(), count_, *type_, words.data(), static_cast<MPI_Count>(words.size()), word_type());
    return words;
  }
  /// True if nothing was written outside the data.
  bool is_clean() {
    std::vector<std::byte> saved = storage_;
    Words mask(static_cast<std::size_t>(count_ * per_element_));
    if (!mask.empty()) std::memset(mask.data(), static_cast<int>(fill), mask.size() * sizeof(Word));
    put(mask);
    const bool clean = std::all_of(storage_.begin(), storage_.end(), [](std::byte b) { return b == fill; });
    storage_ = saved;
    return clean;
  }

 private:
  static constexpr std::byte fill{0xee};
  Datatype* type_;
  MPI_Count per_element_, count_;
  std::vector<std::byte> storage_;
};

Word word(int from, int to, MPI_Count i) { return static_cast<Word>(from * 1000003 + to * 10007 + i + 1); }
Words block(int from, int to, MPI_Count words) {
  Words w(static_cast<std::size_t>(words));
  for (MPI_Count i = 0; i < words; ++i) w[static_cast<std::size_t>(i)] = word(from, to, i);
  return w;
}
void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Changes a parameter for one scope.
class With {
 public:
  With(const char* name, std::int64_t value) {
    for (const sys::Param* p = sys::Param::first(); p; p = p->next())
      if (std::string(p->name()) == name) param_ = const_cast<sys::Param*>(p);
    if (!param_) throw std::runtime_error(std::string("no parameter ") + name);
    old_ = param_->value();
    param_->set(value);
  }
  ~With() { param_->set(old_); }

 private:
  sys::Param* param_ = nullptr;
  std::int64_t old_ = 0;
};

std::vector<int> roots(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  if (n > 9) return {0, 1, n / 2, n - 1};
  return all;
}

const std::vector<MPI_Count> lengths = {0, 1, 2, 6, 40, 301};

class Collective : public ::testing::TestWithParam<int> {
 protected:
  int n() const { return GetParam(); }
  /// Runs with buffered and with synchronous sends.
  template <typename Make>
  void both(Make&& make) {
    for (const bool late : {false, true}) {
      Simulation simulation(n(), ++seed_, late);
      make(simulation, late);
      if (HasFatalFailure()) return;
    }
  }

 private:
  unsigned seed_ = 0;
};

std::vector<Buffer> buffers(int n, MPI_Count words, bool all_gappy = false) {
  std::vector<Buffer> made;
  for (int r = 0; r < n; ++r) made.emplace_back(words, all_gappy || r % 2 == 1);
  return made;
}

// --- data movement -----------------------------------------------------------------------------------------------

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

// --- reductions --------------------------------------------------------------------------------------------------

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
