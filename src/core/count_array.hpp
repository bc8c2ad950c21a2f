// Arrays of counts and displacements as the user gave them: `int` or 64-bit, behind one type.
#pragma once

#include <mpi.h>

namespace heddle {

/// A read-only view of a user's array of counts or displacements, of `int` (plain functions) or of MPI_Count or MPI_Aint
/// (`_c` functions and arrays of addresses). No copy, no allocation; the length is what the function says it is.
/// Trivially copyable, so schedules may keep it for as long as the user must keep the array.
struct CountArray {
  const void* data = nullptr;
  bool large = false;  ///< elements are 8 bytes, else `int`

  CountArray() = default;
  explicit CountArray(const int* elements) noexcept : data(elements) {}
  explicit CountArray(const MPI_Count* elements) noexcept : data(elements), large(true) {}

  [[nodiscard]] bool is_null() const noexcept { return data == nullptr; }
  [[nodiscard]] MPI_Count operator[](MPI_Count i) const noexcept {
    return large ? static_cast<const MPI_Count*>(data)[i] : static_cast<const int*>(data)[i];
  }
};

static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count) && sizeof(MPI_Offset) == sizeof(MPI_Count));

}  // namespace heddle
