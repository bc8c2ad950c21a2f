// ranks: 1
// MPI_Dims_create: the product is right, given dimensions stay, chosen ones descend and are as close as can be.
#include <algorithm>
#include <climits>
#include <functional>
#include <numeric>

#include "../support.hpp"

using namespace test;

namespace {

using Dims = std::vector<int>;

Dims grid(int n, Dims dims) {
  CHECK_OK(MPI_Dims_create(n, static_cast<int>(dims.size()), dims.data()));
  return dims;
}

// The least difference between the largest and the smallest of k factors of n, none above `most`, by trying all.
int least_spread(int n, int k, int largest, int most) {
  if (k == 1) return n <= most ? (largest ? largest : n) - n : INT_MAX;
  int best = INT_MAX;
  for (int d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) best = std::min(best, least_spread(n / d, k - 1, largest ? largest : d, d));
  return best;
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(grid(6, {0, 0}) == (Dims{3, 2}));
  CHECK(grid(7, {0, 0}) == (Dims{7, 1}));
  CHECK(grid(6, {0, 3, 0}) == (Dims{2, 3, 1}));
  CHECK(grid(72, {0, 0, 0}) == (Dims{6, 4, 3}));
  CHECK(grid(64, {0, 0, 0}) == (Dims{4, 4, 4}));
  CHECK(grid(1, {0, 0}) == (Dims{1, 1}));
  CHECK(grid(12, {3, 4}) == (Dims{3, 4}));
  if (library_is_heddle()) {  // MPICH 5.0.2 dies of a division by zero
    CHECK(grid(34425, {0, 0, 0}) == (Dims{51, 27, 25}));
    CHECK(grid(1 << 30, {0, 0, 0}) == (Dims{1024, 1024, 1024}));
    CHECK(grid(2147483647, {0, 0}) == (Dims{2147483647, 1}));
  }
  for (int n = 1; n <= 200; ++n)
    for (int k = 1; k <= 4; ++k) {
      const Dims d = grid(n, Dims(static_cast<std::size_t>(k), 0));
      CHECK_EQ(std::accumulate(d.begin(), d.end(), 1, std::multiplies<>()), n);
      CHECK(std::is_sorted(d.rbegin(), d.rend()));
      if (library_is_heddle()) CHECK_EQ(d.front() - d.back(), least_spread(n, k, 0, n));
    }
  if (!library_is_heddle()) return finish();
  int many[100] = {};
  CHECK_OK(MPI_Dims_create(1 << 20, 100, many));
  CHECK_EQ(std::accumulate(many, many + 100, 1, std::multiplies<>()), 1 << 20);

  int dims[] = {4, 0};
  CHECK_CLASS(MPI_Dims_create(6, 2, dims), MPI_ERR_DIMS);
  dims[0] = -1;
  CHECK_CLASS(MPI_Dims_create(6, 2, dims), MPI_ERR_DIMS);
  int given[] = {2, 2};
  CHECK_CLASS(MPI_Dims_create(6, 2, given), MPI_ERR_DIMS);
  return finish();
}
