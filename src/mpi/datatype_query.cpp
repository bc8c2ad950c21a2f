// What a datatype is: sizes, bounds, how it was made; and how many elements a message holds. MPI-5.0
// sections 3.2.5, 5.1.5 to 5.1.13.
#include <cstring>

#include "core/datatype_envelope.hpp"
#include "core/status.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"

namespace heddle::mpi {
namespace {

/// MPI_Type_get_contents: `n` arguments, for which the user's array has `room`.
template <typename T>
int copy_out(const EnvelopeList<T>& from, MPI_Count room, const char* room_name, T* to, const char* name) noexcept {
  if (from.size > room)
    return error(MPI_ERR_ARG, "%s is %lld but there are %lld; ask MPI_Type_get_envelope", room_name,
                 static_cast<long long>(room), static_cast<long long>(from.size));
  if (const int code = check::array(to, from.size, name); code != MPI_SUCCESS) return code;
  if (from.size) std::memcpy(to, from.data, static_cast<std::size_t>(from.size) * sizeof(T));
  return MPI_SUCCESS;
}

int needs_large_form(const char* function) noexcept {
  return error(MPI_ERR_TYPE, "the datatype was made with MPI_Count arguments, which do not fit int; call %s_c",
               function);
}

}  // namespace

int Type_size(Datatype& datatype, MPI_Count* size) {
  *size = datatype.size;
  return MPI_SUCCESS;
}

int Type_get_extent(Datatype& datatype, MPI_Count* lb, MPI_Count* extent) {
  *lb = datatype.lb;
  *extent = datatype.extent;
  return MPI_SUCCESS;
}

int Type_get_true_extent(Datatype& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  *true_lb = datatype.true_lb;
  *true_extent = datatype.true_extent;
  return MPI_SUCCESS;
}

int Type_get_envelope(Datatype& datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                      MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner, bool large) {
  const DatatypeEnvelope* e = datatype.envelope;
  if (e && e->large && !large) return needs_large_form("MPI_Type_get_envelope");
  *num_integers = e ? e->integers.size : 0;
  *num_addresses = e ? e->addresses.size : 0;
  *num_large_counts = e ? e->counts.size : 0;
  *num_datatypes = e ? e->types.size : 0;
  *combiner = e ? e->combiner : MPI_COMBINER_NAMED;
  return MPI_SUCCESS;
}

int Type_get_contents(Datatype& datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                      MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                      MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[], bool large) {
  const DatatypeEnvelope* e = datatype.envelope;
  if (!e) return error(MPI_ERR_TYPE, "a predefined datatype has no contents; its combiner is MPI_COMBINER_NAMED");
  if (e->large && !large) return needs_large_form("MPI_Type_get_contents");
  int code = copy_out(e->integers, max_integers, "max_integers", array_of_integers, "array_of_integers");
  if (code == MPI_SUCCESS)
    code = copy_out(e->addresses, max_addresses, "max_addresses", array_of_addresses, "array_of_addresses");
  if (code == MPI_SUCCESS)
    code = copy_out(e->counts, max_large_counts, "max_large_counts", array_of_large_counts, "array_of_large_counts");
  if (code == MPI_SUCCESS && e->types.size > max_datatypes)
    code = error(MPI_ERR_ARG, "max_datatypes is %lld but there are %lld; ask MPI_Type_get_envelope",
                 static_cast<long long>(max_datatypes), static_cast<long long>(e->types.size));
  if (code == MPI_SUCCESS) code = check::array(array_of_datatypes, e->types.size, "array_of_datatypes");
  if (code != MPI_SUCCESS) return code;
  for (MPI_Count i = 0; i < e->types.size; ++i) {
    Datatype& type = *e->types.data[i];
    if (!type.builtin) {  // a further handle of the same object: the user frees it like any other
      std::lock_guard lock(type.mutex);
      ++type.handles;
      retain(type);
    }
    array_of_datatypes[i] = to_handle(&type);
  }
  return MPI_SUCCESS;
}

int Get_count(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  const MPI_Count bytes = status_bytes(*status);
  if (bytes == 0)
    *count = 0;
  else
    *count = datatype.size == 0 || bytes % datatype.size ? MPI_UNDEFINED : bytes / datatype.size;
  return MPI_SUCCESS;
}

int Get_elements(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  *count = basic_elements(datatype, status_bytes(*status));
  return MPI_SUCCESS;
}

int Status_set_elements(MPI_Status* status, Datatype& datatype, MPI_Count count) {
  const MPI_Count bytes = bytes_of_elements(datatype, count);
  if (bytes < 0)
    return error(MPI_ERR_COUNT,
                 "argument count is %lld; a message of datatype of %lld bytes cannot hold so many basic elements",
                 static_cast<long long>(count), static_cast<long long>(datatype.size));
  set_status_bytes(*status, bytes);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
