// MPI-5.0 chapter 6: every collective operation in its three forms. What they do is in coll/algorithms.hpp.
#include <cstdint>

#include "coll/algorithms.hpp"
#include "coll/run.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

using coll::in_place;
using coll::Steps;

// The three forms: MPI_X, MPI_Ix, MPI_X_init. Each takes the communicator, the function's name and what gives the
// steps.
struct Now {
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    return coll::run_blocking(comm, name, build);
  }
};
struct Later {
  MPI_Request* request;
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    Request* made = nullptr;
    const int code = coll::run_nonblocking(comm, name, &made, {}, build);
    if (code == MPI_SUCCESS) *request = to_handle(made);
    return code;
  }
};
struct Again {
  MPI_Request* request;
  template <typename Build>
  int operator()(Comm& comm, const char* name, Build&& build) const noexcept {
    Request* made = nullptr;
    const int code = coll::run_persistent(comm, name, &made, build);
    if (code == MPI_SUCCESS) *request = to_handle(made);
    return code;
  }
};

[[gnu::cold]] int no_intercommunicator(const char* name) noexcept {
  return error(MPI_ERR_UNSUPPORTED_OPERATION, "%s on an intercommunicator is not built yet", name);
}

// Where a buffer's element number `elements` is.
const void* place_in(const void* buffer, MPI_Count elements, const Datatype& type) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(buffer) + elements * type.extent);
}

// The two buffers must differ where both are used; MPI_BOTTOM (null) on both sides is a matter of the datatypes. Where one holds a
// block for each rank, the other must not be the rank's `own` block in it either: a program that works in one buffer without
// MPI_IN_PLACE passes that, and if only rank 0 saw it, whose block is the first, the others would wait for it for ever.
int aliased(bool both_used, const void* whole, const void* part, const void* own) noexcept {
  if (!both_used || (part != whole && part != own) || part == nullptr) [[likely]]
    return MPI_SUCCESS;
  return error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same%s: pass MPI_IN_PLACE to work in one buffer",
               part == whole ? "" : " where this rank's own block is");
}
int aliased(bool both_used, const void* send, const void* recv) noexcept { return aliased(both_used, send, recv, send); }

// What a rank that is not the root sends or gets.
int not_the_roots(const Comm& comm, int root, const void* buffer, const char* what) noexcept {
  if (!in_place(buffer) || comm.rank == root) [[likely]]
    return MPI_SUCCESS;
  return error(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which only the root may pass; rank %d is not the root, %d", what,
               comm.rank, root);
}

/// One block for each rank, at displacements of a buffer of one type, or of the ranks' `types`, which were checked.
struct UserBlocks {
  const void* buffer;
  CountArray counts, displacements;
  const Datatype* type;
  const MPI_Datatype* types;
};

