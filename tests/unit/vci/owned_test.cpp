// A VCI that one thread owns, in a process without peers: its region and its waiting are real, its module is the test's.
#include "vci/owned.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sys/bootstrap/bootstrap.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

constexpr int rounds = 4;
constexpr auto too_long = std::chrono::seconds(rounds - 1);  // each lost wake-up costs a second

VciState state;
std::atomic<int> work{0};  ///< pieces that the module has to do in VCI 0; each is counted in `moving`
const void* worked_on = nullptr;  ///< the thread that did the last; guarded by the VCI

VciState* open_module(Vci&) noexcept { return &state; }
void close_module(VciState&) noexcept {}
bool advance(VciGuard& guard) noexcept {
  if (number(guard.vci().index) || !work.load(std::memory_order_acquire)) return false;
  worked_on = __builtin_thread_pointer();
  guard.vci().moving.fetch_sub(1, std::memory_order_relaxed);
  work.fetch_sub(1, std::memory_order_release);
  return true;
}
bool take_records(VciGuard&, int, const Request*) noexcept { return false; }
constexpr VciModule module{0, open_module, close_module, advance, take_records};

/// One process with two VCIs.
class OwnedVci : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_vci_module(module);
    sys::Bootstrap job;
    job.job_id = "owned-" + std::to_string(getpid());
    unsigned vcis = 2;
    std::string problem;
    ASSERT_TRUE(shm::start(job, vcis, [](std::uint32_t) noexcept {}, problem)) << problem;
    start_waiting(1, 0, [](Vci*, const WaitSubject&, std::int64_t) noexcept {});
    ASSERT_TRUE(start_vcis(2));
    expect_threads();
  }
  static void TearDownTestSuite() {
    stop_vcis();
    shm::stop();
  }
  Vci& vci = vci_of_lane(lane_at(0));
  Vci& other = vci_of_lane(lane_at(1));
};

