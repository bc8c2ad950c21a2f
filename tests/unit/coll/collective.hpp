// What the tests of collective algorithms share: buffers with gaps and canaries, and a fixture for 1 to 17 ranks.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>

#include "core/datatype_envelope.hpp"
#include "sys/params.hpp"
#include "unit/coll/simulation.hpp"

namespace heddle::coll::testing {

using Word = std::uint32_t;
using Words = std::vector<Word>;

inline Datatype& word_type() { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_UINT32_T)); }

/// Two words with a gap between them and another at the end.
inline Datatype& gappy_type() {
  static Datatype* type = [] {
    Datatype *vector = nullptr, *resized = nullptr;
    EXPECT_EQ(make_vector(2, 1, 2, word_type(), false, vector), MPI_SUCCESS);
    EXPECT_EQ(make_resized(*vector, 0, 16, false, resized), MPI_SUCCESS);
    EXPECT_EQ(commit(*resized), MPI_SUCCESS);
    return resized;
  }();
  return *type;
}

/// Room for `words` 4-byte words, described by a plain or (for even numbers of words) by a gappy type.
class Buffer {
 public:
  Buffer(MPI_Count words, bool gappy)
      : type_(gappy && words % 2 == 0 ? &gappy_type() : &word_type()),
        per_element_(type_ == &word_type() ? 1 : 2),
        count_(words / per_element_),
        storage_(static_cast<std::size_t>(count_ * type_->extent + 32), fill) {}
  void* data() { return storage_.data() + 16; }
  Datatype& type() { return *type_; }
  MPI_Count count() const { return count_; }
  /// Words as elements of the type, for counts and displacements.
  MPI_Count elements(MPI_Count words) const { return words / per_element_; }
  bool is_whole(MPI_Count words) const { return words % per_element_ == 0; }

  void put(const Words& words) {
    copy_typed(words.data(), static_cast<MPI_Count>(words.size()), word_type(), data(), count_, *type_);
  }
  Words get() {
    Words words(static_cast<std::size_t>(count_ * per_element_));
    copy_typed(data(), count_, *type_, words.data(), static_cast<MPI_Count>(words.size()), word_type());
    return words;
  }
  /// True if nothing was written outside the data.
  bool is_clean() {
    std::vector<std::byte> saved = storage_;
    Words mask(static_cast<std::size_t>(count_ * per_element_));
    if (!mask.empty()) std::memset(mask.data(), static_cast<int>(fill), mask.size() * sizeof(Word));
    put(mask);
    const bool clean = std::all_of(storage_.begin(), storage_.end(), [](std::byte b) { return b == fill; });
    storage_ = saved;
    return clean;
  }

 private:
  static constexpr std::byte fill{0xee};
  Datatype* type_;
  MPI_Count per_element_, count_;
  std::vector<std::byte> storage_;
};

inline Word word(int from, int to, MPI_Count i) { return static_cast<Word>(from * 1000003 + to * 10007 + i + 1); }
inline Words block(int from, int to, MPI_Count words) {
  Words w(static_cast<std::size_t>(words));
  for (MPI_Count i = 0; i < words; ++i) w[static_cast<std::size_t>(i)] = word(from, to, i);
  return w;
}
inline void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Changes a parameter for one scope.
class With {
 public:
  With(const char* name, std::int64_t value) {
    for (const sys::Param* p = sys::Param::first(); p; p = p->next())
      if (std::string(p->name()) == name) param_ = const_cast<sys::Param*>(p);
    if (!param_) throw std::runtime_error(std::string("no parameter ") + name);
    old_ = param_->value();
    param_->set(value);
  }
  ~With() { param_->set(old_); }

 private:
  sys::Param* param_ = nullptr;
  std::int64_t old_ = 0;
};

inline std::vector<int> roots(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  if (n > 9) return {0, 1, n / 2, n - 1};
  return all;
}

inline const std::vector<MPI_Count> lengths = {0, 1, 2, 6, 40, 301};

class Collective : public ::testing::TestWithParam<int> {
 protected:
  int n() const { return GetParam(); }
  /// Runs with buffered and with synchronous sends.
  template <typename Make>
  void both(Make&& make) {
    for (const bool late : {false, true}) {
      Simulation simulation(n(), ++seed_, late);
      make(simulation, late);
      if (HasFatalFailure()) return;
    }
  }

 private:
  unsigned seed_ = 0;
};

inline std::vector<Buffer> buffers(int n, MPI_Count words, bool all_gappy = false) {
  std::vector<Buffer> made;
  for (int r = 0; r < n; ++r) made.emplace_back(words, all_gappy || r % 2 == 1);
  return made;
}

}  // namespace heddle::coll::testing
