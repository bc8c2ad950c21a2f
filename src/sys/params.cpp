#include "sys/params.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "sys/log.hpp"

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

bool parse_integer(const char* text, bool suffix, std::int64_t& value) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 0);
  if (end == text || errno) return false;
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
  return !__builtin_mul_overflow(number, std::int64_t{1} << shift, &value);
}

}  // namespace

Param::Param(ParamType type, const char* name, std::int64_t fallback, const char* fallback_text,
             const char* help, bool alike) noexcept
    : type_(type), alike_(alike), name_(name), fallback_(fallback), value_(fallback), fallback_text_(fallback_text),
      text_(fallback_text), help_(help), next_(nullptr) {
  if (!list_head) list_tail = &list_head;
  *list_tail = this;
  list_tail = &next_;

  const char* given = std::getenv(name);
  if (!given || (!*given && type != ParamType::text)) return;
  switch (type) {
    case ParamType::boolean: set_ = parse_boolean(given, value_); break;
    case ParamType::integer: set_ = parse_integer(given, false, value_); break;
    case ParamType::size: set_ = parse_integer(given, true, value_); break;
    case ParamType::text: text_ = given; set_ = true; break;
  }
  if (!set_) {
    value_ = fallback_;
    notice("%s=%s is not %s; the default %lld is used. See `heddle info`.", name, given,
           type == ParamType::boolean ? "a yes/no value (1, 0, yes, no, true, false, on, off)"
           : type == ParamType::size  ? "a size (a number with K, M or G)"
                                      : "a whole number",
           static_cast<long long>(fallback_));
  }
}

const Param* Param::first() noexcept { return list_head; }

}  // namespace heddle::sys
