// What the preloaded libheddle_heap.so tells the library about the program's heap.
#pragma once

#include <cstddef>

namespace heddle::sys {

/// The part of the program's heap that lies in a memfd. Plain data, unchanged while the process lives.
struct ProgramHeap {
  int fd;           ///< of the memfd, close-on-exec
  std::byte* base;  ///< where this process maps it, from the file's beginning
  std::size_t bytes;
};

/// The function that libheddle_heap.so exports and the library looks up; the number changes with the struct.
inline constexpr const char* program_heap_symbol = "heddle_program_heap_1";
/// nullptr: there is no such heap in this process. Thread-safe.
using ProgramHeapFunction = const ProgramHeap* (*)();

}  // namespace heddle::sys
