// What the files of the tool information interface share. MPI-5.0 section 15.3.
#pragma once

#include <mpi.h>

namespace heddle::mpi {

/// MPI_SUCCESS between MPI_T_init_thread and MPI_T_finalize, else MPI_T_ERR_NOT_INITIALIZED.
int tools_ready() noexcept;

/// Stores a result where the caller wants it: every OUT argument of MPI_T's get_info functions may be null.
template <typename T>
void give(T* place, T value) noexcept {
  if (place) *place = value;
}

/// Returns a string by MPI_T's rule: `*length` is the size of `buffer` on entry and the size needed, terminator included, on
/// return; with no buffer or a size of 0 only the size is returned.
void give_text(const char* text, char* buffer, int* length) noexcept;

}  // namespace heddle::mpi
