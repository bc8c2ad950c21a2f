#include <unistd.h>

#include <string>

#include "engines.hpp"
#include "job.hpp"
#include "launcher.hpp"

namespace heddle::mpiexec {

void say(const std::string& text) {
  const std::string line = "mpiexec: " + text + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace heddle::mpiexec

int main(int argc, char** argv) {
  heddle::mpiexec::Parsed parsed = heddle::mpiexec::parse_command_line(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  if (const auto code = heddle::mpiexec::hand_over(parsed.options)) return *code;
  heddle::mpiexec::Launcher launcher(std::move(parsed.options));
  return launcher.run();
}
