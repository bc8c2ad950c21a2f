#include "library.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

extern char** environ;

namespace heddle::tool {
namespace {

using nlohmann::json;

constexpr const char* unreadable = "(cannot be read)";

/// Calls functions of a library loaded with dlopen. The declaration in mpi.h gives the type.
class Loaded {
 public:
  explicit Loaded(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) problem_ = dlerror();
  }
  template <typename Function>
  Function* find(const char* name) {
    void* symbol = handle_ ? dlsym(handle_, name) : nullptr;
    if (!symbol && problem_.empty())
      problem_ = fmt::format("it has no {}: not a library of the MPI-5 standard ABI?", name);
    return reinterpret_cast<Function*>(symbol);
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void* handle_;  // never closed: the process ends soon, and MPI libraries do not like to be unloaded
  std::string problem_;
};
#define HEDDLE_FIND(loaded, function) auto* const function##_ = (loaded).find<decltype(function)>(#function)

/// A number of bytes as a person writes it: 65536 as 64K.
std::string as_size(unsigned long long bytes) {
  const char* suffix = "";
  for (const char* larger : {"K", "M", "G"}) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    suffix = larger;
  }
  return fmt::format("{}{}", bytes, suffix);
}

struct Reading {
  std::string type, value;
};

/// The value in `bytes` (zero padded) of a control variable of MPI type `datatype`.
Reading read_value(MPI_Datatype datatype, const std::vector<char>& bytes) {
  const auto as = [&](auto sample) {
    std::memcpy(&sample, bytes.data(), sizeof sample);
    return sample;
  };
  if (datatype == MPI_CHAR) return {"text", std::string(bytes.data(), strnlen(bytes.data(), bytes.size()))};
  if (datatype == MPI_C_BOOL) return {"yes/no", as(char{}) ? "yes" : "no"};
  if (datatype == MPI_INT) return {"number", fmt::to_string(as(int{}))};
  if (datatype == MPI_LONG || datatype == MPI_LONG_LONG || datatype == MPI_INT64_T)
    return {"number", fmt::to_string(as(std::int64_t{}))};
  if (datatype == MPI_INT32_T) return {"number", fmt::to_string(as(std::int32_t{}))};
  if (datatype == MPI_UNSIGNED || datatype == MPI_UINT32_T) return {"number", fmt::to_string(as(unsigned{}))};
  if (datatype == MPI_DOUBLE) return {"number", fmt::to_string(as(double{}))};
  if (datatype == MPI_UNSIGNED_LONG || datatype == MPI_UNSIGNED_LONG_LONG || datatype == MPI_COUNT ||
      datatype == MPI_AINT || datatype == MPI_UINT64_T)
    return {"size", as_size(as(0ull))};
  return {"?", unreadable};
}

/// Asks the library at `path` in this process; what it says, or {"problem": ...}.
json interrogate(const std::string& path) {
  Loaded loaded(path);
  HEDDLE_FIND(loaded, MPI_Get_library_version);
  HEDDLE_FIND(loaded, MPI_Abi_get_version);
  HEDDLE_FIND(loaded, MPI_T_init_thread);
  HEDDLE_FIND(loaded, MPI_T_cvar_get_num);
  HEDDLE_FIND(loaded, MPI_T_cvar_get_info);
  HEDDLE_FIND(loaded, MPI_T_cvar_handle_alloc);
  HEDDLE_FIND(loaded, MPI_T_cvar_read);
  HEDDLE_FIND(loaded, MPI_T_enum_get_info);
  HEDDLE_FIND(loaded, MPI_T_enum_get_item);
  if (!loaded.problem().empty()) return {{"problem", loaded.problem()}};

  json said;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = -1, minor = -1, provided = 0, count = 0;
  MPI_Get_library_version_(version, &length);
  MPI_Abi_get_version_(&major, &minor);
  said["version"] = version;
  said["abi"] = {major, minor};
  said["parameters"] = json::array();
  if (MPI_T_init_thread_(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS || MPI_T_cvar_get_num_(&count) != MPI_SUCCESS)
    return said;

  for (int index = 0; index < count; ++index) {
    char name[256] = "", help[4096] = "";
    int name_length = sizeof name, help_length = sizeof help, verbosity, bind, scope;
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    MPI_T_enum items = MPI_T_ENUM_NULL;
    if (MPI_T_cvar_get_info_(index, name, &name_length, &verbosity, &datatype, &items, help, &help_length, &bind,
                             &scope) != MPI_SUCCESS)
      continue;
    Reading reading{"?", unreadable};
    MPI_T_cvar_handle handle;
    int elements = 0;
    if (bind == MPI_T_BIND_NO_OBJECT && MPI_T_cvar_handle_alloc_(index, nullptr, &handle, &elements) == MPI_SUCCESS) {
      std::vector<char> bytes(static_cast<std::size_t>(std::max(elements, 1)) * 16 + 1, '\0');
      if (MPI_T_cvar_read_(handle, bytes.data()) == MPI_SUCCESS) reading = read_value(datatype, bytes);
      // A variable with an enumeration is shown by the name of its value.
      int number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      int item_count = 0, none = 0;
      if (items != MPI_T_ENUM_NULL && MPI_T_enum_get_info_(items, &item_count, nullptr, &none) == MPI_SUCCESS) {
        bool yes_no = item_count == 2;
        for (int i = 0; i < item_count; ++i) {
          char item[256] = "";
          int item_length = sizeof item, value = 0;
          if (MPI_T_enum_get_item_(items, i, &value, item, &item_length) != MPI_SUCCESS) continue;
          if (value == number) reading.value = item;
          yes_no = yes_no && (!std::strcmp(item, "yes") || !std::strcmp(item, "no"));
        }
        reading.type = yes_no ? "yes/no" : "choice";
      }
    }
    said["parameters"].push_back({{"name", name}, {"type", reading.type}, {"value", reading.value}, {"help", help}});
  }
  return said;
}

/// `interrogate` in a process of its own, without the HEDDLE_* variables when `bare`.
json interrogate_apart(const std::string& path, bool bare) {
  int ends[2];
  if (pipe(ends) != 0) return {{"problem", std::strerror(errno)}};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (bare) {
      std::vector<std::string> ours;
      for (char** entry = environ; *entry; ++entry)
        if (!std::strncmp(*entry, "HEDDLE_", 7)) ours.emplace_back(*entry, std::strcspn(*entry, "="));
      for (const std::string& name : ours) unsetenv(name.c_str());
    }
    const std::string text = interrogate(path).dump(-1, ' ', false, json::error_handler_t::replace);
    std::size_t written = 0;
    while (written < text.size()) {
      const ssize_t n = write(ends[1], text.data() + written, text.size() - written);
      if (n <= 0) _exit(1);
      written += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  if (child < 0) return {{"problem", "cannot start a process"}};
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  json said = json::parse(text, nullptr, false);
  if (said.is_discarded())
    return {{"problem", fmt::format("it ended the process that asked it (status {:#x})", status)}};
  return said;
}

/// The library beside this tool: ../lib of the build tree or of the installation.
std::string own_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const char* folder : {HEDDLE_LIBDIR, "lib"}) {
    const fs::path path = prefix / folder / "libmpi_abi.so.1";
    if (fs::exists(path, error)) return path;
  }
  return "libmpi_abi.so.1";  // wherever the loader finds it
}

}  // namespace

Library ask_library(const std::string& path) {
  Library library;
  library.path = path.empty() ? own_library() : path;
  const json now = interrogate_apart(library.path, false), bare = interrogate_apart(library.path, true);
  for (const json* said : {&now, &bare})
    if (said->contains("problem"))
      library.problem = fmt::format("cannot ask {}: {}", library.path, (*said)["problem"].get<std::string>());
  if (!library.problem.empty()) return library;

  library.version = now["version"];
  library.abi_major = now["abi"][0];
  library.abi_minor = now["abi"][1];
  for (const json& item : now["parameters"]) {
    Parameter parameter{item["name"], item["type"], unreadable, item["value"], item["help"]};
    for (const json& other : bare["parameters"])
      if (other["name"] == item["name"]) parameter.fallback = other["value"];
    library.parameters.push_back(std::move(parameter));
  }
  std::sort(library.parameters.begin(), library.parameters.end(),
            [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
  return library;
}

}  // namespace heddle::tool
