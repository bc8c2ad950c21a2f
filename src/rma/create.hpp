// Making and freeing windows. All but `attach`, `detach` and `shared_query` are collective over the window's ranks. Return an error code.
// \see MPI-5.0 §12.2
#pragma once

#include "rma/window.hpp"

namespace heddle::rma {

/// What the four makers have in common: `base` is the memory (create), or set to it (the others).
struct WindowMemory {
  int flavor;
  void* base;
  MPI_Aint bytes;
  MPI_Aint unit;
};

int make_window(Comm& comm, WindowMemory memory, Info* info, Window** made) noexcept;
int free_window(Window& window) noexcept;

int attach(Window& window, void* base, MPI_Aint bytes) noexcept;
int detach(Window& window, const void* base) noexcept;

/// \param rank MPI_PROC_NULL: the lowest rank that has memory
int shared_query(Window& window, int rank, MPI_Aint* bytes, MPI_Aint* unit, void** base) noexcept;

/// What a rank tells the others of its node.
struct DirectoryEntry {
  std::int32_t rank;
  ProcessIndex process;
  std::uint64_t exposure;         ///< its address in that process
  std::uint64_t exposure_offset;  ///< in its shared memory; 0: it is not there
  std::uint64_t bytes;
  std::int64_t unit;
  std::uint64_t segment;         ///< MPI_Win_allocate_shared: the address of its part in the process that made the memory
  std::uint64_t segment_offset;  ///< and its offset there
};

/// The entry of a rank of this node, or nullptr.
const DirectoryEntry* find_entry(const Window& window, int rank) noexcept;

/// Where a rank's part of a window of MPI_Win_allocate_shared lies here. nullptr: it cannot be mapped.
std::byte* segment_of(const Window& window, int rank) noexcept;

/// The local address of what `process` of this node has at `address`, at `offset` of its shared memory. nullptr: it cannot be mapped.
std::byte* map_of(ProcessIndex process, std::uint64_t address, std::uint64_t offset) noexcept;

}  // namespace heddle::rma
