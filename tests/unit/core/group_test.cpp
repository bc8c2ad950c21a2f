#include "core/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/runtime.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

using Members = std::vector<ProcessIndex>;

struct Release {
  void operator()(Group* group) const { release_group(group); }
};
using Owned = std::unique_ptr<Group, Release>;

Owned make(const Members& members) { return Owned(make_group(members.data(), static_cast<int>(members.size()))); }

Members members_of(const Group& group) {
  Members out;
  for (int r = 0; r < group.size; ++r) out.push_back(group.process(r));
  return out;
}

bool has(const Members& members, ProcessIndex p) { return std::find(members.begin(), members.end(), p) != members.end(); }

int rank_in(const Members& members, ProcessIndex p) {
  const auto found = std::find(members.begin(), members.end(), p);
  return found == members.end() ? MPI_UNDEFINED : static_cast<int>(found - members.begin());
}

/// Distinct processes: sometimes a progression, sometimes any order.
Members random_members(std::mt19937& random) {
  const int n = static_cast<int>(random() % 60);
  Members out;
  if (random() % 2) {
    const ProcessIndex stride = random() % 4 + 1, first = random() % 20;
    for (int i = 0; i < n; ++i) out.push_back(first + static_cast<ProcessIndex>(i) * stride);
    if (random() % 2) std::reverse(out.begin(), out.end());
  } else {
    Members all(100);
    for (ProcessIndex p = 0; p < 100; ++p) all[p] = p;
    std::shuffle(all.begin(), all.end(), random);
    out.assign(all.begin(), all.begin() + n);
  }
  return out;
}

class GroupTest : public testing::Test {
 protected:
  void SetUp() override { runtime.self = 7; }
};

void expect_is(Group* group, const Members& wanted, const char* what) {
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(members_of(*group), wanted) << what;
  EXPECT_EQ(group->rank, rank_in(wanted, 7)) << what;
  if (wanted.empty()) {
    EXPECT_EQ(group, &group_empty) << what;
  }
}

TEST_F(GroupTest, SetOperationsAgreeWithListsOnRandomGroups) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const Members a = random_members(random), b = random_members(random);
    const Owned ga = make(a), gb = make(b);
    Members together = a, shared, rest;
    for (ProcessIndex p : b)
      if (!has(a, p)) together.push_back(p);
    for (ProcessIndex p : a) (has(b, p) ? shared : rest).push_back(p);
    Group* out = nullptr;
    ASSERT_EQ(group_union(*ga, *gb, &out), MPI_SUCCESS);
    expect_is(out, together, "union");
    release_group(out);
    ASSERT_EQ(group_intersection(*ga, *gb, &out), MPI_SUCCESS);
    expect_is(out, shared, "intersection");
    release_group(out);
    ASSERT_EQ(group_difference(*ga, *gb, &out), MPI_SUCCESS);
    expect_is(out, rest, "difference");
    release_group(out);

    std::vector<int> ranks(a.size()), translated(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) ranks[i] = static_cast<int>(i);
    ASSERT_EQ(translate_ranks(*ga, ga->size, ranks.data(), *gb, translated.data()), MPI_SUCCESS);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(translated[i], rank_in(b, a[i]));

    Members sorted_a = a, sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    EXPECT_EQ(compare_groups(*ga, *gb), a == b ? MPI_IDENT : sorted_a == sorted_b ? MPI_SIMILAR : MPI_UNEQUAL);
    Members shuffled = a;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    EXPECT_EQ(compare_groups(*ga, *make(shuffled)), shuffled == a ? MPI_IDENT : MPI_SIMILAR);
  }
}

