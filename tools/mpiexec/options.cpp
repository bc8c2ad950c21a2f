// The command line. Other MPIs' spellings are accepted where they mean the same here, and their options that only make
// sense on clusters are accepted where ignoring them is right on one machine.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hosts.hpp"
#include "job.hpp"
#include "option_words.hpp"

namespace heddle::mpiexec {
namespace {

constexpr const char* description =
    "Starts the ranks of an MPI program.\n"
    "  mpiexec [options] PROGRAM [arguments]\n"
    "  mpiexec [options] PROGRAM … : [options] PROGRAM …      several programs in one job\n"
    "Every option may be written with one or two dashes.\n";

/// The options of one part. Global ones write to `options`, whichever part they stand in.
class PartParser {
 public:
  PartParser(Options& options, App& app, EnvironmentChoice& everywhere) : cli_(description, "mpiexec") {
    cli_.set_help_flag("-h,--help", "show this and exit");
    cli_.add_flag("-V,--version", version_, "show the version and exit");
    add_start(app);
    add_files();
    add_environment(app, everywhere);
    add_run(options);
    add_hosts(options);
    add_tolerated(options);
  }

  /// Consumes the options at the head of `words` and returns the rest: the program and its arguments.
  std::vector<std::string> parse(std::vector<std::string> words) {
    std::vector<std::string> arguments;
    std::size_t next = 0;
    while (next < words.size() && words[next].size() > 1 && words[next][0] == '-') {
      if (words[next] == "--") {
        ++next;
        break;
      }
      const std::string word = with_two_dashes(words[next]);
      const std::size_t equals = word.find('=');
      const CLI::Option* option = cli_.get_option_no_throw(word.substr(0, equals));
      if (option == nullptr) throw unknown(words[next], word.substr(0, equals));
      const auto values = static_cast<std::size_t>(option->get_items_expected_max());
      const std::size_t take = equals != std::string::npos ? 0 : values;
      if (next + take >= words.size() && take > 0)
        throw Refusal{fmt::format("the option \"{}\" needs {}", words[next],
                                  take == 1 ? "a value" : fmt::format("{} values", take))};
      if (take == 2 && words[next + 1].find('=') != std::string::npos)
        throw Refusal{fmt::format("{0} {1}: its name and value are two words, {0} {2}; -x takes NAME=VALUE", words[next],
                                  words[next + 1], std::string(words[next + 1]).replace(words[next + 1].find('='), 1, " "))};
      if (option == file_) {  // its words take its place
        if (++files_ > 100) throw Refusal{"-file: a hundred files, or one that names itself"};
        const std::string name = equals != std::string::npos ? word.substr(equals + 1) : words[next + 1];
        const std::vector<std::string> more = read_words("-file", name);
        const auto at = words.erase(words.begin() + static_cast<std::ptrdiff_t>(next),
                                    words.begin() + static_cast<std::ptrdiff_t>(next + 1 + take));
        words.insert(at, more.begin(), more.end());
        continue;
      }
      if (word[1] != '-' && equals != std::string::npos) {  // CLI11 would take `=` for the value's beginning
        arguments.push_back(word.substr(0, equals));
        arguments.push_back(word.substr(equals + 1));
      } else {
        arguments.push_back(word);
      }
      arguments.insert(arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(next) + 1,
                       words.begin() + static_cast<std::ptrdiff_t>(next + 1 + take));
      next += 1 + take;
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    cli_.parse(arguments);
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(next));
    return words;
  }

  bool version() const { return version_; }
  /// The file that has the parts of the job in this one's stead; empty: none.
  const std::string& config_file() const { return config_file_; }
  /// What -soft said; empty: nothing.
  const std::string& soft() const { return soft_; }
  const CLI::App& cli() const { return cli_; }

 private:
  /// `-np` to `--np`, for CLI11 would read it as `-n p`; options of one letter have one dash: `--n`, `-n` and `-n=2`.
  static std::string with_two_dashes(const std::string& word) {
    const std::string name = word.substr(word[1] == '-' ? 2 : 1);
    return (name.size() == 1 || name.find('=') == 1 ? "-" : "--") + name;
  }

