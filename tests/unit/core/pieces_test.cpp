// Walks through buffers side by side, against the lists of bytes that the types' definitions give.
#include "core/pieces.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/datatype_layout.hpp"
#include "datatype_model.hpp"

using namespace heddle;
using model::Both;
using model::Generator;
using std::int64_t;

namespace {

constexpr int64_t base = 1 << 20;  // addresses are numbers: nothing is read

/// The address of every packed byte, by the definition.
std::vector<int64_t> addresses(const model::Type& type, int64_t count, int64_t at) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i)
    for (const model::Entry& e : type.map)
      for (int64_t b = 0; b < basic_info(e.basic).size; ++b) all.push_back(at + i * type.extent() + e.at + b);
  return all;
}

template <int Sides>
void append(std::vector<int64_t> (&lists)[Sides], const Piece<Sides>& piece) {
  for (int s = 0; s < Sides; ++s)
    for (int64_t i = 0; i < piece.count; ++i)
      for (int64_t b = 0; b < piece.bytes; ++b) lists[s].push_back(piece.at[s] + i * piece.stride[s] + b);
}

/// Walks in hops of random length, sometimes starting anew from the position, and compares what every side got.
template <int Sides>
void walk_and_compare(Generator& random, const Buffer (&sides)[Sides], std::vector<int64_t> (&expected)[Sides], const std::string& what) {
  std::size_t shortest = expected[0].size();
  for (auto& list : expected) shortest = std::min(shortest, list.size());
  for (auto& list : expected) list.resize(shortest);

  const int64_t most = random.pick(0, 1) ? INT64_MAX : random.pick(1, 200);
  const bool blocks_only = random.pick(0, 1), restarts = random.pick(0, 1);
  std::vector<int64_t> got[Sides];
  int64_t position = 0;
  for (bool more = true; more;) {
    Pieces<Sides> pieces(sides, 0, position);
    ASSERT_EQ(pieces.total(), static_cast<int64_t>(shortest)) << what;
    Piece<Sides> piece;
    for (int hops = restarts ? static_cast<int>(random.pick(1, 3)) : INT_MAX; hops && more; --hops) {
      const int64_t limit = most == INT64_MAX ? most : random.pick(1, most);
      more = blocks_only ? pieces.next_block(piece, limit) : pieces.next(piece, limit);
      if (!more) break;
      ASSERT_GT(piece.bytes, 0) << what;
      ASSERT_GT(piece.count, 0) << what;
      ASSERT_LE(piece.total(), limit) << what;
      if (blocks_only) { ASSERT_EQ(piece.count, 1) << what; }
      append(got, piece);
      ASSERT_EQ(pieces.position(), static_cast<int64_t>(got[0].size())) << what;
    }
    position = pieces.position();
  }
  for (int s = 0; s < Sides; ++s) ASSERT_EQ(got[s], expected[s]) << what << " side " << s;
}

}  // namespace

