// ranks: 2
// timeout: 60
// MPI_Wait, Waitany, Waitall, Waitsome, Test, Testany, Testall, Testsome on the same mix of sends and receives: each
// request completes once, with its own status, and is set to MPI_REQUEST_NULL; with and without statuses.
#include <algorithm>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int messages = 48;
enum Family { wait, waitany, waitall, waitsome, test_one, testany, testall, testsome, families };

std::size_t size_of(int i) {
  static const std::size_t sizes[] = {0, 8, 500, 20'000, 150'000, 64};
  return sizes[i % 6];
}

struct Exchange {
  std::vector<std::vector<unsigned char>> data;
  std::vector<MPI_Request> requests;  // even: receives, odd: sends
  std::vector<int> seen;

  Exchange(const World& w, std::uint64_t seed) : seen(2 * messages, 0) {
    const int peer = 1 - w.rank;
    for (int i = 0; i < messages; ++i) {
      data.emplace_back(size_of(i) + 8);
      requests.emplace_back();
      MPI_Irecv(data.back().data(), static_cast<int>(data.back().size()), MPI_BYTE, peer, i, MPI_COMM_WORLD,
                &requests.back());
      const int out = messages - 1 - i;  // sent in the reverse order of the receives
      data.emplace_back(size_of(out));
      fill(data.back().data(), size_of(out), seed + static_cast<std::uint64_t>(out + w.rank * messages));
      requests.emplace_back();
      MPI_Isend(data.back().data(), static_cast<int>(size_of(out)), MPI_BYTE, peer, out, MPI_COMM_WORLD,
                &requests.back());
    }
  }

  void completed(const World& w, std::uint64_t seed, int index, const MPI_Status* status) {
    CHECK(index >= 0 && index < 2 * messages);
    const auto k = static_cast<std::size_t>(index);
    CHECK(requests[k] == MPI_REQUEST_NULL);
    CHECK_EQ(seen[k]++, 0);
    if (index % 2) return;
    const int i = index / 2;
    if (status) {
      CHECK_EQ(status->MPI_SOURCE, 1 - w.rank);
      CHECK_EQ(status->MPI_TAG, i);
      CHECK_EQ(count_of(*status), size_of(i));
    }
    CHECK_FILLED(data[k].data(), size_of(i), seed + static_cast<std::uint64_t>(i + (1 - w.rank) * messages));
  }
};

