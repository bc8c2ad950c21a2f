#include "transport/net/look_pace.hpp"

#include <gtest/gtest.h>

namespace heddle::net {
namespace {

/// Counts how often the clock is read.
struct Clock {
  std::int64_t now = 1'000'000;
  int asked = 0;
  std::int64_t operator()() noexcept { return ++asked, now; }
};

TEST(LookPace, without_neighbours_every_step_looks_and_reads_no_clock) {
  LookPace pace;
  Clock clock;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(pace.due(false, clock));
    if (i % 7 == 0) pace.found();
  }
  EXPECT_EQ(clock.asked, 0);
}

TEST(LookPace, beside_busy_neighbours_the_network_is_looked_at_once_in_a_spacing) {
  LookPace pace;
  Clock clock;
  int looks = 0;
  constexpr int steps = 4000;
  for (int i = 0; i < steps; ++i) {
    looks += pace.due(i % 8 == 0, clock);  // most steps find nothing
    clock.now += 100;
  }
  EXPECT_EQ(looks, steps * 100 / LookPace::spacing);
}

TEST(LookPace, rare_steps_look_each_time) {
  LookPace pace;
  Clock clock;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(pace.due(true, clock));
    clock.now += LookPace::spacing;
  }
}

TEST(LookPace, neighbours_that_fall_silent_are_forgotten) {
  LookPace pace;
  Clock clock;
  pace.due(true, clock);
  clock.now += LookPace::busy_for;
  EXPECT_TRUE(pace.due(false, clock));
  const int asked = clock.asked;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pace.due(false, clock));
  EXPECT_EQ(clock.asked, asked);
}

TEST(LookPace, a_network_that_has_something_is_looked_at_until_a_neighbour_has_something) {
  LookPace pace;
  Clock clock;
  EXPECT_TRUE(pace.due(true, clock));
  pace.found();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pace.due(false, clock));
  EXPECT_FALSE(pace.due(true, clock));
}

}  // namespace
}  // namespace heddle::net
