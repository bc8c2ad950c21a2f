// Memory of this process that its node's other processes map too: a large message is copied straight from it.
#pragma once

#include <cstddef>
#include <string>

namespace heddle::shm {

/// A block of at least `bytes`, aligned to `alignment` (a power of two): in this process's region of shared memory, or, where
/// that is used up or could not be mapped, ordinary memory. nullptr when memory is out. Thread-safe. Takes a lock.
/// A forked child has its own copy, as of any memory.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept;

/// Gives a block of `allocate` back. False and a text when it is none. Thread-safe.
bool deallocate(void* block, std::string& problem) noexcept;

/// Whether blocks in the region are in use.
bool heap_in_use() noexcept;

}  // namespace heddle::shm
