// The files of a fuzzer's own driver: inputs that are read, and those that it makes itself, written for libFuzzer.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::test {

/// Adds the files argv[3], argv[4], … to the corpus, of each at most `most` bytes.
template <typename Input>
void read_corpus(int argc, char** argv, std::size_t most, std::vector<Input>& corpus) {
  for (int i = 3; i < argc; ++i)
    if (std::FILE* file = std::fopen(argv[i], "rb")) {
      Input bytes(most);
      bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
      std::fclose(file);
      corpus.push_back(bytes);
    }
}

/// Writes an input to a file; nothing where that cannot be made.
template <typename Input>
void write_input(const std::string& path, const Input& bytes) {
  if (std::FILE* file = std::fopen(path.c_str(), "wb")) {
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
}

/// With FUZZ_WRITE_CORPUS=FOLDER: FOLDER/stem0, FOLDER/stem1, …
template <typename Input>
void write_corpus(const char* stem, const std::vector<Input>& corpus) {
  if (const char* folder = std::getenv("FUZZ_WRITE_CORPUS"))
    for (std::size_t n = 0; n < corpus.size(); ++n) write_input(std::string(folder) + "/" + stem + std::to_string(n), corpus[n]);
}

}  // namespace heddle::test
