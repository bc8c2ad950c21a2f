// Endpoints: the functions of mpix.h.
#include <memory>
#include <new>

#include <mpix.h>

#include "core/endpoints.hpp"
#include "mpi/check.hpp"

using namespace heddle;

extern "C" {
#pragma GCC visibility push(default)

int PMPIX_Comm_create_endpoints(MPI_Comm parent_comm, int my_num_ep, MPI_Info info, MPI_Comm out_comm_handles[]) {
  constexpr const char* name = "MPIX_Comm_create_endpoints";
  Comm* const parent = resolve<Comm>(parent_comm);
  if (!parent) return raise(parent, check::bad_comm(parent_comm, "parent_comm"), name);
  Info* const hints = resolve<Info>(info);
  if (!hints && info != MPI_INFO_NULL) return raise(parent, check::bad_info(info, "info"), name);
  int code = check::length(my_num_ep, "my_num_ep");
  if (!code) code = check::array(out_comm_handles, my_num_ep, "out_comm_handles");
  if (code) return raise(parent, code, name);
  const std::unique_ptr<Comm*[]> made(new (std::nothrow) Comm*[static_cast<std::size_t>(my_num_ep) + 1]);
  if (!made) return raise(parent, error(MPI_ERR_NO_MEM, "no memory for %d endpoints", my_num_ep), name);
  code = create_endpoints(*parent, my_num_ep, hints, made.get());
  if (code) return raise(parent, code, name);
  for (int i = 0; i < my_num_ep; ++i) out_comm_handles[i] = to_handle(made[i]);
  return MPI_SUCCESS;
}

int MPIX_Comm_create_endpoints(MPI_Comm, int, MPI_Info, MPI_Comm[]) __attribute__((weak, alias("PMPIX_Comm_create_endpoints")));

#pragma GCC visibility pop
}
