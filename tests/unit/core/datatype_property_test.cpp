// Random nested datatypes against the definition: sizes, bounds, packing at any split, element counts.
#include <gtest/gtest.h>

#include "core/datatype_layout.hpp"
#include "datatype_model.hpp"

using namespace heddle;
using model::Both;
using model::Generator;
using std::int64_t;

namespace {

constexpr int seeds = 800;

/// Memory that all of `count` elements lie in, filled with bytes that name their place.
struct Arena {
  Arena(const model::Type& type, int64_t count) {
    int64_t low = 0, high = 1;
    for (const int64_t i : {int64_t{0}, count - 1}) {
      low = std::min(low, type.true_lb() + i * type.extent());
      high = std::max(high, type.true_ub() + i * type.extent());
    }
    bytes.resize(static_cast<std::size_t>(high - low));
    base = -low;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 131 + (i >> 8) * 7 + 1);
  }
  unsigned char* origin() { return bytes.data() + base; }
  std::vector<unsigned char> bytes;
  int64_t base;
};

}  // namespace

TEST(DatatypeProperty, SizesAndBoundsAreTheDefinitions) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Both t = generator.make(static_cast<int>(seed % 5));
    ASSERT_EQ(t.real->size, t.model.size()) << "seed " << seed;
    ASSERT_EQ(t.real->lb, t.model.lb()) << "seed " << seed;
    ASSERT_EQ(t.real->extent, t.model.extent()) << "seed " << seed;
    ASSERT_EQ(t.real->true_lb, t.model.true_lb()) << "seed " << seed;
    ASSERT_EQ(t.real->true_extent, t.model.true_ub() - t.model.true_lb()) << "seed " << seed;
  }
}

TEST(DatatypeProperty, PackingGivesTheTypemapsBytesInOrderWhereverTheStreamIsSplit) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Both t = generator.make(static_cast<int>(seed % 5));
    if (t.model.map.size() > 4000) continue;
    ASSERT_EQ(commit(*t.real), MPI_SUCCESS);
    const int64_t count =
        generator.pick(0, 1) ? generator.pick(0, 3) : generator.pick(0, 400) / (1 + t.model.size() / 64);
    Arena arena(t.model, count);
    const std::vector<unsigned char> expected = t.model.pack(arena.origin(), count);

    std::vector<unsigned char> whole(expected.size() + 1, 0xee);
    PackCursor cursor;
    pack(arena.origin(), count, *t.real, cursor, whole.data(), expected.size());
    ASSERT_EQ(cursor.offset, static_cast<int64_t>(expected.size()));
    ASSERT_EQ(whole.back(), 0xee) << "seed " << seed;
    whole.pop_back();
    ASSERT_EQ(whole, expected) << "seed " << seed;

    for (const int64_t piece : {int64_t{1}, int64_t{3}, int64_t{7}, int64_t{64}, int64_t{1000}}) {
      std::vector<unsigned char> split(expected.size(), 0xee);
      PackCursor at;
      while (at.offset < static_cast<int64_t>(split.size())) {
        const auto n = std::min<int64_t>(generator.pick(1, piece), static_cast<int64_t>(split.size()) - at.offset);
        pack(arena.origin(), count, *t.real, at, split.data() + at.offset, static_cast<std::size_t>(n));
      }
      ASSERT_EQ(split, expected) << "seed " << seed << " pieces up to " << piece;
    }
  }
}

