// How a process comes to its network and leaves it: which one, of what sizes, its address, its contexts.
#include "transport/net/network.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/module.hpp"
#include "transport/net/control.hpp"
#include "transport/net/frame.hpp"
#include "transport/net/helper.hpp"
#include "transport/net/peers.hpp"
#include "transport/net/wires.hpp"
#include "transport/shm/node.hpp"

namespace heddle::net {

bool detail::active = false;

namespace {

HEDDLE_PARAM_SIZE(frame_size, "HEDDLE_NET_FRAME", 16 << 10, 1024, 1 << 20, "largest network message that small ones are gathered into");
HEDDLE_PARAM_SIZE(eager_size, "HEDDLE_NET_EAGER", 0, 0, 1 << 20, "largest message that is sent over the network without waiting for its receive; 0: 64K over TCP, else 8K");
HEDDLE_PARAM_SIZE(window_size, "HEDDLE_NET_WINDOW", 1 << 20, 16 << 10, sys::ParamRange::unlimited,
                  "bytes that a VCI sends to another over the network before that has said that they arrived; then messages wait for their receive");
HEDDLE_PARAM_BOOL(gather, "HEDDLE_NET_GATHER", 1, "small messages to one peer that follow each other leave in one write");
HEDDLE_PARAM_INT(timeout_seconds, "HEDDLE_NET_TIMEOUT", 60, 0, 1'000'000,
                 "seconds after which a peer that confirms nothing of what it was sent is given up, which ends the job; 0: never");
HEDDLE_PARAM_BOOL(wake, "HEDDLE_NET_WAKE", 1, "what arrives from the network wakes sleeping threads; 0: they look twice in a millisecond, which some providers make messages faster by");

constexpr int most_ranks_with_large_buffers = 32;
constexpr std::size_t tcp_eager = 64 << 10;  ///< a copy costs less than the two more ways that asking first takes

constexpr std::uint32_t finish_patience = 20;  ///< seconds, at the least, for what has not left this process

Common common;
const sys::Bootstrap* job = nullptr;
bool published = false;
std::uint32_t finish_began = 0;  ///< as `ticks`
wire::Context* first_context = nullptr;  ///< of VCI 0, opened before the VCI exists so that its address can be published

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

/// What is sent in one piece, from the parameters and what the network can.
void choose_sizes(std::size_t overhead) noexcept {
  constexpr std::size_t most = std::size_t{1} << 20;
  const std::size_t around = sizeof(FrameHead) + record_room(overhead + 8), largest = common.choice.largest_message;
  common.frame_bytes = std::min(static_cast<std::size_t>(frame_size.value()), largest) & ~std::size_t{7};
  common.copy_limit = std::min(common.frame_bytes - around, std::size_t{8} << 10);
  const std::size_t eager = eager_size.value() > 0 ? static_cast<std::size_t>(eager_size.value()) : common.choice.sends_whole ? tcp_eager : std::size_t{8} << 10;
  common.eager = std::min(eager, largest < most ? largest - around : most);
  common.largest_frame = std::max(common.frame_bytes, padded(common.eager) + around + common.choice.largest_name);  // with a `hello` before it
  common.window = static_cast<std::uint64_t>(window_size.value());
  common.gathers = gather.value();
  common.patience = timeout_seconds.value();
}

/// Contexts are divided among the ranks of the node; VCIs above their number share.
void divide_contexts(unsigned& vcis) noexcept {
  const std::size_t contexts = common.choice.contexts;
  const auto share = contexts ? contexts / static_cast<std::size_t>(job->local_size) : vcis;
  if (share >= vcis) return;
  HEDDLE_NOTICE_ONCE("the network has %zu contexts for %d ranks on this node; each rank uses %zu instead of %u VCIs.", contexts,
                     job->local_size, share ? share : 1, vcis);
  vcis = share ? static_cast<unsigned>(share) : 1;
}

}  // namespace

bool start(Host& host, const sys::Bootstrap& own_job, ProcessIndex self, std::size_t overhead, unsigned& vcis, std::string& problem) {
  job = &own_job;
  common.self = processes.name_of(self);
  common.ranks = static_cast<std::uint32_t>(job->size);
  const bool one_host = job->size == job->local_size;
  if (job->size == 1 || (one_host && shm::enabled())) return true;
  register_module(control());
  // More memory, not where many ranks may share a node's: by the size of the job, because all must choose alike.
  Network network;
  if (!choose({one_host, tcp_eager, job->size <= most_ranks_with_large_buffers}, network, nullptr, problem) || !network.factory->open(problem)) {
    problem = (one_host ? "HEDDLE_SHM=0 asks for the network, but: " : "the job runs on several nodes, and has no network between them: ") + problem;
    return false;
  }
  common.host = &host;
  common.factory = network.factory;
  common.choice = network.choice;
  common.address_of = address_of;
  common.wake_helper = wake_helper_to_flush;
  choose_sizes(overhead);
  divide_contexts(vcis);
  first_context = common.factory->new_context().release();
  if (!first_context || !first_context->open(common.largest_frame, wake.value(), problem)) return false;
  return published = publish_address(*job, common, vcis, first_context->name(), problem);
}

bool needs_fence() noexcept { return published; }

bool meet(std::string& problem) {
  // Rank 0's key is fetched before rank 0 can exit, which it may do at once. No other address is wanted from somebody who may leave: the
  // owner talks to whoever asks, and leaves when that is over.
  if (!agree_on_key(common.key, problem) || !sys::bootstrap::await_fetches(problem)) return false;
  if (common.factory->set_key) common.factory->set_key(common.key);
  if (!start_helper(common, problem)) return false;
  detail::active = true;
  common.host->engine_of(Lane{});
  return true;
}

std::unique_ptr<Engine> open_engine(VciIndex vci) noexcept {
  std::unique_ptr<wire::Context> context(vci == VciIndex{} ? std::exchange(first_context, nullptr) : nullptr);
  if (!context) {
    context = common.factory->new_context();
    std::string problem = "no memory";
    if (!context || !context->open(common.largest_frame, wake.value(), problem))
      sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", number(vci), problem.c_str());
  }
  std::unique_ptr<Engine> engine(new (std::nothrow) Engine(common, vci, std::move(context)));
  if (!engine) sys::fatal("no memory for the network of VCI %u", number(vci));
  return engine;
}

void hear_writes(void (*written)(Held& held, std::uint32_t immediate) noexcept) noexcept { common.written = written; }

void begin_finish() noexcept {
  if (!active()) return;
  finish_began = ticks.load(std::memory_order_relaxed);
  common.finishing.store(true, std::memory_order_relaxed);
  common.host->for_each_engine(true, [](Held& held, Engine& engine) noexcept { engine.begin_closing(held); });
}

bool finished() noexcept {
  if (!active()) return true;
  // Seconds of this process, not of the clock: after a stop of the whole job a peer that would answer at once must not count as silent.
  const std::uint32_t waited = ticks.load(std::memory_order_relaxed) - finish_began;
  bool all = true;
  common.host->for_each_engine(true, [&](Held& held, Engine& engine) noexcept { all &= engine.has_closed(held); });
  if (!all && common.patience > 0 && waited > finish_patience && waited > common.patience) all = true;  // what does not leave, and whom nobody waits for
  if (!all) return false;
  common.finishing.store(false, std::memory_order_relaxed);
  common.host->for_each_engine(true, [](Held&, Engine& engine) noexcept { engine.end_closing(); });
  return true;
}

void stop() noexcept {
  if (!detail::active) return;
  stop_helper();
  detail::active = false;
}

void close() noexcept {
  delete std::exchange(first_context, nullptr);
  forget_addresses();
  if (common.factory) common.factory->close();
}

}  // namespace heddle::net