int bad_blocks(const Comm& comm, const UserBlocks& blocks, const char* buffer, const char* counts) noexcept {
  if (blocks.counts.is_null() || blocks.displacements.is_null())
    return error(MPI_ERR_ARG, "%s or its displacements are a null pointer", counts);
  const bool memory = check::is_memory(blocks.buffer);
  for (int rank = 0; rank < comm.size; ++rank) {
    const MPI_Count n = blocks.counts[rank];
    if (n < 0)
      return error(MPI_ERR_COUNT, "%s[%d] is %lld: counts are not negative", counts, rank, static_cast<long long>(n));
    if (memory || (!in_place(blocks.buffer) && blocks.displacements[rank] != 0)) continue;  // may be an address
    const Datatype& type = blocks.types ? *resolve<Datatype>(blocks.types[rank]) : *blocks.type;
    if (const int code = check::buffer(blocks.buffer, n, type, buffer); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// The shares of a reduction's result, one after another in `sendbuf`.
int bad_shares(const Comm& comm, const void* sendbuf, const void* recvbuf, CountArray counts,
               const Datatype& type) noexcept {
  if (counts.is_null()) return error(MPI_ERR_ARG, "recvcounts is a null pointer");
  bool any = false;
  for (int rank = 0; rank < comm.size; ++rank) {
    if (counts[rank] < 0)
      return error(MPI_ERR_COUNT, "recvcounts[%d] is %lld: counts are not negative", rank,
                   static_cast<long long>(counts[rank]));
    any = any || counts[rank] > 0;
  }
  if (in_place(sendbuf)) return check::buffer(recvbuf, any, type, "recvbuf");
  const int code = check::buffer(sendbuf, any, type, "sendbuf");
  return code ? code : check::buffer(recvbuf, counts[comm.rank], type, "recvbuf");
}

int bad_types(const Comm& comm, const MPI_Datatype types[], const char* what) noexcept {
  if (!types) return error(MPI_ERR_ARG, "%s is a null pointer", what);
  for (int rank = 0; rank < comm.size; ++rank) {
    const Datatype* type = resolve<Datatype>(types[rank]);
    if (!type) return error(MPI_ERR_TYPE, "%s[%d] is no datatype (null, freed or never made)", what, rank);
    if (!type->committed) return error(MPI_ERR_TYPE, "%s[%d] was not committed: call MPI_Type_commit", what, rank);
  }
  return MPI_SUCCESS;
}

}  // namespace

// --- MPI_Barrier
template <typename Form>
static int barrier_as(Form form, const char* name, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  return form(comm, name, [&](Steps& s) { coll::barrier(s); });
}
int Barrier(Comm& comm) { return barrier_as(Now{}, "MPI_Barrier", comm); }
int Ibarrier(Comm& comm, MPI_Request* request) { return barrier_as(Later{request}, "MPI_Ibarrier", comm); }
int Barrier_init(Comm& comm, Info*, MPI_Request* request) {
  return barrier_as(Again{request}, "MPI_Barrier_init", comm);
}

// --- MPI_Bcast
template <typename Form>
static int bcast_as(Form form, const char* name, void* buffer, MPI_Count count, Datatype& datatype, int root,
                    Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  return form(comm, name, [&](Steps& s) { coll::bcast(s, buffer, count, datatype, root); });
}
int Bcast(void* buffer, MPI_Count count, Datatype& datatype, int root, Comm& comm) {
  return bcast_as(Now{}, "MPI_Bcast", buffer, count, datatype, root, comm);
}
int Ibcast(void* buffer, MPI_Count count, Datatype& datatype, int root, Comm& comm, MPI_Request* request) {
  return bcast_as(Later{request}, "MPI_Ibcast", buffer, count, datatype, root, comm);
}
int Bcast_init(void* buffer, MPI_Count count, Datatype& datatype, int root, Comm& comm, Info*, MPI_Request* request) {
  return bcast_as(Again{request}, "MPI_Bcast_init", buffer, count, datatype, root, comm);
}

// --- MPI_Gather
template <typename Form>
static int gather_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                     void* recvbuf, MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = not_the_roots(comm, root, sendbuf, "sendbuf")) != MPI_SUCCESS) [[unlikely]]
    return code;
  if (comm.rank == root)
    code = aliased(recvcount != 0, recvbuf, sendbuf, place_in(recvbuf, root * recvcount, *recvtype));
  if (code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name,
              [&](Steps& s) { coll::gather(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root); });
}
int Gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
           Datatype* recvtype, int root, Comm& comm) {
  return gather_as(Now{}, "MPI_Gather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
int Igather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
            Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return gather_as(Later{request}, "MPI_Igather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                   comm);
}
int Gather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return gather_as(Again{request}, "MPI_Gather_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                   comm);
}

// --- MPI_Gatherv
template <typename Form>
static int gatherv_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                      void* recvbuf, CountArray recvcounts, CountArray displs, Datatype* recvtype, int root,
                      Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = not_the_roots(comm, root, sendbuf, "sendbuf")) != MPI_SUCCESS) [[unlikely]]
    return code;
  const UserBlocks to{recvbuf, recvcounts, displs, recvtype, nullptr};
  if ((code = (comm.rank == root ? bad_blocks(comm, to, "recvbuf", "recvcounts") : MPI_SUCCESS)) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  if (comm.rank == root) code = aliased(sendcount != 0, recvbuf, sendbuf, place_in(recvbuf, displs[root], *recvtype));
  if (code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) {
    coll::gatherv(s, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root);
  });
}
int Gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
            CountArray displs, Datatype* recvtype, int root, Comm& comm) {
  return gatherv_as(Now{}, "MPI_Gatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
                    comm);
}
int Igatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
             CountArray displs, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return gatherv_as(Later{request}, "MPI_Igatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                    root, comm);
}
int Gatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return gatherv_as(Again{request}, "MPI_Gatherv_init", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                    recvtype, root, comm);
}

