// MPI_Allreduce: recursive doubling for short vectors, halving and doubling (Rabenseifner) or a ring for long ones.
#include "coll/node_slots.hpp"
#include "coll/partial.hpp"
#include "sys/params.hpp"

namespace heddle::coll {

HEDDLE_PARAM_SIZE_ALIKE(doubling_limit, "HEDDLE_ALLREDUCE_DOUBLING_LIMIT", 8 * 1024, 0,
                        "Allreduces of fewer bytes exchange whole vectors, others cut them up");
HEDDLE_PARAM_SIZE_ALIKE(
    ring_limit, "HEDDLE_ALLREDUCE_RING_LIMIT", 256 * 1024, 0,
    "Allreduces of at least this many bytes go around a ring when the number of ranks is no power of two and "
    "the operation commutes");

// Whole vectors between partners at distance 1, 2, 4, …: every rank computes everything, from the same operands.
void allreduce_doubling(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type,
                        const Op& op) noexcept {
  const Fold fold(s.size(), s.rank());
  Partial partial(s, op, count, type, in_place(send) ? recv : send, recv);
  if (!s.ok()) return;
  if (!fold_in(s, fold, partial, count, type)) return s.recv_round(recv, count, type, fold.partner);
  for (int mask = 1; mask < fold.size; mask *= 2) {
    const int peer = fold.real(fold.virtual_rank ^ mask);
    s.exchange(partial.value(), count, type, peer, partial.incoming(), count, type, peer);
    partial.combine(peer < s.rank());
  }
  partial.store();
  if (fold.partner >= 0) s.send_round(recv, count, type, fold.partner);
}

void allreduce_halving(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept {
  const Fold fold(s.size(), s.rank());
  Partial partial(s, op, count, type, in_place(send) ? recv : send, recv);
  if (!s.ok()) return;
  if (!fold_in(s, fold, partial, count, type)) return s.recv_round(recv, count, type, fold.partner);
  Halving mine;
  mine.run(s, fold, partial, count, type);
  partial.store(mine.first, mine.last);
  for (int mask = fold.size / 2; mask > 0; mask /= 2) {
    const int peer_virtual = fold.virtual_rank ^ mask, peer = fold.real(peer_virtual);
    const Halving theirs = Halving::range(peer_virtual, 2 * mask, count);
    s.exchange(element(recv, mine.first, type), mine.last - mine.first, type, peer, element(recv, theirs.first, type),
               theirs.last - theirs.first, type, peer);
    mine.widen(fold.virtual_rank, mask, count);
  }
  if (fold.partner >= 0) s.send_round(recv, count, type, fold.partner);
}

// Block b starts at rank b+1 and is complete at rank b; then the blocks go around once more. Each rank sends 2(n-1)/n
// of the vector.
void allreduce_ring(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept {
  const int n = s.size(), rank = s.rank(), to = (rank + 1) % n, from = (rank - 1 + n) % n;
  const auto begin = [&](int block) { return count / n * block + std::min<MPI_Count>(block, count % n); };
  const auto length = [&](int block) { return begin(block + 1) - begin(block); };
  const auto at = [&](int block) { return element(recv, begin(block), type); };
  const bool in_recv = in_place(send);
  void* incoming = in_recv ? s.temporary(length(0), type) : nullptr;
  if (!s.ok()) return;
  for (int step = 1; step < n; ++step) {
    const int out = (rank - step + n) % n, in = (rank - step - 1 + 2 * n) % n;
    const void* outgoing = step == 1 && !in_recv ? element(send, begin(out), type) : at(out);
    void* place = in_recv ? incoming : at(in);
    s.exchange(outgoing, length(out), type, to, place, length(in), type, from);
    // The sum of the ranks before is the left operand.
    if (in_recv) {
      s.reduce(op, incoming, at(in), length(in), type);
    } else {
      // The operation commutes: own op incoming, because our own values must not be written.
      s.reduce(op, element(send, begin(in), type), at(in), length(in), type);
    }
  }
  for (int step = 0; step < n - 1; ++step) {
    const int out = (rank - step + n) % n, in = (rank - step - 1 + n) % n;
    s.exchange(at(out), length(out), type, to, at(in), length(in), type, from);
  }
}

void allreduce(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept {
  if (count == 0) return;
  const int n = s.size();
  if (n == 1) {
    if (!in_place(send)) s.copy(send, count, type, recv, count, type);
    return;
  }
  const MPI_Count bytes = count * type.size;
  const bool doubles = bytes < doubling_limit.value() || count < floor_power_of_two(n);
  // Only where slots give the same bits as the messages used before them: both combine in the order of doubling.
  if (doubles && type.contiguous && type.true_lb == 0 && use_slots(s, bytes))
    return allreduce_in_slots(s, send, recv, count, type, op);
  if (doubles) return allreduce_doubling(s, send, recv, count, type, op);
  if (op.commutative && bytes >= ring_limit.value() && !std::has_single_bit(static_cast<unsigned>(n)) && count >= n)
    return allreduce_ring(s, send, recv, count, type, op);
  allreduce_halving(s, send, recv, count, type, op);
}

}  // namespace heddle::coll
