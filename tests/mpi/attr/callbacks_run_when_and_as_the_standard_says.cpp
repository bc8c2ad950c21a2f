// ranks: 1 2
// timeout: 30
// Copy callbacks run on dup, delete callbacks on free, delete and overwriting, with the handle they belong to; callbacks may
// call MPI on the very same communicator; one that fails makes the call fail with its code; a freed key stays alive as long as
// an attribute uses it.
#include "../support.hpp"

using namespace test;

namespace {

thread_local struct Log {
  int copies = 0, deletions = 0, result = MPI_SUCCESS;
  std::vector<long> deleted;
  MPI_Comm last = MPI_COMM_NULL;
} log_;

long number(void* value) { return static_cast<long>(reinterpret_cast<std::intptr_t>(value)); }
void* value_of(long n) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(n)); }

int on_copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  CHECK(extra == &log_);
  void* again = nullptr;
  int found = 0;
  CHECK_OK(MPI_Comm_get_attr(comm, key, &again, &found));  // MPI may be called here
  CHECK(found && again == in);
  ++log_.copies;
  *static_cast<void**>(out) = value_of(number(in) + 1);
  *flag = number(in) < 1000;
  return log_.result;
}

int on_delete(MPI_Comm comm, int, void* value, void* extra) {
  CHECK(extra == &log_);
  int rank = -1;
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  CHECK_OK(MPI_Comm_rank(comm, &rank));
  CHECK_OK(MPI_Comm_get_name(comm, name, &length));
  ++log_.deletions;
  log_.deleted.push_back(number(value));
  log_.last = comm;
  return log_.result;
}

long get(MPI_Comm comm, int key) {
  void* value = nullptr;
  int found = 0;
  CHECK_OK(MPI_Comm_get_attr(comm, key, &value, &found));
  return found ? number(value) : -1;
}

}  // namespace

int main() {
  init();
  MPI_Comm comm, copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int key, second, plain;
  CHECK_OK(MPI_Comm_create_keyval(on_copy, on_delete, &key, &log_));
  CHECK_OK(MPI_Comm_create_keyval(on_copy, on_delete, &second, &log_));
  CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain, nullptr));
  CHECK_EQ(get(comm, key), -1);
  MPI_Comm_set_attr(comm, key, value_of(10));
  MPI_Comm_set_attr(comm, key, value_of(20));
  CHECK_EQ(log_.deletions, 1);
  CHECK_EQ(log_.deleted.back(), 10);
  MPI_Comm_set_attr(comm, second, value_of(5000));
  MPI_Comm_set_attr(comm, plain, value_of(7));

  CHECK_OK(MPI_Comm_dup(comm, &copy));
  CHECK_EQ(log_.copies, 2);
  CHECK_EQ(get(copy, key), 21);
  CHECK_EQ(get(copy, second), -1);
  CHECK_EQ(get(copy, plain), -1);
  CHECK_EQ(get(comm, plain), 7);
  const MPI_Comm handle = copy;
  MPI_Comm_free(&copy);
  CHECK(log_.last == handle);
  CHECK_EQ(log_.deleted.back(), 21);

  // Splits and creations do not copy.
  MPI_Comm_split(comm, 0, 0, &copy);
  CHECK_EQ(log_.copies, 2);
  CHECK_EQ(get(copy, key), -1);
  MPI_Comm_free(&copy);

  // A copy callback that fails makes the duplication fail.
  log_.result = MPI_ERR_IO;
  copy = comm;
  CHECK_CLASS(MPI_Comm_dup(comm, &copy), MPI_ERR_IO);
  CHECK(copy == MPI_COMM_NULL);  // not what it was before
  CHECK_CLASS(MPI_Comm_delete_attr(comm, key), MPI_ERR_IO);
  if (!library_is_mpich()) {
    // On one rank only: the others get their communicator.
    int rank = -1;
    MPI_Comm_rank(comm, &rank);
    if (rank != 0) log_.result = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Comm_idup(comm, &copy, &request);
    CHECK_EQ(code != MPI_SUCCESS, rank == 0);
    log_.result = MPI_SUCCESS;
    if (rank != 0) {
      CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK_EQ(get(copy, key), 21);
      MPI_Comm_free(&copy);
    }
  }
  log_.result = MPI_SUCCESS;
  CHECK_EQ(get(comm, key), 20);

  const int old = key;
  CHECK_OK(MPI_Comm_free_keyval(&key));
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
  if (!library_is_mpich()) CHECK_CLASS(MPI_Comm_set_attr(comm, old, nullptr), MPI_ERR_KEYVAL);
  log_.deleted.clear();
  CHECK_OK(MPI_Comm_free(&comm));
  CHECK_EQ(log_.deleted.size(), 2u);
  if (!library_is_mpich()) CHECK(log_.deleted == (std::vector<long>{5000, 20}));  // newest first
  MPI_Comm_free_keyval(&second);
  MPI_Comm_free_keyval(&plain);
  return finish();
}
