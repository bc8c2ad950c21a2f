#pragma once

#include <string_view>
#include <vector>

namespace heddle::sys {

/// Which node each rank of a job runs on, as PMI launchers say it (`PMI_process_mapping`): a list of blocks
/// (first node, nodes, processes per node), walked over and over until every rank has its place.
/// Memory is that of the text: bytes for a million ranks in regular order.
class ProcessMapping {
 public:
  struct Block {
    int first_node;
    int nodes;
    int per_node;
    friend bool operator==(const Block&, const Block&) = default;
  };

  /// Parses `(vector,(first,nodes,ppn),…)`. False, and the mapping stays empty, for anything else:
  /// a launcher that says nothing useful must not stop a job.
  bool parse(std::string_view text);

  /// Takes `node_of_rank[r]` (one entry per rank, none negative) as the mapping, run-length compressed.
  void assign(const std::vector<int>& node_of_rank);

  bool empty() const { return blocks_.empty(); }

  /// The node of `rank`, or -1 when the mapping is empty. O(blocks).
  int node_of(int rank) const;

  /// Ranks in [0, size) on `node`, ascending. O(result + blocks × repetitions of the pattern).
  std::vector<int> ranks_on(int node, int size) const;

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  std::vector<Block> blocks_;
  long long cycle_ = 0;  ///< ranks placed by one walk over all blocks
};

}  // namespace heddle::sys
