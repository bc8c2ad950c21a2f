#include "rma/hints.hpp"

#include <charconv>
#include <string>
#include <string_view>

namespace heddle::rma {
namespace {

struct Hint {
  const char* key;
  const char* fallback;
  bool (*valid)(std::string_view value);
};

bool is_flag(std::string_view value) { return value == "true" || value == "false"; }

std::size_t number_in(std::string_view value) noexcept {
  std::size_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  return problem == std::errc{} && end == value.data() + value.size() ? number : 0;
}

bool is_number(std::string_view value) { return number_in(value) > 0; }
bool is_power_of_two(std::string_view value) {
  const std::size_t n = number_in(value);
  return n && !(n & (n - 1));
}

/// "none", or some of rar, raw, war, waw with commas between them.
bool is_ordering(std::string_view value) {
  if (value == "none") return true;
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view word = value.substr(0, comma);
    if (word != "rar" && word != "raw" && word != "war" && word != "waw") return false;
    if (comma == std::string_view::npos) return true;
    value.remove_prefix(comma + 1);
  }
}

bool is_ops(std::string_view value) { return value == "same_op" || value == "same_op_no_op"; }
bool is_text(std::string_view value) { return !value.empty(); }

constexpr Hint hints[] = {
    {"no_locks", "false", is_flag},
    {"accumulate_ordering", "rar,raw,war,waw", is_ordering},
    {"accumulate_ops", "same_op_no_op", is_ops},
    {"same_size", "false", is_flag},
    {"same_disp_unit", "false", is_flag},
    {"alloc_shared_noncontig", "false", is_flag},
    {"mpi_accumulate_granularity", "0", is_number},
    {"mpi_minimum_memory_alignment", "64", is_power_of_two},
    {"which_accumulate_ops", "any_op", is_text},  // MPICH's
};

}  // namespace

void take_hints(Window& window, Info* info) noexcept {
  std::lock_guard lock(window.mutex);
  if (!window.info) {
    window.info = new_info();
    if (!window.info) return;
    for (const Hint& hint : hints) window.info->put(hint.key, hint.fallback);
  }
  std::string value;
  for (const Hint& hint : hints)
    if (info && info->find(hint.key, &value) && hint.valid(value)) window.info->put(hint.key, value);
  if (window.info->find("accumulate_ordering", &value)) window.ordered = value != "none";
  window.no_locks = info_flag(window.info, "no_locks", false);
}

Info* hints_of(Window& window) noexcept {
  std::lock_guard lock(window.mutex);
  return window.info ? clone_info(*window.info) : new_info();
}

std::size_t wanted_alignment(Info* info) noexcept {
  std::string value;
  return info && info->find("mpi_minimum_memory_alignment", &value) && is_power_of_two(value) ? number_in(value) : 0;
}

}  // namespace heddle::rma
