#include "sys/mistakes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "sys/params.hpp"

namespace {
long allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const block = std::malloc(bytes)) return block;
  std::abort();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace heddle::sys {
namespace {

// Parameters join a list for good, so a test's own are never destroyed.
Param& number(const char* name, const char* given, std::int64_t low, std::int64_t high, ParamType type = ParamType::integer) {
  setenv(name, given, 1);
  return *new Param(type, name, 7, {low, high}, "for a test");
}

Param& choice(const char* name, const char* given) {
  static constexpr const char* words[] = {"auto", "memfd", "file"};
  setenv(name, given, 1);
  return *new Param(name, words, 3, "for a test");
}

std::string nearest(std::string_view name) {
  const char* const found = nearest_variable(name.data(), name.size());
  return found ? found : "";
}

bool known(std::string_view name) { return is_known_variable(name.data(), name.size()); }

/// What `report_mistakes` writes to standard error.
std::string reported(bool names) {
  testing::internal::CaptureStderr();
  const long before = allocations;
  report_mistakes(names);
  EXPECT_EQ(allocations, before);  // before the library has begun to work, in every process
  return testing::internal::GetCapturedStderr();
}

TEST(Param, TakesANumberOnlyWithinItsRangeAndElseTheNearest) {
  EXPECT_EQ(number("HEDDLE_TEST_A", "12", 0, 64).value(), 12);
  Param& low = number("HEDDLE_TEST_B", "-3", 0, 64);
  EXPECT_EQ(low.value(), 0);
  EXPECT_EQ(low.mistake(), Param::Mistake::out_of_range);
  Param& high = number("HEDDLE_TEST_C", "65", 0, 64);
  EXPECT_EQ(high.value(), 64);
  EXPECT_EQ(high.mistake(), Param::Mistake::out_of_range);
  Param& huge = number("HEDDLE_TEST_D", "99999999999999999999", 0, 64);
  EXPECT_EQ(huge.value(), 64);
  EXPECT_EQ(huge.mistake(), Param::Mistake::out_of_range);
}

TEST(Param, KeepsItsDefaultWhenTheTextIsNoNumber) {
  constexpr const char* names[] = {"HEDDLE_TEST_E0", "HEDDLE_TEST_E1", "HEDDLE_TEST_E2", "HEDDLE_TEST_E3", "HEDDLE_TEST_E4", "HEDDLE_TEST_E5"};
  int n = 0;
  for (const char* text : {"x", "12x", "1 2", "1.5", "K", "12K"}) {
    Param& param = number(names[n++], text, 0, 64);
    EXPECT_EQ(param.value(), 7) << text;
    EXPECT_EQ(param.mistake(), Param::Mistake::not_parsed) << text;
    EXPECT_FALSE(param.is_set()) << text;
  }
}

TEST(Param, TakesSizesWithTheUsualSuffixes) {
  constexpr auto any = ParamRange::unlimited;
  EXPECT_EQ(number("HEDDLE_TEST_F", "64K", 0, any, ParamType::size).value(), 64 << 10);
  EXPECT_EQ(number("HEDDLE_TEST_G", "2MiB", 0, any, ParamType::size).value(), 2 << 20);
  EXPECT_EQ(number("HEDDLE_TEST_H", "1gb", 0, any, ParamType::size).value(), 1 << 30);
  EXPECT_EQ(number("HEDDLE_TEST_I", "9223372036854775807K", 0, 1 << 20, ParamType::size).value(), 1 << 20);
  EXPECT_EQ(number("HEDDLE_TEST_J", "12Q", 0, any, ParamType::size).mistake(), Param::Mistake::not_parsed);
  EXPECT_EQ(number("HEDDLE_TEST_K", "64Kx", 0, any, ParamType::size).mistake(), Param::Mistake::not_parsed);
}

TEST(Param, TakesAWordOfItsChoicesInAnyCaseAndNoOther) {
  Param& file = choice("HEDDLE_TEST_L", "File");
  EXPECT_EQ(file.value(), 2);
  EXPECT_STREQ(file.text(), "file");
  Param& wrong = choice("HEDDLE_TEST_M", "disk");
  EXPECT_EQ(wrong.value(), 0);
  EXPECT_STREQ(wrong.text(), "auto");
  EXPECT_EQ(wrong.mistake(), Param::Mistake::not_parsed);
  EXPECT_EQ(choice("HEDDLE_TEST_N", "").mistake(), Param::Mistake::none);
}

TEST(UnknownNames, AreGivenTheNameThatWasProbablyMeant) {
  for (const char* name : {"HEDDLE_SHM", "HEDDLE_VCIS", "HEDDLE_NET", "HEDDLE_SPIN_US", "HEDDLE_UNEXPECTED"})
    new Param(ParamType::integer, name, 0, {0, 1}, "for a test");
  EXPECT_EQ(nearest("HEDDLE_SMH"), "HEDDLE_SHM");
  EXPECT_EQ(nearest("HEDDLE_shm"), "HEDDLE_SHM");
  EXPECT_EQ(nearest("HEDDLE_VCI"), "HEDDLE_VCIS");
  EXPECT_EQ(nearest("HEDDLE_NUM_VCIS"), "HEDDLE_VCIS");
  EXPECT_EQ(nearest("HEDDLE_SPIN"), "HEDDLE_SPIN_US");
  EXPECT_EQ(nearest("HEDDLE_UNEXPCETED"), "HEDDLE_UNEXPECTED");
  EXPECT_EQ(nearest("HEDDLE_QIUET"), "HEDDLE_QUIET");
}

TEST(UnknownNames, ThatAreNearToNoneAreGivenNone) {
  for (const char* name : {"HEDDLE_FLAVOUR", "HEDDLE_WEST", "HEDDLE_X", "HEDDLE_", "HEDDLE_COLOUR_OF_THE_SKY"})
    EXPECT_EQ(nearest(name), "") << name;
  EXPECT_EQ(nearest("HEDDLE_" + std::string(100'000, 'A')), "");
}

TEST(KnownNames, AreThoseOfParametersOfOtherToolsAndOfModuleFiles) {
  for (const char* name : {"HEDDLE_QUIET", "HEDDLE_JOB", "HEDDLE_JOB_ID", "HEDDLE_CC", "HEDDLE_TEST_MPIEXEC", "HEDDLE_ROOT",
                           "HEDDLE_HOME", "HEDDLE_TEST_A"})
    EXPECT_TRUE(known(name)) << name;
  for (const char* name : {"HEDDLE_QUIETER", "HEDDLE_ROO", "HEDDLE_", "PATH"}) EXPECT_FALSE(known(name)) << name;
}

// The one test that reports, for that happens once in a process.
TEST(Mistakes, AreSaidOnceEachWithTheNameTheValueAndWhatIsAllowed) {
  number("HEDDLE_TEST_P", "-3", 0, 64);
  number("HEDDLE_TEST_Q", "12Q", 16 << 10, ParamRange::unlimited, ParamType::size);
  number("HEDDLE_TEST_R", "maybe", 0, 1, ParamType::boolean);
  choice("HEDDLE_TEST_S", "disk");
  setenv("HEDDLE_QIUET", "1", 1);
  for (int i = 0; i < 20; ++i) setenv(("HEDDLE_FLAVOUR" + std::to_string(i)).c_str(), "", 1);
  const std::string text = reported(true);
  for (const char* part :
       {"HEDDLE_TEST_P=-3 is out of range: it takes a whole number from 0 to 64. 0 is used",
        "HEDDLE_TEST_Q=12Q is not possible: it takes a size (a number, also with K, M or G) of at least 16K. The default 7 is used",
        "HEDDLE_TEST_R=maybe is not possible: it takes 1, yes, true, on, 0, no, false or off.",
        "HEDDLE_TEST_S=disk is not possible: it takes one of auto, memfd, file. The default auto is used",
        "HEDDLE_QIUET is not a variable of Heddle's and is ignored; did you mean HEDDLE_QUIET?", "so are 13 more"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  EXPECT_GT(allocations, 0);
  EXPECT_EQ(reported(true), "");
}

}  // namespace
}  // namespace heddle::sys
