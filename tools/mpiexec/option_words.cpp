#include "option_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>

namespace heddle::mpiexec {
namespace {

/// The words of each line, continued lines joined; lines without words are left out.
std::vector<std::vector<std::string>> read_lines(const char* option, const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw Refusal{fmt::format("{} {}: cannot read the file", option, file)};
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // a word, perhaps an empty one in quotes
  char quote = 0;
  const auto end_word = [&] {
    if (inside) words.push_back(word);
    word.clear();
    inside = false;
  };
  const auto end_line = [&] {
    end_word();
    if (!words.empty()) lines.push_back(std::move(words));
    words.clear();
  };
  int number = 1, opened = 0;
  for (char c; stream.get(c);) {
    if (c == '\n') ++number;
    if (c == '\\' && quote != '\'') {
      if (!stream.get(c)) break;
      if (c == '\n') {
        ++number;
        if (quote == 0) end_word();
        continue;
      }
      word += c;
      inside = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      opened = number;
      inside = true;
    } else if (c == '#' && !inside) {
      while (stream.get(c) && c != '\n') continue;
      ++number;
      end_line();
    } else if (c == '\n') {
      end_line();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) throw Refusal{fmt::format("{} {}: the quote {} of line {} is never closed", option, file, quote, opened)};
  end_line();
  return lines;
}

/// Letters to insert, remove or change to make one of the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = i;
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<std::string> read_words(const char* option, const std::string& file) {
  std::vector<std::string> words;
  for (std::vector<std::string>& line : read_lines(option, file))
    words.insert(words.end(), std::make_move_iterator(line.begin()), std::make_move_iterator(line.end()));
  return words;
}

std::vector<std::string> read_config_file(const std::string& file) {
  std::vector<std::string> words;
  for (std::vector<std::string>& line : read_lines("-configfile", file)) {
    if (!words.empty()) words.emplace_back(":");
    words.insert(words.end(), std::make_move_iterator(line.begin()), std::make_move_iterator(line.end()));
  }
  if (words.empty()) throw Refusal{fmt::format("-configfile {}: the file names no program", file)};
  return words;
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = word.size() / 3 + 1;  // more than a third of the letters wrong: another word
  for (const std::string& name : names) {
    const std::size_t steps = distance(word, name);
    if (steps >= least) continue;
    least = steps;
    best = name;
  }
  return best;
}

int soft_ranks(int wanted, const std::string& allowed) {
  const auto refuse = [&](const char* why) {
    return Refusal{fmt::format("-soft {}: {}", allowed, fmt::format(fmt::runtime(why), wanted))};
  };
  long best = 0;
  for (const std::string& range : split(allowed, ',')) {
    long number[3] = {0, 0, 1};
    const std::vector<std::string> parts = split(range, ':');
    if (parts.empty() || parts.size() > 3) throw refuse("numbers of ranks are wanted: a, a:b or a:b:step, separated by commas");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      char* end = nullptr;
      number[i] = std::strtol(parts[i].c_str(), &end, 10);
      if (*end != '\0') throw refuse("numbers of ranks are wanted: a, a:b or a:b:step, separated by commas");
    }
    const long first = number[0], last = parts.size() > 1 ? number[1] : first, step = number[2];
    if (step == 0) throw refuse("a step is not 0");
    for (long n = first; step > 0 ? n <= std::min<long>(last, wanted) : n >= std::max<long>(last, 1); n += step)
      if (n <= wanted) best = std::max(best, n);
  }
  if (best < 1) throw refuse("none of these numbers is between 1 and the {} ranks of -n");
  return static_cast<int>(best);
}

}  // namespace heddle::mpiexec
