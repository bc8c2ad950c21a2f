// ranks: 2
// timeout: 60
// env: HEDDLE_PROGRESS=thread
// Children that a rank forks end by exit, by _exit and by another program, while the parent's messages go on.
#include <sys/wait.h>

#include "away.hpp"

using namespace test;

int main() {
  const World w = init();
  if (!library_is_heddle()) return finish();
  for (int round = 0; round < 9; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      if (round % 3 == 0) std::exit(7);
      if (round % 3 == 1) _exit(7);
      execl("/bin/sh", "sh", "-c", "exit 7", static_cast<char*>(nullptr));
      _exit(1);
    }
    exchange_with_the_absent(w, 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(servers(), 1);
  }
  return finish();
}
