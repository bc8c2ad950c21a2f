#include "sys/mistakes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle::sys {
namespace {

constexpr std::string_view prefix = "HEDDLE_";
constexpr int most_names = 8;              ///< unknown names that are listed; further ones are only counted
constexpr std::size_t longest_name = 48;  ///< beyond the prefix; longer names have no suggestion

/// Variables that are no parameters of the library. Read by log.cpp; set by mpiexec; read by the compiler wrappers; set for tests.
constexpr std::string_view others[] = {"QUIET", "JOB",  "JOB_ID",         "CC",    "CXX",    "FC",
                                       "RPATH", "MPIF", "WRAPPER_NESTED", "BUILD", "SOURCE"};
constexpr std::string_view other_prefixes[] = {"TEST_", "CI_", "BENCH_"};

/// Variables that module files, Spack, CMake (HEDDLE_ROOT, HEDDLE_DIR) and scripts set for any installed package.
constexpr std::string_view surroundings[] = {"HOME", "ROOT",    "DIR",    "BASE", "PREFIX",  "PATH", "BIN", "LIB",   "LIBDIR",
                                             "INC",  "INCLUDE", "INCDIR", "MAN",  "VERSION", "SRC",  "TAG", "BRANCH"};

template <typename List>
bool holds(const List& list, std::string_view word) noexcept {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && !strncasecmp(a.data(), b.data(), a.size());
}

/// Whether `whole` is `part` with more words before or behind it: SPIN of SPIN_US, VCIS of NUM_VCIS.
bool has_words(std::string_view whole, std::string_view part) noexcept {
  if (whole.size() < part.size() + 2) return false;
  const std::size_t more = whole.size() - part.size();
  return (whole[part.size()] == '_' && equal_but_for_case(whole.substr(0, part.size()), part)) ||
         (whole[more - 1] == '_' && equal_but_for_case(whole.substr(more), part));
}

/// Edit distance: letters to insert, remove, change or swap with a neighbour.
unsigned distance(std::string_view a, std::string_view b) noexcept {
  std::uint8_t rows[3][longest_name + 1];
  std::uint8_t *older = rows[0], *old = rows[1], *now = rows[2];
  const auto letter = [](std::string_view text, std::size_t i) { return std::toupper(static_cast<unsigned char>(text[i])); };
  for (std::size_t j = 0; j <= b.size(); ++j) now[j] = static_cast<std::uint8_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::uint8_t* const spare = older;
    older = old, old = now, now = spare;
    now[0] = static_cast<std::uint8_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = letter(a, i - 1) == letter(b, j - 1);
      unsigned best = std::min({old[j] + 1u, now[j - 1] + 1u, old[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && letter(a, i - 1) == letter(b, j - 2) && letter(a, i - 2) == letter(b, j - 1))
        best = std::min(best, older[j - 2] + 1u);
      now[j] = static_cast<std::uint8_t>(best);
    }
  }
  return now[b.size()];
}

/// A number as the user may write it: 65536 as 64K.
struct Number {
  char text[24];
  Number(const Param& param, std::int64_t value) noexcept {
    const char* suffix = "";
    for (const char* larger : {"K", "M", "G"}) {
      if (param.type() != ParamType::size || value == 0 || value % 1024 != 0) break;
      value /= 1024;
      suffix = larger;
    }
    std::snprintf(text, sizeof text, "%lld%s", static_cast<long long>(value), suffix);
  }
};

/// What `param` takes: "0 to 64", "at least 16K", "one of auto, memfd, file".
struct Allowed {
  char text[256];
  explicit Allowed(const Param& param) noexcept {
    const char* const kind = param.type() == ParamType::size ? "a size (a number, also with K, M or G) " : "a whole number ";
    const auto [low, high] = param.range();
    std::size_t used = 0;
    if (param.choices()) {
      for (std::size_t i = 0; i < param.choice_count() && used < sizeof text; ++i)
        used += static_cast<std::size_t>(std::snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "one of ", param.choices()[i]));
    } else if (param.type() == ParamType::boolean) {
      std::snprintf(text, sizeof text, "1, yes, true, on, 0, no, false or off");
    } else if (high == ParamRange::unlimited) {
      std::snprintf(text, sizeof text, "%sof at least %s", kind, Number(param, low).text);
    } else {
      std::snprintf(text, sizeof text, "%sfrom %s to %s", kind, Number(param, low).text, Number(param, high).text);
    }
  }
};