void run(const World& w, Family family, bool with_statuses, std::uint64_t seed) {
  Exchange x(w, seed);
  constexpr int n = 2 * messages;
  auto* requests = x.requests.data();
  std::vector<MPI_Status> statuses(n);
  MPI_Status status;
  MPI_Status* one = with_statuses ? &status : MPI_STATUS_IGNORE;
  MPI_Status* many = with_statuses ? statuses.data() : MPI_STATUSES_IGNORE;
  const auto status_at = [&](int i) { return with_statuses ? &statuses[static_cast<std::size_t>(i)] : nullptr; };
  std::vector<int> indices(n);
  int left = n, flag = 0, index = 0, some = 0;
  switch (family) {
    case wait:
      for (int i = n - 1; i >= 0; --i) {
        MPI_Wait(&requests[i], one);
        x.completed(w, seed, i, with_statuses ? &status : nullptr);
        --left;
      }
      break;
    case waitany:
      for (; left > 0; --left) {
        MPI_Waitany(n, requests, &index, one);
        x.completed(w, seed, index, with_statuses ? &status : nullptr);
      }
      MPI_Waitany(n, requests, &index, &status);
      CHECK_EQ(index, MPI_UNDEFINED);
      break;
    case waitall:
      MPI_Waitall(n, requests, many);
      for (int i = 0; i < n; ++i) x.completed(w, seed, i, status_at(i));
      left = 0;
      break;
    case waitsome:
      while (left > 0) {
        MPI_Waitsome(n, requests, &some, indices.data(), many);
        CHECK(some > 0 && some <= left);
        for (int k = 0; k < some; ++k) x.completed(w, seed, indices[static_cast<std::size_t>(k)], status_at(k));
        left -= some;
      }
      MPI_Waitsome(n, requests, &some, indices.data(), many);
      CHECK_EQ(some, MPI_UNDEFINED);
      break;
    case test_one:
      CHECK(eventually([&] {
        for (int i = 0; i < n; ++i) {
          if (requests[i] == MPI_REQUEST_NULL) continue;
          MPI_Test(&requests[i], &flag, one);
          if (!flag) continue;
          x.completed(w, seed, i, with_statuses ? &status : nullptr);
          --left;
        }
        return left == 0;
      }));
      break;
    case testany:
      CHECK(eventually([&] {
        MPI_Testany(n, requests, &index, &flag, one);
        if (!flag) {
          CHECK_EQ(index, MPI_UNDEFINED);
          return false;
        }
        x.completed(w, seed, index, with_statuses ? &status : nullptr);
        return --left == 0;
      }));
      MPI_Testany(n, requests, &index, &flag, &status);
      CHECK_EQ(flag, 1);
      CHECK_EQ(index, MPI_UNDEFINED);
      break;
    case testall: {
      const std::vector<MPI_Request> before = x.requests;
      CHECK(eventually([&] {
        MPI_Testall(n, requests, &flag, many);
        if (!flag) CHECK(x.requests == before);  // all or nothing
        return flag != 0;
      }));
      for (int i = 0; i < n; ++i) x.completed(w, seed, i, status_at(i));
      left = 0;
      break;
    }
    case testsome:
      CHECK(eventually([&] {
        MPI_Testsome(n, requests, &some, indices.data(), many);
        CHECK(some >= 0 && some <= left);
        for (int k = 0; k < some; ++k) x.completed(w, seed, indices[static_cast<std::size_t>(k)], status_at(k));
        left -= some;
        return left == 0;
      }));
      MPI_Testsome(n, requests, &some, indices.data(), many);
      CHECK_EQ(some, MPI_UNDEFINED);
      break;
    case families: break;
  }
  CHECK_EQ(left, 0);
  for (const int s : x.seen) CHECK_EQ(s, 1);
}

// Thousands of requests in one array, finished by each of the array calls.
void many_requests(const World& w) {
  constexpr int n = 4'000;
  std::vector<int> in(n), out(n);
  std::vector<MPI_Request> requests(2 * n);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n; ++i) {
      out[static_cast<std::size_t>(i)] = i * 3 + round;
      MPI_Irecv(&in[static_cast<std::size_t>(i)], 1, MPI_INT, 1 - w.rank, i % 100, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(2 * i)]);
      MPI_Isend(&out[static_cast<std::size_t>(i)], 1, MPI_INT, 1 - w.rank, i % 100, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(2 * i + 1)]);
    }
    if (round == 0) {
      MPI_Waitall(2 * n, requests.data(), MPI_STATUSES_IGNORE);
    } else if (round == 1) {
      std::vector<int> indices(2 * n);
      for (int left = 2 * n, some = 0; left > 0; left -= some)
        MPI_Waitsome(2 * n, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
    } else {
      int flag = 0;
      CHECK(eventually([&] {
        MPI_Testall(2 * n, requests.data(), &flag, MPI_STATUSES_IGNORE);
        return flag != 0;
      }));
    }
    for (int i = 0; i < n; ++i) CHECK_EQ(in[static_cast<std::size_t>(i)], i * 3 + round);
    for (const MPI_Request r : requests) CHECK(r == MPI_REQUEST_NULL);
  }
}

}  // namespace

int main() {
  const World w = init();
  for (int f = 0; f < families; ++f)
    for (const bool with_statuses : {true, false})
      for (std::uint64_t repeat = 0; repeat < 3; ++repeat)
        run(w, static_cast<Family>(f), with_statuses, static_cast<std::uint64_t>(f) * 1000 + repeat * 500);
  many_requests(w);
  return finish();
}
