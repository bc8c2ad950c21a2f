#include "vci/network.hpp"

#include <unistd.h>

#include <mutex>
#include <string>

#include "sys/log.hpp"
#include "transport/net/network.hpp"
#include "transport/shm/doorbell.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

std::mutex open_mutex;

class VciHost final : public net::Host {
 public:
  net::Engine& engine_of(Lane lane) noexcept override { return network_of(vci_of_lane(lane)); }
  bool has_gathered() noexcept override {
    bool gathered = false;
    for_each_vci([&](Vci& vci) {
      const net::Engine* engine = vci.net.load(std::memory_order_acquire);  // pairs with open_network
      gathered = gathered || (engine && engine->has_gathered());
    });
    return gathered;
  }
  void leave_work(Held& held) noexcept override { heddle::leave_work(VciGuard::of(held).vci()); }
  void wake_sleepers(Held& held) noexcept override { heddle::wake_sleepers(VciGuard::of(held).vci()); }
  bool holds_back(Held& held) noexcept override { return VciGuard::of(held).vci().holding; }

 private:
  void visit_engines(bool wait, Visitor visit, void* context) noexcept override {
    for_each_vci([&](Vci& vci) {
      net::Engine* engine = vci.net.load(std::memory_order_acquire);  // pairs with open_network
      if (!engine) return;
      const auto step = [&](VciGuard& guard) { visit(context, guard, *engine); };
      if (wait) submit(vci, step); else try_submit(vci, step);
    });
  }
};

VciHost host;

}  // namespace

net::Host& network_host() noexcept { return host; }

net::Engine& open_network(Vci& vci) noexcept {
  const std::lock_guard hold(open_mutex);
  if (net::Engine* engine = vci.net.load(std::memory_order_relaxed)) return *engine;
  std::unique_ptr<net::Engine> engine = net::open_engine(vci.index);
  std::string problem;
  vci.network_bell = shm::open_bell(shm::header->doorbell, number(vci.index), problem);
  if (vci.network_bell < 0) sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", number(vci.index), problem.c_str());
  vci.net.store(engine.get(), std::memory_order_release);  // pairs with all loads that are followed: another thread may hold the VCI
  wake_all_sleepers();  // whoever sleeps at the network does not know of this one yet
  return *engine.release();
}

void close_network(Vci& vci) noexcept {
  net::Engine* engine = vci.net.exchange(nullptr, std::memory_order_relaxed);
  if (!engine) return;
  delete engine;
  ::close(vci.network_bell);
}

}  // namespace heddle
