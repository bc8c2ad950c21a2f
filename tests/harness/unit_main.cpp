// The `main` of an executable that holds the GoogleTests of a folder (programs.cmake). Called by the name of one of the folder's
// sources it runs the tests of that source, else all of them; --gtest_filter chooses otherwise.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

// A filter for the tests that stand in `file`; empty where there is none.
std::string tests_of(std::string_view file) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::string_view(test.file()).ends_with(file)) filter += std::string(":") + suite.name() + "." + test.name();
    }
  }
  return filter.empty() ? filter : filter.substr(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = argc > 0 ? argv[0] : "";
  name = '/' + name.substr(name.rfind('/') + 1) + ".cpp";
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(filter) == "*") {
    if (const std::string filter = tests_of(name); !filter.empty()) GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
