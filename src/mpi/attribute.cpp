// Attributes of communicators, and the ones that the library defines. MPI-5.0 §7.7, §9.1.2
#include "core/attribute.hpp"

#include <cstring>

#include "core/comm.hpp"
#include "core/runtime.hpp"
#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

/// Where the values of the predefined attributes are: MPI_Comm_get_attr returns pointers to them.
struct Predefined {
  int tag_ub = 0x7fffffff;
  int host = MPI_PROC_NULL;
  int io = MPI_ANY_SOURCE;  // every process can do its own
  int wtime_is_global = 0;
  int appnum = 0, universe_size = 0;
  int last_used_code = 0;
} predefined;

const char* predefined_name(int keyval) noexcept {
  switch (keyval) {
    case MPI_TAG_UB: return "MPI_TAG_UB";
    case MPI_HOST: return "MPI_HOST";
    case MPI_IO: return "MPI_IO";
    case MPI_WTIME_IS_GLOBAL: return "MPI_WTIME_IS_GLOBAL";
    case MPI_APPNUM: return "MPI_APPNUM";
    case MPI_UNIVERSE_SIZE: return "MPI_UNIVERSE_SIZE";
    case MPI_LASTUSEDCODE: return "MPI_LASTUSEDCODE";
    default: return nullptr;
  }
}

/// The cell of a predefined attribute, brought up to date; nullptr when the attribute has no value here. Several threads may
/// store the same value at once, hence the atomic stores.
int* predefined_cell(int keyval) noexcept {
  const auto set = [](int& cell, int value) {
    __atomic_store_n(&cell, value, __ATOMIC_RELAXED);
    return &cell;
  };
  switch (keyval) {
    case MPI_TAG_UB: return &predefined.tag_ub;
    case MPI_HOST: return &predefined.host;
    case MPI_IO: return &predefined.io;
    // The clock of MPI_Wtime is the node's.
    case MPI_WTIME_IS_GLOBAL: return set(predefined.wtime_is_global, runtime.local_size == runtime.size);
    case MPI_APPNUM: return runtime.appnum == MPI_UNDEFINED ? nullptr : set(predefined.appnum, runtime.appnum);
    case MPI_UNIVERSE_SIZE:
      return runtime.universe_size == MPI_UNDEFINED ? nullptr : set(predefined.universe_size, runtime.universe_size);
    case MPI_LASTUSEDCODE: return set(predefined.last_used_code, last_used_code());
    default: return nullptr;
  }
}

int refuse_predefined(int keyval) noexcept {
  if (const char* name = predefined_name(keyval))
    return error(MPI_ERR_KEYVAL, "%s is predefined; it can be read only", name);
  return MPI_SUCCESS;
}

}  // namespace

int Comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* del, int* keyval,
                       void* extra_state) {
  return create_keyval(KeyvalKind::comm, reinterpret_cast<void (*)()>(copy), reinterpret_cast<void (*)()>(del),
                       extra_state, keyval);
}

int Comm_free_keyval(int* keyval) {
  if (const int code = refuse_predefined(*keyval)) return code;
  return free_keyval(KeyvalKind::comm, keyval);
}

int Comm_set_attr(Comm& comm, int keyval, void* value) {
  if (const int code = refuse_predefined(keyval)) return code;
  return set_attribute(attributes_of(comm), keyval, value);
}

int Comm_get_attr(Comm& comm, int keyval, void* attribute_val, int* flag) {
  if (predefined_name(keyval)) {
    // The others describe MPI_COMM_WORLD; sessions have MPI_TAG_UB only (MPI-5.0 section 9.1.2).
    int* cell = comm.session && keyval != MPI_TAG_UB ? nullptr : predefined_cell(keyval);
    *flag = cell != nullptr;
    if (cell) std::memcpy(attribute_val, &cell, sizeof cell);
    return MPI_SUCCESS;
  }
  void* value = nullptr;
  const int code = get_attribute(attributes_of(comm), keyval, &value, flag);
  if (!code && *flag) std::memcpy(attribute_val, &value, sizeof value);
  return code;
}

int Win_create_keyval(MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* del, int* keyval, void* extra_state) {
  return create_keyval(KeyvalKind::win, reinterpret_cast<void (*)()>(copy), reinterpret_cast<void (*)()>(del),
                       extra_state, keyval);
}

int Win_free_keyval(int* keyval) { return free_keyval(KeyvalKind::win, keyval); }

int Comm_delete_attr(Comm& comm, int keyval) {
  if (const int code = refuse_predefined(keyval)) return code;
  return delete_attribute(attributes_of(comm), keyval);
}

}  // namespace heddle::mpi
