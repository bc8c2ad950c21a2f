#include "transport/ofi/first_look.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace heddle::ofi {
namespace {

using Open = std::FILE* (*)(const char*, const char*);

Open real_fopen = nullptr;  // set before any slot points to fopen_without_kallsyms

std::FILE* fopen_without_kallsyms(const char* path, const char* mode) {
  if (std::strcmp(path, "/proc/kallsyms") != 0) return real_fopen(path, mode);
  errno = EACCES;  // as where the kernel hides them
  return nullptr;
}

#if defined(__x86_64__)
constexpr unsigned jump_slot = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
constexpr unsigned jump_slot = R_AARCH64_JUMP_SLOT;
#else
constexpr unsigned jump_slot = 0;  // never found
#endif

/// Where the library of `map` keeps the address of the function `name` that it calls in another library, or nullptr.
void** find_slot(const link_map& map, const char* name) noexcept {
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela)* calls = nullptr;
  std::size_t bytes = 0;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_PLTREL && entry->d_un.d_val != DT_RELA) return nullptr;
  }
  if (!symbols || !strings || !calls) return nullptr;
  for (const ElfW(Rela)* call = calls; call != calls + bytes / sizeof *calls; ++call)
    if (ELF64_R_TYPE(call->r_info) == jump_slot && !std::strcmp(strings + symbols[ELF64_R_SYM(call->r_info)].st_name, name))
      return reinterpret_cast<void**>(map.l_addr + call->r_offset);
  return nullptr;
}

/// Whether the page of `address` may be written to; libraries that were bound at once keep such pages read-only.
bool is_writable(const void* address) noexcept {
  bool found = false;
  struct Wanted {
    std::uintptr_t address;
    bool* writable;
  } wanted{reinterpret_cast<std::uintptr_t>(address), &found};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const auto& want = *static_cast<Wanted*>(data);
        bool inside = false, read_only = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (want.address < begin || want.address >= begin + part.p_memsz) continue;
          inside |= part.p_type == PT_LOAD;
          read_only |= part.p_type == PT_GNU_RELRO;
        }
        if (inside) *want.writable = !read_only;
        return static_cast<int>(inside);
      },
      &wanted);
  return found;
}

bool write_slot(void** slot, void* value) noexcept {
  const bool writable = is_writable(slot);
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_bytes - 1));
  if (!writable && mprotect(page, page_bytes, PROT_READ | PROT_WRITE)) return false;
  // Relaxed: threads that call the library meanwhile use either function, and both work.
  std::atomic_ref<void*>(*slot).store(value, std::memory_order_relaxed);
  if (!writable) mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace

FirstLook::FirstLook(void* handle) noexcept {
  if (!handle || access("/sys/class/infiniband", F_OK) == 0) return;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map) return;
  void** slot = find_slot(*map, "fopen");
  // Only slots already bound: before that, a lazily binding library's slot does not hold the address of fopen.
  if (!slot || *slot != dlsym(RTLD_DEFAULT, "fopen")) return;
  std::memcpy(&real_fopen, slot, sizeof real_fopen);
  void* ours;
  const Open replacement = fopen_without_kallsyms;
  std::memcpy(&ours, &replacement, sizeof ours);
  if (write_slot(slot, ours)) slot_ = slot;
}

FirstLook::~FirstLook() {
  if (!slot_) return;
  void* real;
  std::memcpy(&real, &real_fopen, sizeof real);
  write_slot(slot_, real);
}

}  // namespace heddle::ofi
