// ranks: 2
// threads: 3
// timeout: 40
// env: HEDDLE_SPIN_US=0 HEDDLE_SHM=0
// Threads asleep in a process with a network wake for messages from the network, from threads of their process, and for what was sent to
// another one of them. And the network wakes the thread that waits, not a helper who wakes it: counted in context switches.
// (A wake-up that is lost would cost a second, until the sleep ends by itself, and rounds enough for that would be too long.)
#include <sys/resource.h>

#include <chrono>

#include "team.hpp"

using namespace test;
using namespace std::chrono_literals;

namespace {

long sleeps_so_far() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

constexpr int single = 200, rounds = 60, team = 3;

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(team);
  MPI_Comm to_self;
  MPI_Comm_dup(MPI_COMM_SELF, &to_self);
  int value = 0;

  // One thread waits.
  MPI_Barrier(MPI_COMM_WORLD);
  const long before = sleeps_so_far();
  for (int i = 0; i < single; ++i) {
    if (w.rank == 0) {
      std::this_thread::sleep_for(1ms);
      MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(value, i);
    }
  }
  // The thread sleeps once for each message, and now and then the helper does, which sends confirmations. Woken by the helper it was three.
  if (w.rank == 1) CHECK_LT(sleeps_so_far() - before, single * 5 / 2);

  // All do: the first for the network, the second for the third, and the third for the first.
  if (w.rank == 0) {
    for (int i = 0; i < rounds; ++i) {
      std::this_thread::sleep_for(1ms);
      MPI_Send(&i, 1, MPI_INT, 1, i, comms[0]);
      std::this_thread::sleep_for(1ms);
      MPI_Recv(&value, 1, MPI_INT, 1, i, comms[1], MPI_STATUS_IGNORE);
      CHECK_EQ(value, i);
    }
  } else {
    run_threads(team, [&](int t) {
      int got = -1;
      for (int i = 0; i < rounds; ++i) {
        if (t == 0) MPI_Recv(&got, 1, MPI_INT, 0, i, comms[0], MPI_STATUS_IGNORE);
        else MPI_Recv(&got, 1, MPI_INT, 0, t * rounds + i, to_self, MPI_STATUS_IGNORE);
        CHECK_EQ(got, i);
        std::this_thread::sleep_for(200us);
        if (t == 0) MPI_Send(&i, 1, MPI_INT, 0, 2 * rounds + i, to_self);
        if (t == 2) MPI_Send(&i, 1, MPI_INT, 0, rounds + i, to_self);
        if (t == 1) MPI_Send(&i, 1, MPI_INT, 0, i, comms[1]);
      }
    });
  }
  comms.free();
  MPI_Comm_free(&to_self);
  return finish();
}
