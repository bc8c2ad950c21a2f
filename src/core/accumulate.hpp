// Accumulates: what one-sided operations do to the elements of a target. MPI-5.0 §12.3.4.
//
// Nothing here excludes others; who changes shared memory holds the lock of the stripe meanwhile (sync/stripe_lock.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/buffer.hpp"
#include "core/op.hpp"
#include "sync/stripe_lock.hpp"

namespace heddle {

/// Whether `op` may be applied to elements of `origin`'s basic type in a target of type `target`. MPI_SUCCESS, or MPI_ERR_OP for a
/// user-defined operation and one that the basic type does not have, or MPI_ERR_TYPE where the two are not made of one and the same
/// predefined datatype. MPI_REPLACE and MPI_NO_OP are for every predefined datatype; for MPI_NO_OP, whose origin is ignored, pass the result's type
/// as `origin`. Types without data go with everything.
int check_accumulate(const Op& op, const Datatype& origin, const Datatype& target) noexcept;

/// fetched[i] = target[i], unless `fetched` is null; then target[i] = origin[i] op target[i], for `n` elements as in C arrays.
///
/// Any addresses will do, aligned or not; `origin` may be null for MPI_NO_OP. The three do not overlap. Holes of elements (BasicInfo::has_holes)
/// are never written; who accumulates into a copy of the target must write back the members only. An aligned number, logical or byte of
/// up to 8 bytes is stored at once, each part of a complex number or pair for itself: a concurrent load sees the old value or the new one.
/// \pre check_accumulate allows it
void accumulate(OpCode op, BasicType basic, const void* origin, void* target, std::int64_t n, void* fetched) noexcept;

/// The same with packed elements, without holes, at `origin` and `fetched`: as they travel.
void accumulate_packed(OpCode op, BasicType basic, const void* origin, void* target, std::int64_t n, void* fetched) noexcept;

/// The whole of MPI_Accumulate and MPI_Get_accumulate on memory that this process can reach, under the locks of its owner: `target` into
/// `result` (nullptr: not wanted), then `origin` (ignored for MPI_NO_OP) into `target`. As many elements as the shortest of them has.
/// \param to_owner what to add (modulo 2^64) to an address here to get the address in the process that owns the memory
void accumulate(OpCode op, BasicType basic, const Buffer& origin, const Buffer& target, const Buffer* result, sync::StripeLocks& locks,
                std::uint64_t to_owner) noexcept;

/// MPI_SUCCESS, or MPI_ERR_TYPE when elements of this type cannot be compared and swapped: for integers, logicals and bytes only.
int check_compare_and_swap(const Datatype& type) noexcept;

/// *result = *target; if *target has the same bytes as *compare, then *target = *origin, in one store up to 8 bytes. Returns whether it did.
/// Any addresses will do. \pre check_compare_and_swap allows it
bool compare_and_swap(BasicType basic, const void* origin, const void* compare, void* target, void* result) noexcept;

}  // namespace heddle