/// The value that is used instead.
struct Used {
  char text[64];
  explicit Used(const Param& param) noexcept {
    if (param.type() == ParamType::text)
      std::snprintf(text, sizeof text, "%s", param.text());
    else if (param.type() == ParamType::boolean)
      std::snprintf(text, sizeof text, "%s", param.value() ? "yes" : "no");
    else
      std::snprintf(text, sizeof text, "%s", Number(param, param.value()).text);
  }
};

void report_values() noexcept {
  for (const Param* param = Param::first(); param; param = param->next()) {
    if (param->mistake() == Param::Mistake::none) continue;
    const bool far = param->mistake() == Param::Mistake::out_of_range;
    notice("%s=%.80s is %s: it takes %s. %s%s is used (`heddle info %s` says what it is for).", param->name(), param->refused(),
           far ? "out of range" : "not possible", Allowed(*param).text, far ? "" : "The default ", Used(*param).text, param->name());
  }
}

void report_names() noexcept {
  int unknown = 0;
  for (char** entry = environ; entry && *entry; ++entry) {
    if (std::strncmp(*entry, prefix.data(), prefix.size()) != 0) continue;
    const std::size_t length = std::strcspn(*entry, "=");
    if (is_known_variable(*entry, length) || ++unknown > most_names) continue;
    const char* const near = nearest_variable(*entry, length);
    const int shown = static_cast<int>(std::min<std::size_t>(length, 80));
    if (near)
      notice("%.*s is not a variable of Heddle's and is ignored; did you mean %s? (`heddle info` lists them all)", shown, *entry, near);
    else
      notice("%.*s is not a variable of Heddle's and is ignored (`heddle info` lists them all)", shown, *entry);
  }
  if (unknown > most_names) notice("so are %d more whose names begin with HEDDLE_", unknown - most_names);
}

}  // namespace

bool is_known_variable(const char* name, std::size_t length) noexcept {
  const std::string_view all(name, length);
  if (all.substr(0, prefix.size()) != prefix) return false;
  const std::string_view rest = all.substr(prefix.size());
  for (const Param* param = Param::first(); param; param = param->next())
    if (all == param->name()) return true;
  for (const std::string_view other : other_prefixes)
    if (rest.substr(0, other.size()) == other) return true;
  return holds(others, rest) || holds(surroundings, rest);
}

const char* nearest_variable(const char* name, std::size_t length) noexcept {
  const std::string_view rest = std::string_view(name, length).substr(std::min(length, prefix.size()));
  if (rest.size() > longest_name) return nullptr;
  const unsigned near = rest.size() <= 5 ? 1 : rest.size() <= 9 ? 2 : 3;  // allowing two more letters would take CMA for SHM
  const char* best = nullptr;
  unsigned least = near + 1;
  const auto consider = [&](const char* candidate) {
    const std::string_view word = std::string_view(candidate).substr(prefix.size());
    if (word.size() > longest_name) return;
    unsigned steps = distance(rest, word);
    if (steps > near && (has_words(rest, word) || has_words(word, rest))) steps = near;
    if (steps >= least) return;
    least = steps;
    best = candidate;
  };
  for (const Param* param = Param::first(); param; param = param->next()) consider(param->name());
  consider("HEDDLE_QUIET");
  return best;
}

void report_mistakes(bool names) noexcept {
  static bool done = false;
  if (done) return;
  done = true;
  report_values();
  if (names) report_names();
}

}  // namespace heddle::sys