TEST(Pieces, are_the_same_bytes_on_both_sides_for_a_hundred_thousand_pairs_of_random_types) {
  int cases = 0;
  for (unsigned seed = 0; cases < 100'000; ++seed) {
    Generator random(seed);
    const Both a = random.make(static_cast<int>(seed % 5)), b = random.make(static_cast<int>(seed / 5 % 5));
    if (a.model.map.size() > 300 || b.model.map.size() > 300) continue;
    ASSERT_EQ(commit(*a.real), MPI_SUCCESS);
    ASSERT_EQ(commit(*b.real), MPI_SUCCESS);
    for (int i = 0; i < 10; ++i, ++cases) {
      const int64_t n = random.pick(0, 6) / (1 + a.model.size() / 256), m = random.pick(0, 6) / (1 + b.model.size() / 256);
      std::vector<int64_t> expected[2] = {addresses(a.model, n, base), addresses(b.model, m, -77)};
      walk_and_compare<2>(random, {buffer_at(base, n, *a.real), buffer_at(-77, m, *b.real)}, expected, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Pieces, are_the_same_bytes_on_one_side_and_on_three) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator random(seed);
    const Both a = random.make(static_cast<int>(seed % 5)), b = random.make(2), c = random.make(1);
    if (a.model.map.size() > 600) continue;
    for (const Both* t : {&a, &b, &c}) ASSERT_EQ(commit(*t->real), MPI_SUCCESS);
    std::vector<int64_t> one[1] = {addresses(a.model, 3, base)};
    walk_and_compare<1>(random, {buffer_at(base, 3, *a.real)}, one, "seed " + std::to_string(seed));
    std::vector<int64_t> three[3] = {addresses(a.model, 3, base), addresses(b.model, 20, 0), addresses(c.model, 50, 5)};
    walk_and_compare<3>(random, {buffer_at(base, 3, *a.real), buffer_at(0, 20, *b.real), buffer_at(5, 50, *c.real)}, three,
                        "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Pieces, of_a_vector_are_one_whatever_its_length_and_so_are_a_block_and_a_vector) {
  Datatype* vector = nullptr;
  ASSERT_EQ(make_vector(1'000'000'000, 2, 5, builtin_datatypes[0x14], false, vector), MPI_SUCCESS);
  ASSERT_EQ(commit(*vector), MPI_SUCCESS);
  Pieces<1> one({buffer_at(64, 1, *vector)});
  Piece<1> piece;
  ASSERT_TRUE(one.next(piece));
  EXPECT_EQ(piece.at[0], 64);
  EXPECT_EQ(piece.bytes, 16);
  EXPECT_EQ(piece.stride[0], 40);
  EXPECT_EQ(piece.count, 1'000'000'000);
  EXPECT_FALSE(one.next(piece));

  Pieces<2> two({buffer_at(0, 2'000'000'000, builtin_datatypes[0x14]), buffer_at(64, 1, *vector)});
  Piece<2> both;
  ASSERT_TRUE(two.next(both));
  EXPECT_EQ(both.count, 1'000'000'000);
  EXPECT_EQ(both.stride[0], 16);
  EXPECT_EQ(both.stride[1], 40);
  EXPECT_FALSE(two.next(both));

  std::byte room[64];
  BlocksEncoder encoder(room, sizeof room);
  Pieces<1> again({buffer_at(64, 1, *vector)});
  EXPECT_EQ(encoder.add(again), 16'000'000'000);
  EXPECT_LE(encoder.size(), 10u);
  release(*vector);
}

TEST(Pieces, of_contiguous_buffers_are_one_block_and_of_no_data_none) {
  int calls = 0;
  char from[24];
  for_each_block({from, 3, builtin_datatypes[0x14]}, buffer_at(100, 24, builtin_datatypes[0x47]), [&](std::byte* at, int64_t to, int64_t bytes) {
    ++calls;
    EXPECT_EQ(static_cast<void*>(at), from);
    EXPECT_EQ(to, 100);
    EXPECT_EQ(bytes, 24);
  });
  EXPECT_EQ(calls, 1);
  for_each_block({from, 0, builtin_datatypes[0x14]}, buffer_at(100, 24, builtin_datatypes[0x47]), [&](std::byte*, int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Pieces, by_elements_have_whole_pairs_wherever_their_members_lie) {
  const BasicType pairs[] = {0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x30, 0x31, 0x32};
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator random(seed);
    const BasicType basic = pairs[seed % std::size(pairs)];
    const BasicInfo& info = basic_info(basic);
    // Places of elements, sometimes closer than in an array: as far apart as their bytes or more.
    std::vector<int64_t> places[2], starts[2];
    Datatype* types[2];
    const int64_t n = random.pick(1, 60);
    for (int s = 0; s < 2; ++s) {
      int64_t at = random.pick(-50, 50);
      const int64_t habit = random.pick(0, 2);
      std::vector<MPI_Count> list;
      for (int64_t i = 0; i < n; ++i) {
        list.push_back(at);
        at += habit == 0 ? info.size : habit == 1 ? info.extent : random.pick(info.size, 3 * info.extent);
      }
      ASSERT_EQ(make_hindexed_block(n, 1, CountArray(list.data()), builtin_datatypes[basic], true, types[s]), MPI_SUCCESS);
      ASSERT_EQ(commit(*types[s]), MPI_SUCCESS);
      ASSERT_EQ(types[s]->basic, basic);
      for (int64_t k = 0; k < 3; ++k)
        for (const MPI_Count place : list) starts[s].push_back(base * s + k * types[s]->extent + place);
    }
    const int64_t limit = random.pick(0, 1) ? INT64_MAX : random.pick(1, 300);
    for (int64_t position = 0;;) {
      Pieces<2> pieces({buffer_at(0, 3, *types[0]), buffer_at(base, 3, *types[1])}, basic, position);
      ASSERT_EQ(pieces.total(), 3 * n * info.extent);
      Piece<2> piece;
      if (!pieces.next(piece, limit)) break;
      ASSERT_EQ(piece.bytes % info.extent, 0);
      ASSERT_TRUE(piece.total() <= limit || piece.total() == info.extent);
      for (int s = 0; s < 2; ++s)
        for (int64_t i = 0; i < piece.count; ++i)
          for (int64_t b = 0; b < piece.bytes; b += info.extent) places[s].push_back(piece.at[s] + i * piece.stride[s] + b);
      position = pieces.position();
    }
    for (int s = 0; s < 2; ++s) {
      ASSERT_EQ(places[s], starts[s]) << info.name << " seed " << seed;
      release(*types[s]);
    }
  }
}

TEST(Pieces, lie_within_a_window_exactly_when_every_byte_does) {
  int inside = 0, outside = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Generator random(seed);
    const Both t = random.make(static_cast<int>(seed % 5));
    if (t.model.map.size() > 40) continue;
    for (int i = 0; i < 20; ++i) {
      const int64_t count = random.pick(0, 4), at = random.pick(-200, 400), size = random.pick(0, 800);
      bool all = true;
      for (const int64_t byte : addresses(t.model, count, at)) all = all && byte >= 0 && byte < size;
      ASSERT_EQ(within(*t.real, count, at, size), all) << "seed " << seed;
      ++(all ? inside : outside);
    }
  }
  EXPECT_GT(inside, 1000);
  EXPECT_GT(outside, 1000);
}

TEST(Pieces, do_not_lie_within_a_window_because_a_sum_overflows) {
  Datatype& real = builtin_datatypes[0x14];
  EXPECT_TRUE(within(real, 1, INT64_MAX - 8, INT64_MAX));
  EXPECT_FALSE(within(real, 1, INT64_MAX - 7, INT64_MAX));
  EXPECT_FALSE(within(real, INT64_MAX / 4, 0, INT64_MAX));
  EXPECT_FALSE(within(real, INT64_MAX, INT64_MAX, INT64_MAX));
  EXPECT_FALSE(within(real, 1, INT64_MIN, INT64_MAX));
  EXPECT_TRUE(within(real, 0, INT64_MIN, 0));
  EXPECT_FALSE(within(Blocks{0, INT64_MAX, 1, 2}, INT64_MAX));
  EXPECT_FALSE(within(Blocks{0, 8, INT64_MAX, 3}, INT64_MAX));
  EXPECT_FALSE(within(Blocks{8, 8, -8, 3}, 100));
  EXPECT_TRUE(within(Blocks{16, 8, -8, 3}, 24));
  EXPECT_FALSE(within(Blocks{0, 0, 0, 1}, 100));
  EXPECT_FALSE(within(Blocks{0, 8, 0, 0}, 100));
  EXPECT_FALSE(within(Blocks{0, 8, 0, -1}, 100));
  EXPECT_FALSE(within(Blocks{-8, 8, 0, 1}, 100));
  EXPECT_TRUE(within(Blocks{0, 16, 0, 1}, 12, 4));
  EXPECT_FALSE(within(Blocks{0, 16, 0, 1}, 11, 4));
}

TEST(Pieces, come_out_of_their_description_as_they_went_in) {
  for (unsigned seed = 0; seed < 800; ++seed) {
    Generator random(seed);
    const Both t = random.make(static_cast<int>(seed % 5));
    if (t.model.map.size() > 600) continue;
    ASSERT_EQ(commit(*t.real), MPI_SUCCESS);
    const std::vector<int64_t> bytes = addresses(t.model, 3, base);
    std::vector<int64_t> got;
    Pieces<1> pieces({buffer_at(base, 3, *t.real)});
    while (pieces.position() < pieces.total()) {  // in messages of any length
      std::vector<std::byte> room(static_cast<std::size_t>(random.pick(40, 300)));
      BlocksEncoder encoder(room.data(), room.size());
      const int64_t limit = random.pick(1, 1000), described = encoder.add(pieces, limit);
      ASSERT_GT(described, 0);
      ASSERT_LE(described, limit);
      BlocksDecoder decoder(room.data(), encoder.size(), 2 * base);
      const std::size_t before = got.size();
      for (Blocks b; decoder.next(b);)
        for (int64_t i = 0; i < b.count; ++i)
          for (int64_t k = 0; k < b.bytes; ++k) got.push_back(b.offset + i * b.stride + k);
      ASSERT_TRUE(decoder.ok());
      ASSERT_EQ(static_cast<int64_t>(got.size() - before), described);
    }
    ASSERT_EQ(got, bytes) << "seed " << seed;
  }
}

TEST(Pieces, of_a_description_with_a_number_beyond_64_bits_or_without_an_end_are_refused) {
  for (const unsigned last : {0x02u, 0x81u}) {
    std::vector<std::byte> text(9, std::byte{0x80});
    text.push_back(static_cast<std::byte>(last));
    text.push_back(std::byte{0});
    text[0] = std::byte{0x90};  // 8 bytes, but for what follows
    BlocksDecoder decoder(text.data(), text.size(), 1000);
    Blocks b;
    EXPECT_FALSE(decoder.next(b));
    EXPECT_FALSE(decoder.ok());
    EXPECT_FALSE(decoder.next(b));
  }
}

TEST(Pieces, that_a_foreign_description_names_lie_in_the_window_or_are_refused) {
  std::mt19937 random(1);
  int refused = 0, taken = 0;
  for (int round = 0; round < 300'000; ++round) {
    std::byte text[64];
    BlocksEncoder encoder(text, sizeof text);
    const auto below = [&](unsigned n) { return static_cast<int64_t>(random() % n); };
    (void)encoder.add(Blocks{below(1000), 1 + below(64), below(200) - 100, 1 + below(4)});
    std::size_t size = encoder.size();
    for (unsigned damage = random() % 4; damage; --damage) {
      if (random() % 4 == 0)
        size = random() % (size + 1);
      else if (size)
        text[random() % size] = static_cast<std::byte>(random());
    }
    const BasicType basic = random() % 2 ? BasicType{0} : BasicType{0x2c};
    // A copy of its own, so that a sanitizer sees every look beyond the end.
    const std::vector<std::byte> copy(text, text + size);
    BlocksDecoder decoder(copy.data(), size, 1000, basic);
    for (Blocks b; decoder.next(b); ++taken) {
      const __int128 last = static_cast<__int128>(b.offset) + static_cast<__int128>(b.count - 1) * b.stride;
      ASSERT_GE(std::min<__int128>(b.offset, last), 0);
      ASSERT_LE(std::max<__int128>(b.offset, last) + b.bytes, 1000);
      ASSERT_GT(b.bytes, 0);
      ASSERT_GT(b.count, 0);
      if (basic) { ASSERT_EQ(b.bytes % 8, 0); }
    }
    refused += !decoder.ok();
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_GT(taken, 10'000);
}
