// ranks: 1
// Datatypes beyond 2^31 elements and bytes: exact sizes through the large forms, MPI_UNDEFINED or an error through int,
// overflow of 63 bits refused; and a description of 10^9 blocks costs no memory in proportion.
#include <climits>

#include "../support.hpp"

using namespace test;

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const MPI_Count giga = 1000000000, many = 5 * giga;
  MPI_Datatype t, u;
  MPI_Count size, lb, extent;
  int small;

  CHECK_OK(MPI_Type_contiguous_c(many, MPI_INT, &t));
  CHECK_OK(MPI_Type_size_c(t, &size));
  CHECK_EQ(size, 4 * many);
  CHECK_OK(MPI_Type_size(t, &small));
  CHECK_EQ(small, MPI_UNDEFINED);
  CHECK_OK(MPI_Type_commit(&t));
  if (library_is_heddle()) {
    CHECK_OK(MPI_Pack_size(1, t, MPI_COMM_SELF, &small));
    CHECK_EQ(small, MPI_UNDEFINED);
  }
  CHECK_OK(MPI_Pack_size_c(2, t, MPI_COMM_SELF, &size));
  CHECK(size >= 8 * many);

  MPI_Status status = dirty_status();
  CHECK_OK(MPI_Status_set_elements_c(&status, MPI_INT, 3 * many));
  CHECK_OK(MPI_Get_elements_c(&status, t, &size));
  CHECK_EQ(size, 3 * many);
  CHECK_OK(MPI_Get_elements(&status, t, &small));
  CHECK_EQ(small, MPI_UNDEFINED);
  CHECK_OK(MPI_Get_count(&status, t, &small));
  CHECK_EQ(small, 3);
  CHECK_OK(MPI_Get_count(&status, MPI_INT, &small));
  CHECK_EQ(small, MPI_UNDEFINED);
  CHECK_OK(MPI_Get_count_c(&status, MPI_INT, &size));
  CHECK_EQ(size, 3 * many);
  CHECK_OK(MPI_Type_free(&t));

  // 10^9 blocks: made, committed and freed at once.
  CHECK_OK(MPI_Type_vector(static_cast<int>(giga), 1, 2, MPI_DOUBLE, &t));
  CHECK_OK(MPI_Type_commit(&t));
  CHECK_OK(MPI_Type_get_extent_c(t, &lb, &extent));
  CHECK_EQ(extent, 16 * giga - 8);
  CHECK_OK(MPI_Type_vector(100, 1, 3, t, &u));
  CHECK_OK(MPI_Type_commit(&u));
  CHECK_OK(MPI_Type_size_c(u, &size));
  CHECK_EQ(size, 800 * giga);
  CHECK_OK(MPI_Type_free(&u));
  CHECK_OK(MPI_Type_free(&t));

  CHECK_OK(MPI_Type_create_hvector_c(3, 1, -many, MPI_CHAR, &t));
  CHECK_OK(MPI_Type_get_true_extent_c(t, &lb, &extent));
  CHECK(lb == -2 * many && extent == 2 * many + 1);
  CHECK_OK(MPI_Type_free(&t));
  const MPI_Count lengths[] = {many, 1}, places[] = {0, 2 * many};
  CHECK_OK(MPI_Type_indexed_c(2, lengths, places, MPI_SHORT, &t));
  CHECK_OK(MPI_Type_size_c(t, &size));
  CHECK_EQ(size, 2 * many + 2);
  CHECK_OK(MPI_Type_free(&t));
  const MPI_Count sizes[] = {many, 4}, parts[] = {many - 1, 2}, starts[] = {1, 1};
  CHECK_OK(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
  CHECK_OK(MPI_Type_get_extent_c(t, &lb, &extent));
  CHECK(lb == 0 && extent == 16 * many);
  CHECK_OK(MPI_Type_size_c(t, &size));
  CHECK_EQ(size, 8 * (many - 1));
  CHECK_OK(MPI_Type_free(&t));

  CHECK_OK(MPI_Type_create_hvector_c(2, 1, 5 * giga, MPI_INT, &t));
  CHECK_OK(MPI_Type_commit(&t));
  CHECK_OK(MPI_Type_free(&t));

  if (library_is_heddle()) {  // MPICH 5.0.2 does not check
    CHECK_CLASS(MPI_Type_contiguous_c(LLONG_MAX / 4 + 1, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_vector_c(2, 1, LLONG_MAX / 2, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_hvector_c(4, 1, LLONG_MAX / 2, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_resized_c(MPI_INT, LLONG_MAX, 1, &t), MPI_ERR_ARG);
    const MPI_Count far[] = {LLONG_MIN + 8, LLONG_MAX - 8};
    CHECK_CLASS(MPI_Type_create_hindexed_block_c(2, 1, far, MPI_INT, &t), MPI_ERR_ARG);
    const MPI_Count huge[] = {LLONG_MAX / 2, 8}, one[] = {1, 1}, zero[] = {0, 0};
    CHECK_CLASS(MPI_Type_create_subarray_c(2, huge, one, zero, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_OK(MPI_Type_contiguous_c(LLONG_MAX / 8, MPI_INT, &t));
    CHECK_CLASS(MPI_Pack_size_c(4, t, MPI_COMM_SELF, &size), MPI_ERR_VALUE_TOO_LARGE);
    CHECK_OK(MPI_Type_free(&t));
    // 2^31 bytes of displacement through int arguments are no problem: the arithmetic is 64 bits wide.
    CHECK_OK(MPI_Type_vector(INT_MAX, 1, INT_MAX, MPI_CHAR, &t));
    CHECK_OK(MPI_Type_free(&t));
  }
  return finish();
}
