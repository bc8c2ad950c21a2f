// Datatypes that select from multidimensional arrays: subarray and darray.
#include "core/datatype_envelope.hpp"
#include "core/datatype_layout.hpp"
#include "core/datatype_new.hpp"
#include "sys/error.hpp"

namespace heddle {

using detail::NewType;
using std::int64_t;

namespace {

/// Arithmetic on element counts and bytes; false when it leaves 63 bits.
bool multiply(int64_t& value, int64_t by) noexcept { return !__builtin_mul_overflow(value, by, &value); }

int check_order(int order) noexcept {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) return MPI_SUCCESS;
  return error(MPI_ERR_ARG, "order is %d; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
}

int check_dimensions(int ndims) noexcept {
  if (ndims > 0) return MPI_SUCCESS;
  return error(MPI_ERR_ARG, "ndims is %d; an array has at least one dimension", ndims);
}

int check_array(const void* array, const char* name) noexcept {
  if (array) return MPI_SUCCESS;
  return error(MPI_ERR_ARG, "%s is null", name);
}

int out_of_range(const char* name, int i, int64_t value, int64_t low, int64_t high) noexcept {
  return error(MPI_ERR_ARG, "%s[%d] is %lld; it must be from %lld to %lld", name, i, static_cast<long long>(value),
               static_cast<long long>(low), static_cast<long long>(high));
}

/// The i-th dimension counted from the one whose neighbours are adjacent in memory.
int fastest(int i, int ndims, int order) noexcept { return order == MPI_ORDER_C ? ndims - 1 - i : i; }

/// What one process holds of one dimension.
struct Share {
  int64_t first = 0;   ///< index of the first block's first element
  int64_t block = 0;   ///< elements of each complete block
  int64_t blocks = 0;  ///< complete blocks, `period` elements apart
  int64_t period = 0;
  int64_t rest = 0;  ///< elements of an incomplete last block, one period after the last complete one
};

/// The elements of a dimension of `size` that coordinate `c` of `processes` holds when blocks of `block` are dealt out
/// in turn.
Share deal(int64_t size, int64_t block, int64_t c, int64_t processes) noexcept {
  Share s;
  const int64_t complete = size / block;
  s.block = block;
  s.blocks = complete > c ? (complete - c + processes - 1) / processes : 0;
  s.period = block * processes;
  s.first = c * block;
  if (complete % processes == c) s.rest = size % block;
  return s;
}

/// `layout`, one step along a dimension being `stride` bytes, repeated over a share of that dimension.
bool spread(LayoutRef& layout, const Share& share, int64_t stride) noexcept {
  LayoutRef block;
  SequenceBuilder parts(true);
  int64_t first = share.first, period = share.period, rest_at;
  if (share.blocks == 0 && share.rest == 0) {
    layout = LayoutRef();
    return true;
  }
  if (!multiply(first, stride) || !multiply(period, stride)) return false;
  if (__builtin_mul_overflow(share.blocks, period, &rest_at) || __builtin_add_overflow(rest_at, first, &rest_at))
    return false;
  if (!make_loop(layout.get(), share.block, stride, block)) return false;
  if (!parts.add(first, share.blocks, period, block.get())) return false;
  if (share.rest && !parts.add(rest_at, share.rest, stride, layout.get())) return false;
  return parts.finish(layout);
}

/// How dimension `i` is shared out, from the user's arguments. \return MPI_SUCCESS or an error code
int share_of(int i, int64_t size, int distribution, int argument, int64_t processes, int64_t coordinate,
             Share& share) noexcept {
  if (size < 1) return out_of_range("array_of_gsizes", i, size, 1, INT64_MAX);
  if (processes < 1) return out_of_range("array_of_psizes", i, processes, 1, INT32_MAX);
  if (argument != MPI_DISTRIBUTE_DFLT_DARG && argument < 1 && distribution != MPI_DISTRIBUTE_NONE)
    return error(MPI_ERR_ARG, "array_of_dargs[%d] is %d; it must be positive or MPI_DISTRIBUTE_DFLT_DARG", i, argument);
  switch (distribution) {
    case MPI_DISTRIBUTE_NONE:
      if (processes != 1)
        return error(MPI_ERR_ARG, "array_of_psizes[%d] is %lld; a dimension with MPI_DISTRIBUTE_NONE has one process",
                     i, static_cast<long long>(processes));
      share = deal(size, size, 0, 1);
      return MPI_SUCCESS;
    case MPI_DISTRIBUTE_BLOCK: {
      const int64_t block = argument == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : argument;
      if (block < (size + processes - 1) / processes)
        return error(
            MPI_ERR_ARG,
            "array_of_dargs[%d] is %d; %lld blocks of that size do not hold the %lld elements of the dimension", i,
            argument, static_cast<long long>(processes), static_cast<long long>(size));
      share = deal(size, block, coordinate, processes);
      return MPI_SUCCESS;
    }
    case MPI_DISTRIBUTE_CYCLIC:
      share = deal(size, argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument, coordinate, processes);
      return MPI_SUCCESS;
    default:
      return error(MPI_ERR_ARG, "array_of_distribs[%d] is %d; it must be MPI_DISTRIBUTE_NONE, _BLOCK or _CYCLIC", i,
                   distribution);
  }
}

}  // namespace

int make_subarray(int ndims, CountArray sizes, CountArray subsizes, CountArray starts, int order, Datatype& old,
                  bool large, Datatype*& result) noexcept {
  int code = check_dimensions(ndims);
  if (code == MPI_SUCCESS) code = check_order(order);
  if (code == MPI_SUCCESS) code = check_array(sizes.data, "array_of_sizes");
  if (code == MPI_SUCCESS) code = check_array(subsizes.data, "array_of_subsizes");
  if (code == MPI_SUCCESS) code = check_array(starts.data, "array_of_starts");
  for (int i = 0; code == MPI_SUCCESS && i < ndims; ++i) {
    if (sizes[i] < 1)
      code = out_of_range("array_of_sizes", i, sizes[i], 1, INT64_MAX);
    else if (subsizes[i] < 1 || subsizes[i] > sizes[i])
      code = out_of_range("array_of_subsizes", i, subsizes[i], 1, sizes[i]);
    else if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i])
      code = out_of_range("array_of_starts", i, starts[i], 0, sizes[i] - subsizes[i]);
  }
  if (code != MPI_SUCCESS) return code;

  NewType made(MPI_COMBINER_SUBARRAY, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  bool ok = e.add_integer(ndims);
  for (const CountArray& array : {sizes, subsizes, starts})
    for (int i = 0; ok && i < ndims; ++i) ok = e.add_count(array[i]);
  if (!ok || !e.add_integer(order) || !e.add_type(old)) return made.no_memory();

  LayoutRef layout = LayoutRef::share(old.layout);
  int64_t stride = old.extent;
  for (int k = 0; k < ndims; ++k) {
    const int i = fastest(k, ndims, order);
    int64_t first = starts[i];
    LayoutRef loop;
    if (!multiply(first, stride) || !make_loop(layout.get(), subsizes[i], stride, loop) ||
        !make_shifted(loop.get(), first, layout) || !multiply(stride, sizes[i]))
      return made.too_large();
  }
  if (!made.cover(0, 1, 0, old)) return made.too_large();
  made.mark(0, stride);
  return made.finish(std::move(layout), result);
}

