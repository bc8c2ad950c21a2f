// ranks: 2
// timeout: 60
// endpoints: none (MPI_Finalize is the processes' own)
// Messages that nobody receives are cancelled while their receiver is in MPI_Finalize already: it answers, and leaves when nothing that
// could be cancelled is left. Whoever is in MPI_Finalize without having cancelled holds up nobody.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  int one = 1, two = 2;
  std::vector<char> large(1 << 20);
  MPI_Request requests[4];
  MPI_Barrier(MPI_COMM_WORLD);
  // Rank 1 does what a program should not: a send whose end it does not wait for.
  if (w.rank == 1) {
    MPI_Isend(large.data(), 1 << 20, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return finish();
  }
  MPI_Recv(&one, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Issend(&one, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(large.data(), 1 << 20, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Issend(large.data(), 20'000, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Send(&two, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  // Long enough, mostly, for rank 1 to be in MPI_Finalize; otherwise it is on its way there.
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < 0.2) {
    int done = 1;
    MPI_Testany(3, requests, &two, &done, MPI_STATUS_IGNORE);
    CHECK_EQ(done, 0);
  }
  for (int i = 0; i < 3; ++i) {
    MPI_Cancel(&requests[i]);
    MPI_Status status;
    MPI_Wait(&requests[i], &status);
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
  }
  return finish();
}
