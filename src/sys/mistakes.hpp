// Mistakes in a user's HEDDLE_* variables: impossible values and unknown names.
#pragma once

#include <cstddef>

namespace heddle::sys {

/// Prints a notice for each mistake, once in a process; later calls do nothing. Allocates nothing; without a mistake it costs one look at
/// each variable of the environment. Not thread-safe.
/// \param names also report unknown names: for one rank of a job only, whose environment stands for all
void report_mistakes(bool names) noexcept;

/// Whether `name` is a parameter, or another variable that something of Heddle's reads or sets, or one that belongs to the user's
/// surroundings (HEDDLE_ROOT and its like, which module files and build systems set).
bool is_known_variable(const char* name, std::size_t length) noexcept;

/// The variable that the user probably meant by the unknown `name`; nullptr: none is similar.
const char* nearest_variable(const char* name, std::size_t length) noexcept;

}  // namespace heddle::sys
