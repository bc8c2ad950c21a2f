// MPI_Dist_graph_create: bringing each edge to the two processes that it joins.
#pragma once

#include "core/comm.hpp"
#include "core/topology.hpp"

namespace heddle::mpi {

/// False for MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which are no arrays.
inline bool has_weights(const int* weights) noexcept { return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY; }

/// MPI_SUCCESS when all `n` numbers are ranks of `comm`.
int check_nodes(const int* nodes, int n, const Comm& comm, const char* argument) noexcept;

/// Fills in this process's neighbours out of the edges that all processes give, in rank order (edges that are given several times
/// stay several). Collective over `comm`. Memory: O(edges) and one int per rank while it runs.
int distribute_edges(Comm& comm, int n, const int sources[], const int degrees[], const int destinations[],
                     const int weights[], Topology& graph) noexcept;

}  // namespace heddle::mpi
