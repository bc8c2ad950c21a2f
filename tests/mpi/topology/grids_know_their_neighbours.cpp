// ranks: 1 4 5
// timeout: 60
// Cartesian grids of all shapes: ranks and coordinates invert each other, shifts stop at edges or wrap around, messages along
// a shift arrive, sub-grids hold the right processes, ranks beyond the grid get nothing, duplicates are grids too.
#include "../support.hpp"

using namespace test;

namespace {

thread_local World w;

void try_grid(std::vector<int> dims, std::vector<int> periods) {
  const int n = static_cast<int>(dims.size());
  int size = 1;
  for (int d : dims) size *= d;
  MPI_Comm grid;
  CHECK_OK(MPI_Cart_create(MPI_COMM_WORLD, n, dims.data(), periods.data(), 0, &grid));
  int place = -1;
  CHECK_OK(MPI_Cart_map(MPI_COMM_WORLD, n, dims.data(), periods.data(), &place));
  if (w.rank >= size) {
    CHECK(grid == MPI_COMM_NULL);
    return;
  }
  int rank = -1, count = -1, kind = -1;
  MPI_Comm_rank(grid, &rank);
  MPI_Comm_size(grid, &count);
  CHECK_EQ(count, size);
  MPI_Topo_test(grid, &kind);
  CHECK_EQ(kind, MPI_CART);
  MPI_Cartdim_get(grid, &count);
  CHECK_EQ(count, n);
  std::vector<int> got_dims(dims.size()), got_periods(dims.size()), coords(dims.size());
  CHECK_OK(MPI_Cart_get(grid, n, got_dims.data(), got_periods.data(), coords.data()));
  CHECK(got_dims == dims);
  CHECK(got_periods == periods);
  for (int r = 0; r < size; ++r) {
    std::vector<int> at(dims.size());
    int back = -1;
    CHECK_OK(MPI_Cart_coords(grid, r, n, at.data()));
    if (r == rank) CHECK(at == coords);
    CHECK_OK(MPI_Cart_rank(grid, at.data(), &back));
    CHECK_EQ(back, r);
    for (int d = 0; d < n; ++d)  // once and more around
      if (periods[static_cast<std::size_t>(d)]) {
        std::vector<int> far = at;
        far[static_cast<std::size_t>(d)] += -3 * dims[static_cast<std::size_t>(d)];
        CHECK_OK(MPI_Cart_rank(grid, far.data(), &back));
        CHECK_EQ(back, r);
      }
  }
  for (int d = 0; d < n; ++d)
    for (int distance : {1, -1, 2, 0, 7}) {
      const auto i = static_cast<std::size_t>(d);
      int source = -1, dest = -1;
      CHECK_OK(MPI_Cart_shift(grid, d, distance, &source, &dest));
      std::vector<int> to = coords;
      to[i] += distance;
      int wanted = MPI_PROC_NULL;
      if (periods[i] || (to[i] >= 0 && to[i] < dims[i])) MPI_Cart_rank(grid, to.data(), &wanted);
      CHECK_EQ(dest, wanted);
      int got = -1;
      MPI_Sendrecv(&rank, 1, MPI_INT, dest, d, &got, 1, MPI_INT, source, d, grid, MPI_STATUS_IGNORE);
      CHECK_EQ(got, source == MPI_PROC_NULL ? -1 : source);
    }
  for (unsigned mask = 0; mask < 1u << n; ++mask) {
    std::vector<int> remain(dims.size());
    int inner_size = 1;
    for (int d = 0; d < n; ++d)
      if ((remain[static_cast<std::size_t>(d)] = mask >> d & 1)) inner_size *= dims[static_cast<std::size_t>(d)];
    MPI_Comm part;
    CHECK_OK(MPI_Cart_sub(grid, remain.data(), &part));
    MPI_Comm_size(part, &count);
    CHECK_EQ(count, inner_size);
    int dim_count = -1, mine = -1;
    MPI_Cartdim_get(part, &dim_count);
    CHECK_EQ(dim_count, __builtin_popcount(mask));
    std::vector<int> inner(static_cast<std::size_t>(dim_count)), wanted;
    MPI_Comm_rank(part, &mine);
    MPI_Cart_coords(part, mine, dim_count, inner.data());
    for (int d = 0; d < n; ++d)
      if (mask >> d & 1) wanted.push_back(coords[static_cast<std::size_t>(d)]);
    CHECK(inner == wanted);
    int low = -1;
    MPI_Allreduce(&rank, &low, 1, MPI_INT, MPI_MIN, part);
    std::vector<int> first = coords;
    for (int d = 0; d < n; ++d)
      if (mask >> d & 1) first[static_cast<std::size_t>(d)] = 0;
    int lowest = -1;
    MPI_Cart_rank(grid, first.data(), &lowest);
    CHECK_EQ(low, lowest);
    MPI_Comm_free(&part);
  }
  MPI_Comm copy;
  MPI_Comm_dup(grid, &copy);
  MPI_Comm_free(&grid);
  MPI_Topo_test(copy, &kind);
  CHECK_EQ(kind, MPI_CART);
  MPI_Comm_free(&copy);
}

}  // namespace

int main() {
  w = init();
  try_grid({1}, {0});
  try_grid({w.size}, {1});
  try_grid({w.size}, {0});
  if (w.size >= 4) {
    try_grid({2, 2}, {1, 0});
    try_grid({1, 3, 1}, {1, 1, 0});
    try_grid({2, 1, 2}, {0, 1, 1});
  }
  int kind = 0;
  MPI_Topo_test(MPI_COMM_WORLD, &kind);
  CHECK_EQ(kind, MPI_UNDEFINED);
  MPI_Comm none;
  CHECK_OK(MPI_Cart_create(MPI_COMM_WORLD, 0, nullptr, nullptr, 0, &none));  // one process, no dimension
  if (w.rank == 0) {
    int dims = -1, rank = -1;
    MPI_Cartdim_get(none, &dims);
    CHECK_EQ(dims, 0);
    if (!library_is_mpich()) {
      CHECK_OK(MPI_Cart_rank(none, nullptr, &rank));
      CHECK_EQ(rank, 0);
    }
    MPI_Comm_free(&none);
  } else {
    CHECK(none == MPI_COMM_NULL);
  }

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int too_many[] = {w.size + 1}, negative[] = {-1}, period[] = {0};
  int value = 0;
  none = MPI_COMM_WORLD;
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, too_many, period, 0, &none) != MPI_SUCCESS);
  CHECK(none == MPI_COMM_NULL);
  if (library_is_heddle()) CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 1, nullptr, period, 0, &none), MPI_ERR_ARG);
  if (!library_is_mpich()) CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, negative, period, 0, &none) != MPI_SUCCESS);
  CHECK_CLASS(MPI_Cartdim_get(MPI_COMM_WORLD, &value), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graphdims_get(MPI_COMM_WORLD, &value, &value), MPI_ERR_TOPOLOGY);
  return finish();
}
