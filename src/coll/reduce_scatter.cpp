// MPI_Reduce_scatter_block and MPI_Reduce_scatter: halving of ranges for short vectors, block by block for long ones, and an allreduce for
// operations that do not commute.
#include "coll/partial.hpp"
#include "sys/params.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_SIZE_ALIKE(halving_limit, "HEDDLE_REDUCE_SCATTER_HALVING_LIMIT", 512 * 1024, 0,
                        "Reduce-scatters of fewer bytes in all halve their vectors, others exchange block by block");

/// The blocks of the ranks, one after another.
struct Shares {
  MPI_Count equal = 0;  // block length when `counts` is null
  CountArray counts;
  int ranks = 0;
  const MPI_Count* starts = nullptr;  // ranks + 1 of them, for unequal blocks

  [[nodiscard]] MPI_Count start(int rank) const noexcept { return starts ? starts[rank] : rank * equal; }
  [[nodiscard]] MPI_Count count(int rank) const noexcept { return start(rank + 1) - start(rank); }
  [[nodiscard]] MPI_Count total() const noexcept { return start(ranks); }
};

// The whole vector everywhere, and the own block of it: for operations that do not commute.
void by_allreduce(Steps& s, const void* send, void* recv, const Shares& shares, Datatype& type, const Op& op) noexcept {
  void* all = s.temporary(shares.total(), type);
  if (!all) return;
  allreduce(s, in_place(send) ? recv : send, all, shares.total(), type, op);
  const MPI_Count mine = shares.count(s.rank());
  s.copy(element(all, shares.start(s.rank()), type), mine, type, recv, mine, type);
}

// Halves the range of blocks with the partner at half the distance, a quarter, … Commuting operations only.
void by_halving(Steps& s, const void* send, void* recv, const Shares& shares, Datatype& type, const Op& op) noexcept {
  const int rank = s.rank();
  const Fold fold(s.size(), rank);
  const MPI_Count total = shares.total();
  Partial partial(s, op, total, type, in_place(send) ? recv : send, std::nullopt);
  if (!s.ok()) return;
  if (!fold_in(s, fold, partial, total, type)) {
    if (shares.count(rank)) s.recv_round(recv, shares.count(rank), type, fold.partner);
    return;
  }
  const auto start = [&](int virtual_rank) {  // of the blocks of a virtual rank: those of both ranks of a pair
    return shares.start(virtual_rank < fold.pairs ? 2 * virtual_rank : virtual_rank + fold.pairs);
  };
  int first = 0, last = fold.size;
  for (int mask = fold.size / 2; mask > 0; mask /= 2) {
    const int peer = fold.real(fold.virtual_rank ^ mask), middle = first + mask;
    const bool upper = fold.virtual_rank & mask;
    const int give_first = upper ? first : middle, give_last = upper ? middle : last;
    (upper ? first : last) = middle;
    s.exchange(partial.value(start(give_first)), start(give_last) - start(give_first), type, peer,
               partial.incoming(start(first)), start(last) - start(first), type, peer);
    partial.combine(peer < rank, start(first), start(last));
  }
  if (fold.partner >= 0 && shares.count(fold.partner))
    s.send_round(partial.value(shares.start(fold.partner)), shares.count(fold.partner), type, fold.partner);
  if (shares.count(rank))
    s.copy(partial.value(shares.start(rank)), shares.count(rank), type, recv, shares.count(rank), type);
}

// Everyone sends each block straight to its owner, one partner at a time. Commuting operations only.
void by_pairs(Steps& s, const void* send, void* recv, const Shares& shares, Datatype& type, const Op& op) noexcept {
  const int n = s.size(), rank = s.rank();
  const MPI_Count mine = shares.count(rank);
  const void* own = in_place(send) ? recv : send;
  // In place, the result's room still holds values that others need.
  void* result = in_place(send) ? s.temporary(mine, type) : recv;
  void* incoming = s.temporary(mine, type);
  if (!s.ok()) return;
  for (int k = 1; k < n; ++k) {
    const int to = (rank + k) % n, from = (rank - k + n) % n;
    void* place = k == 1 ? result : incoming;
    if (shares.count(to)) s.send(element(own, shares.start(to), type), shares.count(to), type, to);
    if (mine) s.recv(place, mine, type, from);
    s.wait();
    if (!mine) continue;
    if (k == 1)
      s.reduce(op, element(own, shares.start(rank), type), result, mine, type);
    else
      s.reduce(op, incoming, result, mine, type);
  }
  if (mine && result != recv) s.copy(result, mine, type, recv, mine, type);
}

void run(Steps& s, const void* send, void* recv, const Shares& shares, Datatype& type, const Op& op) noexcept {
  const MPI_Count total = shares.total();
  if (total == 0) return;
  if (s.size() == 1) {
    if (!in_place(send)) s.copy(send, total, type, recv, total, type);
    return;
  }
  if (!op.commutative) return by_allreduce(s, send, recv, shares, type, op);
  if (total * type.size < halving_limit.value()) return by_halving(s, send, recv, shares, type, op);
  by_pairs(s, send, recv, shares, type, op);
}

}  // namespace

void reduce_scatter_block(Steps& s, const void* send, void* recv, MPI_Count recv_count, Datatype& type,
                          const Op& op) noexcept {
  run(s, send, recv, {recv_count, {}, s.size(), nullptr}, type, op);
}

void reduce_scatter(Steps& s, const void* send, void* recv, CountArray recv_counts, Datatype& type,
                    const Op& op) noexcept {
  const int n = s.size();
  auto* starts = reinterpret_cast<MPI_Count*>(s.temporary((n + MPI_Count{1}) * MPI_Count{sizeof(MPI_Count)}));
  if (!starts) return;
  starts[0] = 0;
  for (int rank = 0; rank < n; ++rank) starts[rank + 1] = starts[rank] + recv_counts[rank];
  run(s, send, recv, {0, recv_counts, n, starts}, type, op);
}

}  // namespace heddle::coll
