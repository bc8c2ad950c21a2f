// Another process of this machine that takes part in nothing for a while.
#pragma once

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "../support.hpp"

namespace test {

// Ids of the processes of both ranks. Collective.
inline std::vector<pid_t> processes_of_world() {
  std::vector<pid_t> pids(static_cast<std::size_t>(world().size));
  pid_t own = getpid();
  MPI_Allgather(&own, sizeof own, MPI_BYTE, pids.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  return pids;
}

// Whether every thread of the process is stopped.
inline bool is_stopped(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  DIR* directory = opendir(tasks.c_str());
  CHECK(directory);
  bool all = true;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    std::FILE* file = std::fopen((tasks + "/" + entry->d_name + "/stat").c_str(), "r");
    char state = 'T';
    if (file && std::fscanf(file, "%*d %*[^)]) %c", &state) != 1) state = '?';
    if (file) std::fclose(file);
    all = all && state == 'T';
  }
  closedir(directory);
  return all;
}

// Returns when it is.
inline void stop(pid_t pid) {
  CHECK_EQ(kill(pid, SIGSTOP), 0);
  CHECK(eventually([&] { return is_stopped(pid); }));
}
inline void let_go_on(pid_t pid) { CHECK_EQ(kill(pid, SIGCONT), 0); }

}  // namespace test
