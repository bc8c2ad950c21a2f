// MPI_Reduce: a binomial tree for short vectors, reduce-scatter by halving and a gather for long ones.
#include "coll/partial.hpp"
#include "sys/params.hpp"

namespace heddle::coll {

HEDDLE_PARAM_SIZE_ALIKE(
    tree_limit, "HEDDLE_REDUCE_TREE_LIMIT", 8 * 1024, 0,
    "Reductions to a root of fewer bytes combine whole vectors along a binomial tree, others cut them up");

void Halving::run(Steps& s, const Fold& fold, Partial& partial, MPI_Count count, Datatype& type) noexcept {
  *this = {0, count};
  for (int mask = 1; mask < fold.size; mask *= 2) {
    const int peer = fold.real(fold.virtual_rank ^ mask);
    const MPI_Count middle = first + (last - first) / 2;
    const bool upper = fold.virtual_rank & mask;
    const MPI_Count give = upper ? first : middle, give_count = upper ? middle - first : last - middle;
    (upper ? first : last) = middle;
    s.exchange(partial.value(give), give_count, type, peer, partial.incoming(first), last - first, type, peer);
    partial.combine_alone(peer < s.rank(), first, last);
  }
}

void reduce_binomial(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op,
                     int root) noexcept {
  const int n = s.size();
  // An operation that does not commute is combined in rank order at rank 0, which passes the result on.
  const int top = op.commutative ? root : 0, me = (s.rank() - top + n) % n;
  const auto absolute = [&](MPI_Count relative) { return static_cast<int>((relative + top) % n); };
  const bool at_root = s.rank() == root;
  const void* own = at_root && in_place(send) ? recv : send;
  const MPI_Count span = tree_span(me, n);
  if (me && span == 1) {
    s.send_round(own, count, type, absolute(me - 1));
  } else {
    Partial partial(s, op, count, type, own, at_root && me == 0 ? std::optional(recv) : std::nullopt);
    if (!s.ok()) return;
    for (MPI_Count distance = 1; distance < span && me + distance < n; distance *= 2) {
      s.recv_round(partial.incoming(), count, type, absolute(me + distance));
      partial.combine(false);
    }
    if (me) {
      s.send_round(partial.value(), count, type, absolute(me - span));
    } else if (at_root) {
      partial.store();
    } else {
      s.send_round(partial.value(), count, type, root);
    }
  }
  if (at_root && me != 0) s.recv_round(recv, count, type, top);
}

void reduce_halving(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op,
                    int root) noexcept {
  const bool at_root = s.rank() == root;
  const Fold fold(s.size(), s.rank(), root);
  const void* own = at_root && in_place(send) ? recv : send;
  Partial partial(s, op, count, type, own, at_root ? std::optional(recv) : std::nullopt);
  if (!s.ok() || !fold_in(s, fold, partial, count, type)) return;
  Halving mine;
  mine.run(s, fold, partial, count, type);
  partial.store(mine.first, mine.last);

  // The way back: in each round the half of the ranks that is not on the root's side gives what it has and is done.
  const int root_virtual = root < 2 * fold.pairs ? root / 2 : root - fold.pairs;
  for (int mask = fold.size / 2; mask > 0; mask /= 2) {
    const int peer_virtual = fold.virtual_rank ^ mask, peer = fold.real(peer_virtual);
    if ((fold.virtual_rank ^ root_virtual) & mask)
      return s.send_round(partial.value(mine.first), mine.last - mine.first, type, peer);
    const Halving theirs = Halving::range(peer_virtual, 2 * mask, count);
    s.recv_round(const_cast<void*>(partial.value(theirs.first)), theirs.last - theirs.first, type, peer);
    mine.widen(fold.virtual_rank, mask, count);
  }
}

void reduce(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, int root) noexcept {
  if (count == 0) return;
  const int n = s.size();
  if (n == 1) {
    if (!in_place(send)) s.copy(send, count, type, recv, count, type);
    return;
  }
  if (n > 2 && count >= floor_power_of_two(n) && count * type.size >= tree_limit.value())
    return reduce_halving(s, send, recv, count, type, op, root);
  reduce_binomial(s, send, recv, count, type, op, root);
}

}  // namespace heddle::coll
