// The locks of accumulates: between threads, between processes, behind a stopped holder.
// timeout: 300
#include "sync/stripe_lock.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "sync/thread_sanitizer.hpp"

using heddle::sync::HeldStripe;
using heddle::sync::StripeLock;
using heddle::sync::StripeLocks;

namespace {

constexpr int scale = heddle::sync::in_thread_sanitizer ? 20 : 1;

/// Memory that children of fork share with us.
template <typename T>
struct Shared {
  Shared() : all(static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { munmap(all, sizeof(T)); }
  T* operator->() const { return all; }
  T* all;
};

template <typename F>
pid_t in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  return child;
}

void expect_success(pid_t child) {
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Holds threads, of several processes maybe, until all of them are there: on few cores the first would else be done before the last begins.
class Start {
 public:
  void wait(int for_threads) {
    here_.fetch_add(1, std::memory_order_acq_rel);
    while (here_.load(std::memory_order_acquire) < for_threads) sched_yield();
  }

 private:
  std::atomic<int> here_{0};
};

double processor_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

}  // namespace

TEST(StripeLock, zeroed_memory_is_free_locks_each_on_a_line_of_its_own) {
  Shared<StripeLocks> locks;
  EXPECT_EQ(sizeof(StripeLocks), StripeLocks::locks * 64);
  for (std::uint64_t s = 0; s < 1000; ++s) {
    StripeLock& lock = locks->at(s * StripeLocks::stripe_bytes);
    ASSERT_TRUE(lock.try_lock());
    ASSERT_FALSE(lock.try_lock());
    lock.unlock();
  }
}

TEST(StripeLock, neighbouring_stripes_and_those_at_any_power_of_two_have_different_locks) {
  for (int shift = 12; shift < 40; ++shift) {
    std::set<std::size_t> used;
    for (std::uint64_t i = 0; i < 32; ++i) used.insert(StripeLocks::index_of(0x7f1234567000 + (i << shift)));
    EXPECT_GE(used.size(), 16u) << "32 stripes 2^" << shift << " bytes apart";
    EXPECT_NE(StripeLocks::index_of(0x7f1234567000), StripeLocks::index_of(0x7f1234567000 + (std::uint64_t{1} << shift)));
  }
}

TEST(StripeLock, chunks_hold_each_element_once_under_the_lock_of_its_first_byte) {
  auto locks = std::make_unique<StripeLocks>();
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t size = 1 + random() % 40, n = random() % 2000;
    // Also at the end of the address space, where sums wrap around.
    const std::uint64_t address = round % 10 ? random() >> 16 : std::uint64_t{0} - n * size;
    std::uint64_t next = 0;
    locks->for_each_chunk(address, n, size, [&](std::uint64_t first, std::uint64_t here) {
      ASSERT_EQ(first, next);
      ASSERT_GT(here, 0u);
      ASSERT_FALSE(locks->at(address + first * size).try_lock());
      ASSERT_EQ(StripeLocks::stripe_of(address + first * size), StripeLocks::stripe_of(address + (first + here - 1) * size));
      next += here;
      if (next < n) { ASSERT_NE(StripeLocks::stripe_of(address + first * size), StripeLocks::stripe_of(address + next * size)); }
    });
    ASSERT_EQ(next, n);
    ASSERT_TRUE(locks->at(address).try_lock());
    locks->at(address).unlock();
  }
}

TEST(StripeLock, a_walk_holds_the_lock_of_the_stripe_it_is_in_and_no_other) {
  auto locks = std::make_unique<StripeLocks>();
  const auto held = [&](std::uint64_t address) {
    const bool free = locks->at(address).try_lock();
    if (free) locks->at(address).unlock();
    return !free;
  };
  {
    HeldStripe walk(*locks);
    EXPECT_FALSE(held(4096));
    walk.move_to(4096);
    EXPECT_TRUE(held(4096));
    walk.move_to(8191);
    EXPECT_TRUE(held(4096));
    walk.move_to(8192);
    EXPECT_FALSE(held(4096));
    EXPECT_TRUE(held(8192));
  }
  EXPECT_FALSE(held(8192));
}

