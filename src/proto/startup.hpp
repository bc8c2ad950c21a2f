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

/// Delivers what is still queued here, then gives everything back. No operation of the user may be pending.
void stop_communication() noexcept;

}  // namespace heddle::proto
