// What the library keeps in the private part of an MPI_Status. It is aligned to 4 bytes only, so 64-bit fields are copied.
#pragma once

#include <mpi.h>

#include <cstring>

namespace heddle {

/// MPI_internal: [0..1] the byte count of the received data, [2] the cancelled flag, [3..4] zero.
inline MPI_Count status_bytes(const MPI_Status& status) noexcept {
  MPI_Count bytes;
  std::memcpy(&bytes, &status.MPI_internal[0], sizeof bytes);
  return bytes;
}
inline void set_status_bytes(MPI_Status& status, MPI_Count bytes) noexcept {
  std::memcpy(&status.MPI_internal[0], &bytes, sizeof bytes);
}
inline bool status_cancelled(const MPI_Status& status) noexcept { return status.MPI_internal[2] != 0; }
inline void set_status_cancelled(MPI_Status& status, bool flag) noexcept { status.MPI_internal[2] = flag; }

/// Describes an operation to a user who may not want to know (MPI_STATUS_IGNORE). MPI_ERROR stays as it is.
inline void fill_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled = false) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  set_status_bytes(*status, bytes);
  set_status_cancelled(*status, cancelled);
}

}  // namespace heddle
