// The functions of the shortest messages, inlined into their bindings: MPI-5.0 §3.2, §3.7.
#pragma once

#include "generated/impl.hpp"
#include "proto/p2p.hpp"

namespace heddle::mpi {

inline int Send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  Request* started = isend({buf, count, datatype}, dest, tag, comm);
  return started == completed_request() ? MPI_SUCCESS : wait(started);
}

inline int Recv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Status* status) {
  return detail::recv(buf, count, datatype, source, tag, comm, status);
}

inline int Isend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  *request = to_handle(isend({buf, count, datatype}, dest, tag, comm));
  return MPI_SUCCESS;
}

inline int Irecv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Request* request) {
  *request = to_handle(irecv({buf, count, datatype}, source, tag, comm));
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
