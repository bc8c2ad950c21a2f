#include "sys/arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace heddle::sys {
namespace {

/// An arena over a memfd of its own. Not unmapped: an arena lives as long as its process.
struct Range {
  explicit Range(std::size_t bytes, std::size_t granule = 64, std::size_t keep = 1 << 20, bool commit = false) {
    fd = memfd_create("arena_test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(offset + bytes)), 0);
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, offset);
    EXPECT_NE(base, MAP_FAILED);
    Arena::Settings settings;
    settings.base = static_cast<std::byte*>(base);
    settings.bytes = bytes;
    settings.fd = fd;
    settings.file_offset = offset;
    settings.granule = granule;
    settings.keep = keep;
    settings.commit = commit;
    arena.start(settings);
  }
  std::size_t pages_in_bytes() const {
    struct stat info;
    fstat(fd, &info);
    return static_cast<std::size_t>(info.st_blocks) * 512;
  }
  static constexpr off_t offset = 1 << 20;  // the range is not at the file's beginning
  int fd = -1;
  Arena arena;
};

void write_mark(void* block, std::size_t bytes, unsigned mark) { std::memset(block, static_cast<int>(mark & 255), bytes); }
bool has_mark(const void* block, std::size_t bytes, unsigned mark) {
  const auto* p = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i)
    if (p[i] != (mark & 255)) return false;
  return true;
}

void random_calls_agree_with_a_model(std::size_t granule, std::size_t largest, bool commit) {
  Range range(32 << 20, granule, 2 << 20, commit);
  Arena& arena = range.arena;
  std::mt19937 random(12345);
  struct Block {
    std::size_t bytes;
    unsigned mark;
  };
  std::map<std::byte*, Block> model;
  std::size_t refused = 0;
  for (unsigned step = 0; step < 6000; ++step) {
    const bool grow = model.empty() || random() % 100 < (step / 1500 % 2 ? 40U : 60U);
    if (grow) {
      const std::size_t bytes = random() % 8 ? random() % (largest / 16) : random() % largest;
      const std::size_t alignment = std::size_t{1} << (random() % 15);
      bool zeroed = false;
      auto* block = static_cast<std::byte*>(arena.allocate(bytes, alignment, &zeroed));
      if (!block) {
        ++refused;
        continue;
      }
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % std::max(alignment, granule), 0U);
      ASSERT_GE(arena.size_of(block), bytes);
      const auto after = model.lower_bound(block);
      if (after != model.end()) {
        ASSERT_LE(block + bytes, after->first);
      }
      if (after != model.begin()) {
        ASSERT_GE(block, std::prev(after)->first + std::prev(after)->second.bytes);
      }
      if (zeroed) {
        ASSERT_TRUE(has_mark(block, arena.size_of(block), 0)) << "step " << step;
      }
      write_mark(block, bytes, step);
      model[block] = {bytes, step};
    } else {
      auto it = std::next(model.begin(), static_cast<long>(random() % model.size()));
      ASSERT_TRUE(has_mark(it->first, it->second.bytes, it->second.mark)) << "step " << step;
      if (random() % 4 == 0) {
        const std::size_t bytes = random() % (2 * it->second.bytes + 1);
        if (arena.resize(it->first, bytes)) {
          ASSERT_TRUE(has_mark(it->first, std::min(bytes, it->second.bytes), it->second.mark));
          write_mark(it->first, bytes, it->second.mark);
          it->second.bytes = bytes;
        }
      } else {
        ASSERT_EQ(arena.release(it->first), Arena::Release::done);
        model.erase(it);
      }
    }
    if (step % 50 == 0) {
      ASSERT_TRUE(arena.is_consistent()) << "step " << step;
    }
  }
  EXPECT_GT(refused, 0U) << "the range was never full: this test proves less than it says";
  for (const auto& [block, what] : model) {
    EXPECT_TRUE(has_mark(block, what.bytes, what.mark));
    EXPECT_EQ(arena.release(block), Arena::Release::done);
  }
  EXPECT_TRUE(arena.is_consistent());
  EXPECT_EQ(arena.bytes_in_use(), 0U);
}

TEST(Arena, RandomCallsAgreeWithAModel) { random_calls_agree_with_a_model(64, 2 << 20, false); }
TEST(Arena, RandomCallsOnWholePagesAgreeWithAModel) { random_calls_agree_with_a_model(4096, 4 << 20, false); }
TEST(Arena, RandomCallsWithCommittedPagesAgreeWithAModel) { random_calls_agree_with_a_model(64, 2 << 20, true); }

TEST(Arena, FreedNeighboursJoinUntilTheWholeRangeIsOneBlockAgain) {
  constexpr std::size_t bytes = 1 << 20;
  Range range(bytes);
  std::vector<void*> blocks;
  while (void* block = range.arena.allocate(1000, 64)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), bytes / 1024);
  EXPECT_EQ(range.arena.allocate(1, 1), nullptr);
  for (std::size_t i = 0; i < blocks.size(); i += 2) EXPECT_EQ(range.arena.release(blocks[i]), Arena::Release::done);
  EXPECT_EQ(range.arena.allocate(1025, 64), nullptr) << "no two neighbours are free";
  for (std::size_t i = 1; i < blocks.size(); i += 2) EXPECT_EQ(range.arena.release(blocks[i]), Arena::Release::done);
  EXPECT_NE(range.arena.allocate(bytes, 64), nullptr);
  EXPECT_TRUE(range.arena.is_consistent());
}