// --- MPI_Scatter
template <typename Form>
static int scatter_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                      void* recvbuf, MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = not_the_roots(comm, root, recvbuf, "recvbuf")) != MPI_SUCCESS) [[unlikely]]
    return code;
  if (comm.rank == root)
    code = aliased(recvcount != 0, sendbuf, recvbuf, place_in(sendbuf, root * sendcount, *sendtype));
  if (code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name,
              [&](Steps& s) { coll::scatter(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root); });
}
int Scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
            Datatype* recvtype, int root, Comm& comm) {
  return scatter_as(Now{}, "MPI_Scatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
int Iscatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
             Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return scatter_as(Later{request}, "MPI_Iscatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                    comm);
}
int Scatter_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                 Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return scatter_as(Again{request}, "MPI_Scatter_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                    root, comm);
}

// --- MPI_Scatterv
template <typename Form>
static int scatterv_as(Form form, const char* name, const void* sendbuf, CountArray sendcounts, CountArray displs,
                       Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype, int root,
                       Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = not_the_roots(comm, root, recvbuf, "recvbuf")) != MPI_SUCCESS) [[unlikely]]
    return code;
  const UserBlocks from{sendbuf, sendcounts, displs, sendtype, nullptr};
  if ((code = (comm.rank == root ? bad_blocks(comm, from, "sendbuf", "sendcounts") : MPI_SUCCESS)) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  if (comm.rank == root) code = aliased(recvcount != 0, sendbuf, recvbuf, place_in(sendbuf, displs[root], *sendtype));
  if (code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) {
    coll::scatterv(s, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root);
  });
}
int Scatterv(const void* sendbuf, CountArray sendcounts, CountArray displs, Datatype* sendtype, void* recvbuf,
             MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
  return scatterv_as(Now{}, "MPI_Scatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
                     comm);
}
int Iscatterv(const void* sendbuf, CountArray sendcounts, CountArray displs, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return scatterv_as(Later{request}, "MPI_Iscatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                     recvtype, root, comm);
}
int Scatterv_init(const void* sendbuf, CountArray sendcounts, CountArray displs, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return scatterv_as(Again{request}, "MPI_Scatterv_init", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                     recvtype, root, comm);
}

// --- MPI_Allgather
template <typename Form>
static int allgather_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                        void* recvbuf, MPI_Count recvcount, Datatype& recvtype, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  if (const int code = aliased(recvcount != 0, recvbuf, sendbuf, place_in(recvbuf, comm.rank * recvcount, recvtype));
      code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name,
              [&](Steps& s) { coll::allgather(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype); });
}
int Allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
              Datatype& recvtype, Comm& comm) {
  return allgather_as(Now{}, "MPI_Allgather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Iallgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
               Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return allgather_as(Later{request}, "MPI_Iallgather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                      comm);
}
int Allgather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                   Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return allgather_as(Again{request}, "MPI_Allgather_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                      comm);
}

// --- MPI_Allgatherv
template <typename Form>
static int allgatherv_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                         void* recvbuf, CountArray recvcounts, CountArray displs, Datatype& recvtype, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = bad_blocks(comm, {recvbuf, recvcounts, displs, &recvtype, nullptr}, "recvbuf", "recvcounts")) !=
      MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = aliased(sendcount != 0, recvbuf, sendbuf, place_in(recvbuf, displs[comm.rank], recvtype))) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) {
    coll::allgatherv(s, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
  });
}
int Allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
               CountArray displs, Datatype& recvtype, Comm& comm) {
  return allgatherv_as(Now{}, "MPI_Allgatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                       comm);
}
int Iallgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                CountArray displs, Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return allgatherv_as(Later{request}, "MPI_Iallgatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                       recvtype, comm);
}
int Allgatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                    CountArray displs, Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return allgatherv_as(Again{request}, "MPI_Allgatherv_init", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                       recvtype, comm);
}

