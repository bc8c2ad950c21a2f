#include "core/runtime.hpp"

#include "sys/bootstrap/bootstrap.hpp"

namespace heddle {

Runtime runtime;

sys::Bootstrap& job_to_fill() noexcept {
  static auto& job = *new sys::Bootstrap;
  return job;
}

const sys::Bootstrap& job() noexcept { return job_to_fill(); }

bool is_local(ProcessIndex process) noexcept { return job().is_local(static_cast<int>(process)); }

int own_node() noexcept { return job().node; }

}  // namespace heddle
