#pragma once

#include <string>

#include "sys/bootstrap/bootstrap.hpp"

namespace heddle::sys::bootstrap {

/// Whether this rank is one of those that say that they wait in a fence: the first, and one of another host, for the first may be beyond
/// a cable that is cut.
inline bool speaks_in_fences(const Bootstrap& job) noexcept { return job.rank == 0 || (job.rank == job.size / 2 && !job.is_local(0)); }

/// One wait of MPI_Init for the other ranks of the job (a fence). A rank that comes late is no fault: a big job takes its time, and a program may
/// compute for an hour before MPI_Init. But one whose host has lost its cable never comes, and not every launcher notices that. So after a minute
/// one rank says for whom it waits, and HEDDLE_START_TIMEOUT, where it is set, ends the wait.
///
/// Counts seconds in which this process ran, not those of a clock: a job that was stopped and goes on has lost none.
class Patience {
 public:
  /// \param speaks see speaks_in_fences
  /// \param limit seconds; 0: for ever
  Patience(int rank, int size, bool speaks, long long limit = configured_limit()) noexcept
      : rank_(rank), size_(size), speaks_(speaks), limit_(limit) {}

  /// Another second was waited in vain. False: it was the last one, and `error` is for the user.
  [[nodiscard]] bool wait_on(std::string& error);

  /// Waits until there is something to be read from `fd`. False as `wait_on`.
  [[nodiscard]] bool await_input(int fd, std::string& error);

 private:
  const int rank_, size_;
  static long long configured_limit() noexcept;

  const bool speaks_;
  const long long limit_;
  long long seconds_ = 0;
};

}  // namespace heddle::sys::bootstrap