  Refusal unknown(const std::string& written, const std::string& word) const {
    std::vector<std::string> names;
    for (const CLI::Option* option : cli_.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    const std::string meant = nearest(word, names);
    return {fmt::format("unknown option \"{}\"; {}`mpiexec --help` lists the options, and a program whose name "
                        "begins with a dash is written after `--`",
                        written, meant.empty() ? "" : fmt::format("did you mean {}? ", meant))};
  }

  void add_start(App& app) {
    const auto ranks = [&app](const std::string& text) {
      char* end = nullptr;
      const long value = std::strtol(text.c_str(), &end, 10);
      if (end == text.c_str() || *end != '\0' || value < 1 || value > 1'000'000)
        throw Refusal{fmt::format("-n {}: the number of ranks must be 1 or more", text)};
      app.ranks = static_cast<int>(value);
      app.ranks_given = true;
    };
    cli_.add_option_function<std::string>("-n,--np", ranks, "number of ranks of this program (default 1)")
        ->type_name("RANKS");
    cli_.add_option("--wdir,--wd,--dir", app.directory, "working directory of the ranks")->type_name("DIR");
    cli_.add_option("--path", app.search_path, "directories searched for the program before PATH, separated by `:`")
        ->type_name("DIRS");
    cli_.add_option("--soft", soft_, "numbers of ranks that will do: the largest of them that -n allows is started")
        ->type_name("A:B:STEP,…");
    cli_.add_option_function<std::string>(
            "--arch",
            [](const std::string& name) {
              utsname here{};
              uname(&here);
              const auto same = [](std::string a) { return a == "amd64" || a == "x86-64" ? "x86_64" : a == "arm64" ? "aarch64" : a; };
              if (same(name) != same(here.machine))
                throw Refusal{fmt::format("-arch {}: this machine is {}; jobs of several architectures are not supported", name,
                                          here.machine)};
            },
            "the machine's architecture, as `uname -m` names it")
        ->type_name("NAME");
    cli_.add_option_function<std::string>(
            "--initial-errhandler",
            [&app](const std::string& name) { app.environment.values.emplace_back("HEDDLE_INITIAL_ERRHANDLER", name); },
            "error handler before MPI_Init and of MPI_COMM_WORLD at first: mpi_errors_are_fatal (the default), "
            "mpi_errors_abort or mpi_errors_return")
        ->check(CLI::IsMember({"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"}))
        ->type_name("HANDLER");
  }

  void add_files() {
    file_ = cli_.add_option("--file", ignored_, "a file with more options of this program")->type_name("FILE");
    cli_.add_option("--configfile", config_file_, "a file with the programs of the job, a line for each with its options")
        ->type_name("FILE");
  }

  void add_environment(App& app, EnvironmentChoice& everywhere) {
    const auto pair = [](EnvironmentChoice& to) {
      return [&to](const std::vector<std::string>& words) {
        for (std::size_t i = 0; i + 1 < words.size(); i += 2) to.values.emplace_back(words[i], words[i + 1]);
        return true;
      };
    };
    const auto list = [](EnvironmentChoice& to) {
      return [&to](const std::string& names) {
        to.base = EnvironmentChoice::Base::listed;
        to.listed = split(names, ',');
      };
    };
    const auto choose = [](EnvironmentChoice& to, EnvironmentChoice::Base base) {
      return [&to, base](std::int64_t) { to.base = base; };
    };
    add_pairs("--env", "set NAME VALUE for the ranks of this program", pair(app.environment));
    add_pairs("--genv", "set NAME VALUE for all ranks", pair(everywhere));
    cli_.add_option_function<std::string>(
            "--hang-report",
            [&everywhere](const std::string& seconds) { everywhere.values.emplace_back("HEDDLE_HANG_REPORT", seconds); },
            "a rank that has waited that long in an MPI function says in which and what for")
        ->check(CLI::PositiveNumber)
        ->type_name("SECONDS");
    cli_.add_option_function<std::string>("--envlist", list(app.environment),
                                          "pass on only these variables (comma separated) to this program")
        ->type_name("NAMES");
    cli_.add_option_function<std::string>("--genvlist", list(everywhere), "pass on only these variables to all ranks")
        ->type_name("NAMES");
    cli_.add_flag_function("--envnone", choose(app.environment, EnvironmentChoice::Base::none), "pass on no variables");
    cli_.add_flag_function("--genvnone", choose(everywhere, EnvironmentChoice::Base::none), "the same for all ranks");
    cli_.add_flag_function(
        "--envall,--genvall", [](std::int64_t) {}, "pass on all variables (the default)");
    cli_.add_option_function<std::vector<std::string>>(
            "-x",
            [&app](const std::vector<std::string>& words) {
              for (const std::string& word : words) {
                const std::size_t equals = word.find('=');
                if (equals != std::string::npos)
                  app.environment.values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
              }
            },
            "NAME=VALUE: set it for this program; NAME: pass it on (all are)")
        ->expected(1)
        ->type_name("NAME[=VALUE]")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_run(Options& options) {
    cli_.add_flag_function(
        "-l,--prepend-rank,--tag-output", [&options](std::int64_t) { options.label_output = true; },
        "begin every line of output with its rank");
    cli_.add_option("-s,--stdin", options.stdin_to, "who reads standard input: a rank (default 0), `all`, `none`")
        ->type_name("WHO");
    cli_.add_option("--timeout", options.timeout, "end the job after this many seconds, with exit code 124")
        ->check(CLI::NonNegativeNumber)
        ->type_name("SECONDS");
    cli_.add_option_function<std::string>(
        "--bind,--bind-to",
        [&options](const std::string& word) {
          const std::string kind = word.substr(0, word.find(':'));
          if (kind == "none")
            options.bind = Bind::none;
          else if (kind == "core" || kind == "hwthread")
            options.bind = Bind::core;
          else if (kind == "even" || kind == "socket" || kind == "numa" || kind == "package" || kind == "l3cache" ||
                   kind == "board")
            options.bind = Bind::even;
          else
            throw Refusal{fmt::format("--bind {}: say none, core or even", word)};
        },
        "even: split the cores among the ranks (default, unless there are more ranks than cores); core: one "
        "core each; none");
    cli_.add_flag_function(
        "--report-bindings", [&options](std::int64_t) { options.report_bindings = true; },
        "show which cores each rank has");
    cli_.add_flag_function(
        "-q,--quiet", [&options](std::int64_t) { options.quiet = true; }, "no warnings");
    cli_.add_option_function<std::string>(
        "--usize",
        [&options](const std::string& text) {
          if (text != "SYSTEM" && text != "INFINITE") options.universe_size = positive("--usize", text);
        },
        "MPI_UNIVERSE_SIZE");
  }

  void add_hosts(Options& options) {
    constexpr const char* group = "Several machines: the job is started by Slurm, PRRTE or Hydra, whichever there is";
    cli_.add_option_function<std::string>(
            "--host,--hosts,-H",
            [&options](const std::string& list) {
              for (const std::string& host : split(list, ',')) options.hosts.push_back(parse_host(host));
            },
            "machines, separated by commas, each with the number of ranks to place there if need be: a:4,b:4")
        ->type_name("HOSTS")
        ->group(group);
    cli_.add_option_function<std::string>(
            "-f,--hostfile,--machinefile,--machine",
            [&options](const std::string& file) { read_host_file(file, options.hosts); }, "a file that lists them")
        ->type_name("FILE")
        ->group(group);
    cli_.add_option_function<std::string>(
            "--ppn,--perhost,--npernode,-N",
            [&options](const std::string& text) { options.per_host = positive("-ppn", text); }, "ranks on each machine")
        ->type_name("RANKS")
        ->group(group);
    cli_.add_option_function<std::string>(
            "--launcher,--bootstrap",
            [&options](const std::string& name) {
              if (name == "slurm" || name == "prte" || name == "hydra" || name == "none")
                options.launcher = name;
              else if (name == "fork" || name == "auto")
                options.launcher = name == "fork" ? "none" : "";
              else if (name == "ssh" || name == "rsh" || name == "ll" || name == "lsf" || name == "sge" || name == "manual" ||
                       name == "persist")
                options.remote_shell = name;  // as Hydra understands the option
              else
                throw Refusal{fmt::format("-launcher {}: slurm, prte, hydra or none is wanted, or one of Hydra's own ways to other machines "
                                          "(ssh, rsh, ll, lsf, sge, manual, persist)", name)};
            },
            "slurm, prte or hydra: who starts the job; none: mpiexec itself, on this machine")
        ->type_name("ENGINE")
        ->group(group);
    cli_.add_flag_function(
            "-v,--verbose", [&options](std::int64_t) { options.verbose = true; },
            "say who starts the job, and with which command")
        ->group(group);
    add_pairs("--mca,--gmca,--pmixmca,--prtemca", "a setting for PRRTE, ignored elsewhere",
              [&options](const std::vector<std::string>& words) {
                for (std::size_t i = 0; i + 1 < words.size(); i += 2) options.mca.emplace_back(words[i], words[i + 1]);
                return true;
              })
        ->group(group);
  }

  void add_tolerated(Options&) {
    constexpr const char* group = "Accepted for other launchers' sake (nothing to do)";
    for (const char* name : {"--map-by", "--rank-by", "--rmk", "--iface", "--pmi-port-range"})
      cli_.add_option(name, ignored_, "")->group(group)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    for (const char* name : {"--oversubscribe,--nooversubscribe", "--allow-run-as-root", "--use-hwthread-cpus",
                             "--display-map,--display-allocation", "--disable-hostname-propagation",
                             "--disable-auto-cleanup", "--localonly,--local"})
      cli_.add_flag_function(
              name, [](std::int64_t) {}, "")
          ->group(group);
  }

  CLI::Option* add_pairs(const char* name, const char* help, std::function<bool(std::vector<std::string>)> use) {
    return cli_.add_option(name, std::move(use), help)
        ->type_name("NAME VALUE")
        ->type_size(2)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  CLI::App cli_;
  bool version_ = false;
  std::string ignored_, soft_, config_file_;
  const CLI::Option* file_ = nullptr;
  int files_ = 0;  ///< read so far
};

void check(Options& options) {
  std::string& to = options.stdin_to;
  if (to != "none" && to != "all") {
    char* end = nullptr;
    const long rank = std::strtol(to.c_str(), &end, 10);
    if (end == to.c_str() || *end != '\0' || rank < 0 || rank >= options.ranks())
      throw Refusal{fmt::format("--stdin {}: say none, all or a rank below {}", to, options.ranks())};
    to = std::to_string(rank);  // from here on it is compared as text
  }
}

}  // namespace

Parsed parse_command_line(int argc, char** argv) {
  Parsed parsed;
  EnvironmentChoice everywhere;
  std::vector<std::string> words(argv + 1, argv + argc);
  words.emplace_back(":");
  try {
    std::vector<std::string> part;
    bool configured = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] != ":") {
        part.push_back(words[i]);
        continue;
      }
      App app;
      PartParser parser(parsed.options, app, everywhere);
      try {
        app.command = parser.parse(part);
      } catch (const CLI::CallForHelp&) {
        fmt::print("{}", parser.cli().help());
        return {{}, 0};
      } catch (const CLI::ParseError& error) {
        throw Refusal{error.what()};
      }
      if (parser.version()) {
        fmt::print("mpiexec (Heddle) {}\n", HEDDLE_VERSION);
        return {{}, 0};
      }
      if (!parser.config_file().empty()) {
        if (configured || !app.command.empty() || app.ranks_given || i + 1 != words.size() || !parsed.options.apps.empty())
          throw Refusal{"-configfile: the file has all programs of the job with their options; none may stand beside it"};
        configured = true;
        const std::vector<std::string> lines = read_config_file(parser.config_file());
        words.insert(words.end(), lines.begin(), lines.end());
        words.emplace_back(":");
        part.clear();
        continue;
      }
      if (!parser.soft().empty()) app.ranks = soft_ranks(app.ranks, parser.soft());
      if (app.command.empty())
        throw Refusal{"no program to start: mpiexec [options] PROGRAM [arguments]; `mpiexec --help` shows more"};
      parsed.options.apps.push_back(std::move(app));
      part.clear();
    }
    for (App& app : parsed.options.apps) {
      EnvironmentChoice& own = app.environment;
      if (own.base == EnvironmentChoice::Base::all && own.listed.empty()) {
        own.base = everywhere.base;
        own.listed = everywhere.listed;
      }
      own.values.insert(own.values.begin(), everywhere.values.begin(), everywhere.values.end());
    }
    if (const char* seconds = std::getenv("MPIEXEC_TIMEOUT"); seconds != nullptr && *seconds != '\0' && parsed.options.timeout == 0) {
      char* end = nullptr;
      parsed.options.timeout = std::max(0.0, std::strtod(seconds, &end));
      if (*end != '\0') throw Refusal{fmt::format("MPIEXEC_TIMEOUT={}: a number of seconds is wanted", seconds)};
    }
    check(parsed.options);
  } catch (const Refusal& refusal) {
    say(refusal.text);
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace heddle::mpiexec
