// The tool information interface: its life, enumerations, and the library's parameters as control variables. MPI-5.0 §15.3.
#include "mpi/mpit.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

#include "core/runtime.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/mistakes.hpp"
#include "sys/params.hpp"

namespace heddle::mpi {
namespace {

using sys::Param;
using sys::ParamType;

std::atomic<int> users{0};  // MPI_T_init_thread calls not yet matched by MPI_T_finalize

/// The only enumeration: the values of yes/no parameters. Its handle is its address.
const char* const answers[] = {"no", "yes"};
const MPI_T_enum yes_no = reinterpret_cast<MPI_T_enum>(const_cast<const char**>(answers));

/// Parameters keep their number for the life of the process: the list only grows at its end.
const Param* parameter(int index) noexcept {
  if (index < 0) return nullptr;
  const Param* p = Param::first();
  while (p && index-- > 0) p = p->next();
  return p;
}

/// A handle is the variable's number plus one, so that a stale or foreign one is refused and never followed.
MPI_T_cvar_handle handle_of(int index) noexcept {
  return reinterpret_cast<MPI_T_cvar_handle>(static_cast<std::uintptr_t>(index) + 1);
}
const Param* variable(MPI_T_cvar_handle handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value == 0 || value > INT_MAX ? nullptr : parameter(static_cast<int>(value - 1));
}

MPI_Datatype type_of(const Param& p) noexcept {
  switch (p.type()) {
    case ParamType::boolean:
    case ParamType::integer: return MPI_INT;
    case ParamType::size: return MPI_COUNT;
    case ParamType::text: return MPI_CHAR;
  }
  return MPI_DATATYPE_NULL;
}

}  // namespace

int tools_ready() noexcept {
  return users.load(std::memory_order_relaxed) > 0 ? MPI_SUCCESS : MPI_T_ERR_NOT_INITIALIZED;
}

void give_text(const char* text, char* buffer, int* length) noexcept {
  if (!length) return;
  const int needed = static_cast<int>(std::strlen(text)) + 1;
  if (buffer && *length > 0) {
    const int n = std::min(needed, *length) - 1;
    std::memcpy(buffer, text, static_cast<std::size_t>(n));
    buffer[n] = '\0';
  }
  *length = needed;
}

int T_init_thread(int, int* provided) {
  // `heddle info` and the like. In a job it is rank 0 that says it, and MPI_Init.
  static const bool said = [] {
    if (!sys::bootstrap::has_launcher()) sys::report_mistakes(true);
    return true;
  }();
  (void)said;
  users.fetch_add(1, std::memory_order_relaxed);
  give(provided, static_cast<int>(MPI_THREAD_MULTIPLE));
  return MPI_SUCCESS;
}

int T_finalize() {
  int now = users.load(std::memory_order_relaxed);
  do
    if (now == 0) return MPI_T_ERR_NOT_INITIALIZED;
  while (!users.compare_exchange_weak(now, now - 1, std::memory_order_relaxed));
  return MPI_SUCCESS;
}

// --- enumerations --------------------------------------------------------------------------------------------------
int T_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) {
  if (const int code = tools_ready()) return code;
  if (enumtype != yes_no) return MPI_T_ERR_INVALID_HANDLE;
  give(num, 2);
  give_text("yes_no", name, name_len);
  return MPI_SUCCESS;
}

int T_enum_get_item(MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len) {
  if (const int code = tools_ready()) return code;
  if (enumtype != yes_no) return MPI_T_ERR_INVALID_HANDLE;
  if (indx < 0 || indx > 1) return MPI_T_ERR_INVALID_INDEX;
  give(value, indx);
  give_text(answers[indx], name, name_len);
  return MPI_SUCCESS;
}

// --- control variables ---------------------------------------------------------------------------------------------
int T_cvar_get_num(int* num_cvar) {
  if (const int code = tools_ready()) return code;
  if (!num_cvar) return MPI_T_ERR_INVALID;
  *num_cvar = 0;
  for (const Param* p = Param::first(); p; p = p->next()) ++*num_cvar;
  return MPI_SUCCESS;
}

