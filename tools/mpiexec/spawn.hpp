#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "job.hpp"
#include "sys/topology.hpp"

/// Turning one rank into a process.
namespace heddle::mpiexec {

/// What all ranks have in common.
struct SpawnSettings {
  sigset_t signal_mask;  ///< as the launcher was started with, restored for the ranks
  rlimit descriptors;    ///< likewise
  pid_t launcher;
};

/// One process to start. Strings are borrowed.
struct ProcessPlan {
  const char* path;
  std::vector<char*> arguments;     ///< ends with nullptr
  std::vector<char*> environment;   ///< ends with nullptr
  const char* directory = nullptr;  ///< nullptr: the launcher's
  int standard[3] = {-1, -1, -1};   ///< descriptors that become 0, 1, 2; -1: as the launcher's
  struct Kept {
    int from, to;
  };
  std::vector<Kept> keep;  ///< further descriptors the rank gets, and under which numbers
  const sys::CoreSet* cores = nullptr;
};

/// Why a process could not be started: the step and errno.
struct SpawnFailure {
  enum class Step { none, fork, directory, binding, descriptors, exec } step = Step::none;
  int error = 0;
};

/// Starts the process in a process group of its own, to be killed when the launcher dies. Returns its id, or -1 and
/// `failure`. The launcher stands still until the program has been loaded (vfork): no page tables are copied and
/// failures are known at once.
pid_t spawn(const ProcessPlan& plan, const SpawnSettings& settings, SpawnFailure& failure);

/// The file that `program` names for a process in `directory`: itself when it has a slash, else the first hit in
/// `search_path` and PATH. Empty, with a text for the user and an exit code (127 not found, 126 not executable).
struct Program {
  std::string path;
  std::string problem;
  int exit_code = 0;
};
Program find_program(const std::string& program, const std::string& directory, const std::string& search_path);

/// The explanation of a failure of `spawn`, for the user, and the exit code that shells give it.
std::string explain(const SpawnFailure& failure, const App& app, const std::string& path, int& exit_code);

/// True for a text file without `#!`, which a shell is expected to run.
bool is_shell_text(const std::string& path);

/// The variables a rank of `app` starts with, without those that describe another job.
std::vector<std::string> make_environment(const App& app);

/// Adds libheddle_heap.so to LD_PRELOAD when the environment asks for it (HEDDLE_SHARED_HEAP). Returns what is wrong, if anything.
std::string preload_shared_heap(std::vector<std::string>& environment);

}  // namespace heddle::mpiexec
