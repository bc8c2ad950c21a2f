#include "sys/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::sys {
namespace {

CoreSet cores(std::initializer_list<int> list) {
  CoreSet set;
  for (const int core : list) set.add(core);
  return set;
}

TEST(CoreSet, HoldsCoresBeyondAnyFixedSize) {
  const CoreSet set = cores({0, 63, 64, 5000});
  EXPECT_EQ(set.list(), (std::vector<int>{0, 63, 64, 5000}));
  EXPECT_EQ(set.count(), 4);
  EXPECT_TRUE(set.contains(5000));
  EXPECT_FALSE(set.contains(4999) || set.contains(-1) || set.contains(1 << 30));
}

TEST(CoreSet, PrintsRanges) {
  EXPECT_EQ(cores({0, 1, 2, 5, 7, 8}).text(), "0-2,5,7-8");
  EXPECT_EQ(CoreSet().text(), "");
}

TEST(CoreSet, IntersectsAndUnitesSetsOfDifferentSize) {
  EXPECT_EQ(cores({1, 2, 200}) & cores({2, 3}), cores({2}));
  EXPECT_EQ(cores({1, 200}) | cores({2}), cores({1, 2, 200}));
  CoreSet set = cores({1, 2});
  set.remove(2);
  set.remove(900);
  EXPECT_EQ(set, cores({1}));
}

TEST(Affinity, IsWhatTheKernelSays) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const CoreSet mine = affinity();
  EXPECT_EQ(mine.count(), CPU_COUNT(&mask));
  for (const int core : mine.list()) EXPECT_TRUE(CPU_ISSET(core, &mask));
}

/// A control-group file system in a folder.
class Quota : public ::testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::temp_directory_path() / ("heddle-cgroup-" + std::to_string(getpid()));
    std::filesystem::create_directories(root);
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  double quota(const std::string& groups) {
    write("groups", groups);
    return cpu_quota(root / "groups", root);
  }
  std::filesystem::path root;
};

TEST_F(Quota, IsNoneWithoutControlGroups) {
  EXPECT_EQ(cpu_quota("/no/such/file", "/no/such/folder"), 0);
  EXPECT_EQ(quota("0::/a/b\n"), 0);
}

TEST_F(Quota, IsTheLeastOfAllGroupsAboveInVersion2) {
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 2.5);
  write("a/b/cpu.max", "100000 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1);
}

TEST_F(Quota, IsReadFromTheCpuControllerInVersion1) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota("4:memory:/x\n3:cpu,cpuacct:/job/task\n0::/\n"), 3);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota("3:cpu,cpuacct:/job\n"), 0);
}

TEST_F(Quota, OfAContainerIsFoundAtTheMountPoint) {
  write("cpu/cpu.cfs_quota_us", "150000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota("1:cpu:/docker/0123abcd\n"), 1.5);
  EXPECT_DOUBLE_EQ(quota("1:cpu:/../../outside\n"), 1.5);
}

TEST_F(Quota, SurvivesNonsense) {
  write("cpu.max", "lots\n");
  for (const char* groups : {"", "\n\n", ":", "::", "0::", "x", "1:cpu", "1:cpu:"})
    EXPECT_EQ(quota(groups), 0) << groups;
}

TEST(UsableCores, AreAtLeastOneAndAtMostTheMask) {
  EXPECT_EQ(usable_cores(cores({0, 1, 2, 3}), 0), 4);
  EXPECT_EQ(usable_cores(cores({0, 1, 2, 3}), 1.2), 2);
  EXPECT_EQ(usable_cores(cores({0, 1}), 8), 2);
  EXPECT_EQ(usable_cores(CoreSet(), 0), 1);
}

TEST(ShareOfNode, TrustsTheLauncher) {
  const Topology bound{cores({3}), 0, 1};
  EXPECT_FALSE(share_of_node(bound, 8, 4, 4).oversubscribed);
  EXPECT_TRUE(share_of_node(bound, 8, 4, 3).oversubscribed);
}

TEST(ShareOfNode, TakesBoundRanksForBoundToDifferentCores) {
  const Topology bound{cores({0, 1}), 0, 2};
  const NodeShare share = share_of_node(bound, 8, 4, 0);
  EXPECT_EQ(share.node_cores, 8);
  EXPECT_EQ(share.cores_per_rank, 2);
  EXPECT_FALSE(share.oversubscribed);
}

TEST(ShareOfNode, CountsRanksAgainstCoresWhenNobodyIsBound) {
  const Topology free{cores({0, 1}), 0, 2};
  EXPECT_FALSE(share_of_node(free, 2, 2, 0).oversubscribed);
  EXPECT_TRUE(share_of_node(free, 2, 3, 0).oversubscribed);
  EXPECT_EQ(share_of_node(free, 2, 3, 0).cores_per_rank, 1);
}

TEST(ShareOfNode, RespectsAQuotaBelowTheMask) {
  const Topology container{cores({0, 1, 2, 3, 4, 5, 6, 7}), 2, 2};
  EXPECT_TRUE(share_of_node(container, 8, 3, 0).oversubscribed);
}

}  // namespace
}  // namespace heddle::sys
