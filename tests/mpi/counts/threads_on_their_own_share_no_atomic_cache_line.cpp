// ranks: 1 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=4
// binary: own (its instructions are counted)
// Two threads with a communicator each, or an endpoint each: no cache line is the object of an atomic read-modify-write
// of both, neither in messages to oneself nor in messages between processes nor in allreduces. What they share they
// only read, so the one cannot slow the other down. The addresses are taken from the instructions as they are executed.
#include <mpix.h>

#include "counts.hpp"

using namespace test;

namespace {

void merge(Counts& all, const Counts& more) {
  for (int i = 0; i < more.line_count; ++i) {
    if (all.touched(more.lines[i])) continue;
    CHECK_LT(all.line_count, Counts::room);
    all.lines[all.line_count++] = more.lines[i];
  }
  all.atomics += more.atomics;
  CHECK_EQ(all.lines_lost + more.lines_lost, 0);
}

// One thread's side: messages to `peer` and from it on `comm` until everything is warm, then one of each, counted. The
// receive is posted first: to keep a message that nobody waits for takes memory, and memory is the C library's to
// share.
Counts messages(MPI_Comm comm, int peer, std::atomic<int>& mine, std::atomic<int>& theirs) {
  long out = 7, in = 0;
  for (int i = 0; i < 40; ++i)
    MPI_Sendrecv(&out, 8, MPI_BYTE, peer, 0, &in, 8, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
  const auto meet = [&](int n) {  // past MPI: nobody waits in a counted call. The release pairs with the acquire.
    mine.store(n, std::memory_order_release);
    CHECK(eventually([&] { return theirs.load(std::memory_order_acquire) >= n; }));
  };
  MPI_Request requests[2];
  Counts all = count([&] { MPI_Irecv(&in, 8, MPI_BYTE, peer, 0, comm, &requests[0]); });
  meet(1);
  merge(all, count([&] { MPI_Isend(&out, 8, MPI_BYTE, peer, 0, comm, &requests[1]); }));
  meet(2);
  merge(all, count([&] { MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); }));
  CHECK_EQ(in, 7);
  return all;
}

Counts reductions(MPI_Comm comm) {
  double mine = 1, sum = 0;
  for (int i = 0; i < 40; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  const Counts all = count([&] { MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm); });
  CHECK_EQ(all.lines_lost, 0);
  return all;
}

void check_apart(const Counts& one, const Counts& two, const char* what) {
  for (int i = 0; i < one.line_count; ++i)
    if (two.touched(one.lines[i]))
      check_fail(__FILE__, __LINE__,
                 "%s: both threads write the cache line %p atomically (%ld and %ld atomic operations)", what,
                 reinterpret_cast<void*>(one.lines[i]), one.atomics, two.atomics);
}

struct Shared {
  struct alignas(64) PerThread {
    std::atomic<int> step[2];
  } thread[4];
};

}  // namespace

int main() {
  const World w = init_to_count();
  Shared& shared = share_past_mpi<Shared>(w);
  const int peer = (w.rank + 1) % w.size;
  for (const bool endpoints : {false, true}) {
    const char* what = endpoints ? "an endpoint each" : "a communicator each";
    MPI_Comm comms[2];
    if (endpoints)
      MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 2, MPI_INFO_NULL, comms);
    else
      for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Counts counts[2], sums[2];
    // One after the other: a thread that finds a lock taken would look elsewhere, by right.
    for (int t : {0, 1})
      run_threads(1, [&](int) {
        auto* step = shared.thread[2 * endpoints + t].step;
        counts[t] = messages(comms[t], endpoints ? 2 * peer + t : peer, step[w.rank], step[peer]);
      });
    CHECK_GT(counts[0].atomics, 0);
    check_apart(counts[0], counts[1], what);
    if (!endpoints) {
      for (int t : {0, 1}) run_threads(1, [&](int) { sums[t] = reductions(comms[t]); });
      check_apart(sums[0], sums[1], "MPI_Allreduce");
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  }
  return finish();
}
