// What the chapters share about requests at the edge.
#pragma once

#include "core/comm.hpp"
#include "proto/p2p.hpp"

namespace heddle::mpi {

/// Raises `code` on `comm` if it is still a communicator, else on the default handler.
int blame_comm(Comm* comm, int code) noexcept;

}  // namespace heddle::mpi
