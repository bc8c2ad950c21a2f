// The "external32" representation: big-endian, IEEE, no padding. \see MPI-5.0 §14.5.2
#pragma once

#include <cstddef>

#include "core/datatype.hpp"

namespace heddle {

/// Bytes of `count` elements of `type` in external32, or -1 when the number does not fit 63 bits.
MPI_Count external_size(const Datatype& type, MPI_Count count) noexcept;

/// Converts `count` elements at `buffer` to `out` (external_size bytes). \return MPI_SUCCESS, or MPI_ERR_CONVERSION
/// when a value cannot be represented there: MPI_LONG has 4 bytes in external32, MPI_WCHAR 2.
int pack_external(const void* buffer, MPI_Count count, const Datatype& type, void* out) noexcept;
/// The same the other way round.
int unpack_external(void* buffer, MPI_Count count, const Datatype& type, const void* in) noexcept;

}  // namespace heddle
