// ranks: 1 2
// timeout: 30
// MPI_Finalize begins with the delete callbacks of MPI_COMM_SELF, newest first, while MPI still works: they may communicate,
// and MPI_Finalized says no.
#include "../support.hpp"

using namespace test;

namespace {

thread_local std::vector<long> order;
thread_local World w;

int on_delete(MPI_Comm comm, int, void* value, void*) {
  int finalized = -1, result = 0;
  CHECK_OK(MPI_Comm_compare(comm, MPI_COMM_SELF, &result));
  CHECK_EQ(result, MPI_IDENT);
  MPI_Finalized(&finalized);
  CHECK_EQ(finalized, 0);
  const int one = 1;
  CHECK_OK(MPI_Allreduce(&one, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(result, w.size);
  order.push_back(static_cast<long>(reinterpret_cast<std::intptr_t>(value)));
  return MPI_SUCCESS;
}

}  // namespace

int main() {
  w = init();
  for (long n = 1; n <= 5; ++n) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, reinterpret_cast<void*>(static_cast<std::intptr_t>(n)));
    MPI_Comm_free_keyval(&key);
  }
  CHECK_OK(MPI_Finalize());
  const std::vector<long> wanted{5, 4, 3, 2, 1};
  if (order != wanted) return 1;
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized ? 0 : 1;
}
