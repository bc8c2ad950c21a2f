// ranks: 1 2
// A child of fork() has its own copy of MPI_Alloc_mem memory: neither sees what the other writes. Programs started by system()
// and popen() leave it alone.
#include "forked.hpp"

using namespace test;

int main() {
  const World w = init();
  constexpr std::size_t bytes = 300'000;
  void* block = nullptr;
  void* later = nullptr;
  CHECK_OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block));
  fill(block, bytes, 1);

  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (first_wrong(block, bytes, 1) != bytes) _exit(1);
    fill(block, bytes, 2);
    _exit(first_wrong(block, bytes, 2) == bytes ? 0 : 2);
  }
  check_ended_well(child);
  CHECK_FILLED(block, bytes, 1);

  check_programs_run();
  CHECK_FILLED(block, bytes, 1);

  // The parent goes on as before, and its memory is still shared with its peers.
  CHECK_OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &later));
  const int peer = w.size - 1 - w.rank;
  MPI_Sendrecv(block, bytes, MPI_BYTE, peer, 0, later, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_FILLED(later, bytes, 1);
  CHECK_OK(MPI_Free_mem(block));
  CHECK_OK(MPI_Free_mem(later));
  return finish();
}
