// MPI_Scan and MPI_Exscan by recursive doubling.
#include "coll/partial.hpp"

namespace heddle::coll {
namespace {

// Every rank keeps the combination of its group of 1, 2, 4, … ranks (as far as they exist) to exchange, and beside it
// that of the ranks of the group below it, which is what it wants in the end.
void scan_doubling(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op,
                   bool inclusive) noexcept {
  const int n = s.size(), rank = s.rank();
  const void* own = send;
  if (in_place(send) && n > 1) {  // the result grows in `recv` while the own values are still needed
    void* saved = s.temporary(count, type);
    if (!saved) return;
    s.copy(recv, count, type, saved, count, type);
    own = saved;
  } else if (inclusive && !in_place(send)) {
    s.copy(send, count, type, recv, count, type);
  }
  if (n == 1) return;
  Partial group(s, op, count, type, own, std::nullopt);
  if (!s.ok()) return;
  bool empty = !inclusive;
  for (int mask = 1; mask < n; mask *= 2) {
    const int peer = rank ^ mask;
    if (peer < n) {
      s.exchange(group.value(), count, type, peer, group.incoming(), count, type, peer);
      if (peer < rank) {
        if (empty)
          s.copy(group.incoming(), count, type, recv, count, type);
        else
          s.reduce(op, group.incoming(), recv, count, type);
        empty = false;
      }
      group.combine(peer < rank);
    }
    if (mask > n / 2) break;
  }
}

}  // namespace

void scan(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept {
  if (count != 0) scan_doubling(s, send, recv, count, type, op, true);
}

void exscan(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept {
  if (count != 0) scan_doubling(s, send, recv, count, type, op, false);
}

}  // namespace heddle::coll
