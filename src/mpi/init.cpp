// Starting and stopping. MPI-5.0 §11.2, §9.7
#include <cstdio>
#include <cstdlib>

#include "comm/runtime.hpp"
#include "core/comm.hpp"
#include "generated/impl.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

// argc and argv stay as they are: the library takes no arguments from the command line.
int Init(int*, char***) { return init_world(default_thread_level()); }

int Init_thread(int*, char***, int required, int* provided) {
  if (const int code = init_world(required)) return code;
  *provided = runtime.thread_level.load(std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int Finalize() { return finalize_world(); }

int Abort(Comm& comm, int errorcode) {
  char message[MPI_MAX_OBJECT_NAME + 32] = "";
  {
    std::lock_guard lock(comm.mutex);
    if (comm.name[0] && &comm != &comm_world) std::snprintf(message, sizeof message, "on %s", comm.name);
  }
  sys::bootstrap::abort(errorcode, message);
}

}  // namespace heddle::mpi
