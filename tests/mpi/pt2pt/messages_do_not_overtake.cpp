// ranks: 2 4
// timeout: 60
// From each source and on each communicator, messages arrive in the order of their sending whatever protocol their
// size takes; receives by any source, any tag, exact tag and by matched probe; two communicators never mix.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int messages = 400;
constexpr std::size_t largest = 300'000;

std::size_t size_of(int sender, int i) {
  static const std::size_t sizes[] = {8, 16, 100, 9'000, 64, 70'000, 8, 1'500, 300'000, 33, 8, 17'000};
  return sizes[static_cast<std::size_t>(sender + i) % 12];
}

void stamp(unsigned char* data, int value) { std::memcpy(data, &value, sizeof value); }
int stamped(const unsigned char* data) {
  int value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

void send_all(int me, MPI_Comm comm, int base, std::vector<std::vector<unsigned char>>& keep,
              std::vector<MPI_Request>& requests) {
  for (int i = 0; i < messages; ++i) {
    keep.emplace_back(size_of(me, i));
    auto& data = keep.back();
    fill(data.data(), data.size(), static_cast<std::uint64_t>(base + me * messages + i));
    stamp(data.data(), base + i);
    const int n = static_cast<int>(data.size());
    requests.push_back(MPI_REQUEST_NULL);
    if (i % 7 == 3)
      MPI_Issend(data.data(), n, MPI_BYTE, 0, i % 3, comm, &requests.back());
    else
      MPI_Isend(data.data(), n, MPI_BYTE, 0, i % 3, comm, &requests.back());
  }
}

void receive_all(const World& w, MPI_Comm comm, int base, int how) {
  // By source; with tags in blocks by source and tag.
  std::vector<int> next(static_cast<std::size_t>(w.size) * 3, 0);
  for (std::size_t k = 0; how == 2 && k < next.size(); ++k) next[k] = static_cast<int>(k % 3);
  std::vector<unsigned char> data(largest);
  const int total = messages * (w.size - 1);
  for (int k = 0; k < total; ++k) {
    MPI_Status status;
    switch (how) {
      case 0: MPI_Recv(data.data(), largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status); break;
      case 1:  // one source after the other, any tag
        MPI_Recv(data.data(), largest, MPI_BYTE, 1 + k / messages, MPI_ANY_TAG, comm, &status);
        break;
      case 2: {  // tags in blocks, from any source: order holds per source and tag
        const int t = k < (messages + 2) / 3 * (w.size - 1)                         ? 0
                      : k < ((messages + 2) / 3 + (messages + 1) / 3) * (w.size - 1) ? 1
                                                                                     : 2;
        MPI_Recv(data.data(), largest, MPI_BYTE, MPI_ANY_SOURCE, t, comm, &status);
        break;
      }
      default: {
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
        MPI_Mrecv(data.data(), static_cast<int>(count_of(status)), MPI_BYTE, &message, &status);
        break;
      }
    }
    const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
    const std::size_t stream = source * 3 + (how == 2 ? static_cast<std::size_t>(status.MPI_TAG) : 0);
    const int i = next[stream];
    next[stream] += how == 2 ? 3 : 1;
    CHECK_EQ(stamped(data.data()), base + i);
    CHECK_EQ(status.MPI_TAG, i % 3);
    const std::size_t n = size_of(status.MPI_SOURCE, i);
    CHECK_EQ(count_of(status), n);
    std::vector<unsigned char> expected(n);
    fill(expected.data(), n, static_cast<std::uint64_t>(base + status.MPI_SOURCE * messages + i));
    stamp(expected.data(), base + i);
    CHECK_EQ(std::memcmp(data.data(), expected.data(), n), 0);
  }
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int how = 0; how < 4; ++how) {
    MPI_Barrier(MPI_COMM_WORLD);  // any source: no message of the next round may come in this one
    if (w.rank != 0) {
      std::vector<std::vector<unsigned char>> keep;
      std::vector<MPI_Request> requests;
      send_all(w.rank, MPI_COMM_WORLD, 1'000'000 * how, keep, requests);
      send_all(w.rank, other, 500'000 + 1'000'000 * how, keep, requests);
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    } else {
      receive_all(w, other, 500'000 + 1'000'000 * how, how);  // the communicator used last comes first
      receive_all(w, MPI_COMM_WORLD, 1'000'000 * how, how);
    }
  }
  MPI_Comm_free(&other);
  return finish();
}
