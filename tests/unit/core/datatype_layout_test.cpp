// What the normaliser makes of descriptions: the shapes that packing relies on, and that memory follows the
// description.
#include "core/datatype_layout.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "core/datatype.hpp"
#include "core/datatype_envelope.hpp"

using namespace heddle;
using Shape = Layout::Shape;
using std::int64_t;

namespace {

Datatype& builtin(MPI_Datatype handle) { return *resolve<Datatype>(handle); }

/// A type that releases itself.
class Type {
 public:
  explicit Type(Datatype* made) : made_(made) {}
  Type(Type&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
  ~Type() {
    if (made_) release(*made_);
  }
  Datatype& operator*() const { return *made_; }
  Datatype* operator->() const { return made_; }
  const Layout& plan() const {
    EXPECT_EQ(commit(*made_), MPI_SUCCESS);
    return *made_->plan;
  }

 private:
  Datatype* made_;
};

template <typename Make>
Type make(Make&& constructor) {
  Datatype* made = nullptr;
  EXPECT_EQ(constructor(made), MPI_SUCCESS);
  return Type(made);
}
Type vector(MPI_Count n, MPI_Count block, MPI_Count stride, Datatype& old) {
  return make([&](Datatype*& made) { return make_vector(n, block, stride, old, true, made); });
}
Type contiguous(MPI_Count n, Datatype& old) {
  return make([&](Datatype*& made) { return make_contiguous(n, old, true, made); });
}
Type indexed(const std::vector<MPI_Count>& lengths, const std::vector<MPI_Count>& places, Datatype& old) {
  return make([&](Datatype*& made) {
    return make_indexed(static_cast<MPI_Count>(lengths.size()), CountArray(lengths.data()), CountArray(places.data()),
                        old, true, made);
  });
}
Type record(const std::vector<MPI_Count>& lengths, const std::vector<MPI_Count>& places, std::vector<Datatype*> types) {
  return make([&](Datatype*& made) {
    return make_struct(static_cast<MPI_Count>(lengths.size()), CountArray(lengths.data()), CountArray(places.data()),
                       types.data(), true, made);
  });
}

/// Nodes and list entries of a layout, shared ones once.
std::size_t weight(const Layout* layout, std::set<const Layout*>& seen) {
  if (!layout || !seen.insert(layout).second) return 0;
  std::size_t n = 1 + weight(layout->child, seen);
  if (layout->shape == Shape::blocks) n += static_cast<std::size_t>(layout->count);
  if (layout->shape == Shape::items)
    for (int64_t i = 0; i < layout->count; ++i) n += 1 + weight(layout->items[i].child, seen);
  return n;
}
std::size_t weight(const Layout& layout) {
  std::set<const Layout*> seen;
  return weight(&layout, seen);
}

}  // namespace

TEST(DatatypeLayout, ContiguousOfContiguousIsOneBlock) {
  const Type inner = contiguous(10, builtin(MPI_INT)), outer = contiguous(7, *inner);
  EXPECT_EQ(outer.plan().shape, Shape::block);
  EXPECT_TRUE(outer->contiguous);
  EXPECT_EQ(outer->size, 280);
}

TEST(DatatypeLayout, AVectorWithoutGapsIsOneBlock) {
  const Type t = vector(1000, 3, 3, builtin(MPI_DOUBLE));
  EXPECT_EQ(t.plan().shape, Shape::block);
  EXPECT_TRUE(t->contiguous);
}

TEST(DatatypeLayout, AStructWithoutHolesIsOneBlockThoughItsTypesDiffer) {
  const Type t = record({1, 2}, {0, 4}, {&builtin(MPI_FLOAT), &builtin(MPI_SHORT)});
  EXPECT_EQ(t->layout->shape, Shape::items);
  EXPECT_EQ(t.plan().shape, Shape::block);
  EXPECT_TRUE(t->contiguous);
  EXPECT_EQ(t->basic, 0);
}

TEST(DatatypeLayout, ABlockWithAHoleBehindItIsContiguousAloneOnly) {
  const Type t = record({1, 1}, {0, 8}, {&builtin(MPI_DOUBLE), &builtin(MPI_INT)});
  (void)t.plan();
  EXPECT_TRUE(t->one_block);
  EXPECT_FALSE(t->contiguous);
  EXPECT_EQ(t->extent, 16);
}

TEST(DatatypeLayout, ABillionBlocksAreOneLoop) {
  const Type t = vector(1000000000, 1, 2, builtin(MPI_DOUBLE)), outer = vector(1000, 1, 3, *t);
  EXPECT_EQ(t.plan().shape, Shape::loop);
  EXPECT_EQ(t.plan().child->shape, Shape::block);
  EXPECT_LE(weight(outer.plan()), 3u);
}

TEST(DatatypeLayout, LoopsThatGoOnAtTheSamePaceAreOneLoop) {
  // Rows of every other element, the rows themselves back to back at the same stride.
  const Type row = vector(8, 1, 2, builtin(MPI_INT));
  const Type rows = make([&](Datatype*& made) { return make_hvector(5, 1, 64, *row, true, made); });
  EXPECT_EQ(rows.plan().shape, Shape::loop);
  EXPECT_EQ(rows.plan().count, 40);
  EXPECT_EQ(rows.plan().child->shape, Shape::block);
}

TEST(DatatypeLayout, ARegularIndexedTypeIsALoop) {
  std::vector<MPI_Count> lengths(100, 2), places;
  for (int i = 0; i < 100; ++i) places.push_back(7 * i + 3);
  const Type t = indexed(lengths, places, builtin(MPI_INT));
  EXPECT_EQ(t.plan().shape, Shape::loop);
  EXPECT_EQ(t.plan().stride, 28);
  EXPECT_EQ(t->true_lb, 12);
}

TEST(DatatypeLayout, NeighboursInAnIndexedTypeAreMerged) {
  const Type t = indexed({2, 3, 1, 4}, {0, 2, 5, 6}, builtin(MPI_INT));
  EXPECT_EQ(t.plan().shape, Shape::block);
  EXPECT_EQ(t->size, 40);
}

TEST(DatatypeLayout, BlocksOfFewLengthsAreCutToOneLength) {
  const Type t = indexed({1, 2, 1, 2, 1}, {0, 2, 5, 9, 20}, builtin(MPI_DOUBLE));
  EXPECT_EQ(t.plan().shape, Shape::blocks);
  EXPECT_EQ(t.plan().block, 8);
  EXPECT_EQ(t.plan().count, 7);
  const Type u = indexed({1, 50, 1, 50, 3}, {0, 2, 60, 90, 200}, builtin(MPI_DOUBLE));
  EXPECT_EQ(u.plan().block, 0);
  EXPECT_EQ(u.plan().count, 5);
}

TEST(DatatypeLayout, TheSameChildAtRegularDistancesIsALoop) {
  const Type row = vector(100, 1, 2, builtin(MPI_INT));
  std::vector<MPI_Count> lengths(50, 1), places;
  for (int i = 0; i < 50; ++i) places.push_back(3 * i);
  const Type t = indexed(lengths, places, *row);
  EXPECT_EQ(t.plan().shape, Shape::loop);
  EXPECT_EQ(weight(t.plan()), 3u);
}

TEST(DatatypeLayout, MemoryFollowsTheDescriptionThroughDoublingStructs) {
  // Every level names the one below twice, at irregular places: 2^40 elements from 40 short descriptions.
  std::vector<Type> levels;
  levels.push_back(record({1, 1}, {0, 16}, {&builtin(MPI_CHAR), &builtin(MPI_DOUBLE)}));
  for (int i = 1; i < 40; ++i) {
    Datatype& below = *levels.back();
    levels.push_back(record({1, 1, 1}, {0, below.true_extent + 8, 2 * below.true_extent + 24},
                            {&below, &below, &builtin(MPI_CHAR)}));
  }
  EXPECT_GT(levels.back()->size, int64_t{1} << 40);
  EXPECT_LT(weight(levels.back().plan()), 40u * 80u);
}

TEST(DatatypeLayout, AListOfShortChildrenDoesNotMultiply) {
  const Type few = indexed({1, 1, 1, 1, 1, 1, 1, 1}, {0, 2, 5, 9, 14, 20, 27, 35}, builtin(MPI_INT));
  std::vector<MPI_Count> lengths, places;
  for (int i = 0; i < 10000; ++i) {
    lengths.push_back(1);
    places.push_back(3 * i + i % 2);
  }
  const Type t = indexed(lengths, places, *few);
  EXPECT_LT(weight(t.plan()), 4u * 10000u);
}

TEST(DatatypeLayout, AChainOfAHundredThousandTypesIsReleasedWithoutRecursion) {
  Datatype* last = nullptr;
  ASSERT_EQ(make_resized(builtin(MPI_INT), 0, 8, false, last), MPI_SUCCESS);
  for (int i = 0; i < 100000; ++i) {
    Datatype* next = nullptr;
    ASSERT_EQ(make_resized(*last, 0, 8 + i % 2, false, next), MPI_SUCCESS);
    release(*last);  // only the next one holds it
    last = next;
  }
  release(*last);
}

TEST(DatatypeLayout, ThreadsCanCommitAndPackTypesMadeOfOne) {
  const Type shared = record({1, 1, 3}, {0, 4, 8}, {&builtin(MPI_CHAR), &builtin(MPI_INT), &builtin(MPI_DOUBLE)});
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Type mine = vector(5, 2, 3, *shared);
        (void)mine.plan();
        std::vector<char> user(static_cast<std::size_t>(mine->extent), 'x'), out(static_cast<std::size_t>(mine->size));
        PackCursor cursor;
        pack(user.data(), 1, *mine, cursor, out.data(), out.size());
        EXPECT_EQ(cursor.offset, 290);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(DatatypeBasic, TheSingleBasicTypeOfADerivedTypeIsKnown) {
  const Type ints = vector(3, 2, 4, builtin(MPI_INT)), more = contiguous(2, *ints);
  EXPECT_EQ(more->basic, builtin(MPI_INT).basic);
  const Type pairs = contiguous(2, builtin(MPI_DOUBLE_INT));
  EXPECT_EQ(pairs->basic, builtin(MPI_DOUBLE_INT).basic);
  const Type mixed = record({1, 1}, {0, 8}, {&builtin(MPI_DOUBLE), &builtin(MPI_INT)});
  EXPECT_EQ(mixed->basic, 0);
  const Type same = record({1, 0, 1}, {0, 4, 8}, {&builtin(MPI_DOUBLE), &builtin(MPI_INT), &builtin(MPI_DOUBLE)});
  EXPECT_EQ(same->basic, builtin(MPI_DOUBLE).basic);
  const Type empty = contiguous(0, builtin(MPI_INT));
  EXPECT_EQ(empty->basic, 0);
}

TEST(DatatypeBasic, PredefinedHandlesResolveByTableAndOthersDoNot) {
  int found = 0;
  for (std::uintptr_t value = 0; value < 4096; ++value) {
    Datatype* type = resolve<Datatype>(reinterpret_cast<MPI_Datatype>(value));
    if (!type) continue;
    ++found;
    EXPECT_EQ(to_handle(type), reinterpret_cast<MPI_Datatype>(value));
    EXPECT_TRUE(type->committed);
    const bool fixed = value >> 6 == 0b1001 || value >> 6 == 0b1011;  // the ABI codes these sizes in the handle
    if (fixed) {
      EXPECT_EQ(type->size, 1 << (value >> 3 & 7)) << value;
    }
  }
  EXPECT_EQ(found, 70);
}