TEST(StripeLock, ten_million_increments_of_threads_and_processes_add_up) {
  struct Memory {
    StripeLocks locks;
    std::uint64_t counter;
    Start start;
  };
  Shared<Memory> memory;
  constexpr int processes = 2, threads = 4;
  constexpr std::uint64_t each = 10'000'000 / processes / threads / scale;
  const auto add = [&] {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&] {
        memory->start.wait(processes * threads);
        for (std::uint64_t i = 0; i < each; ++i) memory->locks.for_each_chunk(42, 1, 8, [&](std::uint64_t, std::uint64_t) { ++memory->counter; });
      });
    for (std::thread& t : all) t.join();
  };
  std::vector<pid_t> children;
  for (int p = 1; p < processes; ++p) children.push_back(in_child(add));
  add();
  for (const pid_t child : children) expect_success(child);
  EXPECT_EQ(memory->counter, each * processes * threads);
}

TEST(StripeLock, overlapping_runs_of_one_to_4096_elements_by_eight_threads_add_up) {
  // Elements of 12 bytes, so that some lie across the ends of stripes; 12 does not divide 4096.
  constexpr std::size_t size = 12, length = 20'000;
  constexpr int threads = 8, rounds = 10'000 / scale;
  std::vector<std::uint32_t> memory(length * size / 4 + 1, 0);
  auto locks = std::make_unique<StripeLocks>();
  const auto owner = [&](std::size_t element) { return 0x7000'0000'0004 + element * size; };
  std::vector<std::vector<std::uint32_t>> added(threads, std::vector<std::uint32_t>(length, 0));
  Start start;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      const auto touch = [&](std::size_t element) {
        for (std::size_t k = 0; k < 3; ++k) ++memory[element * 3 + k];
        ++added[static_cast<std::size_t>(t)][element];
      };
      start.wait(threads);
      for (int i = 0; i < rounds; ++i) {
        const std::size_t n = std::size_t{1} << random() % 13, at = random() % (length - n);
        if (i % 4) {
          locks->for_each_chunk(owner(at), n, size, [&](std::uint64_t first, std::uint64_t here) {
            for (std::uint64_t e = 0; e < here; ++e) touch(at + first + e);
          });
        } else {
          HeldStripe held(*locks);
          for (std::size_t e = at; e < at + n; e += 3) {
            held.move_to(owner(e));
            touch(e);
          }
        }
      }
    });
  for (std::thread& t : all) t.join();
  for (std::size_t e = 0; e < length; ++e) {
    std::uint32_t sum = 0;
    for (const auto& list : added) sum += list[e];
    for (std::size_t k = 0; k < 3; ++k) ASSERT_EQ(memory[e * 3 + k], sum) << "element " << e;
  }
}

TEST(StripeLock, a_waiter_behind_a_stopped_holder_sleeps_and_goes_on_after_it) {
  struct Memory {
    StripeLock lock;
    std::atomic<int> held;
  };
  Shared<Memory> memory;
  const pid_t holder = in_child([&] {
    memory->lock.lock();
    memory->held.store(1, std::memory_order_release);
    raise(SIGSTOP);
    memory->lock.unlock();
  });
  int status = 0;
  ASSERT_EQ(waitpid(holder, &status, WUNTRACED), holder);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(memory->held.load(std::memory_order_acquire), 1);
  // Wakes the holder after half a second, which is what the waiter's processor time is compared with.
  const pid_t alarm = in_child([&] {
    usleep(500'000);
    kill(holder, SIGCONT);
  });
  const double before = processor_seconds();
  memory->lock.lock();
  const double used = processor_seconds() - before;
  EXPECT_LT(used, 0.1) << "of half a second";
  expect_success(alarm);
  expect_success(holder);
}
