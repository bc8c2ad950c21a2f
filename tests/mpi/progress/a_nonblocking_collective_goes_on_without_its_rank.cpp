// ranks: 4
// timeout: 90
// env: HEDDLE_PROGRESS=thread HEDDLE_SPIN_US=0
// A rank that has begun a nonblocking reduction and left MPI does its part: the others finish. With an operation of the program's that part is done
// by the program's own thread, wherever in MPI that is, and by no other.
#include <pthread.h>

#include "away.hpp"

using namespace test;

namespace {

pthread_t program;
std::atomic<int> calls{0};

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  CHECK(pthread_equal(pthread_self(), program));
  calls.fetch_add(1);
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
}

constexpr int length = 100;

struct Shared {
  std::atomic<int> begun, done;
};

}  // namespace

int main() {
  const World w = init();
  if (!library_is_heddle()) return finish();
  program = pthread_self();
  Shared& shared = share_past_mpi<Shared>(w);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  for (int round = 0; round < 8; ++round) {
    const bool by_program = round % 2;
    std::vector<int> mine(length, w.rank + round), all(length, -1);
    MPI_Request request;
    if (w.rank != 3) CHECK(away_until(shared.begun, round + 1));
    MPI_Iallreduce(mine.data(), all.data(), length, MPI_INT, by_program ? own : MPI_SUM, MPI_COMM_WORLD, &request);
    if (w.rank == 3) {
      shared.begun.store(round + 1);
      if (by_program) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what comes meanwhile would be the library's thread's to take; nothing depends on it
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, other, MPI_STATUS_IGNORE);
      } else {
        CHECK(away_until(shared.done, 3 * (round / 2 + 1)));
      }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (const int value : all) CHECK_EQ(value, 6 + 4 * round);
    if (w.rank != 3 && !by_program) shared.done.fetch_add(1);
    if (w.rank == 1 && by_program) MPI_Send(nullptr, 0, MPI_BYTE, 3, 0, other);
  }
  CHECK_GT(calls.load(), 0);
  MPI_Op_free(&own);
  MPI_Comm_free(&other);
  return finish();
}
