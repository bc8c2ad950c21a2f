// ranks: 1
// timeout: 30
// MPI_Win_create_keyval and MPI_Win_free_keyval work before there are windows; the keys are those of nothing else.
#include "../support.hpp"

using namespace test;

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int first = MPI_KEYVAL_INVALID, second = MPI_KEYVAL_INVALID, value = 0;
  CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &first, nullptr));
  CHECK_OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &second, &value));
  CHECK(first != MPI_KEYVAL_INVALID && second != MPI_KEYVAL_INVALID && first != second);
  CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, first, &value), MPI_ERR_KEYVAL);
  int same = first;
  CHECK_CLASS(MPI_Comm_free_keyval(&same), MPI_ERR_KEYVAL);
  CHECK_OK(MPI_Win_free_keyval(&first));
  CHECK_EQ(first, MPI_KEYVAL_INVALID);
  CHECK_CLASS(MPI_Win_free_keyval(&same), MPI_ERR_KEYVAL);
  CHECK_OK(MPI_Win_free_keyval(&second));
  return finish();
}