// --- MPI_Alltoall
template <typename Form>
static int alltoall_as(Form form, const char* name, const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                       void* recvbuf, MPI_Count recvcount, Datatype& recvtype, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  if (const int code = aliased(recvcount != 0, sendbuf, recvbuf); code != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name,
              [&](Steps& s) { coll::alltoall(s, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype); });
}
int Alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
             Datatype& recvtype, Comm& comm) {
  return alltoall_as(Now{}, "MPI_Alltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Ialltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
              Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return alltoall_as(Later{request}, "MPI_Ialltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Alltoall_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return alltoall_as(Again{request}, "MPI_Alltoall_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                     comm);
}

// --- MPI_Alltoallv
template <typename Form>
static int alltoallv_as(Form form, const char* name, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                        Datatype* sendtype, void* recvbuf, CountArray recvcounts, CountArray rdispls,
                        Datatype& recvtype, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  const UserBlocks from{sendbuf, sendcounts, sdispls, sendtype, nullptr}, to{recvbuf, recvcounts, rdispls, &recvtype, nullptr};
  if ((code = (in_place(sendbuf) ? MPI_SUCCESS : bad_blocks(comm, from, "sendbuf", "sendcounts"))) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  if ((code = bad_blocks(comm, to, "recvbuf", "recvcounts")) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) {
    coll::alltoallv(s, {const_cast<void*>(sendbuf), sendcounts, sdispls, sendtype, nullptr},
                    {recvbuf, recvcounts, rdispls, &recvtype, nullptr});
  });
}
int Alltoallv(const void* sendbuf, CountArray sendcounts, CountArray sdispls, Datatype* sendtype, void* recvbuf,
              CountArray recvcounts, CountArray rdispls, Datatype& recvtype, Comm& comm) {
  return alltoallv_as(Now{}, "MPI_Alltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                      recvtype, comm);
}
int Ialltoallv(const void* sendbuf, CountArray sendcounts, CountArray sdispls, Datatype* sendtype, void* recvbuf,
               CountArray recvcounts, CountArray rdispls, Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return alltoallv_as(Later{request}, "MPI_Ialltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                      rdispls, recvtype, comm);
}
int Alltoallv_init(const void* sendbuf, CountArray sendcounts, CountArray sdispls, Datatype* sendtype, void* recvbuf,
                   CountArray recvcounts, CountArray rdispls, Datatype& recvtype, Comm& comm, Info*,
                   MPI_Request* request) {
  return alltoallv_as(Again{request}, "MPI_Alltoallv_init", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                      rdispls, recvtype, comm);
}

// --- MPI_Alltoallw
template <typename Form>
static int alltoallw_as(Form form, const char* name, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                        const MPI_Datatype sendtypes[], void* recvbuf, CountArray recvcounts, CountArray rdispls,
                        const MPI_Datatype recvtypes[], Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  const UserBlocks from{sendbuf, sendcounts, sdispls, nullptr, sendtypes}, to{recvbuf, recvcounts, rdispls, nullptr, recvtypes};
  if ((code = (in_place(sendbuf) ? MPI_SUCCESS : bad_types(comm, sendtypes, "sendtypes"))) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = (in_place(sendbuf) ? MPI_SUCCESS : bad_blocks(comm, from, "sendbuf", "sendcounts"))) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  if ((code = bad_types(comm, recvtypes, "recvtypes")) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = bad_blocks(comm, to, "recvbuf", "recvcounts")) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) {
    coll::alltoallv(s, {const_cast<void*>(sendbuf), sendcounts, sdispls, nullptr, sendtypes},
                    {recvbuf, recvcounts, rdispls, nullptr, recvtypes});
  });
}
int Alltoallw(const void* sendbuf, CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
              void* recvbuf, CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[], Comm& comm) {
  return alltoallw_as(Now{}, "MPI_Alltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                      recvtypes, comm);
}
int Ialltoallw(const void* sendbuf, CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
               void* recvbuf, CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[], Comm& comm,
               MPI_Request* request) {
  return alltoallw_as(Later{request}, "MPI_Ialltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                      rdispls, recvtypes, comm);
}
int Alltoallw_init(const void* sendbuf, CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
                   void* recvbuf, CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[], Comm& comm,
                   Info*, MPI_Request* request) {
  return alltoallw_as(Again{request}, "MPI_Alltoallw_init", sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                      recvcounts, rdispls, recvtypes, comm);
}

// --- MPI_Reduce
template <typename Form>
static int reduce_as(Form form, const char* name, const void* sendbuf, void* recvbuf, MPI_Count count,
                     Datatype& datatype, Op& op, int root, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = not_the_roots(comm, root, sendbuf, "sendbuf")) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = aliased(count != 0 && comm.rank == root, sendbuf, recvbuf)) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::reduce(s, sendbuf, recvbuf, count, datatype, op, root); });
}
int Reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm) {
  return reduce_as(Now{}, "MPI_Reduce", sendbuf, recvbuf, count, datatype, op, root, comm);
}
int Ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm,
            MPI_Request* request) {
  return reduce_as(Later{request}, "MPI_Ireduce", sendbuf, recvbuf, count, datatype, op, root, comm);
}
int Reduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm,
                Info*, MPI_Request* request) {
  return reduce_as(Again{request}, "MPI_Reduce_init", sendbuf, recvbuf, count, datatype, op, root, comm);
}

// --- MPI_Allreduce
template <typename Form>
static int allreduce_as(Form form, const char* name, const void* sendbuf, void* recvbuf, MPI_Count count,
                        Datatype& datatype, Op& op, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = aliased(count != 0, sendbuf, recvbuf)) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::allreduce(s, sendbuf, recvbuf, count, datatype, op); });
}
int Allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
  return allreduce_as(Now{}, "MPI_Allreduce", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
               MPI_Request* request) {
  return allreduce_as(Later{request}, "MPI_Iallreduce", sendbuf, recvbuf, count, datatype, op, comm);
}
int Allreduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
                   MPI_Request* request) {
  return allreduce_as(Again{request}, "MPI_Allreduce_init", sendbuf, recvbuf, count, datatype, op, comm);
}

