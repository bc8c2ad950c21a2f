// ranks: 1 3 4
// timeout: 60
// A graph that every process describes whole, a distributed graph in which each gives its own neighbours, and one whose edges
// are given by anybody: all answer the questions about neighbours and weights alike, and survive duplication.
#include <algorithm>

#include "../support.hpp"

using namespace test;

namespace {

thread_local World w;
using List = std::vector<int>;

/// A ring with a chord: r -> r+1, and 0 -> n/2. Weights tell the edge.
List targets(int r) {
  List out{(r + 1) % w.size};
  if (r == 0) out.push_back(w.size / 2);
  std::sort(out.begin(), out.end());
  return out;
}
int weight(int from, int to) { return 1000 * from + to + 1; }

void check_distributed(MPI_Comm comm, bool weighted, bool sorted) {
  int kind = -1, in = -1, out = -1, flag = -1;
  MPI_Topo_test(comm, &kind);
  CHECK_EQ(kind, MPI_DIST_GRAPH);
  CHECK_OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &flag));
  CHECK_EQ(flag != 0, weighted);
  List wanted_in, wanted_out = targets(w.rank);
  for (int r = 0; r < w.size; ++r)
    for (int t : targets(r))
      if (t == w.rank) wanted_in.push_back(r);
  CHECK_EQ(in, static_cast<int>(wanted_in.size()));
  CHECK_EQ(out, static_cast<int>(wanted_out.size()));
  List sources(wanted_in.size()), in_weights(wanted_in.size()), destinations(wanted_out.size()), out_weights(wanted_out.size());
  CHECK_OK(MPI_Dist_graph_neighbors(comm, in, sources.data(), weighted ? in_weights.data() : MPI_UNWEIGHTED, out,
                                    destinations.data(), weighted ? out_weights.data() : MPI_UNWEIGHTED));
  if (weighted) {
    for (std::size_t i = 0; i < sources.size(); ++i) CHECK_EQ(in_weights[i], weight(sources[i], w.rank));
    for (std::size_t i = 0; i < destinations.size(); ++i) CHECK_EQ(out_weights[i], weight(w.rank, destinations[i]));
  }
  if (!sorted) {
    std::sort(sources.begin(), sources.end());
    std::sort(destinations.begin(), destinations.end());
  }
  CHECK(sources == wanted_in);
  CHECK(destinations == wanted_out);
}

void with_duplicate(MPI_Comm comm, bool weighted, bool sorted) {
  MPI_Comm copy;
  CHECK_OK(MPI_Comm_dup(comm, &copy));
  check_distributed(comm, weighted, sorted);
  MPI_Comm_free(&comm);
  check_distributed(copy, weighted, sorted);
  int sum = -1;
  MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, copy);
  CHECK_EQ(sum, w.size * (w.size - 1) / 2);
  MPI_Comm_free(&copy);
}

}  // namespace

int main() {
  w = init();
  MPI_Comm comm;

  // Everybody gives everything.
  List index, edges;
  for (int r = 0; r < w.size; ++r) {
    for (int t : targets(r)) edges.push_back(t);
    index.push_back(static_cast<int>(edges.size()));
  }
  CHECK_OK(MPI_Graph_create(MPI_COMM_WORLD, w.size, index.data(), edges.data(), 0, &comm));
  int nodes = -1, count = -1, kind = -1;
  MPI_Topo_test(comm, &kind);
  CHECK_EQ(kind, MPI_GRAPH);
  MPI_Graphdims_get(comm, &nodes, &count);
  CHECK_EQ(nodes, w.size);
  CHECK_EQ(count, static_cast<int>(edges.size()));
  List got_index(index.size()), got_edges(edges.size());
  CHECK_OK(MPI_Graph_get(comm, nodes, count, got_index.data(), got_edges.data()));
  CHECK(got_index == index);
  CHECK(got_edges == edges);
  for (int r = 0; r < w.size; ++r) {
    CHECK_OK(MPI_Graph_neighbors_count(comm, r, &count));
    List neighbours(static_cast<std::size_t>(count));
    CHECK_OK(MPI_Graph_neighbors(comm, r, count, neighbours.data()));
    CHECK(neighbours == targets(r));
  }
  MPI_Comm_free(&comm);
  CHECK_OK(MPI_Graph_create(MPI_COMM_WORLD, 1, index.data(), List{0, 0}.data(), 0, &comm));  // node 0 with itself
  CHECK(w.rank == 0 ? comm != MPI_COMM_NULL : comm == MPI_COMM_NULL);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);

  // Everybody gives what touches it, in the order it likes, which is kept.
  List sources, in_weights, out = targets(w.rank), out_weights;
  for (int r = 0; r < w.size; ++r)
    for (int t : targets(r))
      if (t == w.rank) sources.push_back(r), in_weights.push_back(weight(r, w.rank));
  for (int t : out) out_weights.push_back(weight(w.rank, t));
  const int in_n = static_cast<int>(sources.size()), out_n = static_cast<int>(out.size());
  CHECK_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in_n, sources.data(), in_weights.data(), out_n, out.data(),
                                          out_weights.data(), MPI_INFO_NULL, 0, &comm));
  with_duplicate(comm, true, true);
  CHECK_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in_n, sources.data(), MPI_UNWEIGHTED, out_n, out.data(),
                                          MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
  with_duplicate(comm, false, true);

  // Rank 0 gives everything, then everybody gives the edges of its right neighbour.
  List froms, degrees, tos, weights;
  for (int r = 0; r < w.size && w.rank == 0; ++r) {
    froms.push_back(r);
    degrees.push_back(static_cast<int>(targets(r).size()));
    for (int t : targets(r)) tos.push_back(t), weights.push_back(weight(r, t));
  }
  CHECK_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(froms.size()), froms.data(), degrees.data(), tos.data(),
                                 froms.empty() ? MPI_WEIGHTS_EMPTY : weights.data(), MPI_INFO_NULL, 0, &comm));
  with_duplicate(comm, true, false);
  const int from = (w.rank + 1) % w.size, degree = static_cast<int>(targets(from).size());
  CHECK_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, targets(from).data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &comm));
  with_duplicate(comm, false, false);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int beyond = w.size;
  if (!library_is_mpich())
    CHECK_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &beyond, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED,
                                               MPI_INFO_NULL, 0, &comm),
                MPI_ERR_RANK);
  if (library_is_heddle())
    CHECK_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, nullptr, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED,
                                               MPI_INFO_NULL, 0, &comm),
                MPI_ERR_ARG);
  return finish();
}