TEST_F(GroupTest, InclAndExclAgreeWithListsOnRandomRanks) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const Members a = random_members(random);
    const Owned group = make(a);
    std::vector<int> ranks(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) ranks[i] = static_cast<int>(i);
    std::shuffle(ranks.begin(), ranks.end(), random);
    ranks.resize(a.empty() ? 0 : random() % (a.size() + 1));
    Members included, left;
    for (int r : ranks) included.push_back(a[static_cast<std::size_t>(r)]);
    for (ProcessIndex p : a)
      if (!has(included, p)) left.push_back(p);
    Group* out = nullptr;
    ASSERT_EQ(group_incl(*group, static_cast<int>(ranks.size()), ranks.data(), &out), MPI_SUCCESS);
    expect_is(out, included, "incl");
    release_group(out);
    ASSERT_EQ(group_excl(*group, static_cast<int>(ranks.size()), ranks.data(), &out), MPI_SUCCESS);
    expect_is(out, left, "excl");
    release_group(out);
  }
}

TEST_F(GroupTest, RangesAreWalkedInOrderUpAndDown) {
  const Owned group = make({3, 1, 4, 15, 9, 2, 6, 5, 35, 8});
  const int ranges[][3] = {{6, 0, -3}, {1, 2, 1}, {9, 9, 4}, {5, 4, 1}};
  Group* out = nullptr;
  ASSERT_EQ(group_range_incl(*group, 4, ranges, &out), MPI_SUCCESS);
  EXPECT_EQ(members_of(*out), (Members{6, 15, 3, 1, 4, 8}));
  release_group(out);
  ASSERT_EQ(group_range_excl(*group, 4, ranges, &out), MPI_SUCCESS);
  EXPECT_EQ(members_of(*out), (Members{9, 2, 5, 35}));
  release_group(out);
}

