#include "transport/shm/doorbell.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

namespace heddle::shm {
namespace {

/// A process's doorbell, with a thread that sleeps at the network for each of its first `sleepers` VCIs.
class Sleepers {
 public:
  explicit Sleepers(unsigned sleepers) {
    for (unsigned v = 0; v < sleepers; ++v) {
      std::string problem;
      fds_.push_back(open_bell(*bell_, v, problem));
      EXPECT_GE(fds_.back(), 0) << problem;
      bell_->at_network.fetch_or(std::uint64_t{1} << v);
    }
  }
  ~Sleepers() {
    for (const int fd : fds_) close(fd);
  }
  Doorbell& bell() { return *bell_; }
  [[nodiscard]] bool wakes(unsigned vci) const {
    pollfd look{fds_[vci], POLLIN, 0};
    return poll(&look, 1, 0) == 1;
  }
  void drain(unsigned vci) { drain_bell(fds_[vci]); }

 private:
  std::unique_ptr<Doorbell> bell_ = std::make_unique<Doorbell>();
  std::vector<int> fds_;
};

TEST(Doorbell, ASleeperAtTheNetworkIsRung) {
  Sleepers one(2);
  ring(one.bell(), 1, 1);
  EXPECT_TRUE(one.wakes(1));
  EXPECT_FALSE(one.wakes(0));
  one.drain(1);
  EXPECT_FALSE(one.wakes(1));
}

// Rings lie in a socket until its sleeper has a core, or somebody sleeps there again, and count against whoever rang. A process that rings many must
// not use up what it may have under way, or one that sleeps would not be woken.
TEST(Doorbell, RingsThatNobodyTakesKeepNoOtherSleeperFromBeingRung) {
  std::vector<std::unique_ptr<Sleepers>> many;
  for (int process = 0; process < 4; ++process) {
    many.push_back(std::make_unique<Sleepers>(64));
    for (unsigned v = 0; v < 64; ++v)
      for (int i = 0; i < 12; ++i) ring(many.back()->bell(), v, 1);
    for (unsigned v = 0; v < 64; ++v) EXPECT_TRUE(many.back()->wakes(v)) << "process " << process << ", VCI " << v;
  }
}

// A program may use up its descriptors at any time, also before this process first rings anybody. (Run before the others, which have rung.)
TEST(DoorbellDeathTest, RingingTakesNoDescriptor) {
  EXPECT_EXIT(
      {
        Sleepers one(1);
        const int highest = dup(0);
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = static_cast<rlim_t>(highest);
        close(highest);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (dup(0) >= 0) _exit(2);
        ring(one.bell(), 0, 1);
        _exit(one.wakes(0) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::shm
