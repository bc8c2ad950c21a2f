#include "sys/error.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace heddle {
namespace {

constexpr int detailed = 0x40000000;
constexpr int class_bits = 7;
constexpr int class_mask = (1 << class_bits) - 1;
constexpr unsigned sequence_mask = (1U << 23) - 1;
constexpr unsigned kept = 256;

struct Text {
  unsigned sequence = 0;  ///< 0: empty
  char text[MPI_MAX_ERROR_STRING];
};

std::mutex mutex;
Text texts[kept];
unsigned next_sequence = 1;

struct ClassName {
  int value;
  const char *name, *text;
};

constexpr ClassName class_names[] = {
    {MPI_SUCCESS, "MPI_SUCCESS", "no error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "invalid buffer pointer"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "invalid count argument"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "invalid datatype argument"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "invalid tag argument"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "invalid communicator"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "invalid rank"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "invalid request handle"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "invalid root"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "invalid group"},
    {MPI_ERR_OP, "MPI_ERR_OP", "invalid operation"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "invalid topology"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "invalid dimension argument"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "invalid argument"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "unknown error"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "message truncated on receive"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "error of no other class"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "internal error"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "operation still pending"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "the error code is in the status"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "invalid file access mode"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "invalid assertion argument"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "invalid file name"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "invalid base address"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "data conversion failed"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "invalid displacement"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "data representation already defined"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "file exists"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "file is in use"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "invalid file handle"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "info key too long or empty"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "info key not present"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "info value too long"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "invalid info object"},
    {MPI_ERR_IO, "MPI_ERR_IO", "input or output error"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "invalid key value"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "invalid lock type"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "service name not published"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "memory exhausted"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "collective argument not the same on all processes"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "not enough space"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "no such file"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "invalid port name"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "quota exceeded"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "read-only file or file system"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "wrong synchronization of one-sided calls"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "invalid service name"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "invalid size argument"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes could not be spawned"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "unsupported data representation"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "invalid window"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "target memory is not part of the window"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "memory cannot be attached"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "memory cannot be shared"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "wrong flavor of window"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a peer process aborted"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "value too large to store"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "invalid session"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "invalid error handler"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "wrong use of the ABI"},
    {MPI_T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT", "the tool interface cannot be started"},
    {MPI_T_ERR_NOT_ACCESSIBLE, "MPI_T_ERR_NOT_ACCESSIBLE", "the requested function is not accessible now"},
    {MPI_T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED", "the tool interface is not initialized"},
    {MPI_T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "not supported by the tool interface"},
    {MPI_T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "the tool interface is out of memory"},
    {MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID", "invalid argument of a tool interface function"},
    {MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "invalid variable or category index"},
    {MPI_T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "invalid item index of an enumeration"},
    {MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION", "invalid performance variable session"},
    {MPI_T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "invalid variable handle"},
    {MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "no variable or category of this name"},
    {MPI_T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "no more variable handles"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "no more performance variable sessions"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the control variable cannot be set now"},
    {MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "the control variable cannot be set before the end"},
    {MPI_T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE", "the performance variable cannot be written"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "MPI_T_ERR_PVAR_NO_STARTSTOP", "the performance variable cannot be started or stopped"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC", "the performance variable cannot be read and reset at once"},
};

/// A class or code that the program added. Both share one number space, above every predefined class.
struct Added {
  int error_class;  ///< its own number: it is a class
  int codes = 0;    ///< of a class: how many codes it has
  std::string text;
};

std::mutex added_mutex;  // guards the two below
int last_added = MPI_ERR_LASTCODE;
std::atomic<int> last_used{MPI_ERR_LASTCODE};

std::map<int, Added>& added() {
  static auto& map = *new std::map<int, Added>;  // never destroyed: errors may be raised by exit handlers
  return map;
}

const ClassName* find_class(int value) noexcept {
  for (const auto& entry : class_names)
    if (entry.value == value) return &entry;
  return nullptr;
}

}  // namespace

int error(int error_class, const char* format, ...) noexcept {
  char text[MPI_MAX_ERROR_STRING];
  const char* name = error_class_name(error_class);
  int n = std::snprintf(text, sizeof text, "%s: ", name ? name : "error");
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + n, sizeof text - static_cast<std::size_t>(n), format, arguments);
  va_end(arguments);

  std::lock_guard lock(mutex);  // taken inside added_mutex by the functions below, never the other way
  const unsigned sequence = next_sequence;
  next_sequence = (next_sequence & sequence_mask) == sequence_mask ? 1 : next_sequence + 1;
  Text& slot = texts[sequence % kept];
  slot.sequence = sequence;
  std::memcpy(slot.text, text, sizeof text);
  return detailed | static_cast<int>(sequence << class_bits) | (error_class & class_mask);
}

int error_class(int code) noexcept {
  if (code > MPI_ERR_LASTCODE && !(code & detailed)) {
    std::lock_guard lock(added_mutex);
    const auto found = added().find(code);
    return found == added().end() ? MPI_ERR_UNKNOWN : found->second.error_class;
  }
  return code & detailed ? code & class_mask : code;
}

bool is_error_code(int code) noexcept {
  if (code < 0) return false;
  if (code > MPI_ERR_LASTCODE && !(code & detailed)) {
    std::lock_guard lock(added_mutex);
    return added().contains(code);
  }
  return find_class(error_class(code)) != nullptr;
}

int add_error_class(int* new_class) noexcept {
  std::lock_guard lock(added_mutex);
  if (last_added + 1 >= detailed) return error(MPI_ERR_NO_MEM, "no more error classes: a billion were added");
  *new_class = ++last_added;
  added()[*new_class] = {*new_class, 0, {}};
  last_used.store(last_added, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int add_error_code(int of_class, int* new_code) noexcept {
  std::lock_guard lock(added_mutex);
  const auto owner = added().find(of_class);
  const bool added_class = owner != added().end() && owner->second.error_class == of_class;
  if (!added_class && !find_class(of_class))
    return error(MPI_ERR_ARG, "%d is no error class; a code needs one to belong to", of_class);
  if (last_added + 1 >= detailed) return error(MPI_ERR_NO_MEM, "no more error codes: a billion were added");
  if (added_class) ++owner->second.codes;
  *new_code = ++last_added;
  added()[*new_code] = {of_class, 0, {}};
  last_used.store(last_added, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int add_error_string(int code, const char* text) noexcept {
  std::lock_guard lock(added_mutex);
  const auto found = added().find(code);
  if (found == added().end())
    return error(MPI_ERR_ARG, "%d is no error class or code that the program added; only those can be given a text", code);
  if (std::strlen(text) >= MPI_MAX_ERROR_STRING)
    return error(MPI_ERR_ARG, "the text has %zu characters; at most MPI_MAX_ERROR_STRING-1 = %d are allowed",
                 std::strlen(text), MPI_MAX_ERROR_STRING - 1);
  found->second.text = text;
  return MPI_SUCCESS;
}

int remove_error_class(int old_class) noexcept {
  std::lock_guard lock(added_mutex);
  const auto found = added().find(old_class);
  if (found == added().end() || found->second.error_class != old_class)
    return error(MPI_ERR_ARG, "%d is no error class that the program added", old_class);
  if (found->second.codes > 0)
    return error(MPI_ERR_ARG, "error class %d still has %d codes; remove them first", old_class, found->second.codes);
  if (!found->second.text.empty())
    return error(MPI_ERR_ARG, "error class %d still has a text; remove it first", old_class);
  added().erase(found);
  return MPI_SUCCESS;
}

int remove_error_code(int code) noexcept {
  std::lock_guard lock(added_mutex);
  const auto found = added().find(code);
  if (found == added().end() || found->second.error_class == code)
    return error(MPI_ERR_ARG, "%d is no error code that the program added", code);
  if (!found->second.text.empty())
    return error(MPI_ERR_ARG, "error code %d still has a text; remove it first", code);
  const auto owner = added().find(found->second.error_class);
  if (owner != added().end()) --owner->second.codes;
  added().erase(found);
  return MPI_SUCCESS;
}

int remove_error_string(int code) noexcept {
  std::lock_guard lock(added_mutex);
  const auto found = added().find(code);
  if (found == added().end())
    return error(MPI_ERR_ARG, "%d is no error class or code that the program added", code);
  if (found->second.text.empty()) return error(MPI_ERR_ARG, "error code %d has no text to remove", code);
  found->second.text.clear();
  return MPI_SUCCESS;
}

int last_used_code() noexcept { return last_used.load(std::memory_order_relaxed); }

const char* error_class_name(int error_class) noexcept {
  const ClassName* entry = find_class(error_class);
  return entry ? entry->name : nullptr;
}

int error_text(int code, char* text) noexcept {
  if (code & detailed) {
    const unsigned sequence = (static_cast<unsigned>(code & ~detailed) >> class_bits) & sequence_mask;
    std::lock_guard lock(mutex);
    const Text& slot = texts[sequence % kept];
    if (slot.sequence == sequence) {
      std::memcpy(text, slot.text, sizeof slot.text);
      return static_cast<int>(std::strlen(text));
    }
  }
  if (code > MPI_ERR_LASTCODE && !(code & detailed)) {
    std::lock_guard lock(added_mutex);
    const auto found = added().find(code);
    if (found != added().end())  // no text was given: the standard wants an empty one
      return std::snprintf(text, MPI_MAX_ERROR_STRING, "%s", found->second.text.c_str());
  }
  const ClassName* entry = find_class(error_class(code));
  if (!entry || !is_error_code(code)) return std::snprintf(text, MPI_MAX_ERROR_STRING, "unknown error code %d", code);
  return std::snprintf(text, MPI_MAX_ERROR_STRING, "%s: %s", entry->name, entry->text);
}

int unsupported(const char* function) noexcept {
  return error(MPI_ERR_UNSUPPORTED_OPERATION, "%s is not built yet in this version of Heddle; see docs/coverage.md",
               function);
}

}  // namespace heddle
