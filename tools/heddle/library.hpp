// The installed library, seen the way any program sees it: through the MPI tool information interface.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

/// A parameter of the library: one control variable of MPI_T.
struct Parameter {
  std::string name;
  std::string type;      ///< yes/no, number, size or text
  std::string fallback;  ///< its value when nobody sets it
  std::string value;     ///< its value in this environment
  std::string help;
};

/// What the library says about itself. `problem` is empty, or says why there is nothing to say, and the remedy.
struct Library {
  std::string path;
  std::string version;  ///< MPI_Get_library_version, several lines
  int abi_major = -1, abi_minor = -1;
  std::vector<Parameter> parameters;
  std::string problem;
};

/// Loads the library and asks it. `path` empty: the library that this tool was built or installed with.
/// Two processes are started for it, one with and one without the HEDDLE_* variables of the environment: a default is
/// what the library uses when nothing is set, so it needs no place in MPI_T.
Library ask_library(const std::string& path);

}  // namespace heddle::tool
