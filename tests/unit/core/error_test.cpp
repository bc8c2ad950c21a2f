#include "sys/error.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace heddle {
namespace {

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  const int length = error_text(code, text);
  EXPECT_EQ(static_cast<std::size_t>(length), std::strlen(text));
  return text;
}

TEST(Error, CodesCarryTheirClassAndText) {
  const int code = error(MPI_ERR_RANK, "rank %d of %s", 7, "here");
  EXPECT_EQ(error_class(code), MPI_ERR_RANK);
  EXPECT_EQ(text_of(code), "MPI_ERR_RANK: rank 7 of here");
  EXPECT_TRUE(is_error_code(code));
}

TEST(Error, AnOldCodeFallsBackToTheTextOfItsClass) {
  const int code = error(MPI_ERR_TAG, "precious detail");
  for (int i = 0; i < 1000; ++i) error(MPI_ERR_ARG, "noise");
  EXPECT_EQ(error_class(code), MPI_ERR_TAG);
  EXPECT_EQ(text_of(code), "MPI_ERR_TAG: invalid tag argument");
}

TEST(Error, LongTextsAreCutToTheStandardsLimit) {
  const std::string word(2000, 'x');
  EXPECT_EQ(text_of(error(MPI_ERR_ARG, "%s", word.c_str())).size(), MPI_MAX_ERROR_STRING - 1u);
}

TEST(Error, EveryPredefinedClassHasNameAndText) {
  for (int value = 0; value <= MPI_ERR_ABI; ++value) {
    EXPECT_NE(error_class_name(value), nullptr) << value;
    EXPECT_TRUE(is_error_code(value)) << value;
    EXPECT_EQ(error_class(value), value);
  }
  EXPECT_FALSE(is_error_code(-3));
  EXPECT_FALSE(is_error_code(MPI_ERR_LASTCODE + 77777));
}

TEST(Error, AddedClassesAndCodesLiveUntilRemoved) {
  int own_class = 0, code = 0, other = 0;
  ASSERT_EQ(add_error_class(&own_class), MPI_SUCCESS);
  EXPECT_GT(own_class, MPI_ERR_LASTCODE);
  ASSERT_EQ(add_error_code(own_class, &code), MPI_SUCCESS);
  ASSERT_EQ(add_error_code(MPI_ERR_OTHER, &other), MPI_SUCCESS);
  EXPECT_EQ(last_used_code(), other);
  EXPECT_EQ(error_class(code), own_class);
  EXPECT_EQ(error_class(other), MPI_ERR_OTHER);
  EXPECT_EQ(error_class(own_class), own_class);
  EXPECT_EQ(text_of(code), "") << "no text was given yet";
  ASSERT_EQ(add_error_string(code, "out of cheese"), MPI_SUCCESS);
  EXPECT_EQ(text_of(code), "out of cheese");
  EXPECT_EQ(error_class(add_error_string(MPI_ERR_RANK, "no")), MPI_ERR_ARG);
  EXPECT_EQ(error_class(add_error_code(code, &other)), MPI_ERR_ARG) << "a code is no class";

  EXPECT_EQ(error_class(remove_error_class(own_class)), MPI_ERR_ARG) << "it still has a code";
  EXPECT_EQ(error_class(remove_error_class(code)), MPI_ERR_ARG);
  EXPECT_EQ(error_class(remove_error_code(own_class)), MPI_ERR_ARG);
  EXPECT_EQ(error_class(remove_error_code(code)), MPI_ERR_ARG) << "it still has a text";
  EXPECT_EQ(remove_error_string(code), MPI_SUCCESS);
  EXPECT_EQ(error_class(remove_error_string(code)), MPI_ERR_ARG);
  EXPECT_EQ(text_of(code), "");
  EXPECT_EQ(remove_error_code(code), MPI_SUCCESS);
  EXPECT_EQ(remove_error_class(own_class), MPI_SUCCESS);
  EXPECT_FALSE(is_error_code(code));
  EXPECT_EQ(error_class(remove_error_code(code)), MPI_ERR_ARG);
}

TEST(Error, ThreadsMayMakeErrorsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const int code = error(MPI_ERR_ARG, "thread %d step %d", t, i);
        EXPECT_EQ(error_class(code), MPI_ERR_ARG);
        int added = 0;
        EXPECT_EQ(add_error_code(MPI_ERR_ARG, &added), MPI_SUCCESS);
        EXPECT_EQ(remove_error_code(added), MPI_SUCCESS);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace heddle
