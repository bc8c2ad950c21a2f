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

/// The values for LOGICALs of `size` bytes; false when nobody has set them (reductions then take nonzero as true and make 1 of
/// true). Lock-free. \pre is_fortran_logical_size(size)
bool fortran_booleans(int size, FortranBooleans& values) noexcept;

/// Sets the values; false when they were set before. Thread-safe. \pre is_fortran_logical_size(size)
bool set_fortran_booleans(int size, const void* truth, const void* falsehood) noexcept;

}  // namespace heddle
