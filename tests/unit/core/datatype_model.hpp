// A datatype as the standard defines it: the list of all its (displacement, basic type) pairs. Slow, and plainly right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/datatype.hpp"
#include "core/datatype_envelope.hpp"

namespace model {

using heddle::basic_info;
using heddle::BasicType;
using std::int64_t;

struct Entry {
  int64_t at;
  BasicType basic;
};

/// What the standard calls a typemap, with the markers of MPI_Type_create_resized.
struct Type {
  std::vector<Entry> map;
  bool marked = false;
  int64_t marked_lb = 0, marked_ub = 0;
  bool padded = false;    ///< unmarked types were appended; the farthest of their upper bounds, with their padding:
  int64_t padded_ub = 0;  ///< a type may be used wherever an array of its elements fits

  [[nodiscard]] int64_t size() const {
    int64_t n = 0;
    for (const Entry& e : map) n += basic_info(e.basic).size;
    return n;
  }
  [[nodiscard]] int64_t true_lb() const {
    int64_t low = map.empty() ? 0 : map[0].at;
    for (const Entry& e : map) low = std::min(low, e.at);
    return low;
  }
  [[nodiscard]] int64_t true_ub() const {
    int64_t high = map.empty() ? 0 : map[0].at;
    for (const Entry& e : map) high = std::max(high, e.at + basic_info(e.basic).size);
    return high;
  }
  [[nodiscard]] int64_t lb() const { return marked ? marked_lb : true_lb(); }
  [[nodiscard]] int64_t extent() const {
    if (marked) return marked_ub - marked_lb;
    int64_t k = 1;
    for (const Entry& e : map) k = std::max<int64_t>(k, basic_info(e.basic).alignment);
    return (std::max(true_ub(), padded ? padded_ub : true_ub()) - true_lb() + k - 1) / k * k;
  }
  /// Appends `other` displaced by `at`.
  void append(const Type& other, int64_t at) {
    for (const Entry& e : other.map) map.push_back({at + e.at, e.basic});
    if (!other.marked) {
      if (other.map.empty()) return;
      const int64_t ub = at + other.lb() + other.extent();
      padded_ub = padded ? std::max(padded_ub, ub) : ub;
      padded = true;
      return;
    }
    marked_lb = marked ? std::min(marked_lb, at + other.marked_lb) : at + other.marked_lb;
    marked_ub = marked ? std::max(marked_ub, at + other.marked_ub) : at + other.marked_ub;
    marked = true;
  }
  void append(const Type& other, int64_t at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) append(other, at + i * other.extent());
  }

  /// Packs `count` elements at `base`.
  [[nodiscard]] std::vector<unsigned char> pack(const unsigned char* base, int64_t count) const {
    std::vector<unsigned char> out;
    for (int64_t i = 0; i < count; ++i)
      for (const Entry& e : map) {
        const unsigned char* p = base + i * extent() + e.at;
        out.insert(out.end(), p, p + basic_info(e.basic).size);
      }
    return out;
  }
};

inline Type of_basic(BasicType basic) {
  Type t;
  const heddle::BasicInfo& info = basic_info(basic);
  if (info.is_pair()) {
    t.map = {{0, info.first}, {info.second_offset, info.second}};
  } else {
    t.map = {{0, basic}};
  }
  return t;
}

/// The two descriptions of one type. The library's side is owned.
struct Both {
  Type model;
  heddle::Datatype* real = nullptr;
};

/// Random nested types, made with the library's constructors and by the definition at once.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}
  ~Generator() {
    for (heddle::Datatype* t : made_) heddle::release(*t);
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Both basic() {
    static const BasicType some[] = {0x09, 0x14, 0x43, 0x08, 0x10, 0x20, 0x16, 0x0a, 0x2a, 0x2c, 0x28, 0x47};
    const BasicType b = some[pick(0, std::size(some) - 1)];
    return {of_basic(b), &heddle::builtin_datatypes[b]};
  }

  Both make(int depth) {
    if (depth == 0) return basic();
    using namespace heddle;
    Both result;
    Datatype* made = nullptr;
    int code = MPI_SUCCESS;
    switch (pick(0, 8)) {
      case 0: {
        const Both old = make(depth - 1);
        const int64_t n = pick(0, 4);
        code = make_contiguous(n, *old.real, false, made);
        result.model.append(old.model, 0, n);
        break;
      }
      case 1:
      case 2: {
        const Both old = make(depth - 1);
        const int64_t n = pick(0, 5), bl = pick(0, 3), stride = pick(-4, 6);
        code = make_vector(n, bl, stride, *old.real, false, made);
        for (int64_t i = 0; i < n; ++i) result.model.append(old.model, i * stride * old.model.extent(), bl);
        break;
      }
      case 3: {
        const Both old = make(depth - 1);
        const int64_t n = pick(0, 5), bl = pick(0, 3), stride = pick(-40, 80);
        code = make_hvector(n, bl, stride, *old.real, false, made);
        for (int64_t i = 0; i < n; ++i) result.model.append(old.model, i * stride, bl);
        break;
      }
      case 4: {
        const Both old = make(depth - 1);
        const int64_t n = pick(0, 12);
        std::vector<MPI_Count> bl, at;
        int64_t next = pick(-5, 5);
        const bool same = pick(0, 1);
        for (int64_t i = 0; i < n; ++i) {
          bl.push_back(same ? 2 : pick(0, 3));
          at.push_back(next);
          next += bl.back() + pick(0, 2);
        }
        code = make_indexed(n, CountArray(bl.data()), CountArray(at.data()), *old.real, true, made);
        for (int64_t i = 0; i < n; ++i) result.model.append(old.model, at[i] * old.model.extent(), bl[i]);
        break;
      }
      case 5: {
        const Both old = make(depth - 1);
        const int64_t n = pick(0, 12), bl = pick(0, 3);
        std::vector<MPI_Count> at;
        for (int64_t i = 0; i < n; ++i) at.push_back(pick(-100, 200));
        code = make_hindexed_block(n, bl, CountArray(at.data()), *old.real, true, made);
        for (int64_t i = 0; i < n; ++i) result.model.append(old.model, at[i], bl);
        break;
      }
      case 6:
      case 7: {
        const int64_t n = pick(0, 4);
        std::vector<MPI_Count> bl, at;
        std::vector<Datatype*> types;
        int64_t next = pick(-16, 16);
        for (int64_t i = 0; i < n; ++i) {
          const Both old = make(pick(0, depth - 1));
          types.push_back(old.real);
          bl.push_back(pick(0, 3));
          at.push_back(next);
          result.model.append(old.model, next, bl.back());
          next += pick(0, 2) ? bl.back() * old.model.extent() : pick(-64, 64);
        }
        code = make_struct(n, CountArray(bl.data()), CountArray(at.data()), types.data(), true, made);
        break;
      }
      case 8: {
        const Both old = make(depth - 1);
        const int64_t lb = pick(-16, 16), extent = pick(-8, 64);
        if (pick(0, 3)) {
          code = make_resized(*old.real, lb, extent, false, made);
          result.model = old.model;
          result.model.marked = true;
          result.model.marked_lb = lb;
          result.model.marked_ub = lb + extent;
        } else {
          code = make_dup(*old.real, made);
          result.model = old.model;
        }
        break;
      }
    }
    if (code != MPI_SUCCESS) return basic();
    made_.push_back(made);
    result.real = made;
    return result;
  }

 private:
  std::mt19937 random_;
  std::vector<heddle::Datatype*> made_;
};

}  // namespace model
