#pragma once

#include <string>

#include "sys/bootstrap/bootstrap.hpp"

namespace heddle::sys::bootstrap {

/// Whether this rank reports that it waits in a fence: the first rank does, and one of another host, since the first may be behind a
/// broken cable.
inline bool speaks_in_fences(const Bootstrap& job) noexcept { return job.rank == 0 || (job.rank == job.size / 2 && !job.is_local(0)); }

/// One wait of MPI_Init for the other ranks of the job (a fence). A late rank is no fault: a large job starts slowly, and a program may compute for
/// an hour before MPI_Init. But a rank whose host is cut off never comes, and not every launcher notices that. So after a minute one rank
/// reports the wait, and HEDDLE_START_TIMEOUT, if set, ends it.
///
/// Counts seconds in which this process ran, not those of a clock: a job that was stopped and continued has lost none.
class Patience {
 public:
  /// \param speaks see speaks_in_fences
  /// \param limit seconds; 0: for ever
  Patience(int rank, int size, bool speaks, long long limit = configured_limit()) noexcept
      : rank_(rank), size_(size), speaks_(speaks), limit_(limit) {}

  /// Counts another second without an answer. False: the limit is reached, and `error` is for the user.
  [[nodiscard]] bool wait_on(std::string& error);

  /// Waits until `fd` is readable. False as `wait_on`.
  [[nodiscard]] bool await_input(int fd, std::string& error);

 private:
  const int rank_, size_;
  static long long configured_limit() noexcept;

  const bool speaks_;
  const long long limit_;
  long long seconds_ = 0;
};

}  // namespace heddle::sys::bootstrap
