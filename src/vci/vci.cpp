#include "vci/vci.hpp"

#include <mutex>
#include <new>
#include <span>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/topology.hpp"
#include "transport/shm/node.hpp"
#include "vci/completion.hpp"
#include "vci/network.hpp"
#include "vci/has_work.hpp"
#include "vci/owned.hpp"
#include "vci/wait.hpp"

namespace heddle {

namespace detail {
std::atomic<Vci*> lane_table[lanes] = {};
std::atomic<Vci*> pool_table[lanes] = {};
std::atomic<unsigned> pool_used{0};
alignas(sync::cache_line) std::atomic<bool> round_made{false};
}  // namespace detail

namespace {

HEDDLE_PARAM_INT(vcis, "HEDDLE_VCIS", 0, 0, 64, "VCIs of each process (1 to 64); 0: as many as it has cores to run on");

using detail::pool_table, detail::pool_used, detail::round_made;

constexpr int records_per_step = 64;  ///< bounds one step, so that a flood cannot keep others waiting

std::mutex pool_mutex;
unsigned pool_size = 1;
VciMode mode_of_new = VciMode::exclusive;  ///< of VCIs to come; changes as Vci::mode does

// Modules, in the order of their registration. Written before the first VCI exists.
const VciModule* module_list[most_modules] = {};
std::size_t module_count = 0;
bool (*take_records)(VciGuard& guard, int most, const Request* awaited) noexcept = nullptr;
std::span<const VciModule* const> registered_modules() noexcept { return {module_list, module_count}; }

thread_local unsigned next_round = 0;  ///< where this thread's next round on all VCIs begins

}  // namespace

void register_vci_module(const VciModule& module) noexcept {
  for (const VciModule* known : registered_modules())
    if (known == &module) return;
  module_list[module_count++] = &module;
  if (module.take_records) take_records = module.take_records;
}

unsigned configured_vcis() noexcept {
  std::int64_t wanted = vcis.value();
  if (wanted == 0) wanted = sys::topology().usable;
  return wanted < 1 ? 1 : wanted > 64 ? 64 : static_cast<unsigned>(wanted);
}

Vci::Vci(unsigned i) noexcept
    : index(vci_at(i)),
      ring(shm::ring_control(shm::region.base, i), shm::ring_lines(shm::region.base, i), shm::header->ring_lines) {
  set_mode(mode_of_new);
  for (const VciModule* module : registered_modules())
    if (!(modules[module->number] = module->open(*this))) sys::fatal("no memory for VCI %u", i);
}

Vci::~Vci() {
  for (const VciModule* module : registered_modules()) module->close(*modules[module->number]);
}

Vci& detail::open_lane(Lane lane) noexcept {
  std::lock_guard lock(pool_mutex);
  const unsigned index = number(lane) % pool_size;
  Vci* vci = pool_table[index].load(std::memory_order_relaxed);
  if (!vci) {
    if (!shm::commit_vci(index)) sys::fatal("no memory for the ring of VCI %u: a memory limit of this job is too low", index);
    vci = new (std::nothrow) Vci(index);
    if (!vci) sys::fatal("no memory for VCI %u", index);
    pool_table[index].store(vci, std::memory_order_release);
    if (pool_used.load(std::memory_order_relaxed) <= index) pool_used.store(index + 1, std::memory_order_release);
    leave_work(*vci);  // what has come already rang when nobody could serve it
  }
  lane_table[number(lane)].store(vci, std::memory_order_release);
  return *vci;
}

bool start_vcis(unsigned count) noexcept {
  pool_size = count;
  detail::open_lane(Lane{});
  return true;
}

void lock_vcis() noexcept {
  if (mode_of_new == VciMode::locked) return;  // written only where it changes: the library's own thread reads the modes
  mode_of_new = VciMode::locked;
  for_each_vci([](Vci& vci) { vci.set_mode(VciMode::locked); });
}

void stop_vcis() noexcept {
  for (auto& lane : detail::lane_table) lane.store(nullptr, std::memory_order_relaxed);
  for (auto& slot : pool_table) {
    Vci* vci = slot.exchange(nullptr, std::memory_order_relaxed);
    if (!vci) continue;
    if (detail::is_owner(*vci)) give_back(*vci);
    close_network(*vci);
    delete vci;
  }
  pool_used.store(0, std::memory_order_relaxed);
}

void queue_continuation(VciGuard& guard, Request& request) noexcept {
  Vci& vci = guard.vci();
  request.next = nullptr;
  if (vci.ready_tail) vci.ready_tail->next = &request; else vci.ready_head = &request;
  vci.ready_tail = &request;
  vci.moving.fetch_add(1, std::memory_order_relaxed);
  leave_work(vci);
}

namespace {

/// One step, whose continuations `run_ready` runs: true if there was any. Inlined into each of its two kinds, so that neither pays for the other.
template <typename RunReady>
[[gnu::always_inline]] inline bool step(VciGuard& guard, const Request* awaited, RunReady&& run_ready) noexcept {
  Vci& vci = guard.vci();
  vci.use.store(VciUse::in_use, std::memory_order_relaxed);
  bool worked = take_records(guard, records_per_step, awaited);
  net::Engine* const network = vci.net.load(std::memory_order_acquire);  // pairs with open_network, which need not hold the VCI
  if (network) worked |= network->poll(guard, worked);
  if (vci.backlogged.load(std::memory_order_relaxed) | vci.moving.load(std::memory_order_relaxed)) {
    for (const VciModule* module : registered_modules()) worked |= module->advance(guard);
    if (vci.owner.thread.load(std::memory_order_relaxed)) worked |= serve(guard);
  }
  if (vci.ended_elsewhere.load(std::memory_order_relaxed)) {
    Request* ended = vci.ended_elsewhere.exchange(nullptr, std::memory_order_acquire);  // pairs with complete_elsewhere
    while (ended) {
      Request* following = ended->next;
      vci.moving.fetch_sub(1, std::memory_order_relaxed);
      complete_with_error(*ended, guard);
      ended = following;
      worked = true;
    }
  }
  worked |= run_ready();
  if (network) worked |= network->flush(guard);
  vci.use.store(VciUse::used, std::memory_order_relaxed);
  return worked;
}

void run_continuation(VciGuard& guard, Request& request) noexcept {
  guard.vci().moving.fetch_sub(1, std::memory_order_relaxed);
  request.continuation->run(*request.continuation, request, guard);
}

}  // namespace

bool progress(VciGuard& guard, const Request* awaited) noexcept {
  Vci& vci = guard.vci();
  return step(guard, awaited, [&]() __attribute__((always_inline)) {
    bool worked = false;
    while (Request* request = vci.ready_head) {
      vci.ready_head = request->next;
      if (!vci.ready_head) vci.ready_tail = nullptr;
      run_continuation(guard, *request);
      worked = true;
    }
    return worked;
  });
}

bool progress_beside_program(VciGuard& guard, std::uint32_t& left) noexcept {
  Vci& vci = guard.vci();
  return step(guard, nullptr, [&] {
    // What runs may complete more, which goes to the end.
    bool worked = false;
    left = 0;
    Request* before = nullptr;  // the last of those left, in their order
    while (Request* request = before ? before->next : vci.ready_head) {
      if (request->continuation->calls_program) {
        before = request;
        ++left;
        continue;
      }
      (before ? before->next : vci.ready_head) = request->next;
      if (!request->next) vci.ready_tail = before;
      run_continuation(guard, *request);
      worked = true;
    }
    return worked;
  });
}

bool has_backlog() noexcept {
  bool found = false;
  for_each_vci([&](Vci& vci) {
    found = found || vci.backlogged.load(std::memory_order_relaxed) || vci.moving.load(std::memory_order_relaxed);
  });
  return found;
}

bool has_arrivals() noexcept {
  bool found = false;
  for_each_vci([&](Vci& vci) { found = found || vci.ring.pending(); });
  return found;
}

bool poll(Vci& vci) noexcept {
  bool worked = false;
  if (has_work(vci)) try_submit(vci, [&](VciGuard& guard) { worked = progress(guard); });
  return worked;
}

bool progress_all() noexcept {
  if (!round_made.load(std::memory_order_relaxed)) [[unlikely]] round_made.store(true, std::memory_order_relaxed);
  const unsigned used = pool_used.load(std::memory_order_acquire);
  const unsigned start = used > 1 ? next_round++ : 0;
  bool worked = false;
  for (unsigned i = 0; i < used; ++i) {
    Vci* vci = pool_table[(start + i) % used].load(std::memory_order_acquire);
    if (vci && poll(*vci)) worked = true;
  }
  return worked;
}

}  // namespace heddle
