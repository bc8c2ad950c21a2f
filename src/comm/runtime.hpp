// The library's life: from MPI_Init (or the first session) to MPI_Finalize.
#pragma once

#include "core/runtime.hpp"

namespace heddle {

/// Brings the job up (bootstrap, segment, VCIs); counted: nested calls (sessions, world) return at once. Error code.
/// A level above the one in force raises it. Thread-safe.
int start_runtime(int required_thread_level) noexcept;
/// The last call tears everything down, after what this process has sent is on its way.
int stop_runtime() noexcept;

/// MPI_Init, MPI_Init_thread and MPI_Finalize. \see MPI-5.0 §11.2
int init_world(int required_thread_level) noexcept;
int finalize_world() noexcept;
/// The level that MPI_Init asks for (parameter HEDDLE_THREAD_LEVEL).
int default_thread_level() noexcept;

}  // namespace heddle
