// Sessions; MPI_Init is one too. \see MPI-5.0 §11.3
#pragma once

#include "core/group.hpp"
#include "core/info.hpp"
#include "core/session.hpp"

namespace heddle {

/// Opens a session: starts the library when nobody has yet. Thread-safe.
int open_session(Info* info, Errhandler* errhandler, Session** session) noexcept;
/// Closes it; the last user of the library stops it.
int close_session(Session* session) noexcept;
/// The hints in force: thread_level, mpi_memory_alloc_kinds. A new object, nullptr when memory is out.
Info* session_info(const Session& session) noexcept;

/// Process sets: mpi://WORLD and mpi://SELF always, in this order.
int process_set_count() noexcept;
/// The name of set `n`, or nullptr.
const char* process_set_name(int n) noexcept;
/// The group of the named set (a new object), or an error that names it.
int process_set_group(const char* name, Group** group) noexcept;
/// mpi_size and what else is known of the set.
int process_set_info(const char* name, Info** info) noexcept;

}  // namespace heddle
