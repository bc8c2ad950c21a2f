// The arithmetic of MPI_Dims_create. MPI-5.0 section 8.5.2.
#pragma once

#include <vector>

namespace heddle {

/// `k` factors of `n` in descending order, as close to each other as possible: the difference between the largest and the
/// smallest is the least there is. Among grids of equal difference the largest factor is the least, then the next, and so on.
/// Takes microseconds; tens of milliseconds for the worst numbers there are. \pre n >= 1, k >= 1
std::vector<int> balanced_factors(int n, int k);

}  // namespace heddle
