#include "core/info.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/runtime.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

using Entry = std::pair<std::string, std::string>;

Entry* find_entry(Info& info, std::string_view key) noexcept {
  for (Entry& entry : info.entries)
    if (entry.first == key) return &entry;
  return nullptr;
}

int check_key(const char* key) noexcept {
  if (!key || !*key) return error(MPI_ERR_INFO_KEY, "the key is %s", key ? "empty" : "a null pointer");
  if (std::strlen(key) >= MPI_MAX_INFO_KEY)
    return error(MPI_ERR_INFO_KEY, "the key \"%.40s…\" has %zu characters; at most MPI_MAX_INFO_KEY-1 = %d are allowed",
                 key, std::strlen(key), MPI_MAX_INFO_KEY - 1);
  return MPI_SUCCESS;
}

int check_value(const char* key, const char* value) noexcept {
  if (!value) return error(MPI_ERR_INFO_VALUE, "the value of key \"%s\" is a null pointer", key);
  if (std::strlen(value) >= MPI_MAX_INFO_VAL)
    return error(MPI_ERR_INFO_VALUE, "the value of key \"%s\" has %zu characters; at most MPI_MAX_INFO_VAL-1 = %d are allowed",
                 key, std::strlen(value), MPI_MAX_INFO_VAL - 1);
  return MPI_SUCCESS;
}

/// The arguments of this process as the system keeps them.
std::vector<std::string> system_arguments() {
  std::vector<std::string> arguments;
  std::FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (!file) return arguments;
  std::string text;
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
  std::fclose(file);
  for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) {
    arguments.emplace_back(text.c_str() + at);
    if (text.find('\0', at) == std::string::npos) break;
  }
  return arguments;
}

const char* thread_level_name(int level) noexcept {
  switch (level) {
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE: return "MPI_THREAD_MULTIPLE";
    default: return "MPI_THREAD_SINGLE";
  }
}

/// Values that the standard would not let a user set (too long) are cut rather than left out.
void put_cut(Info& info, const char* key, std::string_view value) noexcept {
  if (!value.empty()) info.put(key, value.substr(0, MPI_MAX_INFO_VAL - 1));
}

}  // namespace

Info info_env;

namespace {
[[maybe_unused]] const bool info_env_ready = [] {
  info_env.kind.store(Kind::info, std::memory_order_relaxed);
  info_env.predefined_value = reinterpret_cast<std::uintptr_t>(MPI_INFO_ENV);
  return true;
}();
}  // namespace

bool Info::find(std::string_view key, std::string* value) noexcept {
  std::lock_guard lock(mutex);
  const Entry* entry = find_entry(*this, key);
  if (entry && value) *value = entry->second;
  return entry != nullptr;
}

void Info::put(std::string_view key, std::string_view value) noexcept {
  std::lock_guard lock(mutex);
  if (Entry* entry = find_entry(*this, key))
    entry->second = value;
  else
    entries.emplace_back(key, value);
}

Info* new_info() noexcept { return pool<Info>().create(); }

Info* clone_info(Info& info) noexcept {
  Info* copy = new_info();
  if (!copy) return nullptr;
  std::lock_guard lock(info.mutex);
  copy->entries = info.entries;
  return copy;
}

void release_info(Info* info) noexcept {
  if (info && !info->predefined_value && info->release()) pool<Info>().destroy(info);
}

bool info_flag(Info* info, std::string_view key, bool fallback) noexcept {
  std::string value;
  if (!info || !info->find(key, &value)) return fallback;
  for (const char* yes : {"true", "yes", "1", "on"})
    if (!strcasecmp(value.c_str(), yes)) return true;
  for (const char* no : {"false", "no", "0", "off"})
    if (!strcasecmp(value.c_str(), no)) return false;
  return fallback;
}

