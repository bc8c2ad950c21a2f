// The collective operations as steps. Each function chooses among its algorithms by size and number of ranks.
//
// Arguments are those of the MPI functions, checked before; a buffer may be MPI_IN_PLACE where MPI allows it, and a
// type is null where MPI ignores it. Choices depend only on what all ranks know (bytes, ranks, the operation), never on
// a rank's own datatype: ranks may describe the same bytes by different types. Intracommunicators only.
#pragma once

#include "coll/steps.hpp"
#include "core/count_array.hpp"

namespace heddle::coll {

void barrier(Steps& s) noexcept;
void bcast(Steps& s, void* buffer, MPI_Count count, Datatype& type, int root) noexcept;

void gather(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
            Datatype* recv_type, int root) noexcept;
void gatherv(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, CountArray recv_counts,
             CountArray displacements, Datatype* recv_type, int root) noexcept;
void scatter(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
             Datatype* recv_type, int root) noexcept;
void scatterv(Steps& s, const void* send, CountArray send_counts, CountArray displacements, Datatype* send_type,
              void* recv, MPI_Count recv_count, Datatype* recv_type, int root) noexcept;

void allgather(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
               Datatype& recv_type) noexcept;
void allgatherv(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv,
                CountArray recv_counts, CountArray displacements, Datatype& recv_type) noexcept;

void alltoall(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
              Datatype& recv_type) noexcept;

/// One side of an alltoall with blocks of their own sizes, in the form of alltoallv (one type, displacements in
/// elements) or of alltoallw (`types`, displacements in bytes).
struct Blocks {
  void* buffer = nullptr;
  CountArray counts, displacements;
  Datatype* type = nullptr;
  const MPI_Datatype* types = nullptr;

  [[nodiscard]] Datatype& type_of(int rank) const noexcept { return types ? *resolve<Datatype>(types[rank]) : *type; }
  [[nodiscard]] void* at(int rank) const noexcept {
    return displaced(buffer, displacements[rank] * (types ? 1 : type->extent));
  }
};
/// `send.buffer` may be MPI_IN_PLACE.
void alltoallv(Steps& s, const Blocks& send, const Blocks& recv) noexcept;

void reduce(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, int root) noexcept;
void allreduce(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;
void reduce_scatter_block(Steps& s, const void* send, void* recv, MPI_Count recv_count, Datatype& type,
                          const Op& op) noexcept;
void reduce_scatter(Steps& s, const void* send, void* recv, CountArray recv_counts, Datatype& type,
                    const Op& op) noexcept;
void scan(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;
void exscan(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;

/// Reductions one by one, for tests and for other collectives that build on them.
void allreduce_doubling(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;
/// \pre count >= the largest power of two that is not above the number of ranks
void allreduce_halving(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;
/// \pre op.commutative, count >= number of ranks
void allreduce_ring(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;
void reduce_binomial(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op,
                     int root) noexcept;
/// \pre as allreduce_halving
void reduce_halving(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op,
                    int root) noexcept;

}  // namespace heddle::coll
