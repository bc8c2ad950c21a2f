#include "sys/bootstrap/pmix_library.hpp"

#ifdef HEDDLE_HAVE_PMIX

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sys/params.hpp"

namespace heddle::sys::bootstrap {
namespace {

HEDDLE_PARAM_TEXT(
    pmix_library, "HEDDLE_PMIX_LIBRARY", "",
    "the libpmix to use under PMIx launchers; empty: libpmix.so.2 of the system, else the launcher's own");

int parent_of(int pid) {
  char path[64], text[512] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* after_name = std::strrchr(text, ')');
  int parent = 0;
  char state = 0;
  return after_name != nullptr && std::sscanf(after_name + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

/// The file of a libpmix.so.2 that process `pid` has mapped; empty when none, or when it is somebody else's process.
std::string mapped_by(int pid) {
  char path[64], line[4400];
  std::snprintf(path, sizeof path, "/proc/%d/maps", pid);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return {};
  std::string found;
  while (found.empty() && std::fgets(line, sizeof line, file) != nullptr) {
    const char* name = std::strchr(line, '/');
    if (name != nullptr && std::strstr(name, "/libpmix.so") != nullptr) found.assign(name, std::strcspn(name, "\n"));
  }
  std::fclose(file);
  return found;
}

/// The daemon that started us is our parent, or its parent where a script stands between.
std::string library_of_the_launcher() {
  constexpr int generations = 4;
  int pid = getppid();
  for (int i = 0; i < generations && pid > 1; ++i, pid = parent_of(pid))
    if (std::string path = mapped_by(pid); !path.empty()) return path;
  return {};
}

void* open_library(const char* name, std::string& why) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    why += std::string(why.empty() ? "" : "; ") + (text != nullptr ? text : name);
  }
  return handle;
}

std::string path_of(void* handle, const char* name) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0' ? map->l_name : name;
}

}  // namespace

bool load_pmix(PmixLibrary& library, std::string& error) {
  if (library.handle != nullptr) dlclose(library.handle);
  library = {};
  std::string why;
  const std::string name = *pmix_library.text() != '\0' ? pmix_library.text() : library_of_the_launcher();
  void* handle = name.empty() ? nullptr : open_library(name.c_str(), why);
  if (handle == nullptr && *pmix_library.text() == '\0') handle = open_library("libpmix.so.2", why);
  if (handle == nullptr) {
    error =
        "a PMIx launcher (prterun, Open MPI's mpirun, srun --mpi=pmix) started this process, but libpmix cannot be "
        "loaded: " +
        why +
        ". Install it (Debian: libpmix2) or name it in HEDDLE_PMIX_LIBRARY; under Slurm `srun --mpi=pmi2` needs none";
    return false;
  }
  library.handle = handle;
  library.path = path_of(handle, name.c_str());
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (function != nullptr) return true;
    error = library.path + " has no " + symbol + ": it is no PMIx library of version 2 or later";
    return false;
  };
  return find(library.finalize, "PMIx_Finalize") && find(library.abort, "PMIx_Abort") &&
         find(library.put, "PMIx_Put") && find(library.commit, "PMIx_Commit") && find(library.fence_nb, "PMIx_Fence_nb") &&
         find(library.get, "PMIx_Get") && find(library.get_nb, "PMIx_Get_nb") &&
         find(library.publish, "PMIx_Publish") && find(library.lookup, "PMIx_Lookup") &&
         find(library.unpublish, "PMIx_Unpublish") &&
         find(library.register_event_handler, "PMIx_Register_event_handler") &&
         find(library.error_string, "PMIx_Error_string") &&
         find(library.init, "PMIx_Init");  // stored last: non-null means that all the others are set
}

}  // namespace heddle::sys::bootstrap

#endif
