#include "sys/params.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace heddle::sys {
namespace {

// Constant-initialised, so declarations in any file may run before or after this file's.
constinit Param* list_head = nullptr;
constinit Param** list_tail = nullptr;

bool parse_boolean(const char* text, std::int64_t& value) {
  for (const char* yes : {"1", "yes", "true", "on"})
    if (!strcasecmp(text, yes)) return value = 1, true;
  for (const char* no : {"0", "no", "false", "off"})
    if (!strcasecmp(text, no)) return value = 0, true;
  return false;
}

/// A whole number, with `suffix` also 8K, 8KiB, 8kB. One beyond 64 bits is clamped, so that it counts as out of range rather than as no
/// number.
bool parse_number(const char* text, bool suffix, std::int64_t& value) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 0);
  if (end == text) return false;
  const bool fits = !errno;
  int shift = 0;
  if (suffix && *end) {
    switch (*end) {
      case 'k': case 'K': shift = 10; break;
      case 'm': case 'M': shift = 20; break;
      case 'g': case 'G': shift = 30; break;
      default: return false;
    }
    ++end;
    if (*end == 'i') ++end;
    if (*end == 'B' || *end == 'b') ++end;
  }
  if (*end) return false;
  if (!fits || __builtin_mul_overflow(number, std::int64_t{1} << shift, &value)) value = number < 0 ? INT64_MIN : INT64_MAX;
  return true;
}

}  // namespace

void Param::enlist() noexcept {
  if (!list_head) list_tail = &list_head;
  *list_tail = this;
  list_tail = &next_;
}

void Param::refuse(Mistake mistake, const char* given) noexcept {
  mistake_ = mistake;
  refused_ = given;
}

Param::Param(ParamType type, const char* name, std::int64_t fallback, ParamRange range, const char* help,
             bool alike) noexcept
    : type_(type), alike_(alike), name_(name), value_(fallback), range_(range), help_(help) {
  enlist();
  const char* given = std::getenv(name);
  if (!given || !*given) return;
  std::int64_t value = 0;
  const bool parsed = type == ParamType::boolean ? parse_boolean(given, value)
                                                 : parse_number(given, type == ParamType::size, value);
  if (!parsed) {
    refuse(Mistake::not_parsed, given);
    return;
  }
  set_ = true;
  value_ = value < range.low ? range.low : value > range.high ? range.high : value;
  if (value != value_) refuse(Mistake::out_of_range, given);
}

Param::Param(const char* name, const char* fallback, const char* help) noexcept
    : type_(ParamType::text), name_(name), text_(fallback), help_(help) {
  enlist();
  const char* given = std::getenv(name);
  if (!given) return;
  text_ = given;
  set_ = true;
}

Param::Param(const char* name, const char* const* choices, std::size_t count, const char* help) noexcept
    : type_(ParamType::text), name_(name), text_(choices[0]), help_(help), choices_(choices), choice_count_(count) {
  enlist();
  const char* given = std::getenv(name);
  if (!given || !*given) return;
  for (std::size_t i = 0; i < count && !set_; ++i)
    if (!strcasecmp(given, choices[i])) {
      value_ = static_cast<std::int64_t>(i);
      text_ = choices[i];
      set_ = true;
    }
  if (!set_) refuse(Mistake::not_parsed, given);
}

const Param* Param::first() noexcept { return list_head; }

}  // namespace heddle::sys
