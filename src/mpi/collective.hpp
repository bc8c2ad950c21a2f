// What the functions of MPI-5.0 chapter 6 have in common: their three forms, and what is wrong with arguments. What they do is in
// coll/algorithms.hpp.
#pragma once

#include <cstdint>

#include "coll/algorithms.hpp"
#include "coll/run.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

using coll::in_place;
using coll::Steps;

/// The three forms: MPI_X, MPI_Ix, MPI_X_init. Each takes the communicator, the function's name and what gives the steps.
struct Blocking {
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    return coll::run_blocking(comm, name, build);
  }
};
struct Nonblocking {
  MPI_Request* request;
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    Request* made = nullptr;
    const int code = coll::run_nonblocking(comm, name, &made, {}, build);
    if (code == MPI_SUCCESS) *request = to_handle(made);
    return code;
  }
};
struct Persistent {
  MPI_Request* request;
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    Request* made = nullptr;
    const int code = coll::run_persistent(comm, name, &made, build);
    if (code == MPI_SUCCESS) *request = to_handle(made);
    return code;
  }
};

[[gnu::cold]] inline int no_intercommunicator(const char* name) noexcept {
  return error(MPI_ERR_UNSUPPORTED_OPERATION, "%s on an intercommunicator is not built yet", name);
}

/// Where a buffer's element number `elements` is.
inline const void* place_in(const void* buffer, MPI_Count elements, const Datatype& type) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(buffer) + elements * type.extent);
}

/// The two buffers must differ where both are used; MPI_BOTTOM (null) on both sides is a matter of the datatypes. Where one holds a
/// block for each rank, the other must not be the rank's `own` block in it either: a program that works in one buffer without
/// MPI_IN_PLACE passes that, and if only rank 0 saw it, whose block is the first, the others would wait for it for ever.
inline int aliased(bool both_used, const void* whole, const void* part, const void* own) noexcept {
  if (!both_used || (part != whole && part != own) || part == nullptr) [[likely]]
    return MPI_SUCCESS;
  return error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same%s: pass MPI_IN_PLACE to work in one buffer",
               part == whole ? "" : " where this rank's own block is");
}
inline int aliased(bool both_used, const void* send, const void* recv) noexcept { return aliased(both_used, send, recv, send); }

/// What a rank that is not the root sends or gets.
inline int not_the_roots(const Comm& comm, int root, const void* buffer, const char* what) noexcept {
  if (!in_place(buffer) || comm.rank == root) [[likely]]
    return MPI_SUCCESS;
  return error(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which only the root may pass; rank %d is not the root, %d", what,
               comm.rank, root);
}

}  // namespace heddle::mpi
