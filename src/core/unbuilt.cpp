// Weak stand-ins for what the layers below will define, so that programs of one process start without them.
#include <mpi.h>

#include "core/comm.hpp"
#include "core/runtime.hpp"
#include "sys/error.hpp"

namespace heddle {

[[gnu::weak]] int start_vcis(const sys::Bootstrap&) noexcept {
  if (runtime.size == 1) return MPI_SUCCESS;
  return error(MPI_ERR_UNSUPPORTED_OPERATION, "more than one process is not built yet in this version of Heddle");
}

[[gnu::weak]] int stop_vcis() noexcept { return MPI_SUCCESS; }

[[gnu::weak]] std::uint16_t vcis_of(ProcessIndex) noexcept { return 1; }

namespace coll {
[[gnu::weak]] void release_state(CommState*) noexcept {}
}  // namespace coll

}  // namespace heddle
