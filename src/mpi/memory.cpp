// Memory for communication. MPI-5.0 section 9.2.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "core/info.hpp"
#include "generated/impl.hpp"
#include "sys/error.hpp"
#include "transport/shm/heap.hpp"

namespace heddle::mpi {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;
constexpr MPI_Aint page_sized = 64 * 1024;  // from here on a page's worth of alignment is not felt

/// The alignment that the hint `mpi_minimum_memory_alignment` asks for, or 0. \see MPI-5.0 §9.2
std::size_t wanted_alignment(Info* info) {
  if (!info) return 0;
  std::lock_guard lock(info->mutex);
  for (const auto& [key, value] : info->entries)
    if (key == "mpi_minimum_memory_alignment") {
      const unsigned long long number = std::strtoull(value.c_str(), nullptr, 10);
      return number && (number & (number - 1)) == 0 ? number : 0;  // a hint that is no power of two is ignored
    }
  return 0;
}

}  // namespace

/// Aligned to a cache line, large blocks to a page. A block of 0 bytes has an address of its own. The memory is shared with the
/// processes of the node, which copy large messages straight from it.
int Alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
  if (size < 0) return error(MPI_ERR_ARG, "argument size is %lld; it must not be negative", static_cast<long long>(size));
  const std::size_t alignment = std::max({size >= page_sized ? page : cache_line, wanted_alignment(info), sizeof(void*)});
  void* memory = shm::allocate(static_cast<std::size_t>(size), alignment);
  if (!memory)
    return error(MPI_ERR_NO_MEM, "no memory for %lld bytes; ask for less or raise the limit (ulimit -v, cgroup)",
                 static_cast<long long>(size));
  std::memcpy(baseptr, &memory, sizeof memory);  // declared void*, meant as void**
  return MPI_SUCCESS;
}

int Free_mem(void* base) {
  if (!base) return MPI_SUCCESS;  // as free()
  std::string problem;
  return shm::deallocate(base, problem) ? MPI_SUCCESS : error(MPI_ERR_BASE, "%s", problem.c_str());
}

}  // namespace heddle::mpi
