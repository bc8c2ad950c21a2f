// The grids that MPI_Dims_create makes: none has dimensions closer to each other.
#include "mpi/dims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace heddle {
namespace {

using Factors = std::vector<int>;

/// For each n up to `most`: the least difference that k factors of n can have, and the least largest one then; by listing all
/// ascending sequences of k numbers.
std::vector<std::pair<int, int>> closest(int most, int k) {
  std::vector<std::pair<int, int>> best(static_cast<std::size_t>(most) + 1, {most, most});
  const std::function<void(int, int, int, int)> extend = [&](int count, int first, int last, int product) {
    if (count == k) {
      auto& known = best[static_cast<std::size_t>(product)];
      known = std::min(known, {last - first, last});
      return;
    }
    for (int next = last; next <= most / product; ++next) extend(count + 1, count ? first : next, next, product * next);
  };
  extend(0, 0, 1, 1);
  return best;
}

TEST(Dims, no_other_factors_are_closer_to_each_other) {
  constexpr int most = 200'000;
  for (int k = 2; k <= 4; ++k) {
    const auto best = closest(most, k);
    for (int n = 1; n <= most; ++n) {
      const Factors f = balanced_factors(n, k);
      ASSERT_EQ(std::accumulate(f.begin(), f.end(), 1, std::multiplies<>()), n);
      ASSERT_TRUE(std::is_sorted(f.rbegin(), f.rend())) << n;
      ASSERT_EQ(std::pair(f.front() - f.back(), f.front()), best[static_cast<std::size_t>(n)]) << n << " in " << k;
    }
  }
}

TEST(Dims, the_largest_may_be_larger_if_the_smallest_gains_more) {
  EXPECT_EQ(balanced_factors(34'425, 3), (Factors{51, 27, 25}));
}

TEST(Dims, large_numbers_take_no_time) {
  EXPECT_EQ(balanced_factors(2147483647, 3), (Factors{2147483647, 1, 1}));
  EXPECT_EQ(balanced_factors(1 << 30, 3), (Factors{1024, 1024, 1024}));
  EXPECT_EQ(balanced_factors(2'095'133'040, 6), (Factors{39, 38, 36, 35, 34, 33}));
  EXPECT_EQ(balanced_factors(2'138'136'000, 40).front(), 89);
  EXPECT_EQ(balanced_factors(1, 100), Factors(100, 1));
}

}  // namespace
}  // namespace heddle
