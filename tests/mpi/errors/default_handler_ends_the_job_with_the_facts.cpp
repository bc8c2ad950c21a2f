// ranks: 2
// timeout: 30
// expect: fail "(?s)(?=.*4096)(?=.*\b16\b)(?=.*\b23\b)(?i:.*truncat)"
// Without a handler of its own a program dies of a truncated message, on all ranks, with a text that holds both sizes
// and the tag. Rank 0 waits for a message that never comes: it must be ended too.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  std::vector<char> data(4096);
  if (w.rank == 0) {
    MPI_Send(data.data(), 4096, MPI_BYTE, 1, 23, MPI_COMM_WORLD);
    MPI_Recv(data.data(), 4096, MPI_BYTE, 1, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data.data(), 16, MPI_BYTE, 0, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return finish();  // not reached
}
