#include "transport/shm/node.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/program_heap.hpp"
#include "transport/shm/doorbell.hpp"
#include "transport/shm/heap.hpp"

namespace heddle::shm {

sys::Segment region;
RegionHeader* header = nullptr;

namespace {

constexpr std::int64_t smallest_ring = 16 << 10;

HEDDLE_PARAM_SIZE(ring_size, "HEDDLE_RING", 256 << 10, smallest_ring, 512 << 10, "bytes of each VCI's ingress ring in shared memory (16K to 512K; a power of two, or the next lower one)");
HEDDLE_PARAM_BOOL(use_shm, "HEDDLE_SHM", 1, "messages between processes of one node go through shared memory; 0: through the network, for testing it");
HEDDLE_PARAM_BOOL(shared_heap, "HEDDLE_SHARED_HEAP", 0,
                  "the program's large blocks (malloc) in memory that the ranks of a node share: mpiexec preloads libheddle_heap.so");
HEDDLE_PARAM_BOOL(use_cma, "HEDDLE_CMA", 1, "copy large messages straight between address spaces where the kernel allows it");

std::mutex attach_mutex;
std::vector<int> local_ranks;
ProcessIndex own_process = 0;
int job_fd = -1;
bool card_put = false;          ///< the region has a name in /dev/shm, published through the bootstrap
std::uint64_t probe_value = 0;  ///< what peers try to read by CMA
void (*tell_ring_size)(std::uint32_t lines) noexcept = nullptr;
std::vector<int> early_fds;     ///< by local index: peers' named files, opened before the names went; empty without names
sys::ProgramHeap own_program_heap{-1, nullptr, 0};

std::size_t ring_area() noexcept { return vci_offset + max_vcis * vci_stride; }

std::uint64_t ring_bytes() noexcept {
  return std::bit_floor(static_cast<std::uint64_t>(ring_size.value()));
}

int local_index(ProcessIndex process) noexcept {
  for (std::size_t low = 0, high = local_ranks.size(); low < high;) {
    const std::size_t middle = (low + high) / 2;
    if (local_ranks[middle] == static_cast<int>(process)) return static_cast<int>(middle);
    if (local_ranks[middle] < static_cast<int>(process)) low = middle + 1; else high = middle;
  }
  return -1;
}

/// With a job file nobody waits at start, so the peer may not have reached MPI_Init yet. Acquire pairs with `start`.
void await_ready(const RegionHeader& peer, ProcessIndex process) noexcept {
  std::uint32_t value;
  for (unsigned polls = 0; (value = peer.ready.load(std::memory_order_acquire)) != RegionHeader::magic_value; ++polls) {
    if (value) sys::fatal("rank %u runs another version of the library than this rank %u", process, own_process);
    if (polls < 1000) sched_yield(); else usleep(200);
    if (polls % 1000 == 999 && sys::bootstrap::launcher_gone()) sys::abort_job(1, "the launcher is gone");
  }
}

/// The region of a process of the node in the job's file, not mapped.
sys::Segment region_in_job(int local) noexcept {
  sys::Segment peer;
  peer.fd = job_fd;
  peer.size = region_size;
  peer.offset = region_size * static_cast<std::uint64_t>(local);
  return peer;
}

/// With HEDDLE_SHM=0 every rank enters a fence before the network starts; with a job file and without the variable none does. So all ranks'
/// settings are compared before the fence.
bool agree_on_none(std::string& problem) {
  for (std::size_t i = 0; i < local_ranks.size(); ++i) {
    sys::Segment peer = region_in_job(static_cast<int>(i));
    if (static_cast<ProcessIndex>(local_ranks[i]) == own_process) continue;
    if (!sys::commit(peer, 0, sizeof(RegionHeader)) || !sys::map_segment(peer, sizeof(RegionHeader), problem)) return false;
    const auto& head = *reinterpret_cast<const RegionHeader*>(peer.base);
    await_ready(head, static_cast<ProcessIndex>(local_ranks[i]));
    const bool agrees = !head.takes_messages;
    sys::unmap_segment(peer);
    if (!agrees) return problem = disagreement_with(static_cast<ProcessIndex>(local_ranks[i])), false;
  }
  return true;
}

/// Maps as much of the heap as the address-space limit allows.
bool map_own(std::string& problem) {
  for (std::uint64_t size = region_size; size > heap_offset; size /= 4)
    if (sys::map_segment(region, size, problem)) return true;
  return sys::map_segment(region, ring_area(), problem);
}

/// Where shared memory is limited (a container's /dev/shm): makes rings that take at most half of it, of one size on all ranks, and allocates all
/// VCIs' pages at once, so that nothing else can take them later.
bool fit_rings(const sys::Bootstrap& job, unsigned& vcis, std::string& problem) {
  std::uint64_t bytes = ring_bytes();
  const std::uint64_t all = sys::room_in_all(region);
  if (all != UINT64_MAX) {
    const std::uint64_t share = all / 2 / static_cast<std::uint64_t>(job.local_size);
    while (bytes > smallest_ring && vcis * (lines_at + bytes) > share) bytes /= 2;
    while (vcis > 1 && vcis * (lines_at + bytes) > share) --vcis;
  }
  header->ring_lines = static_cast<std::uint32_t>(bytes / sync::cache_line);
  for (unsigned v = 0; all != UINT64_MAX && v < vcis; ++v)
    if (!commit_vci(v)) {
      problem = fmt::format("the shared memory of this node (/dev/shm, {} KiB) has no room for {} KiB of rings for each of {} ranks; "
                            "make it larger (mount -o remount,size=…, docker run --shm-size=…), or use HEDDLE_SHM_BACKING=memfd",
                            all >> 10, vcis * (lines_at + bytes) >> 10, job.local_size);
      return false;
    }
  if (bytes < ring_bytes() && job.local_rank == 0)
    sys::notice("the shared memory of this node (/dev/shm) has %llu KiB: rings of %llu KiB instead of %llu are used, which makes "
                "messages slower. Make it larger, or use HEDDLE_SHM_BACKING=memfd.",
                static_cast<unsigned long long>(all >> 10), static_cast<unsigned long long>(bytes >> 10),
                static_cast<unsigned long long>(ring_bytes() >> 10));
  return true;
}

/// With names in /dev/shm: opens all peers' files, so that the last peer to open one can remove its name. Afterwards a `kill -9` of everybody
/// leaves nothing behind.
bool open_named_files(std::string& problem) {
  early_fds.assign(local_ranks.size(), -1);
  for (std::size_t i = 0; i < local_ranks.size(); ++i) {
    if (static_cast<ProcessIndex>(local_ranks[i]) == own_process) continue;
    std::optional<std::string> card;
    sys::Segment peer;
    if (!sys::bootstrap::get(local_ranks[i], "shm", card, problem)) return false;
    if (!card || !sys::open_segment(*card, peer, problem) || !sys::map_segment(peer, sizeof(RegionHeader), problem)) return false;
    auto* head = reinterpret_cast<RegionHeader*>(peer.base);
    // Acquire and release: whoever counts last knows that all others have opened it.
    if (head->attached.fetch_add(1, std::memory_order_acq_rel) + 2 == local_ranks.size()) sys::unlink_segment(*card);
    sys::unmap_segment(peer);
    early_fds[i] = peer.fd;
  }
  return true;
}

/// Our mpiexec preloads the heap, whichever launcher starts the job; launchers called directly do not.
void tell_to_preload() noexcept {
  std::string path = "libheddle_heap.so";
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&tell_to_preload), &own) && own.dli_fname) {
    const std::string_view library = own.dli_fname;
    const std::string beside = std::string(library.substr(0, library.rfind('/') + 1)) + path;
    if (char* const whole = realpath(beside.c_str(), nullptr)) {
      path = whole;
      std::free(whole);
    }
  }
  HEDDLE_NOTICE_ONCE("HEDDLE_SHARED_HEAP has no effect: libheddle_heap.so is not preloaded. Heddle's mpiexec does that, also where Slurm, PRRTE or "
                     "Hydra start the ranks for it; with another launcher put `env LD_PRELOAD=%s` before the program.", path.c_str());
}

