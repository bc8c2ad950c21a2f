// Endpoints: the functions of mpix.h that make them.
#include "comm/endpoints.hpp"

#include <memory>
#include <new>

#include "comm/create.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"

namespace heddle::mpi {

int Comm_create_endpoints(Comm& parent, int count, Info* info, MPI_Comm out[]) {
  const std::unique_ptr<Comm*[]> made(new (std::nothrow) Comm*[static_cast<std::size_t>(count) + 1]);
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for %d endpoints", count);
  if (const int code = create_endpoints(parent, count, info, made.get())) return code;
  for (int i = 0; i < count; ++i) out[i] = give_comm(*made[i]);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
