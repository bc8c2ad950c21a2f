// A whole wait, with a simulated process and clock: no thread sleeps here.
#include "vci/park/waiter.hpp"

#include <gtest/gtest.h>

#include "unit/vci/park/simulated.hpp"

namespace heddle::park::simulated {
namespace {

constexpr std::int64_t us = 1000, ms = 1'000'000;

TEST(Waiter, AWaitThatIsOverSoonCostsNoSleepAndIsNotRemembered) {
  State& s = Process::begin();
  int looks = 0;
  wait([&] { return ++looks > 60; });
  EXPECT_EQ(s.notes, 0);
  EXPECT_TRUE(s.sleeps.empty());
}

TEST(Waiter, ALongWaitLooksThenSleepsForASecond) {
  State& s = Process::begin();
  wait([&] { return s.sleeps.size() == 1; });
  EXPECT_EQ(s.sleeps[0], 1000 * ms);
  EXPECT_GE(s.slept_at, 5 * ms);
  EXPECT_LT(s.slept_at, 6 * ms);
  EXPECT_EQ(s.launcher_looks, 1);
}

TEST(Waiter, ASleepInVainIsFollowedByAShortLookAndOneThatWasEndedByALongOne) {
  for (const bool rung : {false, true}) {
    State& s = Process::begin();
    if (rung) s.during_sleep = [](State& state) { ring(state.doorbell, 3, 1); };
    std::vector<std::int64_t> at;
    // A rung sentinel finds that there is work, so that it need not rest.
    wait([&] {
      if (s.sleeps.size() > at.size()) {
        at.push_back(SimulatedClock::now);
        s.works = 1;
      }
      return at.size() == 2;
    });
    ASSERT_EQ(s.sleeps.size(), 2u);
    if (rung)
      EXPECT_GE(s.slept_at - at[0], 5 * ms);
    else
      EXPECT_LT(s.slept_at - at[0], ms);
  }
}

TEST(Waiter, WhoeverIsDoneBetweenAnnouncementAndSleepDoesNotSleep) {
  State& s = Process::begin();
  bool done = false;
  wait([&] { return done = done || s.doorbell.asleep.load() != 0; });
  EXPECT_TRUE(s.sleeps.empty());
  EXPECT_EQ(s.doorbell.asleep.load(), 0u);
}

TEST(Waiter, WorkThatNobodyRingsForShortensTheSleep) {
  State& s = Process::begin();
  s.work_is_left = true;
  wait([&] { return s.sleeps.size() == 1; });
  EXPECT_EQ(s.sleeps[0], 50 * us);
}

TEST(Waiter, WithoutTheKernelsBarrierASleepIsAMillisecond) {
  State& s = Process::begin();
  s.sleepers.start(s.doorbell, false);
  wait([&] { return s.sleeps.size() == 1; });
  EXPECT_EQ(s.sleeps[0], ms);
}

TEST(Waiter, ASentinelThatIsRungForOthersRestsForOneShortSleep) {
  State& s = Process::begin();
  s.during_sleep = [](State& state) {
    if (state.sleeps.size() < 4) ring(state.doorbell, 9, 1);  // served by a thread that is awake
  };
  wait([&] { return s.sleeps.size() == 4; });
  EXPECT_EQ(s.sleeps, (std::vector<long>{1000 * ms, ms, 1000 * ms, ms}));
  EXPECT_EQ(s.listened, (std::vector<Awaited>{anything, 3, anything, 3}));
}

TEST(Waiter, WhereTheNetworkWakesNobodyNapsGrowAndEndAtEightMilliseconds) {
  State& s = Process::begin();
  s.has_network = s.silent = true;
  wait([&] { return s.sleeps.size() == 60; });
  EXPECT_EQ(s.sleeps[0], Nap::first);
  for (std::size_t i = 1; i < s.sleeps.size(); ++i) {
    EXPECT_GE(s.sleeps[i], s.sleeps[i - 1]);
    EXPECT_LE(s.sleeps[i], s.sleeps[i - 1] + s.sleeps[i - 1] / 8);
  }
  EXPECT_GE(s.sleeps.back(), Nap::longest);
  EXPECT_LE(s.sleeps.back(), Nap::longest + Nap::longest / 8);
  EXPECT_EQ(s.sleeps.back(), s.sleeps[58]);
}

TEST(Waiter, ANewWaitBeginsWithAShortNap) {
  State& s = Process::begin();
  s.has_network = s.silent = true;
  wait([&] { return s.sleeps.size() == 10; });
  s.sleeps.clear();
  wait([&] { return s.sleeps.size() == 1; });
  EXPECT_EQ(s.sleeps[0], Nap::first);
}

TEST(Waiter, ANetworkThatHasSomethingNowKeepsTheThreadAwake) {
  State& s = Process::begin();
  s.has_network = s.awake = true;
  wait([&] { return SimulatedClock::now > 50 * ms; });
  EXPECT_GT(s.launcher_looks, 0);
  EXPECT_TRUE(s.sleeps.empty());
}

TEST(Waiter, ALongWaitIsReportedOnce) {
  State& s = Process::begin();
  s.report_after = 3000 * ms;
  wait([&] { return s.sleeps.size() == 9; });
  EXPECT_EQ(s.reports, std::vector<Awaited>{3});
}

TEST(Waiter, ItYieldsWhereCoresAreScarceAndOnlyThere) {
  for (const bool scarce : {false, true}) {
    State& s = Process::begin();
    s.crowding.start(scarce, 8);
    wait([&] { return s.sleeps.size() == 1; });
    EXPECT_EQ(s.yields > 0, scarce);
  }
}

}  // namespace
}  // namespace heddle::park::simulated
