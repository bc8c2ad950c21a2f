// ranks: 1 2
// timeout: 300
// 100,000 receives posted, or 100,000 messages arrived and not received, matched in order, in reverse and at random, by
// distinct and by equal tags, with wildcards before, between and after: right every time, and finished, which a library
// whose matching cost grows with the depth hardly is.
//
//   matching_depth [--depth N]
#include <algorithm>
#include <numeric>

#include "../mpi/support.hpp"
#include "options.hpp"

using namespace test;

namespace {

constexpr int go_tag = 1, base_tag = 10;
enum Order { forward, backward, shuffled, orders };
const char* const names[] = {"in order", "in reverse", "at random"};

std::vector<int> order_of(int depth, Order order) {
  std::vector<int> result(static_cast<std::size_t>(depth));
  std::iota(result.begin(), result.end(), 0);
  if (order == backward) std::reverse(result.begin(), result.end());
  if (order == shuffled) {
    Random random(42);
    for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random.below(i)]);
  }
  return result;
}

struct Setting {
  World w;
  MPI_Comm comm, control;
  int depth, tag_bound;

  int sender() const { return 0; }
  int receiver() const { return w.size - 1; }
  // Tags repeat where there are fewer of them than messages; the order within a tag is then the sender's.
  int tag(int i) const { return base_tag + i % (tag_bound - base_tag); }
};

void go(const Setting& s, bool sends) {
  if (s.w.size == 1) return;
  if (sends)
    MPI_Send(nullptr, 0, MPI_BYTE, 1 - s.w.rank, go_tag, s.control);
  else
    MPI_Recv(nullptr, 0, MPI_BYTE, 1 - s.w.rank, go_tag, s.control, MPI_STATUS_IGNORE);
}

void say(const Setting& s, const char* what, const char* order) {
  if (s.w.rank == s.receiver()) {
    std::printf("%d %s, %s\n", s.depth, what, order);
    std::fflush(stdout);
  }
}

