// Runs recorded collectives of n ranks inside one thread, in adversarial order.
//
// Messages are handed over as late as MPI allows (a send's buffer is read when the message is matched, in a random
// order of all that could happen next), or at once; both must give the same. What never finishes, is left over or has
// the wrong size is reported.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "coll/algorithms.hpp"

namespace heddle::coll::testing {

class Simulation {
 public:
  /// `late`: rendezvous, a send is done when it was received; else sends are buffered.
  Simulation(int ranks, unsigned seed, bool late) : ranks_(ranks), late_(late), random_(seed) {
    comms_ = std::make_unique<Comm[]>(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      comms_[r].rank = r;
      comms_[r].size = ranks;
      comms_[r].predefined = true;
    }
  }

  /// Records `build(steps, rank)` for every rank and runs all to the end, `times` times over (persistent collectives).
  /// The empty string, or what went wrong.
  std::string run(const std::function<void(Steps&, int)>& build, int times = 1) {
    std::vector<Schedule*> schedules;
    std::string problem;
    for (int r = 0; r < ranks_; ++r) {
      Schedule* schedule = Schedule::create(comms_[r], "test", times > 1);
      schedules.push_back(schedule);
      Steps steps(*schedule);
      build(steps, r);
      if (steps.finish() != MPI_SUCCESS) problem = "recording failed at rank " + std::to_string(r);
    }
    for (int t = 0; t < times && problem.empty(); ++t) problem = run_once(schedules);
    for (Schedule* schedule : schedules) Schedule::destroy(schedule);
    return problem;
  }

  /// Most messages that any rank had outstanding at once.
  [[nodiscard]] int most_outstanding() const { return most_outstanding_; }

 private:
  struct Message {
    const Step* step;
    std::vector<std::byte> payload;  // of a buffered send
  };
  struct Rank {
    const Step *next, *end;
    int outstanding = 0;
  };
  using Channel = std::pair<int, int>;  // from, to

  std::string run_once(const std::vector<Schedule*>& schedules) {
    std::vector<Rank> state;
    for (Schedule* schedule : schedules) state.push_back({schedule->begin(), schedule->end()});
    sends_.clear();
    recvs_.clear();
    for (std::uint64_t guard = 0; guard < 100'000'000; ++guard) {
      // Everything that could happen next: a rank goes on, or a message is handed over.
      std::vector<std::function<std::string()>> actions;
      for (int r = 0; r < ranks_; ++r) {
        Rank& rank = state[static_cast<std::size_t>(r)];
        if (rank.next != rank.end && (rank.next->kind != Step::Kind::wait || rank.outstanding == 0))
          actions.emplace_back([this, &rank, r] { return take_step(rank, r); });
      }
      for (auto& [channel, queue] : sends_) {
        auto found = recvs_.find(channel);
        if (!queue.empty() && found != recvs_.end() && !found->second.empty())
          actions.emplace_back([this, &state, channel = channel] { return hand_over(state, channel); });
      }
      if (actions.empty()) break;
      const std::string problem = actions[random_() % actions.size()]();
      if (!problem.empty()) return problem;
    }
    std::string left;
    for (int r = 0; r < ranks_; ++r) {
      const Rank& rank = state[static_cast<std::size_t>(r)];
      if (rank.next != rank.end || rank.outstanding)
        left += " rank " + std::to_string(r) + " (" + std::to_string(rank.outstanding) + " outstanding)";
    }
    if (!left.empty()) return "never finished:" + left;
    for (auto& [channel, queue] : sends_)
      if (!queue.empty())
        return "a message from " + std::to_string(channel.first) + " to " + std::to_string(channel.second) +
               " was never received";
    return {};
  }

  std::string take_step(Rank& rank, int r) {
    const Step& step = *rank.next++;
    switch (step.kind) {
      case Step::Kind::send: {
        if (step.peer == r) return "rank " + std::to_string(r) + " sends to itself";
        Message message{&step, {}};
        if (!late_) {
          message.payload = packed(step);
        } else {
          ++rank.outstanding;
        }
        sends_[{r, step.peer}].push_back(std::move(message));
        break;
      }
      case Step::Kind::recv:
        ++rank.outstanding;
        recvs_[{step.peer, r}].push_back(&step);
        break;
      case Step::Kind::wait:
        break;
      case Step::Kind::copy:
        copy_typed(step.from, step.count, *step.type, step.to, step.to_count, *step.to_type);
        break;
      case Step::Kind::reduce:
        apply(*step.op, step.from, step.to, step.count, *step.type);
        break;
    }
    most_outstanding_ = std::max(most_outstanding_, rank.outstanding);
    return {};
  }

  std::string hand_over(std::vector<Rank>& state, Channel channel) {
    Message message = std::move(sends_[channel].front());
    sends_[channel].pop_front();
    const Step& recv = *recvs_[channel].front();
    recvs_[channel].pop_front();
    if (late_) {
      message.payload = packed(*message.step);
      --state[static_cast<std::size_t>(channel.first)].outstanding;
    }
    --state[static_cast<std::size_t>(channel.second)].outstanding;
    const auto expected = static_cast<std::size_t>(recv.count * recv.type->size);
    if (message.payload.size() != expected)
      return "a message from " + std::to_string(channel.first) + " to " + std::to_string(channel.second) + " has " +
             std::to_string(message.payload.size()) + " bytes, " + std::to_string(expected) + " are expected";
    copy_typed(message.payload.data(), static_cast<MPI_Count>(expected), byte_type(), recv.to, recv.count, *recv.type);
    return {};
  }

  static std::vector<std::byte> packed(const Step& send) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(send.count * send.type->size));
    copy_typed(send.from, send.count, *send.type, bytes.data(), static_cast<MPI_Count>(bytes.size()), byte_type());
    return bytes;
  }

  int ranks_;
  bool late_;
  int most_outstanding_ = 0;
  std::minstd_rand random_;
  std::unique_ptr<Comm[]> comms_;
  std::map<Channel, std::deque<Message>> sends_;
  std::map<Channel, std::deque<const Step*>> recvs_;
};

}  // namespace heddle::coll::testing
