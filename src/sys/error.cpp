#include "sys/error.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

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
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "info value too long or empty"},
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
};

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

  std::lock_guard lock(mutex);
  const unsigned sequence = next_sequence;
  next_sequence = (next_sequence & sequence_mask) == sequence_mask ? 1 : next_sequence + 1;
  Text& slot = texts[sequence % kept];
  slot.sequence = sequence;
  std::memcpy(slot.text, text, sizeof text);
  return detailed | static_cast<int>(sequence << class_bits) | (error_class & class_mask);
}

int error_class(int code) noexcept { return code & detailed ? code & class_mask : code; }

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
  const ClassName* entry = find_class(error_class(code));
  if (!entry) return std::snprintf(text, MPI_MAX_ERROR_STRING, "unknown error code %d", code);
  return std::snprintf(text, MPI_MAX_ERROR_STRING, "%s: %s", entry->name, entry->text);
}

int unsupported(const char* function) noexcept {
  return error(MPI_ERR_UNSUPPORTED_OPERATION, "%s is not built yet in this version of Heddle; see docs/coverage.md",
               function);
}

}  // namespace heddle
