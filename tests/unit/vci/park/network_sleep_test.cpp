#include "vci/park/network_sleep.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "sync/futex.hpp"

namespace heddle::park {
namespace {

constexpr long second = 1'000'000'000, hang_bound = 20 * second;

/// A process with one VCI's network, number 2, that is a pipe.
class NetworkSleepTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string problem;
    sleepers_.start(*doorbell_, sync::register_barrier());
    sleepers_.expect_threads();
    ASSERT_TRUE(network_.open(*doorbell_, problem)) << problem;
    ASSERT_EQ(pipe(pipe_), 0);
    bell_ = shm::open_bell(*doorbell_, 2, problem);
    ASSERT_GE(bell_, 0) << problem;
  }
  void TearDown() override {
    network_.close();
    for (const int fd : {pipe_[0], pipe_[1], bell_}) close(fd);
  }
  [[nodiscard]] NetworkSources sources() const {
    NetworkSources found;
    found.add(pipe_[0], false);
    found.set_bell(bell_);
    return found;
  }
  NetworkSleep::Ended sleep(const Sleepers::Announcement& mine, long nanoseconds = hang_bound, bool alone = false) {
    NetworkSources at = sources();
    return network_.sleep(mine, at, alone, nanoseconds);
  }
  void send() const { ASSERT_EQ(write(pipe_[1], "", 1), 1); }
  /// Until a thread sleeps at the network, or is about to.
  void await_sleeper(bool sentinel) const {
    while (!(sentinel ? doorbell_->sentinel_at_network.load() : doorbell_->at_network.load())) std::this_thread::yield();
  }

  std::unique_ptr<shm::Doorbell> doorbell_ = std::make_unique<shm::Doorbell>();
  Sleepers sleepers_;
  NetworkSleep network_;
  int pipe_[2] = {-1, -1};
  int bell_ = -1;
};

using Ended = NetworkSleep::Ended;

// Threads may still sleep, and handlers finalize, when the destructors of global objects have run.
static_assert(std::is_trivially_destructible_v<NetworkSleep> && std::is_trivially_destructible_v<Sleepers>);

TEST_F(NetworkSleepTest, TheNetworkWakesASleeper) {
  const auto sentinel = sleepers_.announce(9, false), mine = sleepers_.announce(2, false);
  send();
  EXPECT_EQ(sleep(mine), Ended::woken);
  EXPECT_EQ(sleep(sentinel), Ended::woken);
  EXPECT_EQ(doorbell_->at_network.load(), 0u);
  EXPECT_EQ(doorbell_->sentinel_at_network.load(), 0u);
}

TEST_F(NetworkSleepTest, AThreadOfTheProcessWakesASleeperAndTheSentinel) {
  for (const bool sentinel : {false, true}) {
    const auto watch = sleepers_.announce(9, false), mine = sleepers_.announce(2, false);
    std::thread waker([&] {
      await_sleeper(sentinel);
      sentinel ? sleepers_.call(9) : sleepers_.wake(2);
    });
    EXPECT_EQ(sleep(sentinel ? watch : mine), Ended::woken);
    waker.join();
    sleepers_.retract(mine);
    sleepers_.retract(watch);
    pollfd left{bell_, POLLIN, 0};
    EXPECT_EQ(poll(&left, 1, 0), 0) << "the ring is taken, and does not end the next sleep";
  }
}

TEST_F(NetworkSleepTest, ARingSinceTheAnnouncementEndsTheSleepBeforeItBegins) {
  const auto mine = sleepers_.announce(2, false);
  sleepers_.wake(2);
  EXPECT_EQ(sleep(mine), Ended::woken);
  EXPECT_EQ(sleep(mine, hang_bound, true), Ended::woken);
}

TEST_F(NetworkSleepTest, TheTimeLimitIsNoWakeUp) {
  const auto mine = sleepers_.announce(2, false);
  EXPECT_EQ(sleep(mine, 1000), Ended::in_vain);
}

// A VCI has one socket, so a second thread that waits for it sleeps on the word, and both are woken.
TEST_F(NetworkSleepTest, WhereASocketIsTakenTheThreadSleepsOnTheWord) {
  const auto sentinel = sleepers_.announce(9, false);
  const auto first = sleepers_.announce(2, false), other = sleepers_.announce(2, false);
  std::thread sleeper([&] { EXPECT_EQ(sleep(first), Ended::woken); });
  await_sleeper(false);
  EXPECT_EQ(sleep(other), Ended::not_here);
  EXPECT_NE(doorbell_->at_network.load(), 0u) << "the bit is the first one's";
  std::thread waker([&] { sleepers_.wake(2); });
  sleepers_.sleep(other, hang_bound);
  EXPECT_TRUE(sleepers_.rung_since(other.ticket));
  waker.join();
  sleeper.join();
  EXPECT_EQ(doorbell_->at_network.load(), 0u);
  sleepers_.retract(sentinel);
}

TEST_F(NetworkSleepTest, OnlyTheSentinelSleepsThereForEverything) {
  const auto sentinel = sleepers_.announce(9, true), other = sleepers_.announce(anything, false);
  EXPECT_EQ(sleep(other), Ended::not_here);
  sleepers_.retract(sentinel);
}

TEST_F(NetworkSleepTest, WithoutAWakingNetworkOrAReachableSocketThereIsNoSleepThere) {
  const auto mine = sleepers_.announce(2, false);
  NetworkSources silent = sources(), awake = sources(), nothing;
  silent.add_silent();
  awake.add_awake();
  for (NetworkSources* at : {&silent, &awake, &nothing}) EXPECT_EQ(network_.sleep(mine, *at, false, second), Ended::not_here);
  doorbell_->unreachable.store(1);
  EXPECT_EQ(sleep(mine), Ended::not_here);
}

TEST_F(NetworkSleepTest, AProcessWithoutNeighboursNeedsNoSocket) {
  const auto mine = sleepers_.announce(2, false);
  send();
  EXPECT_EQ(sleep(mine, hang_bound, true), Ended::in_vain);  // nobody else was served, which is what a wake-up would say
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{};
  readable.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_[0], &readable), 0);
  NetworkSources at;
  at.add(epoll, true);
  EXPECT_EQ(network_.sleep(mine, at, true, hang_bound), Ended::in_vain);
  close(epoll);
  EXPECT_EQ(doorbell_->at_network.load(), 0u);
}

TEST_F(NetworkSleepTest, HowLongASleepMayBeDependsOnWhatTheNetworksOffer) {
  Nap nap;
  NetworkSources silent = sources(), awake = sources();
  silent.add_silent();
  awake.add_silent();
  awake.add_awake();
  EXPECT_EQ(network_.limit(sources(), nap, second), second);
  EXPECT_EQ(network_.limit(awake, nap, second), 0);
  EXPECT_EQ(nap.length(), Nap::first) << "no nap was taken";
  EXPECT_EQ(network_.limit(silent, nap, second), Nap::first);
  EXPECT_GT(nap.length(), Nap::first);
  EXPECT_EQ(network_.limit(silent, nap, 50'000), 50'000);
  doorbell_->unreachable.store(1);
  EXPECT_EQ(network_.limit(sources(), nap, second), 1'000'000);
  EXPECT_EQ(network_.limit(sources(), nap, 50'000), 50'000);
}

}  // namespace
}  // namespace heddle::park
