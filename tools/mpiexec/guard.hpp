#pragma once

#include <sys/types.h>

#include <string>

namespace heddle::mpiexec {

/// A small process beside the launcher, for the one case that the launcher cannot handle: its own `kill -9`. It then
/// kills every rank's process group, and everything else that carries the job's id in its environment.
///
/// Ranks themselves die with the launcher by PR_SET_PDEATHSIG; this is for what they have started.
class Guard {
 public:
  /// Forks the guard. Call before any rank exists. Without memory or processes for it the job runs unguarded.
  Guard(const std::string& job_id, int ranks);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { dismiss(); }

  /// Makes the process group of `rank` known; 0 once it is no more.
  void set_group(int rank, pid_t group);

  /// Ends and collects the guard process, which is no longer needed.
  void dismiss();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;            ///< the guard waits for its end
  pid_t* groups_ = nullptr;  ///< shared with the guard, one per rank
  std::size_t bytes_ = 0;
};

/// Kills all children of this process (with a subreaper: all descendants, as they become children one generation
/// after the other) by `signal`. One pass; false when there was none left.
bool signal_children(int signal, pid_t except);

}  // namespace heddle::mpiexec
