// ranks: 2
// threads: 2
// timeout: 60
// launcher: own (its words)
// endpoints: none (the death of a process)
// expect: fail "rank 1 .*was killed by signal 9"
// A rank that is killed while large messages stream to it ends the job with what happened to it, not with what its peer saw.
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  constexpr int bytes = 32 << 20;
  std::vector<unsigned char> buffer(bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  std::thread killer;
  if (w.rank == 1)
    killer = std::thread([] {
      usleep(100'000);  // some messages later: in whatever state it finds them
      raise(SIGKILL);
    });
  for (;;) {
    if (w.rank == 0) MPI_Send(buffer.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(buffer.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}
