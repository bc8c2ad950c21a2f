// ranks: 2
// threads: 2
// timeout: 120
// Threads put, get and accumulate through one window, and through a window each (over memory of their own and over the same), under
// lock_all, with flushes of one target, of all, and local ones: each thread's flush finishes its own operations whatever the others do.
// A lock that one thread took serves the others, which order themselves.
#include "../threads/team.hpp"
#include "windows.hpp"

using namespace test;

namespace {

constexpr int threads = 8, room = 70000;

// What one thread does in its part of the target's memory, which starts at `offset`.
void work(const World& w, const Memory& memory, int t, std::size_t offset, int rounds) {
  const int target = (w.rank + 1) % w.size;
  Random random(static_cast<std::uint64_t>(100 * w.rank + t));
  std::vector<unsigned char> data(room), back(room);
  std::vector<long> ones(500, 1), counts(500, 0), got(500);
  const std::size_t sums = offset + room;  // longs behind the bytes
  for (int i = 0; i < rounds; ++i) {
    const std::size_t bytes = i % 10 == 9 ? static_cast<std::size_t>(room) : 1 + random.below(3000), at = random.below(room - bytes + 1);
    fill(data.data(), bytes, random.next());
    const int count = static_cast<int>(bytes);
    CHECK_OK(MPI_Put(data.data(), count, MPI_BYTE, target, memory.at(target, offset + at), count, MPI_BYTE, memory.win));
    CHECK_OK(i % 3 ? MPI_Win_flush(target, memory.win) : MPI_Win_flush_all(memory.win));
    std::memset(back.data(), 0, bytes);
    if (i % 2) {
      MPI_Request request;
      CHECK_OK(MPI_Rget(back.data(), count, MPI_BYTE, target, memory.at(target, offset + at), count, MPI_BYTE, memory.win, &request));
      CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      CHECK_OK(MPI_Get(back.data(), count, MPI_BYTE, target, memory.at(target, offset + at), count, MPI_BYTE, memory.win));
      CHECK_OK(i % 4 ? MPI_Win_flush_local(target, memory.win) : MPI_Win_flush_local_all(memory.win));
    }
    CHECK_EQ(std::memcmp(data.data(), back.data(), bytes), 0);

    const auto first = random.below(400), length = 1 + random.below(100);
    CHECK_OK(MPI_Accumulate(ones.data(), static_cast<int>(length), MPI_LONG, target, memory.at(target, sums + 8 * first), static_cast<int>(length),
                            MPI_LONG, MPI_SUM, memory.win));
    for (auto k = first; k < first + length; ++k) ++counts[k];
    if (i % 8 == 7) {
      CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_LONG, got.data(), 500, MPI_LONG, target, memory.at(target, sums), 500, MPI_LONG, MPI_NO_OP,
                                  memory.win));
      CHECK_OK(MPI_Win_flush(target, memory.win));
      CHECK(got == counts);
    }
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  constexpr std::size_t part = (room + 4000 + 63) / 64 * 64;
  Communicators comms(threads);
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    Memory one(flavour, threads * part, MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(0, one.win));
    run_threads(threads, [&](int t) { work(w, one, t, static_cast<std::size_t>(t) * part, 40); });
    CHECK_OK(MPI_Win_unlock_all(one.win));
    MPI_Barrier(MPI_COMM_WORLD);
    one.free();

    std::vector<Memory> own;
    for (int t = 0; t < threads; ++t) own.emplace_back(flavour, part, comms[t]);
    run_threads(threads, [&](int t) {
      const Memory& memory = own[static_cast<std::size_t>(t)];
      CHECK_OK(t % 2 ? MPI_Win_lock_all(0, memory.win) : MPI_Win_lock(MPI_LOCK_SHARED, (w.rank + 1) % w.size, 0, memory.win));
      work(w, memory, t, 0, 40);
      CHECK_OK(t % 2 ? MPI_Win_unlock_all(memory.win) : MPI_Win_unlock((w.rank + 1) % w.size, memory.win));
      MPI_Barrier(comms[t]);
    });
    for (Memory& memory : own) memory.free();
  }

  // A window for each thread over the same memory, as paper 004's applications have them.
  std::vector<long double> memory(threads * part / sizeof(long double) + 1);
  std::memset(static_cast<void*>(memory.data()), 0, memory.size() * sizeof(long double));
  std::vector<MPI_Win> wins(threads);
  for (int t = 0; t < threads; ++t)
    CHECK_OK(MPI_Win_create(memory.data(), threads * part, 8, MPI_INFO_NULL, comms[t], &wins[static_cast<std::size_t>(t)]));
  const int target = (w.rank + 1) % w.size;
  run_threads(threads, [&](int t) {
    const MPI_Win win = wins[static_cast<std::size_t>(t)];
    CHECK_OK(MPI_Win_lock_all(0, win));
    for (long i = 1; i <= 200; ++i) {
      const MPI_Aint at = static_cast<MPI_Aint>(t) * static_cast<MPI_Aint>(part / 8) + i;
      long got = -1;
      CHECK_OK(MPI_Put(&i, 1, MPI_LONG, target, at, 1, MPI_LONG, win));
      CHECK_OK(MPI_Win_flush(target, win));
      CHECK_OK(MPI_Get(&got, 1, MPI_LONG, target, at, 1, MPI_LONG, win));
      CHECK_OK(MPI_Win_flush(target, win));
      CHECK_EQ(got, i);
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(comms[t]);
  });
  for (MPI_Win& win : wins) CHECK_OK(MPI_Win_free(&win));
  comms.free();
  return finish();
}
