// MPI-5.0 chapter 6: the collective operations that move data, each in its three forms.
#include "mpi/collective.hpp"

namespace heddle::mpi {
namespace {

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
int Barrier(Comm& comm) { return barrier_as(Blocking{}, "MPI_Barrier", comm); }
int Ibarrier(Comm& comm, MPI_Request* request) { return barrier_as(Nonblocking{request}, "MPI_Ibarrier", comm); }
int Barrier_init(Comm& comm, Info*, MPI_Request* request) {
  return barrier_as(Persistent{request}, "MPI_Barrier_init", comm);
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
  return bcast_as(Blocking{}, "MPI_Bcast", buffer, count, datatype, root, comm);
}
int Ibcast(void* buffer, MPI_Count count, Datatype& datatype, int root, Comm& comm, MPI_Request* request) {
  return bcast_as(Nonblocking{request}, "MPI_Ibcast", buffer, count, datatype, root, comm);
}
int Bcast_init(void* buffer, MPI_Count count, Datatype& datatype, int root, Comm& comm, Info*, MPI_Request* request) {
  return bcast_as(Persistent{request}, "MPI_Bcast_init", buffer, count, datatype, root, comm);
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
  return gather_as(Blocking{}, "MPI_Gather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
int Igather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
            Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return gather_as(Nonblocking{request}, "MPI_Igather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                   comm);
}
int Gather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return gather_as(Persistent{request}, "MPI_Gather_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
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
  return gatherv_as(Blocking{}, "MPI_Gatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
                    comm);
}
int Igatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
             CountArray displs, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return gatherv_as(Nonblocking{request}, "MPI_Igatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                    root, comm);
}
int Gatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return gatherv_as(Persistent{request}, "MPI_Gatherv_init", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
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
  return scatter_as(Blocking{}, "MPI_Scatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
int Iscatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
             Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return scatter_as(Nonblocking{request}, "MPI_Iscatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                    comm);
}
int Scatter_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                 Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return scatter_as(Persistent{request}, "MPI_Scatter_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
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
  return scatterv_as(Blocking{}, "MPI_Scatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
                     comm);
}
int Iscatterv(const void* sendbuf, CountArray sendcounts, CountArray displs, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
  return scatterv_as(Nonblocking{request}, "MPI_Iscatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                     recvtype, root, comm);
}
int Scatterv_init(const void* sendbuf, CountArray sendcounts, CountArray displs, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, Info*, MPI_Request* request) {
  return scatterv_as(Persistent{request}, "MPI_Scatterv_init", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
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
  return allgather_as(Blocking{}, "MPI_Allgather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Iallgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
               Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return allgather_as(Nonblocking{request}, "MPI_Iallgather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                      comm);
}
int Allgather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                   Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return allgather_as(Persistent{request}, "MPI_Allgather_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
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
  return allgatherv_as(Blocking{}, "MPI_Allgatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                       comm);
}
int Iallgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                CountArray displs, Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return allgatherv_as(Nonblocking{request}, "MPI_Iallgatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                       recvtype, comm);
}
int Allgatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, CountArray recvcounts,
                    CountArray displs, Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return allgatherv_as(Persistent{request}, "MPI_Allgatherv_init", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
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
  return alltoall_as(Blocking{}, "MPI_Alltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Ialltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
              Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return alltoall_as(Nonblocking{request}, "MPI_Ialltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
int Alltoall_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype& recvtype, Comm& comm, Info*, MPI_Request* request) {
  return alltoall_as(Persistent{request}, "MPI_Alltoall_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
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
  return alltoallv_as(Blocking{}, "MPI_Alltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                      recvtype, comm);
}
int Ialltoallv(const void* sendbuf, CountArray sendcounts, CountArray sdispls, Datatype* sendtype, void* recvbuf,
               CountArray recvcounts, CountArray rdispls, Datatype& recvtype, Comm& comm, MPI_Request* request) {
  return alltoallv_as(Nonblocking{request}, "MPI_Ialltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                      rdispls, recvtype, comm);
}
int Alltoallv_init(const void* sendbuf, CountArray sendcounts, CountArray sdispls, Datatype* sendtype, void* recvbuf,
                   CountArray recvcounts, CountArray rdispls, Datatype& recvtype, Comm& comm, Info*,
                   MPI_Request* request) {
  return alltoallv_as(Persistent{request}, "MPI_Alltoallv_init", sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
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
  return alltoallw_as(Blocking{}, "MPI_Alltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                      recvtypes, comm);
}
int Ialltoallw(const void* sendbuf, CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
               void* recvbuf, CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[], Comm& comm,
               MPI_Request* request) {
  return alltoallw_as(Nonblocking{request}, "MPI_Ialltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                      rdispls, recvtypes, comm);
}
int Alltoallw_init(const void* sendbuf, CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
                   void* recvbuf, CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[], Comm& comm,
                   Info*, MPI_Request* request) {
  return alltoallw_as(Persistent{request}, "MPI_Alltoallw_init", sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                      recvcounts, rdispls, recvtypes, comm);
}

}  // namespace heddle::mpi
