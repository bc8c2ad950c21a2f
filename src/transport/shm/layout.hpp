// The layout of a process's region of shared memory, as the other processes of its node see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sync/cpu.hpp"
#include "sync/record_ring.hpp"

namespace heddle::shm {

/// Where a process's server is (vci/server.hpp).
enum class ServerSleep : std::uint32_t { no, on_word, at_network };

/// How the owner of a region sleeps and how others wake it.
struct Doorbell {
  /// Bit v: a thread that a message for VCI v must wake is asleep, or about to be. Every sender reads it after publishing, so it has its own,
  /// rarely written line.
  alignas(sync::cache_line) std::atomic<std::uint64_t> asleep;
  alignas(sync::cache_line) std::atomic<std::uint32_t> bell;  ///< futex word, counts rings
  // For threads that sleep in a system call which the network also ends (doorbell.hpp). Written by the owner, except `unreachable`.
  std::atomic<std::uint64_t> at_network;        ///< bit v: one that listens to VCI v
  std::atomic<std::uint32_t> sentinel_at_network;  ///< 1: the sentinel, which listens to all
  std::atomic<std::uint32_t> unreachable;       ///< some neighbour cannot reach their sockets: all sleep on the futex word instead
  std::atomic<std::uint64_t> name_space;        ///< of the network, in which sockets have their names
  std::atomic<std::uint64_t> sockets[66];       ///< names, five letters: by VCI, the sentinel's and the server's
  std::atomic<ServerSleep> server;              ///< whether and where the server sleeps: the thread that comes when no other does
  std::atomic<std::uint32_t> server_bell;       ///< futex word of its own, counts its rings
};
/// The VCIs that a sleeper of a doorbell listens to, and those that a ring is for, as a futex's set of bits.
inline std::uint32_t doorbell_bits(unsigned vci) noexcept { return std::uint32_t{1} << (vci % 32); }
inline constexpr std::uint32_t all_doorbell_bits = ~std::uint32_t{0};
inline constexpr unsigned sentinel_bell = 64;  ///< the sentinel's place among the sockets
inline constexpr unsigned server_bell = 65;    ///< and the server's

/// Where a process is in its life, as others need to know it.
enum class Stage : std::uint32_t {
  running,
  finishing,  ///< in MPI_Finalize: answers, but sends no more requests
  paused,     ///< its last session ended without MPI_Init: answers nobody until the next session or MPI_Init
  away,       ///< after MPI_Finalize: answers nobody, unless it opens a session again
};

/// The first page of a region.
struct RegionHeader {
  static constexpr std::uint32_t magic_value = 0x4844'4c05;  ///< the last byte counts layouts

  std::atomic<std::uint32_t> ready;  ///< magic_value once the rest is written (release; pairs with attach's acquire)
  std::uint32_t vcis;                ///< of the owner
  std::uint32_t ring_lines;          ///< of each of its rings, a power of two
  std::uint32_t takes_messages;      ///< 0: its owner has HEDDLE_SHM=0
  std::int32_t pid;
  std::uint64_t probe_address;       ///< address of a private copy of `probe_value`, by which peers find out whether CMA works
  std::uint64_t probe_value;
  std::int32_t heap_fd;              ///< the owner's descriptor of its program heap's memfd, -1 without one
  std::uint64_t heap_inode;          ///< identifies that file: the descriptor number may have been reused
  std::uint64_t heap_bytes;
  std::atomic<std::uint32_t> attached;  ///< how many other processes have the region open, while it has a name
  std::atomic<std::uint32_t> said;      ///< in the node's first rank: NodeNotice bits already printed on this node
  std::atomic<Stage> stage;             ///< of the owner
  Doorbell doorbell;
};
static_assert(sizeof(RegionHeader) <= 4096);

/// A large message that both ends copy: sender and receiver claim pieces from one counter. Lives in the sender's region.
struct SharedCopy {
  /// Bytes claimed so far, and above them a stamp that changes with every message, so that a late receiver sees that this one is over.
  alignas(sync::cache_line) std::atomic<std::uint64_t> claimed;
  static constexpr int stamp_at = 48;
  static constexpr std::uint64_t bytes_mask = (std::uint64_t{1} << stamp_at) - 1;
};

inline constexpr std::size_t copies_per_vci = 64;
inline constexpr std::size_t max_vcis = 1024;  ///< of one process: the pool's and, later, the endpoints'

// All of it is sparse: a page exists once a VCI uses it.
inline constexpr std::uint64_t vci_stride = std::uint64_t{1} << 20;
inline constexpr std::uint64_t vci_offset = std::uint64_t{1} << 20;
inline constexpr std::uint64_t collective_offset = std::uint64_t{1} << 16;  ///< up to vci_offset: coll/node_slots.hpp
inline constexpr std::uint64_t copies_at = 4096;       ///< within a VCI's part: ring control, then copies, then lines
inline constexpr std::uint64_t lines_at = 16384;
inline constexpr std::uint64_t heap_offset = std::uint64_t{2} << 30;
inline constexpr std::uint64_t region_size = std::uint64_t{1} << 38;
// In offers, offsets from region_size on lie in the owner's program heap (HEDDLE_SHARED_HEAP), a file of its own.
static_assert(copies_at + copies_per_vci * sizeof(SharedCopy) <= lines_at);
static_assert(vci_offset + max_vcis * vci_stride <= heap_offset);

inline sync::RingControl* ring_control(std::byte* region, unsigned vci) noexcept {
  return reinterpret_cast<sync::RingControl*>(region + vci_offset + vci * vci_stride);
}
inline SharedCopy* shared_copies(std::byte* region, unsigned vci) noexcept {
  return reinterpret_cast<SharedCopy*>(region + vci_offset + vci * vci_stride + copies_at);
}
inline sync::RingLine* ring_lines(std::byte* region, unsigned vci) noexcept {
  return reinterpret_cast<sync::RingLine*>(region + vci_offset + vci * vci_stride + lines_at);
}

}  // namespace heddle::shm
