#pragma once

#include <signal.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "guard.hpp"
#include "job.hpp"
#include "pmi_server.hpp"
#include "spawn.hpp"
#include "streams.hpp"

namespace heddle::mpiexec {

/// Runs one job from the first process to the last. Single-threaded: one loop serves PMI, child processes, signals
/// and streams. The files: launcher.cpp the loop and its events, launcher_start.cpp everything before it,
/// launcher_end.cpp how a job ends.
class Launcher {
 public:
  explicit Launcher(Options options);
  ~Launcher();

  /// Returns the exit code of mpiexec: the first nonzero one of a rank, 128 + signal, 124 after --timeout.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;

  /// One of a rank's labelled streams.
  struct Stream {
    int descriptor = -1;
    Labeller labeller;
    bool held_back = false;  ///< not watched, because our own output is full
  };

  struct Rank {
    enum class Mpi { not_started, started, finished } mpi = Mpi::not_started;
    int app = 0;
    pid_t pid = -1;
    bool running = false;
    int status = 0;  ///< as from wait, once it ran and does not
    int socket = -1;
    std::string unsent;           ///< replies that the socket would not take yet
    std::vector<Stream> streams;  ///< empty, or output and error
  };

  enum class Source : unsigned { signals, pmi, output, error, input, input_sink, own_output, own_error };

  // launcher_start.cpp
  void keep_standard_descriptors_open();
  void take_over_signals();
  void raise_descriptor_limit();
  bool find_programs();
  void choose_cores();
  void warn_about_threads();
  bool wants_memory_in_dev_shm() const;
  void create_job_memory();
  bool start_ranks();
  bool start_rank(int rank, const std::vector<std::string>& environment);
  std::string job_description(int rank, int descriptor);
  std::optional<int> stdin_of(int rank, int& writing_end);
  void watch_streams(int rank, int output, int error);

  // launcher.cpp
  void loop();
  int milliseconds_to_next_deadline() const;
  void on_event(Source source, int index, unsigned events);
  void on_signal();
  void forward(int signal);
  void reap();
  void on_exit(int rank, int status);
  void on_pmi(int rank, unsigned events);
  bool drain_pmi(int rank);
  void close_pmi(int rank);
  void reply(int rank, std::string_view bytes);
  void on_stream(int rank, bool error);
  void close_stream(Rank& rank, Stream& stream, Output& to);
  void flush_output();
  void pump_input(bool source_ready);
  bool watch(int descriptor, unsigned events, Source source, int index);
  void unwatch(int descriptor);

  // launcher_end.cpp
  std::string name_of(int rank) const;
  void judge_exit(int rank, int code);
  void judge_death(int rank, int signal, bool dumped);
  void leave_on_request(int code);
  void check_that_all_start_mpi();
  void on_abort(int rank, int code, const std::string& message);
  void on_deadlines();
  void on_timeout();
  void tell(const std::string& text);
  void end_job(int exit_code, const std::string& why);
  void kill_everything();
  void signal_ranks(int signal);
  void stop_listening_to_signals();
  void clean_up();
  void remove_names() const;
  std::string list_running() const;

  Options options_;
  std::string host_;
  std::string job_id_;
  std::vector<std::string> programs_;  ///< path for each app
  std::vector<sys::CoreSet> cores_;    ///< for each rank, or empty
  int usable_cores_ = 1;
  int job_memory_ = -1;
  int rank_socket_ = -1;  ///< the number of every rank's PMI connection, on the rank's side
  unsigned long long job_memory_inode_ = 0;

  std::vector<Rank> ranks_;
  std::unordered_map<pid_t, int> rank_of_pid_;
  int running_ = 0;
  int in_mpi_ = 0;         ///< ranks between MPI_Init and MPI_Finalize
  int never_in_mpi_ = -1;  ///< a rank that has ended without MPI_Init
  int exit_code_ = 0;
  bool ending_ = false;
  int passed_on_signal_ = 0;  ///< the last SIGINT, SIGTERM, … that was forwarded
  Deadline timeout_at_, kill_at_, give_up_at_, hint_at_;

  NameService names_;
  std::unique_ptr<PmiServer> pmi_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<InputRelay> input_;
  std::vector<int> input_pipes_;  ///< writing ends made for the ranks, `input_`'s once it exists
  std::vector<int> watched_sinks_;
  bool input_watched_ = false;
  bool input_is_file_ = false;  ///< never to be waited for, and epoll refuses it
  Output output_{1};
  Output error_{2};
  bool own_output_watched_ = false;
  bool own_error_watched_ = false;
  SpawnSettings settings_{};
  int poll_ = -1;
  int signals_ = -1;
};

}  // namespace heddle::mpiexec
