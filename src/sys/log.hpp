// Notices and fatal errors to stderr, each written once, where it is decided, with the cause and the remedy.
#pragma once

namespace heddle::sys {

/// Writes "heddle: [rank] message" to stderr in one write, unless HEDDLE_QUIET is set. Thread-safe.
[[gnu::cold, gnu::format(printf, 1, 2)]] void notice(const char* format, ...) noexcept;

/// As `notice`, but at most once for each call site's `once` flag.
#define HEDDLE_NOTICE_ONCE(...)                                    \
  do {                                                             \
    static bool heddle_said = false;                               \
    if (!__atomic_exchange_n(&heddle_said, true, __ATOMIC_RELAXED)) \
      ::heddle::sys::notice(__VA_ARGS__);                          \
  } while (0)

/// Writes "heddle: [rank] fatal: message" and ends the job (PMI abort, exit code 1). Never returns.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] void fatal(const char* format, ...) noexcept;

/// The rank shown in messages; -1 (before the job is known) shows the process id.
void set_log_rank(int rank) noexcept;

/// Called by `fatal` to end the job; set once the bootstrap knows how.
void set_abort_hook(void (*abort_job)(int exit_code, const char* message)) noexcept;

/// Ends the job through the abort hook, or exits with `exit_code` without one. Never returns.
[[noreturn]] void abort_job(int exit_code, const char* message) noexcept;

}  // namespace heddle::sys
