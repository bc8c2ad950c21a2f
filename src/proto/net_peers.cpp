// The other processes: where each is, and what is said of one that cannot be reached.
#include "proto/net_peers.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "proto/net_state.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/log.hpp"
#include "transport/host_address.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::net {
namespace {

constexpr char card_version = 5;

/// What a process publishes. The name follows.
struct Card {
  char version;
  char shares_memory;      ///< with its neighbours: HEDDLE_SHM
  char reserved[2];
  std::uint32_t vcis;
  std::uint64_t key;       ///< rank 0's is the job's, where the launcher gave none
  std::uint64_t largest_frame;  ///< that it receives
  char provider[48];
};

std::uint64_t own_key = 0;
std::unordered_map<ProcessIndex, KnownProcess>* known = nullptr;  // guarded by known_mutex; never destroyed: who exits may still name a peer
std::mutex known_mutex;

std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93;
  return value ^ value >> 32;
}

/// What both ends of a connection must agree on.
std::string provider_and_buffer() {
  const char* size = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  std::string text = network.choice.provider;
  if (size && text.find("rxm") != std::string::npos) text += std::string(" with buffers of ") + size;
  return text.substr(0, sizeof(Card::provider) - 1);
}

bool read_card(ProcessIndex process, KnownProcess& out, std::uint64_t* key, std::string& problem) {
  std::optional<std::string> text;
  if (!sys::bootstrap::get(static_cast<int>(process), "net", text, problem)) return false;
  Card card;
  if (!text || text->size() <= sizeof card || (std::memcpy(&card, text->data(), sizeof card), card.version != card_version)) {
    problem = "rank " + std::to_string(process) + " has published no network address that this one could use: ";
    problem += is_local(process) && !shm::enabled() ? shm::disagreement_with(process) + ". If that is not it, they run different versions of the library"
                                                    : "they run different versions of the library";
    return false;
  }
  if (is_local(process) && card.shares_memory != shm::enabled()) return problem = shm::disagreement_with(process), false;
  card.provider[sizeof card.provider - 1] = 0;
  if (provider_and_buffer() != card.provider) {
    problem = "rank " + std::to_string(process) + " uses the network provider " + card.provider + ", this one " + provider_and_buffer() +
              ": set HEDDLE_OFI_PROVIDER, and with ofi_rxm FI_OFI_RXM_BUFFER_SIZE, to the same on all nodes";
    return false;
  }
  if (card.largest_frame != largest_frame) {
    problem = "rank " + std::to_string(process) + " takes network messages of " + std::to_string(card.largest_frame) + " bytes, this one of " +
              std::to_string(largest_frame) + ": set HEDDLE_NET_EAGER and HEDDLE_NET_FRAME to the same on all nodes";
    return false;
  }
  out.vcis = card.vcis ? card.vcis : 1;
  out.name = text->substr(sizeof card);
  if (key) *key = card.key;
  return true;
}

}  // namespace

bool put_card(const sys::Bootstrap& job, unsigned vcis, std::string_view name, std::string& problem) {
  known = new std::unordered_map<ProcessIndex, KnownProcess>;
  Card card{};
  card.version = card_version;
  card.shares_memory = shm::enabled();
  card.vcis = vcis;
  if (getrandom(&own_key, sizeof own_key, 0) != sizeof own_key) own_key = hash(job.job_id + std::to_string(job.rank));
  card.key = own_key;
  card.largest_frame = largest_frame;
  std::snprintf(card.provider, sizeof card.provider, "%s", provider_and_buffer().c_str());
  std::string text(reinterpret_cast<const char*>(&card), sizeof card);
  text += name;
  return sys::bootstrap::put("net", text, problem);
}

bool agree_on_key(const sys::Bootstrap& job, std::string& problem) {
  // Our own mpiexec names each job with 128 random bits, known to its ranks only. Elsewhere rank 0 has made a key.
  const char* random_name = std::getenv("HEDDLE_JOB_ID");
  if (random_name && job.job_id == random_name) {
    job_key = hash(job.job_id);
  } else if (job.rank == 0) {
    job_key = own_key;
  } else {
    KnownProcess first;
    if (!read_card(0, first, &job_key, problem)) return false;
    known->emplace(0, std::move(first));
  }
  tcp::set_key(job_key);
  return true;
}

const KnownProcess& process_of(ProcessIndex process) noexcept {
  const std::lock_guard hold(known_mutex);
  const auto found = known->find(process);
  if (found != known->end()) return found->second;
  KnownProcess read;
  std::string problem;
  if (!read_card(process, read, nullptr, problem)) sys::fatal("cannot reach rank %u: %s", process, problem.c_str());
  return known->emplace(process, std::move(read)).first->second;  // elements of the map stay where they are
}

std::string way_to(const Link& link) {
  if (std::string way = link.address == wire::no_address ? "" : link.net->context.way(link.address); !way.empty()) return way;
  std::string text = network.choice.interface;
  if (!network.choice.address.empty()) text += " " + network.choice.address;
  const std::unique_lock hold(known_mutex, std::try_to_lock);  // the job is about to end: nothing may be waited for
  const auto found = hold && known ? known->find(link.process) : decltype(known->end()){};
  if (!hold || !known || found == known->end() || !network.choice.info) return text;
  sockaddr_storage name{};
  std::memcpy(&name, found->second.name.data(), std::min(found->second.name.size(), sizeof name));
  if (const std::string there = text_of(reinterpret_cast<const sockaddr&>(name)); !there.empty()) text += " to " + there;
  return text;
}

const char* advice_for(const Link& link) noexcept {
  return link.expected || link.acked ? "" : ". Nothing has ever come from there: HEDDLE_NET says which network is the one between the hosts";
}

void await_the_launcher() noexcept {
  constexpr useconds_t longest = 1'000'000, turn = 250'000;
  constexpr std::uint32_t turns = 8;
  usleep(longest + runtime.self % turns * turn);
}

void lost(const Link& link, const char* doing, int error) noexcept {
  await_the_launcher();
  sys::fatal("the connection to rank %u was lost while %s (%s, %s: %s): the process has died, its host is down, or the network between is "
             "cut%s", link.process, doing, network.choice.provider.c_str(), way_to(link).c_str(), wire::error_text(network, error).c_str(), advice_for(link));
}

}  // namespace heddle::net
