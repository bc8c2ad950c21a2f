#include "core/hints.hpp"

#include <cstring>

namespace heddle {
namespace {

/// A key that the library takes on communicators. Adding one is adding a line.
struct Hint {
  const char* key;
  std::uint32_t assertion;  ///< the bit that a yes/no hint sets; 0 for one that is kept as text
  const char* fallback;     ///< reported when the user gave none; nullptr: not reported
};

constexpr Hint known[] = {
    {"mpi_assert_no_any_tag", assert_no_any_tag, "false"},
    {"mpi_assert_no_any_source", assert_no_any_source, "false"},
    {"mpi_assert_exact_length", assert_exact_length, "false"},
    {"mpi_assert_allow_overtaking", assert_allow_overtaking, "false"},
    {"mpi_assert_strict_persistent_collective_ordering", assert_strict_persistent_collective_ordering, "false"},
    {"vci", 0, nullptr},  // these four choose lanes: comm/routing.cpp
    {"sender_vci", 0, nullptr},
    {"receiver_vci", 0, nullptr},
    {"inherit_vci", 0, nullptr},
    {"mpi_memory_alloc_kinds", 0, memory_alloc_kinds},
    {"mpi_assert_memory_alloc_kinds", 0, nullptr},
    {"mpi_hw_resource_type", 0, nullptr},
};

bool is_boolean(const std::string& text) noexcept { return text == "true" || text == "false"; }

}  // namespace

void take_hints(Comm& comm, Info* info) noexcept {
  if (!info) return;
  for (const Hint& hint : known) {
    std::string value;
    if (!info->find(hint.key, &value)) continue;
    // What memory kinds there are is for the library to say.
    if (!std::strcmp(hint.key, "mpi_memory_alloc_kinds")) continue;
    if (hint.assertion) {
      if (!is_boolean(value)) continue;
      if (value == "true")
        comm.assertions.fetch_or(hint.assertion, std::memory_order_relaxed);
      else
        comm.assertions.fetch_and(~hint.assertion, std::memory_order_relaxed);
    }
    std::lock_guard lock(comm.mutex);
    if (!comm.info && !(comm.info = new_info())) return;
    comm.info->put(hint.key, value);
  }
}

Info* hints_of(Comm& comm) noexcept {
  Info* out = new_info();
  if (!out) return nullptr;
  std::lock_guard lock(comm.mutex);
  for (const Hint& hint : known) {
    std::string value;
    if (comm.info && comm.info->find(hint.key, &value))
      out->put(hint.key, value);
    else if (hint.fallback)
      out->put(hint.key, hint.fallback);
  }
  return out;
}

}  // namespace heddle
