// Collective operations for the library's own use (communicator creation, windows), below the MPI functions.
#pragma once

#include <mpi.h>

#include "core/comm.hpp"
#include "core/datatype.hpp"
#include "core/op.hpp"

namespace heddle {
struct Request;
class VciGuard;
}  // namespace heddle

namespace heddle::coll {

/// The blocking collectives on an intracommunicator, exactly as the MPI functions of these names, without argument
/// checks and without the error handler. They count as collective calls of `comm`: all ranks call them in the same
/// order. `send` may be MPI_IN_PLACE where MPI allows it. Return the error code. \see MPI-5.0 §6.3–6.9
int barrier(Comm& comm) noexcept;
int bcast(void* buffer, MPI_Count count, Datatype& type, int root, Comm& comm) noexcept;
int gather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
           Datatype& recv_type, int root, Comm& comm) noexcept;
int allgather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
              Datatype& recv_type, Comm& comm) noexcept;
int allreduce(const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, Comm& comm) noexcept;

/// What runs when a nonblocking collective has finished, just before its request completes: inside the progress engine
/// (or inside the call that started it), with the communicator's home VCI held, so it must not block. Gets the error
/// code so far and returns the one that the request reports.
struct Finish {
  int (*run)(void* data, int error, VciGuard& guard) noexcept = nullptr;
  void* data = nullptr;
};

/// The nonblocking forms: `*request` is a request for the user (MPI_Wait and its family complete it). Buffers, and the
/// data of `finish`, must stay valid until then. The communicator is kept alive by the request. On an error nothing was
/// started and `finish` does not run.
int ibarrier(Comm& comm, Request** request, Finish finish = {}) noexcept;
int ibcast(void* buffer, MPI_Count count, Datatype& type, int root, Comm& comm, Request** request,
           Finish finish = {}) noexcept;
int iallgather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
               Datatype& recv_type, Comm& comm, Request** request, Finish finish = {}) noexcept;
int iallreduce(const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, Comm& comm,
               Request** request, Finish finish = {}) noexcept;

/// The tag of the next collective on `comm`, the same on all ranks by the standard's ordering rule. Messages with it
/// go in Space::collective. A plain load and store: two collectives at once on one communicator from two threads is the
/// program's error. \see MPI-5.0 §6.14
inline int next_tag(Comm& comm) noexcept {
  const std::uint32_t tag = comm.next_collective.load(std::memory_order_relaxed);
  comm.next_collective.store(tag + 1, std::memory_order_relaxed);
  return static_cast<int>(tag & 0x7fffffff);
}

}  // namespace heddle::coll
