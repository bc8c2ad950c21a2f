// Datatypes as the rest of the library sees them. (Contract; the datatype engineer owns the representation below it.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/attribute.hpp"
#include "core/handle.hpp"

namespace heddle {

struct DatatypePlan;      // committed form: what pack and unpack execute
struct DatatypeEnvelope;  // how it was made: combiner and arguments

struct Datatype : Object {
  static constexpr Kind object_kind = Kind::datatype;

  MPI_Count size = 0;        ///< bytes of data
  MPI_Count extent = 0;      ///< ub - lb
  MPI_Count lb = 0;
  MPI_Count true_lb = 0, true_extent = 0;
  bool contiguous = false;   ///< any count of elements is one block of count*size bytes at buffer + true_lb
  bool committed = false;
  bool builtin = false;      ///< predefined: not reference counted
  std::uint8_t basic = 0;    ///< for predefined types and derived ones made of a single one: core/basic_type.hpp (0: mixed)
  std::uintptr_t predefined_value = 0;
  DatatypePlan* plan = nullptr;
  DatatypeEnvelope* envelope = nullptr;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

/// The predefined datatype with this ABI handle value (0x200–0x2ff), or nullptr. A table look-up.
Datatype* builtin_datatype(std::uintptr_t value) noexcept;

template <>
struct HandleTraits<Datatype> {
  using handle = MPI_Datatype;
  static Datatype* builtin(std::uintptr_t value) noexcept { return builtin_datatype(value); }
};

/// Reference counting that skips predefined types (nothing that all threads share is written on the path).
inline void retain(Datatype& type) noexcept { if (!type.builtin) type.retain(); }
void release(Datatype& type) noexcept;

/// Copies bytes [offset, offset+bytes) of the packed form of `count` elements at `buffer` to `out`.
/// Any range may be asked for in any order; consecutive ranges are fast through the cursor. Thread-safe on const buffers.
struct PackCursor {
  MPI_Count offset = 0;      ///< packed bytes done so far
  std::uint64_t state[6] = {};  ///< the plan's position; zero at the beginning
};
void pack(const void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, void* out, std::size_t bytes) noexcept;
void unpack(void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, const void* in, std::size_t bytes) noexcept;

/// Copies `count` elements of `from_type` to `to_count` of `to_type` (local copy of collectives and self messages): as many
/// bytes as the smaller side holds.
void copy_typed(const void* from, MPI_Count from_count, const Datatype& from_type, void* to, MPI_Count to_count,
                const Datatype& to_type) noexcept;

}  // namespace heddle