/// Tells the peers where to find the part of the program's heap that lies in a memfd, when libheddle_heap.so made one.
void publish_program_heap() noexcept {
  header->heap_fd = -1;
  const auto function = reinterpret_cast<sys::ProgramHeapFunction>(dlsym(RTLD_DEFAULT, sys::program_heap_symbol));
  if (!function && shared_heap.value() && own_process == 0) tell_to_preload();
  const sys::ProgramHeap* heap = function ? function() : nullptr;
  struct stat info;
  if (!heap || fstat(heap->fd, &info)) return;
  own_program_heap = *heap;
  header->heap_fd = heap->fd;
  header->heap_inode = info.st_ino;
  header->heap_bytes = heap->bytes;
}

}  // namespace

bool enabled() noexcept { return use_shm.value(); }

std::string disagreement_with(ProcessIndex other) {
  return fmt::format("HEDDLE_SHM=0 is set for rank {}, but not for rank {} of the same host: set it for all ranks of a host or for none of them",
                     enabled() ? other : own_process, enabled() ? own_process : other);
}

bool start(const sys::Bootstrap& job, unsigned& vcis, void (*on_ring_size)(std::uint32_t) noexcept, std::string& problem) {
  local_ranks = job.local_ranks();
  own_process = static_cast<ProcessIndex>(job.rank);
  job_fd = job.job_fd;
  if (job_fd >= 0) {
    // All compute the same size, so the first may set it.
    const auto total = static_cast<off_t>(region_size * static_cast<std::uint64_t>(job.local_size));
    if (ftruncate(job_fd, total)) {
      problem = std::string("sizing the job's shared memory: ") + std::strerror(errno);
      return false;
    }
    region = region_in_job(job.local_rank);
  } else if (!sys::create_segment(region_size, job.job_id.c_str(), job.local_rank, region, problem)) {
    return false;
  }
  if (!sys::commit(region, 0, sizeof(RegionHeader)) || !map_own(problem)) {
    if (problem.empty()) problem = "no memory for the shared region";
    return false;
  }
  header = reinterpret_cast<RegionHeader*>(region.base);

  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // Yama: let the job's other processes use CMA on this one
  probe_value = (static_cast<std::uint64_t>(getpid()) << 32) ^ reinterpret_cast<std::uintptr_t>(&probe_value) ^ 0x5bd1e995;
  if (!fit_rings(job, vcis, problem)) return false;
  tell_ring_size = on_ring_size;
  tell_ring_size(header->ring_lines);
  header->vcis = vcis;
  header->takes_messages = enabled();
  header->pid = getpid();
  header->probe_address = reinterpret_cast<std::uintptr_t>(&probe_value);
  header->probe_value = probe_value;
  publish_program_heap();
  publish_name_space(header->doorbell);
  header->ready.store(RegionHeader::magic_value, std::memory_order_release);  // pairs with attach

  if (job_fd >= 0) return enabled() || agree_on_none(problem);
  card_put = job.size > 1;
  return !card_put || sys::bootstrap::put("shm", sys::segment_card(region), problem);
}

