#include "transport/net/peers.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "transport/shm/node.hpp"

namespace heddle::net {
namespace {

constexpr char address_version = 6;

/// What a process publishes. The name follows.
struct Published {
  char version;
  char shares_memory;      ///< with its neighbours: HEDDLE_SHM
  char reserved[2];
  std::uint32_t vcis;
  std::uint64_t key;       ///< rank 0's is the job's, where the launcher gave none
  std::uint64_t largest_frame;  ///< that it receives
  char provider[48];
};

const sys::Bootstrap* job = nullptr;
const Common* common = nullptr;
std::uint64_t own_key = 0;
std::mutex reading;  // one at a time puts addresses into the table of processes

std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93;
  return value ^ value >> 32;
}

/// What both ends of a connection must agree on.
std::string agreement() { return common->choice.agreement.substr(0, sizeof(Published::provider) - 1); }

bool read_address(ProcessIndex process, ProcessAddress& out, std::uint64_t* key, std::string& problem) {
  std::optional<std::string> text;
  if (!sys::bootstrap::get(static_cast<int>(processes.name_of(process).rank), "net", text, problem)) return false;
  Published published;
  if (!text || text->size() <= sizeof published || (std::memcpy(&published, text->data(), sizeof published), published.version != address_version)) {
    problem = "rank " + std::to_string(process) + " has published no network address that this one could use: ";
    problem += processes.is_neighbor(process) && !shm::enabled() ? shm::disagreement_with(process) + ". If that is not it, they run different versions of the library"
                                                    : "they run different versions of the library";
    return false;
  }
  if (processes.is_neighbor(process) && published.shares_memory != shm::enabled()) return problem = shm::disagreement_with(process), false;
  published.provider[sizeof published.provider - 1] = 0;
  if (agreement() != published.provider) {
    problem = "rank " + std::to_string(process) + " uses the network provider " + published.provider + ", this one " + agreement() +
              ": set HEDDLE_OFI_PROVIDER, and with ofi_rxm FI_OFI_RXM_BUFFER_SIZE, to the same on all nodes";
    return false;
  }
  if (published.largest_frame != common->largest_frame) {
    problem = "rank " + std::to_string(process) + " takes network messages of " + std::to_string(published.largest_frame) + " bytes, this one of " +
              std::to_string(common->largest_frame) + ": set HEDDLE_NET_EAGER and HEDDLE_NET_FRAME to the same on all nodes";
    return false;
  }
  out.vcis = published.vcis ? published.vcis : 1;
  out.name = text->substr(sizeof published);
  if (key) *key = published.key;
  return true;
}

}  // namespace

bool publish_address(const sys::Bootstrap& own_job, const Common& shared, unsigned vcis, std::string_view name, std::string& problem) {
  job = &own_job;
  common = &shared;
  Published published{};
  published.version = address_version;
  published.shares_memory = shm::enabled();
  published.vcis = vcis;
  if (getrandom(&own_key, sizeof own_key, 0) != sizeof own_key) own_key = hash(job->job_id + std::to_string(job->rank));
  published.key = own_key;
  published.largest_frame = common->largest_frame;
  std::snprintf(published.provider, sizeof published.provider, "%s", agreement().c_str());
  std::string text(reinterpret_cast<const char*>(&published), sizeof published);
  text += name;
  return sys::bootstrap::put("net", text, problem);
}

bool agree_on_key(std::uint64_t& key, std::string& problem) {
  // Our own mpiexec names each job with 128 random bits, known to its ranks only. Elsewhere rank 0 has made a key.
  const char* random_name = std::getenv("HEDDLE_JOB_ID");
  if (random_name && job->job_id == random_name) {
    key = hash(job->job_id);
  } else if (job->rank == 0) {
    key = own_key;
  } else {
    const ProcessIndex first = processes.find({common->self.job, 0});
    auto* address = new ProcessAddress;
    if (!read_address(first, *address, &key, problem)) return delete address, false;
    processes.set(first, *address);
  }
  return true;
}

const ProcessAddress& address_of(ProcessIndex process) noexcept {
  if (const NetworkPeer* known = processes.network_peer(process)) return static_cast<const ProcessAddress&>(*known);
  const std::lock_guard hold(reading);
  if (const NetworkPeer* known = processes.network_peer(process)) return static_cast<const ProcessAddress&>(*known);
  auto* read = new ProcessAddress;
  std::string problem;
  if (!read_address(process, *read, nullptr, problem)) sys::fatal("cannot reach rank %u: %s", process, problem.c_str());
  processes.set(process, *read);
  return *read;
}

void forget_addresses() noexcept {
  processes.for_each_network_peer([](NetworkPeer& address) { delete static_cast<ProcessAddress*>(&address); });
}

}  // namespace heddle::net
