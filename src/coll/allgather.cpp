// MPI_Allgather, Allgatherv: recursive doubling or Bruck for short results, a ring for long ones.
#include "coll/algorithms.hpp"
#include "coll/node_slots.hpp"
#include "sys/params.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_SIZE_ALIKE(
    ring_limit, "HEDDLE_ALLGATHER_RING_LIMIT", 64 * 1024, 0,
    "Allgathers whose result has at least this many bytes pass the blocks around a ring, shorter ones use "
    "ceil(log2 ranks) rounds");

/// Where each rank's block is, in elements of the receive type.
struct Layout {
  void* buffer;
  Datatype& type;
  MPI_Count count;  // of each block, when `counts` is null
  CountArray counts, displacements;

  [[nodiscard]] MPI_Count count_of(int rank) const noexcept { return counts.is_null() ? count : counts[rank]; }
  [[nodiscard]] void* at(int rank) const noexcept {
    return element(buffer, counts.is_null() ? rank * count : displacements[rank], type);
  }
  [[nodiscard]] MPI_Count bytes_of(int rank) const noexcept { return count_of(rank) * type.size; }
};

// After round k a rank has the blocks of its group of 2^(k+1). Only for a power of two ranks and equal blocks.
void doubling(Steps& s, const Layout& layout) noexcept {
  const int n = s.size(), rank = s.rank();
  for (int mask = 1; mask < n; mask *= 2) {
    const int peer = rank ^ mask, mine = rank & ~(mask - 1), theirs = peer & ~(mask - 1);
    s.exchange(layout.at(mine), mask * layout.count, layout.type, peer, layout.at(theirs), mask * layout.count,
               layout.type, peer);
  }
}

// Bruck: blocks counted from the own rank; after round k the first 2^(k+1) are there. Any n, any block sizes.
void bruck(Steps& s, const Layout& layout, MPI_Count total) noexcept {
  const int n = s.size(), rank = s.rank();
  std::byte* blocks = s.temporary(total);
  if (!blocks) return;
  const auto bytes_of = [&](int from, MPI_Count ranks) {  // of `ranks` blocks, starting with that of rank `from`
    if (layout.counts.is_null()) return ranks * layout.bytes_of(0);
    MPI_Count bytes = 0;
    for (MPI_Count i = 0; i < ranks; ++i) bytes += layout.bytes_of(static_cast<int>((from + i) % n));
    return bytes;
  };
  s.copy(layout.at(rank), layout.count_of(rank), layout.type, blocks, layout.bytes_of(rank), byte_type());
  MPI_Count have = layout.bytes_of(rank);
  for (MPI_Count distance = 1; distance < n; distance *= 2) {
    const MPI_Count ranks = std::min(distance, n - distance);
    const int to = static_cast<int>((rank - distance + n) % n), from = static_cast<int>((rank + distance) % n);
    const MPI_Count incoming = bytes_of(from, ranks);
    s.exchange(blocks, bytes_of(rank, ranks), byte_type(), to, blocks + have, incoming, byte_type(), from);
    have += incoming;
  }
  MPI_Count offset = layout.bytes_of(rank);
  for (int i = 1; i < n;) {
    const int from = (rank + i) % n;
    // Equal blocks lie one after another up to the end of the buffer: one copy for all.
    const int ranks = layout.counts.is_null() ? std::min(n - i, n - from) : 1;
    const MPI_Count bytes = bytes_of(from, ranks);
    s.copy(blocks + offset, bytes, byte_type(), layout.at(from), ranks * layout.count_of(from), layout.type);
    offset += bytes;
    i += ranks;
  }
}

void ring(Steps& s, const Layout& layout) noexcept {
  const int n = s.size(), rank = s.rank(), to = (rank + 1) % n, from = (rank - 1 + n) % n;
  for (int step = 0; step < n - 1; ++step) {
    const int mine = (rank - step + n) % n, next = (rank - step - 1 + n) % n;
    s.exchange(layout.at(mine), layout.count_of(mine), layout.type, to, layout.at(next), layout.count_of(next),
               layout.type, from);
  }
}

void by_slots(Steps& s, const Layout& layout) noexcept {
  const MPI_Count block = layout.bytes_of(0);
  NodeExchange exchange(s);
  copy({layout.at(s.rank()), layout.count, layout.type}, {exchange.own_value(), block, byte_type()});
  exchange.post(block);
  exchange.await_all(block);
  for (int rank = 0; rank < s.size(); ++rank)
    if (rank != s.rank())
      copy({exchange.value(rank), block, byte_type()}, {layout.at(rank), layout.count, layout.type});
}

void place_own(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, const Layout& layout) noexcept {
  if (!in_place(send))
    s.copy_own(send, send_count, *send_type, layout.at(s.rank()), layout.count_of(s.rank()), layout.type);
}

}  // namespace

void allgather(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
               Datatype& recv_type) noexcept {
  const int n = s.size();
  const MPI_Count total = n * recv_count * recv_type.size;
  if (total == 0) return;
  const Layout layout{recv, recv_type, recv_count, {}, {}};
  place_own(s, send, send_count, send_type, layout);
  if (n == 1) return;
  if (use_slots(s, recv_count * recv_type.size)) return by_slots(s, layout);
  if (n > 2 && total >= ring_limit.value()) return ring(s, layout);
  if (std::has_single_bit(static_cast<unsigned>(n))) return doubling(s, layout);
  bruck(s, layout, total);
}

void allgatherv(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv,
                CountArray recv_counts, CountArray displacements, Datatype& recv_type) noexcept {
  const int n = s.size();
  const Layout layout{recv, recv_type, 0, recv_counts, displacements};
  MPI_Count total = 0;
  for (int rank = 0; rank < n; ++rank) total += layout.bytes_of(rank);
  if (total == 0) return;
  place_own(s, send, send_count, send_type, layout);
  if (n == 1) return;
  if (n <= 3 || total >= ring_limit.value()) return ring(s, layout);
  bruck(s, layout, total);
}

}  // namespace heddle::coll
