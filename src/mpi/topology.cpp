// Virtual topologies. MPI-5.0 §8. Neighbourhood collectives are elsewhere.
//
// `reorder` is a permission that is not used: ranks keep their places. Making a communicator with a topology is one exchange among
// its members, as in MPI_Comm_create. MPI_Dims_create is in dims.cpp.
#include "core/topology.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "comm/create.hpp"
#include "core/hints.hpp"
#include "generated/impl.hpp"
#include "mpi/dist_graph.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

int only_intra(const Comm& comm) noexcept {
  if (!comm.inter) return MPI_SUCCESS;
  return error(MPI_ERR_COMM, "an intercommunicator cannot have a topology");
}

const char* kind_name(int kind) noexcept {
  return kind == MPI_CART ? "Cartesian" : kind == MPI_GRAPH ? "graph" : "distributed graph";
}

int need(const Comm& comm, int kind) noexcept {
  if (comm.topology && comm.topology->kind == kind) return MPI_SUCCESS;
  return error(MPI_ERR_TOPOLOGY, "the communicator has %s%s topology; this function needs a %s one",
               comm.topology ? "a " : "no", comm.topology ? kind_name(comm.topology->kind) : "", kind_name(kind));
}

/// A communicator of the first `n` ranks of `old` with `topology` (taken over). MPI_COMM_NULL for the others.
int create_with(Comm& old, int n, Topology* topology, Info* info, MPI_Comm* out) noexcept {
  Group* members = nullptr;
  const int range[1][3] = {{0, n - 1, 1}};
  Comm* made = nullptr;
  int code = n > 0 ? group_range_incl(*old.group, 1, range, &members) : (members = &group_empty, MPI_SUCCESS);
  if (!code) code = comm_create(old, *members, &made);
  if (members) release_group(members);
  if (code || !made) {
    release_topology(topology);
    if (!code) *out = MPI_COMM_NULL;
    return code;
  }
  made->topology = topology;
  take_hints(*made, info);
  *out = give_comm(*made);
  return MPI_SUCCESS;
}

int no_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for a topology"); }

Topology* new_topology(int kind) noexcept {
  auto* topology = new (std::nothrow) Topology;
  if (topology) topology->kind = kind;
  return topology;
}

/// The number of ranks in a grid, or an error.
int grid_size(int ndims, const int dims[], const Comm& comm, int* out) noexcept {
  long long size = 1;
  for (int d = 0; d < ndims; ++d) {
    if (dims[d] <= 0) return error(MPI_ERR_DIMS, "dims[%d] is %d; a dimension has at least one process", d, dims[d]);
    size *= dims[d];
    if (size > comm.size)
      return error(MPI_ERR_DIMS, "the grid needs more processes than the communicator's %d", comm.size);
  }
  *out = static_cast<int>(size);
  return MPI_SUCCESS;
}

int check_graph(int nodes, const int index[], const int edges[], const Comm& comm) noexcept {
  if (nodes > comm.size)
    return error(MPI_ERR_ARG, "the graph has %d nodes, more than the communicator's %d processes", nodes, comm.size);
  for (int r = 0; r < nodes; ++r)
    if (index[r] < (r ? index[r - 1] : 0))
      return error(MPI_ERR_ARG, "index[%d] is %d, less than the one before; it counts the edges so far", r, index[r]);
  for (int e = 0; nodes > 0 && e < index[nodes - 1]; ++e)
    if (edges[e] < 0 || edges[e] >= nodes)
      return error(MPI_ERR_RANK, "edges[%d] is %d; the graph's nodes are 0 to %d", e, edges[e], nodes - 1);
  return MPI_SUCCESS;
}

/// Room in the user's array for what is there.
int check_room(int room, std::size_t needed, const char* argument) noexcept {
  if (static_cast<std::size_t>(room) >= needed) return MPI_SUCCESS;
  return error(MPI_ERR_ARG, "%s is %d; %zu elements are needed", argument, room, needed);
}

}  // namespace

