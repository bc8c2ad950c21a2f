#include "vci/server.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/runtime.hpp"
#include "transport/shm/node.hpp"
#include "vci/completion.hpp"
#include "vci/vci.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

/// Whether senders to this process come to have to ring, or not, with `look` called meanwhile. Bounded against hangs only.
template <typename Look>
bool comes_to_be(bool rung, Look&& look) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((shm::header->doorbell.asleep.load() != 0) != rung) {
    if (std::chrono::steady_clock::now() > end) return false;
    look();
  }
  return true;
}

/// A process of its own, without a launcher.
class ServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { MPI_Init(nullptr, nullptr); }
  static void TearDownTestSuite() { MPI_Finalize(); }
};

TEST_F(ServerTest, VcisAreLockedFromTheFirstUseOn) {
  EXPECT_EQ(vci_of_lane(Lane{}).mode, VciMode::exclusive);
  ASSERT_TRUE(acquire_server());
  EXPECT_EQ(vci_of_lane(Lane{}).mode, VciMode::locked);
  EXPECT_TRUE(runtime.threads.load());
  release_server();
}

TEST_F(ServerTest, SendersRingForItOnlyWhileNoThreadOfTheProgramMakesProgress) {
  ASSERT_TRUE(acquire_server());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(comes_to_be(true, [] { std::this_thread::yield(); }));
    // It notices when it is woken, as the first message would.
    ASSERT_TRUE(comes_to_be(false, [] {
      progress_all();
      shm::ring(shm::header->doorbell, 0, 1);
    })) << "it stays announced beside a thread that makes progress";
  }
  release_server();
  EXPECT_EQ(shm::header->doorbell.asleep.load(), 0u);
}

TEST_F(ServerTest, AStepInOneVciCountsToo) {
  ASSERT_TRUE(acquire_server());
  ASSERT_TRUE(comes_to_be(true, [] { std::this_thread::yield(); }));
  ASSERT_TRUE(comes_to_be(false, [] {
    submit(vci_of_lane(Lane{}), [](VciGuard& guard) { progress(guard); });
    shm::ring(shm::header->doorbell, 0, 1);
  }));
  release_server();
}

TEST_F(ServerTest, UsesAreCounted) {
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(acquire_server());
    ASSERT_TRUE(acquire_server());
    release_server();
    if (round % 50 == 0) {
      ASSERT_TRUE(comes_to_be(true, [] { std::this_thread::yield(); }));
    }
    release_server();
    EXPECT_EQ(shm::header->doorbell.asleep.load(), 0u);
    EXPECT_EQ(shm::header->doorbell.server.load(), shm::ServerSleep::no);
  }
}

// A continuation that may call functions of the program.
struct OfProgram : Continuation {
  std::thread::id ran{};
  std::atomic<bool> done{false};
};

TEST_F(ServerTest, WhatMayCallTheProgramIsLeftToItsThreadsAndWakesThem) {
  ASSERT_TRUE(acquire_server());
  Vci& vci = vci_of_lane(Lane{});
  for (int round = 0; round < 20; ++round) {
    OfProgram marked[2], plain;
    for (OfProgram* one : {&marked[0], &plain, &marked[1]}) {
      one->run = [](Continuation& self, Request& request, VciGuard& guard) {
        auto& mine = static_cast<OfProgram&>(self);
        mine.ran = std::this_thread::get_id();
        free_request(&request, guard);
        mine.done.store(true);
      };
      one->calls_program = one != &plain;
    }
    submit(vci, [&](VciGuard& guard) {
      for (OfProgram* one : {&marked[0], &plain, &marked[1]}) {
        Request* request = new_request(vci, Request::Type::send, nullptr);
        request->then(*one);
        complete(*request, guard);
      }
    });
    // This thread stays away until the server has run what it may.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!plain.done.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_TRUE(plain.done.load());
    EXPECT_FALSE(marked[0].done.load());
    EXPECT_NE(plain.ran, std::this_thread::get_id());
    wait_until(&vci, [&] { return marked[1].done.load(); });
    EXPECT_TRUE(marked[0].done.load());
    for (const OfProgram& one : marked) EXPECT_EQ(one.ran, std::this_thread::get_id());
  }
  release_server();
}

}  // namespace
}  // namespace heddle
