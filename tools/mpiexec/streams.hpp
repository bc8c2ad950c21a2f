#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The ranks' standard streams, where the launcher stands in between: only for labelled output, and for input that has
/// to be copied. Everything else is inherited by the ranks and costs nothing.
namespace heddle::mpiexec {

/// One of the launcher's own outputs. Never blocks longer than a full pipe needs to take one page, so that signals and
/// PMI are served while a reader (`less`) is slow.
class Output {
 public:
  static constexpr std::size_t enough = std::size_t{1} << 20;  ///< pending bytes at which the ranks have to wait

  explicit Output(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_; }
  void add(std::string_view text) {
    if (!gone_) pending_ += text;
  }
  bool pending() const { return !pending_.empty(); }
  bool full() const { return pending_.size() >= enough; }
  bool gone() const { return gone_; }  ///< the reader has left

  /// Writes what goes without blocking.
  void write_some();
  /// Writes everything.
  void write_all();

 private:
  bool write_piece();
  int descriptor_;
  std::string pending_;
  bool gone_ = false;
};

/// Cuts a rank's stream into lines and labels them.
class Labeller {
 public:
  static constexpr std::size_t longest_line = std::size_t{1} << 16;  ///< longer lines continue under a new label

  explicit Labeller(int rank) : label_("[" + std::to_string(rank) + "] ") {}
  void take(std::string_view bytes, Output& to);
  /// The stream has ended: the last line gets its newline.
  void end(Output& to);

 private:
  std::string label_;
  std::string line_;
};

/// Copies the launcher's standard input to one or all ranks: each sees every byte, the slowest sets the pace.
class InputRelay {
 public:
  /// `sinks`: the writing ends of pipes, which the relay owns from now on.
  explicit InputRelay(std::vector<int> sinks);
  InputRelay(const InputRelay&) = delete;
  InputRelay& operator=(const InputRelay&) = delete;
  ~InputRelay();

  /// Descriptors to wait for: the source when everything has been handed on, else the sinks that are behind.
  bool wants_source() const;
  std::vector<int> waiting_sinks() const;

  /// Reads and writes what goes without blocking. Call when something above is ready.
  void pump(bool source_ready);
  bool done() const { return sinks_.empty(); }

 private:
  struct Sink {
    int descriptor;
    std::size_t sent;  ///< of `buffer_`
  };
  void close_all();
  std::vector<Sink> sinks_;
  std::string buffer_;
  bool is_terminal_;
};

}  // namespace heddle::mpiexec
