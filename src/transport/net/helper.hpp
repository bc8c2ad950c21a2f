// The helper thread of a process with a network, which is there when nobody calls MPI: it sends what was gathered if nobody else does so for a
// while, and looks once a second whether peers are alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace heddle::net {

struct Common;

/// \param common valid until `stop_helper`. False: `problem` is for the user.
bool start_helper(Common& common, std::string& problem) noexcept;
void stop_helper() noexcept;
/// Makes it look at gathered messages soon. Thread-safe.
void wake_helper_to_flush() noexcept;

/// The helper's ticks so far: seconds in which this process ran. Relaxed: a count that orders nothing.
extern std::atomic<std::uint32_t> ticks;

}  // namespace heddle::net
