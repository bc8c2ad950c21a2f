// Virtual topologies: what a communicator knows of its processes' neighbours. \see MPI-5.0 §8
#pragma once

#include <atomic>
#include <vector>

namespace heddle {

/// Immutable once attached to a communicator; duplicates share it. Its size is that of what the user gave: a grid costs its
/// dimensions, a distributed graph this process's own neighbours.
struct Topology {
  int kind = 0;  ///< MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH
  std::atomic<int> references{1};

  // MPI_CART, row-major: the last coordinate varies fastest.
  std::vector<int> dims, coords;  ///< `coords`: of this process
  std::vector<char> periodic;

  // MPI_GRAPH: neighbours of rank r are edges[index[r-1]] … edges[index[r]-1].
  std::vector<int> index, edges;

  // MPI_DIST_GRAPH: of this process.
  std::vector<int> sources, source_weights, destinations, destination_weights;
  bool weighted = false;

  [[nodiscard]] int graph_begin(int rank) const noexcept { return rank > 0 ? index[static_cast<std::size_t>(rank) - 1] : 0; }
  [[nodiscard]] int graph_end(int rank) const noexcept { return index[static_cast<std::size_t>(rank)]; }
};

Topology* retain_topology(Topology* topology) noexcept;  ///< nullptr: nothing happens
void release_topology(Topology* topology) noexcept;      ///< nullptr: nothing happens

/// Grid arithmetic. \pre 0 <= rank < product of dims; `coords` in range
int grid_rank(const std::vector<int>& dims, const int* coords) noexcept;
void grid_coords(const std::vector<int>& dims, int rank, int* coords) noexcept;
/// The rank `distance` steps along `dimension` from `rank`, or MPI_PROC_NULL beyond an edge.
int grid_neighbor(const Topology& grid, int rank, int dimension, long long distance) noexcept;

/// Whom the neighbourhood collectives of process `rank` receive from and send to, in the standard's order (§8.6): for a grid
/// first the lower, then the upper neighbour in each dimension, MPI_PROC_NULL where there is none.
void topology_neighbors(const Topology& topology, int rank, std::vector<int>& sources, std::vector<int>& destinations);

}  // namespace heddle
