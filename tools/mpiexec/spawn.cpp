#include "spawn.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <unordered_map>

extern char** environ;

namespace heddle::mpiexec {
namespace {

struct FreeMask {
  void operator()(cpu_set_t* mask) const { CPU_FREE(mask); }
};
using Mask = std::unique_ptr<cpu_set_t, FreeMask>;

struct SizedMask {
  std::size_t bytes;
  Mask mask;
};

SizedMask make_mask(const sys::CoreSet& cores) {
  const std::vector<int> list = cores.list();
  const auto capacity = static_cast<std::size_t>(list.empty() ? 1 : list.back() + 1);
  SizedMask result{CPU_ALLOC_SIZE(capacity), Mask(CPU_ALLOC(capacity))};
  CPU_ZERO_S(result.bytes, result.mask.get());
  for (const int core : list) CPU_SET_S(static_cast<std::size_t>(core), result.bytes, result.mask.get());
  return result;
}

bool is_executable_file(const std::string& path, int& error) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    error = errno;
    return false;
  }
  error = S_ISDIR(info.st_mode)             ? EISDIR
          : !S_ISREG(info.st_mode)          ? EACCES
          : access(path.c_str(), X_OK) != 0 ? EACCES
                                            : 0;
  return error == 0;
}

std::string in_directory(const std::string& directory, const std::string& path) {
  return directory.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

/// Variables by which some launcher described a job to us; our ranks must not take them for theirs.
bool describes_another_job(std::string_view name) {
  return name.starts_with("PMI_") || name.starts_with("PMIX_") || name.starts_with("OMPI_COMM_WORLD_") ||
         name == "HEDDLE_JOB" || name == "HEDDLE_JOB_ID" || name == "MPI_LOCALRANKID" || name == "MPI_LOCALNRANKS";
}

// The child's side. It runs on the launcher's memory until exec, so it allocates nothing and only makes system calls.
[[noreturn]] void become(const ProcessPlan& plan, const SpawnSettings& settings, const SizedMask& mask,
                         SpawnFailure& failure) {
  using Step = SpawnFailure::Step;
  const auto fail = [&failure](Step step) {
    failure.step = step;
    failure.error = errno;
    _exit(127);
  };
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != settings.launcher) _exit(127);  // it died before the line above
  // Where a rank's stream comes from is never 0, 1 or 2: the launcher keeps those occupied.
  for (int number = 0; number < 3; ++number)
    if (plan.standard[number] >= 0 && dup2(plan.standard[number], number) < 0) fail(Step::descriptors);
  for (const auto& [from, to] : plan.keep)
    if (from == to ? fcntl(to, F_SETFD, 0) < 0 : dup2(from, to) < 0) fail(Step::descriptors);
  if (mask.mask != nullptr && sched_setaffinity(0, mask.bytes, mask.mask.get()) != 0) fail(Step::binding);
  if (plan.directory != nullptr && chdir(plan.directory) != 0) fail(Step::directory);
  setrlimit(RLIMIT_NOFILE, &settings.descriptors);
  sigprocmask(SIG_SETMASK, &settings.signal_mask, nullptr);
  execve(plan.path, plan.arguments.data(), plan.environment.data());
  fail(Step::exec);
  __builtin_unreachable();
}

}  // namespace

pid_t spawn(const ProcessPlan& plan, const SpawnSettings& settings, SpawnFailure& failure) {
  const SizedMask mask = plan.cores != nullptr ? make_mask(*plan.cores) : SizedMask{};
  failure = SpawnFailure{};
  const pid_t child = vfork();
  if (child == 0) become(plan, settings, mask, failure);
  if (child < 0) {
    failure = {SpawnFailure::Step::fork, errno};
    return -1;
  }
  return child;  // when exec failed, `failure` says so and the child is dead, to be reaped like any other
}

Program find_program(const std::string& program, const std::string& directory, const std::string& search_path) {
  int error = 0;
  if (program.find('/') != std::string::npos) {
    if (is_executable_file(in_directory(directory, program), error)) return {program, "", 0};
    switch (error) {
      case EISDIR:
        return {"", fmt::format("\"{}\" is a directory, not a program", program), 126};
      case EACCES:
        return {"", fmt::format("\"{0}\" is not executable. Make it so: chmod +x {0}", program), 126};
      default:
        return {"",
                fmt::format("cannot start \"{}\"{}: {}", program,
                            directory.empty() ? "" : " from the directory \"" + directory + "\"", strerror(error)),
                127};
    }
  }
  const char* variable = getenv("PATH");
  std::string folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  if (!search_path.empty()) folders = search_path + ":" + folders;
  std::string not_executable;
  for (std::size_t start = 0; start <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    const std::string folder = folders.substr(start, end - start);
    std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (is_executable_file(path, error)) {
      // Found from where we are, started from where the rank is to run.
      std::error_code unknown;
      if (!directory.empty() && !path.starts_with('/')) path = std::filesystem::absolute(path, unknown).string();
      return {path, "", 0};
    }
    if (error == EACCES && not_executable.empty()) not_executable = path;
    start = end + 1;
  }
  if (!not_executable.empty())
    return {"", fmt::format("\"{0}\" is not executable. Make it so: chmod +x {0}", not_executable), 126};
  const bool is_here = is_executable_file(in_directory(directory, program), error);
  return {"",
          fmt::format("cannot find the program \"{}\" in PATH{}", program,
                      is_here ? fmt::format("; there is one in the working directory: start it as ./{}", program)
                              : ". Give its path, or add its directory with --path or to PATH"),
          127};
}

