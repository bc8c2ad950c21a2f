// ranks: 1 2 3
// timeout: 120
// threads: 4
// Four threads make, use and free communicators at once, each out of its own parent: dup, idup, split, create, with and
// without attributes. Nothing meets anything of another thread.
#include "../support.hpp"

using namespace test;

namespace {

int copy_number(MPI_Comm, int, void*, void* in, void* out, int* flag) {
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

void exercise(MPI_Comm parent, int thread, const World& w, int key) {
  for (int round = 0; round < 60; ++round) {
    MPI_Comm_set_attr(parent, key, reinterpret_cast<void*>(static_cast<std::intptr_t>(thread * 100000 + round)));
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request;
    switch (round % 4) {
      case 0: CHECK_OK(MPI_Comm_dup(parent, &comm)); break;
      case 1:
        CHECK_OK(MPI_Comm_idup(parent, &comm, &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
      case 2: CHECK_OK(MPI_Comm_split(parent, 0, w.size - w.rank, &comm)); break;
      default: {
        MPI_Group group;
        MPI_Comm_group(parent, &group);
        CHECK_OK(MPI_Comm_create(parent, group, &comm));
        MPI_Group_free(&group);
      }
    }
    if (round % 4 < 2) {
      void* value = nullptr;
      int flag = 0;
      MPI_Comm_get_attr(comm, key, &value, &flag);
      CHECK(flag);
      CHECK_EQ(reinterpret_cast<std::intptr_t>(value), thread * 100000 + round);
    }
    int rank = -1, mine = thread * 1000 + round, all = -1;
    MPI_Comm_rank(comm, &rank);
    CHECK_EQ(rank, round % 4 == 2 ? w.size - 1 - w.rank : w.rank);
    CHECK_OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, comm));
    CHECK_EQ(all, mine);
    CHECK_OK(MPI_Comm_free(&comm));
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  constexpr int n = 4;
  MPI_Comm parents[n];
  int key;
  MPI_Comm_create_keyval(copy_number, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  for (MPI_Comm& parent : parents) MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t) threads.emplace_back(exercise, parents[t], t, w, key);
  for (std::thread& thread : threads) thread.join();
  for (MPI_Comm& parent : parents) MPI_Comm_free(&parent);
  MPI_Comm_free_keyval(&key);
  return finish();
}
