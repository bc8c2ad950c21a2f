// What the tests about children of fork() share.
#pragma once

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "../support.hpp"

namespace test {

inline void check_ended_well(pid_t child) {
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

// Programs started by system() and popen().
inline void check_programs_run() {
  CHECK_EQ(system("true"), 0);
  FILE* pipe = popen("echo word", "r");
  char word[16] = "";
  CHECK(pipe && fgets(word, sizeof word, pipe));
  CHECK_EQ(pclose(pipe), 0);
  CHECK_STR(word, "word\n");
}

}  // namespace test