int make_darray(int size, int rank, int ndims, CountArray gsizes, const int* distribs, const int* dargs,
                const int* psizes, int order, Datatype& old, bool large, Datatype*& result) noexcept {
  if (size < 1) return error(MPI_ERR_ARG, "size is %d; a process group has at least one member", size);
  if (rank < 0 || rank >= size)
    return error(MPI_ERR_ARG, "rank is %d; it must be from 0 to size-1 (%d)", rank, size - 1);
  int code = check_dimensions(ndims);
  if (code == MPI_SUCCESS) code = check_order(order);
  if (code == MPI_SUCCESS) code = check_array(gsizes.data, "array_of_gsizes");
  if (code == MPI_SUCCESS) code = check_array(distribs, "array_of_distribs");
  if (code == MPI_SUCCESS) code = check_array(dargs, "array_of_dargs");
  if (code == MPI_SUCCESS) code = check_array(psizes, "array_of_psizes");
  int64_t grid = 1;
  for (int i = 0; code == MPI_SUCCESS && i < ndims; ++i) {
    if (psizes[i] < 1)
      code = out_of_range("array_of_psizes", i, psizes[i], 1, size);
    else if (!multiply(grid, psizes[i]))
      grid = INT64_MAX;
  }
  if (code == MPI_SUCCESS && grid != size)
    code = error(MPI_ERR_ARG, "the product of array_of_psizes is %lld and size is %d; they must agree",
                 static_cast<long long>(grid), size);
  if (code != MPI_SUCCESS) return code;

  NewType made(MPI_COMBINER_DARRAY, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  bool ok = e.add_integer(size) && e.add_integer(rank) && e.add_integer(ndims);
  for (int i = 0; ok && i < ndims; ++i) ok = e.add_count(gsizes[i]);
  for (const int* array : {distribs, dargs, psizes})
    for (int i = 0; ok && i < ndims; ++i) ok = e.add_integer(array[i]);
  if (!ok || !e.add_integer(order) || !e.add_type(old)) return made.no_memory();

  // The grid of processes is numbered in row-major order whatever the order of the array: the last dimension's
  // coordinate is the remainder by its size, and so on upwards. \see MPI-5.0 §5.1.4
  EnvelopeList<int64_t> coordinates;
  for (int i = 0; i < ndims; ++i)
    if (!coordinates.push(0)) return made.no_memory();
  for (int i = ndims - 1, left = rank; i >= 0; --i) {
    coordinates.data[i] = left % psizes[i];
    left /= psizes[i];
  }
  LayoutRef layout = LayoutRef::share(old.layout);
  int64_t stride = old.extent;
  for (int k = 0; k < ndims; ++k) {
    const int i = fastest(k, ndims, order);
    Share share;
    code = share_of(i, gsizes[i], distribs[i], dargs[i], psizes[i], coordinates.data[i], share);
    if (code != MPI_SUCCESS) return code;
    if (!spread(layout, share, stride) || !multiply(stride, gsizes[i])) return made.too_large();
  }
  if (!made.cover(0, layout ? 1 : 0, 0, old)) return made.too_large();
  made.mark(0, stride);
  return made.finish(std::move(layout), result);
}

}  // namespace heddle
