// MPI_Comm_split_type: communicators of the processes that share a piece of hardware.
#pragma once

#include "core/comm.hpp"

namespace heddle::mpi {

/// `*out` is nullptr where MPI returns MPI_COMM_NULL. Collective over `parent`. \see MPI-5.0 §7.4.2
int split_by_type(Comm& parent, int split_type, int key, Info* info, Comm** out) noexcept;

}  // namespace heddle::mpi
