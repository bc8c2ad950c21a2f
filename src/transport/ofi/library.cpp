#include "transport/ofi/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "sys/params.hpp"
#include "transport/ofi/first_look.hpp"

namespace heddle::ofi {
namespace {

HEDDLE_PARAM_TEXT(library_name, "HEDDLE_OFI_LIBRARY", "libfabric.so.1",
                  "the libfabric to load where one is used: a file name, or a path");

std::mutex load_mutex;
Library* loaded = nullptr;  // guarded by load_mutex; never freed

bool has_infiniband() noexcept { return access("/sys/class/infiniband", F_OK) == 0; }

template <typename Function>
bool resolve(void* handle, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

KeptSignals::KeptSignals() noexcept {
  for (int number = 1; number < _NSIG; ++number) sigaction(number, nullptr, &before_[number]);
}

KeptSignals::~KeptSignals() {
  for (int number = 1; number < _NSIG; ++number) {
    struct sigaction now;
    if (!sigaction(number, nullptr, &now) && now.sa_handler != before_[number].sa_handler) sigaction(number, &before_[number], nullptr);
  }
}

void prefer_rxm_buffer(std::size_t bytes) noexcept {
  // With InfiniBand each connection keeps many such buffers registered; there the provider's own size stays.
  if (has_infiniband()) return;
  char text[24];
  std::snprintf(text, sizeof text, "%zu", bytes);
  setenv("FI_OFI_RXM_BUFFER_SIZE", text, 0);   // the user's own wins
  setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);  // fewer, because they are larger: 8 MiB in each VCI
}

const Library* load(std::string& problem) {
  const std::lock_guard hold(load_mutex);
  if (loaded) return loaded;
  // With its default, 4096, every VCI takes 64 MiB for receive buffers of small messages.
  setenv("FI_OFI_RXM_MSG_RX_SIZE", "512", 0);
  if (has_infiniband()) {
    // One set of buffers to receive in for each VCI, not for each connection.
    setenv("FI_OFI_RXM_USE_SRX", "1", 0);
    // ofi_rxm makes the completion queues long enough for this many peers with all their sends in flight. Its default, 1024, is more than some
    // devices can make (soft-RoCE: 32767 entries in all); a full queue only delays further sends.
    setenv("FI_UNIVERSE_SIZE", "64", 0);
  }
  const KeptSignals kept;
  void* handle = dlopen(library_name.text(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    problem = std::string("libfabric cannot be loaded: ") + dlerror() +
              ". Install it (Debian: libfabric1), or name it in HEDDLE_OFI_LIBRARY";
    return nullptr;
  }
  auto* library = new Library;
  if (!resolve(handle, "fi_getinfo", library->getinfo) || !resolve(handle, "fi_freeinfo", library->freeinfo) ||
      !resolve(handle, "fi_dupinfo", library->dupinfo) || !resolve(handle, "fi_fabric", library->fabric) ||
      !resolve(handle, "fi_strerror", library->strerror) || !resolve(handle, "fi_version", library->version)) {
    problem = std::string(library_name.text()) + " is not a libfabric: " + dlerror();
    delete library;
    return nullptr;
  }
  {
    const FirstLook cheap(handle);
    fi_info* none = nullptr;  // the first call makes the library scan the machine; an impossible version number ends that early
    library->getinfo(FI_VERSION(1000, 0), nullptr, nullptr, 0, nullptr, &none);
  }
  link_map* map = nullptr;
  library->path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name ? map->l_name : library_name.text();
  return loaded = library;
}

const char* error_text(long code) noexcept {
  const std::lock_guard hold(load_mutex);
  return loaded ? loaded->strerror(static_cast<int>(code < 0 ? -code : code)) : "libfabric is not loaded";
}

}  // namespace heddle::ofi
