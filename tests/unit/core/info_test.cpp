#include "core/info.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "sys/error.hpp"

namespace heddle {
namespace {

class InfoTest : public testing::Test {
 protected:
  Info* info = new_info();
  void TearDown() override { release_info(info); }
};

TEST_F(InfoTest, KeysKeepTheOrderInWhichTheyWereFirstSet) {
  for (const char* key : {"zeta", "alpha", "mid", "alpha"}) ASSERT_EQ(info_set(*info, key, key), MPI_SUCCESS);
  ASSERT_EQ(info_delete(*info, "zeta"), MPI_SUCCESS);
  ASSERT_EQ(info_set(*info, "zeta", "again"), MPI_SUCCESS);
  const char* wanted[] = {"alpha", "mid", "zeta"};
  ASSERT_EQ(info_count(*info), 3);
  for (int n = 0; n < 3; ++n) {
    char key[MPI_MAX_INFO_KEY];
    ASSERT_EQ(info_get_nth_key(*info, n, key), MPI_SUCCESS);
    EXPECT_STREQ(key, wanted[n]);
  }
  char key[MPI_MAX_INFO_KEY];
  EXPECT_EQ(error_class(info_get_nth_key(*info, 3, key)), MPI_ERR_ARG);
}

TEST_F(InfoTest, GetStringTellsTheLengthItNeedsAndCutsToTheBuffer) {
  ASSERT_EQ(info_set(*info, "k", "value"), MPI_SUCCESS);
  int length = 0, flag = 0;
  char buffer[8] = "xxxxxxx";
  ASSERT_EQ(info_get_string(*info, "k", &length, buffer, &flag), MPI_SUCCESS);
  EXPECT_TRUE(flag);
  EXPECT_EQ(length, 6);
  EXPECT_STREQ(buffer, "xxxxxxx") << "length 0 asks only";
  length = 3;
  ASSERT_EQ(info_get_string(*info, "k", &length, buffer, &flag), MPI_SUCCESS);
  EXPECT_STREQ(buffer, "va");
  EXPECT_EQ(length, 6);
  length = 8;
  ASSERT_EQ(info_get_string(*info, "missing", &length, buffer, &flag), MPI_SUCCESS);
  EXPECT_FALSE(flag);
  EXPECT_EQ(length, 8);
  EXPECT_STREQ(buffer, "va");
}

TEST_F(InfoTest, OldGetCountsCharactersWithoutTheTerminator) {
  ASSERT_EQ(info_set(*info, "k", "value"), MPI_SUCCESS);
  char buffer[8] = "xxxxxxx";
  int flag = 0, length = 0;
  ASSERT_EQ(info_get(*info, "k", 3, buffer, &flag), MPI_SUCCESS);
  EXPECT_STREQ(buffer, "val");
  ASSERT_EQ(info_get_value_length(*info, "k", &length, &flag), MPI_SUCCESS);
  EXPECT_EQ(length, 5);
}

TEST_F(InfoTest, LongestKeyAndValueAreTakenAndLongerOnesRefused) {
  const std::string key(MPI_MAX_INFO_KEY - 1, 'k'), value(MPI_MAX_INFO_VAL - 1, 'v');
  EXPECT_EQ(info_set(*info, key.c_str(), value.c_str()), MPI_SUCCESS);
  EXPECT_EQ(error_class(info_set(*info, (key + "k").c_str(), "v")), MPI_ERR_INFO_KEY);
  EXPECT_EQ(error_class(info_set(*info, "k", (value + "v").c_str())), MPI_ERR_INFO_VALUE);
  EXPECT_EQ(error_class(info_set(*info, "", "v")), MPI_ERR_INFO_KEY);
  EXPECT_EQ(error_class(info_set(*info, "k", nullptr)), MPI_ERR_INFO_VALUE);
  int length = -1, flag = 0;
  EXPECT_EQ(info_set(*info, "k", ""), MPI_SUCCESS);  // the standard bounds values from above only
  ASSERT_EQ(info_get_value_length(*info, "k", &length, &flag), MPI_SUCCESS);
  EXPECT_TRUE(flag && length == 0);
  EXPECT_EQ(error_class(info_delete(*info, "absent")), MPI_ERR_INFO_NOKEY);
  char longest[MPI_MAX_INFO_KEY];
  ASSERT_EQ(info_get_nth_key(*info, 0, longest), MPI_SUCCESS);
  EXPECT_EQ(longest, key);
}

TEST_F(InfoTest, EnvironmentCannotBeChangedButItsCopyCan) {
  EXPECT_EQ(error_class(info_set(info_env, "k", "v")), MPI_ERR_INFO);
  EXPECT_EQ(error_class(info_delete(info_env, "k")), MPI_ERR_INFO);
  Info* copy = clone_info(info_env);
  EXPECT_EQ(info_set(*copy, "k", "v"), MPI_SUCCESS);
  release_info(copy);
}

TEST_F(InfoTest, EnvironmentOfGivenArgumentsNamesThem) {
  char program[] = "prog", one[] = "one", two[] = "two";
  char* argv[] = {program, one, two, nullptr};
  fill_environment(*info, 3, argv);
  std::string value;
  ASSERT_TRUE(info->find("command", &value));
  EXPECT_EQ(value, "prog");
  ASSERT_TRUE(info->find("argv", &value));
  EXPECT_EQ(value, "one two");
  for (const char* key : {"wdir", "host", "arch", "thread_level", "mpi_memory_alloc_kinds"})
    EXPECT_TRUE(info->find(key, nullptr)) << key;
}

TEST_F(InfoTest, ThreadsMaySetAndReadOneObject) {
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) info->put("k" + std::to_string(i % 50), std::to_string(i));
  });
  for (int i = 0; i < 2000; ++i) {
    std::string value;
    if (info->find("k" + std::to_string(i % 50), &value)) {
      EXPECT_EQ(std::stoi(value) % 50, i % 50);
    }
  }
  writer.join();
  EXPECT_EQ(info_count(*info), 50);
}

}  // namespace
}  // namespace heddle