std::string explain(const SpawnFailure& failure, const App& app, const std::string& path, int& exit_code) {
  using Step = SpawnFailure::Step;
  const char* cause = strerror(failure.error);
  exit_code = 126;
  switch (failure.step) {
    case Step::fork:
      return fmt::format("cannot make another process: {} (ulimit -u, or the control group's limit on processes)",
                         cause);
    case Step::directory:
      return fmt::format("cannot start \"{}\" in the directory \"{}\": {}. Correct -wdir", path, app.directory, cause);
    case Step::binding:
      return fmt::format("cannot bind \"{}\" to its cores: {}. Use --bind none", path, cause);
    case Step::exec:
      if (failure.error == ENOENT) {
        exit_code = 127;
        return fmt::format(
            "cannot start \"{}\": the file is there, but not the interpreter it names (the program after "
            "#! in its first line, or the loader of a binary for another system)",
            path);
      }
      if (failure.error == ENOEXEC)
        return fmt::format("cannot start \"{}\": it is not a program for this machine", path);
      if (failure.error == E2BIG)
        return fmt::format("cannot start \"{}\": its arguments and environment are too long", path);
      return fmt::format("cannot start \"{}\": {}", path, cause);
    default:
      return fmt::format("cannot set up \"{}\": {}", path, cause);
  }
}

bool is_shell_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[256];
  file.read(head, sizeof head);
  return std::string_view(head, static_cast<std::size_t>(file.gcount())).find('\0') == std::string_view::npos;
}

std::vector<std::string> make_environment(const App& app) {
  using Base = EnvironmentChoice::Base;
  const EnvironmentChoice& choice = app.environment;
  std::vector<std::string> result;
  std::unordered_map<std::string, std::size_t> place;
  const auto set = [&](const std::string& name, const std::string& text) {
    const auto [entry, fresh] = place.try_emplace(name, result.size());
    if (fresh)
      result.push_back(text);
    else
      result[entry->second] = text;
  };
  for (char** variable = environ; *variable != nullptr && choice.base != Base::none; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (describes_another_job(name)) continue;
    if (choice.base == Base::listed &&
        std::find(choice.listed.begin(), choice.listed.end(), name) == choice.listed.end())
      continue;
    set(name, text);
  }
  for (const auto& [name, value] : choice.values) set(name, name + "=" + value);
  return result;
}

std::string preload_shared_heap(std::vector<std::string>& environment) {
  std::string* preload = nullptr;
  bool wanted = false;
  for (std::string& text : environment) {
    if (text.starts_with("LD_PRELOAD=")) preload = &text;
    if (!text.starts_with("HEDDLE_SHARED_HEAP=")) continue;
    const char* value = text.c_str() + text.find('=') + 1;
    for (const char* yes : {"1", "yes", "true", "on"}) wanted = wanted || strcasecmp(value, yes) == 0;
  }
  constexpr std::string_view name = "libheddle_heap.so";
  if (!wanted || (preload != nullptr && preload->find(name) != std::string::npos)) return "";
  std::error_code error;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const char* folder : {"lib", HEDDLE_LIBDIR}) {
    const std::string path = (prefix / folder / name).string();
    if (!std::filesystem::exists(path, error)) continue;
    if (path.find_first_of(": ") != std::string::npos)
      return fmt::format("HEDDLE_SHARED_HEAP has no effect: LD_PRELOAD takes no path with a space or a colon: {}", path);
    // First in the list: it passes small blocks on to the next malloc.
    if (preload != nullptr)
      preload->insert(std::string_view("LD_PRELOAD=").size(), path + ":");
    else
      environment.push_back("LD_PRELOAD=" + path);
    return "";
  }
  return fmt::format("HEDDLE_SHARED_HEAP has no effect: there is no {} in {}", name, (prefix / "lib").string());
}

}  // namespace heddle::mpiexec
