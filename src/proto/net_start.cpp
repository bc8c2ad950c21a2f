// How a process comes to its network and leaves it: which one, of what sizes, its card, its contexts.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "proto/net_peers.hpp"
#include "proto/net_state.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/ofi/library.hpp"
#include "transport/shm/doorbell.hpp"

namespace heddle::net {

bool detail::active = false;
wire::Network network;
std::uint64_t job_key = 0;
std::size_t frame_bytes = 0;
std::size_t copy_limit = 8 << 10;
std::size_t largest_frame = 0;
std::uint64_t window = 1 << 20;

namespace {

HEDDLE_PARAM_SIZE(frame_size, "HEDDLE_NET_FRAME", 16 << 10, 1024, 1 << 20, "largest network message that small ones are gathered into");
HEDDLE_PARAM_SIZE(eager_size, "HEDDLE_NET_EAGER", 0, 0, 1 << 20, "largest message that is sent over the network without waiting for its receive; 0: 64K over TCP, else 8K");
HEDDLE_PARAM_SIZE(window_size, "HEDDLE_NET_WINDOW", 1 << 20, 16 << 10, sys::ParamRange::unlimited,
                  "bytes that a VCI sends to another over the network before that has said that they arrived; then messages wait for their receive");
HEDDLE_PARAM_BOOL(wake, "HEDDLE_NET_WAKE", 1, "what arrives from the network wakes sleeping threads; 0: they look twice in a millisecond, which some providers make messages faster by");

constexpr int most_ranks_with_large_buffers = 32;
constexpr std::size_t tcp_eager = 64 << 10;  ///< a copy costs less than the two more ways that asking first takes

bool card_put = false;
std::mutex open_mutex;
wire::Context* first_context = nullptr;  ///< of VCI 0, opened before the VCI exists so that its address can be published

/// Whether ofi_rxm sends `bytes` in one piece: its own protocols for more are slower than asking first.
bool rxm_takes(std::size_t bytes) noexcept {
  const char* text = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  return text && std::strtoull(text, nullptr, 0) >= bytes + 512;
}

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

/// What is sent in one piece, from the parameters and what the network can.
void choose_sizes() noexcept {
  constexpr std::size_t most = std::size_t{1} << 20;
  constexpr std::size_t around = sizeof(FrameHead) + record_room(sizeof(proto::AckTo) + 8);
  const std::size_t largest = network.largest_message;
  frame_bytes = std::min(static_cast<std::size_t>(frame_size.value()), largest) & ~std::size_t{7};
  copy_limit = std::min(frame_bytes - around, std::size_t{8} << 10);
  const bool in_one = network.over_tcp() && (network.choice.provider.find("rxm") == std::string::npos || rxm_takes(tcp_eager));
  std::size_t& eager = proto::limits.net_eager;
  eager = eager_size.value() > 0 ? static_cast<std::size_t>(eager_size.value()) : in_one ? tcp_eager : std::size_t{8} << 10;
  eager = std::min(eager, largest < most ? largest - around : most);
  const std::size_t hello = network.choice.info ? 256 : 64 + tcp::largest_name;
  largest_frame = std::max(frame_bytes, padded(eager) + around + hello);  // with a `hello` before it
  window = static_cast<std::uint64_t>(window_size.value());
}

/// Contexts are divided among the ranks of the node; VCIs above their number share.
void divide_contexts(const sys::Bootstrap& job, unsigned& vcis) noexcept {
  const std::size_t contexts = network.contexts;
  const auto share = contexts ? contexts / static_cast<std::size_t>(job.local_size) : vcis;
  if (share >= vcis) return;
  HEDDLE_NOTICE_ONCE("the network has %zu contexts for %d ranks on this node; each rank uses %zu instead of %u VCIs.", contexts,
                     job.local_size, share ? share : 1, vcis);
  vcis = share ? static_cast<unsigned>(share) : 1;
}

}  // namespace

bool start(const sys::Bootstrap& job, unsigned& vcis, std::string& problem) {
  const bool one_host = job.size == job.local_size;
  if (job.size == 1 || (one_host && shm::enabled())) return true;
  // Larger buffers inside libfabric cost 100 MiB more for each VCI: not where many ranks may share a node's memory. By the size of
  // the job, because all must choose alike.
  if (job.size <= most_ranks_with_large_buffers) ofi::prefer_rxm_buffer(tcp_eager + 512);
  if (!wire::choose(one_host, network, nullptr, problem) || !wire::open(network, problem)) {
    problem = (one_host ? "HEDDLE_SHM=0 asks for the network, but: " : "the job runs on several nodes, and has no network between them: ") + problem;
    return false;
  }
  choose_sizes();
  divide_contexts(job, vcis);
  first_context = wire::new_context(network).release();
  if (!first_context || !first_context->open(largest_frame, wake.value(), problem)) return false;
  return card_put = put_card(job, vcis, first_context->name(), problem);
}

bool needs_fence() noexcept { return card_put; }

bool meet(const sys::Bootstrap& job, std::string& problem) {
  if (!card_put) return true;
  // Rank 0 may have nothing to do but to leave again, while others have not come to ask for its key. No other card is wanted from
  // somebody who may leave: the owner talks to whoever asks, and leaves when that is over.
  if (!agree_on_key(job, problem) || !sys::bootstrap::await_fetches(problem)) return false;
  runtime.locks = true;  // before there is somebody who looks whether
  if (!start_helper(problem)) return false;
  detail::active = true;
  net_of(vci_of_lane(0));
  return true;
}

Net& open_net(Vci& vci) noexcept {
  const std::lock_guard hold(open_mutex);
  if (Net* net = vci.net.load(std::memory_order_relaxed)) return *net;
  std::unique_ptr<wire::Context> context(vci.index == 0 ? std::exchange(first_context, nullptr) : nullptr);
  if (!context) {
    context = wire::new_context(network);
    std::string problem = "no memory";
    if (!context || !context->open(largest_frame, wake.value(), problem)) sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", vci.index, problem.c_str());
  }
  auto* net = new (std::nothrow) Net(vci, std::move(context));
  if (!net) sys::fatal("no memory for the network of VCI %u", vci.index);
  std::string problem;
  net->bell = shm::open_bell(shm::header->doorbell, vci.index, problem);
  if (net->bell < 0) sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", vci.index, problem.c_str());
  vci.net.store(net, std::memory_order_release);  // pairs with all loads that are followed: another thread may hold the VCI
  wake_all_sleepers();  // whoever sleeps at the network does not know of this one yet
  return *net;
}

proto::NetworkPlace place(Vci& vci) noexcept {
  Net& net = *vci.net.load(std::memory_order_acquire);  // pairs with open_net
  return {net.context, net.bell};
}

void destroy(Vci& vci) noexcept { delete vci.net.exchange(nullptr, std::memory_order_relaxed); }

Net::~Net() {
  for (Slab& slab : slabs) context.deregister(slab.registration);
  context_.reset();
  if (bell >= 0) ::close(bell);
  for (Slab& slab : slabs) {
    std::free(slab.memory);
    delete[] slab.frames;
  }
  while (ReadPiece* piece = free_pieces) {
    free_pieces = piece->next;
    delete piece;
  }
}

void stop() noexcept {
  if (!detail::active) return;
  stop_helper();
  detail::active = false;
}

void close() noexcept {
  delete std::exchange(first_context, nullptr);
  wire::close();
}

}  // namespace heddle::net
