#include "rma/operations.hpp"

#include <cstring>

#include "core/pieces.hpp"
#include "core/runtime.hpp"
#include "proto/p2p.hpp"
#include "rma/create.hpp"
#include "rma/kernel_copy.hpp"
#include "rma/messages.hpp"
#include "rma/stripes.hpp"
#include "rma/synchronize.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "transport/shm/node.hpp"

namespace heddle::rma {
namespace {

/// Where an operation goes: found out once, before anything moves.
struct Access {
  Target* target = nullptr;
  Path path = Path::messages;
  std::int64_t at = 0;      ///< the displacement in bytes: from the window's beginning, of a dynamic window an address of the target
  std::uint64_t base = 0;   ///< what to add to `at`: to reach the memory here (mapped), or the target's own address (copied)
  std::uint64_t to_owner = 0;  ///< mapped: what to add to an address here to get the owner's

  /// The target's memory; of messages, counted from the window's beginning.
  [[nodiscard]] Buffer buffer(const Place& there) const noexcept { return buffer_at(at + static_cast<std::int64_t>(base), there.count, there.type); }
};

int bad_rank(const Window& window, int rank) noexcept {
  return error(MPI_ERR_RANK, "argument target_rank is %d; the window has ranks 0 to %d (or MPI_PROC_NULL)", rank, window.size - 1);
}

int out_of_range(const Window& window, const Target& target, const Place& there) noexcept {
  return error(MPI_ERR_RMA_RANGE, "displacement %lld (of %lld bytes each) with %lld elements of %lld bytes leaves the window of rank %d, which has %llu bytes; this is rank %d",
               static_cast<long long>(there.displacement), static_cast<long long>(target.unit), static_cast<long long>(there.count), static_cast<long long>(there.type.size),
               there.rank, static_cast<unsigned long long>(target.size), window.rank);
}

int unequal(const Buffer& here, const Place& there) noexcept {
  return error(MPI_ERR_ARG, "%llu bytes at the origin, %llu at the target: both sides must describe the same data", static_cast<unsigned long long>(here.bytes()),
               static_cast<unsigned long long>(there.count) * static_cast<unsigned long long>(there.type.size));
}

/// Of a target of this node: whether all that an operation touches is attached.
bool is_attached(const Target& target, const Buffer& there) noexcept {
  const AttachedMemory& attached = target.exposure->attached;
  const auto holds = [&](std::int64_t at, std::int64_t bytes) {
    return attached.holds(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(bytes),
                          [&](std::uint64_t address, std::uint64_t offset) { return map_of(target.process, address, offset); });
  };
  Pieces<1> pieces({there});
  for (Piece<1> piece; pieces.next_block(piece);)
    if (!holds(piece.at[0], piece.bytes)) return false;
  return true;
}

/// Dynamic windows: any address of the target may come; where its peers can map it, they do.
int locate_dynamic(const Window& window, const Place& there, Access& access) noexcept {
  const Target& target = *access.target;
  if (!target.exposure) return MPI_SUCCESS;  // its process looks
  if (!is_attached(target, buffer_at(access.at, there.count, there.type)))
    return error(MPI_ERR_RMA_RANGE, "%lld elements of %lld bytes at address %p of rank %d are not (all) attached to the dynamic window (MPI_Win_attach); this is rank %d",
                 static_cast<long long>(there.count), static_cast<long long>(there.type.size), reinterpret_cast<void*>(access.at), there.rank, window.rank);
  if (target.process == runtime.self) {
    access.path = Path::mapped;
    return MPI_SUCCESS;
  }
  const std::int64_t steps = there.count > 0 ? (there.count - 1) * there.type.extent : 0;
  const auto first = static_cast<std::uint64_t>(access.at + there.type.true_lb + (steps < 0 ? steps : 0));
  const auto span = static_cast<std::uint64_t>(there.type.true_extent + (steps < 0 ? -steps : steps));
  const std::uint64_t offset = path_policy() == PathPolicy::fastest && target.stripes ? target.exposure->mapping.offset_of(first, span) : 0;
  if (std::byte* const mapped = offset ? map_of(target.process, 0, offset) : nullptr) {
    access.path = Path::mapped;
    access.base = reinterpret_cast<std::uintptr_t>(mapped) - first;
    access.to_owner = first - reinterpret_cast<std::uintptr_t>(mapped);
  } else if (path_policy() != PathPolicy::messages && target.stripes && shm::find(target.process)->cma_works()) {
    access.path = Path::copied;
  }
  return MPI_SUCCESS;
}

int locate(Window& window, const Place& there, Access& access, const char* name) noexcept {
  if (static_cast<unsigned>(there.rank) >= static_cast<unsigned>(window.size)) return bad_rank(window, there.rank);
  Target* target = access.target = target_of(window, there.rank);
  if (!target) return error(MPI_ERR_NO_MEM, "no memory for operations on rank %d", there.rank);
  if (!((window.opened.load(std::memory_order_relaxed) | target->opened.load(std::memory_order_relaxed)) & may_access))
    if (const int code = open_access(window, *target, name)) return code;
  if (__builtin_mul_overflow(there.displacement, target->unit, &access.at)) return out_of_range(window, *target, there);
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return locate_dynamic(window, there, access);
  if (!within(there.type, there.count, access.at, static_cast<std::int64_t>(target->size))) return out_of_range(window, *target, there);
  access.path = target->path;
  if (access.path != Path::messages) access.base = target->base;
  if (access.path == Path::mapped) access.to_owner = target->exposure->base - target->base;
  return MPI_SUCCESS;
}

/// At once if somebody is to be told of it, or it is large; else with others, no later than the next flush.
void copy_by_kernel(Window& window, Target& target, const Buffer& here, const Buffer& there, bool write, bool at_once) noexcept {
  constexpr std::uint64_t most_delayed = 16 << 10;
  if (!at_once && here.bytes() <= most_delayed) return copy_later(window, target, here, there, write);
  KernelCopy copy(target.process, write);
  copy.add(here, there);
}

/// Elements [at, at + n) of the target into `copy`, or back: of pairs the members only, for others may own what lies between them.
void copy_elements(const Target& target, BasicType basic, std::byte* copy, std::uint64_t at, std::uint64_t n, bool write) noexcept {
  const BasicInfo& info = basic_info(basic);
  KernelCopy kernel(target.process, write);
  if (info.size == info.extent) return kernel.add(copy, at, n * info.extent);
  const std::size_t first = basic_info(info.first).size, second = info.size - first;
  for (std::uint64_t i = 0; i < n; ++i) {
    kernel.add(copy + i * info.extent, at + i * info.extent, first);
    kernel.add(copy + i * info.extent + info.second_offset, at + i * info.extent + info.second_offset, second);
  }
}

/// Accumulates into memory that only the kernel reaches: under the locks of its owner, as everybody.
void combine_by_kernel(Target& target, Combination what, const std::byte* from, std::uint64_t to, std::uint64_t n, std::byte* result) noexcept {
  const std::uint64_t each = basic_info(what.basic).extent;
  target.stripes->for_each_chunk(to, n, each, [&](std::uint64_t first, std::uint64_t elements) {
    alignas(64) std::byte copy[sync::StripeLocks::stripe_bytes + 64];
    const std::uint64_t at = first * each;
    if (what.op != OpCode::replace || result) copy_elements(target, what.basic, copy, to + at, elements, false);
    heddle::accumulate(what.op, what.basic, from ? from + at : nullptr, copy, static_cast<std::int64_t>(elements), result ? result + at : nullptr);
    if (what.op != OpCode::no_op) copy_elements(target, what.basic, copy, to + at, elements, true);
  });
}

void accumulate_by_kernel(Target& target, Combination what, const Buffer& here, const Buffer& there, const Buffer* result) noexcept {
  const auto apply = [&](const std::byte* from, std::int64_t to, std::int64_t bytes, std::byte* fetched) {
    combine_by_kernel(target, what, from, static_cast<std::uint64_t>(to), static_cast<std::uint64_t>(bytes) / basic_info(what.basic).extent, fetched);
  };
  if (what.op == OpCode::no_op) {
    if (!result) return;
    Pieces<2> pieces({*result, there}, what.basic);
    for (Piece<2> piece; pieces.next_block(piece);) apply(nullptr, piece.at[1], piece.bytes, piece.pointer(0));
  } else if (!result) {
    Pieces<2> pieces({here, there}, what.basic);
    for (Piece<2> piece; pieces.next_block(piece);) apply(piece.pointer(0), piece.at[1], piece.bytes, nullptr);
  } else {
    Pieces<3> pieces({here, there, *result}, what.basic);
    for (Piece<3> piece; pieces.next_block(piece);) apply(piece.pointer(0), piece.at[1], piece.bytes, piece.pointer(2));
  }
}

/// Operations with requests are for passive targets. \see MPI-5.0 §12.3.5
int check_passive(const Window& window, const Target& target, const char* name) noexcept {
  const unsigned opened = window.opened.load(std::memory_order_relaxed) | target.opened.load(std::memory_order_relaxed);
  if (opened & (opened_by_lock | opened_by_lock_all | locked_on_demand)) return MPI_SUCCESS;
  return error(MPI_ERR_RMA_SYNC, "%s to rank %d in an epoch of fences or of MPI_Win_start: take the call without a request, or open the epoch by MPI_Win_lock(_all)", name, target.rank);
}

int done_at_once(Request** request) noexcept {
  if (request) *request = completed_request();
  return MPI_SUCCESS;
}

}  // namespace

int put_anywhere(Window& window, const Buffer& here, const Place& there, Request** request, const char* name) noexcept {
  if (there.rank == MPI_PROC_NULL) return done_at_once(request);
  Access access;
  if (const int code = locate(window, there, access, name)) return code;
  if (request)
    if (const int code = check_passive(window, *access.target, name)) return code;
  const Buffer to = access.buffer(there);
  if (here.bytes() != to.bytes()) return unequal(here, there);
  switch (access.path) {
    case Path::mapped: copy(here, to); break;
    case Path::copied: copy_by_kernel(window, *access.target, here, to, true, request); break;
    case Path::messages: put(window, *access.target, here, to, request); return MPI_SUCCESS;
  }
  return done_at_once(request);
}

int get_anywhere(Window& window, const Buffer& here, const Place& there, Request** request, const char* name) noexcept {
  if (there.rank == MPI_PROC_NULL) return done_at_once(request);
  Access access;
  if (const int code = locate(window, there, access, name)) return code;
  if (request)
    if (const int code = check_passive(window, *access.target, name)) return code;
  const Buffer from = access.buffer(there);
  if (here.bytes() != from.bytes()) return unequal(here, there);
  switch (access.path) {
    case Path::mapped: copy(from, here); break;
    case Path::copied: copy_by_kernel(window, *access.target, here, from, false, request); break;
    case Path::messages: get(window, *access.target, here, from, request); return MPI_SUCCESS;
  }
  return done_at_once(request);
}

int accumulate(Window& window, const Buffer& here, const Place& there, const Op& op, const Buffer* result, Request** request, const char* name) noexcept {
  if (there.rank == MPI_PROC_NULL) return done_at_once(request);
  Access access;
  if (const int code = locate(window, there, access, name)) return code;
  if (request)
    if (const int code = check_passive(window, *access.target, name)) return code;
  const bool reads_only = op.code == OpCode::no_op;
  if (reads_only && !result) return error(MPI_ERR_OP, "%s cannot use MPI_NO_OP: it is for operations that fetch", name);
  const Buffer& other = reads_only ? *result : here;
  const Buffer to = access.buffer(there);
  // No elements: any predefined operation goes with them, as programs that loop over sizes expect.
  if (to.bytes() || !op.builtin)
    if (const int code = check_accumulate(op, *other.type, there.type)) return code;
  if (other.bytes() != to.bytes()) return unequal(other, there);
  if (result && result->bytes() != to.bytes()) return unequal(*result, there);
  if (!to.bytes()) return done_at_once(request);
  const Combination what{op.code, there.type.basic};
  switch (access.path) {
    case Path::mapped:
      heddle::accumulate(what.op, what.basic, here, to, result, *access.target->stripes, access.to_owner);
      break;
    case Path::copied: accumulate_by_kernel(*access.target, what, here, to, result); break;
    case Path::messages: accumulate(window, *access.target, what, here, to, result, request); return MPI_SUCCESS;
  }
  return done_at_once(request);
}

int compare_and_swap(Window& window, const void* value, const void* compare, void* result, const Place& there) noexcept {
  if (there.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Access access;
  if (const int code = locate(window, there, access, "MPI_Compare_and_swap")) return code;
  if (const int code = check_compare_and_swap(there.type)) return code;
  const BasicType basic = there.type.basic;
  const std::uint64_t place = static_cast<std::uint64_t>(access.at) + access.base;
  Target& target = *access.target;
  switch (access.path) {
    case Path::mapped:
      compare_and_swap(*target.stripes, basic, value, compare, reinterpret_cast<std::byte*>(place), result, access.to_owner);
      break;
    case Path::copied: {
      sync::StripeLock& lock = target.stripes->at(place);
      alignas(32) std::byte copy[32];
      lock.lock();
      copy_elements(target, basic, copy, place, 1, false);
      if (heddle::compare_and_swap(basic, value, compare, copy, result)) copy_elements(target, basic, copy, place, 1, true);
      lock.unlock();
      break;
    }
    case Path::messages: compare_and_swap(window, target, basic, value, compare, result, place); break;
  }
  return MPI_SUCCESS;
}

}  // namespace heddle::rma