// All receives are there; messages come in another order. One in 1,000 receives is a wildcard of its own communicator's
// last tag, posted first, in the middle and last: it must stay unmatched until its message comes at the end.
void posted(const Setting& s, Order order) {
  const int n = s.depth, late = base_tag - 1;
  std::vector<int> values(static_cast<std::size_t>(n), -1);
  std::vector<MPI_Request> requests(static_cast<std::size_t>(n));
  std::vector<int> late_values(static_cast<std::size_t>(n / 1'000), -1);
  std::vector<MPI_Request> late_requests(late_values.size());
  if (s.w.rank == s.receiver()) {
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (i % 1'000 == 0 && k / 1'000 < late_values.size())
        MPI_Irecv(&late_values[k / 1'000], 1, MPI_INT, MPI_ANY_SOURCE, late, s.comm, &late_requests[k / 1'000]);
      MPI_Irecv(&values[k], 1, MPI_INT, i % 7 ? s.sender() : MPI_ANY_SOURCE, s.tag(i), s.comm, &requests[k]);
    }
    go(s, true);
  }
  if (s.w.rank == s.sender()) {
    if (s.w.size > 1) go(s, false);
    for (const int i : order_of(n, order)) MPI_Send(&i, 1, MPI_INT, s.receiver(), s.tag(i), s.comm);
    for (int i = 0; i < n / 1'000; ++i) MPI_Send(&i, 1, MPI_INT, s.receiver(), late, s.comm);
  }
  if (s.w.rank == s.receiver()) {
    MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Waitall(static_cast<int>(late_requests.size()), late_requests.data(), MPI_STATUSES_IGNORE);
    if (n <= s.tag_bound - base_tag)  // every tag is a receive's own
      for (int i = 0; i < n; ++i) CHECK_EQ(values[static_cast<std::size_t>(i)], i);
    std::sort(values.begin(), values.end());
    for (int i = 0; i < n; ++i) CHECK_EQ(values[static_cast<std::size_t>(i)], i);
    for (std::size_t i = 0; i < late_values.size(); ++i) CHECK_EQ(late_values[i], i);
    say(s, "posted receives", names[order]);
  }
}

// All messages are there, and receives come in another order, every 50th of them a wildcard: that one takes the first
// message that is left, which a sorted list of what is left tells.
void unexpected(const Setting& s, Order order) {
  const int n = s.depth;
  std::vector<int> data(static_cast<std::size_t>(n));
  std::vector<MPI_Request> requests;
  if (s.w.rank == s.sender()) {
    for (int i = 0; i < n; ++i) {
      data[static_cast<std::size_t>(i)] = i;
      requests.emplace_back();
      MPI_Isend(&data[static_cast<std::size_t>(i)], 1, MPI_INT, s.receiver(), s.tag(i), s.comm, &requests.back());
    }
    go(s, true);
  }
  if (s.w.rank == s.receiver()) {
    if (s.w.size > 1) go(s, false);
    std::vector<bool> gone(static_cast<std::size_t>(n), false);
    int first_left = 0, k = 0;
    for (const int i : order_of(n, order)) {
      int value = -1;
      MPI_Status status;
      if (k++ % 50 == 49) {
        while (first_left < n && gone[static_cast<std::size_t>(first_left)]) ++first_left;
        if (first_left == n) break;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, s.comm, &status);
        CHECK_EQ(value, first_left);
        CHECK_EQ(status.MPI_TAG, s.tag(value));
        gone[static_cast<std::size_t>(value)] = true;
      }
      if (gone[static_cast<std::size_t>(i)] || n > s.tag_bound - base_tag) continue;
      MPI_Recv(&value, 1, MPI_INT, k % 3 ? s.sender() : MPI_ANY_SOURCE, s.tag(i), s.comm, &status);
      CHECK_EQ(value, i);
      gone[static_cast<std::size_t>(i)] = true;
    }
    for (int i = 0; i < n; ++i) {
      if (gone[static_cast<std::size_t>(i)]) continue;
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, s.sender(), MPI_ANY_TAG, s.comm, MPI_STATUS_IGNORE);
      CHECK_EQ(value, i);
    }
    say(s, "unexpected messages", names[order]);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// One tag for all: order alone decides, a hash helps nothing. Half the receives are wildcards.
void one_tag(const Setting& s, bool receives_first) {
  const int n = s.depth;
  std::vector<int> values(static_cast<std::size_t>(n), -1), data(static_cast<std::size_t>(n));
  std::vector<MPI_Request> receives(static_cast<std::size_t>(n)), sends;
  const auto receive = [&] {
    for (int i = 0; i < n; ++i)
      MPI_Irecv(&values[static_cast<std::size_t>(i)], 1, MPI_INT, i % 2 ? s.sender() : MPI_ANY_SOURCE,
                i % 4 < 2 ? base_tag : MPI_ANY_TAG, s.comm, &receives[static_cast<std::size_t>(i)]);
  };
  const auto send = [&] {
    for (int i = 0; i < n; ++i) {
      data[static_cast<std::size_t>(i)] = i;
      sends.emplace_back();
      MPI_Isend(&data[static_cast<std::size_t>(i)], 1, MPI_INT, s.receiver(), base_tag, s.comm, &sends.back());
    }
  };
  if (s.w.size == 1) {
    if (receives_first) receive();
    send();
    if (!receives_first) receive();
  } else if (s.w.rank == s.receiver()) {
    if (!receives_first) go(s, false);
    receive();
    if (receives_first) go(s, true);
  } else {
    if (receives_first) go(s, false);
    send();
    if (!receives_first) go(s, true);
  }
  if (s.w.rank == s.receiver()) {
    MPI_Waitall(n, receives.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; ++i) CHECK_EQ(values[static_cast<std::size_t>(i)], i);
    say(s, receives_first ? "posted receives" : "unexpected messages", "one tag, half wildcards");
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
}

// Deep queues of cancelled receives leave nothing behind.
void cancelled(const Setting& s) {
  if (s.w.rank != s.receiver()) return;
  const int n = s.depth;
  std::vector<int> values(static_cast<std::size_t>(n), -1);
  std::vector<MPI_Request> requests(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    MPI_Irecv(&values[static_cast<std::size_t>(i)], 1, MPI_INT, i % 5 ? s.w.rank : MPI_ANY_SOURCE,
              i % 3 ? s.tag(i) : MPI_ANY_TAG, s.comm, &requests[static_cast<std::size_t>(i)]);
  for (const int i : order_of(n, shuffled)) {
    MPI_Status status;
    int flag = 0;
    MPI_Cancel(&requests[static_cast<std::size_t>(i)]);
    MPI_Wait(&requests[static_cast<std::size_t>(i)], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK_EQ(flag, 1);
  }
  int value = 7, got = 0;
  MPI_Sendrecv(&value, 1, MPI_INT, s.w.rank, 3, &got, 1, MPI_INT, s.w.rank, 3, s.comm, MPI_STATUS_IGNORE);
  CHECK_EQ(got, 7);
  say(s, "cancelled receives", names[shuffled]);
}

}  // namespace

int main(int argc, char** argv) {
  Setting s{init(), MPI_COMM_NULL, MPI_COMM_NULL, 100'000, 0};
  // MPICH 5.0.2 searches lists: it is asked for less.
  if (library_is_mpich()) s.depth = 5'000;
  read_options(argc, argv, {{"--depth", &s.depth}});
  MPI_Comm_dup(MPI_COMM_WORLD, &s.comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &s.control);
  int *bound = nullptr, flag = 0;
  MPI_Comm_get_attr(s.comm, MPI_TAG_UB, &bound, &flag);
  s.tag_bound = *bound;
  for (int order = 0; order < orders; ++order) {
    posted(s, static_cast<Order>(order));
    MPI_Barrier(MPI_COMM_WORLD);
    unexpected(s, static_cast<Order>(order));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  one_tag(s, true);
  MPI_Barrier(MPI_COMM_WORLD);
  one_tag(s, false);
  MPI_Barrier(MPI_COMM_WORLD);
  cancelled(s);
  MPI_Comm_free(&s.comm);
  MPI_Comm_free(&s.control);
  return finish();
}
