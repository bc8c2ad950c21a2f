// MPI_Dims_create: a balanced grid for a number of processes. MPI-5.0 section 8.5.2.
#include <algorithm>
#include <vector>

#include "generated/impl.hpp"
#include "mpi/dims.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

/// All divisors of n, ascending.
std::vector<int> divisors_of(int n) {
  std::vector<int> divisors;
  for (int d = 1; d <= n / d; ++d)
    if (n % d == 0) divisors.push_back(d);
  for (std::size_t i = divisors.size(); i-- > 0;)
    if (n / divisors[i] != divisors[i]) divisors.push_back(n / divisors[i]);
  return divisors;
}

int largest_prime_of(int n) {
  int prime = 1;
  for (int d = 2; d <= n / d; ++d)
    for (; n % d == 0; n /= d) prime = d;
  return std::max(prime, n);
}

/// True when base to the power of k is at most n. \pre base >= 1, n >= 1
bool power_is_at_most(int base, int k, int n) {
  if (base == 1) return true;
  for (; k > 0; --k) {
    n /= base;
    if (n == 0) return false;
  }
  return true;
}

/// Fills factors[0..k) with a product of n, descending, all of them within [least, most]; the largest as small as possible, then
/// the next, and so on. False when there is none. `divisors`: those of n among others, ascending.
bool fill(int n, int k, int least, int most, const std::vector<int>& divisors, int* factors) {
  if (k == 0) return n == 1;
  if (k == 1) {
    factors[0] = n;
    return least <= n && n <= most;
  }
  if (!power_is_at_most(least, k, n)) return false;
  for (auto d = std::lower_bound(divisors.begin(), divisors.end(), least); d != divisors.end() && *d <= most; ++d) {
    if (n % *d || (*d > 1 && power_is_at_most(*d, k, n - 1))) continue;  // too small to be the largest of k factors
    factors[0] = *d;
    if (fill(n / *d, k - 1, least, *d, divisors, factors + 1)) return true;
  }
  return false;
}

}  // namespace

std::vector<int> balanced_factors(int n, int k) {
  const std::vector<int> divisors = divisors_of(n);
  std::vector<int> best(static_cast<std::size_t>(k), 1), trial = best;
  best[0] = n;
  // More factors than prime factors: the rest are 1, and only the largest matters. An int has 30 prime factors at most.
  const int useful = std::min(k, 31);
  int spread = useful > 1 ? n : 0;  // one more than what `best` has, so that a grid of the same difference and a smaller largest wins
  const int prime = largest_prime_of(n);
  for (const int largest : divisors) {
    if (useful == 1) break;
    if (largest < prime || (largest > 1 && power_is_at_most(largest, useful, n - 1))) continue;
    const int rest = n / largest;
    trial[0] = largest;
    // The smallest factor as large as possible, that is: at most the root of the rest, and near enough to beat the best.
    auto least = std::upper_bound(divisors.begin(), divisors.end(), largest);
    bool could_win = false;
    while (least != divisors.begin()) {
      --least;
      if (!power_is_at_most(*least, useful - 1, rest)) continue;
      if (largest - *least >= spread) break;
      could_win = true;
      if (rest % *least || !fill(rest, useful - 1, *least, largest, divisors, trial.data() + 1)) continue;
      spread = largest - *least;
      best = trial;
      break;
    }
    if (!could_win) break;  // a larger largest leaves a smaller rest
  }
  return best;
}

namespace mpi {

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

  const std::vector<int> factors = balanced_factors(static_cast<int>(nnodes / fixed), open);
  for (int i = 0, k = 0; i < ndims; ++i)
    if (dims[i] == 0) dims[i] = factors[static_cast<std::size_t>(k++)];
  return MPI_SUCCESS;
}

}  // namespace mpi
}  // namespace heddle
