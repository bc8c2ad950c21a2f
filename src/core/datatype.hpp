// Datatypes as the rest of the library sees them: sizes, extents, packing.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/attribute.hpp"
#include "core/basic_type.hpp"
#include "sys/handle.hpp"

namespace heddle {

struct Layout;            // where the bytes are: core/datatype_layout.hpp
struct DatatypeEnvelope;  // how it was made: core/datatype_envelope.hpp

/// A datatype. Everything but the last group is immutable from MPI_Type_commit on (`layout` is complete from the
/// beginning: commit only builds `plan`). Sizes and extents in bytes.
struct Datatype : Object {
  static constexpr Kind object_kind = Kind::datatype;

  // On a cache line of its own: threads that share a type write the reference count before it.
  alignas(64) MPI_Count size = 0;  ///< bytes of data
  MPI_Count extent = 0;            ///< ub - lb
  MPI_Count lb = 0;
  MPI_Count true_lb = 0, true_extent = 0;
  bool contiguous = false;  ///< any count of elements is one block of count*size bytes at buffer + true_lb
  bool one_block = false;   ///< one element is one block of size bytes at buffer + true_lb (but maybe not two)
  bool committed = false;
  bool builtin = false;        ///< predefined: not reference counted
  bool marked = false;         ///< lb and ub come from MPI_Type_create_resized, here or further in (they are "sticky")
  BasicType basic = 0;         ///< the single predefined type that it is made of (0: mixed, or no data)
  std::uint8_t alignment = 1;  ///< the largest of its basic types'
  std::uintptr_t predefined_value = 0;
  const Layout* layout = nullptr;  ///< typed: every block knows its basic type; nullptr: no data
  const Layout* plan = nullptr;    ///< bytes only, what pack and unpack execute; nullptr: no data or not committed
  DatatypeEnvelope* envelope = nullptr;  ///< nullptr: predefined and named

  std::mutex mutex;  ///< guards what follows, and committing
  int handles = 1;   ///< how often the user holds it: MPI_Type_get_contents gives further handles of the same object
  char* name = nullptr;                      ///< given by the user; nullptr: none
  std::unique_ptr<AttributeMap> attributes;  ///< made with the first attribute

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

inline constexpr std::uintptr_t first_builtin_datatype = 0x200;
/// All predefined datatypes, by ABI handle value - first_builtin_datatype; those that do not exist have builtin == false, committed == false.
/// Filled before any other initialiser of the library runs.
[[gnu::visibility("hidden")]] extern Datatype builtin_datatypes[256];

/// The predefined datatype with this ABI handle value (0x201–0x2ff), or nullptr. A table look-up.
inline Datatype* builtin_datatype(std::uintptr_t value) noexcept {
  const std::uintptr_t index = value - first_builtin_datatype;
  return index < 256 && builtin_datatypes[index].builtin ? &builtin_datatypes[index] : nullptr;
}

template <>
struct HandleTraits<Datatype> {
  using handle = MPI_Datatype;
  static Datatype* builtin(std::uintptr_t value) noexcept { return builtin_datatype(value); }
};

/// Reference counting that skips predefined types (nothing that all threads share is written on the path).
inline void retain(Datatype& type) noexcept {
  if (!type.builtin) type.retain();
}
/// Drops a reference; destroys the type with the last one, and what it was made of. Attribute delete callbacks have run
/// before (MPI_Type_free).
void release(Datatype& type) noexcept;

/// The place that lies `displacement` bytes from the address of a buffer. A sum of integers, which may wrap around: a datatype may hold absolute
/// addresses (MPI_BOTTOM), and then the address that stands for a buffer of temporary memory lies far below that memory, or below 0.
inline std::byte* displaced(const void* buffer, MPI_Count displacement) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(displacement));
}

/// Where a packing operation stands in the packed stream of its elements. Starting anywhere costs the depth of the
/// type's description (and a binary search in an indexed one), so no more than the offset has to be remembered.
struct PackCursor {
  MPI_Count offset = 0;  ///< packed bytes done so far
};

/// Whether `count` elements are one block of memory; it then starts at buffer + type.true_lb. \pre type.committed
inline bool is_one_block(MPI_Count count, const Datatype& type) noexcept {
  return type.contiguous || (count == 1 && type.one_block);
}

/// Copies bytes [offset, offset+bytes) of the packed form of `count` elements at `buffer` to `out`, and moves the
/// cursor on. Any range may be asked for in any order. Thread-safe on const buffers. \pre type.committed, cursor.offset
/// + bytes <= count * type.size
void pack(const void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, void* out,
          std::size_t bytes) noexcept;
/// The same the other way round.
void unpack(void* buffer, MPI_Count count, const Datatype& type, PackCursor& cursor, const void* in,
            std::size_t bytes) noexcept;

/// Copies `count` elements of `from_type` to `to_count` of `to_type` (local copy of collectives and self messages): as
/// many bytes as the smaller side holds.
void copy_typed(const void* from, MPI_Count from_count, const Datatype& from_type, void* to, MPI_Count to_count,
                const Datatype& to_type) noexcept;

/// How many basic elements (MPI_Get_elements) the first `bytes` packed bytes of a stream of `type` hold; MPI_UNDEFINED
/// when they end inside one.
MPI_Count basic_elements(const Datatype& type, MPI_Count bytes) noexcept;

/// The packed bytes that hold the first `elements` basic elements of a stream of `type`, or -1 when the number does not
/// fit 63 bits or the type has no data. The inverse of basic_elements.
MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements) noexcept;

/// The name given by the user, or the standard's name of a predefined type, or "". Copied to `name`
/// (MPI_MAX_OBJECT_NAME bytes); returns its length. Thread-safe.
int type_name(Datatype& type, char* name) noexcept;

/// Makes `type` ready for communication. Idempotent. \return MPI_SUCCESS or MPI_ERR_NO_MEM
int commit(Datatype& type) noexcept;

}  // namespace heddle
