#include "sys/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::sys {
namespace {

std::atomic<int> log_rank{-1};
std::atomic<void (*)(int, const char*)> abort_hook{nullptr};

/// One line in one write, so that lines of several ranks do not mix.
void write_line(const char* kind, const char* format, va_list arguments) noexcept {
  char line[2048];
  const int rank = log_rank.load(std::memory_order_relaxed);
  int n = rank >= 0 ? std::snprintf(line, sizeof line, "heddle: [rank %d] %s", rank, kind)
                    : std::snprintf(line, sizeof line, "heddle: [pid %d] %s", static_cast<int>(getpid()), kind);
  n += std::vsnprintf(line + n, sizeof line - static_cast<std::size_t>(n) - 1, format, arguments);
  std::size_t length = static_cast<std::size_t>(n);
  if (length > sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length);
}

}  // namespace

void notice(const char* format, ...) noexcept {
  // getenv and not a parameter: notices may be needed while parameters are being read.
  static const bool quiet = std::getenv("HEDDLE_QUIET") && std::strcmp(std::getenv("HEDDLE_QUIET"), "0");
  if (quiet) return;
  va_list arguments;
  va_start(arguments, format);
  write_line("", format, arguments);
  va_end(arguments);
}

void fatal(const char* format, ...) noexcept {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  write_line("fatal: ", format, arguments);
  std::vsnprintf(text, sizeof text, format, again);
  va_end(again);
  va_end(arguments);
  abort_job(1, text);
}

void set_log_rank(int rank) noexcept { log_rank.store(rank, std::memory_order_relaxed); }

void set_abort_hook(void (*hook)(int, const char*)) noexcept { abort_hook.store(hook, std::memory_order_release); }

void abort_job(int exit_code, const char* message) noexcept {
  if (auto* hook = abort_hook.load(std::memory_order_acquire)) hook(exit_code, message);  // pairs with set_abort_hook
  std::_Exit(exit_code);
}

}  // namespace heddle::sys
