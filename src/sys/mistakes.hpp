// What a user's HEDDLE_* variables get wrong: values that parameters cannot have, and names that nobody knows.
#pragma once

#include <cstddef>

namespace heddle::sys {

/// Says so with a notice for each, at most once in a process; later calls do nothing. Allocates nothing; without a mistake it costs
/// one look at each variable of the environment. Calls must not run at the same time.
/// \param names also unknown names: for one rank of a job only, whose environment is taken for that of all
void report_mistakes(bool names) noexcept;

/// Whether `name` is a parameter, or another variable that something of Heddle's reads or sets, or one that belongs to the user's
/// surroundings (HEDDLE_ROOT and its like, which module files and build systems set).
bool is_known_variable(const char* name, std::size_t length) noexcept;

/// The variable that the user probably meant by the unknown `name`; nullptr: none is near.
const char* nearest_variable(const char* name, std::size_t length) noexcept;

}  // namespace heddle::sys
