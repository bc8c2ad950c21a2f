// ranks: 2
// timeout: 60
// env: HEDDLE_VCIS=4
// binary: own (its instructions are counted)
// What one-sided operations of 8 bytes cost under MPI_THREAD_MULTIPLE, counted instruction by instruction. On mapped memory a put and a
// get take no lock, no atomic read-modify-write, no allocation and no system call, in at most 120 instructions of the library; fetch_and_op and
// compare_and_swap take one atomic operation, a flush one fence. On memory that only the kernel reaches 64 puts and their flush take
// one system call. Nothing that all threads share is written: the only line an atomic operation touches is the target's own.
#include "counts.hpp"

using namespace test;

namespace {

constexpr int words = 512;
bool counted = false;  // the first rounds fill caches and find the target

struct Most {
  long atomics, calls, instructions;
};

void check(const char* what, const Counts& c, Most most) {
  if (!counted) return;
  if (c.locks > 0 || c.atomics > most.atomics || c.allocations > 0 || c.calls > most.calls || c.instructions > most.instructions)
    check_fail(__FILE__, __LINE__, "%s: %ld locks (0), %ld atomic operations (at most %ld), %ld allocations (0), %ld system calls (at most %ld), %ld instructions (at most %ld)", what, c.locks,
               c.atomics, most.atomics, c.allocations, c.calls, most.calls, c.instructions, most.instructions);
}

// A call of as many arguments that does nothing: what belongs to the caller.
int nothing(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) { return MPI_SUCCESS; }
int (*volatile call_nothing)(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) = nothing;

struct Window {
  MPI_Win win = MPI_WIN_NULL;
  long* memory = nullptr;
};

// Operations of rank 0 on memory of rank 1 that both map.
void mapped(const Window& window, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    counted = i >= 4;
    const MPI_Aint at = 8 * (i % words);
    long value = 1000 + i, got = -1, expected = value;
    const long around = count([&] { call_nothing(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, window.win); }).instructions;
    const Counts put = count([&] { MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, window.win); });
    const Counts put_bytes = count([&] { MPI_Put(&value, 8, MPI_BYTE, 1, at, 8, MPI_BYTE, window.win); });
    const Counts flush = count([&] { MPI_Win_flush(1, window.win); });
    const Counts get = count([&] { MPI_Get(&got, 1, MPI_LONG, 1, at, 1, MPI_LONG, window.win); });
    const Counts flush_all = count([&] { MPI_Win_flush_all(window.win); });
    CHECK_EQ(got, value);
    check("MPI_Put of a long", put, {0, 0, 120 + around});
    check("MPI_Put of 8 bytes", put_bytes, {0, 0, 120 + around});
    check("MPI_Get of a long", get, {0, 0, 120 + around});
    check("MPI_Win_flush", flush, {1, 0, 120});
    check("MPI_Win_flush_all", flush_all, {1, 0, 200});
    if (i == rounds - 1)
      std::printf("instructions: put %ld, get %ld, flush %ld\n", put.instructions - around, get.instructions - around, flush.instructions);

    const long one = 1;
    const Counts add = count([&] { MPI_Fetch_and_op(&one, &got, MPI_LONG, 1, at, MPI_SUM, window.win); });
    CHECK_EQ(got, value);
    check("MPI_Fetch_and_op", add, {1, 0, 300});
    ++expected;
    const Counts swap = count([&] { MPI_Compare_and_swap(&one, &expected, &got, MPI_LONG, 1, at, window.win); });
    CHECK_EQ(got, expected);
    check("MPI_Compare_and_swap", swap, {1, 0, 300});
    const Counts sum = count([&] { MPI_Accumulate(&one, 1, MPI_LONG, 1, at, 1, MPI_LONG, MPI_SUM, window.win); });
    check("MPI_Accumulate of a long", sum, {1, 0, 600});
    MPI_Get(&got, 1, MPI_LONG, 1, at, 1, MPI_LONG, window.win);
    MPI_Win_flush(1, window.win);
    CHECK_EQ(got, 2);
  }
}

// Memory of malloc: small operations leave together, the most that one call of the kernel takes.
void copied(const Window& window) {
  long values[64], got[64];
  const auto put = [&] {
    for (int k = 0; k < 64; ++k) MPI_Put(&values[k], 1, MPI_LONG, 1, 16 * k, 1, MPI_LONG, window.win);
    MPI_Win_flush(1, window.win);
  };
  const auto get = [&] {
    for (int k = 0; k < 64; ++k) MPI_Get(&got[k], 1, MPI_LONG, 1, 16 * k, 1, MPI_LONG, window.win);
    MPI_Win_flush(1, window.win);
  };
  for (int i = 0; i < 3; ++i) {  // counting so many instructions takes its time: only the last round
    for (int k = 0; k < 64; ++k) values[k] = 100 * i + k, got[k] = -1;
    if (i < 2) {
      put();
      get();
    } else {
      const Counts puts = count(put), gets = count(get);
      CHECK_EQ(puts.calls, 1);
      CHECK_EQ(gets.calls, 1);
      CHECK_EQ(puts.allocations + gets.allocations, 0);
    }
    for (int k = 0; k < 64; ++k) CHECK_EQ(got[k], values[k]);
  }
}

}  // namespace

int main() {
  const World w = init_to_count();
  Window allocated, created;
  MPI_Win_allocate(8 * words, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated.memory, &allocated.win);
  std::vector<long> memory(words);
  created.memory = memory.data();
  MPI_Win_create(created.memory, 8 * words, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created.win);
  for (Window* window : {&allocated, &created}) MPI_Win_lock_all(0, window->win);
  if (w.rank == 0) {
    mapped(allocated, 12);
    copied(created);
  }
  for (Window* window : {&allocated, &created}) {
    MPI_Win_unlock_all(window->win);
    MPI_Win_free(&window->win);
  }
  return finish();
}
