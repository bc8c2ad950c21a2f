#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The launcher's side of PMI-1, without any input or output of its own: bytes go in, replies and events come out.
/// One server per job (its ranks, its key-value space, its barrier); the names of MPI_Publish_name are shared between
/// the jobs of one mpiexec. Every command costs O(1) per rank, but for a barrier's release.
namespace heddle::mpiexec {

/// Names published by all jobs of this mpiexec.
using NameService = std::unordered_map<std::string, std::string>;

/// One `mcmd=spawn`: what a rank asks to be started, not yet possible.
struct SpawnRequest {
  std::vector<std::map<std::string, std::string, std::less<>>> parts;  ///< one per program, key to value
};

/// What the server has to tell the launcher. Called from within `PmiServer::receive`.
struct PmiEvents {
  std::function<void(int rank, std::string_view bytes)> reply;
  std::function<void(int rank)> initialized;
  std::function<void(int rank)> finalized;
  std::function<void(int rank, int code, const std::string& message)> aborted;
  /// The rank sent something that no client can mean (a line without end); its connection is of no more use.
  std::function<void(int rank, const std::string& what)> broken;
};

class PmiServer {
 public:
  static constexpr std::size_t longest_line = std::size_t{1} << 16;

  PmiServer(std::string job_id, int size, int universe_size, std::vector<int> appnums, NameService& names,
            PmiEvents events);

  /// Takes bytes as they came from `rank`'s connection, in any portions.
  void receive(int rank, std::string_view bytes);

 private:
  struct Client {
    std::string partial;                ///< a line that has not ended yet
    std::optional<SpawnRequest> spawn;  ///< being collected, until its last part has ended
    bool in_spawn_part = false;
    bool in_barrier = false;
    bool broken = false;
  };

  void handle_line(int rank, std::string_view line);
  void handle_spawn_line(int rank, std::string_view line);
  void init(int rank, std::string_view line, bool quiet);
  void put(int rank, std::string_view line, bool quiet);
  void get(int rank, std::string_view line);
  void barrier(int rank);
  void abort(int rank, std::string_view line);
  void publish(int rank, std::string_view line);
  void lookup(int rank, std::string_view line);
  void unpublish(int rank, std::string_view line);
  void answer(int rank, std::string_view line);

  std::string job_id_;
  int universe_size_;
  std::vector<int> appnums_;
  NameService& names_;
  PmiEvents events_;
  std::vector<Client> clients_;
  std::unordered_map<std::string, std::string> values_;
  int in_barrier_ = 0;
};

}  // namespace heddle::mpiexec
