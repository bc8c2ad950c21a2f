// MPI_Alltoall, Alltoallv, Alltoallw: Bruck for small blocks on many ranks, windows of direct messages otherwise.
#include "coll/algorithms.hpp"
#include "coll/node_slots.hpp"
#include "sys/params.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_SIZE_ALIKE(
    bruck_limit, "HEDDLE_ALLTOALL_BRUCK_LIMIT", 256, 0,
    "Alltoalls of blocks of at most this many bytes go in ceil(log2 ranks) rounds (with 8 ranks and more)");
HEDDLE_PARAM_SIZE(pairwise_limit, "HEDDLE_ALLTOALL_PAIRWISE_LIMIT", 64 * 1024, 0, sys::ParamRange::unlimited,
                  "Alltoalls of blocks of at least this many bytes exchange with one rank at a time, others with many");

// Round k moves every block whose distance has bit k set by 2^k ranks. Each block travels popcount(distance) times.
void bruck(Steps& s, const Blocks& send, MPI_Count send_count, const Blocks& recv, MPI_Count recv_count,
           MPI_Count block) noexcept {
  const int n = s.size(), rank = s.rank();
  std::byte* blocks = s.temporary(n * block);  // block i: for rank+i, later from rank-i
  std::byte* out = s.temporary((n + 1) / 2 * block);
  std::byte* in = s.temporary((n + 1) / 2 * block);
  if (!s.ok()) return;
  Datatype &send_type = *send.type, &recv_type = *recv.type;
  s.copy(element(send.buffer, rank * send_count, send_type), (n - rank) * send_count, send_type, blocks,
         (n - rank) * block, byte_type());
  if (rank > 0)
    s.copy(send.buffer, rank * send_count, send_type, blocks + (n - rank) * block, rank * block, byte_type());
  for (MPI_Count distance = 1; distance < n; distance *= 2) {
    MPI_Count moved = 0;
    const auto each_run = [&](auto&& copy) {  // runs of blocks whose index has the bit set
      moved = 0;
      for (MPI_Count i = distance; i < n; i += 2 * distance) {
        const MPI_Count run = std::min(distance, n - i) * block;
        copy(blocks + i * block, run);
        moved += run;
      }
    };
    each_run([&](std::byte* at, MPI_Count run) { s.copy(at, run, byte_type(), out + moved, run, byte_type()); });
    const int to = static_cast<int>((rank + distance) % n), from = static_cast<int>((rank - distance + n) % n);
    s.exchange(out, moved, byte_type(), to, in, moved, byte_type(), from);
    each_run([&](std::byte* at, MPI_Count run) { s.copy(in + moved, run, byte_type(), at, run, byte_type()); });
  }
  for (int i = 0; i < n; ++i) {
    const int from = (rank - i + n) % n;
    s.copy(blocks + i * block, block, byte_type(), element(recv.buffer, from * recv_count, recv_type), recv_count,
           recv_type);
  }
}

// Every pair swaps its two blocks of `recv` through a temporary: in round k the partners' ranks add up to k (mod n).
template <typename CountOf, typename TypeOf, typename At>
void swap_in_place(Steps& s, MPI_Count largest, CountOf&& count_of, TypeOf&& type_of, At&& at) noexcept {
  const int n = s.size(), rank = s.rank();
  std::byte* outgoing = s.temporary(largest);
  if (!outgoing) return;
  for (int k = 0; k < n; ++k) {
    const int peer = (k - rank + n) % n;
    const MPI_Count count = count_of(peer);
    Datatype& type = type_of(peer);
    if (peer == rank || count * type.size == 0) continue;
    s.copy(at(peer), count, type, outgoing, count * type.size, byte_type());
    s.exchange(outgoing, count * type.size, byte_type(), peer, at(peer), count, type, peer);
  }
}

}  // namespace