TEST(DatatypeProperty, UnpackingWritesTheTypemapsBytesAndNoOthers) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Both t = generator.make(static_cast<int>(seed % 5));
    if (t.model.map.size() > 4000) continue;
    ASSERT_EQ(commit(*t.real), MPI_SUCCESS);
    const int64_t count = generator.pick(0, 20) / (1 + t.model.size() / 1024);
    Arena arena(t.model, count);
    // Bytes that several entries name have no defined value after a receive: give the stream the same byte for each
    // address.
    const std::vector<unsigned char> stream = t.model.pack(arena.origin(), count);
    std::vector<unsigned char> blank(arena.bytes.size(), 0), expected(arena.bytes.size(), 0);
    std::size_t k = 0;
    for (int64_t i = 0; i < count; ++i)
      for (const model::Entry& e : t.model.map)
        for (int64_t b = 0; b < basic_info(e.basic).size; ++b)
          expected[static_cast<std::size_t>(arena.base + i * t.model.extent() + e.at + b)] = stream[k++];

    for (const int64_t piece : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{100}}) {
      std::vector<unsigned char> out = blank;
      PackCursor at;
      while (at.offset < static_cast<int64_t>(stream.size())) {
        const int64_t left = static_cast<int64_t>(stream.size()) - at.offset;
        const auto n = piece ? std::min<int64_t>(generator.pick(1, piece), left) : left;
        unpack(out.data() + arena.base, count, *t.real, at, stream.data() + at.offset, static_cast<std::size_t>(n));
      }
      ASSERT_EQ(out, expected) << "seed " << seed << " pieces up to " << piece;
    }
  }
}

TEST(DatatypeProperty, CopyingBetweenTwoTypesMovesTheBytesOfTheSmallerSide) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Both a = generator.make(static_cast<int>(seed % 4)), b = generator.make(static_cast<int>(seed / 4 % 4));
    if (a.model.map.size() > 1000 || b.model.map.size() > 1000) continue;
    ASSERT_EQ(commit(*a.real), MPI_SUCCESS);
    ASSERT_EQ(commit(*b.real), MPI_SUCCESS);
    const int64_t n = generator.pick(0, 5), m = generator.pick(0, 5);
    Arena from(a.model, n), to(b.model, m);
    const std::vector<unsigned char> source = a.model.pack(from.origin(), n);
    std::vector<unsigned char> expected = to.bytes;
    std::size_t k = 0;
    for (int64_t i = 0; i < m; ++i)
      for (const model::Entry& e : b.model.map)
        for (int64_t c = 0; c < basic_info(e.basic).size && k < source.size(); ++c)
          expected[static_cast<std::size_t>(to.base + i * b.model.extent() + e.at + c)] = source[k++];
    bool overlaps = false;  // of the target: then the result depends on the order, which nothing promises
    {
      std::vector<char> seen(to.bytes.size(), 0);
      for (int64_t i = 0; i < m; ++i)
        for (const model::Entry& e : b.model.map)
          for (int64_t c = 0; c < basic_info(e.basic).size; ++c) {
            char& s = seen[static_cast<std::size_t>(to.base + i * b.model.extent() + e.at + c)];
            overlaps = overlaps || s;
            s = 1;
          }
    }
    if (overlaps) continue;
    copy_typed(from.origin(), n, *a.real, to.origin(), m, *b.real);
    ASSERT_EQ(to.bytes, expected) << "seed " << seed;
  }
}

TEST(DatatypeProperty, ElementsAreCountedOneByOne) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Generator generator(seed);
    const Both t = generator.make(static_cast<int>(seed % 5));
    if (t.model.map.empty() || t.model.map.size() > 300) continue;
    std::vector<int64_t> at_byte(static_cast<std::size_t>(3 * t.model.size()) + 1, MPI_UNDEFINED);
    int64_t bytes = 0, elements = 0;
    at_byte[0] = 0;
    for (int i = 0; i < 3; ++i)
      for (const model::Entry& e : t.model.map)
        at_byte[static_cast<std::size_t>(bytes += basic_info(e.basic).size)] = ++elements;
    for (std::size_t n = 0; n < at_byte.size(); ++n)
      ASSERT_EQ(basic_elements(*t.real, static_cast<int64_t>(n)), at_byte[n]) << "seed " << seed << " bytes " << n;
    for (std::size_t n = 0; n < at_byte.size(); ++n)
      if (at_byte[n] != MPI_UNDEFINED) {
        ASSERT_EQ(bytes_of_elements(*t.real, at_byte[n]), static_cast<int64_t>(n)) << "seed " << seed;
      }
  }
}