/// A thread that owns VCIs and makes progress on them until it is told to end.
class Driver {
 public:
  explicit Driver(std::vector<Vci*> vcis, bool sleeps = false)
      : thread_([this, vcis, sleeps] {
          for (Vci* vci : vcis) EXPECT_TRUE(own(*vci));
          self_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
          number_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
          runs_.store(true, std::memory_order_release);
          const auto ended = [&] { return ends_.load(std::memory_order_acquire); };
          if (sleeps) wait_until(vcis.size() == 1 ? vcis[0] : nullptr, ended);
          while (!ended()) progress_all();
        }) {
    while (!runs_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Driver() { end(); }
  void end() {
    if (!thread_.joinable()) return;
    ends_.store(true, std::memory_order_release);
    wake_all_sleepers();
    thread_.join();
  }
  [[nodiscard]] const void* self() const { return self_.load(std::memory_order_relaxed); }
  /// Returns once the thread is in the kernel and waits.
  void await_sleep() const {
    for (;; std::this_thread::yield()) {
      std::ifstream file("/proc/self/task/" + std::to_string(number_.load(std::memory_order_relaxed)) + "/stat");
      std::string text;
      std::getline(file, text);
      if (text.substr(text.rfind(')')).starts_with(") S")) return;
    }
  }

 private:
  std::atomic<bool> runs_{false}, ends_{false};
  std::atomic<const void*> self_{nullptr};
  std::atomic<int> number_{0};
  std::thread thread_;
};

const void* this_thread() { return __builtin_thread_pointer(); }

/// A step that the owner executes; says on which thread.
struct Posted : Submission {
  Posted() : Submission{[](Submission& self, VciGuard&) noexcept { static_cast<Posted&>(self).ran_on.store(this_thread()); }} {}
  std::atomic<const void*> ran_on{nullptr};
};

TEST_F(OwnedVci, AStepRunsOnItsOwnThreadWhileTheOwnerWaits) {
  ASSERT_TRUE(own(vci));
  std::atomic<bool> ran{false};
  const void* runner = nullptr;
  std::thread guest([&] {
    runner = submit(vci, [&](VciGuard&) {
      std::this_thread::yield();
      ran.store(true, std::memory_order_relaxed);
      return this_thread();
    });
    EXPECT_EQ(runner, this_thread());
  });
  while (!vci.moving.load(std::memory_order_relaxed)) std::this_thread::yield();
  EXPECT_FALSE(ran.load(std::memory_order_relaxed));
  while (vci.moving.load(std::memory_order_relaxed)) progress_all();
  EXPECT_TRUE(ran.load(std::memory_order_relaxed));  // the owner has seen it leave
  guest.join();
  give_back(vci);
}

TEST_F(OwnedVci, WhatIsPostedRunsOnTheOwnersThreadInOrder) {
  std::vector<int> order;  // plain: only the owner's thread writes it, and the last step comes back
  struct Numbered : Submission {
    Numbered(std::vector<int>& to, int as)
        : Submission{[](Submission& self, VciGuard&) noexcept {
            auto& step = static_cast<Numbered&>(self);
            step.list->push_back(step.number);
          }},
          list(&to), number(as) {}
    std::vector<int>* list;
    int number;
  } one(order, 1), two(order, 2), three(order, 3);
  Posted last;
  {
    Driver owner({&vci});
    EXPECT_TRUE(post(vci, one) && post(vci, two) && post(vci, three) && post(vci, last));
    submit(vci, [&](VciGuard&) { EXPECT_EQ(order, (std::vector{1, 2, 3})); });
    EXPECT_EQ(last.ran_on.load(), owner.self());
  }
  EXPECT_FALSE(post(vci, one));
  EXPECT_EQ(vci.moving.load(), 0u);
}

TEST_F(OwnedVci, TheOwnersOwnStepRunsAtOnceWithoutTheLock) {
  ASSERT_TRUE(own(vci));
  EXPECT_EQ(submit(vci, [&](VciGuard& guard) { return &guard.vci(); }), &vci);
  EXPECT_FALSE(vci.lock.try_lock());  // taken once, for good
  int ran = 0;
  EXPECT_TRUE(try_submit(vci, [&](VciGuard&) { ++ran; }));
  EXPECT_EQ(ran, 1);
  give_back(vci);
  EXPECT_TRUE(vci.lock.try_lock());
  vci.lock.unlock();
}

TEST_F(OwnedVci, OthersAreRefusedWhereTheyWouldNotWait) {
  Driver owner({&vci});
  int ran = 0;
  EXPECT_FALSE(try_submit(vci, [&](VciGuard&) { ++ran; }));
  EXPECT_FALSE(HandOver::try_hold(vci));
  EXPECT_FALSE(own(vci));
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(try_submit(other, [&](VciGuard&) { ++ran; }));
}

TEST_F(OwnedVci, ProgressOfOthersDoesNotTouchIt) {
  Driver owner({&vci});
  vci.moving.fetch_add(1);
  work.store(1, std::memory_order_release);
  while (work.load(std::memory_order_acquire)) progress_all();
  EXPECT_EQ(submit(vci, [](VciGuard&) { return worked_on; }), owner.self());
  EXPECT_NE(owner.self(), this_thread());
}

TEST_F(OwnedVci, AThreadsEndGivesItBack) {
  Driver owner({&vci, &other});
  owner.end();
  int ran = 0;
  submit(vci, [&](VciGuard&) { ++ran; });
  submit(other, [&](VciGuard&) { ++ran; });
  EXPECT_EQ(ran, 2);
  EXPECT_TRUE(own(vci));
  give_back(vci);
}

TEST_F(OwnedVci, WhoWaitsWhenItIsGivenBackGetsIn) {
  ASSERT_TRUE(own(vci));
  Posted posted;
  ASSERT_TRUE(post(vci, posted));
  int ran = 0;
  std::thread guest([&] { submit(vci, [&](VciGuard&) { ++ran; }); });
  while (vci.moving.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
  give_back(vci);  // the guest is in the queue, or is refused there and takes the lock
  EXPECT_EQ(posted.ran_on.load(), this_thread());
  guest.join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(vci.moving.load(), 0u);
}

TEST_F(OwnedVci, OwnersThatSubmitToEachOtherBothGetIn) {
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> owners{0}, done{0}, steps{0};
    const auto run = [&](Vci& mine, Vci& theirs) {
      ASSERT_TRUE(own(mine));
      owners.fetch_add(1);
      while (owners.load() < 2) std::this_thread::yield();
      submit(theirs, [&](VciGuard&) { steps.fetch_add(1); });
      done.fetch_add(1);
      while (done.load() < 2) progress_all();
    };
    std::thread one(run, std::ref(vci), std::ref(other)), two(run, std::ref(other), std::ref(vci));
    one.join();
    two.join();
    EXPECT_EQ(steps.load(), 2);
  }
}

TEST_F(OwnedVci, AStepThatMakesProgressDoesNotServeFromInside) {
  ASSERT_TRUE(own(vci));
  std::atomic<int> depth{0}, deepest{0};
  std::vector<std::thread> submitters;
  for (int i = 0; i < 4; ++i)
    submitters.emplace_back([&] {
      submit(vci, [&](VciGuard& guard) {
        deepest.store(std::max(deepest.load(), depth.fetch_add(1) + 1));
        progress(guard);
        depth.fetch_sub(1);
      });
    });
  while (vci.moving.load() < 4) std::this_thread::yield();
  while (vci.moving.load()) progress_all();
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(deepest.load(), 1);
  give_back(vci);
}

TEST_F(OwnedVci, ASleepingOwnerIsWokenByWhoeverWantsIn) {
  for (const bool owns_both : {false, true}) {
    Driver owner(owns_both ? std::vector{&vci, &other} : std::vector{&vci}, true);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      owner.await_sleep();
      submit(vci, [](VciGuard&) {});
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, too_long);
  }
}

TEST_F(OwnedVci, ARingThatWokeAnotherThreadReachesTheOwner) {
  std::atomic<bool> done{false};
  std::thread first([&] { wait_until(&vci, [&] { return done.load(); }); });  // sleeps first, and is woken first
  while (!shm::header->doorbell.asleep.load()) std::this_thread::yield();
  {
    Driver owner({&vci}, true);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      owner.await_sleep();
      work.store(1, std::memory_order_release);
      vci.moving.fetch_add(1);
      shm::ring(shm::header->doorbell, 0, 1);
      while (work.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, too_long);
    done.store(true);
    wake_all_sleepers();
    first.join();
  }
}

TEST_F(OwnedVci, NoStepIsLostOrRunsBesideAnotherWhileOwnersChange) {
  constexpr int threads = 4, steps = 20000;
  std::int64_t sum = 0, tried = 0;  // plain: the VCI guards them
  std::atomic<int> left{threads};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int i = 1; i <= steps; ++i) {
        EXPECT_EQ(submit(vci, [&](VciGuard& guard) {
          if (t == 0) progress(guard);
          sum += i;
          return i;
        }), i);
        try_submit(vci, [&](VciGuard&) { ++tried; });
      }
      left.fetch_sub(1);
    });
  for (int t = 0; t < 2; ++t)
    running.emplace_back([&, t] {
      while (left.load()) {
        if (!own(vci)) {
          std::this_thread::yield();
          continue;
        }
        for (int i = 0; i < 50 * (t + 1) && left.load(); ++i) progress_all();
        give_back(vci);
      }
    });
  for (std::thread& thread : running) thread.join();
  EXPECT_GT(tried, 0);
  EXPECT_EQ(sum, threads * std::int64_t{steps} * (steps + 1) / 2);
  EXPECT_EQ(vci.moving.load(), 0u);
}

}  // namespace
}  // namespace heddle
