#include "sys/bootstrap/patience.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace {

using heddle::sys::Bootstrap;
using heddle::sys::bootstrap::Patience;
using heddle::sys::bootstrap::speaks_in_fences;

/// Seconds that are waited, `most` at the most, and what is written meanwhile.
long long wait(Patience& patience, long long most, std::string& written, std::string& error) {
  testing::internal::CaptureStderr();
  long long seconds = 1;
  while (seconds < most && patience.wait_on(error)) ++seconds;
  written = testing::internal::GetCapturedStderr();
  return seconds;
}

TEST(Patience, WhoWaitsForADaySaysSoOnceAndWaitsOn) {
  Patience patience(0, 1000, true, 0);
  std::string written, error;
  EXPECT_EQ(wait(patience, 60, written, error), 60);  // asked 59 times
  EXPECT_EQ(written, "");
  EXPECT_EQ(wait(patience, 86400, written, error), 86400);
  EXPECT_NE(written.find("has waited for 60 s for the job's other ranks: not all 1000 have come"), std::string::npos) << written;
  EXPECT_NE(written.find("HEDDLE_START_TIMEOUT=SECONDS"), std::string::npos) << written;
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1) << written;
  EXPECT_EQ(error, "");
}

TEST(Patience, OthersSayNothing) {
  Patience patience(7, 1000, false, 0);
  std::string written, error;
  EXPECT_EQ(wait(patience, 86400, written, error), 86400);
  EXPECT_EQ(written, "");
}

TEST(Patience, ALimitEndsTheWaitOfThoseWhoSpeakBeforeThatOfTheOthers) {
  Patience first(0, 4, true, 10), second(1, 4, false, 10);
  std::string written, error;
  EXPECT_EQ(wait(first, 1000, written, error), 10);
  EXPECT_EQ(error.find("rank 0 has waited for 10 s (HEDDLE_START_TIMEOUT) for the job's other ranks: not all 4 have come to MPI_Init"), 0U) << error;
  EXPECT_EQ(wait(second, 1000, written, error), 12);
}

TEST(Patience, WhatIsThereIsNotWaitedFor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Patience patience(0, 2, true, 1);
  std::string error;
  EXPECT_FALSE(patience.await_input(ends[0], error));
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(Patience(0, 2, true, 1).await_input(ends[0], error));
  close(ends[0]);
  close(ends[1]);
}

TEST(Patience, TheFirstRankSpeaksAndOneOfAnotherHost) {
  std::vector<int> speakers;
  for (const int ranks_per_host : {1, 2, 3, 8})
    for (int rank = 0; rank < 8; ++rank) {
      Bootstrap job;
      job.rank = rank;
      job.size = 8;
      const int first = rank - rank % ranks_per_host;
      for (int other = first; other < std::min(first + ranks_per_host, 8); ++other) job.listed_local_ranks.push_back(other);
      job.local_size = static_cast<int>(job.listed_local_ranks.size());
      if (speaks_in_fences(job)) speakers.push_back(rank);
    }
  EXPECT_EQ(speakers, (std::vector<int>{0, 4, 0, 4, 0, 4, 0}));
}

}  // namespace
