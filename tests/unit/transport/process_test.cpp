// The table of processes: indices, names and routes of several jobs, while threads look and others add.
#include "transport/process.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace heddle {
namespace {

struct Table : ProcessTable {
  ~Table() { clear(); }
};

std::atomic<int> located{0};

ProcessPlace by_parity(std::uint32_t rank) noexcept {
  located.fetch_add(1, std::memory_order_relaxed);
  return {rank == 0 ? Route::self : rank % 2 ? Route::network : Route::node, rank % 4 != 1};
}
ProcessPlace far(std::uint32_t) noexcept { return {Route::network, false}; }

TEST(ProcessTable, indices_of_the_first_job_are_its_ranks) {
  Table table;
  EXPECT_EQ(table.add_job(7, 1000, by_parity), 0u);
  for (std::uint32_t rank : {0u, 1u, 511u, 512u, 999u}) {
    EXPECT_EQ(table.find({7, rank}), rank);
    EXPECT_EQ(table.name_of(rank), (ProcessName{7, rank}));
  }
}

TEST(ProcessTable, a_name_that_is_nobodys_is_refused) {
  Table table;
  EXPECT_EQ(table.find({7, 0}), ProcessTable::unknown);
  table.add_job(7, 3, by_parity);
  EXPECT_EQ(table.find({7, 2}), 2u);
  EXPECT_EQ(table.find({7, 3}), ProcessTable::unknown);
  EXPECT_EQ(table.find({7, ~0u}), ProcessTable::unknown);
  EXPECT_EQ(table.find({8, 0}), ProcessTable::unknown);
}

TEST(ProcessTable, every_process_of_every_job_has_an_index_and_a_name_of_its_own) {
  Table table;
  constexpr std::uint32_t jobs = 40, size = 700;
  std::vector<bool> taken;
  for (std::uint32_t job = 0; job < jobs; ++job) {
    const ProcessIndex first = table.add_job(job * 1000, size + job, far);
    ASSERT_NE(first, ProcessTable::unknown);
    EXPECT_EQ(table.add_job(job * 1000, size + job, far), first);  // known already
  }
  for (std::uint32_t job = 0; job < jobs; ++job)
    for (std::uint32_t rank = 0; rank < size + job; ++rank) {
      const ProcessIndex index = table.find({job * 1000, rank});
      ASSERT_EQ(table.name_of(index), (ProcessName{job * 1000, rank}));
      if (taken.size() <= index) taken.resize(index + 1);
      EXPECT_FALSE(taken[index]);
      taken[index] = true;
    }
}

TEST(ProcessTable, a_job_too_large_for_the_indices_that_are_left_is_refused_and_the_others_stay) {
  Table table;
  table.add_job(1, 10, by_parity);
  EXPECT_EQ(table.add_job(2, ~0u, far), ProcessTable::unknown);
  EXPECT_EQ(table.find({2, 0}), ProcessTable::unknown);
  EXPECT_EQ(table.find({1, 9}), 9u);
}

TEST(ProcessTable, the_route_is_asked_for_once) {
  Table table;
  table.add_job(1, 600, by_parity);
  located = 0;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(table.route(0), Route::self);
    EXPECT_EQ(table.route(1), Route::network);
    EXPECT_EQ(table.route(2), Route::node);
    EXPECT_FALSE(table.is_neighbor(1));
    EXPECT_TRUE(table.is_neighbor(3));  // on this node, but reached by the network
    EXPECT_EQ(table.route(3), Route::network);
  }
  EXPECT_EQ(located, 512);  // the others of the job: nobody has asked
  EXPECT_EQ(table.route(599), Route::network);
  EXPECT_EQ(located, 600);
}

TEST(ProcessTable, peers_are_found_once_they_are_set_and_visited) {
  struct Memory : NodePeer {} memory;
  struct Network : NetworkPeer {} network;
  Table table;
  table.add_job(1, 2000, by_parity);
  EXPECT_EQ(table.node_peer(1500), nullptr);
  EXPECT_EQ(table.network_peer(1501), nullptr);
  table.set(1500, memory);
  table.set(1501, network);
  EXPECT_EQ(table.node_peer(1500), &memory);
  EXPECT_EQ(table.node_peer(1501), nullptr);
  EXPECT_EQ(table.network_peer(1501), &network);
  int seen = 0;
  table.for_each_node_peer([&](NodePeer& peer) { seen += &peer == &memory; });
  table.for_each_network_peer([&](NetworkPeer& peer) { seen += &peer == &network; });
  EXPECT_EQ(seen, 2);
  table.clear();
  EXPECT_EQ(table.find({1, 0}), ProcessTable::unknown);
  EXPECT_EQ(table.add_job(5, 10, by_parity), 0u);  // usable again
}

// Growth replaces the directory under the readers: whatever a reader was told of before stays what it was.
TEST(ProcessTable, readers_see_what_they_saw_while_jobs_and_peers_are_added) {
  static NodePeer peers[1000];
  Table table;
  table.add_job(0, 1000, by_parity);
  std::atomic<std::uint32_t> known{1};  // jobs that are there
  std::atomic<bool> stop{false};
  std::atomic<long> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&, t] {
      for (std::uint32_t n = static_cast<std::uint32_t>(t); !stop.load(std::memory_order_relaxed); n += 7) {
        const ProcessName name{n % known.load(std::memory_order_acquire), n % 600};
        const ProcessIndex index = table.find(name);
        bool right = index != ProcessTable::unknown && table.name_of(index) == name;
        right = right && table.route(index) == (name.job ? Route::network : by_parity(name.rank).route);
        NodePeer* peer = right && !name.job ? table.node_peer(index) : nullptr;
        if (!right || (peer && peer != &peers[name.rank])) wrong.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (std::uint32_t job = 1; job < 300; ++job) {
    table.set(job, peers[job]);
    ASSERT_NE(table.add_job(job, 600 + job, far), ProcessTable::unknown);
    known.store(job + 1, std::memory_order_release);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  for (std::uint32_t job = 1; job < 300; ++job) EXPECT_EQ(table.node_peer(job), &peers[job]);
}

}  // namespace
}  // namespace heddle
