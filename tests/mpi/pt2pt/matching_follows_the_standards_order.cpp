// ranks: 2
// timeout: 60
// Random receives (exact, any tag, any source, both) against random messages. With one sender the matching that MPI
// demands is unique whatever the timing: both sides prefer what was ordered first, so the greedy matching of the two
// sequences is the only stable one. Each round is run with receives posted first, messages sent first, and mixed.
#include <algorithm>

#include "../support.hpp"

using namespace test;

namespace {

struct Posted {
  bool any_source, any_tag;
  int tag;
  int matched = -1;  // index of the message
};

struct Message {
  int tag;
  std::size_t size;
  bool matched = false;
};

constexpr int go = 10'000, done = 10'001;
constexpr std::size_t largest = 200'000;

std::size_t pick_size(Random& random) {
  switch (random.below(10)) {
    case 0: return 0;
    case 1: return 100'000 + random.below(100'000);
    case 2: return 5'000 + random.below(12'000);
    default: return 8 + random.below(250);
  }
}

// Each message takes the first posted receive that fits, in order.
void match(std::vector<Posted>& receives, std::vector<Message>& messages) {
  for (std::size_t m = 0; m < messages.size(); ++m)
    for (auto& r : receives)
      if (r.matched < 0 && (r.any_tag || r.tag == messages[m].tag)) {
        r.matched = static_cast<int>(m);
        messages[m].matched = true;
        break;
      }
}

void round(const World& w, std::uint64_t seed, int order, MPI_Comm comm, MPI_Comm control) {
  Random random(seed);
  const int tags = random.between(1, 4), count = random.between(5, 60);
  std::vector<Posted> receives(static_cast<std::size_t>(count));
  std::vector<Message> messages(static_cast<std::size_t>(count));
  for (auto& r : receives) {
    r.any_source = random.below(2);
    r.any_tag = random.below(3) == 0;
    r.tag = random.between(0, tags - 1);
  }
  for (auto& m : messages) m = {random.between(0, tags - 1), pick_size(random)};
  match(receives, messages);

  if (w.rank == 0) {
    std::vector<std::vector<unsigned char>> data;
    std::vector<MPI_Request> requests(messages.size());
    if (order == 0) MPI_Recv(nullptr, 0, MPI_BYTE, 1, go, control, MPI_STATUS_IGNORE);
    for (std::size_t m = 0; m < messages.size(); ++m) {
      data.emplace_back(messages[m].size);
      fill(data[m].data(), messages[m].size, seed * 1000 + m);
      MPI_Isend(data[m].data(), static_cast<int>(messages[m].size), MPI_BYTE, 1, messages[m].tag, comm, &requests[m]);
    }
    if (order == 1) MPI_Send(nullptr, 0, MPI_BYTE, 1, go, control);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, done, control);
    // The next round's messages must not reach receives of this one that are still to be cancelled.
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, done, control, MPI_STATUS_IGNORE);
    return;
  }

  std::vector<std::vector<unsigned char>> data(receives.size(), std::vector<unsigned char>(largest));
  std::vector<MPI_Request> requests(receives.size());
  if (order == 1) MPI_Recv(nullptr, 0, MPI_BYTE, 0, go, control, MPI_STATUS_IGNORE);
  for (std::size_t r = 0; r < receives.size(); ++r)
    MPI_Irecv(data[r].data(), largest, MPI_BYTE, receives[r].any_source ? MPI_ANY_SOURCE : 0,
              receives[r].any_tag ? MPI_ANY_TAG : receives[r].tag, comm, &requests[r]);
  if (order == 0) MPI_Send(nullptr, 0, MPI_BYTE, 0, go, control);

  for (std::size_t r = 0; r < receives.size(); ++r) {
    if (receives[r].matched < 0) continue;
    const auto m = static_cast<std::size_t>(receives[r].matched);
    MPI_Status status;
    MPI_Wait(&requests[r], &status);
    CHECK_EQ(status.MPI_TAG, messages[m].tag);
    CHECK_EQ(status.MPI_SOURCE, 0);
    CHECK_EQ(count_of(status), messages[m].size);
    CHECK_FILLED(data[r].data(), messages[m].size, seed * 1000 + m);
  }
  // Messages that no receive took come out in the order of sending; receives that got none can be cancelled.
  for (std::size_t r = 0; r < receives.size(); ++r) {
    if (receives[r].matched >= 0) continue;
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&requests[r]);
    MPI_Wait(&requests[r], &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
  }
  std::vector<unsigned char> buffer(largest);
  for (std::size_t m = 0; m < messages.size(); ++m) {
    if (messages[m].matched) continue;
    MPI_Status status;
    MPI_Recv(buffer.data(), largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    CHECK_EQ(status.MPI_TAG, messages[m].tag);
    CHECK_EQ(count_of(status), messages[m].size);
    CHECK_FILLED(buffer.data(), messages[m].size, seed * 1000 + m);
  }
  MPI_Recv(nullptr, 0, MPI_BYTE, 0, done, control, MPI_STATUS_IGNORE);
  MPI_Send(nullptr, 0, MPI_BYTE, 0, done, control);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm control;
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  for (std::uint64_t seed = 1; seed <= 120; ++seed)
    for (int order = 0; order < 3; ++order) round(w, seed, order, MPI_COMM_WORLD, control);
  MPI_Comm_free(&control);
  return finish();
}
