// ranks: 1
// darray: hand-computed shares, and for many grids and distributions that the shares of all ranks cover every element
// exactly once, each in storage order, with the extent of the whole array.
#include "../support.hpp"

using namespace test;

namespace {

// The elements a type selects from `total` ints, in packing order.
std::vector<int> selected(MPI_Datatype type, int total) {
  std::vector<int> array(static_cast<std::size_t>(total)), out;
  for (int i = 0; i < total; ++i) array[static_cast<std::size_t>(i)] = i;
  int bytes = 0, position = 0;
  CHECK_OK(MPI_Type_commit(&type));
  CHECK_OK(MPI_Type_size(type, &bytes));
  out.resize(static_cast<std::size_t>(bytes) / sizeof(int));
  CHECK_OK(MPI_Pack(array.data(), 1, type, out.data(), bytes, &position, MPI_COMM_SELF));
  CHECK_EQ(position, bytes);
  return out;
}

// The index in one dimension that the standard gives to coordinate c: which coordinate owns element i.
int owner(int i, int size, int distribution, int argument, int processes) {
  if (distribution == MPI_DISTRIBUTE_NONE) return 0;
  int block = argument;
  if (argument == MPI_DISTRIBUTE_DFLT_DARG)
    block = distribution == MPI_DISTRIBUTE_BLOCK ? (size + processes - 1) / processes : 1;
  return distribution == MPI_DISTRIBUTE_BLOCK ? i / block : i / block % processes;
}

void cover(int ndims, const int* sizes, const int* distribs, const int* dargs, const int* grid, int order) {
  int ranks = 1, total = 1;
  for (int d = 0; d < ndims; ++d) ranks *= grid[d], total *= sizes[d];
  std::vector<std::vector<int>> expected(static_cast<std::size_t>(ranks));
  for (int e = 0; e < total; ++e) {
    // Index of element e in each dimension, then the owner's rank in the row-major grid.
    std::vector<int> index(static_cast<std::size_t>(ndims));
    int rest = e;
    for (int k = 0; k < ndims; ++k) {
      const int d = order == MPI_ORDER_C ? ndims - 1 - k : k;
      index[static_cast<std::size_t>(d)] = rest % sizes[d];
      rest /= sizes[d];
    }
    int rank = 0;
    for (int d = 0; d < ndims; ++d)
      rank = rank * grid[d] + owner(index[static_cast<std::size_t>(d)], sizes[d], distribs[d], dargs[d], grid[d]);
    expected[static_cast<std::size_t>(rank)].push_back(e);
  }
  for (int r = 0; r < ranks; ++r) {
    MPI_Datatype t;
    MPI_Aint lb, extent;
    CHECK_OK(MPI_Type_create_darray(ranks, r, ndims, sizes, distribs, dargs, grid, order, MPI_INT, &t));
    CHECK_OK(MPI_Type_get_extent(t, &lb, &extent));
    CHECK_EQ(lb, 0);
    CHECK_EQ(extent, total * static_cast<MPI_Aint>(sizeof(int)));
    CHECK(selected(t, total) == expected[static_cast<std::size_t>(r)]);
    CHECK_OK(MPI_Type_free(&t));
  }
}

}  // namespace

int main() {
  init();
  // A 5x6 array on a 2x3 grid, rank 4 = coordinates (1,1): rows 3 4 (block of 3), columns 1 4 (cyclic by 1).
  {
    const int sizes[] = {5, 6}, grid[] = {2, 3}, distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
              dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Datatype t;
    CHECK_OK(MPI_Type_create_darray(6, 4, 2, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_INT, &t));
    CHECK(selected(t, 30) == (std::vector<int>{19, 22, 25, 28}));
    CHECK_OK(MPI_Type_free(&t));
    // In Fortran order the first dimension is the fast one: rows 3 4 of columns 1 4.
    CHECK_OK(MPI_Type_create_darray(6, 4, 2, sizes, distribs, dargs, grid, MPI_ORDER_FORTRAN, MPI_INT, &t));
    CHECK(selected(t, 30) == (std::vector<int>{8, 9, 23, 24}));
    CHECK_OK(MPI_Type_free(&t));
  }
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const int ndims = random.between(1, 4);
    int sizes[4], distribs[4], dargs[4], grid[4];
    for (int d = 0; d < ndims; ++d) {
      sizes[d] = random.between(1, ndims > 2 ? 7 : 20);
      distribs[d] = MPI_DISTRIBUTE_BLOCK + random.between(-1, 1);
      grid[d] = distribs[d] == MPI_DISTRIBUTE_NONE ? 1 : random.between(1, 3);
      dargs[d] = MPI_DISTRIBUTE_DFLT_DARG;
      if (distribs[d] == MPI_DISTRIBUTE_CYCLIC && random.between(0, 1)) dargs[d] = random.between(1, 4);
      if (distribs[d] == MPI_DISTRIBUTE_BLOCK && random.between(0, 1))
        dargs[d] = (sizes[d] + grid[d] - 1) / grid[d] + random.between(0, 2);
    }
    cover(ndims, sizes, distribs, dargs, grid, random.between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN);
  }
  return finish();
}
