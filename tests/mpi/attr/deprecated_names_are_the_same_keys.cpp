// ranks: 1
// timeout: 30
// The MPI-1 names for attributes work on the same keys as the new ones.
#include "../support.hpp"

using namespace test;

int main() {
  init();
  int key = MPI_KEYVAL_INVALID, flag = 0, number = 42;
  void* value = nullptr;
  CHECK_OK(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, nullptr));
  CHECK_OK(MPI_Attr_put(MPI_COMM_SELF, key, &number));
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
  CHECK(flag && value == &number);
  CHECK_OK(MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag));
  CHECK(flag && value == &number);
  CHECK_OK(MPI_Attr_delete(MPI_COMM_SELF, key));
  CHECK_OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
  CHECK(!flag);
  CHECK_OK(MPI_Keyval_free(&key));
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
  return finish();
}
