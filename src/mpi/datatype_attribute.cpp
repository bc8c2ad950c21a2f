// Names and attributes of datatypes. MPI-5.0 sections 7.7.4 and 7.8.
#include <cstdio>
#include <cstring>
#include <new>

#include "core/datatype_envelope.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "mpi/datatype.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

int Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                       MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval, void* extra_state) {
  return create_keyval(KeyvalKind::type, reinterpret_cast<void (*)()>(type_copy_attr_fn),
                       reinterpret_cast<void (*)()>(type_delete_attr_fn), extra_state, type_keyval);
}

int Type_free_keyval(int* type_keyval) { return free_keyval(KeyvalKind::type, type_keyval); }

int Type_set_attr(Datatype& datatype, int type_keyval, void* attribute_val) {
  {
    std::lock_guard lock(datatype.mutex);
    if (!datatype.attributes) datatype.attributes.reset(new (std::nothrow) AttributeMap);
    if (!datatype.attributes) return error(MPI_ERR_NO_MEM, "no memory for the attributes of a datatype");
  }
  return set_attribute(attributes_of(datatype), type_keyval, attribute_val);
}

int Type_get_attr(Datatype& datatype, int type_keyval, void* attribute_val, int* flag) {
  AttributeMap none;
  bool any;
  {
    std::lock_guard lock(datatype.mutex);
    any = datatype.attributes != nullptr;
  }
  const AttributeOwner owner{KeyvalKind::type, to_handle(&datatype), any ? *datatype.attributes : none, datatype.mutex};
  return get_attribute(owner, type_keyval, static_cast<void**>(attribute_val), flag);
}

int Type_delete_attr(Datatype& datatype, int type_keyval) {
  AttributeMap none;
  bool any;
  {
    std::lock_guard lock(datatype.mutex);
    any = datatype.attributes != nullptr;
  }
  const AttributeOwner owner{KeyvalKind::type, to_handle(&datatype), any ? *datatype.attributes : none, datatype.mutex};
  return delete_attribute(owner, type_keyval);
}

int Type_set_name(Datatype& datatype, const char* type_name) {
  const std::size_t length = strnlen(type_name, MPI_MAX_OBJECT_NAME - 1);
  char* copy = static_cast<char*>(std::malloc(length + 1));
  if (!copy) return error(MPI_ERR_NO_MEM, "no memory for the name of a datatype");
  std::memcpy(copy, type_name, length);
  copy[length] = 0;
  std::lock_guard lock(datatype.mutex);
  std::free(datatype.name);
  datatype.name = copy;
  return MPI_SUCCESS;
}

int Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  if (datatype == MPI_DATATYPE_NULL) {
    *resultlen = std::snprintf(type_name, MPI_MAX_OBJECT_NAME, "MPI_DATATYPE_NULL");
    return MPI_SUCCESS;
  }
  Datatype* type = resolve<Datatype>(datatype);
  if (!type) return check::bad_type(datatype, "datatype");
  *resultlen = heddle::type_name(*type, type_name);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
