#include "sys/bootstrap/job_id.hpp"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace heddle::sys::bootstrap {

std::string random_job_id() {
  std::uint64_t bits[2] = {};
  if (getrandom(bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    // Only a kernel without getrandom, or a filter that forbids it, comes here: unique on this machine is enough.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    bits[0] = static_cast<std::uint64_t>(now.tv_sec) << 32 ^ static_cast<std::uint64_t>(now.tv_nsec);
    bits[1] = static_cast<std::uint64_t>(getpid());
  }
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(bits[0]),
                static_cast<unsigned long long>(bits[1]));
  return text;
}

std::string file_name_part(std::string_view text) {
  std::string name(text.substr(0, 64));
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-')) c = '_';
  return name;
}

}  // namespace heddle::sys::bootstrap
