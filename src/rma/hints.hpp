// Hints on windows. \see MPI-5.0 §12.2.1, §12.2.7
#pragma once

#include <cstddef>

#include "core/info.hpp"
#include "rma/window.hpp"

namespace heddle::rma {

/// Takes those hints of `info` (nullptr: none) that the library knows and that have a valid value. Thread-safe.
void take_hints(Window& window, Info* info) noexcept;
/// All hints that are in force, defaults included, in a new object; nullptr when memory is out.
Info* hints_of(Window& window) noexcept;
/// The alignment that `mpi_minimum_memory_alignment` asks for, in bytes, or 0.
std::size_t wanted_alignment(Info* info) noexcept;

}  // namespace heddle::rma
