#include "engines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "spawn.hpp"

extern char** environ;

namespace heddle::mpiexec {
namespace {

using Words = std::vector<std::string>;
constexpr std::string_view preload_word = "LD_PRELOAD=";

std::string variable(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

/// The path of an installed program, or nothing.
std::string installed(const char* name) { return find_program(name, "", "").path; }

bool is_elsewhere(const HostChoice& host) { return !is_this_machine(host.name); }

/// A Slurm allocation of more than this machine: several nodes, or made from a node that is not part of it.
bool in_wide_slurm_allocation() {
  if (variable("SLURM_JOB_ID").empty()) return false;
  const std::string nodes = variable("SLURM_JOB_NODELIST");
  return variable("SLURM_JOB_NUM_NODES") != "1" || (!nodes.empty() && !is_this_machine(nodes));
}

/// CPUs of the allocation from `2(x3),1`; 0: not known.
long allocated_cpus() {
  long total = 0;
  const std::string text = variable("SLURM_JOB_CPUS_PER_NODE");
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    const long cpus = strtol(at, &end, 10);
    long times = 1;
    if (end == at) return 0;
    if (std::strncmp(end, "(x", 2) == 0) {
      times = strtol(end + 2, &end, 10);
      if (*end == ')') ++end;
    }
    total += cpus * times;
    at = *end == ',' ? end + 1 : end;
    if (*end != ',' && *end != '\0') return 0;
  }
  return total;
}

void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

/// `env NAME=VALUE … PROGRAM …`: what an app sets on top, in the same way for every engine.
void add_program(Words& words, const App& app, bool set_directory) {
  set_directory = set_directory && !app.directory.empty();
  if (!app.environment.values.empty() || set_directory) words.push_back("env");
  if (set_directory) words.push_back("--chdir=" + app.directory);
  for (const auto& [name, value] : app.environment.values) words.push_back(name + "=" + value);
  words.insert(words.end(), app.command.begin(), app.command.end());
}

std::string host_list(const Options& options, bool with_slots) {
  std::string list;
  for (const HostChoice& host : options.hosts) {
    list += (list.empty() ? "" : ",") + host.name;
    if (with_slots && host.slots > 0) list += fmt::format(":{}", host.slots);
  }
  return list;
}

/// `-n` as given; without it, `-ppn` on every host.
std::optional<int> ranks_of(const App& app, const Options& options) {
  if (app.ranks_given || options.hosts.empty() || options.per_host == 0) return app.ranks;
  return static_cast<int>(options.hosts.size()) * options.per_host;
}

/// Variables that describe the place where they are set, and so are not passed on.
bool is_local_matter(std::string_view name) {
  for (const std::string_view start : {"PMI_", "PMIX_", "PRTE_", "SLURM_", "SSH_", "XDG_", "BASH_FUNC", "HEDDLE_JOB"})
    if (name.starts_with(start)) return true;
  for (const std::string_view same :
       {"HOSTNAME", "PWD", "OLDPWD", "SHLVL", "TERM", "DISPLAY", "TMPDIR", "_", "TTY", "MAIL"})
    if (name == same) return true;
  return false;
}

Words slurm_command(const std::string& program, const Options& options, std::string& file) {
  // Without this option srun answers an interrupt with the state of its tasks.
  Words words{program, "--mpi=pmi2", "--kill-on-bad-exit=1", "--quit-on-interrupt"};
  if (!variable("SLURM_STEP_ID").empty())
    words.push_back("--overlap");  // an interactive shell is a step that has the CPUs
  if (!options.hosts.empty()) {
    words.push_back("--nodelist=" + host_list(options, false));
    words.push_back(fmt::format("--nodes={}", options.hosts.size()));
  }
  if (options.per_host > 0) words.push_back(fmt::format("--ntasks-per-node={}", options.per_host));
  bool counted = options.apps.size() > 1 || options.per_host == 0;
  int ranks = 0;
  for (const App& app : options.apps) {
    ranks += ranks_of(app, options).value_or(1);
    counted = counted || app.ranks_given;
  }
  if (options.apps.size() == 1 && !options.apps.front().ranks_given && !variable("SLURM_NTASKS").empty())
    counted = false;
  if (counted) words.push_back(fmt::format("--ntasks={}", ranks));
  if (const long cpus = allocated_cpus(); cpus > 0 && ranks > cpus) words.push_back("--overcommit");
  if (options.label_output) words.push_back("--label");
  words.push_back("--input=" + options.stdin_to);
  // Without a request Slurm's own rules hold: it warns where a cluster has no binding at all.
  if (options.bind == Bind::core) words.push_back("--cpu-bind=cores");
  if (options.bind == Bind::none) words.push_back("--cpu-bind=none");
  const EnvironmentChoice& environment = options.apps.front().environment;
  if (environment.base == EnvironmentChoice::Base::none) words.push_back("--export=NONE");
  if (environment.base == EnvironmentChoice::Base::listed)
    words.push_back(fmt::format("--export={}", fmt::join(environment.listed, ",")));
  if (options.apps.size() == 1) {
    if (const std::string& directory = options.apps.front().directory; !directory.empty())
      words.push_back("--chdir=" + directory);
    add_program(words, options.apps.front(), false);
    return words;
  }
  add(words, {"--multi-prog", multi_program_word});
  int first = 0;
  for (const App& app : options.apps) {
    Words line;
    add_program(line, app, true);
    file += fmt::format("{}-{}", first, first + app.ranks - 1);
    for (const std::string& word : line)
      file += word.find_first_of(" \t\"") != std::string::npos ? " '" + word + "'" : " " + word;
    file += "\n";
    first += app.ranks;
  }
  return words;
}

Words prte_command(const std::string& program, const Options& options) {
  Words words{program};
  // Where its own files are on the other hosts: it does not find them if it was moved after it was built.
  const std::string prefix = program.substr(0, program.size() - std::min(program.size(), sizeof "/bin/prterun" - 1));
  if (prefix != "/usr" && !prefix.empty()) add(words, {"--prefix", prefix});
  if (geteuid() == 0) words.push_back("--allow-run-as-root");
  for (const auto& [name, value] : options.mca) add(words, {"--prtemca", name, value});
  words.push_back("--map-by");
  words.push_back(options.per_host > 0 ? fmt::format("ppr:{}:node:oversubscribe", options.per_host)
                                       : "slot:oversubscribe");
  add(words, {"--bind-to", options.bind == Bind::core ? "core" : "none"});
  if (options.label_output) add(words, {"--output", "tag"});
  add(words, {"--stdin", options.stdin_to});
  for (const App& app : options.apps) {
    if (&app != &options.apps.front()) words.push_back(":");
    if (!options.hosts.empty()) add(words, {"--host", host_list(options, true)});
    if (const auto ranks = ranks_of(app, options)) add(words, {"-n", std::to_string(*ranks)});
    if (!app.directory.empty()) add(words, {"--wdir", app.directory});
    // PRRTE passes only variables that are named to other hosts.
    if (app.environment.base == EnvironmentChoice::Base::all) {
      for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view name(*entry, std::strcspn(*entry, "="));
        if (!is_local_matter(name)) add(words, {"-x", std::string(name)});
      }
    } else {
      for (const std::string& name : app.environment.listed) add(words, {"-x", name});
    }
    add_program(words, app, false);
  }
  return words;
}

Words hydra_command(const std::string& program, const Options& options) {
  Words words{program};
  if (!options.hosts.empty()) add(words, {"-hosts", host_list(options, true)});
  if (!options.remote_shell.empty()) add(words, {"-launcher", options.remote_shell});
  if (options.per_host > 0) add(words, {"-ppn", std::to_string(options.per_host)});
  if (options.bind == Bind::core) add(words, {"-bind-to", "core"});
  if (options.label_output) words.push_back("-l");
  if (options.stdin_to != "0") add(words, {"-s", options.stdin_to});
  if (options.universe_size) add(words, {"-usize", std::to_string(*options.universe_size)});
  for (const App& app : options.apps) {
    if (&app != &options.apps.front()) words.push_back(":");
    add(words, {"-n", std::to_string(ranks_of(app, options).value_or(1))});
    if (!app.directory.empty()) add(words, {"-wdir", app.directory});
    if (app.environment.base == EnvironmentChoice::Base::none) words.push_back("-envnone");
    if (app.environment.base == EnvironmentChoice::Base::listed)
      add(words, {"-envlist", fmt::format("{}", fmt::join(app.environment.listed, ","))});
    add_program(words, app, false);
  }
  return words;
}

const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::own:
      return "mpiexec itself";
    case Engine::slurm:
      return "Slurm";
    case Engine::prte:
      return "PRRTE";
    case Engine::hydra:
      return "Hydra";
  }
  return "?";
}

