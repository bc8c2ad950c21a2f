#include "sys/bootstrap/kvs.hpp"

#include <stdlib.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "sys/bootstrap/encoding.hpp"
#include "sys/bootstrap/patience.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"

namespace heddle::sys::bootstrap {
namespace {

constexpr std::size_t longest_part_suffix = 8;  // ".1234567"

}  // namespace

std::optional<int> number_in_environment(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? parse_number(text) : std::nullopt;
}

bool KvsBackend::find_local_ranks(Bootstrap& job, const std::optional<std::string>& text, std::string& error) {
  size_ = job.size;
  const auto claimed_rank = number_in_environment("MPI_LOCALRANKID");
  const auto claimed_size = number_in_environment("MPI_LOCALNRANKS");
  if (!text || !job.mapping.parse(*text)) {
    if (claimed_size == job.size)
      job.mapping.assign(std::vector<int>(1, 0));
    else if (!exchange_node_names(job, error))
      return false;
  }
  job.node = job.mapping.node_of(job.rank);
  const std::vector<int> local = job.local_ranks();
  const auto here = std::find(local.begin(), local.end(), job.rank);
  job.local_rank = static_cast<int>(here - local.begin());
  job.local_size = static_cast<int>(local.size());
  speaks_ = speaks_in_fences(job);
  if (claimed_size && claimed_rank && *claimed_size != job.local_size) {
    error = "the launcher contradicts itself: PMI_process_mapping=" + text.value_or("(none)") + " puts " +
            std::to_string(job.local_size) +
            " processes on this node, MPI_LOCALNRANKS=" + std::to_string(*claimed_size);
    return false;
  }
  return true;
}

/// For launchers that do not say who is where: every process publishes its host's name and boot id.
bool KvsBackend::exchange_node_names(Bootstrap& job, std::string& error) {
  utsname host{};
  uname(&host);
  std::string mine = host.nodename;
  if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    char boot[64] = {};
    if (std::fgets(boot, sizeof boot, file) != nullptr) mine += boot;
    std::fclose(file);
  }
  if (!put("node", mine, error) || !fence(error)) return false;
  std::map<std::string, int> nodes;
  std::vector<int> node_of_rank(static_cast<std::size_t>(job.size));
  for (int rank = 0; rank < job.size; ++rank) {
    std::optional<std::string> name;
    if (!get(rank, "node", name, error)) return false;
    const int next = static_cast<int>(nodes.size());
    node_of_rank[static_cast<std::size_t>(rank)] = nodes.try_emplace(name.value_or("?"), next).first->second;
  }
  job.mapping.assign(node_of_rank);
  return true;
}

std::string KvsBackend::key_of(int rank, std::string_view key) const {
  return "h" + std::to_string(rank) + "-" + std::string(key);
}

bool KvsBackend::await_others(int fd, std::string& error) const {
  return Patience(rank_, size_, speaks_).await_input(fd, error);
}

bool KvsBackend::lost(int fd, std::string& error) const {
  error = "rank " + std::to_string(rank_) + ": the launcher closed the connection (PMI_FD=" + std::to_string(fd) +
          "); it has died or is ending the job";
  return false;
}

// A value travels in parts: the first under the key itself, as `PARTS.text`, the others under `key.1`, `key.2`, …
bool KvsBackend::put(std::string_view key, std::string_view value, std::string& error) {
  const std::string name = key_of(rank_, key);
  if (name.size() + longest_part_suffix > key_limit_) {
    error = "the key \"" + std::string(key) + "\" is too long for this launcher (" + std::to_string(key_limit_) + ")";
    return false;
  }
  const std::string text = encode_base64(value);
  const std::size_t part_size = value_limit_ - longest_part_suffix;
  const std::size_t parts = text.empty() ? 1 : (text.size() + part_size - 1) / part_size;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string piece = text.substr(part * part_size, part_size);
    const bool stored = part == 0 ? put_raw(name, std::to_string(parts) + "." + piece, error)
                                  : put_raw(name + "." + std::to_string(part), piece, error);
    if (!stored) return false;
  }
  return true;
}

bool KvsBackend::get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) {
  const std::string name = key_of(rank, key);
  value.reset();
  std::optional<std::string> piece;
  if (!get_raw(rank, name, piece, error)) return false;
  if (!piece) return true;
  const std::size_t dot = piece->find('.');
  const auto parts = parse_number(std::string_view(*piece).substr(0, dot));
  bool whole = dot != std::string::npos && parts && *parts > 0;
  std::string text = whole ? piece->substr(dot + 1) : std::string();
  for (int part = 1; whole && part < *parts; ++part) {
    if (!get_raw(rank, name + "." + std::to_string(part), piece, error)) return false;
    whole = piece.has_value();
    if (whole) text += *piece;
  }
  if (whole) value = decode_base64(text);
  if (value) return true;
  error = "the launcher returned a damaged value for key \"" + std::string(key) + "\" of rank " + std::to_string(rank);
  return false;
}

}  // namespace heddle::sys::bootstrap
