// The record ring alone: what a push and a pop cost, and how fast a record reaches another thread, beside what one would otherwise
// take: a queue under a mutex, and two bare flags.
//
//   build/bench/sync/ring_bench
#include <benchmark/benchmark.h>

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sync/record_ring.hpp"

namespace {

using namespace heddle::sync;

constexpr std::uint32_t ring_lines = 4096;  // 256 KiB, as between processes

struct Ring {
  std::unique_ptr<RingControl> control = std::make_unique<RingControl>();
  std::unique_ptr<RingLine[]> lines = std::make_unique<RingLine[]>(ring_lines);
  RingProducer producer{control.get(), lines.get(), ring_lines};
  RingConsumer consumer{control.get(), lines.get(), ring_lines};

  bool push(const void* data, std::size_t bytes) noexcept {
    const auto n = static_cast<std::uint32_t>((sizeof(std::uint64_t) + bytes + cache_line - 1) / cache_line);
    const auto reservation = producer.reserve(n);
    if (!reservation.line) return false;
    std::memcpy(reservation.line->data, data, bytes);
    RingProducer::publish(reservation, n);
    return true;
  }
  bool pop(void* data, std::size_t bytes) noexcept {
    RingLine* line = consumer.front();
    if (!line) return false;
    std::memcpy(data, line->data, bytes);
    consumer.pop(line);
    return true;
  }
};

void push_and_pop(benchmark::State& state) {
  Ring ring;
  std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    ring.push(data.data(), data.size());
    ring.pop(data.data(), data.size());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(push_and_pop)->Arg(8)->Arg(56)->Arg(120)->Arg(1024)->Arg(8192);

void push_and_pop_mutex_and_deque(benchmark::State& state) {
  std::mutex mutex;
  std::deque<std::vector<std::byte>> queue;
  std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    {
      std::lock_guard lock(mutex);
      queue.push_back(data);
    }
    std::lock_guard lock(mutex);
    data = std::move(queue.front());
    queue.pop_front();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(push_and_pop_mutex_and_deque)->Arg(8)->Arg(56)->Arg(120)->Arg(1024)->Arg(8192);

/// Two threads answer each other; an iteration is there and back.
template <typename Say, typename Hear>
void there_and_back(benchmark::State& state, Say&& say, Hear&& hear) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (hear(1, stop)) say(0);
  });
  for (auto _ : state) {
    say(1);
    hear(0, stop);
  }
  stop.store(true, std::memory_order_relaxed);
  other.join();
}

void ring_there_and_back(benchmark::State& state) {
  Ring rings[2];
  there_and_back(
      state,
      [&](int to) {
        const std::uint64_t word = 1;
        rings[to].push(&word, sizeof word);
      },
      [&](int at, std::atomic<bool>& stop) {
        std::uint64_t word;
        while (!rings[at].pop(&word, sizeof word))
          if (stop.load(std::memory_order_relaxed)) return false;
        return true;
      });
}
BENCHMARK(ring_there_and_back)->UseRealTime();

void flags_there_and_back(benchmark::State& state) {
  struct alignas(128) Flag {
    std::atomic<std::uint64_t> word{0};
  } flags[2];
  there_and_back(
      state, [&](int to) { flags[to].word.store(1, std::memory_order_release); },
      [&](int at, std::atomic<bool>& stop) {
        while (!flags[at].word.load(std::memory_order_acquire))
          if (stop.load(std::memory_order_relaxed)) return false;
        flags[at].word.store(0, std::memory_order_relaxed);
        return true;
      });
}
BENCHMARK(flags_there_and_back)->UseRealTime();

/// One way: a thread pops what the benchmark's thread pushes.
void ring_one_way(benchmark::State& state) {
  Ring ring;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::atomic<bool> stop{false};
  std::thread consumer([&] {
    std::vector<std::byte> data(bytes);
    while (!stop.load(std::memory_order_relaxed)) ring.pop(data.data(), bytes);
  });
  std::vector<std::byte> data(bytes);
  for (auto _ : state)
    while (!ring.push(data.data(), bytes)) relax();
  stop.store(true, std::memory_order_relaxed);
  consumer.join();
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ring_one_way)->Arg(8)->Arg(1024)->Arg(8192)->UseRealTime();

}  // namespace