bool needs_fence() noexcept { return card_put; }

bool meet(const sys::Bootstrap& job, std::string& problem) {
  if (job_fd >= 0 || !sys::has_name()) return true;
  if (job.local_size > 1) return open_named_files(problem);
  sys::unlink_segment();
  return true;
}

void say(Stage stage) noexcept {
  header->stage.store(stage, std::memory_order_release);  // pairs with Peer::stage
  std::atomic_thread_fence(std::memory_order_seq_cst);
  processes.for_each_node_peer([](NodePeer& peer) { static_cast<Peer&>(peer).ring_doorbell(VciIndex{}); });
}

void stop() noexcept {
  processes.for_each_node_peer([](NodePeer& known) {
    auto& peer = static_cast<Peer&>(known);
    peer.unmap();
    if (peer.region.fd >= 0 && peer.region.fd != job_fd && peer.region.fd != region.fd) close(peer.region.fd);
    delete &peer;
  });
  for (const int fd : early_fds)
    if (fd >= 0) close(fd);
  early_fds.clear();
  sys::unlink_segment();
  if (!heap_in_use()) sys::unmap_segment(region);  // exit handlers that run after ours may still use its memory
  if (region.fd >= 0 && region.fd != job_fd) close(region.fd);
  region = {};
  header = nullptr;
}

