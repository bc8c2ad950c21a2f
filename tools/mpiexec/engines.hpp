#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job.hpp"

/// Jobs that are more than this machine: started by an engine that is installed, with our command line in its words.
namespace heddle::mpiexec {

enum class Engine { own, slurm, prte, hydra };

/// Who starts the job, or why nobody can (`problem`, for the user).
struct EngineChoice {
  Engine engine = Engine::own;
  std::string program;  ///< its path, unless `own`
  std::string problem;
  std::string reason;  ///< why it is this one, for -v
};

/// Looks at `--launcher`, the hosts that were named, and the environment of Slurm.
EngineChoice choose_engine(const Options& options);

/// The engine's command line. `multi_program_file` receives what Slurm wants to read from a file when there are several
/// programs; the word `multi_program_word` stands for that file.
std::vector<std::string> engine_command(const EngineChoice& choice, const Options& options,
                                        std::string& multi_program_file);
inline constexpr const char* multi_program_word = "@programs";

/// Becomes the engine chosen. Returns nothing when mpiexec is to start the job itself, else the exit code of a failure.
std::optional<int> hand_over(const Options& options);

}  // namespace heddle::mpiexec
