// MPI_Bcast: a binomial tree for short messages, a chain or scatter and ring for long ones.
#include "coll/algorithms.hpp"
#include "sys/params.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_SIZE_ALIKE(
    tree_limit, "HEDDLE_BCAST_TREE_LIMIT", 128 * 1024, 0,
    "Broadcasts of fewer bytes go down a binomial tree, others as a chain of segments or as scatter and "
    "allgather (with more than two ranks)");
HEDDLE_PARAM_SIZE_ALIKE(chain_segment, "HEDDLE_BCAST_SEGMENT", 64 * 1024, 1,
                        "Bytes of a segment of a broadcast that is passed on from rank to rank");

// Ranks are counted from the root in a tree or chain.
int relative(const Steps& s, int root) noexcept { return (s.rank() - root + s.size()) % s.size(); }
int absolute(const Steps& s, int root, int relative_rank) noexcept { return (relative_rank + root) % s.size(); }

// Each rank receives everything from its parent, then serves its own subtrees, largest first.
void binomial(Steps& s, void* buffer, MPI_Count count, Datatype& type, int root) noexcept {
  const int n = s.size(), me = relative(s, root);
  const MPI_Count span = tree_span(me, n);
  if (me) s.recv_round(buffer, count, type, absolute(s, root, me - static_cast<int>(span)));
  int children = 0, child = 0;
  for (MPI_Count distance = span / 2; distance > 0; distance /= 2) {
    if (me + distance < n) ++children, child = static_cast<int>(me + distance);
  }
  if (children == 1) return s.send_round(buffer, count, type, absolute(s, root, child));
  for (MPI_Count distance = span / 2; distance > 0; distance /= 2) {
    if (me + distance < n) s.send(buffer, count, type, absolute(s, root, static_cast<int>(me + distance)));
  }
  if (children) s.wait();
}

// Every rank passes segment k on while it receives k+1: n-2 segments later than the root, all ranks have all.
void chain(Steps& s, std::byte* data, MPI_Count bytes, int root) noexcept {
  const int n = s.size(), me = relative(s, root);
  const int from = absolute(s, root, me - 1 + n), to = absolute(s, root, me + 1);
  const bool first = me == 0, last = me == n - 1;
  const MPI_Count segment = chain_segment.value(), segments = (bytes + segment - 1) / segment;
  const auto length = [&](MPI_Count k) { return std::min(segment, bytes - k * segment); };
  for (MPI_Count k = 0; k <= segments; ++k) {
    if (!first && k < segments) s.recv(data + k * segment, length(k), byte_type(), from);
    if (!last && k > 0) s.send(data + (k - 1) * segment, length(k - 1), byte_type(), to);
    s.wait();
  }
}

// The root's data is cut into one block per rank, scattered down a binomial tree, and collected by all around a ring.
void scatter_ring(Steps& s, std::byte* data, MPI_Count bytes, int root) noexcept {
  const int n = s.size(), me = relative(s, root);
  const MPI_Count block = (bytes + n - 1) / n;
  const auto begin = [&](MPI_Count relative_rank) { return std::min(bytes, relative_rank * block); };
  const MPI_Count span = tree_span(me, n);
  if (me && begin(me) < begin(me + span))
    s.recv_round(data + begin(me), begin(me + span) - begin(me), byte_type(),
                 absolute(s, root, me - static_cast<int>(span)));
  for (MPI_Count distance = span / 2; distance > 0; distance /= 2) {
    const MPI_Count child = me + distance;
    if (child < n && begin(child) < begin(child + distance))
      s.send(data + begin(child), begin(child + distance) - begin(child), byte_type(),
             absolute(s, root, static_cast<int>(child)));
  }
  s.wait();
  const int to = absolute(s, root, me + 1), from = absolute(s, root, me - 1 + n);
  for (int step = 0; step < n - 1; ++step) {
    const int mine = (me - step + n) % n, next = (me - step - 1 + n) % n;
    s.exchange(data + begin(mine), begin(mine + 1) - begin(mine), byte_type(), to, data + begin(next),
               begin(next + 1) - begin(next), byte_type(), from);
  }
}

}  // namespace

void bcast(Steps& s, void* buffer, MPI_Count count, Datatype& type, int root) noexcept {
  const int n = s.size();
  const MPI_Count bytes = count * type.size;
  if (n == 1 || bytes == 0) return;
  if (n == 2 || bytes < tree_limit.value()) return binomial(s, buffer, count, type, root);

  // Long messages are cut by bytes, because ranks may describe them by different types; types that are not contiguous are
  // packed first.
  std::byte* data = displaced(buffer, type.true_lb);
  if (!type.contiguous) {
    data = s.temporary(bytes);
    if (!data) return;
    if (s.rank() == root) s.copy(buffer, count, type, data, bytes, byte_type());
  }
  if (bytes / chain_segment.value() > n - 2)
    chain(s, data, bytes, root);
  else
    scatter_ring(s, data, bytes, root);
  if (!type.contiguous && s.rank() != root) s.copy(data, bytes, byte_type(), buffer, count, type);
}

}  // namespace heddle::coll
