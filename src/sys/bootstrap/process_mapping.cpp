#include "sys/bootstrap/process_mapping.hpp"

#include <charconv>

namespace heddle::sys {
namespace {

/// A cursor over the text: every step either consumes what it names or fails.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool take(char expected) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take(int& number) {
    skip_spaces();
    const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (failure != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

}  // namespace

bool ProcessMapping::parse(std::string_view text) {
  blocks_.clear();
  cycle_ = 0;
  std::vector<Block> blocks;
  long long cycle = 0;
  Cursor cursor(text);
  if (!cursor.take('(') || !cursor.take(std::string_view("vector"))) return false;
  while (cursor.take(',')) {
    Block block{};
    if (!cursor.take('(') || !cursor.take(block.first_node) || !cursor.take(',') || !cursor.take(block.nodes) ||
        !cursor.take(',') || !cursor.take(block.per_node) || !cursor.take(')'))
      return false;
    if (block.first_node < 0 || block.nodes <= 0 || block.per_node <= 0) return false;
    cycle += static_cast<long long>(block.nodes) * block.per_node;
    blocks.push_back(block);
  }
  if (!cursor.take(')') || blocks.empty()) return false;
  blocks_ = std::move(blocks);
  cycle_ = cycle;
  return true;
}

void ProcessMapping::assign(const std::vector<int>& node_of_rank) {
  blocks_.clear();
  cycle_ = static_cast<long long>(node_of_rank.size());
  for (const int node : node_of_rank) {
    if (!blocks_.empty() && blocks_.back().first_node == node)
      ++blocks_.back().per_node;
    else
      blocks_.push_back({node, 1, 1});
  }
}

int ProcessMapping::node_of(int rank) const {
  if (blocks_.empty() || rank < 0) return -1;
  long long position = rank % cycle_;
  for (const Block& block : blocks_) {
    const long long ranks = static_cast<long long>(block.nodes) * block.per_node;
    if (position < ranks) return block.first_node + static_cast<int>(position / block.per_node);
    position -= ranks;
  }
  return -1;  // not reached: position < cycle_, the sum of all blocks
}

std::vector<int> ProcessMapping::ranks_on(int node, int size) const {
  std::vector<int> ranks;
  if (blocks_.empty()) return ranks;
  for (long long base = 0; base < size; base += cycle_) {
    long long start = base;
    for (const Block& block : blocks_) {
      if (node >= block.first_node && node - block.first_node < block.nodes) {
        const long long first = start + static_cast<long long>(node - block.first_node) * block.per_node;
        for (long long rank = first; rank < first + block.per_node && rank < size; ++rank)
          ranks.push_back(static_cast<int>(rank));
      }
      start += static_cast<long long>(block.nodes) * block.per_node;
    }
  }
  return ranks;
}

}  // namespace heddle::sys