constexpr const char* program_of(Engine engine) {
  return engine == Engine::slurm ? "srun" : engine == Engine::prte ? "prterun" : "mpiexec.hydra";
}

constexpr const char* remedy =
    "install PRRTE (prterun; it comes with Open MPI 5) or Hydra (mpiexec.hydra; it comes with MPICH: Debian's package "
    "mpich) so "
    "that it is found in PATH, or use the launcher of your site: Heddle's library starts under all that speak PMIx, "
    "PMI-2 or "
    "PMI-1";

EngineChoice take(Engine engine, std::string reason) {
  EngineChoice choice{engine, installed(program_of(engine)), "", std::move(reason)};
  if (choice.program.empty())
    choice.problem =
        fmt::format("{} ({}), but {} is not installed: {}", name_of(engine), choice.reason, program_of(engine), remedy);
  return choice;
}

/// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}~#`!") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// `options`, with the library that apps with the shared heap preload. Set by `env` for the program alone, which works with all
/// engines: they and their daemons have no use for it, and PRRTE's would not pass it on.
Options with_shared_heap(const Options& options) {
  Options result = options;
  std::string last_problem;
  for (App& app : result.apps) {
    std::vector<std::string> environment = make_environment(app);
    const auto preload = [&] {
      const auto found = std::find_if(environment.begin(), environment.end(), [](const std::string& text) { return text.starts_with(preload_word); });
      return found != environment.end() ? found->substr(preload_word.size()) : std::string();
    };
    const std::string before = preload();
    const std::string problem = preload_shared_heap(environment);
    if (!problem.empty() && problem != last_problem && !options.quiet) say(problem);
    last_problem = problem;
    if (const std::string wanted = preload(); wanted != before) app.environment.values.emplace_back("LD_PRELOAD", wanted);
  }
  return result;
}

}  // namespace