void alltoall(Steps& s, const void* send, MPI_Count send_count, Datatype* send_type, void* recv, MPI_Count recv_count,
              Datatype& recv_type) noexcept {
  const int n = s.size(), rank = s.rank();
  const MPI_Count block = recv_count * recv_type.size;
  if (block == 0) return;
  if (n > 1 && use_slots(s, n * block)) {
    NodeExchange exchange(s);
    if (in_place(send))
      copy({recv, n * recv_count, recv_type}, {exchange.own_value(), n * block, byte_type()});
    else
      copy({send, n * send_count, *send_type}, {exchange.own_value(), n * block, byte_type()});
    exchange.post(n * block);
    exchange.await_all(n * block);
    for (int from = 0; from < n; ++from)
      copy({exchange.value(from) + rank * block, block, byte_type()}, {element(recv, from * recv_count, recv_type), recv_count, recv_type});
    return;
  }
  const auto recv_at = [&](int from) { return element(recv, from * recv_count, recv_type); };
  if (in_place(send)) {
    return swap_in_place(
        s, block, [&](int) { return recv_count; }, [&](int) -> Datatype& { return recv_type; }, recv_at);
  }
  if (n >= 8 && block <= bruck_limit.value()) {
    const Blocks from{const_cast<void*>(send), {}, {}, send_type, nullptr}, to{recv, {}, {}, &recv_type, nullptr};
    return bruck(s, from, send_count, to, recv_count, block);
  }
  const auto send_at = [&](int to) { return element(send, to * send_count, *send_type); };
  if (n == 2) {
    const int peer = 1 - rank;
    s.send(send_at(peer), send_count, *send_type, peer);  // in flight while the own block is copied
    s.copy_own(send_at(rank), send_count, *send_type, recv_at(rank), recv_count, recv_type);
    s.recv_round(recv_at(peer), recv_count, recv_type, peer);
    return s.wait();
  }
  // Spread over the ranks: in step k everyone sends to rank+k and receives from rank-k.
  const int width = block >= pairwise_limit.value() ? 1 : window / 2;
  for (int first = 1; first < n; first += width) {
    const int last = std::min(n - first, width) + first;
    for (int k = first; k < last; ++k) s.recv(recv_at((rank - k + n) % n), recv_count, recv_type, (rank - k + n) % n);
    for (int k = first; k < last; ++k) s.send(send_at((rank + k) % n), send_count, *send_type, (rank + k) % n);
    if (first == 1) s.copy_own(send_at(rank), send_count, *send_type, recv_at(rank), recv_count, recv_type);
    s.wait();
  }
  if (n == 1) s.copy_own(send_at(0), send_count, *send_type, recv_at(0), recv_count, recv_type);
}

void alltoallv(Steps& s, const Blocks& send, const Blocks& recv) noexcept {
  const int n = s.size(), rank = s.rank();
  if (in_place(send.buffer)) {
    MPI_Count largest = 0;
    for (int i = 0; i < n; ++i) largest = std::max(largest, recv.counts[i] * recv.type_of(i).size);
    return swap_in_place(
        s, largest, [&](int peer) { return recv.counts[peer]; },
        [&](int peer) -> Datatype& { return recv.type_of(peer); }, [&](int peer) { return recv.at(peer); });
  }
  s.copy_own(send.at(rank), send.counts[rank], send.type_of(rank), recv.at(rank), recv.counts[rank],
             recv.type_of(rank));
  constexpr int width = window / 2;
  for (int first = 1; first < n; first += width) {
    const int last = std::min(n - first, width) + first;
    for (int k = first; k < last; ++k) {
      const int from = (rank - k + n) % n;
      Datatype& type = recv.type_of(from);
      if (recv.counts[from] * type.size != 0) s.recv(recv.at(from), recv.counts[from], type, from);
    }
    for (int k = first; k < last; ++k) {
      const int to = (rank + k) % n;
      Datatype& type = send.type_of(to);
      if (send.counts[to] * type.size != 0) s.send(send.at(to), send.counts[to], type, to);
    }
    s.wait();
  }
}

}  // namespace heddle::coll