TEST_F(GroupTest, StrideOfAStridedGroupStaysStrided) {
  const Owned world(make_strided_group(0, 1, 1'000'000));
  const int odd[][3] = {{1, 999'999, 2}}, backwards[][3] = {{499'999, 0, -5}};
  Group *half = nullptr, *out = nullptr;
  ASSERT_EQ(group_range_incl(*world, 1, odd, &half), MPI_SUCCESS);
  EXPECT_TRUE(half->strided());
  ASSERT_EQ(group_range_incl(*half, 1, backwards, &out), MPI_SUCCESS);
  EXPECT_TRUE(out->strided());
  EXPECT_EQ(out->size, 100'000);
  EXPECT_EQ(out->process(0), 999'999u);
  EXPECT_EQ(out->process(1), 999'989u);
  release_group(out);
  std::vector<int> ranks(1000);
  for (int i = 0; i < 1000; ++i) ranks[static_cast<std::size_t>(i)] = 7 + 3 * i;
  ASSERT_EQ(group_incl(*half, 1000, ranks.data(), &out), MPI_SUCCESS);
  EXPECT_TRUE(out->strided());
  release_group(out);
  ASSERT_EQ(group_intersection(*world, *half, &out), MPI_SUCCESS);
  EXPECT_TRUE(out->strided());
  EXPECT_EQ(compare_groups(*out, *half), MPI_IDENT);
  release_group(out);
  release_group(half);
}

// A quadratic algorithm would need 10^12 steps here.
TEST_F(GroupTest, AMillionShuffledMembersAreTranslatedAndCompared) {
  constexpr int n = 1'000'000;
  Members a(n), b(n);
  for (int i = 0; i < n; ++i) a[static_cast<std::size_t>(i)] = b[static_cast<std::size_t>(i)] = static_cast<ProcessIndex>(3 * i);
  std::mt19937 random(3);
  std::shuffle(a.begin(), a.end(), random);
  std::shuffle(b.begin(), b.end(), random);
  const Owned ga = make(a), gb = make(b);
  std::vector<int> ranks(n), translated(n);
  for (int i = 0; i < n; ++i) ranks[static_cast<std::size_t>(i)] = i;
  ASSERT_EQ(translate_ranks(*ga, n, ranks.data(), *gb, translated.data()), MPI_SUCCESS);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(b[static_cast<std::size_t>(translated[static_cast<std::size_t>(i)])], a[static_cast<std::size_t>(i)]);
  EXPECT_EQ(compare_groups(*ga, *gb), MPI_SIMILAR);
  Group* out = nullptr;
  ASSERT_EQ(group_union(*ga, *gb, &out), MPI_SUCCESS);
  EXPECT_EQ(out->size, n);
  release_group(out);
}

TEST_F(GroupTest, InvalidRanksAreRefusedByClass) {
  const Owned group = make({5, 3, 9});
  Group* out = nullptr;
  const int beyond[] = {0, 3}, twice[] = {2, 0, 2}, negative[] = {-1};
  EXPECT_EQ(error_class(group_incl(*group, 2, beyond, &out)), MPI_ERR_RANK);
  EXPECT_EQ(error_class(group_incl(*group, 3, twice, &out)), MPI_ERR_RANK);
  EXPECT_EQ(error_class(group_excl(*group, 3, twice, &out)), MPI_ERR_RANK);
  EXPECT_EQ(error_class(group_excl(*group, 1, negative, &out)), MPI_ERR_RANK);
  const int no_stride[][3] = {{0, 1, 0}}, too_far[][3] = {{0, 4, 2}}, overlap[][3] = {{0, 1, 1}, {1, 2, 1}};
  EXPECT_EQ(error_class(group_range_incl(*group, 1, no_stride, &out)), MPI_ERR_ARG);
  EXPECT_EQ(error_class(group_range_incl(*group, 1, too_far, &out)), MPI_ERR_RANK);
  EXPECT_EQ(error_class(group_range_excl(*group, 2, overlap, &out)), MPI_ERR_RANK);
  int translated[1];
  EXPECT_EQ(error_class(translate_ranks(*group, 1, beyond + 1, *group, translated)), MPI_ERR_RANK);
}

TEST_F(GroupTest, ProcNullTranslatesToItself) {
  const Owned a = make({5, 3, 9}), b = make({9, 11});
  const int ranks[] = {2, MPI_PROC_NULL, 0};
  int translated[3];
  ASSERT_EQ(translate_ranks(*a, 3, ranks, *b, translated), MPI_SUCCESS);
  EXPECT_EQ(translated[0], 0);
  EXPECT_EQ(translated[1], MPI_PROC_NULL);
  EXPECT_EQ(translated[2], MPI_UNDEFINED);
}

TEST_F(GroupTest, EndpointsOfOneProcessAreDifferentMembers) {
  const Owned base = make({4, 4 + 1, 4 + 2});
  const Owned made(make_endpoint_group(std::unique_ptr<ProcessIndex[]>(new ProcessIndex[4]{4, 4, 7, 7}),
                                       std::unique_ptr<std::uint32_t[]>(new std::uint32_t[4]{1, 2, 1, 2}), 4, 2));
  const Group& endpoints = *made;
  EXPECT_EQ(endpoints.width(), 2u);
  Group *out = nullptr, *both = nullptr;
  const int ranks[] = {3, 1};
  ASSERT_EQ(group_incl(endpoints, 2, ranks, &out), MPI_SUCCESS);
  EXPECT_EQ(out->member(0), endpoints.member(3));
  EXPECT_EQ(out->member(1), endpoints.member(1));
  EXPECT_EQ(rank_of_member(endpoints, out->member(0)), 3);
  ASSERT_EQ(group_union(*base, *out, &both), MPI_SUCCESS);
  EXPECT_EQ(both->size, 5) << "the process 4 itself is no endpoint";
  EXPECT_EQ(rank_of_process(*both, 4), 0);
  EXPECT_EQ(rank_of_member(*both, endpoints.member(1)), 4);
  release_group(both);
  release_group(out);
}

TEST_F(GroupTest, LookUpsFromManyThreadsBuildOneIndex) {
  Members members(5000);
  for (ProcessIndex i = 0; i < 5000; ++i) members[i] = i * 7 % 5003;
  const Owned group = make(members);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int r = 0; r < 5000; ++r)
        if (rank_of_process(*group, members[static_cast<std::size_t>(r)]) != r) wrong.fetch_add(1, std::memory_order_relaxed);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace heddle
