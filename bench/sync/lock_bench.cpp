// The VCI's lock beside the ones of the system: alone, and with as many threads as the argument says.
//
//   build/bench/sync/lock_bench
#include <benchmark/benchmark.h>
#include <pthread.h>

#include <mutex>

#include "sync/lock.hpp"

namespace {

struct SpinLock {
  SpinLock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
  void lock() { pthread_spin_lock(&lock_); }
  void unlock() { pthread_spin_unlock(&lock_); }
  pthread_spinlock_t lock_;
};

template <typename Lock>
struct alignas(128) Guarded {
  Lock lock;
  alignas(128) std::uint64_t words[4] = {};
};

/// Takes the lock around a section of four words.
template <typename Lock>
void lock_and_unlock(benchmark::State& state) {
  static Guarded<Lock> shared;
  for (auto _ : state) {
    shared.lock.lock();
    for (auto& word : shared.words) benchmark::DoNotOptimize(++word);
    shared.lock.unlock();
  }
}
BENCHMARK(lock_and_unlock<heddle::sync::Lock>)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK(lock_and_unlock<std::mutex>)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK(lock_and_unlock<SpinLock>)->ThreadRange(1, 4)->UseRealTime();

/// What progress does: tries, and goes on where somebody else has it.
void try_lock(benchmark::State& state) {
  static Guarded<heddle::sync::Lock> shared;
  std::int64_t got = 0;
  for (auto _ : state)
    if (shared.lock.try_lock()) {
      for (auto& word : shared.words) benchmark::DoNotOptimize(++word);
      shared.lock.unlock();
      ++got;
    }
  state.counters["got"] = benchmark::Counter(double(got) / double(state.iterations()), benchmark::Counter::kAvgThreads);
}
BENCHMARK(try_lock)->ThreadRange(1, 4)->UseRealTime();

}  // namespace
