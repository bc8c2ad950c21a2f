#include "transport/ofi/first_look.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "transport/ofi/library.hpp"
#include "transport/ofi/provider.hpp"

namespace heddle::ofi {
namespace {

/// Reads that this process has asked the kernel for so far; -1 where the kernel does not say.
long reads_so_far() {
  long reads = -1;
  if (std::FILE* io = std::fopen("/proc/self/io", "r")) {
    char line[128];
    while (std::fgets(line, sizeof line, io)) std::sscanf(line, "syscr: %ld", &reads);
    std::fclose(io);
  }
  return reads;
}

TEST(FirstLook, LoadingLibfabricDoesNotReadTheSymbolsOfTheKernel) {
  if (access("/sys/class/infiniband", F_OK) == 0) GTEST_SKIP() << "there is InfiniBand, where it has to";
  const long before = reads_so_far();
  if (before < 0) GTEST_SKIP() << "no /proc/self/io";
  std::string problem;
  const Library* library = load(problem);
  if (!library) GTEST_SKIP() << problem;
  wire::Choice choice;
  fi_info* info = nullptr;
  const bool chosen = choose(true, choice, info, nullptr, problem);
  EXPECT_LT(reads_so_far() - before, 2000);  // 10,000 for one look at /proc/kallsyms
  if (chosen) library->freeinfo(info);
}

TEST(FirstLook, OfALibraryThatOpensNothingIsHarmless) { const FirstLook look(nullptr); }

}  // namespace
}  // namespace heddle::ofi
