// Virtual topologies: what a communicator knows of its processes' neighbours. \see MPI-5.0 §8
#pragma once

#include <atomic>
#include <vector>

namespace heddle {

/// Immutable once attached to a communicator; duplicates share it.
struct Topology {
  int kind = 0;  ///< MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH
  std::atomic<int> references{1};

  // MPI_CART
  std::vector<int> dims, coords;  ///< `coords`: of this process
  std::vector<char> periodic;

  // MPI_GRAPH: neighbours of rank r are edges[index[r-1]] … edges[index[r]-1].
  std::vector<int> index, edges;

  // MPI_DIST_GRAPH: of this process.
  std::vector<int> sources, source_weights, destinations, destination_weights;
  bool weighted = false;
};

Topology* retain_topology(Topology* topology) noexcept;  ///< nullptr: nothing happens
void release_topology(Topology* topology) noexcept;      ///< nullptr: nothing happens

}  // namespace heddle
