// Datatypes found by a description: Fortran kinds, sizes, pairs. MPI-5.0 sections 5.1.11, 6.9.4 and 19.1.9.
#include <new>

#include "core/datatype_envelope.hpp"
#include "core/datatype_layout.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"

namespace heddle::mpi {
namespace {

/// A Fortran kind: decimal precision and range, and the predefined type of that kind.
struct FortranKind {
  int precision, range;
  MPI_Datatype type;
};

constexpr int unlimited = 1 << 30;

MPI_Datatype find_kind(const FortranKind* kinds, std::size_t n, int precision, int range) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    if (precision <= kinds[i].precision && range <= kinds[i].range) return kinds[i].type;
  return MPI_DATATYPE_NULL;
}

/// The types that the three functions below have given out: equal arguments get equal handles, for ever.
struct F90Cache {
  struct Entry {
    int combiner, p, r;
    Datatype* type;
  };
  std::mutex mutex;
  EnvelopeList<Entry> entries;
};

F90Cache& f90_cache() noexcept {
  static F90Cache* const cache = new (std::nothrow) F90Cache;  // never destroyed: its types are predefined
  return *cache;
}

/// The predefined type with `combiner` and these arguments; it behaves like `like`.
int give_f90(int combiner, int p, int r, MPI_Datatype like, MPI_Datatype* newtype) noexcept {
  F90Cache& cache = f90_cache();
  std::lock_guard lock(cache.mutex);
  for (std::int64_t i = 0; i < cache.entries.size; ++i) {
    const F90Cache::Entry& e = cache.entries.data[i];
    if (e.combiner == combiner && e.p == p && e.r == r) {
      *newtype = to_handle(e.type);
      return MPI_SUCCESS;
    }
  }
  Datatype* type = pool<Datatype>().create();
  auto* envelope = new (std::nothrow) DatatypeEnvelope(combiner, false);
  bool ok = type && envelope;
  if (ok && combiner != MPI_COMBINER_F90_INTEGER) ok = envelope->add_integer(p);
  ok = ok && envelope->add_integer(r) && cache.entries.push({combiner, p, r, type});
  if (!ok) {
    delete envelope;
    if (type) pool<Datatype>().destroy(type);
    return error(MPI_ERR_NO_MEM, "no memory for a datatype");
  }
  const Datatype& model = *resolve<Datatype>(like);
  type->size = model.size;
  type->extent = model.extent;
  type->true_extent = model.true_extent;
  type->basic = model.basic;
  type->alignment = model.alignment;
  type->layout = LayoutRef::share(model.layout).take();
  type->envelope = envelope;
  type->builtin = true;
  if (const int code = commit(*type); code != MPI_SUCCESS) return code;
  *newtype = to_handle(type);
  return MPI_SUCCESS;
}

int no_kind(const char* what, int p, int r) noexcept {
  return error(MPI_ERR_ARG, "no Fortran %s kind has decimal precision %d and range %d", what, p, r);
}

/// What MPI_UNDEFINED means for precision or range: nothing is asked.
int asked(int value) noexcept { return value == MPI_UNDEFINED ? 0 : value; }

}  // namespace

int Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  // Precision 16 to 18 is what SELECTED_REAL_KIND answers with the x87 kind, 10, in gfortran and LLVM's flang.
  static const FortranKind kinds[] = {
      {6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {18, 4931, MPI_LONG_DOUBLE}, {33, 4931, MPI_REAL16}};
  if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) return no_kind("real", p, r);
  const MPI_Datatype like = find_kind(kinds, std::size(kinds), asked(p), asked(r));
  return like == MPI_DATATYPE_NULL ? no_kind("real", p, r) : give_f90(MPI_COMBINER_F90_REAL, p, r, like, newtype);
}

int Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  static const FortranKind kinds[] = {{6, 37, MPI_COMPLEX8},
                                      {15, 307, MPI_COMPLEX16},
                                      {18, 4931, MPI_C_LONG_DOUBLE_COMPLEX},
                                      {33, 4931, MPI_COMPLEX32}};
  if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) return no_kind("complex", p, r);
  const MPI_Datatype like = find_kind(kinds, std::size(kinds), asked(p), asked(r));
  return like == MPI_DATATYPE_NULL ? no_kind("complex", p, r) : give_f90(MPI_COMBINER_F90_COMPLEX, p, r, like, newtype);
}

int Type_create_f90_integer(int r, MPI_Datatype* newtype) {
  static const FortranKind kinds[] = {{unlimited, 2, MPI_INTEGER1},
                                      {unlimited, 4, MPI_INTEGER2},
                                      {unlimited, 9, MPI_INTEGER4},
                                      {unlimited, 18, MPI_INTEGER8},
                                      {unlimited, 38, MPI_INTEGER16}};
  const MPI_Datatype like = find_kind(kinds, std::size(kinds), 0, r);
  if (like == MPI_DATATYPE_NULL) return error(MPI_ERR_ARG, "no Fortran integer kind has decimal range %d", r);
  return give_f90(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, like, newtype);
}

int Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  static const MPI_Datatype integers[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16};
  static const MPI_Datatype reals[] = {MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16};
  static const MPI_Datatype complexes[] = {MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32};
  const auto find = [&](const auto& list, const char* name) {
    for (const MPI_Datatype handle : list) {
      if (resolve<Datatype>(handle)->size != size) continue;
      *datatype = handle;
      return static_cast<int>(MPI_SUCCESS);
    }
    return error(MPI_ERR_ARG, "there is no %s datatype of %d bytes", name, size);
  };
  switch (typeclass) {
    case MPI_TYPECLASS_INTEGER:
      return find(integers, "integer");
    case MPI_TYPECLASS_REAL:
      return find(reals, "real");
    case MPI_TYPECLASS_COMPLEX:
      return find(complexes, "complex");
    default:
      return error(MPI_ERR_ARG, "typeclass is %d; it must be MPI_TYPECLASS_INTEGER, _REAL or _COMPLEX", typeclass);
  }
}

int Type_get_value_index(Datatype& value_type, Datatype& index_type, MPI_Datatype* pair_type) {
  *pair_type = MPI_DATATYPE_NULL;
  if (!value_type.predefined_value || !index_type.predefined_value) return MPI_SUCCESS;
  for (const BasicInfo& info : basic_types)
    if (info.is_pair() && info.first == value_type.basic && info.second == index_type.basic)
      *pair_type = to_handle(&builtin_datatypes[info.value]);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
