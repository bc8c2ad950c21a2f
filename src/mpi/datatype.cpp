// Making, committing, duplicating and freeing datatypes. MPI-5.0 sections 5.1.2 to 5.1.10.
#include <cstdio>
#include <new>

#include "core/attribute.hpp"
#include "core/datatype_envelope.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "mpi/datatype.hpp"

namespace heddle::mpi {
namespace {

/// Hands a new type to the user. By reference: `made` is set while the other argument is evaluated.
int give(int code, Datatype*& made, MPI_Datatype* handle) noexcept {
  if (code == MPI_SUCCESS) *handle = to_handle(made);
  return code;
}

int no_such_type(MPI_Datatype handle) noexcept { return check::bad_type(handle, "datatype"); }

}  // namespace

int Type_contiguous(MPI_Count count, Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_contiguous(count, oldtype, large, made), made, newtype);
}

int Type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype, MPI_Datatype* newtype,
                bool large) {
  Datatype* made = nullptr;
  return give(make_vector(count, blocklength, stride, oldtype, large, made), made, newtype);
}

int Type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype,
                        MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_hvector(count, blocklength, stride, oldtype, large, made), made, newtype);
}

int Type_indexed(MPI_Count count, CountArray array_of_blocklengths, CountArray array_of_displacements,
                 Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_indexed(count, array_of_blocklengths, array_of_displacements, oldtype, large, made), made, newtype);
}

int Type_create_hindexed(MPI_Count count, CountArray array_of_blocklengths, CountArray array_of_displacements,
                         Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, large, made), made, newtype);
}

int Type_create_indexed_block(MPI_Count count, MPI_Count blocklength, CountArray array_of_displacements,
                              Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_indexed_block(count, blocklength, array_of_displacements, oldtype, large, made), made, newtype);
}

int Type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, CountArray array_of_displacements,
                               Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_hindexed_block(count, blocklength, array_of_displacements, oldtype, large, made), made, newtype);
}

int Type_create_struct(MPI_Count count, CountArray array_of_blocklengths, CountArray array_of_displacements,
                       const MPI_Datatype array_of_types[], MPI_Datatype* newtype, bool large) {
  if (const int code = check::array(array_of_types, count, "array_of_types"); code != MPI_SUCCESS) return code;
  EnvelopeList<Datatype*> types;
  for (MPI_Count i = 0; i < count; ++i) {
    Datatype* type = resolve<Datatype>(array_of_types[i]);
    if (!type) {
      char name[48];
      std::snprintf(name, sizeof name, "array_of_types[%lld]", static_cast<long long>(i));
      return check::bad_type(array_of_types[i], name);
    }
    if (!types.push(type)) return error(MPI_ERR_NO_MEM, "no memory for the description of a datatype");
  }
  Datatype* made = nullptr;
  return give(make_struct(count, array_of_blocklengths, array_of_displacements, types.data, large, made), made,
              newtype);
}

int Type_create_subarray(int ndims, CountArray array_of_sizes, CountArray array_of_subsizes, CountArray array_of_starts,
                         int order, Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, large, made),
              made, newtype);
}

int Type_create_darray(int size, int rank, int ndims, CountArray array_of_gsizes, const int array_of_distribs[],
                       const int array_of_dargs[], const int array_of_psizes[], int order, Datatype& oldtype,
                       MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_darray(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order,
                          oldtype, large, made),
              made, newtype);
}

int Type_create_resized(Datatype& oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype, bool large) {
  Datatype* made = nullptr;
  return give(make_resized(oldtype, lb, extent, large, made), made, newtype);
}

int Type_dup(Datatype& oldtype, MPI_Datatype* newtype) {
  Datatype* made = nullptr;
  if (const int code = make_dup(oldtype, made); code != MPI_SUCCESS) return code;
  if (oldtype.attributes) {
    made->attributes.reset(new (std::nothrow) AttributeMap);
    int code = made->attributes ? copy_attributes(attributes_of(oldtype), *made->attributes)
                                : error(MPI_ERR_NO_MEM, "no memory for the attributes of a datatype");
    if (code != MPI_SUCCESS) {
      (void)delete_all_attributes(attributes_of(*made));
      release(*made);
      return code;
    }
  }
  *newtype = to_handle(made);
  return MPI_SUCCESS;
}

int Type_commit(MPI_Datatype* datatype) {
  Datatype* type = resolve<Datatype>(*datatype);
  return type ? commit(*type) : no_such_type(*datatype);
}

int Type_free(MPI_Datatype* datatype) {
  Datatype* type = resolve<Datatype>(*datatype);
  if (!type) return no_such_type(*datatype);
  if (type->builtin) {
    char name[MPI_MAX_OBJECT_NAME];
    type_name(*type, name);
    return error(MPI_ERR_TYPE, "%s is a predefined datatype and cannot be freed",
                 name[0] ? name : "a type of MPI_Type_create_f90_…");
  }
  bool last;
  {
    std::lock_guard lock(type->mutex);
    if (type->handles == 0)
      return error(MPI_ERR_TYPE, "argument datatype (%p) was freed already; only the library still uses it",
                   static_cast<void*>(*datatype));
    last = type->handles == 1;
    if (!last) --type->handles;
  }
  if (last) {
    if (type->attributes)
      if (const int code = delete_all_attributes(attributes_of(*type)); code != MPI_SUCCESS) return code;
    std::lock_guard lock(type->mutex);
    type->handles = 0;
  }
  release(*type);
  *datatype = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
