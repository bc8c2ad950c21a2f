// The constructors of derived datatypes, but for those that describe arrays (datatype_array.cpp).
#include <algorithm>
#include <new>

#include "core/datatype_envelope.hpp"
#include "core/datatype_layout.hpp"
#include "core/datatype_new.hpp"
#include "sys/error.hpp"

namespace heddle {

using detail::NewType;
using std::int64_t;

namespace detail {

NewType::NewType(int combiner, bool large) noexcept : type_(pool<Datatype>().create()) {
  if (!type_) return;
  type_->envelope = new (std::nothrow) DatatypeEnvelope(combiner, large);
  if (!type_->envelope) {
    heddle::release(*type_);
    type_ = nullptr;
  }
}

NewType::~NewType() {
  if (type_) heddle::release(*type_);
}

bool NewType::cover(int64_t displacement, int64_t count, int64_t stride, const Datatype& old) noexcept {
  if (count == 0) return true;
  if (old.layout) {
    basic_ = covered_data_ && basic_ != old.basic ? BasicType{0} : old.basic;
    covered_data_ = true;
    alignment_ = std::max(alignment_, old.alignment);
  }
  int64_t reach, lb, ub;
  if (__builtin_mul_overflow(count - 1, stride, &reach) || __builtin_add_overflow(displacement, old.lb, &lb) ||
      __builtin_add_overflow(lb, old.extent, &ub) || __builtin_add_overflow(lb, std::min<int64_t>(0, reach), &lb) ||
      __builtin_add_overflow(ub, std::max<int64_t>(0, reach), &ub))
    return false;
  if (!old.marked) {
    if (old.layout) padded_ub_ = std::max(padded_ub_, ub);
    return true;
  }
  lb_ = marked_ ? std::min(lb_, lb) : lb;
  ub_ = marked_ ? std::max(ub_, ub) : ub;
  marked_ = true;
  return true;
}

int NewType::finish(LayoutRef layout, Datatype*& result) noexcept {
  Datatype& t = *type_;
  if (layout) {
    t.size = layout->size;
    t.true_lb = layout->low;
    if (__builtin_sub_overflow(layout->high, layout->low, &t.true_extent)) return too_large();
  }
  t.basic = basic_;
  t.alignment = alignment_;
  t.marked = marked_;
  if (marked_) {
    t.lb = lb_;
    if (__builtin_sub_overflow(ub_, lb_, &t.extent)) return too_large();
  } else {
    // The extent is padded as in an array of C structures (MPI-5.0 §5.1, definition of ub), and the padding of an
    // element belongs to the whole: bounds computed from the element's extent, as users do, stay inside.
    t.lb = t.true_lb;
    int64_t padded = t.true_extent;
    if (layout && padded_ub_ > layout->high && __builtin_sub_overflow(padded_ub_, t.lb, &padded)) return too_large();
    if (__builtin_add_overflow(padded, alignment_ - 1, &padded)) return too_large();
    t.extent = padded - padded % alignment_;
  }
  t.layout = layout.take();
  result = type_;
  type_ = nullptr;
  return MPI_SUCCESS;
}

int NewType::too_large() noexcept {
  return error(MPI_ERR_ARG,
               "the datatype would reach beyond 2^63-1 bytes: its size, extent or a displacement does not fit");
}
int NewType::no_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for the description of a datatype"); }

}  // namespace detail

namespace {

int check_count(MPI_Count n, const char* name) noexcept {
  if (n >= 0) return MPI_SUCCESS;
  return error(MPI_ERR_COUNT, "%s is %lld; it must not be negative", name, static_cast<long long>(n));
}

int check_lengths(MPI_Count n, CountArray lengths, const char* name) noexcept {
  if (n > 0 && lengths.is_null())
    return error(MPI_ERR_ARG, "%s is null though there are %lld blocks", name, static_cast<long long>(n));
  for (MPI_Count i = 0; i < n; ++i)
    if (lengths[i] < 0)
      return error(MPI_ERR_COUNT, "%s[%lld] is %lld; a block length must not be negative", name,
                   static_cast<long long>(i), static_cast<long long>(lengths[i]));
  return MPI_SUCCESS;
}

int check_displacements(MPI_Count n, CountArray displacements) noexcept {
  if (n == 0 || !displacements.is_null()) return MPI_SUCCESS;
  return error(MPI_ERR_ARG, "array_of_displacements is null though there are %lld blocks", static_cast<long long>(n));
}

/// `count` blocks, `stride` bytes apart, of `blocklength` elements: contiguous, vector, hvector.
int finish_strided(NewType& made, MPI_Count count, MPI_Count blocklength, int64_t stride, Datatype& old,
                   Datatype*& result) noexcept {
  LayoutRef block, layout;
  if (!make_loop(old.layout, blocklength, old.extent, block) || !make_loop(block.get(), count, stride, layout))
    return made.too_large();
  if (count > 0 && blocklength > 0) {
    // Bounds: the corners of the two loops.
    int64_t last;
    if (__builtin_mul_overflow(count - 1, stride, &last) || !made.cover(0, blocklength, old.extent, old) ||
        !made.cover(last, blocklength, old.extent, old))
      return made.too_large();
  }
  return made.finish(std::move(layout), result);
}

/// Blocks of listed or common length at listed displacements, `unit` bytes each.
int finish_listed(NewType& made, MPI_Count count, CountArray lengths, MPI_Count blocklength, CountArray displacements,
                  int64_t unit, Datatype& old, Datatype*& result) noexcept {
  SequenceBuilder blocks(true);
  for (MPI_Count i = 0; i < count; ++i) {
    const MPI_Count n = lengths.is_null() ? blocklength : lengths[i];
    int64_t at;
    if (__builtin_mul_overflow(displacements[i], unit, &at) || !made.cover(at, n, old.extent, old) ||
        !blocks.add(at, n, old.extent, old.layout))
      return made.too_large();
  }
  LayoutRef layout;
  if (!blocks.finish(layout)) return made.no_memory();
  return made.finish(std::move(layout), result);
}

/// The common part of the four indexed constructors.
int make_listed(int combiner, MPI_Count count, CountArray lengths, MPI_Count blocklength, CountArray displacements,
                bool in_bytes, Datatype& old, bool large, Datatype*& result) noexcept {
  const bool listed_lengths = combiner == MPI_COMBINER_INDEXED || combiner == MPI_COMBINER_HINDEXED;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS)
    code = listed_lengths ? check_lengths(count, lengths, "array_of_blocklengths")
                          : check_count(blocklength, "blocklength");
  if (code == MPI_SUCCESS) code = check_displacements(count, displacements);
  if (code != MPI_SUCCESS) return code;

