// MPI-5.0 chapter 6: the collective operations that reduce, each in its three forms.
#include "mpi/collective.hpp"

namespace heddle::mpi {
namespace {

/// The shares of a reduction's result, one after another in `sendbuf`.
int bad_shares(const Comm& comm, const void* sendbuf, const void* recvbuf, CountArray counts, const Datatype& type) noexcept {
  if (counts.is_null()) return error(MPI_ERR_ARG, "recvcounts is a null pointer");
  MPI_Count all = 0, before = 0;
  for (int rank = 0; rank < comm.size; ++rank) {
    const MPI_Count n = counts[rank];
    if (n < 0) return error(MPI_ERR_COUNT, "recvcounts[%d] is %lld: counts are not negative", rank, static_cast<long long>(n));
    if (rank < comm.rank) before += n;
    all += n;
  }
  if (in_place(sendbuf)) return check::buffer(recvbuf, all, type, "recvbuf");
  int code = MPI_SUCCESS;
  if ((code = check::buffer(sendbuf, all, type, "sendbuf")) != MPI_SUCCESS) return code;
  if ((code = check::buffer(recvbuf, counts[comm.rank], type, "recvbuf")) != MPI_SUCCESS) return code;
  return aliased(counts[comm.rank] != 0, sendbuf, recvbuf, place_in(sendbuf, before, type));
}

}  // namespace

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
  return reduce_as(Blocking{}, "MPI_Reduce", sendbuf, recvbuf, count, datatype, op, root, comm);
}
int Ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm,
            MPI_Request* request) {
  return reduce_as(Nonblocking{request}, "MPI_Ireduce", sendbuf, recvbuf, count, datatype, op, root, comm);
}
int Reduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm,
                Info*, MPI_Request* request) {
  return reduce_as(Persistent{request}, "MPI_Reduce_init", sendbuf, recvbuf, count, datatype, op, root, comm);
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
  return allreduce_as(Blocking{}, "MPI_Allreduce", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
               MPI_Request* request) {
  return allreduce_as(Nonblocking{request}, "MPI_Iallreduce", sendbuf, recvbuf, count, datatype, op, comm);
}
int Allreduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
                   MPI_Request* request) {
  return allreduce_as(Persistent{request}, "MPI_Allreduce_init", sendbuf, recvbuf, count, datatype, op, comm);
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
  return reduce_scatter_block_as(Blocking{}, "MPI_Reduce_scatter_block", sendbuf, recvbuf, recvcount, datatype, op, comm);
}
int Ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                          Comm& comm, MPI_Request* request) {
  return reduce_scatter_block_as(Nonblocking{request}, "MPI_Ireduce_scatter_block", sendbuf, recvbuf, recvcount, datatype, op,
                                 comm);
}
int Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                              Comm& comm, Info*, MPI_Request* request) {
  return reduce_scatter_block_as(Persistent{request}, "MPI_Reduce_scatter_block_init", sendbuf, recvbuf, recvcount, datatype,
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
  return reduce_scatter_as(Blocking{}, "MPI_Reduce_scatter", sendbuf, recvbuf, recvcounts, datatype, op, comm);
}
int Ireduce_scatter(const void* sendbuf, void* recvbuf, CountArray recvcounts, Datatype& datatype, Op& op, Comm& comm,
                    MPI_Request* request) {
  return reduce_scatter_as(Nonblocking{request}, "MPI_Ireduce_scatter", sendbuf, recvbuf, recvcounts, datatype, op, comm);
}
int Reduce_scatter_init(const void* sendbuf, void* recvbuf, CountArray recvcounts, Datatype& datatype, Op& op,
                        Comm& comm, Info*, MPI_Request* request) {
  return reduce_scatter_as(Persistent{request}, "MPI_Reduce_scatter_init", sendbuf, recvbuf, recvcounts, datatype, op, comm);
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
  return scan_as(Blocking{}, "MPI_Scan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
          MPI_Request* request) {
  return scan_as(Nonblocking{request}, "MPI_Iscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Scan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
              MPI_Request* request) {
  return scan_as(Persistent{request}, "MPI_Scan_init", sendbuf, recvbuf, count, datatype, op, comm);
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
  return exscan_as(Blocking{}, "MPI_Exscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
            MPI_Request* request) {
  return exscan_as(Nonblocking{request}, "MPI_Iexscan", sendbuf, recvbuf, count, datatype, op, comm);
}
int Exscan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, Info*,
                MPI_Request* request) {
  return exscan_as(Persistent{request}, "MPI_Exscan_init", sendbuf, recvbuf, count, datatype, op, comm);
}

}  // namespace heddle::mpi
