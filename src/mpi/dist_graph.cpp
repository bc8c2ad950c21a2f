#include "mpi/dist_graph.hpp"

#include <algorithm>
#include <vector>

#include "coll/steps.hpp"
#include "core/op.hpp"
#include "generated/impl.hpp"
#include "proto/p2p.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

/// One end of an edge, for the process at that end.
struct End {
  int owner;     ///< whom it is for
  int outgoing;  ///< 1: `other` is a destination, 0: a source
  int other, weight;
};

/// First those that come in, then those that go out, each by rank.
bool before(const End& a, const End& b) noexcept {
  if (a.owner != b.owner) return a.owner < b.owner;
  if (a.outgoing != b.outgoing) return a.outgoing < b.outgoing;
  return a.other != b.other ? a.other < b.other : a.weight < b.weight;
}

}  // namespace

int check_nodes(const int* nodes, int n, const Comm& comm, const char* argument) noexcept {
  for (int i = 0; i < n; ++i)
    if (nodes[i] < 0 || nodes[i] >= comm.size)
      return error(MPI_ERR_RANK, "%s[%d] is %d; the communicator's ranks are 0 to %d", argument, i, nodes[i], comm.size - 1);
  return MPI_SUCCESS;
}

int distribute_edges(Comm& comm, int n, const int sources[], const int degrees[], const int destinations[],
                     const int weights[], Topology& graph) noexcept {
  std::size_t edges = 0;
  for (int i = 0; i < n; ++i) {
    if (degrees[i] < 0) return error(MPI_ERR_ARG, "degrees[%d] is %d; it must not be negative", i, degrees[i]);
    edges += static_cast<std::size_t>(degrees[i]);
  }
  if (const int code = check_nodes(sources, n, comm, "sources")) return code;
  if (const int code = check_nodes(destinations, static_cast<int>(edges), comm, "destinations")) return code;
  graph.weighted = weights != MPI_UNWEIGHTED;

  std::vector<End> ends;
  ends.reserve(2 * edges);
  std::size_t e = 0;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < degrees[i]; ++k, ++e) {
      const int weight = has_weights(weights) ? weights[e] : 1;
      ends.push_back({sources[i], 1, destinations[e], weight});
      ends.push_back({destinations[e], 0, sources[i], weight});
    }
  std::sort(ends.begin(), ends.end(), before);

  // How many processes have something for each.
  std::vector<int> tells(static_cast<std::size_t>(comm.size));
  for (const End& end : ends) tells[static_cast<std::size_t>(end.owner)] = 1;
  tells[static_cast<std::size_t>(comm.rank)] = 0;
  int told = 0;
  Datatype& integer = *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_INT));
  Op& sum = *builtin_op(reinterpret_cast<std::uintptr_t>(MPI_SUM));
  if (const int code = Reduce_scatter_block(tells.data(), &told, 1, integer, sum, comm)) return code;

  // Two messages to each: how much, and what. A receiver takes the second right after the first, so "any source" can
  // only meet a first one.
  const int tag = coll::next_tag(comm);
  Datatype& bytes = coll::byte_type();
  std::vector<std::int64_t> sizes;
  sizes.reserve(ends.size());  // stays in place: messages read from it
  std::vector<Request*> requests;
  int first_error = MPI_SUCCESS;
  const auto post = [&](const void* data, std::int64_t size, int to) {
    if (Request* request = isend({data, size, bytes}, to, tag, comm, Space::collective))
      requests.push_back(request);
    else
      first_error = error(MPI_ERR_NO_MEM, "no memory for a message to rank %d", to);
  };
  std::vector<End> mine;
  for (std::size_t begin = 0, end; begin < ends.size(); begin = end) {
    for (end = begin; end < ends.size() && ends[end].owner == ends[begin].owner;) ++end;
    if (ends[begin].owner == comm.rank) {
      mine.assign(ends.begin() + static_cast<std::ptrdiff_t>(begin), ends.begin() + static_cast<std::ptrdiff_t>(end));
      continue;
    }
    sizes.push_back(static_cast<std::int64_t>((end - begin) * sizeof(End)));
    post(&sizes.back(), sizeof sizes.back(), ends[begin].owner);
    post(&ends[begin], sizes.back(), ends[begin].owner);
  }
  for (int i = 0; i < told && !first_error; ++i) {
    std::int64_t size = 0;
    MPI_Status status;
    first_error = recv({&size, sizeof size, bytes}, MPI_ANY_SOURCE, tag, comm, Space::collective, &status);
    if (first_error) break;
    const std::size_t had = mine.size();
    mine.resize(had + static_cast<std::size_t>(size) / sizeof(End));
    first_error = recv({&mine[had], size, bytes}, status.MPI_SOURCE, tag, comm, Space::collective);
  }
  for (Request* request : requests)
    if (const int code = wait(request); code && !first_error) first_error = code;
  if (first_error) return first_error;

  std::sort(mine.begin(), mine.end(), before);  // whatever order the messages came in
  for (const End& end : mine) {
    (end.outgoing ? graph.destinations : graph.sources).push_back(end.other);
    if (graph.weighted) (end.outgoing ? graph.destination_weights : graph.source_weights).push_back(end.weight);
  }
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