int Topo_test(Comm& comm, int* status) {
  *status = comm.topology ? comm.topology->kind : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// --- grids ---------------------------------------------------------------------------------------------------------
int Cart_create(Comm& old, int ndims, const int dims[], const int periods[], int, MPI_Comm* comm_cart) {
  int size = 0;
  if (const int code = only_intra(old)) return code;
  if (const int code = grid_size(ndims, dims, old, &size)) return code;
  Topology* grid = new_topology(MPI_CART);
  if (!grid) return no_memory();
  grid->dims.assign(dims, dims + ndims);
  grid->coords.resize(static_cast<std::size_t>(ndims));
  for (int d = 0; d < ndims; ++d) grid->periodic.push_back(periods[d] != 0);
  if (old.rank < size) grid_coords(grid->dims, old.rank, grid->coords.data());
  return create_with(old, size, grid, nullptr, comm_cart);
}

int Cartdim_get(Comm& comm, int* ndims) {
  if (const int code = need(comm, MPI_CART)) return code;
  *ndims = static_cast<int>(comm.topology->dims.size());
  return MPI_SUCCESS;
}

int Cart_get(Comm& comm, int maxdims, int dims[], int periods[], int coords[]) {
  if (const int code = need(comm, MPI_CART)) return code;
  const Topology& grid = *comm.topology;
  if (const int code = check_room(maxdims, grid.dims.size(), "maxdims")) return code;
  std::copy(grid.dims.begin(), grid.dims.end(), dims);
  std::copy(grid.periodic.begin(), grid.periodic.end(), periods);
  std::copy(grid.coords.begin(), grid.coords.end(), coords);
  return MPI_SUCCESS;
}

int Cart_rank(Comm& comm, const int coords[], int* rank) {
  if (const int code = need(comm, MPI_CART)) return code;
  const Topology& grid = *comm.topology;
  int result = 0;
  for (std::size_t d = 0; d < grid.dims.size(); ++d) {
    const int size = grid.dims[d];
    int c = coords[d];
    if (c < 0 || c >= size) {
      if (!grid.periodic[d])
        return error(MPI_ERR_RANK, "coords[%zu] is %d; the dimension is not periodic and goes from 0 to %d", d, c, size - 1);
      c = (c % size + size) % size;
    }
    result = result * size + c;
  }
  *rank = result;
  return MPI_SUCCESS;
}

int Cart_coords(Comm& comm, int rank, int maxdims, int coords[]) {
  if (const int code = need(comm, MPI_CART)) return code;
  if (const int code = check_room(maxdims, comm.topology->dims.size(), "maxdims")) return code;
  grid_coords(comm.topology->dims, rank, coords);
  return MPI_SUCCESS;
}

int Cart_shift(Comm& comm, int direction, int disp, int* rank_source, int* rank_dest) {
  if (const int code = need(comm, MPI_CART)) return code;
  const int ndims = static_cast<int>(comm.topology->dims.size());
  if (direction < 0 || direction >= ndims)
    return error(MPI_ERR_DIMS, "direction is %d; the grid has %d dimensions, numbered from 0", direction, ndims);
  *rank_source = grid_neighbor(*comm.topology, comm.rank, direction, -static_cast<long long>(disp));
  *rank_dest = grid_neighbor(*comm.topology, comm.rank, direction, disp);
  return MPI_SUCCESS;
}

// Who is in which part follows from the shape alone, so only the members of a part talk, and only for the new id.
int Cart_sub(Comm& comm, const int remain_dims[], MPI_Comm* newcomm) {
  if (const int code = need(comm, MPI_CART)) return code;
  const Topology& grid = *comm.topology;
  Topology* part = new_topology(MPI_CART);
  if (!part) return no_memory();
  long long size = 1;
  for (std::size_t d = 0; d < grid.dims.size(); ++d) {
    if (!remain_dims[d]) continue;
    part->dims.push_back(grid.dims[d]);
    part->coords.push_back(grid.coords[d]);
    part->periodic.push_back(grid.periodic[d]);
    size *= grid.dims[d];
  }
  std::vector<int> ranks(static_cast<std::size_t>(size)), at = grid.coords, inner(part->dims.size());
  for (int r = 0; r < static_cast<int>(size); ++r) {
    grid_coords(part->dims, r, inner.data());
    std::size_t next = 0;
    for (std::size_t d = 0; d < grid.dims.size(); ++d)
      if (remain_dims[d]) at[d] = inner[next++];
    ranks[static_cast<std::size_t>(r)] = grid_rank(grid.dims, at.data());
  }
  Group* members = nullptr;
  Comm* made = nullptr;
  int code = group_incl(*comm.group, static_cast<int>(size), ranks.data(), &members);
  if (!code) code = comm_create(comm, *members, &made);
  if (members) release_group(members);
  if (code) {
    release_topology(part);
    return code;
  }
  made->topology = part;
  *newcomm = give_comm(*made);
  return MPI_SUCCESS;
}

int Cart_map(Comm& comm, int ndims, const int dims[], const int[], int* newrank) {
  int size = 0;
  if (const int code = grid_size(ndims, dims, comm, &size)) return code;
  *newrank = comm.rank < size ? comm.rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// --- graphs that everybody knows whole -------------------------------------------------------------------------------
int Graph_create(Comm& old, int nnodes, const int indx[], const int edges[], int, MPI_Comm* comm_graph) {
  if (const int code = only_intra(old)) return code;
  if (const int code = check_graph(nnodes, indx, edges, old)) return code;
  Topology* graph = new_topology(MPI_GRAPH);
  if (!graph) return no_memory();
  graph->index.assign(indx, indx + nnodes);
  graph->edges.assign(edges, edges + (nnodes ? indx[nnodes - 1] : 0));
  return create_with(old, nnodes, graph, nullptr, comm_graph);
}

int Graphdims_get(Comm& comm, int* nnodes, int* nedges) {
  if (const int code = need(comm, MPI_GRAPH)) return code;
  *nnodes = static_cast<int>(comm.topology->index.size());
  *nedges = static_cast<int>(comm.topology->edges.size());
  return MPI_SUCCESS;
}

int Graph_get(Comm& comm, int maxindex, int maxedges, int indx[], int edges[]) {
  if (const int code = need(comm, MPI_GRAPH)) return code;
  const Topology& graph = *comm.topology;
  if (const int code = check_room(maxindex, graph.index.size(), "maxindex")) return code;
  if (const int code = check_room(maxedges, graph.edges.size(), "maxedges")) return code;
  std::copy(graph.index.begin(), graph.index.end(), indx);
  std::copy(graph.edges.begin(), graph.edges.end(), edges);
  return MPI_SUCCESS;
}

int Graph_neighbors_count(Comm& comm, int rank, int* nneighbors) {
  if (const int code = need(comm, MPI_GRAPH)) return code;
  *nneighbors = comm.topology->graph_end(rank) - comm.topology->graph_begin(rank);
  return MPI_SUCCESS;
}

int Graph_neighbors(Comm& comm, int rank, int maxneighbors, int neighbors[]) {
  if (const int code = need(comm, MPI_GRAPH)) return code;
  const Topology& graph = *comm.topology;
  const int begin = graph.graph_begin(rank), n = graph.graph_end(rank) - begin;
  if (const int code = check_room(maxneighbors, static_cast<std::size_t>(n), "maxneighbors")) return code;
  std::copy_n(graph.edges.begin() + begin, n, neighbors);
  return MPI_SUCCESS;
}

int Graph_map(Comm& comm, int nnodes, const int indx[], const int edges[], int* newrank) {
  if (const int code = check_graph(nnodes, indx, edges, comm)) return code;
  *newrank = comm.rank < nnodes ? comm.rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

// --- distributed graphs ----------------------------------------------------------------------------------------------
int Dist_graph_create_adjacent(Comm& old, int indegree, const int sources[], const int sourceweights[], int outdegree,
                               const int destinations[], const int destweights[], Info* info, int,
                               MPI_Comm* comm_dist_graph) {
  if (const int code = only_intra(old)) return code;
  if (const int code = check_nodes(sources, indegree, old, "sources")) return code;
  if (const int code = check_nodes(destinations, outdegree, old, "destinations")) return code;
  Topology* graph = new_topology(MPI_DIST_GRAPH);
  if (!graph) return no_memory();
  graph->weighted = sourceweights != MPI_UNWEIGHTED;
  graph->sources.assign(sources, sources + indegree);
  graph->destinations.assign(destinations, destinations + outdegree);
  if (graph->weighted) {
    graph->source_weights.assign(sourceweights, sourceweights + (has_weights(sourceweights) ? indegree : 0));
    graph->destination_weights.assign(destweights, destweights + (has_weights(destweights) ? outdegree : 0));
  }
  return create_with(old, old.size, graph, info, comm_dist_graph);
}

int Dist_graph_create(Comm& old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], Info* info, int, MPI_Comm* comm_dist_graph) {
  if (const int code = only_intra(old)) return code;
  Topology* graph = new_topology(MPI_DIST_GRAPH);
  if (!graph) return no_memory();
  if (const int code = distribute_edges(old, n, sources, degrees, destinations, weights, *graph)) {
    release_topology(graph);
    return code;
  }
  return create_with(old, old.size, graph, info, comm_dist_graph);
}

int Dist_graph_neighbors_count(Comm& comm, int* indegree, int* outdegree, int* weighted) {
  if (const int code = need(comm, MPI_DIST_GRAPH)) return code;
  *indegree = static_cast<int>(comm.topology->sources.size());
  *outdegree = static_cast<int>(comm.topology->destinations.size());
  *weighted = comm.topology->weighted;
  return MPI_SUCCESS;
}

// Shorter arrays get the first part (§8.5.5).
int Dist_graph_neighbors(Comm& comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                         int destinations[], int destweights[]) {
  if (const int code = need(comm, MPI_DIST_GRAPH)) return code;
  const Topology& graph = *comm.topology;
  const auto copy = [](const std::vector<int>& from, int room, int* to) {
    std::copy_n(from.begin(), std::min(from.size(), static_cast<std::size_t>(room)), to);
  };
  copy(graph.sources, maxindegree, sources);
  copy(graph.destinations, maxoutdegree, destinations);
  if (graph.weighted && has_weights(sourceweights)) copy(graph.source_weights, maxindegree, sourceweights);
  if (graph.weighted && has_weights(destweights)) copy(graph.destination_weights, maxoutdegree, destweights);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
