// What the chapters share about requests at the edge.
#pragma once

#include "core/comm.hpp"
#include "proto/p2p.hpp"
#include "vci/vci.hpp"

namespace heddle::mpi {

/// Progress for a call that looks and returns: the VCI in question, and every VCI once in a while.
void progress_for_test(Vci& vci) noexcept;

/// Raises `code` on `comm` if it is still a communicator, else on the default handler.
int blame_comm(Comm* comm, int code) noexcept;

}  // namespace heddle::mpi
