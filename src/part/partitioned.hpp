// Partitioned communication: persistent requests whose data become ready, and arrive, in parts. \see MPI-5.0 §4; docs/design/partitioned.md
#pragma once

#include <mpi.h>

#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "vci/request.hpp"

namespace heddle::part {

/// A partitioned buffer: `partitions` times `each`, one behind the other.
struct PartitionedBuffer {
  Buffer each;
  std::int32_t partitions;
};

/// Makes an inactive request and announces it to the peer. Local: waits for nobody. Returns an error code. Thread-safe; the order of calls with the
/// same communicator, rank and tag is that in which they match. \pre partitions >= 0; a rank of the communicator or MPI_PROC_NULL; no wildcards
/// \see MPI-5.0 §4.2.1
int init_send(const PartitionedBuffer& buffer, int dest, int tag, Comm& comm, Request** request) noexcept;
int init_receive(const PartitionedBuffer& buffer, int source, int tag, Comm& comm, Request** request) noexcept;

/// Marks partitions `first` to `last` ready. Thread-safe. Cost of one that is not the last of its transport partition: one atomic addition, no lock.
/// An error code, and nothing done from there on, for a partition that does not exist, is ready already, or where the request is not an active
/// partitioned send. \see MPI-5.0 §4.2.2
int ready(Request& request, int first, int last) noexcept;

/// Whether a partition has arrived; true of an inactive request. One load if it has, else a step of progress too. Thread-safe. Error code.
int arrived(Request& request, int partition, bool& flag) noexcept;

inline bool is_partitioned(const Request& request) noexcept {
  return request.type == Request::Type::partitioned_send || request.type == Request::Type::partitioned_recv;
}

}  // namespace heddle::part
