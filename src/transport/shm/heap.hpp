// Memory of this process that other processes of the node can map, so that large messages are copied straight from it.
#pragma once

#include <cstddef>
#include <string>

namespace heddle::shm {

/// Allocates a block of at least `bytes`, aligned to `alignment` (a power of two), in this process's region of shared memory, or in ordinary
/// memory if that is full or could not be mapped. nullptr when memory is out. Thread-safe; takes a lock. A forked child has its own copy.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept;

/// Frees a block of `allocate`. False and a text if it is none. Thread-safe.
bool deallocate(void* block, std::string& problem) noexcept;

/// Whether blocks in the region are in use.
bool heap_in_use() noexcept;

}  // namespace heddle::shm
