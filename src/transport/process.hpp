// The processes that this one knows: a local index, the name that others know them by, and the way to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "transport/address.hpp"

namespace heddle {

/// A process's global name: the same wherever it is known, so it is what records and messages carry. An index means nothing elsewhere.
struct ProcessName {
  std::uint32_t job;   ///< a number made of the job's id, alike in all of its processes
  std::uint32_t rank;  ///< in the MPI_COMM_WORLD of that job
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

/// How records get to a process. `node`: through shared memory.
enum class Route : std::uint8_t { self, node, network };

/// Where a process is, for the table.
struct ProcessPlace {
  Route route;
  bool neighbor;  ///< it runs on the node of this process, whatever the route
};

/// Bases of what the transports keep of a process.
struct NodePeer {};     ///< shm::Peer
struct NetworkPeer {};  ///< net::ProcessAddress

/// The table of processes. Every process of a job gets an index when the job is added; memory grows with the processes asked about, not with
/// the job.
///
/// Look-ups by index take no lock and cost two dependent loads; they may run while others add jobs and peers. A look-up by name costs one
/// comparison for the own job, and one more for each other job. \pre an index came from the table; indices do not stop being valid.
class ProcessTable {
 public:
  static constexpr ProcessIndex unknown = ~ProcessIndex{0};
  using Locate = ProcessPlace (*)(std::uint32_t rank) noexcept;

  ProcessTable() noexcept = default;
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  /// Makes the processes of a job known: ranks 0 … size-1 get consecutive indices, of which the first is returned; the first job's begin
  /// with 0. A job that is known already keeps its indices. `unknown` when memory is out. Thread-safe.
  /// \param locate asked once for each process that somebody asks about, and its neighbours in the table
  ProcessIndex add_job(std::uint32_t job, std::uint32_t size, Locate locate) noexcept;

  /// `unknown` for a name that is nobody's. Thread-safe.
  [[nodiscard]] ProcessIndex find(ProcessName name) const noexcept {
    const Job* job = first_job_;
    while (job && job->number != name.job) job = job->next.load(std::memory_order_acquire);  // pairs with add_job
    return job && name.rank < job->size ? job->first + name.rank : unknown;
  }
  [[nodiscard]] ProcessName name_of(ProcessIndex process) noexcept {
    const Job& job = *chunk_of(process).job;
    return {job.number, process - job.first};
  }
  [[nodiscard]] Route route(ProcessIndex process) noexcept { return chunk_of(process).places[process % chunk_size].route; }
  [[nodiscard]] bool is_neighbor(ProcessIndex process) noexcept { return chunk_of(process).places[process % chunk_size].neighbor; }

  /// What shared memory knows of the process; nullptr: nothing yet. Acquire pairs with `set`.
  [[nodiscard]] NodePeer* node_peer(ProcessIndex process) const noexcept {
    const Chunk* chunk = known_chunk(process);
    return chunk ? chunk->node_peers[process % chunk_size].load(std::memory_order_acquire) : nullptr;
  }
  /// The same of the network.
  [[nodiscard]] NetworkPeer* network_peer(ProcessIndex process) const noexcept {
    const Chunk* chunk = known_chunk(process);
    return chunk ? chunk->network_peers[process % chunk_size].load(std::memory_order_acquire) : nullptr;
  }
  /// The table owns neither. Callers that may set the same one agree among each other.
  void set(ProcessIndex process, NodePeer& peer) noexcept {
    chunk_of(process).node_peers[process % chunk_size].store(&peer, std::memory_order_release);
  }
  void set(ProcessIndex process, NetworkPeer& peer) noexcept {
    chunk_of(process).network_peers[process % chunk_size].store(&peer, std::memory_order_release);
  }

  /// Calls `visit(NodePeer&)` or `visit(NetworkPeer&)` for each one that is set.
  template <typename Visit>
  void for_each_node_peer(Visit&& visit) const noexcept {
    for_each(&Chunk::node_peers, visit);
  }
  template <typename Visit>
  void for_each_network_peer(Visit&& visit) const noexcept {
    for_each(&Chunk::network_peers, visit);
  }

  /// Forgets everything; nothing else does, so that threads which go on while the process exits find what they know. No other thread uses the table.
  void clear() noexcept;

 private:
  static constexpr std::uint32_t chunk_size = 512;  // processes; a power of two

  struct Job {
    std::uint32_t number, size;
    ProcessIndex first;  ///< a multiple of chunk_size: a chunk has processes of one job
    Locate locate;
    std::atomic<Job*> next{nullptr};
  };
  struct Chunk {
    std::atomic<NodePeer*> node_peers[chunk_size] = {};
    std::atomic<NetworkPeer*> network_peers[chunk_size] = {};
    ProcessPlace places[chunk_size] = {};
    const Job* job = nullptr;
  };
  /// One is replaced by a larger copy when a job does not fit. Readers may still look into the old one, so it stays.
  struct Directory {
    Directory* older = nullptr;
    std::uint32_t chunks = 0;
    std::atomic<Chunk*>* entries = nullptr;
  };

  [[nodiscard]] Chunk* known_chunk(ProcessIndex process) const noexcept {
    // Acquires pair with add_job and make_chunk.
    return entries_.load(std::memory_order_acquire)[process / chunk_size].load(std::memory_order_acquire);
  }
  [[nodiscard]] Chunk& chunk_of(ProcessIndex process) noexcept {
    Chunk* chunk = known_chunk(process);
    return chunk ? *chunk : make_chunk(process);
  }
  [[gnu::cold, gnu::noinline]] Chunk& make_chunk(ProcessIndex process) noexcept;
  bool grow(std::uint32_t chunks) noexcept;
  template <typename Peer, typename Visit>
  void for_each(std::atomic<Peer*> (Chunk::*peers)[chunk_size], Visit& visit) const noexcept {
    for (std::uint32_t c = 0; directory_ && c < directory_->chunks; ++c) {
      Chunk* chunk = directory_->entries[c].load(std::memory_order_acquire);
      for (std::uint32_t i = 0; chunk && i < chunk_size; ++i)
        if (Peer* peer = (chunk->*peers)[i].load(std::memory_order_acquire)) visit(*peer);
    }
  }

  std::atomic<std::atomic<Chunk*>*> entries_{nullptr};  ///< of the newest directory
  Job* first_job_ = nullptr;                            ///< set before anybody asks
  Directory* directory_ = nullptr;                      ///< the newest; guarded by mutex_, as is what follows
  std::uint32_t used_chunks_ = 0;
  std::mutex mutex_;
};

/// Of this process. The ranks of MPI_COMM_WORLD are 0 … size-1.
[[gnu::visibility("hidden")]] extern ProcessTable processes;  // hidden: reached without a look into the table of addresses

/// The way to an address. \pre the library has started
inline Route route(Address address) noexcept { return processes.route(address.process); }

}  // namespace heddle
