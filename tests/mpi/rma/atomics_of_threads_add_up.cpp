// ranks: 1 2 4
// threads: 2
// timeout: 120
// Threads of every rank add to the same places with MPI_Fetch_and_op, MPI_Accumulate of 1 to 4096 elements, MPI_Get_accumulate and loops
// of MPI_Compare_and_swap, of types of every size: nothing is lost, and what fetch-and-add returns is every number once. Spinlocks of
// MPI_Compare_and_swap and of MPI_Get_accumulate with MPI_REPLACE exclude. The argument multiplies the work.
#include <atomic>

#include "../threads/team.hpp"
#include "windows.hpp"

using namespace test;

namespace {

int threads = 8;

// Every rank's threads fetch and add at rank `home`: all numbers from 0 on, each once.
void tickets(const World& w, const Memory& memory, int home, int each) {
  std::vector<std::vector<long>> got(static_cast<std::size_t>(threads));
  run_threads(threads, [&](int t) {
    auto& mine = got[static_cast<std::size_t>(t)];
    mine.assign(static_cast<std::size_t>(each), -1);
    const long one = 1;
    for (int i = 0; i < each; ++i) {
      CHECK_OK(MPI_Fetch_and_op(&one, &mine[static_cast<std::size_t>(i)], MPI_LONG, home, memory.at(home, 0), MPI_SUM, memory.win));
      CHECK_OK(MPI_Win_flush(home, memory.win));
      if (i) CHECK_LT(mine[static_cast<std::size_t>(i - 1)], mine[static_cast<std::size_t>(i)]);
    }
  });
  const int own = threads * each;
  std::vector<long> flat, all(static_cast<std::size_t>(own * w.size));
  for (const auto& mine : got) flat.insert(flat.end(), mine.begin(), mine.end());
  MPI_Allgather(flat.data(), own, MPI_LONG, all.data(), own, MPI_LONG, MPI_COMM_WORLD);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQ(all[i], i);
}

template <typename T>
void sums(const World& w, Memory& memory, MPI_Datatype type, int home, int rounds) {
  constexpr std::size_t places = 5000;
  std::memset(memory.base, 0, places * sizeof(T));
  settle(memory.win, MPI_COMM_WORLD);
  CHECK_OK(MPI_Win_lock_all(0, memory.win));
  std::vector<std::vector<long>> added(static_cast<std::size_t>(threads), std::vector<long>(places, 0));
  run_threads(threads, [&](int t) {
    Random random(static_cast<std::uint64_t>(w.rank * 64 + t));
    auto& counts = added[static_cast<std::size_t>(t)];
    const std::vector<T> ones(4096, T(1));
    std::vector<T> got(4096);
    for (int i = 0; i < rounds; ++i) {
      const auto kind = random.below(8);
      const std::size_t length = kind == 0 ? std::size_t{1} << random.below(13) : kind < 3 ? 1 + random.below(20) : 1;
      const std::size_t place = random.below(kind < 3 ? 200 : 8);
      const MPI_Aint at = memory.at(home, place * sizeof(T));
      const int count = static_cast<int>(length);
      T result = T(0);
      if (kind < 2) CHECK_OK(MPI_Accumulate(ones.data(), count, type, home, at, count, type, MPI_SUM, memory.win));
      else if (kind == 2) {
        CHECK_OK(MPI_Get_accumulate(ones.data(), count, type, got.data(), count, type, home, at, count, type, MPI_SUM, memory.win));
        CHECK_OK(MPI_Win_flush_local(home, memory.win));
      } else if (kind < 5) {
        CHECK_OK(MPI_Fetch_and_op(ones.data(), &result, type, home, at, MPI_SUM, memory.win));
        CHECK_OK(MPI_Win_flush_local(home, memory.win));
      } else if (kind < 7 || !std::is_integral_v<T> || library_is_mpich()) {
        CHECK_OK(MPI_Accumulate(ones.data(), 1, type, home, at, 1, type, MPI_SUM, memory.win));
      } else {  // beside another operation: more than accumulate_ops=same_op_no_op promises, but one domain is one domain
        T old = T(0);
        for (;;) {
          const T wanted = static_cast<T>(old + T(1));
          CHECK_OK(MPI_Compare_and_swap(&wanted, &old, &result, type, home, at, memory.win));
          CHECK_OK(MPI_Win_flush(home, memory.win));
          if (result == old) break;
          old = result;
        }
      }
      for (std::size_t k = place; k < place + length; ++k) ++counts[k];
    }
  });
  CHECK_OK(MPI_Win_unlock_all(memory.win));
  std::vector<long> wanted(places, 0), total(places);
  for (const auto& counts : added)
    for (std::size_t k = 0; k < places; ++k) wanted[k] += counts[k];
  MPI_Reduce(wanted.data(), total.data(), places, MPI_LONG, MPI_SUM, home, MPI_COMM_WORLD);
  settle(memory.win, MPI_COMM_WORLD);
  if (w.rank == home)
    for (std::size_t k = 0; k < places; ++k) CHECK_EQ(memory.as<T>()[k], static_cast<T>(total[k]));
  MPI_Barrier(MPI_COMM_WORLD);
}

// A critical section of several numbers that only its holder changes, guarded by a word.
void spinlock(const World& w, Memory& memory, bool swap, int each) {
  const int home = 0;
  std::memset(memory.base, 0, 256);
  settle(memory.win, MPI_COMM_WORLD);
  CHECK_OK(MPI_Win_lock_all(0, memory.win));
  run_threads(threads, [&](int) {
    const int free = 0, taken = 1;
    const MPI_Win win = memory.win;
    for (int i = 0; i < each; ++i) {
      for (int seen = taken;;) {
        if (swap) CHECK_OK(MPI_Compare_and_swap(&taken, &free, &seen, MPI_INT, home, memory.at(home, 0), win));
        else CHECK_OK(MPI_Get_accumulate(&taken, 1, MPI_INT, &seen, 1, MPI_INT, home, memory.at(home, 0), 1, MPI_INT, MPI_REPLACE, win));
        CHECK_OK(MPI_Win_flush(home, win));
        if (seen == free) break;
        std::this_thread::yield();
      }
      long values[4];
      CHECK_OK(MPI_Get(values, 4, MPI_LONG, home, memory.at(home, 64), 4, MPI_LONG, win));
      CHECK_OK(MPI_Win_flush(home, win));
      for (int k = 1; k < 4; ++k) CHECK_EQ(values[k], values[0]);
      for (long& value : values) ++value;
      CHECK_OK(MPI_Put(values, 4, MPI_LONG, home, memory.at(home, 64), 4, MPI_LONG, win));
      CHECK_OK(MPI_Win_flush(home, win));
      int held = 0;
      if (swap) CHECK_OK(MPI_Compare_and_swap(&free, &taken, &held, MPI_INT, home, memory.at(home, 0), win));
      else CHECK_OK(MPI_Accumulate(&free, 1, MPI_INT, home, memory.at(home, 0), 1, MPI_INT, MPI_REPLACE, win));
      CHECK_OK(MPI_Win_flush(home, win));
    }
  });
  CHECK_OK(MPI_Win_unlock_all(memory.win));
  settle(memory.win, MPI_COMM_WORLD);
  if (w.rank == home)
    for (int k = 8; k < 12; ++k) CHECK_EQ(memory.as<long>()[k], static_cast<long>(each) * threads * w.size);
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  const int times = argc > 1 ? std::atoi(argv[1]) : 1;
  if (library_is_mpich() && argc > 2) threads = std::atoi(argv[2]);
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    Memory memory(flavour, 5000 * sizeof(long double), MPI_COMM_WORLD, 1);
    settle(memory.win, MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(0, memory.win));
    tickets(w, memory, w.size - 1, 500 * times);
    CHECK_OK(MPI_Win_unlock_all(memory.win));
    sums<long>(w, memory, MPI_LONG, 0, 300 * times);
    sums<int>(w, memory, MPI_INT, w.size - 1, 100 * times);
    sums<double>(w, memory, MPI_DOUBLE, 0, 100 * times);
    sums<float>(w, memory, MPI_FLOAT, 0, 50 * times);
    sums<short>(w, memory, MPI_SHORT, 0, 100 * times);
    sums<unsigned char>(w, memory, MPI_UNSIGNED_CHAR, 0, 100 * times);
    sums<long double>(w, memory, MPI_LONG_DOUBLE, 0, 50 * times);
    spinlock(w, memory, true, 20 * times);
    spinlock(w, memory, false, 20 * times);
    memory.free();
  }
  return finish();
}