  NewType made(combiner, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  bool ok = e.add_count(count);
  if (listed_lengths)
    for (MPI_Count i = 0; ok && i < count; ++i) ok = e.add_count(lengths[i]);
  else
    ok = ok && e.add_count(blocklength);
  for (MPI_Count i = 0; ok && i < count; ++i)
    ok = in_bytes ? e.add_address(displacements[i]) : e.add_count(displacements[i]);
  if (!ok || !e.add_type(old)) return made.no_memory();
  return finish_listed(made, count, listed_lengths ? lengths : CountArray(), blocklength, displacements,
                       in_bytes ? 1 : old.extent, old, result);
}

}  // namespace

int make_contiguous(MPI_Count count, Datatype& old, bool large, Datatype*& result) noexcept {
  if (const int code = check_count(count, "count"); code != MPI_SUCCESS) return code;
  NewType made(MPI_COMBINER_CONTIGUOUS, large);
  if (!made.ok() || !made.envelope().add_count(count) || !made.envelope().add_type(old)) return made.no_memory();
  return finish_strided(made, 1, count, 0, old, result);
}

int make_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& old, bool large,
                Datatype*& result) noexcept {
  if (const int code = check_count(count, "count"); code != MPI_SUCCESS) return code;
  if (const int code = check_count(blocklength, "blocklength"); code != MPI_SUCCESS) return code;
  NewType made(MPI_COMBINER_VECTOR, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  if (!e.add_count(count) || !e.add_count(blocklength) || !e.add_count(stride) || !e.add_type(old))
    return made.no_memory();
  int64_t bytes = 0;
  if (count > 1 && __builtin_mul_overflow(stride, old.extent, &bytes)) return made.too_large();
  return finish_strided(made, count, blocklength, bytes, old, result);
}

int make_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& old, bool large,
                 Datatype*& result) noexcept {
  if (const int code = check_count(count, "count"); code != MPI_SUCCESS) return code;
  if (const int code = check_count(blocklength, "blocklength"); code != MPI_SUCCESS) return code;
  NewType made(MPI_COMBINER_HVECTOR, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  if (!e.add_count(count) || !e.add_count(blocklength) || !e.add_address(stride) || !e.add_type(old))
    return made.no_memory();
  return finish_strided(made, count, blocklength, stride, old, result);
}

int make_indexed(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype& old, bool large,
                 Datatype*& result) noexcept {
  return make_listed(MPI_COMBINER_INDEXED, count, blocklengths, 0, displacements, false, old, large, result);
}

int make_hindexed(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype& old, bool large,
                  Datatype*& result) noexcept {
  return make_listed(MPI_COMBINER_HINDEXED, count, blocklengths, 0, displacements, true, old, large, result);
}

int make_indexed_block(MPI_Count count, MPI_Count blocklength, CountArray displacements, Datatype& old, bool large,
                       Datatype*& result) noexcept {
  return make_listed(MPI_COMBINER_INDEXED_BLOCK, count, CountArray(), blocklength, displacements, false, old, large,
                     result);
}

int make_hindexed_block(MPI_Count count, MPI_Count blocklength, CountArray displacements, Datatype& old, bool large,
                        Datatype*& result) noexcept {
  return make_listed(MPI_COMBINER_HINDEXED_BLOCK, count, CountArray(), blocklength, displacements, true, old, large,
                     result);
}

int make_struct(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype* const* types, bool large,
                Datatype*& result) noexcept {
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) code = check_lengths(count, blocklengths, "array_of_blocklengths");
  if (code == MPI_SUCCESS) code = check_displacements(count, displacements);
  if (code != MPI_SUCCESS) return code;

  NewType made(MPI_COMBINER_STRUCT, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  bool ok = e.add_count(count);
  for (MPI_Count i = 0; ok && i < count; ++i) ok = e.add_count(blocklengths[i]);
  for (MPI_Count i = 0; ok && i < count; ++i) ok = e.add_address(displacements[i]);
  for (MPI_Count i = 0; ok && i < count; ++i) ok = e.add_type(*types[i]);
  if (!ok) return made.no_memory();

  SequenceBuilder members(true);
  for (MPI_Count i = 0; i < count; ++i) {
    const Datatype& old = *types[i];
    if (!made.cover(displacements[i], blocklengths[i], old.extent, old) ||
        !members.add(displacements[i], blocklengths[i], old.extent, old.layout))
      return made.too_large();
  }
  LayoutRef layout;
  if (!members.finish(layout)) return made.no_memory();
  return made.finish(std::move(layout), result);
}

int make_resized(Datatype& old, MPI_Count lb, MPI_Count extent, bool large, Datatype*& result) noexcept {
  NewType made(MPI_COMBINER_RESIZED, large);
  if (!made.ok()) return made.no_memory();
  DatatypeEnvelope& e = made.envelope();
  if (!e.add_address(lb) || !e.add_address(extent) || !e.add_type(old)) return made.no_memory();
  int64_t ub;
  if (__builtin_add_overflow(lb, extent, &ub)) return made.too_large();
  (void)made.cover(0, 1, 0, old);
  made.mark(lb, ub);
  return made.finish(LayoutRef::share(old.layout), result);
}

int make_dup(Datatype& old, Datatype*& result) noexcept {
  NewType made(MPI_COMBINER_DUP, false);
  if (!made.ok() || !made.envelope().add_type(old)) return made.no_memory();
  (void)made.cover(0, 1, 0, old);
  made.mark(old.lb, old.lb + old.extent);
  if (const int code = made.finish(LayoutRef::share(old.layout), result); code != MPI_SUCCESS) return code;
  result->marked = old.marked;
  if (!old.committed) return MPI_SUCCESS;
  const int code = commit(*result);
  if (code != MPI_SUCCESS) release(*result);
  return code;
}

}  // namespace heddle
