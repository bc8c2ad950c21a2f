// ranks: 1 2
// timeout: 30
// endpoints: none (attributes that MPI_COMM_WORLD itself has)
// The attributes that every MPI has: where the value is, what it is, and that it cannot be changed.
#include "../support.hpp"

using namespace test;

namespace {

int value_of(int keyval, bool* there) {
  int *value = nullptr, flag = 0;
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
  *there = flag != 0;
  return flag ? *value : -1;
}

}  // namespace

int main() {
  const World w = init();
  bool there = false;
  const int tag_ub = value_of(MPI_TAG_UB, &there);
  CHECK(there);
  CHECK_GE(tag_ub, 32767);
  if (library_is_heddle()) CHECK_EQ(tag_ub, 2147483647);
  CHECK_EQ(value_of(MPI_IO, &there), MPI_ANY_SOURCE);
  CHECK(there);
  value_of(MPI_WTIME_IS_GLOBAL, &there);
  CHECK(there);
  CHECK_EQ(value_of(MPI_LASTUSEDCODE, &there), MPI_ERR_LASTCODE);
  const int appnum = value_of(MPI_APPNUM, &there);
  if (there) CHECK_EQ(appnum, 0);
  const int universe = value_of(MPI_UNIVERSE_SIZE, &there);
  if (there) CHECK_GE(universe, w.size);

  // Messages with the largest tag arrive.
  int out = w.rank, in = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, w.rank, tag_ub, &in, 1, MPI_INT, w.rank, tag_ub, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(in, w.rank);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int value = 5, keyval = MPI_TAG_UB;
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value) != MPI_SUCCESS);
  CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB) != MPI_SUCCESS);
  if (!library_is_mpich()) CHECK(MPI_Comm_free_keyval(&keyval) != MPI_SUCCESS);
  return finish();
}
