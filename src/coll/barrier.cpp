// MPI_Barrier by dissemination.
#include "coll/algorithms.hpp"
#include "coll/node_slots.hpp"

namespace heddle::coll {

// Round k tells rank+2^k what all of the last 2^k ranks did: ceil(log2 n) rounds for any n, one message exchange for
// two.
void barrier(Steps& s) noexcept {
  const int n = s.size(), rank = s.rank();
  if (n > 1 && use_slots(s, 0)) return barrier_in_slots(s);
  Datatype& type = byte_type();
  for (int distance = 1; distance < n; distance *= 2) {
    const int to = rank + distance < n ? rank + distance : rank + distance - n;
    const int from = rank >= distance ? rank - distance : rank - distance + n;
    s.exchange(nullptr, 0, type, to, nullptr, 0, type, from);
    if (distance > n / 2) break;  // doubling would overflow for the largest communicators
  }
}

}  // namespace heddle::coll
