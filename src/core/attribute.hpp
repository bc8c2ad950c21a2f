// Attributes cached on communicators, datatypes and windows. (Skeleton of the contract; the objects engineer completes it.)
#pragma once

#include <cstdint>
#include <map>

namespace heddle {

/// Values by keyval, in the order in which they were set (delete callbacks run in reverse order of setting).
struct AttributeMap {
  struct Entry {
    void* value;
    std::uint64_t order;
  };
  std::map<int, Entry> entries;
  std::uint64_t next_order = 0;
};

}  // namespace heddle
