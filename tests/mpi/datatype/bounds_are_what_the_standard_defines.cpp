// ranks: 1
// Sizes, lower bounds, extents and true extents of every constructor, computed by hand.
#include "../support.hpp"

using namespace test;

namespace {

struct Bounds {
  MPI_Count size, lb, extent, true_lb, true_extent;
};

// Checks one type through all the forms of the inquiry functions, and frees it.
void expect(const char* what, MPI_Datatype type, Bounds b) {
  int size = -1;
  MPI_Count big = -1, lb = -1, extent = -1;
  MPI_Aint alb = -1, aextent = -1;
  CHECK_OK(MPI_Type_size(type, &size));
  if (size != b.size) fprintf(stderr, "%s:\n", what);
  CHECK_EQ(size, b.size);
  CHECK_OK(MPI_Type_size_c(type, &big));
  CHECK_EQ(big, b.size);
  CHECK_OK(MPI_Type_size_x(type, &big));
  CHECK_EQ(big, b.size);

  CHECK_OK(MPI_Type_get_extent(type, &alb, &aextent));
  if (alb != b.lb || aextent != b.extent) fprintf(stderr, "%s:\n", what);
  CHECK_EQ(alb, b.lb);
  CHECK_EQ(aextent, b.extent);
  CHECK_OK(MPI_Type_get_extent_c(type, &lb, &extent));
  CHECK(lb == b.lb && extent == b.extent);
  lb = extent = -1;
  CHECK_OK(MPI_Type_get_extent_x(type, &lb, &extent));
  CHECK(lb == b.lb && extent == b.extent);

  CHECK_OK(MPI_Type_get_true_extent(type, &alb, &aextent));
  if (alb != b.true_lb || aextent != b.true_extent) fprintf(stderr, "%s:\n", what);
  CHECK_EQ(alb, b.true_lb);
  CHECK_EQ(aextent, b.true_extent);
  CHECK_OK(MPI_Type_get_true_extent_c(type, &lb, &extent));
  CHECK(lb == b.true_lb && extent == b.true_extent);
  lb = extent = -1;
  CHECK_OK(MPI_Type_get_true_extent_x(type, &lb, &extent));
  CHECK(lb == b.true_lb && extent == b.true_extent);
  CHECK_OK(MPI_Type_free(&type));
  CHECK(type == MPI_DATATYPE_NULL);
}

MPI_Datatype record(std::vector<MPI_Datatype> types, std::vector<MPI_Aint> at, std::vector<int> lengths = {}) {
  if (lengths.empty()) lengths.assign(types.size(), 1);
  MPI_Datatype t;
  CHECK_OK(MPI_Type_create_struct(static_cast<int>(types.size()), lengths.data(), at.data(), types.data(), &t));
  return t;
}

}  // namespace

