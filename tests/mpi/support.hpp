// What MPI-level tests share beyond harness/check.h: patterned buffers with guards, bounded waiting, error inspection.
// Needs nothing but MPI and the C++ library.
#pragma once

#include <mpi.h>

#include "check.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace test {

// World rank and size, read once after MPI_Init.
struct World {
  int rank = -1, size = 0;
};

// Ends a test that passed: what main returns.
inline int finish() {
  MPI_Finalize();
  return 0;
}

inline World world() {
  World w;
  MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &w.size);
  return w;
}

inline World init() {
  MPI_Init(nullptr, nullptr);
  return world();
}

// MPI_THREAD_MULTIPLE or the test fails: a library that offers less is not honest about being built for threads.
inline World init_threads() {
  int provided = -1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
  return world();
}

// 64-bit mixer (splitmix64's finaliser): the source of every pattern and of the tests' random numbers.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Deterministic generator: the same seed gives the same test everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_++); }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1))); }

 private:
  std::uint64_t state_;
};

// Writes a pattern in which every byte depends on its place and on the seed, so that shifted, repeated, torn and
// foreign data are all seen.
inline void fill(void* buffer, std::size_t bytes, std::uint64_t seed) {
  auto* out = static_cast<unsigned char*>(buffer);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    word = (seed ^ i) * 0x9e3779b97f4a7c15u + (seed << 1);
    word ^= word >> 29;
    const std::size_t n = bytes - i < 8 ? bytes - i : 8;
    std::memcpy(out + i, &word, n);
  }
}

// Index of the first byte that differs from fill()'s pattern, or `bytes` when none does.
inline std::size_t first_wrong(const void* buffer, std::size_t bytes, std::uint64_t seed) {
  const auto* in = static_cast<const unsigned char*>(buffer);
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = (seed ^ i) * 0x9e3779b97f4a7c15u + (seed << 1);
    word ^= word >> 29;
    const std::size_t n = bytes - i < 8 ? bytes - i : 8;
    if (std::memcmp(in + i, &word, n) == 0) continue;
    unsigned char expected[8];
    std::memcpy(expected, &word, 8);
    for (std::size_t k = 0; k < n; ++k)
      if (in[i + k] != expected[k]) return i + k;
  }
  return bytes;
}

// `bytes` bytes at an alignment of 64 + shift with guard bytes on both sides; the guards are checked on request.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes, std::size_t shift = 0) : bytes_(bytes), memory_(bytes + 2 * guard + 128, mark) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data() + guard);
    offset_ = guard + ((64 - address % 64) % 64) + shift % 64;
  }
  unsigned char* data() { return memory_.data() + offset_; }
  std::size_t size() const { return bytes_; }
  void wipe() { std::memset(memory_.data(), mark, memory_.size()); }

  // True when nothing outside the first `written` bytes was touched since construction or wipe().
  bool untouched_outside(std::size_t written) const {
    for (std::size_t i = 0; i < offset_; ++i)
      if (memory_[i] != mark) return false;
    for (std::size_t i = offset_ + written; i < memory_.size(); ++i)
      if (memory_[i] != mark) return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr unsigned char mark = 0xA5;
  std::size_t bytes_, offset_;
  std::vector<unsigned char> memory_;
};

// Calls `done` until it returns true; false after `seconds`, a bound far above anything but a hang.
template <typename Done>
bool eventually(Done done, int seconds = 60) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (unsigned i = 0;; ++i) {
    if (done()) return true;
    if (i % 64 == 63) std::this_thread::yield();
    if (i % 1024 == 1023 && std::chrono::steady_clock::now() > end) return false;
  }
}

inline int error_class(int code) {
  int cls = -1;
  MPI_Error_class(code, &cls);
  return cls;
}

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

// The texts of errors are ours to choose; programs run on another MPI to validate a test skip checks of them.
inline bool library_is_heddle() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::strstr(text, "Heddle") != nullptr || std::strstr(text, "heddle") != nullptr;
}

// A known defect of MPICH 5.0.2 (named where it is used) that our own library must not have.
inline bool library_is_mpich() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::strstr(text, "MPICH") != nullptr;
}

inline long long count_of(const MPI_Status& status, MPI_Datatype type = MPI_BYTE) {
  MPI_Count count = -1;
  MPI_Get_count_c(&status, type, &count);
  return count;
}

// The "empty" status of the standard (section on completion): what null and inactive requests give.
inline bool is_empty(const MPI_Status& status) {
  int cancelled = -1;
  MPI_Test_cancelled(&status, &cancelled);
  return status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && count_of(status) == 0 && !cancelled;
}

// A status no call has written, so that a test sees what was set and what was left alone.
inline MPI_Status dirty_status() {
  MPI_Status status;
  std::memset(&status, 0x5A, sizeof status);
  status.MPI_SOURCE = -777;
  status.MPI_TAG = -778;
  status.MPI_ERROR = 779;
  return status;
}

}  // namespace test

// Compares a received buffer with fill()'s pattern and names the first wrong byte.
#define CHECK_FILLED(buffer, bytes, seed) CHECK_EQ(::test::first_wrong(buffer, bytes, seed), (bytes))

// The text must hold every one of the words given; what it does hold is printed when it does not.
#define CHECK_NAMES(text, word)                                                                     \
  do {                                                                                              \
    const std::string text_ = (text), word_ = (word);                                                   \
    if (text_.find(word_) == std::string::npos)                                                     \
      fprintf(stderr, "the text does not name '%s': %s\n", word_.c_str(), text_.c_str());           \
    CHECK(text_.find(word_) != std::string::npos);                                                  \
  } while (0)