// --- MPI_Reduce_scatter_block
template <typename Form>
static int reduce_scatter_block_as(Form form, const char* name, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                   Datatype& datatype, Op& op, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = aliased(recvcount != 0, sendbuf, recvbuf, place_in(sendbuf, comm.rank * recvcount, datatype))) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::reduce_scatter_block(s, sendbuf, recvbuf, recvcount, datatype, op); });
}
int Reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                         Comm& comm) {
  return reduce_scatter_block_as(Now{}, "MPI_Reduce_scatter_block", sendbuf, recvbuf, recvcount, datatype, op, comm);
}
int Ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                          Comm& comm, MPI_Request* request) {
  return reduce_scatter_block_as(Later{request}, "MPI_Ireduce_scatter_block", sendbuf, recvbuf, recvcount, datatype, op,
                                 comm);
}
int Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                              Comm& comm, Info*, MPI_Request* request) {
  return reduce_scatter_block_as(Again{request}, "MPI_Reduce_scatter_block_init", sendbuf, recvbuf, recvcount, datatype,
                                 op, comm);
}

// --- MPI_Reduce_scatter
template <typename Form>
static int reduce_scatter_as(Form form, const char* name, const void* sendbuf, void* recvbuf, CountArray recvcounts,
                             Datatype& datatype, Op& op, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = bad_shares(comm, sendbuf, recvbuf, recvcounts, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::reduce_scatter(s, sendbuf, recvbuf, recvcounts, datatype, op); });
}
int Reduce_scatter(const void* sendbuf, void* recvbuf, CountArray recvcounts, Datatype& datatype, Op& op, Comm& comm) {
  return reduce_scatter_as(Now{}, "MPI_Reduce_scatter", sendbuf, recvbuf, recvcounts, datatype, op, comm);
}
int Ireduce_scatter(const void* sendbuf, void* recvbuf, CountArray recvcounts, Datatype& datatype, Op& op, Comm& comm,
                    MPI_Request* request) {
  return reduce_scatter_as(Later{request}, "MPI_Ireduce_scatter", sendbuf, recvbuf, recvcounts, datatype, op, comm);
}
int Reduce_scatter_init(const void* sendbuf, void* recvbuf, CountArray recvcounts, Datatype& datatype, Op& op,
                        Comm& comm, Info*, MPI_Request* request) {
  return reduce_scatter_as(Again{request}, "MPI_Reduce_scatter_init", sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// --- MPI_Scan
template <typename Form>
static int scan_as(Form form, const char* name, const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                   Op& op, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  if ((code = aliased(count != 0, sendbuf, recvbuf)) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::scan(s, sendbuf, recvbuf, count, datatype, op); });
}
int Scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
  return scan_as(Now{}, "MPI_Scan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
          MPI_Request* request) {
  return scan_as(Later{request}, "MPI_Iscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Scan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
              MPI_Request* request) {
  return scan_as(Again{request}, "MPI_Scan_init", sendbuf, recvbuf, count, datatype, op, comm);
}

// --- MPI_Exscan
template <typename Form>
static int exscan_as(Form form, const char* name, const void* sendbuf, void* recvbuf, MPI_Count count,
                     Datatype& datatype, Op& op, Comm& comm) {
  if (comm.inter) [[unlikely]]
    return no_intercommunicator(name);
  int code = MPI_SUCCESS;
  if ((code = check_op(op, datatype)) != MPI_SUCCESS) [[unlikely]]
    return code;
  const bool gets_something = count != 0 && comm.rank != 0;  // else recvbuf may be anything
  if ((code = (gets_something ? check::buffer(recvbuf, count, datatype, "recvbuf") : MPI_SUCCESS)) != MPI_SUCCESS)
      [[unlikely]]
    return code;
  if ((code = aliased(gets_something, sendbuf, recvbuf)) != MPI_SUCCESS) [[unlikely]]
    return code;
  return form(comm, name, [&](Steps& s) { coll::exscan(s, sendbuf, recvbuf, count, datatype, op); });
}
int Exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
  return exscan_as(Now{}, "MPI_Exscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
            MPI_Request* request) {
  return exscan_as(Later{request}, "MPI_Iexscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Exscan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
                MPI_Request* request) {
  return exscan_as(Again{request}, "MPI_Exscan_init", sendbuf, recvbuf, count, datatype, op, comm);
}

}  // namespace heddle::mpi
