// Thread communicators: functions of mpix.h.
#include "comm/threadcomm.hpp"

#include "generated/impl.hpp"
#include "mpi/check.hpp"

namespace heddle::mpi {

int Threadcomm_init(Comm& comm, int num_threads, MPI_Comm* newthreadcomm) {
  Threadcomm* made = nullptr;
  if (const int code = make_threadcomm(comm, num_threads, &made)) return code;
  *newthreadcomm = to_handle(made);
  return MPI_SUCCESS;
}

int Threadcomm_start(Threadcomm& threads) { return start_thread(threads); }

int Threadcomm_finish(Threadcomm& threads) { return finish_thread(threads); }

int Threadcomm_free(MPI_Comm* handle) {
  Threadcomm* threads = resolve<Threadcomm>(*handle);
  if (!threads) return check::bad_threadcomm(*handle, "threadcomm");
  if (const int code = free_threadcomm(*threads)) return code;
  *handle = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int Comm_test_threadcomm(MPI_Comm handle, int* flag) {
  const Comm* comm = check::object_of(handle);
  const bool threads = resolve<Threadcomm>(handle) != nullptr;
  if (!comm && !threads) return check::bad_comm(handle, "comm");
  *flag = threads || comm->of_threads;
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
