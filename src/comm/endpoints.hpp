// Endpoints: several ranks of one communicator in one process. \see docs/endpoints.md, ARCHITECTURE "Communicators, endpoints"
#pragma once

#include "core/comm.hpp"

namespace heddle {

/// Makes a communicator with `count` ranks of the calling member of `parent`, and stores its handles in `out[0..count)`: the ranks
/// are ordered by parent rank, then as in `out`. Collective over `parent`, an intracommunicator, whose members may be endpoints
/// themselves and may ask for different numbers, also for none. Every handle has a life of its own. Thread-safe. Error code; on an
/// error no handle is made here.
int create_endpoints(Comm& parent, int count, Info* info, Comm** out) noexcept;

}  // namespace heddle
