// From steps to an operation: at once, as a request, or as a persistent request.
#pragma once

#include "coll/steps.hpp"

namespace heddle::coll {

/// Runs a collective whose steps `build(Steps&)` gives, and returns its error code.
template <typename Build>
inline int run_blocking(Comm& comm, const char* name, Build&& build) noexcept {
  Steps steps(comm, name);
  build(steps);
  return steps.finish();
}

/// Starts the schedule and makes its request, or destroys it and returns `error` when that is not MPI_SUCCESS.
int launch(Schedule* schedule, int error, Finish finish, Request** request) noexcept;
/// Makes the inactive persistent request of a schedule.
int make_persistent(Schedule* schedule, int error, Request** request) noexcept;
[[gnu::cold]] int no_schedule_memory(const char* name) noexcept;

/// Records a collective and starts it.
template <typename Build>
inline int run_nonblocking(Comm& comm, const char* name, Request** request, Finish finish, Build&& build) noexcept {
  Schedule* schedule = Schedule::create(comm, name, false);
  if (!schedule) return no_schedule_memory(name);
  int error;
  {
    Steps steps(*schedule);
    build(steps);
    error = steps.finish();
  }
  return launch(schedule, error, finish, request);
}

/// Records a collective for MPI_Start.
template <typename Build>
inline int run_persistent(Comm& comm, const char* name, Request** request, Build&& build) noexcept {
  Schedule* schedule = Schedule::create(comm, name, true);
  if (!schedule) return no_schedule_memory(name);
  int error;
  {
    Steps steps(*schedule);
    build(steps);
    error = steps.finish();
  }
  return make_persistent(schedule, error, request);
}

}  // namespace heddle::coll
