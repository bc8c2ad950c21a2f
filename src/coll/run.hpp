// From steps to an operation: at once, as a request, or as a persistent request.
#pragma once

#include "coll/steps.hpp"
#include "coll/turn.hpp"

namespace heddle::coll {

/// Runs a collective whose steps `build(Steps&)` gives, and returns its error code.
template <typename Build>
inline int run_blocking(Comm& comm, const char* name, Build&& build) noexcept {
  Turn turn(comm, name);
  if (const int taken = turn.refusal()) [[unlikely]]
    return taken;
  Steps steps(comm, name);
  build(steps);
  return turn.leave(name, steps.finish());
}

/// Starts the schedule and makes its request, or destroys it and returns `error` when that is not MPI_SUCCESS.
int launch(Schedule* schedule, int error, Finish finish, Request** request) noexcept;
/// Makes the inactive persistent request of a schedule.
int make_persistent(Schedule* schedule, int error, Request** request) noexcept;
[[gnu::cold]] int no_schedule_memory(const char* name) noexcept;

/// Records a collective and starts it.
template <typename Build>
inline int run_nonblocking(Comm& comm, const char* name, Request** request, Finish finish, Build&& build) noexcept {
  Turn turn(comm, name);
  if (const int taken = turn.refusal()) [[unlikely]]
    return taken;
  Schedule* schedule = Schedule::create(comm, name, false);
  if (!schedule) return turn.leave(name, no_schedule_memory(name));
  int error;
  {
    Steps steps(*schedule);
    build(steps);
    error = steps.finish();
  }
  return turn.leave(name, launch(schedule, error, finish, request));
}

/// Records a collective for MPI_Start.
template <typename Build>
inline int run_persistent(Comm& comm, const char* name, Request** request, Build&& build) noexcept {
  Turn turn(comm, name);
  if (const int taken = turn.refusal()) [[unlikely]]
    return taken;
  Schedule* schedule = Schedule::create(comm, name, true);
  if (!schedule) return turn.leave(name, no_schedule_memory(name));
  int error;
  {
    Steps steps(*schedule);
    build(steps);
    error = steps.finish();
  }
  return turn.leave(name, make_persistent(schedule, error, request));
}

}  // namespace heddle::coll
