// Hints on communicators: which keys the library takes, and what becomes of them. \see MPI-5.0 §7.4.4
#pragma once

#include "core/comm.hpp"
#include "core/info.hpp"

namespace heddle {

/// Takes those hints of `info` (nullptr: none) that the library knows and that have a valid value; the others are ignored,
/// as the standard asks. Earlier hints that `info` does not name stay. Thread-safe.
void take_hints(Comm& comm, Info* info) noexcept;

/// All hints that are in force, defaults included, in a new object; nullptr when memory is out.
Info* hints_of(Comm& comm) noexcept;

}  // namespace heddle
