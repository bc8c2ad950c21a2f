// MPI-5.0 chapter 4: partitioned point-to-point communication.
#include "part/partitioned.hpp"

#include "generated/impl.hpp"
#include "mpi/request.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

int give(int code, Request* const& made, MPI_Request* request) noexcept {
  if (!code) *request = to_handle(made);
  return code;
}

int bad_request() noexcept {
  return error(MPI_ERR_REQUEST, "the request handle is not one: it is null, was freed before, or was never set");
}

int ready(Request& request, int first, int last) noexcept {
  const int code = part::ready(request, first, last);
  return code ? blame_comm(request.comm, code) : code;
}

}  // namespace

int Psend_init(const void* buf, int partitions, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, Info*, MPI_Request* request) {
  Request* made = nullptr;
  return give(part::init_send({{buf, count, datatype}, partitions}, dest, tag, comm, &made), made, request);
}

int Precv_init(void* buf, int partitions, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, Info*, MPI_Request* request) {
  if (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG)
    return error(source == MPI_ANY_SOURCE ? MPI_ERR_RANK : MPI_ERR_TAG, "%s in MPI_Precv_init: a partitioned receive names its source and its tag",
                 source == MPI_ANY_SOURCE ? "MPI_ANY_SOURCE" : "MPI_ANY_TAG");
  Request* made = nullptr;
  return give(part::init_receive({{buf, count, datatype}, partitions}, source, tag, comm, &made), made, request);
}

int Pready(int partition, MPI_Request request) {
  Request* r = resolve<Request>(request);
  return r ? ready(*r, partition, partition) : bad_request();
}

int Pready_range(int partition_low, int partition_high, MPI_Request request) {
  Request* r = resolve<Request>(request);
  return r ? ready(*r, partition_low, partition_high) : bad_request();
}

int Pready_list(int length, const int array_of_partitions[], MPI_Request request) {
  Request* r = resolve<Request>(request);
  if (!r) return bad_request();
  for (int i = 0; i < length; ++i)
    if (const int code = ready(*r, array_of_partitions[i], array_of_partitions[i])) return code;
  return MPI_SUCCESS;
}

int Parrived(MPI_Request request, int partition, int* flag) {
  *flag = 1;
  if (request == MPI_REQUEST_NULL) return MPI_SUCCESS;  // as an inactive one
  Request* r = resolve<Request>(request);
  if (!r) return bad_request();
  bool there = false;
  const int code = part::arrived(*r, partition, there);
  *flag = there;
  return code ? blame_comm(r->comm, code) : code;
}

}  // namespace heddle::mpi
