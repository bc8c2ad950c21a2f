// The world of a thread that stands for a rank: see world.cpp.
#pragma once

#include <mpix.h>

#include <cstdint>

struct Endpoint {
  int index = -1;  // among the threads of the process; -1: a thread of no rank
  MPI_Comm world = MPI_COMM_NULL, self = MPI_COMM_NULL;
  MPIX_Stream stream = MPIX_STREAM_NULL;
  bool started = false, ended = false;
};

// Threads that a rank starts share the rank's.
extern thread_local Endpoint* endpoint;

inline MPI_Comm own(MPI_Comm comm) {
  if (!endpoint || !endpoint->started || endpoint->ended) return comm;
  return comm == MPI_COMM_WORLD ? endpoint->world : comm == MPI_COMM_SELF ? endpoint->self : comm;
}
