#include "vci/park/sleepers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sync/futex.hpp"
#include "sys/clock.hpp"

namespace heddle::park {
namespace {

constexpr std::uint64_t all = ~std::uint64_t{0};
constexpr long second = 1'000'000'000;

struct Process {
  explicit Process(bool threads = true) {
    sleepers.start(*doorbell, sync::register_barrier());
    if (threads) sleepers.expect_threads();
  }
  [[nodiscard]] std::uint64_t asleep() const { return doorbell->asleep.load(); }
  [[nodiscard]] std::uint32_t rings() const { return doorbell->bell.load(); }
  std::unique_ptr<shm::Doorbell> doorbell = std::make_unique<shm::Doorbell>();
  Sleepers sleepers;
};

TEST(Sleepers, TheFirstIsTheSentinelAndIsWokenForEveryVci) {
  Process p;
  const auto first = p.sleepers.announce(3, false), second = p.sleepers.announce(5, false);
  EXPECT_TRUE(first.on_watch());
  EXPECT_EQ(first.listens_to(), anything);
  EXPECT_FALSE(second.sentinel);
  EXPECT_EQ(second.listens_to(), 5);
  EXPECT_EQ(p.asleep(), all);
  p.sleepers.retract(first);
  EXPECT_EQ(p.asleep(), std::uint64_t{1} << 5);
  p.sleepers.retract(second);
  EXPECT_EQ(p.asleep(), 0u);
}

TEST(Sleepers, TheNextToAnnounceItselfIsTheSentinelOnceThereIsNone) {
  Process p;
  const auto first = p.sleepers.announce(3, false), second = p.sleepers.announce(5, false);
  p.sleepers.retract(first);
  const auto third = p.sleepers.announce(4, false);
  EXPECT_TRUE(third.sentinel);
  EXPECT_EQ(p.asleep(), all);
  p.sleepers.retract(third);
  p.sleepers.retract(second);
}

TEST(Sleepers, ASentinelThatRestsListensToWhatItAwaitsOnly) {
  Process p;
  const auto one = p.sleepers.announce(3, true);
  EXPECT_TRUE(one.sentinel);
  EXPECT_EQ(one.listens_to(), 3);
  EXPECT_EQ(p.asleep(), std::uint64_t{1} << 3);
  const auto other = p.sleepers.announce(4, true);
  EXPECT_FALSE(other.sentinel);
  EXPECT_FALSE(other.resting);  // only a sentinel can
  p.sleepers.retract(one);
  p.sleepers.retract(other);
}

TEST(Sleepers, AThreadThatWaitsForAnythingIsWokenForEveryVci) {
  Process p;
  const auto sentinel = p.sleepers.announce(3, true), other = p.sleepers.announce(anything, false);
  EXPECT_EQ(p.asleep(), all);
  p.sleepers.wake(60);
  EXPECT_EQ(p.rings(), 1u);
  p.sleepers.retract(other);
  EXPECT_EQ(p.asleep(), std::uint64_t{1} << 3);
  p.sleepers.retract(sentinel);
}

TEST(Sleepers, AVcisBitStaysUntilTheLastOfItsThreadsIsAwake) {
  Process p;
  const auto a = p.sleepers.announce(7, true), b = p.sleepers.announce(7, false);
  p.sleepers.retract(a);
  EXPECT_EQ(p.asleep(), std::uint64_t{1} << 7);
  p.sleepers.wake(7);
  EXPECT_EQ(p.rings(), 1u);
  p.sleepers.retract(b);
  EXPECT_EQ(p.asleep(), 0u);
  p.sleepers.wake(7);
  EXPECT_EQ(p.rings(), 1u);
}

// What was served concerns those who wait for it; what is left to do concerns the sentinel as well.
TEST(Sleepers, ServingAVciRingsNobodyWhoWaitsForOthersButLeavingWorkRingsTheSentinel) {
  Process p;
  const auto sentinel = p.sleepers.announce(3, false);
  p.sleepers.wake(9);
  EXPECT_EQ(p.rings(), 0u);
  p.sleepers.call(9);
  EXPECT_EQ(p.rings(), 1u);
  p.sleepers.wake(3);
  EXPECT_EQ(p.rings(), 2u);
  p.sleepers.retract(sentinel);
  p.sleepers.call(9);
  p.sleepers.wake_all();
  EXPECT_EQ(p.rings(), 2u);
}

TEST(Sleepers, InAProcessWithOneThreadNobodyOfItIsRungButOthersRing) {
  Process p(false);
  const auto only = p.sleepers.announce(3, false);
  EXPECT_EQ(p.asleep(), all);
  EXPECT_FALSE(p.sleepers.any());
  p.sleepers.wake(3);
  p.sleepers.call(3);
  EXPECT_EQ(p.rings(), 0u);
  p.sleepers.retract(only);
}

TEST(Sleepers, WhoLeavesAsTheLastRingsNobody) {
  Process p;
  p.sleepers.retract(p.sleepers.announce(3, false));
  p.sleepers.leave([] { return true; });
  EXPECT_EQ(p.rings(), 0u);
}

TEST(Sleepers, WhoLeavesWhileASentinelSleepsTellsItOfTheWorkThatIsLeft) {
  Process p;
  const auto sentinel = p.sleepers.announce(3, false);
  p.sleepers.leave([] { return false; });
  EXPECT_EQ(p.rings(), 0u);
  p.sleepers.leave([] { return true; });
  EXPECT_EQ(p.rings(), 1u);
  p.sleepers.retract(sentinel);
}

// The sentinel has what it waited for and leaves; of those who still sleep, one comes and takes its place.
TEST(Sleepers, WhenTheSentinelLeavesASleeperTakesOver) {
  Process p;
  const auto sentinel = p.sleepers.announce(0, false);
  ASSERT_TRUE(sentinel.sentinel);
  constexpr int sleepers = 3;
  std::atomic<int> asleep{0}, on_watch{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 1; i <= sleepers; ++i)
    threads.emplace_back([&, i] {
      bool counted = false;
      while (!over) {
        const auto mine = p.sleepers.announce(i, false);
        if (mine.sentinel) ++on_watch;
        if (!counted) ++asleep;
        counted = true;
        if (!over) p.sleepers.sleep(mine, 3600 * second);  // longer than the test may take
        p.sleepers.retract(mine);
        if (mine.sentinel && !over) --on_watch;
      }
    });
  while (asleep < sleepers) std::this_thread::yield();
  EXPECT_EQ(on_watch, 0);
  p.sleepers.retract(sentinel);
  p.sleepers.leave([] { return false; });
  while (on_watch == 0) std::this_thread::yield();  // hangs if nobody takes over
  EXPECT_EQ(on_watch, 1);
  over = true;
  p.sleepers.wake_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(p.asleep(), 0u);
}

TEST(Sleepers, TheServerIsWokenForEveryVciAndNobodyBesideItIsTheSentinel) {
  Process p;
  EXPECT_FALSE(p.sleepers.program_sleeps());
  EXPECT_FALSE(p.sleepers.announce_server());
  EXPECT_EQ(p.asleep(), all);
  EXPECT_FALSE(p.sleepers.any());  // it waits for nothing
  const auto mine = p.sleepers.announce(3, false);
  EXPECT_FALSE(mine.sentinel);
  EXPECT_EQ(mine.listens_to(), 3);
  EXPECT_TRUE(p.sleepers.program_sleeps());
  p.sleepers.retract_server();
  EXPECT_EQ(p.asleep(), std::uint64_t{1} << 3);
  EXPECT_TRUE(p.sleepers.announce_server());
  p.sleepers.retract(mine);
  EXPECT_EQ(p.asleep(), all);
  p.sleepers.retract_server();
  EXPECT_EQ(p.asleep(), 0u);
}

// Begins the server's sleep on a thread of its own; `join` is the test.
std::thread asleep_as_server(Process& p) {
  p.sleepers.announce_server();
  std::thread server([&, view = p.sleepers.server_view()] { p.sleepers.sleep_server(view, 3600 * second); });
  while (p.doorbell->server.load() != shm::ServerSleep::on_word) std::this_thread::yield();
  return server;
}

TEST(Sleepers, WorkThatIsLeftWakesTheServer) {
  for (const int how : {0, 1, 2}) {
    Process p;
    std::thread server = asleep_as_server(p);
    if (how == 0) p.sleepers.call(9);
    if (how == 1) p.sleepers.leave([] { return true; });
    if (how == 2) p.sleepers.call_server();
    server.join();
    p.sleepers.retract_server();
  }
}

TEST(Sleepers, WhatWakesAThreadOfTheProgramDoesNotWakeTheServer) {
  Process p;
  std::thread server = asleep_as_server(p);
  std::atomic<bool> over{false};
  std::thread sleeper([&] {
    while (!over) {
      const auto mine = p.sleepers.announce(3, false);
      if (!over) p.sleepers.sleep(mine, 3600 * second);
      p.sleepers.retract(mine);
    }
  });
  while (!p.sleepers.any()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) p.sleepers.wake(3);
  EXPECT_EQ(p.doorbell->server_bell.load(), 0u);
  over = true;
  p.sleepers.wake_all();
  sleeper.join();
  server.join();
  p.sleepers.retract_server();
}

TEST(Sleepers, NoRingIsLostBetweenTheServersLookAndItsSleep) {
  Process p;
  if (!p.sleepers.reliable()) GTEST_SKIP() << "this kernel has no process-wide barrier";
  constexpr int rounds = 30'000;
  constexpr long limit = 10 * second;
  std::atomic<int> ready{0}, published{0};
  std::thread publisher([&] {
    for (int round = 1; round <= rounds; ++round) {
      for (int looks = 1; ready.load(std::memory_order_acquire) < round; ++looks)
        if (looks % 1024 == 0) std::this_thread::yield();
      for (int i = round % 2 ? round % 256 : round % 8192; i > 0; --i) (void)ready.load(std::memory_order_relaxed);  // about a nanosecond
      published.store(round, std::memory_order_release);
      p.sleepers.call(4);
    }
  });
  int lost = 0;
  for (int round = 1; round <= rounds && !lost; ++round) {
    ready.store(round, std::memory_order_release);
    if (round % 3) p.sleepers.announce_server();  // it may stay announced
    while (published.load(std::memory_order_acquire) < round) {
      if (round % 3 == 0) p.sleepers.announce_server();
      const auto view = p.sleepers.server_view();
      if (published.load(std::memory_order_acquire) < round) {
        const std::int64_t begin = sys::now_ns();
        p.sleepers.sleep_server(view, limit);
        lost += sys::now_ns() - begin >= limit;
      }
    }
    p.sleepers.retract_server();
  }
  EXPECT_EQ(lost, 0);
  publisher.join();
}

// One thread goes to sleep while the other publishes, at every distance from one another: a lost wake-up is a sleep that lasts to its limit.
TEST(Sleepers, NoWakeUpIsLostBetweenAnnouncementAndSleep) {
  Process p;
  if (!p.sleepers.reliable()) GTEST_SKIP() << "this kernel has no process-wide barrier";
  constexpr int rounds = 100'000;
  struct alignas(64) Word {
    std::atomic<int> round{0};
  } ready, published;
  constexpr long limit = 10 * second;
  int lost = 0;
  std::thread publisher([&] {
    for (int round = 1; round <= rounds; ++round) {
      for (int looks = 1; ready.round.load(std::memory_order_acquire) < round; ++looks)
        if (looks % 1024 == 0) std::this_thread::yield();
      // The announcement is made at once, and the sleep begins some microseconds later, after the barrier.
      for (int i = round % 2 ? round % 256 : round % 8192; i > 0; --i) (void)ready.round.load(std::memory_order_relaxed);  // about a nanosecond
      published.round.store(round, std::memory_order_release);
      p.sleepers.wake(4);
    }
  });
  for (int round = 1; round <= rounds && !lost; ++round) {
    ready.round.store(round, std::memory_order_release);
    while (published.round.load(std::memory_order_acquire) < round) {
      const auto mine = p.sleepers.announce(4, false);
      if (published.round.load(std::memory_order_acquire) < round) {
        const std::int64_t begin = sys::now_ns();
        p.sleepers.sleep(mine, limit);
        lost += sys::now_ns() - begin >= limit;
      }
      p.sleepers.retract(mine);
    }
  }
  ready.round.store(rounds, std::memory_order_release);  // also where it gave up
  publisher.join();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(p.asleep(), 0u);
}

// Threads of several VCIs come and go at random, and at the end of each round the masks are what those who sleep say.
TEST(Sleepers, TheMasksAgreeWithWhoSleepsWhateverTheOrder) {
  Process p;
  std::vector<Sleepers::Announcement> now;
  std::uint32_t seed = 1;
  const auto random = [&](unsigned n) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % n; };
  for (int step = 0; step < 20'000; ++step) {
    if (now.empty() || (now.size() < 12 && random(2))) {
      now.push_back(p.sleepers.announce(random(9) ? static_cast<Awaited>(random(64)) : anything, random(3) == 0));
    } else {
      const std::size_t i = random(static_cast<unsigned>(now.size()));
      p.sleepers.retract(now[i]);
      now.erase(now.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::uint64_t listened = 0;
    int sentinels = 0;
    for (const auto& one : now) {
      listened |= one.listens_to() == anything ? all : std::uint64_t{1} << one.listens_to();
      sentinels += one.sentinel;
    }
    ASSERT_EQ(p.asleep(), listened) << step;
    ASSERT_LE(sentinels, 1) << step;
    ASSERT_EQ(p.sleepers.any(), !now.empty()) << step;
  }
}

}  // namespace
}  // namespace heddle::park
