// The words of a command line before anybody knows what they mean: from files, with quotes, misspelt.
#pragma once

#include <string>
#include <vector>

namespace heddle::mpiexec {

/// Why the command line is refused: shown to the user, who gets exit code 2.
struct Refusal {
  std::string text;
};

/// The parts of `text` between separators, without empty ones.
std::vector<std::string> split(const std::string& text, char separator);

/// The words of a file of `-file`: more options, on as many lines as one likes. Quotes ' and " keep a word together, a backslash keeps the
/// character after it, # begins a comment. Throws Refusal, naming `option`, when the file cannot be read or a quote stays open.
std::vector<std::string> read_words(const char* option, const std::string& file);

/// The words of a file of `-configfile`, as they would stand on the command line: each line that is not empty is one part, and `:` separates
/// them. Words as in `read_words`; a backslash at its end continues a line. \see MPI-5.0 section 11.5
std::vector<std::string> read_config_file(const std::string& file);

/// The one of `names` that somebody who wrote `word` probably meant; empty: none is similar.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

/// How many ranks to start where `wanted` are asked for and `allowed` lists the numbers that will do, as `a`, `a:b` or `a:b:step`, separated
/// by commas: the largest of them that is at most `wanted`. Throws Refusal when there is none.
int soft_ranks(int wanted, const std::string& allowed);

}  // namespace heddle::mpiexec