int main() {
  init();
  MPI_Datatype t, u;

  CHECK_OK(MPI_Type_contiguous(5, MPI_DOUBLE, &t));
  expect("contiguous", t, {40, 0, 40, 0, 40});
  CHECK_OK(MPI_Type_contiguous(0, MPI_DOUBLE, &t));
  expect("contiguous of nothing", t, {0, 0, 0, 0, 0});

  CHECK_OK(MPI_Type_vector(3, 2, 4, MPI_INT, &t));
  expect("vector", t, {24, 0, 40, 0, 40});
  CHECK_OK(MPI_Type_vector(3, 2, -4, MPI_INT, &t));
  expect("vector with a negative stride", t, {24, -32, 40, -32, 40});
  CHECK_OK(MPI_Type_vector(0, 2, 4, MPI_INT, &t));
  expect("vector without blocks", t, {0, 0, 0, 0, 0});
  CHECK_OK(MPI_Type_create_hvector(3, 2, 16, MPI_INT, &t));
  expect("hvector", t, {24, 0, 40, 0, 40});
  CHECK_OK(MPI_Type_create_hvector(4, 1, 0, MPI_SHORT, &t));
  expect("hvector with stride 0", t, {8, 0, 2, 0, 2});

  const int lengths[] = {2, 0, 1}, places[] = {5, 100, -3};
  CHECK_OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &t));
  expect("indexed", t, {12, -12, 40, -12, 40});
  const MPI_Aint addresses[] = {20, 400, -12};
  CHECK_OK(MPI_Type_create_hindexed(3, lengths, addresses, MPI_INT, &t));
  expect("hindexed", t, {12, -12, 40, -12, 40});
  const int blocks[] = {5, 9, -3};
  CHECK_OK(MPI_Type_create_indexed_block(3, 2, blocks, MPI_INT, &t));
  expect("indexed_block", t, {24, -12, 56, -12, 56});
  const MPI_Aint hblocks[] = {20, 36, -12};
  CHECK_OK(MPI_Type_create_hindexed_block(3, 2, hblocks, MPI_INT, &t));
  expect("hindexed_block", t, {24, -12, 56, -12, 56});

  struct CharDouble {
    char c;
    double d;
    char e;
  };
  expect("struct, padded like a C struct", record({MPI_CHAR, MPI_DOUBLE, MPI_CHAR}, {0, 8, 16}),
         {10, 0, sizeof(CharDouble), 0, 17});
  expect("struct with an empty member", record({MPI_INT, MPI_CHAR}, {4, 8}, {0, 1}), {1, 8, 1, 8, 1});
  expect("struct without members", record({}, {}), {0, 0, 0, 0, 0});

  CHECK_OK(MPI_Type_create_resized(MPI_INT, -4, 16, &t));
  CHECK_OK(MPI_Type_dup(t, &u));
  expect("resized", t, {4, -4, 16, 0, 4});
  CHECK_OK(MPI_Type_vector(3, 2, 4, u, &t));  // markers at 0, 16; 64, 80; 128, 144
  expect("vector of a resized type", t, {24, -4, 160, 0, 148});
  CHECK_OK(MPI_Type_create_resized(u, 0, 4, &t));
  expect("resized back", t, {4, 0, 4, 0, 4});
  expect("a duplicate of a resized type, after the original", u, {4, -4, 16, 0, 4});

  CHECK_OK(MPI_Type_contiguous(0, MPI_INT, &u));
  CHECK_OK(MPI_Type_create_resized(u, 3, 10, &t));
  expect("resized empty type", t, {0, 3, 10, 0, 0});
  CHECK_OK(MPI_Type_free(&u));

  if (!library_is_mpich()) {
    // Marks hide data (MPI-5.0 section 5.1, definition of lb and ub); MPICH 5.0.2 takes the data into account.
    CHECK_OK(MPI_Type_create_resized(MPI_INT, -4, 16, &u));
    expect("struct of a resized type and a far int", record({u, MPI_INT}, {0, 100}), {8, -4, 16, 0, 104});
    CHECK_OK(MPI_Type_free(&u));
    // The extent is rounded up to the alignment whatever the constructor; MPICH 5.0.2 does so for structs only.
    CHECK_OK(MPI_Type_create_hvector(2, 1, 12, MPI_DOUBLE, &t));
    expect("hvector of doubles 12 bytes apart", t, {16, 0, 24, 0, 20});
    // Without entries there are no bounds; MPICH 5.0.2 counts the places of empty blocks.
    CHECK_OK(MPI_Type_vector(3, 0, 4, MPI_INT, &t));
    expect("vector of empty blocks", t, {0, 0, 0, 0, 0});
    // An empty member does not count; MPICH 5.0.2 counts its displacement.
    CHECK_OK(MPI_Type_contiguous(0, MPI_INT, &u));
    expect("struct with a member without data", record({u, MPI_INT}, {4, 100}), {4, 100, 4, 100, 4});
    CHECK_OK(MPI_Type_free(&u));
  }

  const int sizes[] = {6, 5, 4}, parts[] = {3, 2, 2}, starts[] = {1, 2, 1};
  CHECK_OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
  // first element (1*5+2)*4+1 = 29, last (3*5+3)*4+2 = 74
  expect("subarray in C order", t, {48, 0, 480, 116, 184});
  CHECK_OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &t));
  // first element 1+6*(2+5*1) = 43, last 3+6*(3+5*2) = 81
  expect("subarray in Fortran order", t, {48, 0, 480, 172, 156});
  return finish();
}
