// ranks: 2
// threads: 3
// timeout: 60
// Two threads of rank 0 wait for receives on a communicator that the first thread frees meanwhile. Some succeed, some are too short:
// these reach the communicator's own handler, each once, and none of another's.
#include "../support.hpp"

#include <atomic>
#include <thread>

using namespace test;

namespace {

std::atomic<int> failures{0}, wrong{0};  // relaxed: counted, read after the threads have been joined
void on_doomed(MPI_Comm*, int*, ...) { failures.fetch_add(1, std::memory_order_relaxed); }
void on_other(MPI_Comm*, int*, ...) { wrong.fetch_add(1, std::memory_order_relaxed); }

constexpr int rounds = 200, each = 8;

}  // namespace

int main() {
  const World w = init_threads();
  MPI_Errhandler doomed, other;
  MPI_Comm_create_errhandler(on_doomed, &doomed);
  MPI_Comm_create_errhandler(on_other, &other);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, other);
  const std::vector<char> payload(128);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, doomed);
    if (w.rank == 1) {
      MPI_Barrier(MPI_COMM_WORLD);
      for (int i = 0; i < 2 * each; ++i) MPI_Send(payload.data(), 128, MPI_CHAR, 0, i, comm);
      MPI_Comm_free(&comm);
      continue;
    }
    static char room[2 * each][128];
    MPI_Request requests[2 * each];
    for (int i = 0; i < 2 * each; ++i) MPI_Irecv(room[i], i % 2 ? 16 : 128, MPI_CHAR, 1, i, comm, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    std::thread waiters[2];
    for (int t = 0; t < 2; ++t)
      waiters[t] = std::thread([&, t] {
        for (int i = 0; i < each; ++i) MPI_Wait(&requests[t * each + i], MPI_STATUS_IGNORE);
      });
    MPI_Comm_free(&comm);
    for (std::thread& waiter : waiters) waiter.join();
  }
  if (w.rank == 0) CHECK_EQ(failures.load(std::memory_order_relaxed), rounds * each);
  CHECK_EQ(wrong.load(std::memory_order_relaxed), 0);
  MPI_Comm last;
  MPI_Comm_dup(MPI_COMM_WORLD, &last);
  if (library_is_heddle()) CHECK_LT(MPI_Comm_toint(last), 4096 + 256);
  MPI_Comm_free(&last);
  MPI_Errhandler_free(&doomed);
  MPI_Errhandler_free(&other);
  return finish();
}