TEST(Arena, BlocksWithAndWithoutPagesJoinWhenNothingElseFits) {
  constexpr std::size_t bytes = 8 << 20;
  Range range(bytes, 4096, bytes);
  void* first = range.arena.allocate(bytes / 2, 1);
  write_mark(first, bytes / 2, 1);
  ASSERT_EQ(range.arena.release(first), Arena::Release::done);
  bool zeroed = false;
  void* all = range.arena.allocate(bytes, 1, &zeroed);
  ASSERT_NE(all, nullptr);
  EXPECT_TRUE(zeroed);
  EXPECT_TRUE(has_mark(all, bytes, 0));
}

TEST(Arena, PagesOfFreedBlocksGoBackToTheSystemBeyondWhatIsKept) {
  Range range(64 << 20, 64, 4 << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 32; ++i) {
    blocks.push_back(range.arena.allocate(1 << 20, 4096));
    write_mark(blocks.back(), 1 << 20, 7);
  }
  EXPECT_GE(range.pages_in_bytes(), std::size_t{32} << 20);
  for (void* block : blocks) EXPECT_EQ(range.arena.release(block), Arena::Release::done);
  EXPECT_LE(range.arena.bytes_kept(), std::size_t{4} << 20);
  EXPECT_LE(range.pages_in_bytes(), std::size_t{4} << 20);
}

TEST(Arena, CommittedBlocksHaveTheirPagesBeforeTheyAreTouched) {
  Range range(64 << 20, 64, 4 << 20, true);
  ASSERT_NE(range.arena.allocate(8 << 20, 64), nullptr);
  EXPECT_GE(range.pages_in_bytes(), std::size_t{8} << 20);
}

TEST(Arena, TellsForeignFreedAndInteriorPointersApart) {
  Range range(1 << 20);
  int foreign = 0;
  auto* block = static_cast<std::byte*>(range.arena.allocate(4096, 64));
  EXPECT_EQ(range.arena.release(&foreign), Arena::Release::foreign);
  EXPECT_EQ(range.arena.release(block + 64), Arena::Release::inside);
  EXPECT_EQ(range.arena.release(block), Arena::Release::done);
  EXPECT_EQ(range.arena.release(block), Arena::Release::freed_before);
  EXPECT_EQ(range.arena.release(block + 64), Arena::Release::freed_before);
}

TEST(Arena, RefusesWhatCannotFitWithoutOverflow) {
  Range range(1 << 20);
  EXPECT_EQ(range.arena.allocate(std::size_t(-1), 64), nullptr);
  EXPECT_EQ(range.arena.allocate((1 << 20) + 1, 64), nullptr);
  EXPECT_EQ(range.arena.allocate(64, std::size_t{1} << 62), nullptr);
  void* block = range.arena.allocate(64, 64);
  EXPECT_FALSE(range.arena.resize(block, std::size_t(-1)));
}

TEST(Arena, ThreadsThatFreeEachOthersBlocksLoseNone) {
  Range range(64 << 20, 64, 1 << 20);
  constexpr int threads = 4, slots = 64;
  std::atomic<std::size_t*> shared[slots] = {};
  std::vector<std::thread> team;
  std::atomic<int> damaged{0};
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 5000; ++i) {
        const std::size_t words = 2 + random() % 8192;
        auto* block = static_cast<std::size_t*>(range.arena.allocate(words * sizeof(std::size_t), 64));
        if (block) {
          block[0] = words;
          block[words - 1] = words;
        }
        auto* old = shared[random() % slots].exchange(block, std::memory_order_acq_rel);
        if (!old) continue;
        if (old[old[0] - 1] != old[0]) damaged.fetch_add(1, std::memory_order_relaxed);
        if (range.arena.release(old) != Arena::Release::done) damaged.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (auto& thread : team) thread.join();
  for (auto& slot : shared)
    if (auto* block = slot.load(std::memory_order_relaxed)) {
      EXPECT_EQ(range.arena.release(block), Arena::Release::done);
    }
  EXPECT_EQ(damaged.load(std::memory_order_relaxed), 0);
  EXPECT_EQ(range.arena.bytes_in_use(), 0U);
  EXPECT_TRUE(range.arena.is_consistent());
}

TEST(Arena, AForkedChildHasItsOwnCopyOfWhatIsInUse) {
  Range range(std::size_t{1} << 34, 4096);
  auto* small = static_cast<std::byte*>(range.arena.allocate(100'000, 1));
  auto* gap = static_cast<std::byte*>(range.arena.allocate(100'000, 1));
  auto* sparse = static_cast<std::byte*>(range.arena.allocate(std::size_t{8} << 30, 1));  // mostly never touched
  write_mark(small, 100'000, 1);
  sparse[std::size_t{5} << 30] = std::byte{9};
  range.arena.release(gap);
  const std::size_t before = range.pages_in_bytes();

  range.arena.before_fork();
  const pid_t child = fork();
  if (child == 0) {
    range.arena.after_fork_in_child();
    bool good = has_mark(small, 100'000, 1) && sparse[std::size_t{5} << 30] == std::byte{9} && sparse[0] == std::byte{0};
    write_mark(small, 100'000, 2);
    sparse[std::size_t{5} << 30] = std::byte{3};
    good = good && range.arena.allocate(4096, 1) == nullptr;  // the parent's free memory is not the child's
    good = good && range.arena.release(small) == Arena::Release::done;
    good = good && range.arena.release(sparse) == Arena::Release::done && range.arena.bytes_in_use() == 0;
    _exit(good ? 0 : 1);
  }
  range.arena.after_fork_in_parent();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(has_mark(small, 100'000, 1));
  EXPECT_EQ(sparse[std::size_t{5} << 30], std::byte{9});
  EXPECT_EQ(range.pages_in_bytes(), before) << "copying must not make untouched pages exist";
  EXPECT_NE(range.arena.allocate(4096, 1), nullptr);
  EXPECT_TRUE(range.arena.is_consistent());
}

}  // namespace
}  // namespace heddle::sys
