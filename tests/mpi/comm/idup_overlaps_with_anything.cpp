// ranks: 1 2 4
// timeout: 60
// Several MPI_Comm_idup are outstanding at once, beside messages and another collective, and complete in any order; each
// result is a communicator of its own. Attributes are those of the time of the call.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  constexpr int n = 8;
  MPI_Comm parent, copies[n];
  MPI_Request requests[n + 1];
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  int key = MPI_KEYVAL_INVALID, sum = 0;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  for (int i = 0; i < n; ++i) {
    MPI_Comm_set_attr(parent, key, reinterpret_cast<void*>(static_cast<std::intptr_t>(1000 + i)));
    CHECK_OK(MPI_Comm_idup(parent, &copies[i], &requests[i]));
    CHECK(copies[i] != MPI_COMM_NULL);
  }
  MPI_Comm_delete_attr(parent, key);
  CHECK_OK(MPI_Iallreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, parent, &requests[n]));
  for (int i = 0; i <= n; ++i)  // even ranks from the back: completion order is everyone's own
    CHECK_OK(MPI_Wait(&requests[w.rank % 2 ? i : n - i], MPI_STATUS_IGNORE));
  CHECK_EQ(sum, w.size * (w.size - 1) / 2);
  for (int i = 0; i < n; ++i) {
    int result = -1, flag = 0;
    MPI_Comm_compare(parent, copies[i], &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    void* value = nullptr;
    MPI_Comm_get_attr(copies[i], key, &value, &flag);
    CHECK(flag);
    CHECK_EQ(reinterpret_cast<std::intptr_t>(value), 1000 + i);
  }
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  int out[n], in[n];
  for (int i = 0; i < n; ++i) {
    out[i] = 10 * w.rank + i;
    MPI_Isend(&out[i], 1, MPI_INT, to, 0, copies[i], &requests[i]);
  }
  for (int i = n - 1; i >= 0; --i) {
    MPI_Recv(&in[i], 1, MPI_INT, from, 0, copies[i], MPI_STATUS_IGNORE);
    CHECK_EQ(in[i], 10 * from + i);
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  for (MPI_Comm& comm : copies) MPI_Comm_free(&comm);
  MPI_Comm_free(&parent);
  MPI_Comm_free_keyval(&key);
  return finish();
}
