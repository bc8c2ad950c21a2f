#include "sys/bootstrap/patience.hpp"

#include <poll.h>

#include <cerrno>

#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle::sys::bootstrap {
namespace {

HEDDLE_PARAM_INT(start_timeout, "HEDDLE_START_TIMEOUT", 0, 0, 100'000'000,
                 "seconds that MPI_Init waits for the job's other ranks before it ends the job; 0: for ever, and after a minute a notice says so");

constexpr long long notice_after = 60;
constexpr long long silent_longer = 2;  ///< seconds longer for ranks that do not report, so that those that do are first

}  // namespace

long long Patience::configured_limit() noexcept { return start_timeout.value(); }

bool Patience::wait_on(std::string& error) {
  ++seconds_;
  if (limit_ > 0 && seconds_ >= limit_ + (speaks_ ? 0 : silent_longer)) {
    error = "rank " + std::to_string(rank_) + " has waited for " + std::to_string(limit_) + " s (HEDDLE_START_TIMEOUT) for the job's other ranks: not all " +
            std::to_string(size_) + " have come to MPI_Init. Some have not been started, are busy before MPI_Init, or their host cannot be reached";
    return false;
  }
  if (speaks_ && seconds_ == notice_after)
    notice("MPI_Init has waited for %lld s for the job's other ranks: not all %d have come to it. They have not been started yet, are busy before "
           "MPI_Init, or their host cannot be reached. HEDDLE_START_TIMEOUT=SECONDS ends such a job; by default it waits on.", seconds_, size_);
  return true;
}

bool Patience::await_input(int fd, std::string& error) {
  for (;;) {
    pollfd input{fd, POLLIN, 0};
    const int found = ::poll(&input, 1, 1000);
    if (found > 0 || (found < 0 && errno != EINTR)) return true;  // or there is an error, which reading finds too
    if (found == 0 && !wait_on(error)) return false;
  }
}

}  // namespace heddle::sys::bootstrap
