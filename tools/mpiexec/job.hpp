#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the command line asks for. Plain data, filled by options.cpp, read by everything else.
namespace heddle::mpiexec {

/// Which of the launcher's own environment variables a rank starts with.
struct EnvironmentChoice {
  enum class Base { all, none, listed } base = Base::all;
  std::vector<std::string> listed;                          ///< names, for Base::listed
  std::vector<std::pair<std::string, std::string>> values;  ///< set on top, later ones win
};

/// One part of `mpiexec part : part : …`.
struct App {
  int ranks = 1;
  bool ranks_given = false;
  std::vector<std::string> command;  ///< program and its arguments
  std::string directory;             ///< empty: the launcher's own
  std::string search_path;           ///< looked through before PATH; empty: nothing
  EnvironmentChoice environment;
};

/// One of the hosts named by -host or -f.
struct HostChoice {
  std::string name;
  int slots = 0;  ///< ranks to place there before the next host; 0: not said
};

enum class Bind { automatic, none, core, even };

struct Options {
  std::vector<App> apps;
  bool label_output = false;   ///< prefix every line with its rank
  std::string stdin_to = "0";  ///< "none", "all" or a rank
  double timeout = 0;          ///< seconds; 0: none
  Bind bind = Bind::automatic;
  bool report_bindings = false;
  bool quiet = false;  ///< no warnings (errors are always shown)
  std::optional<int> universe_size;
  std::vector<HostChoice> hosts;                         ///< empty: not said
  int per_host = 0;                                      ///< -ppn; 0: not said
  std::string launcher;                                  ///< slurm, prte, hydra, none; empty: what there is
  std::string remote_shell;                              ///< Hydra's -launcher (ssh, rsh, …) when that was meant
  std::vector<std::pair<std::string, std::string>> mca;  ///< settings of PRRTE's, NAME VALUE
  bool verbose = false;

  int ranks() const {
    int total = 0;
    for (const App& app : apps) total += app.ranks;
    return total;
  }
};

/// Result of parsing: run, or leave at once with this code (after --help, or an error that has been shown).
struct Parsed {
  Options options;
  std::optional<int> exit_code;
};

Parsed parse_command_line(int argc, char** argv);

/// Whether `host` (a name, without slots) is a name of the machine that we run on. Nothing is resolved.
bool is_this_machine(const std::string& host);

/// `mpiexec: text` and a newline to stderr, in one write.
void say(const std::string& text);

}  // namespace heddle::mpiexec
