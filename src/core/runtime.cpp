#include "core/runtime.hpp"

#include "sys/bootstrap/bootstrap.hpp"

namespace heddle {

Runtime runtime;

sys::Bootstrap& job_to_fill() noexcept {
  static auto& job = *new sys::Bootstrap;
  return job;
}

const sys::Bootstrap& job() noexcept { return job_to_fill(); }

int own_node() noexcept { return job().node; }

}  // namespace heddle
