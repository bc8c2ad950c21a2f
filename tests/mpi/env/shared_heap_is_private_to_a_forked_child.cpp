// ranks: 1 2
// env: HEDDLE_SHARED_HEAP=1
// With HEDDLE_SHARED_HEAP=1 a child of fork() has its own copy of the heap and can allocate and free; neither sees what the other
// writes; programs started by system() and popen() run; the parent's messages go on.
#include "forked.hpp"

using namespace test;

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 77;  // sanitizers replace malloc themselves
#endif
  constexpr std::size_t bytes = 3 << 20;
  auto* block = static_cast<unsigned char*>(malloc(bytes));
  auto* freed = static_cast<unsigned char*>(malloc(bytes));
  const World w = init();
  fill(block, bytes, 1);
  fill(freed, bytes, 9);
  free(freed);

  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (first_wrong(block, bytes, 1) != bytes) _exit(1);
    fill(block, bytes, 2);
    std::vector<unsigned char*> more;
    for (int i = 0; i < 8; ++i) {
      more.push_back(static_cast<unsigned char*>(malloc(bytes)));
      fill(more.back(), bytes, 3);
    }
    block = static_cast<unsigned char*>(realloc(block, 2 * bytes));
    if (first_wrong(block, bytes, 2) != bytes) _exit(2);
    for (auto* one : more) free(one);
    free(block);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(system("true") == 0 ? 0 : 3);
    int status = -1;
    _exit(waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 4);
  }
  auto* reused = static_cast<unsigned char*>(malloc(bytes));  // while the child runs
  fill(reused, bytes, 7);
  check_ended_well(child);
  CHECK_FILLED(block, bytes, 1);
  CHECK_FILLED(reused, bytes, 7);

  check_programs_run();
  CHECK_FILLED(block, bytes, 1);

  const int peer = w.size - 1 - w.rank;
  MPI_Sendrecv(block, bytes, MPI_BYTE, peer, 0, reused, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_FILLED(reused, bytes, 1);
  free(block);
  free(reused);
  return finish();
}
