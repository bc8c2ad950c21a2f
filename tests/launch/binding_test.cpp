#include "binding.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::mpiexec {
namespace {

using sys::CoreSet;

CoreSet cores(std::initializer_list<int> list) {
  CoreSet set;
  for (const int core : list) set.add(core);
  return set;
}

std::vector<CoreSet> singles(int count) {
  std::vector<CoreSet> all;
  for (int core = 0; core < count; ++core) all.push_back(cores({core}));
  return all;
}

/// What /sys says about a machine of two packages with two cores of two threads each, numbered the usual way: all
/// cores' first threads come first.
class TwoPackages : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("heddle-cpus-" + std::to_string(getpid()));
    for (int cpu = 0; cpu < 8; ++cpu) {
      const auto topology = folder / ("cpu" + std::to_string(cpu)) / "topology";
      std::filesystem::create_directories(topology);
      std::ofstream(topology / "physical_package_id") << cpu % 2 << '\n';
      std::ofstream(topology / "core_id") << cpu / 2 % 2 << '\n';
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST_F(TwoPackages, CoresAreListedPackageByPackageWithTheirThreads) {
  EXPECT_EQ(physical_cores(cores({0, 1, 2, 3, 4, 5, 6, 7}), folder),
            (std::vector<CoreSet>{cores({0, 4}), cores({2, 6}), cores({1, 5}), cores({3, 7})}));
}

TEST_F(TwoPackages, OnlyOwnCoresAreListed) {
  EXPECT_EQ(physical_cores(cores({1, 4, 7}), folder), (std::vector<CoreSet>{cores({4}), cores({1}), cores({7})}));
}

TEST_F(TwoPackages, TwoRanksGetAPackageEach) {
  const auto physical = physical_cores(cores({0, 1, 2, 3, 4, 5, 6, 7}), folder);
  EXPECT_EQ(assign_cores(Bind::automatic, 2, 8, physical),
            (std::vector<CoreSet>{cores({0, 2, 4, 6}), cores({1, 3, 5, 7})}));
}

TEST(PhysicalCores, EveryThreadIsACoreWhereTheKernelDoesNotTell) {
  EXPECT_EQ(physical_cores(cores({3, 9}), "/no/such/folder"), (std::vector<CoreSet>{cores({3}), cores({9})}));
}

TEST(AssignCores, SplitsEvenlyAndCompletely) {
  for (int count = 1; count <= 40; ++count)
    for (int ranks = 1; ranks <= count; ++ranks) {
      const auto assigned = assign_cores(Bind::even, ranks, count, singles(count));
      ASSERT_EQ(assigned.size(), static_cast<std::size_t>(ranks));
      CoreSet all;
      int total = 0;
      for (const CoreSet& mine : assigned) {
        EXPECT_GE(mine.count(), count / ranks);
        EXPECT_LE(mine.count(), count / ranks + 1);
        total += mine.count();
        all = all | mine;
      }
      EXPECT_EQ(total, count);
      EXPECT_EQ(all.count(), count);
    }
}

TEST(AssignCores, DividesThreadsOnlyWhenCoresDoNotSuffice) {
  const std::vector<CoreSet> physical{cores({0, 2}), cores({1, 3})};
  EXPECT_EQ(assign_cores(Bind::even, 2, 4, physical), physical);
  EXPECT_EQ(assign_cores(Bind::even, 4, 4, physical),
            (std::vector<CoreSet>{cores({0}), cores({2}), cores({1}), cores({3})}));
}

TEST(AssignCores, CoreGivesOneCoreAndLeavesTheRest) {
  EXPECT_EQ(assign_cores(Bind::core, 2, 8, singles(8)), (std::vector<CoreSet>{cores({0}), cores({1})}));
}

TEST(AssignCores, BindsNobodyWhenThereAreMoreRanksThanCoresOrQuota) {
  EXPECT_TRUE(assign_cores(Bind::automatic, 9, 8, singles(8)).empty());
  EXPECT_TRUE(assign_cores(Bind::even, 3, 2, singles(8)).empty());
  EXPECT_TRUE(assign_cores(Bind::none, 1, 8, singles(8)).empty());
}

}  // namespace
}  // namespace heddle::mpiexec
