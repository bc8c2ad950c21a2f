// ranks: 2
// threads: 2
// timeout: 30
// endpoints: none (it has threads of its own)
// expect: fail "MPI_Barrier.*halo.*another thread is in MPI_Allreduce.*MPI_Comm_dup"
// Two threads in collectives of one communicator at once: the program ends at once with a sentence that names the call,
// the communicator, what the other thread is doing, and the remedy; it does not hang.
#include <atomic>

#include "../threads/team.hpp"

using namespace test;

namespace {

std::atomic<bool> inside{false};

// Runs inside MPI_Allreduce, and stays there.
void never_ends(void*, void*, int*, MPI_Datatype*) {
  inside.store(true, std::memory_order_release);
  for (;;) pause();
}

}  // namespace

int main() {
  const World w = init_threads();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "halo");
  MPI_Op op;
  MPI_Op_create(never_ends, 1, &op);
  run_threads(2, [&](int t) {
    if (t == 0) {
      int one = 1, sum = 0;
      MPI_Allreduce(&one, &sum, 1, MPI_INT, op, comm);
    } else if (w.rank == 0) {
      CHECK(eventually([] { return inside.load(std::memory_order_acquire); }));
      MPI_Barrier(comm);
    }
  });
  return finish();  // not reached
}