int info_set(Info& info, const char* key, const char* value) noexcept {
  if (info.predefined_value) return error(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed; work on a duplicate of it");
  if (const int code = check_key(key)) return code;
  if (const int code = check_value(key, value)) return code;
  info.put(key, value);
  return MPI_SUCCESS;
}

int info_delete(Info& info, const char* key) noexcept {
  if (info.predefined_value) return error(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed; work on a duplicate of it");
  if (const int code = check_key(key)) return code;
  std::lock_guard lock(info.mutex);
  if (std::erase_if(info.entries, [=](const Entry& entry) { return entry.first == key; })) return MPI_SUCCESS;
  return error(MPI_ERR_INFO_NOKEY, "the info object has no key \"%s\"", key);
}

int info_get_string(Info& info, const char* key, int* buffer_length, char* value, int* flag) noexcept {
  if (const int code = check_key(key)) return code;
  if (*buffer_length < 0) return error(MPI_ERR_ARG, "the buffer length, %d, is negative", *buffer_length);
  std::lock_guard lock(info.mutex);
  const Entry* entry = find_entry(info, key);
  *flag = entry != nullptr;
  if (!entry) return MPI_SUCCESS;
  const std::string& text = entry->second;
  if (*buffer_length > 0) {
    if (!value) return error(MPI_ERR_ARG, "the value buffer is a null pointer");
    const std::size_t n = std::min(text.size(), static_cast<std::size_t>(*buffer_length) - 1);
    std::memcpy(value, text.data(), n);
    value[n] = '\0';
  }
  *buffer_length = static_cast<int>(text.size()) + 1;
  return MPI_SUCCESS;
}

int info_get(Info& info, const char* key, int value_length, char* value, int* flag) noexcept {
  if (const int code = check_key(key)) return code;
  if (value_length < 0) return error(MPI_ERR_ARG, "the value length, %d, is negative", value_length);
  std::lock_guard lock(info.mutex);
  const Entry* entry = find_entry(info, key);
  *flag = entry != nullptr;
  if (!entry) return MPI_SUCCESS;
  if (!value) return error(MPI_ERR_ARG, "the value buffer is a null pointer");
  const std::size_t n = std::min(entry->second.size(), static_cast<std::size_t>(value_length));
  std::memcpy(value, entry->second.data(), n);
  value[n] = '\0';
  return MPI_SUCCESS;
}

int info_get_value_length(Info& info, const char* key, int* length, int* flag) noexcept {
  if (const int code = check_key(key)) return code;
  std::lock_guard lock(info.mutex);
  const Entry* entry = find_entry(info, key);
  *flag = entry != nullptr;
  if (entry) *length = static_cast<int>(entry->second.size());
  return MPI_SUCCESS;
}

int info_get_nth_key(Info& info, int n, char* key) noexcept {
  std::lock_guard lock(info.mutex);
  const int count = static_cast<int>(info.entries.size());
  if (n < 0 || n >= count)
    return error(MPI_ERR_ARG, "key number %d is asked for; the info object has %d keys, numbered from 0", n, count);
  std::snprintf(key, MPI_MAX_INFO_KEY, "%s", info.entries[static_cast<std::size_t>(n)].first.c_str());
  return MPI_SUCCESS;
}

int info_count(Info& info) noexcept {
  std::lock_guard lock(info.mutex);
  return static_cast<int>(info.entries.size());
}

void fill_environment(Info& info, int argc, char** argv) noexcept {
  std::vector<std::string> arguments;
  if (argv)
    for (int i = 0; i < argc && argv[i]; ++i) arguments.emplace_back(argv[i]);
  if (arguments.empty()) arguments = system_arguments();
  if (!arguments.empty()) put_cut(info, "command", arguments[0]);
  std::string rest;
  for (std::size_t i = 1; i < arguments.size(); ++i) rest += (i > 1 ? " " : "") + arguments[i];
  put_cut(info, "argv", rest);
  if (const char* size = std::getenv("PMI_SIZE")) put_cut(info, "maxprocs", size);
  char path[4096];
  if (getcwd(path, sizeof path)) put_cut(info, "wdir", path);
  utsname system{};
  if (uname(&system) == 0) {
    put_cut(info, "host", system.nodename);
    put_cut(info, "arch", system.machine);
  }
  put_cut(info, "thread_level", thread_level_name(runtime.thread_level.load(std::memory_order_relaxed)));
  put_cut(info, "mpi_memory_alloc_kinds", memory_alloc_kinds);
}

}  // namespace heddle
