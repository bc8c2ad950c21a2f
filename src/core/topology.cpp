#include "core/topology.hpp"

#include <mpi.h>

namespace heddle {
Topology* retain_topology(Topology* topology) noexcept {
  if (topology) topology->references.fetch_add(1, std::memory_order_relaxed);
  return topology;
}

void release_topology(Topology* topology) noexcept {
  if (topology && topology->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete topology;
}

int grid_rank(const std::vector<int>& dims, const int* coords) noexcept {
  int rank = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) rank = rank * dims[d] + coords[d];
  return rank;
}

void grid_coords(const std::vector<int>& dims, int rank, int* coords) noexcept {
  for (std::size_t d = dims.size(); d-- > 0;) {
    coords[d] = rank % dims[d];
    rank /= dims[d];
  }
}

int grid_neighbor(const Topology& grid, int rank, int dimension, long long distance) noexcept {
  long long step = 1;  // between neighbours along the dimension
  const auto dim = static_cast<std::size_t>(dimension);
  for (std::size_t d = dim + 1; d < grid.dims.size(); ++d) step *= grid.dims[d];
  const long long size = grid.dims[dim], from = rank / step % size;
  long long to = from + distance;
  if (grid.periodic[dim])
    to = ((to % size) + size) % size;
  else if (to < 0 || to >= size)
    return MPI_PROC_NULL;
  return static_cast<int>(rank + (to - from) * step);
}

void topology_neighbors(const Topology& topology, int rank, std::vector<int>& sources, std::vector<int>& destinations) {
  sources.clear();
  destinations.clear();
  switch (topology.kind) {
    case MPI_CART:
      for (int d = 0; d < static_cast<int>(topology.dims.size()); ++d)
        for (const int distance : {-1, 1}) sources.push_back(grid_neighbor(topology, rank, d, distance));
      destinations = sources;
      break;
    case MPI_GRAPH:
      sources.assign(topology.edges.begin() + topology.graph_begin(rank), topology.edges.begin() + topology.graph_end(rank));
      destinations = sources;
      break;
    default:
      sources = topology.sources;
      destinations = topology.destinations;
  }
}

}  // namespace heddle
