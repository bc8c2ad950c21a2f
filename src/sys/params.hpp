// Parameters: declared once, next to their use; listed by `heddle info`, docs/params.md and MPI_T.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::sys {

enum class ParamType : std::uint8_t { boolean, integer, size, text };

/// The smallest and the largest value that a number may have.
struct ParamRange {
  std::int64_t low, high;
  static constexpr std::int64_t unlimited = INT64_MAX;  ///< as `high`
};

/// One parameter. Its value comes from the environment variable of the same name, read when the library is loaded.
/// A value that cannot be parsed, or is not among a text's choices, is ignored; a number out of range becomes the nearest one
/// within. Both are mistakes that `report_mistakes` (sys/mistakes.hpp) reports once the rank is known.
///
/// Declare with HEDDLE_PARAM_*; read `value()` freely from any thread (a plain load). `size` accepts K, M, G suffixes.
class Param {
 public:
  enum class Mistake : std::uint8_t { none, not_parsed, out_of_range };

  Param(ParamType type, const char* name, std::int64_t fallback, ParamRange range, const char* help,
        bool alike = false) noexcept;
  Param(const char* name, const char* fallback, const char* help) noexcept;
  Param(const char* name, const char* const* choices, std::size_t count, const char* help) noexcept;

  /// The number; of a text with choices, the number of its choice.
  [[nodiscard]] std::int64_t value() const noexcept { return value_; }
  [[nodiscard]] const char* text() const noexcept { return text_; }
  [[nodiscard]] bool is_set() const noexcept { return set_; }  ///< given by the user
  [[nodiscard]] const char* name() const noexcept { return name_; }
  [[nodiscard]] const char* help() const noexcept { return help_; }
  [[nodiscard]] ParamType type() const noexcept { return type_; }
  [[nodiscard]] bool is_alike() const noexcept { return alike_; }  ///< must have the same value on all ranks
  [[nodiscard]] ParamRange range() const noexcept { return range_; }
  [[nodiscard]] const char* const* choices() const noexcept { return choices_; }  ///< nullptr: any text, or a number
  [[nodiscard]] std::size_t choice_count() const noexcept { return choice_count_; }
  [[nodiscard]] Mistake mistake() const noexcept { return mistake_; }
  [[nodiscard]] const char* refused() const noexcept { return refused_; }  ///< the environment's text, if it was a mistake
  [[nodiscard]] const Param* next() const noexcept { return next_; }
  void set(std::int64_t value) noexcept { value_ = value; }  ///< through MPI_T, before the value is used; within `range`

  static const Param* first() noexcept;  ///< all parameters of the library, in declaration order per file

 private:
  void enlist() noexcept;
  void refuse(Mistake mistake, const char* given) noexcept;

  ParamType type_;
  bool alike_ = false;
  bool set_ = false;
  Mistake mistake_ = Mistake::none;
  const char* name_;
  std::int64_t value_ = 0;
  ParamRange range_{0, 0};
  const char* text_ = nullptr;
  const char* help_;
  const char* const* choices_ = nullptr;
  std::size_t choice_count_ = 0;
  const char* refused_ = nullptr;
  Param* next_ = nullptr;
};

}  // namespace heddle::sys

/// HEDDLE_PARAM_INT(spin, "HEDDLE_SPIN", 2000, 0, 1'000'000, "…") declares the file-local parameter `spin` of 0 to 1,000,000.
#define HEDDLE_PARAM_INT(variable, name, fallback, low, high, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::integer, name, fallback, {low, high}, help }
#define HEDDLE_PARAM_BOOL(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::boolean, name, fallback, {0, 1}, help }
#define HEDDLE_PARAM_SIZE(variable, name, fallback, low, high, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::size, name, fallback, {low, high}, help }
/// One without an upper limit that must have the same value on all ranks of a job.
#define HEDDLE_PARAM_SIZE_ALIKE(variable, name, fallback, low, help)                                        \
  static ::heddle::sys::Param variable {                                                                    \
    ::heddle::sys::ParamType::size, name, fallback, {low, ::heddle::sys::ParamRange::unlimited}, help, true \
  }
#define HEDDLE_PARAM_TEXT(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { name, fallback, help }
/// HEDDLE_PARAM_CHOICE(backing, "HEDDLE_SHM_BACKING", "…", "auto", "file") is one of these words, in any case; the first is the
/// default. `backing.value()` is the number of the word, from 0.
#define HEDDLE_PARAM_CHOICE(variable, name, help, ...)                    \
  static constexpr const char* variable##_choices[] = {__VA_ARGS__};      \
  static ::heddle::sys::Param variable {                                  \
    name, variable##_choices, sizeof variable##_choices / sizeof *variable##_choices, help \
  }
