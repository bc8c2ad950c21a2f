// The library's life: from MPI_Init (or the first session) to MPI_Finalize.
#pragma once

#include "vci/runtime.hpp"

namespace heddle {

namespace sys {
struct Bootstrap;
}

enum class Phase : unsigned char { before_init, running, finalized };
/// Where the world model (MPI_Init) stands.
Phase world_phase() noexcept;
/// True while communication is possible: between MPI_Init and MPI_Finalize, or while a session is open.
bool is_running() noexcept;

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

/// What the launcher said. \pre is_running()
const sys::Bootstrap& job() noexcept;

/// True when the process runs on the same node as this one (shared memory reaches it).
bool is_local(ProcessIndex process) noexcept;
/// A number that is equal for exactly the processes of one node: this process'.
int own_node() noexcept;

}  // namespace heddle
