#include "vci/park/spin.hpp"

#include <gtest/gtest.h>

namespace heddle::park {
namespace {

constexpr std::int64_t us = 1000, ms = 1'000'000;

/// A wait in which nothing comes, a look every `between` nanoseconds: what the pauses were, until it is time to sleep.
struct Pauses {
  int looks = 0, yields = 0;
  std::int64_t until_parked = 0;
};
Pauses wait_in_vain(Spin& spin, Habits& habits, std::int64_t& now, std::int64_t between, bool scarce,
                    std::int64_t configured = -1) {
  Pauses seen;
  const std::int64_t begin = now;
  for (;; now += between) {
    const Next next = spin.next({now, scarce, configured}, habits);
    if (next == Next::park) break;
    ++(next == Next::look ? seen.looks : seen.yields);
  }
  seen.until_parked = now - begin;
  return seen;
}

TEST(Crowding, CoresAreScarceOnAnOversubscribedNode) {
  Crowding crowding;
  crowding.start(false, 1);
  EXPECT_FALSE(crowding.scarce());
  EXPECT_EQ(crowding.idle_looks(), 64u);
  crowding.start(true, 1);
  EXPECT_TRUE(crowding.scarce());
  EXPECT_EQ(crowding.idle_looks(), 8u);
}

TEST(Crowding, CoresAreScarceWhileMoreThreadsWaitThanCanRun) {
  Crowding crowding;
  crowding.start(false, 2);
  crowding.add_waiters(1);
  crowding.add_waiters(1);
  EXPECT_FALSE(crowding.scarce());
  crowding.add_waiters(1);
  EXPECT_TRUE(crowding.scarce());
  EXPECT_EQ(crowding.idle_looks(), 8u);
  crowding.add_waiters(-1);
  EXPECT_FALSE(crowding.scarce());
  EXPECT_EQ(crowding.idle_looks(), 64u);
}

TEST(Spin, WithACoreOfItsOwnAThreadLooksForFiveMillisecondsAndNeverYields) {
  Spin spin;
  Habits habits;
  std::int64_t now = 1;
  const Pauses seen = wait_in_vain(spin, habits, now, 10 * us, false);
  EXPECT_EQ(seen.until_parked, 5 * ms);
  EXPECT_EQ(seen.yields, 0);
  EXPECT_FALSE(spin.has_lesson());
}

TEST(Spin, WhereCoresAreScarceItYieldsForTwoHundredMicroseconds) {
  Spin spin;
  Habits habits;
  std::int64_t now = 1;
  const Pauses seen = wait_in_vain(spin, habits, now, us, true);
  EXPECT_EQ(seen.until_parked, 200 * us);
  EXPECT_EQ(seen.looks, 0);
  EXPECT_TRUE(spin.has_lesson());
}

TEST(Spin, TheUserHasTheLastWordOnHowLongItLooks) {
  for (const bool scarce : {false, true}) {
    Spin spin;
    Habits habits;
    std::int64_t now = 1;
    EXPECT_EQ(wait_in_vain(spin, habits, now, us, scarce, 37 * us).until_parked, 37 * us);
    Spin none;
    EXPECT_EQ(none.next({now, scarce, 0}, habits), Next::park);
  }
}

TEST(Spin, WorkGivesTheWholeTimeAgainAndATimeoutDoesNot) {
  Spin spin;
  Habits habits;
  std::int64_t now = 1;
  wait_in_vain(spin, habits, now, 10 * us, false);
  now += 10 * us;
  EXPECT_EQ(wait_in_vain(spin, habits, now, 10 * us, false).until_parked, 0);  // a sleep in vain: one look, and on
  spin.woken();
  EXPECT_GT(wait_in_vain(spin, habits, now, 10 * us, false).until_parked, 4 * ms);
  spin.found_work();
  EXPECT_GT(wait_in_vain(spin, habits, now, 10 * us, false).until_parked, 4 * ms);
}

TEST(Spin, TimeThatOthersHadTheCoreDoesNotCount) {
  Spin spin;
  Habits habits;
  std::int64_t now = 1;
  // Every look comes 20 µs after the last, because another thread of the job runs in between: 1 µs of each is our own.
  EXPECT_EQ(wait_in_vain(spin, habits, now, 20 * us, true).until_parked, 200 * 20 * us);
}

TEST(Spin, AThreadThatRestsSleepsAtOnce) {
  Spin spin;
  Habits habits;
  EXPECT_EQ(spin.next({1, false, -1, true}, habits), Next::park);
}

TEST(Contention, AnotherProgramOnTheCoreShortensLookingForATenthOfASecond) {
  Spin spin;
  Habits habits;
  std::int64_t now = 1;
  spin.next({now, false, -1}, habits);
  now += Contention::lost_core + 1;
  spin.next({now, false, -1}, habits);  // somebody had the core since the last look
  Spin other;
  EXPECT_EQ(wait_in_vain(other, habits, now, 10 * us, false).until_parked, 200 * us);
  now += Contention::remembered;
  Spin later;
  EXPECT_EQ(wait_in_vain(later, habits, now, 10 * us, false).until_parked, 5 * ms);
}

TEST(Contention, ItDoesNotMakeAThreadYieldThatHasACore) {
  Spin spin;
  Habits habits;
  habits.contention.note(1, 10 * ms);
  std::int64_t now = 2;
  EXPECT_EQ(wait_in_vain(spin, habits, now, 10 * us, false).yields, 0);
}

TEST(Contention, TheTimeThatALargeMessageTakesIsNotTakenForIt) {
  for (const bool by_waiting_step : {false, true}) {
    Spin spin;
    Habits habits;
    spin.next({1, false, -1}, habits);
    if (by_waiting_step)
      spin.found_work();
    else
      spin.note_work();
    spin.next({1 + 3 * ms, false, -1}, habits);
    EXPECT_FALSE(habits.contention.shared(1 + 3 * ms));
    spin.next({1 + 6 * ms, false, -1}, habits);  // but the next such time is, with no work in between
    EXPECT_TRUE(habits.contention.shared(1 + 6 * ms));
  }
}

TEST(Spin, AThreadThatHasLearnedToLooksBeforeItYields) {
  Habits habits;
  for (unsigned i = 0; i < YieldDelay::first_interval + YieldDelay::trial_waits; ++i) {
    habits.yield_delay.begin();
    habits.yield_delay.end(true);
  }
  Spin spin;
  std::int64_t now = 1;
  const Pauses seen = wait_in_vain(spin, habits, now, us, true);
  EXPECT_EQ(seen.looks, YieldDelay::delay / us);
  EXPECT_EQ(seen.until_parked, 200 * us);
}

// Waits that end before the delay is over teach that it pays, and those that yield all the same that it does not.
TEST(Spin, WhatWaitsTeachDecidesAboutLaterOnes) {
  Habits habits;
  std::int64_t now = 1;
  const auto wait = [&](int looks) {
    now += us;
    Spin spin;
    for (int i = 0; i < looks; ++i, now += us) spin.next({now, true, -1}, habits);
    ASSERT_TRUE(spin.has_lesson());
    spin.end(habits);
  };
  const auto delays = [&] {
    Spin spin;
    return spin.next({now += us, true, -1}, habits) == Next::look;
  };
  for (unsigned i = 0; i < YieldDelay::first_interval + YieldDelay::trial_waits; ++i) wait(2);
  EXPECT_TRUE(delays());
  for (int i = 0; i < 20; ++i) wait(20);
  EXPECT_FALSE(delays());
}

}  // namespace
}  // namespace heddle::park
