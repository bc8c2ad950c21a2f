// MPI_Dims_create: a balanced grid for a number of processes. MPI-5.0 section 8.5.2.
#include <algorithm>
#include <cmath>
#include <vector>

#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

/// Fills factors[0..k) with a product of n, descending, none above `most`; the largest as small as possible, then the
/// next, and so on. False when there is none. `divisors`: all divisors of the number the search began with, ascending.
bool balance(int n, int k, int most, const std::vector<int>& divisors, int* factors) {
  if (k == 1) {
    factors[0] = n;
    return n <= most;
  }
  for (const int d : divisors) {
    if (d > most) return false;
    if (n % d || std::pow(static_cast<double>(d), k) < 0.999 * n) continue;  // too small to be the largest of k factors
    factors[0] = d;
    if (balance(n / d, k - 1, d, divisors, factors + 1)) return true;
  }
  return false;
}

}  // namespace

int Dims_create(int nnodes, int ndims, int dims[]) {
  if (nnodes < 1) return error(MPI_ERR_ARG, "nnodes is %d; a grid has at least one process", nnodes);
  if (ndims > 0 && !dims) return error(MPI_ERR_ARG, "dims is null though there are %d dimensions", ndims);
  long long fixed = 1;
  int open = 0;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] < 0) return error(MPI_ERR_DIMS, "dims[%d] is %d; it must be positive, or 0 to be chosen", i, dims[i]);
    if (dims[i] == 0)
      ++open;
    else if (fixed <= nnodes)
      fixed *= dims[i];
  }
  if (nnodes % fixed || (open == 0 && ndims > 0 && fixed != nnodes))
    return error(MPI_ERR_DIMS, "%d processes cannot be arranged in a grid whose given dimensions have the product %lld",
                 nnodes, fixed);
  if (open == 0) return MPI_SUCCESS;

  const int n = static_cast<int>(nnodes / fixed);
  std::vector<int> divisors, factors(static_cast<std::size_t>(open));
  for (int d = 1; d <= n / d; ++d)
    if (n % d == 0) divisors.push_back(d);
  for (std::size_t i = divisors.size(); i-- > 0;)
    if (n / divisors[i] != divisors[i]) divisors.push_back(n / divisors[i]);
  // More dimensions than prime factors: the rest are 1, and searching through them would only take time.
  const int useful = std::min(open, 31);
  if (!balance(n, useful, n, divisors, factors.data()))
    return error(MPI_ERR_INTERN, "no grid for %d processes", nnodes);
  for (int i = useful; i < open; ++i) factors[static_cast<std::size_t>(i)] = 1;
  for (int i = 0, k = 0; i < ndims; ++i)
    if (dims[i] == 0) dims[i] = factors[static_cast<std::size_t>(k++)];
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
