// Before a process says that a peer is gone.
#pragma once

#include "transport/address.hpp"

namespace heddle::net {

/// Delays the report. The usual cause is that the peer's process has died; the launcher sees that at the same time, knows why, and ends the job
/// meanwhile. Where it does not, the delay differs from rank to rank, so that the first to report ends the job.
void await_the_launcher(ProcessIndex self) noexcept;

}  // namespace heddle::net
