// The command line. Other MPIs' spellings are accepted where they mean the same here, and their options that only make
// sense on clusters are accepted where ignoring them is right on one machine.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>

#include "job.hpp"

namespace heddle::mpiexec {
namespace {

constexpr const char* description =
    "Starts the ranks of an MPI program.\n"
    "  mpiexec [options] PROGRAM [arguments]\n"
    "  mpiexec [options] PROGRAM … : [options] PROGRAM …      several programs in one job\n"
    "Every option may be written with one or two dashes.\n";

struct Refusal {
  std::string text;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

int positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 1 || value > 1'000'000)
    throw Refusal{fmt::format("{} {}: a number of ranks, 1 or more, is wanted", option, text)};
  return static_cast<int>(value);
}

/// `name` or `name:slots`; an address of IPv6 has no slots, for nobody could say where it ends.
HostChoice parse_host(const std::string& text) {
  unsigned char address[16];
  const std::size_t colon = inet_pton(AF_INET6, text.c_str(), address) == 1 ? std::string::npos : text.rfind(':');
  if (colon == std::string::npos) return {text, 0};
  return {text.substr(0, colon), positive("host " + text.substr(0, colon) + ":", text.substr(colon + 1))};
}

/// One host a line: `name`, `name:2` (Hydra), `name slots=2` (Open MPI); comments begin with #.
void read_host_file(const std::string& file, std::vector<HostChoice>& hosts) {
  std::ifstream lines(file);
  if (!lines) throw Refusal{fmt::format("cannot read the host file \"{}\"", file)};
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    const std::vector<std::string> words = split(line.substr(0, line.find('#')), ' ');
    if (words.empty()) continue;
    HostChoice host = parse_host(words.front());
    for (const std::string& word : words)
      if (word.starts_with("slots=")) host.slots = positive("slots", word.substr(6));
    hosts.push_back(std::move(host));
  }
}

/// The options of one part. Global ones write to `options`, whichever part they stand in.
class PartParser {
 public:
  PartParser(Options& options, App& app, EnvironmentChoice& everywhere) : cli_(description, "mpiexec") {
    cli_.set_help_flag("-h,--help", "show this and exit");
    cli_.add_flag("-V,--version", version_, "show the version and exit");
    add_start(app);
    add_environment(app, everywhere);
    add_run(options);
    add_hosts(options);
    add_tolerated(options);
  }

  /// Consumes the options at the head of `words` and returns how many words they were.
  std::size_t parse(const std::vector<std::string>& words) {
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
      if (option == nullptr)
        throw Refusal{
            fmt::format("unknown option \"{}\"; `mpiexec --help` lists the options, and a program whose name "
                        "begins with a dash is written after `--`",
                        words[next])};
      const auto values = static_cast<std::size_t>(option->get_items_expected_max());
      const std::size_t take = equals != std::string::npos ? 0 : values;
      if (next + take >= words.size() && take > 0)
        throw Refusal{fmt::format("the option \"{}\" needs {}", words[next],
                                  take == 1 ? "a value" : fmt::format("{} values", take))};
      arguments.push_back(word);
      arguments.insert(arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(next) + 1,
                       words.begin() + static_cast<std::ptrdiff_t>(next + 1 + take));
      next += 1 + take;
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    cli_.parse(arguments);
    return next;
  }

  bool version() const { return version_; }
  const CLI::App& cli() const { return cli_; }

 private:
  /// `-np` to `--np`, but `-n` stays: CLI11 would read the former as `-n p`.
  static std::string with_two_dashes(const std::string& word) {
    return word.size() > 2 && word[1] != '-' ? "-" + word : word;
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
  std::string ignored_;
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

/// Whether an interface of this machine has the address. Host files of batch systems may hold addresses instead of names.
static bool is_own_address(const std::string& text) {
  unsigned char wanted[16];
  const bool v4 = inet_pton(AF_INET, text.c_str(), wanted) == 1;
  ifaddrs* list = nullptr;
  if ((!v4 && inet_pton(AF_INET6, text.c_str(), wanted) != 1) || getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    const sockaddr* address = entry->ifa_addr;
    if (address == nullptr || address->sa_family != (v4 ? AF_INET : AF_INET6)) continue;
    found = v4 ? std::memcmp(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, wanted, 4) == 0
               : std::memcmp(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, wanted, 16) == 0;
  }
  freeifaddrs(list);
  return found;
}

bool is_this_machine(const std::string& host) {
  const std::string here = host_name();
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == here ||
         host == here.substr(0, here.find('.')) || is_own_address(host);
}

Parsed parse_command_line(int argc, char** argv) {
  Parsed parsed;
  EnvironmentChoice everywhere;
  std::vector<std::string> words(argv + 1, argv + argc);
  words.emplace_back(":");
  try {
    std::vector<std::string> part;
    for (const std::string& word : words) {
      if (word != ":") {
        part.push_back(word);
        continue;
      }
      App app;
      PartParser parser(parsed.options, app, everywhere);
      try {
        const std::size_t used = parser.parse(part);
        app.command.assign(part.begin() + static_cast<std::ptrdiff_t>(used), part.end());
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
