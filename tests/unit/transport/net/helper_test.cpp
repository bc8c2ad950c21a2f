// The helper thread: what was gathered leaves though no thread of the program comes back.
#include "transport/net/helper.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "simulation.hpp"

namespace heddle::net {
namespace {

/// The host of one engine whose VCI somebody else holds until the test says otherwise.
class BusyHost final : public Host {
 public:
  explicit BusyHost(Station& station) : station_(station) {}

  Engine& engine_of(Lane lane) noexcept override { return station_.engine_of(lane); }
  bool has_gathered() noexcept override { return station_.engine().has_gathered(); }
  void leave_work(Held&) noexcept override {}
  void wake_sleepers(Held&) noexcept override {}
  bool holds_back(Held&) noexcept override { return false; }

  std::atomic<bool> held{true};
  std::atomic<int> tries{0};

 private:
  void visit_engines(bool wait, Visitor visit, void* context) noexcept override {
    if (wait) return;  // the test is no matter of seconds
    tries.fetch_add(1, std::memory_order_relaxed);
    // Acquire pairs with the test's release: the engine is the helper's from then on.
    if (!held.load(std::memory_order_acquire)) visit(context, station_.held(), station_.engine());
  }
  Station& station_;
};

template <typename Condition>
bool comes_true(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(Helper, comes_again_while_somebody_holds_the_vci_with_what_was_gathered) {
  register_module(control());
  register_module(test_module);
  World world;
  Station here(world, 0, 2, 1, true), there(world, 1, 2, 1, true);
  BusyHost host(here);
  here.common.host = &host;
  here.common.wake_helper = wake_helper_to_flush;
  std::string problem;
  ASSERT_TRUE(start_helper(here.common, problem)) << problem;

  const auto payload = pattern(8, 1);
  for (int tag = 0; tag < 2; ++tag)  // the second waits for others to leave with
    here.engine().push(here.held(), here.to(1), {2, 0, tag, numbered}, payload.data(), 8);
  ASSERT_TRUE(here.engine().has_gathered());
  EXPECT_TRUE(comes_true([&] { return host.tries.load(std::memory_order_relaxed) > 300; }));
  host.held.store(false, std::memory_order_release);
  EXPECT_TRUE(comes_true([&] { return !here.engine().has_gathered(); }));
  stop_helper();

  while (world.deliver_all()) there.poll();
  there.poll();
  EXPECT_EQ(there.got.size(), 2U);
}

}  // namespace
}  // namespace heddle::net
