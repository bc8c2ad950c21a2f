#include "core/topology.hpp"

namespace heddle {

Topology* retain_topology(Topology* topology) noexcept {
  if (topology) topology->references.fetch_add(1, std::memory_order_relaxed);
  return topology;
}

void release_topology(Topology* topology) noexcept {
  if (topology && topology->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete topology;
}

}  // namespace heddle
