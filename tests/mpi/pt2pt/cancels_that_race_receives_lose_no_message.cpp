// ranks: 1 2
// threads: 2
// timeout: 60
// Two threads of each rank send to the other rank and to their own one, several messages at a time, and cancel half of them at any moment,
// while those are received by posted receives (some of which are cancelled as well), after probes, and by matched probes. Each message is
// received once, whole and in order, or its send is reported as cancelled; never both, never neither.
#include <array>
#include <set>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int messages = 2'500, at_once = 6, ending = messages;
constexpr std::size_t largest = 400'000;

bool was_cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

struct Outgoing {
  std::vector<unsigned char> data = std::vector<unsigned char>(largest);
  MPI_Request request = MPI_REQUEST_NULL;
  int number = -1, looks_until_cancel = -1;
};

struct Incoming {
  std::vector<unsigned char> data = std::vector<unsigned char>(largest);
  MPI_Request request = MPI_REQUEST_NULL;
};

class Exchange {
 public:
  Exchange(MPI_Comm comm, int rank, int peer, std::uint64_t seed)
      : comm_(comm), peer_(peer), own_seed_(seed + static_cast<std::uint64_t>(rank)), peer_seed_(seed + static_cast<std::uint64_t>(peer)),
        random_(mix(own_seed_)) {}

  void run() {
    while (!over_ || !told_) {
      send_some();
      receive_some();
    }
    // What is still posted came after the last message.
    for (Incoming& in : incoming_)
      if (in.request != MPI_REQUEST_NULL) {
        MPI_Status status;
        MPI_Cancel(&in.request);
        MPI_Wait(&in.request, &status);
        if (!was_cancelled(status)) take(in.data.data(), status);
      }
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    CHECK(received_ == announced_);
    MPI_Barrier(comm_);
  }
  [[nodiscard]] std::size_t delivered() const { return delivered_.size(); }

 private:
  static std::size_t size_of(std::uint64_t seed, int number) {
    const std::uint64_t r = mix(seed ^ static_cast<std::uint64_t>(number) << 20);
    switch (r % 8) {
      case 0: return 0;
      case 1: case 2: return r / 8 % 64;
      case 3: case 4: return r / 8 % 8'000;
      case 5: case 6: return 8'000 + r / 8 % 60'000;
      default: return 100'000 + r / 8 % (largest - 100'000);
    }
  }

  void send_some() {
    bool busy = false;
    for (Outgoing& out : outgoing_) {
      if (out.request != MPI_REQUEST_NULL) {
        if (out.looks_until_cancel-- == 0) MPI_Cancel(&out.request);
        int done = 0;
        MPI_Status status;
        MPI_Test(&out.request, &done, &status);
        if (done && !was_cancelled(status)) delivered_.insert(out.number);
        busy |= !done;
        continue;
      }
      if (next_ == messages) continue;
      busy = true;
      out.number = next_++;
      const std::size_t bytes = size_of(own_seed_, out.number);
      fill(out.data.data(), bytes, own_seed_ + static_cast<std::uint64_t>(out.number));
      (random_.below(4) ? MPI_Issend : MPI_Isend)(out.data.data(), static_cast<int>(bytes), MPI_BYTE, peer_, out.number, comm_, &out.request);
      out.looks_until_cancel = random_.below(2) ? random_.between(0, 1) * random_.between(0, 12) : -1;
    }
    if (busy || next_ != messages || told_) return;
    // All outcomes are known: which are to be received.
    last_.assign(delivered_.begin(), delivered_.end());
    MPI_Request request;
    MPI_Isend(last_.data(), static_cast<int>(last_.size()), MPI_INT, peer_, ending, comm_, &request);
    MPI_Request_free(&request);  // the barrier at the end says that it has arrived
    told_ = true;
  }

  void receive_some() {
    Incoming& in = incoming_[random_.below(at_once)];
    if (over_) return;
    for (Incoming& each : incoming_) {
      int done = 0;
      MPI_Status status;
      if (each.request == MPI_REQUEST_NULL) continue;
      MPI_Test(&each.request, &done, &status);
      if (done) take(each.data.data(), status);
    }
    if (over_) return;
    int flag = 0;
    MPI_Status status;
    switch (random_.below(8)) {
      case 0: case 1:  // mostly nothing is posted, or nothing could be cancelled
        if (in.request == MPI_REQUEST_NULL)
          MPI_Irecv(in.data.data(), static_cast<int>(largest), MPI_BYTE, random_.below(2) ? peer_ : MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &in.request);
        return;
      case 2: case 3:
        if (in.request == MPI_REQUEST_NULL) return;
        MPI_Cancel(&in.request);
        MPI_Wait(&in.request, &status);
        if (!was_cancelled(status)) take(in.data.data(), status);
        return;
      case 4: {
        MPI_Message message;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &message, &status);
        if (!flag) return;
        for (int i = random_.between(0, 3); i; --i) send_some();
        MPI_Mrecv(spare_.data(), static_cast<int>(largest), MPI_BYTE, &message, &status);
        return take(spare_.data(), status);
      }
      case 5: {
        MPI_Iprobe(peer_, MPI_ANY_TAG, comm_, &flag, &status);
        if (!flag) return;
        MPI_Request request;  // the probed message may be cancelled until here, and never come
        MPI_Irecv(spare_.data(), static_cast<int>(largest), MPI_BYTE, peer_, status.MPI_TAG, comm_, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        if (!was_cancelled(status)) take(spare_.data(), status);
        return;
      }
      default: return;
    }
  }

  void take(const unsigned char* data, const MPI_Status& status) {
    CHECK_EQ(status.MPI_SOURCE, peer_);
    if (status.MPI_TAG == ending) {
      over_ = true;
      announced_.clear();
      for (long long i = 0; i < count_of(status, MPI_INT); ++i) {
        int number;
        std::memcpy(&number, data + 4 * i, 4);
        announced_.insert(number);
      }
      return;
    }
    const std::size_t bytes = size_of(peer_seed_, status.MPI_TAG);
    CHECK_EQ(count_of(status), static_cast<long long>(bytes));
    CHECK_FILLED(data, bytes, peer_seed_ + static_cast<std::uint64_t>(status.MPI_TAG));
    CHECK(received_.insert(status.MPI_TAG).second);
  }

  MPI_Comm comm_;
  int peer_, next_ = 0;
  std::uint64_t own_seed_, peer_seed_;
  Random random_;
  bool told_ = false, over_ = false;
  std::array<Outgoing, at_once> outgoing_;
  std::array<Incoming, at_once> incoming_;
  std::vector<unsigned char> spare_ = std::vector<unsigned char>(largest);
  std::set<int> delivered_, received_, announced_;
  std::vector<int> last_;
};

}  // namespace

int main() {
  const World w = init_threads();
  MPI_Comm comms[2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::size_t delivered[2];
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      Exchange exchange(comms[t], w.rank, (w.rank + t) % w.size, 1'000'000 * static_cast<std::uint64_t>(t + 1));
      exchange.run();
      delivered[t] = exchange.delivered();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t n : delivered) CHECK(n > 0 && n < messages);  // some were cancelled, some were not
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return finish();
}
