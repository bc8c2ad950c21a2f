// Bringing communication up and down, below the communicators.
#pragma once

#include <string>

namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::proto {

/// After the bootstrap, before the first communicator: shared memory, VCIs, limits. False: `problem` says why.
/// \pre runtime's ranks and thread level are set.
bool start_communication(const sys::Bootstrap& job, std::string& problem);

/// Returns when everything that was queued here is on its way to its receiver, and nobody waits for an answer to what came here.
/// \param for_good the world has been here and will not come again
void finish_sending(bool for_good) noexcept;
/// Undoes that: a session begins after the last one has ended.
void resume_communication() noexcept;

/// Gives everything back. No operation of the user may be pending. \pre finish_sending
void stop_communication() noexcept;

}  // namespace heddle::proto
