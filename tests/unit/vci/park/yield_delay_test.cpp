#include "vci/park/yield_delay.hpp"

#include <gtest/gtest.h>

namespace heddle::park {
namespace {

/// `n` waits, each of which ends before a yield if `pays` and it may delay one. How many were allowed to.
int waits(YieldDelay& learned, int n, bool pays) {
  int delayed = 0;
  for (int i = 0; i < n; ++i) {
    const bool delays = learned.begin() > 0;
    delayed += delays;
    learned.end(delays && pays);
  }
  return delayed;
}

/// Waits until the next trial begins, the first wait of the trial not counted.
int waits_before_trial(YieldDelay& learned) {
  int n = 0;
  for (; !learned.begin(); ++n) learned.end(false);
  learned.end(false);
  return n;
}

TEST(YieldDelay, ANewThreadYieldsAtOnceUntilItsFirstTrial) {
  YieldDelay learned;
  EXPECT_EQ(waits_before_trial(learned), static_cast<int>(YieldDelay::first_interval) - 1);
}

TEST(YieldDelay, ATrialThatPaysIsKeptUp) {
  YieldDelay learned;
  waits(learned, YieldDelay::first_interval - 1, true);
  EXPECT_EQ(learned.begin(), 2 * YieldDelay::delay);  // the trial
  learned.end(true);
  waits(learned, YieldDelay::trial_waits - 1, true);
  EXPECT_EQ(learned.begin(), YieldDelay::delay);
  learned.end(true);
  EXPECT_EQ(waits(learned, 10'000, true), 10'000);
}

TEST(YieldDelay, OneFailureInATrialIsAllowedTwoAreNot) {
  for (const int failures : {1, 2}) {
    YieldDelay learned;
    waits(learned, YieldDelay::first_interval - 1, true);
    for (int i = 0; i < YieldDelay::trial_waits; ++i) {
      EXPECT_GT(learned.begin(), 0);
      learned.end(i >= failures);
    }
    EXPECT_EQ(learned.begin() > 0, failures == 1) << failures;
  }
}

TEST(YieldDelay, WhatNoLongerPaysIsGivenUpAfterAFewWaits) {
  YieldDelay learned;
  waits(learned, YieldDelay::first_interval + YieldDelay::trial_waits, true);
  ASSERT_EQ(waits(learned, 100, true), 100);
  EXPECT_EQ(waits(learned, 20, false), 5);  // 64 and fifteen sixteenths of what was: 256 is reached by the fifth
  EXPECT_EQ(waits(learned, 5, false), 0);
}

TEST(YieldDelay, OneWaitInEightInVainChangesNothing) {
  YieldDelay learned;
  waits(learned, YieldDelay::first_interval + YieldDelay::trial_waits, true);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_GT(learned.begin(), 0) << i;
    learned.end(i % 8 != 0);
  }
}

TEST(YieldDelay, TrialsThatDoNotPayBecomeRarer) {
  YieldDelay learned;
  int before = 0;
  for (unsigned interval = YieldDelay::first_interval; interval <= YieldDelay::last_interval; interval *= 2) {
    before = waits_before_trial(learned);
    EXPECT_EQ(before, static_cast<int>(interval) - 1);
    EXPECT_EQ(waits(learned, YieldDelay::trial_waits - 1, false), YieldDelay::trial_waits - 1);
  }
  EXPECT_EQ(waits_before_trial(learned), before);  // and no rarer than that
}

TEST(YieldDelay, ATrialThatPaysMakesTrialsFrequentAgain) {
  YieldDelay learned;
  for (int i = 0; i < 4; ++i) {
    waits_before_trial(learned);
    waits(learned, YieldDelay::trial_waits - 1, false);
  }
  while (!learned.begin()) learned.end(false);
  learned.end(true);
  waits(learned, YieldDelay::trial_waits - 1, true);
  ASSERT_EQ(waits(learned, 10, true), 10);
  waits(learned, 5, false);  // given up
  EXPECT_EQ(waits_before_trial(learned), static_cast<int>(YieldDelay::first_interval) - 1);
}

}  // namespace
}  // namespace heddle::park
