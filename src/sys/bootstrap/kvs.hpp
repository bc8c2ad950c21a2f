#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sys/bootstrap/backend.hpp"

namespace heddle::sys::bootstrap {

/// The number in an environment variable; empty when it is not set or holds anything else.
std::optional<int> number_in_environment(const char* name);

/// What PMI-1 and PMI-2 have in common: one store of short texts without spaces for the whole job. Values are encoded
/// and cut into parts, and the rank is part of the key.
class KvsBackend : public Backend {
 public:
  bool put(std::string_view key, std::string_view value, std::string& error) override;
  bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) override;

 protected:
  virtual bool put_raw(std::string_view key, std::string_view value, std::string& error) = 0;
  /// `rank` is who put it: a hint for servers that look it up by source.
  virtual bool get_raw(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) = 0;

  /// Fills `mapping`, `node` and `local_*` from the launcher's process mapping; where it has none, or none that can be
  /// read, by an exchange of host names, the only thing at start whose cost grows with the number of ranks.
  bool find_local_ranks(Bootstrap& job, const std::optional<std::string>& mapping_text, std::string& error);

  /// Waits in a fence for the answer over the connection `fd`. False: the limit is reached.
  bool await_others(int fd, std::string& error) const;

  /// False, with what an error over the connection `fd` to the launcher means.
  bool lost(int fd, std::string& error) const;

  int rank_ = -1, size_ = 0;
  bool speaks_ = true;  ///< the wait in a fence (Patience)
  std::size_t key_limit_ = 63;
  std::size_t value_limit_ = 255;

 private:
  bool exchange_node_names(Bootstrap& job, std::string& error);
  std::string key_of(int rank, std::string_view key) const;
};

}  // namespace heddle::sys::bootstrap
