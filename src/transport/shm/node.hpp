// The processes of this node: their regions, their rings, their doorbells.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "sync/record_ring.hpp"
#include "sys/segment.hpp"
#include "transport/address.hpp"
#include "transport/process.hpp"
#include "transport/shm/layout.hpp"

namespace heddle::sys {
struct Bootstrap;
}

namespace heddle::shm {

/// Rings the doorbell for those that serve this VCI.
[[gnu::cold]] void ring_slowly(Doorbell& doorbell, VciIndex vci) noexcept;

/// A peer's ring as this process sees it. On its own cache line, because all sending threads write its head cache.
struct alignas(sync::cache_line) Port {
  sync::RingProducer ring;
  Doorbell* doorbell;  ///< the peer's
  VciIndex vci;        ///< likewise
  std::atomic<std::uint32_t> backlogged{0};  ///< records of this process that the ring has refused so far; senders look before they push

  /// Wakes the peer if a thread of it that serves this VCI sleeps. Called after publishing; one load if none does.
  void ring_doorbell() noexcept {
    if (doorbell->asleep.load(std::memory_order_relaxed) >> number(vci) & 1) [[unlikely]] ring_slowly(*doorbell, vci);
  }
};

/// Another process of this node (or this one), attached on first use, kept until the job ends.
class Peer : public NodePeer {
 public:
  ~Peer();

  ProcessIndex process = 0;
  int pid = 0;
  std::uint32_t vcis = 0;
  Doorbell* doorbell = nullptr;
  sys::Segment region;

  /// The ring of `lane`'s VCI. Null until `open_port`. Acquire pairs with open_port's release.
  [[nodiscard]] Port* port(Lane lane) const noexcept { return ports_[number(lane)].load(std::memory_order_acquire); }
  /// Makes the ring's pages exist and the port usable. Ends the job when memory is out.
  Port* open_port(Lane lane) noexcept;

  /// Whether this process may read and write the peer's memory (CMA); found out by trying, once.
  [[nodiscard]] bool cma_works() noexcept {
    const auto known = cma_.load(std::memory_order_relaxed);
    return known ? known == 1 : probe_cma();
  }

  /// The local address of byte `offset` of the peer's region (from region_size on: of its program heap); maps it on first use. nullptr if that
  /// fails.
  std::byte* heap_address(std::uint64_t offset) noexcept;

  /// Acquire pairs with `say`: everything the peer sent before is in the rings.
  [[nodiscard]] Stage stage() const noexcept {
    return reinterpret_cast<const RegionHeader*>(region.base)->stage.load(std::memory_order_acquire);
  }

  /// Unmaps the peer's memory. The peer must not be used afterwards.
  void unmap() noexcept;

  /// Wakes the peer if a thread of it that serves this VCI sleeps. Called after publishing; one load if none does.
  void ring_doorbell(VciIndex vci) noexcept {
    if (doorbell->asleep.load(std::memory_order_relaxed) >> number(vci) & 1) [[unlikely]] ring_slowly(*doorbell, vci);
  }

 private:
  bool probe_cma() noexcept;
  std::byte* program_heap() noexcept;

  std::atomic<Port*> ports_[lanes] = {};
  std::atomic<int> cma_{0};  ///< 0 not tried, 1 works, -1 forbidden
  std::atomic<std::byte*> heap_{nullptr};
  std::atomic<std::byte*> program_heap_{nullptr};
  std::atomic<bool> program_heap_failed_{false};
};

/// False with HEDDLE_SHM=0: messages within the node go through the network too.
bool enabled() noexcept;
/// Text for the user: `other`, of this node, has the opposite setting, so neither would see the other's messages.
std::string disagreement_with(ProcessIndex other);

/// Makes this process's region known to its node. Collective over the job only if the launcher offers no job file, and over the node with
/// HEDDLE_SHM=0, which all its processes must then have.
/// \param vcis lowered where shared memory is too small for that many rings.
/// \param on_ring_size called with the number of lines of this process's rings, and of a peer's before the first use of them.
bool start(const sys::Bootstrap& job, unsigned& vcis, void (*on_ring_size)(std::uint32_t lines) noexcept, std::string& problem);
/// Whether `start` has published something that peers need; then a fence and `meet` follow.
bool needs_fence() noexcept;
bool meet(const sys::Bootstrap& job, std::string& problem);
void stop() noexcept;

/// The attached peer, or nullptr when it was not attached yet or is on another node.
inline Peer* find(ProcessIndex process) noexcept { return static_cast<Peer*>(processes.node_peer(process)); }
/// Attaches to a process of this node, waiting until it has started. nullptr and a text if there is no path to it. Ends the job if that process
/// has HEDDLE_SHM=0.
Peer* attach(ProcessIndex process, std::string& problem) noexcept;

/// This process's own region and doorbell.
extern sys::Segment region;
extern RegionHeader* header;

/// Publishes this process's stage and wakes those that may wait for it. A full fence: later loads are not reordered before it.
void say(Stage stage) noexcept;

/// Notices that are printed once for each node.
enum class NodeNotice : std::uint32_t { no_cma = 1 };
/// True for the first rank of the node that asks to print this notice (or if they cannot agree).
bool first_to_say(NodeNotice what) noexcept;

/// Allocates the pages of one of this process's VCIs. False when memory is out.
bool commit_vci(unsigned vci) noexcept;

/// Where a process has what its peers can map, in its own addresses.
struct Mapping {
  std::uint64_t region, region_bytes, program_heap, program_heap_bytes;

  /// The offset for a peer's `Peer::heap_address` if [address, address+bytes) lies in it, else 0.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const std::uint64_t distance = address - region;
    // For memory just below the region the offset wraps, and so would its sum with the length.
    if (distance >= heap_offset && distance < region_bytes && bytes <= region_bytes - distance) return distance;
    const std::uint64_t place = address - program_heap;
    return place < program_heap_bytes && bytes <= program_heap_bytes - place ? region_size + place : 0;
  }
};
/// This process's.
Mapping mapping() noexcept;

/// The offset for a peer's `Peer::heap_address` if [address, address+bytes) lies in this process's shared memory, else 0.
std::uint64_t heap_offset_of(const void* address, std::size_t bytes) noexcept;

/// Copies between this process and a peer by CMA. False when the kernel refuses.
bool cma_read(int pid, void* to, std::uint64_t from, std::size_t bytes) noexcept;
bool cma_write(int pid, std::uint64_t to, const void* from, std::size_t bytes) noexcept;

}  // namespace heddle::shm
