// Windows. MPI-5.0 §12.2, §7.7, §9.3
#include <cstdio>
#include <cstring>

#include "core/info.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "rma/create.hpp"
#include "rma/hints.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

int make(Comm& comm, rma::WindowMemory memory, Info* info, MPI_Win* win, void* baseptr = nullptr) noexcept {
  *win = MPI_WIN_NULL;
  if (comm.inter) return error(MPI_ERR_COMM, "windows are made on intracommunicators; this is an intercommunicator");
  if (memory.bytes < 0) return error(MPI_ERR_SIZE, "argument size is %lld; it must not be negative", static_cast<long long>(memory.bytes));
  if (memory.unit <= 0) return error(MPI_ERR_DISP, "argument disp_unit is %lld; it must be positive", static_cast<long long>(memory.unit));
  if (memory.flavor == MPI_WIN_FLAVOR_CREATE && memory.bytes && !memory.base)
    return error(MPI_ERR_BASE, "argument base is a null pointer with a size of %lld", static_cast<long long>(memory.bytes));
  Window* made = nullptr;
  if (const int code = rma::make_window(comm, memory, info, &made)) return code;
  *win = to_handle(made);
  if (baseptr) std::memcpy(baseptr, &made->base, sizeof made->base);  // declared void*, meant as void**
  return MPI_SUCCESS;
}

bool is_predefined(int keyval) noexcept {
  return keyval == MPI_WIN_BASE || keyval == MPI_WIN_SIZE || keyval == MPI_WIN_DISP_UNIT || keyval == MPI_WIN_CREATE_FLAVOR || keyval == MPI_WIN_MODEL;
}

int refuse_predefined(int keyval) noexcept {
  return is_predefined(keyval) ? error(MPI_ERR_KEYVAL, "the attribute is predefined; it can be read only") : MPI_SUCCESS;
}

}  // namespace

int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm, MPI_Win* win) {
  return make(comm, {MPI_WIN_FLAVOR_CREATE, base, size, disp_unit}, info, win);
}

int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm, void* baseptr, MPI_Win* win) {
  return make(comm, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, disp_unit}, info, win, baseptr);
}

int Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm, void* baseptr, MPI_Win* win) {
  return make(comm, {MPI_WIN_FLAVOR_SHARED, nullptr, size, disp_unit}, info, win, baseptr);
}

int Win_create_dynamic(Info* info, Comm& comm, MPI_Win* win) { return make(comm, {MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1}, info, win); }

int Win_attach(Window& win, void* base, MPI_Aint size) { return rma::attach(win, base, size); }
int Win_detach(Window& win, const void* base) { return rma::detach(win, base); }

int Win_shared_query(Window& win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
  void* base = nullptr;
  if (const int code = rma::shared_query(win, rank, size, disp_unit, &base)) return code;
  std::memcpy(baseptr, &base, sizeof base);
  return MPI_SUCCESS;
}

int Win_free(MPI_Win* win) {
  Window* window = resolve<Window>(*win);
  if (!window) return check::bad_window(*win, "win");
  if (const int code = rma::free_window(*window)) return code;
  *win = MPI_WIN_NULL;
  return MPI_SUCCESS;
}

int Win_get_group(Window& win, MPI_Group* group) {
  Group* made = clone_group(*win.comm->group);
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for a group");
  *group = to_handle(made);
  return MPI_SUCCESS;
}

int Win_set_info(Window& win, Info* info) {
  rma::take_hints(win, info);
  return MPI_SUCCESS;
}

int Win_get_info(Window& win, MPI_Info* info) {
  Info* hints = rma::hints_of(win);
  if (!hints) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  *info = to_handle(hints);
  return MPI_SUCCESS;
}

int Win_set_name(Window& win, const char* name) {
  std::lock_guard lock(win.mutex);
  std::strncpy(win.name, name, sizeof win.name - 1);
  return MPI_SUCCESS;
}

int Win_get_name(MPI_Win win, char* name, int* length) {
  if (win == MPI_WIN_NULL) {
    *length = std::snprintf(name, MPI_MAX_OBJECT_NAME, "MPI_WIN_NULL");
    return MPI_SUCCESS;
  }
  Window* window = resolve<Window>(win);
  if (!window) return check::bad_window(win, "win");
  std::lock_guard lock(window->mutex);
  *length = static_cast<int>(std::strlen(window->name));
  std::memcpy(name, window->name, static_cast<std::size_t>(*length) + 1);
  return MPI_SUCCESS;
}

int Win_set_attr(Window& win, int keyval, void* value) {
  if (const int code = refuse_predefined(keyval)) return code;
  return set_attribute(attributes_of(win), keyval, value);
}

int Win_get_attr(Window& win, int keyval, void* attribute_val, int* flag) {
  void* value = nullptr;
  if (!is_predefined(keyval)) {
    if (const int code = get_attribute(attributes_of(win), keyval, &value, flag)) return code;
    if (*flag) std::memcpy(attribute_val, &value, sizeof value);
    return MPI_SUCCESS;
  }
  switch (keyval) {
    case MPI_WIN_BASE: value = win.base; break;
    case MPI_WIN_SIZE: value = &win.bytes; break;
    case MPI_WIN_DISP_UNIT: value = &win.shown_unit; break;
    case MPI_WIN_CREATE_FLAVOR: value = &win.flavor; break;
    default: value = &win.model; break;
  }
  *flag = 1;
  std::memcpy(attribute_val, &value, sizeof value);
  return MPI_SUCCESS;
}

int Win_delete_attr(Window& win, int keyval) {
  if (const int code = refuse_predefined(keyval)) return code;
  return delete_attribute(attributes_of(win), keyval);
}

int Win_set_errhandler(Window& win, Errhandler& errhandler) {
  if (const int code = check_errhandler(errhandler, Errhandler::Action::win_function)) return code;
  win.errhandler.set(&errhandler);
  return MPI_SUCCESS;
}

int Win_get_errhandler(Window& win, MPI_Errhandler* errhandler) {
  *errhandler = give_errhandler_to_user(win.errhandler.get(errhandler_fatal));
  return MPI_SUCCESS;
}

int Win_call_errhandler(Window& win, int errorcode) {
  raise(&win, errorcode, "MPI_Win_call_errhandler");
  return MPI_SUCCESS;  // whatever the handler did, if it came back. \see MPI-5.0 §9.5
}

}  // namespace heddle::mpi