int T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype, MPI_T_enum* enumtype,
                    char* desc, int* desc_len, int* bind, int* scope) {
  if (const int code = tools_ready()) return code;
  const Param* p = parameter(cvar_index);
  if (!p) return MPI_T_ERR_INVALID_INDEX;
  give_text(p->name(), name, name_len);
  give(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_BASIC));
  give(datatype, type_of(*p));
  give(enumtype, p->type() == ParamType::boolean ? yes_no : MPI_T_ENUM_NULL);
  give_text(p->help(), desc, desc_len);
  give(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
  give(scope, static_cast<int>(p->type() == ParamType::text ? MPI_T_SCOPE_READONLY
                               : p->is_alike()              ? MPI_T_SCOPE_ALL_EQ
                                                            : MPI_T_SCOPE_LOCAL));
  return MPI_SUCCESS;
}

int T_cvar_get_index(const char* name, int* cvar_index) {
  if (const int code = tools_ready()) return code;
  if (!name || !cvar_index) return MPI_T_ERR_INVALID;
  int index = 0;
  for (const Param* p = Param::first(); p; p = p->next(), ++index)
    if (std::strcmp(p->name(), name) == 0) {
      *cvar_index = index;
      return MPI_SUCCESS;
    }
  return MPI_T_ERR_INVALID_NAME;
}

int T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  if (const int code = tools_ready()) return code;
  const Param* p = parameter(cvar_index);
  if (!p) return MPI_T_ERR_INVALID_INDEX;
  if (!handle || !count) return MPI_T_ERR_INVALID;
  *handle = handle_of(cvar_index);
  // Text never changes once the library is loaded, so its length is the number of elements.
  *count = p->type() == ParamType::text ? static_cast<int>(p->text() ? std::strlen(p->text()) : 0) + 1 : 1;
  return MPI_SUCCESS;
}

int T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  if (const int code = tools_ready()) return code;
  if (!handle || !variable(*handle)) return MPI_T_ERR_INVALID_HANDLE;
  *handle = MPI_T_CVAR_HANDLE_NULL;
  return MPI_SUCCESS;
}

int T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  if (const int code = tools_ready()) return code;
  const Param* p = variable(handle);
  if (!p) return MPI_T_ERR_INVALID_HANDLE;
  if (!buf) return MPI_T_ERR_INVALID;
  switch (p->type()) {
    case ParamType::boolean:
    case ParamType::integer: {
      const int value = static_cast<int>(std::clamp<std::int64_t>(p->value(), INT_MIN, INT_MAX));
      std::memcpy(buf, &value, sizeof value);
      break;
    }
    case ParamType::size: {
      const MPI_Count value = p->value();
      std::memcpy(buf, &value, sizeof value);
      break;
    }
    case ParamType::text: {
      const char* text = p->text() ? p->text() : "";
      std::memcpy(buf, text, std::strlen(text) + 1);
      break;
    }
  }
  return MPI_SUCCESS;
}

/// Parameters are read when the library starts, so they can be set before MPI_Init (and before the first session) only.
int T_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
  if (const int code = tools_ready()) return code;
  const Param* p = variable(handle);
  if (!p) return MPI_T_ERR_INVALID_HANDLE;
  if (!buf) return MPI_T_ERR_INVALID;
  if (p->type() == ParamType::text) return MPI_T_ERR_CVAR_SET_NEVER;
  if (world_phase() != Phase::before_init || is_running()) return MPI_T_ERR_CVAR_SET_NOT_NOW;
  MPI_Count value = 0;
  if (p->type() == ParamType::size) {
    std::memcpy(&value, buf, sizeof value);
  } else {
    int number = 0;
    std::memcpy(&number, buf, sizeof number);
    value = p->type() == ParamType::boolean ? number != 0 : number;
  }
  if (value < p->range().low || value > p->range().high) return MPI_T_ERR_INVALID;
  const_cast<Param*>(p)->set(value);  // the list is const for everyone who only looks
  check::read_parameters();
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