EngineChoice choose_engine(const Options& options) {
  const auto elsewhere = std::find_if(options.hosts.begin(), options.hosts.end(), is_elsewhere);
  if (options.launcher == "none") {
    if (elsewhere == options.hosts.end()) return {Engine::own, "", "", "--launcher none"};
    return {
        Engine::own, "",
        fmt::format("\"{}\" is another machine: --launcher none starts processes on this one only", elsewhere->name),
        ""};
  }
  if (options.launcher == "slurm") return take(Engine::slurm, "asked for by --launcher");
  if (options.launcher == "prte") return take(Engine::prte, "asked for by --launcher");
  if (options.launcher == "hydra") return take(Engine::hydra, "asked for by --launcher");
  if (options.hosts.empty() ? in_wide_slurm_allocation()
                            : elsewhere != options.hosts.end() && !variable("SLURM_JOB_ID").empty())
    return take(Engine::slurm, fmt::format("inside Slurm job {}", variable("SLURM_JOB_ID")));
  if (elsewhere == options.hosts.end()) return {Engine::own, "", "", "all ranks on this machine"};
  const std::string reason = fmt::format("\"{}\" is another machine", elsewhere->name);
  for (const Engine engine : {Engine::prte, Engine::hydra})
    if (!installed(program_of(engine)).empty()) return take(engine, reason);
  return {Engine::own, "", fmt::format("{}, and nothing is installed that starts processes there: {}", reason, remedy),
          ""};
}

std::vector<std::string> engine_command(const EngineChoice& choice, const Options& options,
                                        std::string& multi_program_file) {
  Words words = choice.engine == Engine::slurm  ? slurm_command(choice.program, options, multi_program_file)
                : choice.engine == Engine::prte ? prte_command(choice.program, options)
                                                : hydra_command(choice.program, options);
  if (options.timeout > 0) {
    // Ends with the documented code 124, which none of the engines uses.
    const Words limit{"timeout", "--foreground", "--kill-after=10", fmt::format("{}", options.timeout)};
    words.insert(words.begin(), limit.begin(), limit.end());
  }
  return words;
}

std::optional<int> hand_over(const Options& asked) {
  const EngineChoice choice = choose_engine(asked);
  if (!choice.problem.empty()) {
    say(choice.problem);
    return 2;
  }
  if (choice.engine == Engine::own) {
    if (asked.verbose) say(fmt::format("starts the ranks itself ({})", choice.reason));
    return std::nullopt;
  }
  const Options options = with_shared_heap(asked);
  std::string programs;
  Words words = engine_command(choice, options, programs);
  if (!programs.empty()) {
    // The engine inherits the descriptor, so no file has to be removed afterwards.
    const int file = memfd_create("programs", 0);
    if (file < 0 || write(file, programs.data(), programs.size()) != static_cast<ssize_t>(programs.size())) {
      say(fmt::format("cannot write the list of programs: {}", std::strerror(errno)));
      return 1;
    }
    for (std::string& word : words)
      if (word == multi_program_word) word = fmt::format("/proc/self/fd/{}", file);
  }
  if (options.bind == Bind::even && !options.quiet)
    say(fmt::format("--bind even has no effect: the ranks are started by {}, and not bound", name_of(choice.engine)));
  if (options.verbose) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
    say(fmt::format("starts the ranks through {} ({}): {}", name_of(choice.engine), choice.reason, line));
    if (!programs.empty()) say("the programs:\n" + programs);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  say(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  return 126;
}

}  // namespace heddle::mpiexec