Peer* attach(ProcessIndex process, std::string& problem) noexcept {
  std::lock_guard lock(attach_mutex);
  if (Peer* peer = find(process)) return peer;
  const int index = local_index(process);
  if (!enabled() && process != own_process) return problem = "HEDDLE_SHM=0 rules out shared memory", nullptr;
  if (index < 0) {
    problem = "rank " + std::to_string(process) + " is on another node";
    return nullptr;
  }
  Peer* peer = new (std::nothrow) Peer;
  if (!peer) return problem = "no memory", nullptr;
  peer->process = process;
  if (process == own_process) {
    peer->region = region;  // for endpoints that talk to each other
  } else if (job_fd >= 0) {
    peer->region = region_in_job(index);
  } else if (!early_fds.empty() && early_fds[static_cast<std::size_t>(index)] >= 0) {
    peer->region.fd = std::exchange(early_fds[static_cast<std::size_t>(index)], -1);
    peer->region.size = region_size;
  } else {
    std::optional<std::string> card;
    if (!sys::bootstrap::get(static_cast<int>(process), "shm", card, problem)) return delete peer, nullptr;
    if (!card || !sys::open_segment(*card, peer->region, problem)) {
      problem = "cannot open the shared memory of rank " + std::to_string(process) + ": " + problem +
                " (different containers or users on one node? give them one PID namespace and one user)";
      return delete peer, nullptr;
    }
  }
  if (process != own_process && !sys::map_segment(peer->region, ring_area(), problem)) return delete peer, nullptr;

  auto* head = reinterpret_cast<RegionHeader*>(peer->region.base);
  await_ready(*head, process);
  if (process != own_process && !head->takes_messages) sys::fatal("%s", disagreement_with(process).c_str());
  peer->pid = head->pid;
  peer->vcis = head->vcis;
  peer->doorbell = &head->doorbell;
  check_reach(*peer->doorbell, header->doorbell);
  tell_ring_size(head->ring_lines);

  processes.set(process, *peer);
  return peer;
}

Peer::~Peer() {
  // Higher lanes share the ports of the first ones.
  for (unsigned lane = 0; lane < lanes && lane < vcis; ++lane) delete ports_[lane].load(std::memory_order_relaxed);
}

Port* Peer::open_port(Lane lane) noexcept {
  std::lock_guard lock(attach_mutex);
  if (Port* known = port(lane)) return known;
  const unsigned vci = number(lane) % vcis;
  // Lanes that share a VCI share its port, and so its head cache.
  for (unsigned other = vci; other < lanes; other += vcis)
    if (Port* known = port(lane_at(other))) {
      ports_[number(lane)].store(known, std::memory_order_release);
      return known;
    }
  const std::uint32_t lines = reinterpret_cast<RegionHeader*>(region.base)->ring_lines;
  const std::uint64_t start = vci_offset + vci * vci_stride;
  if (!sys::commit(region, start, lines_at + lines * sync::cache_line))
    sys::fatal("no memory for the ring to rank %u (%u KiB): a memory limit of this job or container is too low",
               process, lines / 16);
  Port* made = new (std::nothrow) Port{{ring_control(region.base, vci), ring_lines(region.base, vci), lines}, doorbell, vci_at(vci)};
  if (!made) sys::fatal("no memory for the port to rank %u", process);
  ports_[vci].store(made, std::memory_order_release);  // the destructor unmaps this one
  ports_[number(lane)].store(made, std::memory_order_release);
  return made;
}

void ring_slowly(Doorbell& doorbell, VciIndex vci) noexcept { ring(doorbell, number(vci), INT_MAX); }

bool Peer::probe_cma() noexcept {
  const auto* head = reinterpret_cast<RegionHeader*>(region.base);
  std::uint64_t value = 0;
  errno = 0;
  const bool works = use_cma.value() && cma_read(pid, &value, head->probe_address, sizeof value) && value == head->probe_value;
  const int cause = errno;
  if (!works && use_cma.value() && cause != ESRCH && first_to_say(NodeNotice::no_cma))
    HEDDLE_NOTICE_ONCE("the kernel does not let ranks read each other's memory (CMA: %s); large messages are copied twice. "
                       "Containers: allow ptrace (--cap-add SYS_PTRACE) or the process_vm_readv system call.",
                       cause ? std::strerror(cause) : "another process has the peer's number; PID namespaces differ");
  cma_.store(works ? 1 : -1, std::memory_order_relaxed);
  return works;
}

void Peer::unmap() noexcept {
  if (std::byte* heap = heap_.exchange(nullptr, std::memory_order_relaxed)) munmap(heap, region.size - heap_offset);
  if (std::byte* heap = program_heap_.exchange(nullptr, std::memory_order_relaxed))
    munmap(heap, reinterpret_cast<RegionHeader*>(region.base)->heap_bytes);
  if (process != own_process) sys::unmap_segment(region);
}

