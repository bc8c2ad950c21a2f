// The bit patterns of Fortran's .TRUE. and .FALSE., which only the program's compiler knows.
#pragma once

#include <cstddef>

namespace heddle {

/// The two values of a Fortran LOGICAL of some size: the first `size` bytes of each.
struct FortranBooleans {
  std::byte truth[16];
  std::byte falsehood[16];
};

/// True for the sizes of LOGICAL that MPI has datatypes for.
inline bool is_fortran_logical_size(int size) noexcept { return size > 0 && size <= 16 && (size & (size - 1)) == 0; }

/// The values for LOGICALs of `size` bytes: those that were set, else 1 and 0, which the compilers in use take for true and false, and
/// which reductions make. Lock-free. \pre is_fortran_logical_size(size)
FortranBooleans fortran_booleans(int size) noexcept;

/// Sets the values instead of 1 and 0; false when they were set before. Thread-safe. \pre is_fortran_logical_size(size)
bool set_fortran_booleans(int size, const void* truth, const void* falsehood) noexcept;

}  // namespace heddle
