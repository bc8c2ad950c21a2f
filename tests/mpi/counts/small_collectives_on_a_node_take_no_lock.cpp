// ranks: 2 3
// timeout: 60
// env: HEDDLE_SPIN_US=10000000
// binary: own (its instructions are counted)
// Barriers and 8-byte allreduces among ranks of a node, MPI_THREAD_MULTIPLE: no lock, no allocation, no system call,
// also not for making sure that no other thread is in a collective of the communicator. Two ranks need no atomic
// read-modify-write, more ranks one sequentially consistent store each, which this processor makes an exchange.
#include "counts.hpp"

using namespace test;

namespace {

struct Shared {
  std::atomic<int> entering[3];  // calls that a rank is about to make
};

}  // namespace

int main() {
  const World w = init_to_count();
  Shared& shared = share_past_mpi<Shared>(w);
  Communicators comms(1);
  double mine = w.rank + 1, sum = 0;
  for (int i = 1; i <= 60; ++i) {
    const bool reduces = i % 2;
    const auto call = [&] {
      if (reduces)
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comms[0]);
      else
        MPI_Barrier(comms[0]);
    };
    // The release pairs with the acquire: the rank whose turn it is comes last, when the others are there or nearly.
    const bool counted = i > 10 && i % w.size == w.rank;
    if (counted)
      for (int r = 0; r < w.size; ++r)
        CHECK(r == w.rank || eventually([&] { return shared.entering[r].load(std::memory_order_acquire) >= i; }));
    shared.entering[w.rank].store(i, std::memory_order_release);
    if (counted) {
      const Counts c = count(call);
      if (c.locks || c.atomics > (w.size > 2) || c.allocations || c.calls)
        check_fail(__FILE__, __LINE__,
                   "%s: %ld locks, %ld atomic operations, %ld allocations, %ld system calls in %ld "
                   "instructions",
                   reduces ? "MPI_Allreduce" : "MPI_Barrier", c.locks, c.atomics, c.allocations, c.calls,
                   c.instructions);
    } else {
      call();
    }
    if (reduces) CHECK_EQ(sum, w.size * (w.size + 1) / 2);
  }
  comms.free();
  return finish();
}