/// Opens the peer's memfd by its process id. nullptr if that is hidden, or names another process (PID namespaces).
std::byte* Peer::program_heap() noexcept {
  if (std::byte* base = program_heap_.load(std::memory_order_acquire)) return base;
  if (program_heap_failed_.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard lock(attach_mutex);
  if (std::byte* base = program_heap_.load(std::memory_order_relaxed)) return base;
  const auto* head = reinterpret_cast<RegionHeader*>(region.base);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, head->heap_fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  struct stat info;
  void* mapped = MAP_FAILED;
  if (fd >= 0 && !fstat(fd, &info) && info.st_ino == head->heap_inode)
    mapped = mmap(nullptr, head->heap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  const int cause = errno;
  if (fd >= 0) close(fd);
  if (mapped == MAP_FAILED) {
    HEDDLE_NOTICE_ONCE("the shared heap of rank %u cannot be mapped (%s: %s); its messages move as without HEDDLE_SHARED_HEAP",
                       process, path, std::strerror(cause));
    program_heap_failed_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  madvise(mapped, head->heap_bytes, MADV_DONTDUMP);
  program_heap_.store(static_cast<std::byte*>(mapped), std::memory_order_release);
  return static_cast<std::byte*>(mapped);
}

std::byte* Peer::heap_address(std::uint64_t offset) noexcept {
  if (offset >= region_size) {
    std::byte* heap = program_heap();
    return heap ? heap + (offset - region_size) : nullptr;
  }
  std::byte* base = heap_.load(std::memory_order_acquire);
  if (!base) {
    std::lock_guard lock(attach_mutex);
    base = heap_.load(std::memory_order_relaxed);
    if (!base) {
      void* mapped = mmap(nullptr, region.size - heap_offset, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, region.fd,
                          static_cast<off_t>(region.offset + heap_offset));
      if (mapped == MAP_FAILED) return nullptr;
      madvise(mapped, region.size - heap_offset, MADV_DONTDUMP);
      base = static_cast<std::byte*>(mapped);
      heap_.store(base, std::memory_order_release);
    }
  }
  return base + (offset - heap_offset);
}

bool first_to_say(NodeNotice what) noexcept {
  const auto bit = static_cast<std::uint32_t>(what);
  // Relaxed: nothing else depends on who is first.
  const auto claim = [bit](std::byte* base) {
    return !(reinterpret_cast<RegionHeader*>(base)->said.fetch_or(bit, std::memory_order_relaxed) & bit);
  };
  if (local_ranks.empty() || static_cast<ProcessIndex>(local_ranks.front()) == own_process) return claim(region.base);
  std::string problem;
  if (job_fd >= 0) {  // without waiting for the first rank, which may reach MPI_Init much later
    sys::Segment first;
    first.fd = job_fd;
    if (!sys::commit(first, 0, sizeof(RegionHeader)) || !sys::map_segment(first, sizeof(RegionHeader), problem)) return true;
    const bool mine = claim(first.base);
    sys::unmap_segment(first);
    return mine;
  }
  Peer* first = find(static_cast<ProcessIndex>(local_ranks.front()));
  if (!first && header->ready.load(std::memory_order_relaxed)) first = attach(static_cast<ProcessIndex>(local_ranks.front()), problem);
  return !first || claim(first->region.base);
}

bool commit_vci(unsigned vci) noexcept {
  return sys::commit(region, vci_offset + vci * vci_stride, lines_at + header->ring_lines * sync::cache_line);
}

Mapping mapping() noexcept {
  return {reinterpret_cast<std::uintptr_t>(region.base), region.mapped, reinterpret_cast<std::uintptr_t>(own_program_heap.base), own_program_heap.bytes};
}

std::uint64_t heap_offset_of(const void* address, std::size_t bytes) noexcept {
  return mapping().offset_of(reinterpret_cast<std::uintptr_t>(address), bytes);
}

bool cma_read(int pid, void* to, std::uint64_t from, std::size_t bytes) noexcept {
  while (bytes) {
    const iovec local{to, bytes}, remote{reinterpret_cast<void*>(from), bytes};
    const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) return false;
    to = static_cast<std::byte*>(to) + n;
    from += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool cma_write(int pid, std::uint64_t to, const void* from, std::size_t bytes) noexcept {
  while (bytes) {
    const iovec local{const_cast<void*>(from), bytes}, remote{reinterpret_cast<void*>(to), bytes};
    const ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) return false;
    from = static_cast<const std::byte*>(from) + n;
    to += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace heddle::shm
