// MPI_Gather, Gatherv, Scatter, Scatterv: a binomial tree for small blocks, windows of direct messages for the others.
#include "coll/algorithms.hpp"
#include "sys/params.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_SIZE_ALIKE(tree_limit, "HEDDLE_GATHER_TREE_LIMIT", 2048, 0,
                        "Gather and scatter of blocks of fewer bytes use a binomial tree (with more than three ranks)");

bool use_tree(const Steps& s, MPI_Count block) noexcept { return s.size() > 3 && block < tree_limit.value(); }

// Copies between the root's buffer (blocks by rank) and `tree` (packed blocks by rank counted from the root). The
// root's own block, the first of the tree, is left out: it does not travel.
template <typename Copy>
void rotate(int n, int root, Copy&& copy) noexcept {
  if (root + 1 < n) copy(root + 1, 1, n - root - 1);
  if (root > 0) copy(0, n - root, root);
}

void gather_tree(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv,
                 MPI_Count recv_count, Datatype* recv_type, int root, MPI_Count block) noexcept {
  const int n = s.size(), me = (s.rank() - root + n) % n;
  const MPI_Count span = tree_span(me, n), ranks = std::min<MPI_Count>(span, n - me);
  const auto absolute = [&](MPI_Count relative) { return static_cast<int>((relative + root) % n); };
  if (me && ranks == 1) return s.send_round(send, send_count, *send_type, absolute(me - span));
  std::byte* tree = s.temporary(ranks * block);
  if (!tree) return;
  for (MPI_Count distance = span / 2; distance > 0; distance /= 2) {
    const MPI_Count child = me + distance;
    if (child < n) s.recv(tree + distance * block, std::min(distance, n - child) * block, byte_type(), absolute(child));
  }
  if (me) {
    s.copy(send, send_count, *send_type, tree, block, byte_type());
    s.wait();
    return s.send_round(tree, ranks * block, byte_type(), absolute(me - span));
  }
  if (!in_place(send))
    s.copy_own(send, send_count, *send_type, element(recv, root * recv_count, *recv_type), recv_count, *recv_type);
  s.wait();
  rotate(n, root, [&](int rank, int relative, int blocks) {
    s.copy(tree + relative * block, blocks * block, byte_type(), element(recv, rank * recv_count, *recv_type),
           blocks * recv_count, *recv_type);
  });
}

void scatter_tree(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv,
                  MPI_Count recv_count, Datatype* recv_type, int root, MPI_Count block) noexcept {
  const int n = s.size(), me = (s.rank() - root + n) % n;
  const MPI_Count span = tree_span(me, n), ranks = std::min<MPI_Count>(span, n - me);
  const auto absolute = [&](MPI_Count relative) { return static_cast<int>((relative + root) % n); };
  if (me && ranks == 1) return s.recv_round(recv, recv_count, *recv_type, absolute(me - span));
  std::byte* tree = s.temporary(ranks * block);
  if (!tree) return;
  if (me) {
    s.recv_round(tree, ranks * block, byte_type(), absolute(me - span));
  } else {
    rotate(n, root, [&](int rank, int relative, int blocks) {
      s.copy(element(send, rank * send_count, *send_type), blocks * send_count, *send_type, tree + relative * block,
             blocks * block, byte_type());
    });
  }
  for (MPI_Count distance = span / 2; distance > 0; distance /= 2) {
    const MPI_Count child = me + distance;
    if (child < n) s.send(tree + distance * block, std::min(distance, n - child) * block, byte_type(), absolute(child));
  }
  if (me)
    s.copy(tree, block, byte_type(), recv, recv_count, *recv_type);
  else if (!in_place(recv))
    s.copy_own(element(send, root * send_count, *send_type), send_count, *send_type, recv, recv_count, *recv_type);
  s.wait();
}

}  // namespace

void gather(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
            Datatype* recv_type, int root) noexcept {
  const int n = s.size();
  const bool at_root = s.rank() == root;
  const MPI_Count block = at_root ? recv_count * recv_type->size : send_count * send_type->size;
  if (block == 0) return;
  if (use_tree(s, block)) return gather_tree(s, send, send_count, send_type, recv, recv_count, recv_type, root, block);
  if (!at_root) return s.send_round(send, send_count, *send_type, root);
  if (!in_place(send))
    s.copy_own(send, send_count, *send_type, element(recv, root * recv_count, *recv_type), recv_count, *recv_type);
  int posted = 0;
  for (int rank = 0; rank < n; ++rank) {
    if (rank == root) continue;
    s.recv(element(recv, rank * recv_count, *recv_type), recv_count, *recv_type, rank);
    if (++posted % window == 0) s.wait();
  }
  s.wait();
}

void gatherv(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, CountArray recv_counts,
             CountArray displacements, Datatype* recv_type, int root) noexcept {
  if (s.rank() != root) {
    if (send_count * send_type->size != 0) s.send_round(send, send_count, *send_type, root);
    return;
  }
  const auto at = [&](int rank) { return element(recv, displacements[rank], *recv_type); };
  if (!in_place(send)) s.copy_own(send, send_count, *send_type, at(root), recv_counts[root], *recv_type);
  int posted = 0;
  for (int rank = 0; rank < s.size(); ++rank) {
    if (rank == root || recv_counts[rank] * recv_type->size == 0) continue;
    s.recv(at(rank), recv_counts[rank], *recv_type, rank);
    if (++posted % window == 0) s.wait();
  }
  s.wait();
}

void scatter(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
             Datatype* recv_type, int root) noexcept {
  const int n = s.size();
  const bool at_root = s.rank() == root;
  const MPI_Count block = at_root ? send_count * send_type->size : recv_count * recv_type->size;
  if (block == 0) return;
  if (use_tree(s, block)) return scatter_tree(s, send, send_count, send_type, recv, recv_count, recv_type, root, block);
  if (!at_root) return s.recv_round(recv, recv_count, *recv_type, root);
  int posted = 0;
  for (int rank = 0; rank < n; ++rank) {
    if (rank == root) continue;
    s.send(element(send, rank * send_count, *send_type), send_count, *send_type, rank);
    if (++posted % window == 0) s.wait();
  }
  if (!in_place(recv))
    s.copy_own(element(send, root * send_count, *send_type), send_count, *send_type, recv, recv_count, *recv_type);
  s.wait();
}

void scatterv(Steps& s, const void* send, CountArray send_counts, CountArray displacements, Datatype* send_type,
              void* recv, MPI_Count recv_count, Datatype* recv_type, int root) noexcept {
  if (s.rank() != root) {
    if (recv_count * recv_type->size != 0) s.recv_round(recv, recv_count, *recv_type, root);
    return;
  }
  const auto at = [&](int rank) { return element(send, displacements[rank], *send_type); };
  int posted = 0;
  for (int rank = 0; rank < s.size(); ++rank) {
    if (rank == root || send_counts[rank] * send_type->size == 0) continue;
    s.send(at(rank), send_counts[rank], *send_type, rank);
    if (++posted % window == 0) s.wait();
  }
  if (!in_place(recv)) s.copy_own(at(root), send_counts[root], *send_type, recv, recv_count, *recv_type);
  s.wait();
}

}  // namespace heddle::coll
