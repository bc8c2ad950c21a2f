// Parameters: declared once, next to their use; listed by `heddle info`, docs/params.md and MPI_T.
#pragma once

#include <cstdint>

namespace heddle::sys {

enum class ParamType : std::uint8_t { boolean, integer, size, text };

/// One parameter. Its value comes from the environment variable of the same name, read when the library is loaded.
/// A value that cannot be parsed is reported once, naming the variable and what is accepted, and the default is used.
///
/// Declare with HEDDLE_PARAM_*; read `value()` freely from any thread (a plain load). `size` accepts K, M, G suffixes.
class Param {
 public:
  Param(ParamType type, const char* name, std::int64_t fallback, const char* fallback_text, const char* help,
        bool alike = false) noexcept;

  [[nodiscard]] std::int64_t value() const noexcept { return value_; }
  [[nodiscard]] const char* text() const noexcept { return text_; }
  [[nodiscard]] bool is_set() const noexcept { return set_; }  ///< given by the user
  [[nodiscard]] const char* name() const noexcept { return name_; }
  [[nodiscard]] const char* help() const noexcept { return help_; }
  [[nodiscard]] ParamType type() const noexcept { return type_; }
  [[nodiscard]] bool is_alike() const noexcept { return alike_; }  ///< ranks with different values do not understand each other
  [[nodiscard]] std::int64_t fallback() const noexcept { return fallback_; }
  [[nodiscard]] const char* fallback_text() const noexcept { return fallback_text_; }
  [[nodiscard]] const Param* next() const noexcept { return next_; }
  void set(std::int64_t value) noexcept { value_ = value; }  ///< through MPI_T, before the value is used

  static const Param* first() noexcept;  ///< all parameters of the library, in declaration order per file

 private:
  ParamType type_;
  bool alike_;
  bool set_ = false;
  const char* name_;
  std::int64_t fallback_, value_;
  const char *fallback_text_, *text_;
  const char* help_;
  Param* next_;
};

}  // namespace heddle::sys

/// HEDDLE_PARAM_INT(spin, "HEDDLE_SPIN", 2000, "…") declares the file-local parameter `spin`.
#define HEDDLE_PARAM_INT(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::integer, name, fallback, nullptr, help }
#define HEDDLE_PARAM_BOOL(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::boolean, name, fallback, nullptr, help }
#define HEDDLE_PARAM_SIZE(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::size, name, fallback, nullptr, help }
/// One that must have the same value on all ranks of a job.
#define HEDDLE_PARAM_SIZE_ALIKE(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::size, name, fallback, nullptr, help, true }
#define HEDDLE_PARAM_TEXT(variable, name, fallback, help) \
  static ::heddle::sys::Param variable { ::heddle::sys::ParamType::text, name, 0, fallback, help }
