// Where requests and objects come from, beside malloc: a VCI's request cache, and the pool of objects behind handles.
//
//   build/bench/sync/pool_bench
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "sys/object.hpp"
#include "vci/vci.hpp"

namespace {

using namespace heddle;

/// Taken and given back in batches, as windows of messages do. \param shared as under MPI_THREAD_MULTIPLE
void request_cache(benchmark::State& state, bool shared) {
  auto cache = std::make_unique<RequestCache>();
  cache->share(shared);
  const auto batch = static_cast<std::size_t>(state.range(0));
  std::vector<Request*> taken(batch);
  for (auto _ : state) {
    for (auto& request : taken) request = cache->allocate(nullptr);
    for (auto* request : taken) cache->release(request);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(request_cache, one_thread, false)->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(request_cache, multiple, true)->Arg(1)->Arg(64);

void malloc_and_free(benchmark::State& state) {
  std::vector<void*> taken(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    for (auto& memory : taken) benchmark::DoNotOptimize(memory = std::malloc(sizeof(Request)));
    for (void* memory : taken) std::free(memory);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(malloc_and_free)->Arg(1)->Arg(64);

void object_pool(benchmark::State& state) {
  for (auto _ : state) {
    Request* object = pool<Request>().create();
    benchmark::DoNotOptimize(object);
    pool<Request>().destroy(object);
  }
}
BENCHMARK(object_pool)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
