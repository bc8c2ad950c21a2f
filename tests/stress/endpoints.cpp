// ranks: 2
// threads: 2
// timeout: 300
// args: --seconds 20
// Endpoints under load: 4 endpoints a process, 8 threads a process, two threads to an endpoint. All send to all,
// messages of random size, tag and mode; an endpoint's threads take what comes by posted wildcard receives, matched
// probes and cancelled receives, while collectives run on duplicates of the endpoints communicator, which are made and
// freed meanwhile. No message is lost, doubled, torn, or out of order, and every sum is right.
//
//   endpoints [--seconds S] [--endpoints E] [--threads T] [--seed X] [--plain]
//
// --plain: no endpoints; "endpoint" e of a process is its rank on communicator e. For comparison, and for other MPIs.
//
// What the i-th message from a thread to an endpoint is (size, bytes) follows from the two and i, so the receiver
// checks every byte. When one of the collectives says that the time is up, each thread tells each endpoint how many
// messages it has sent there, and the endpoint's threads go on until they have them all.
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#if __has_include(<mpix.h>)
#include <mpix.h>
#define HAS_ENDPOINTS 1
#endif

#include "../mpi/threads/team.hpp"
#include "options.hpp"

using namespace test;

namespace {

constexpr int end_tag = 1000, tags = 9;
constexpr std::size_t largest = 400'000, outstanding = 24;

struct Options {
  int seconds = 20, endpoints = 4, threads = 8;
  std::uint64_t seed = 1;
  bool plain = false;
};

Options parse(int argc, char** argv) {
  Options o;
  read_options(argc, argv,
               {{"--seconds", &o.seconds}, {"--endpoints", &o.endpoints}, {"--threads", &o.threads}, {"--seed", &o.seed}, {"--plain", &o.plain}});
  CHECK_GE(o.threads, o.endpoints);
  return o;
}

// The first bytes of every message; the pattern of fill() follows.
struct Head {
  std::int32_t sender;    // global number of the sending thread
  std::int32_t endpoint;  // global number of the endpoint that it is for
  std::int64_t number;    // of the messages of that pair; of an end message: how many there were
};

std::uint64_t seed_of(const Options& o, const Head& head) {
  return mix(o.seed ^ mix(static_cast<std::uint64_t>(head.sender) << 32 ^ static_cast<std::uint64_t>(head.endpoint))) +
         static_cast<std::uint64_t>(head.number);
}

std::size_t size_of(std::uint64_t seed) {
  Random random(seed);
  switch (random.below(64)) {
    case 0:
      return sizeof(Head) + random.below(largest);
    case 1:
    case 2:
      return sizeof(Head) + random.below(20'000);
    case 3:
    case 4:
    case 5:
      return sizeof(Head) + random.below(3'000);
    default:
      return sizeof(Head) + random.below(200);
  }
}

// What the threads of one endpoint share.
struct Endpoint {
  MPI_Comm comm = MPI_COMM_NULL;                    // its own handle: it receives here
  std::atomic<int> ends{0};                         // end messages so far
  std::atomic<long long> promised{0}, received{0};  // messages, by the end messages and by count
};

struct Shared {
  Options options;
  World world;
  std::unique_ptr<Endpoint[]> endpoints;  // of this process
  std::atomic<bool> stopping{false};      // relaxed: the messages themselves say what else there is
  std::atomic<long long> bytes{0}, collectives{0}, cancels{0};
  std::chrono::steady_clock::time_point end;
  int all_endpoints() const { return world.size * options.endpoints; }
  int all_threads() const { return world.size * options.threads; }
};

// --- sending -------------------------------------------------------------------------------------------------------
class Sender {
 public:
  Sender(Shared& s, int thread)
      : s_(s),
        me_(s.world.rank * s.options.threads + thread),
        home_(thread % s.options.endpoints),
        random_(mix(s.options.seed + static_cast<std::uint64_t>(me_))),
        sent_(static_cast<std::size_t>(s.all_endpoints())) {}

  void send_some() {
    while (pending_.size() < outstanding && random_.below(4)) {
      const int to = static_cast<int>(random_.below(static_cast<std::uint64_t>(s_.all_endpoints())));
      const Head head{me_, to, sent_[static_cast<std::size_t>(to)]++};
      const std::uint64_t seed = seed_of(s_.options, head);
      send(head, size_of(seed), seed, static_cast<int>(seed % tags));
    }
  }
  void send_ends() {
    for (int to = 0; to < s_.all_endpoints(); ++to)
      send({me_, to, sent_[static_cast<std::size_t>(to)]}, sizeof(Head), 0, end_tag);
  }
  // Gives back what has been sent; true when nothing is left.
  bool collect() {
    for (std::size_t i = 0; i < pending_.size();) {
      int done = 0;
      MPI_Test(&pending_[i].request, &done, MPI_STATUS_IGNORE);
      if (!done) {
        ++i;
        continue;
      }
      if (pending_[i].persistent) MPI_Request_free(&pending_[i].request);
      CHECK(pending_[i].request == MPI_REQUEST_NULL);
      if (i + 1 < pending_.size()) pending_[i] = std::move(pending_.back());
      pending_.pop_back();
    }
    return pending_.empty();
  }

 private:
  struct Pending {
    std::vector<unsigned char> data;
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = false;
  };

  void send(const Head& head, std::size_t bytes, std::uint64_t seed, int tag) {
    Pending& p = pending_.emplace_back();
    p.data.resize(bytes);
    fill(p.data.data(), bytes, seed);
    std::memcpy(p.data.data(), &head, sizeof head);
    const int count = static_cast<int>(bytes);
    // With endpoints the sender speaks as its own endpoint; without, on the communicator of the other.
    const int e = head.endpoint % s_.options.endpoints, process = head.endpoint / s_.options.endpoints;
    const MPI_Comm comm = s_.endpoints[static_cast<std::size_t>(s_.options.plain ? e : home_)].comm;
    const int to = s_.options.plain ? process : head.endpoint;
    switch (random_.below(12)) {
      case 0:
      case 1:
        MPI_Issend(p.data.data(), count, MPI_BYTE, to, tag, comm, &p.request);
        break;
      case 2:
        p.persistent = true;
        MPI_Send_init(p.data.data(), count, MPI_BYTE, to, tag, comm, &p.request);
        MPI_Start(&p.request);
        break;
      default:
        MPI_Isend(p.data.data(), count, MPI_BYTE, to, tag, comm, &p.request);
    }
  }

  Shared& s_;
  const int me_, home_;
  Random random_;
  std::vector<long long> sent_;
  std::deque<Pending> pending_;
};

// --- receiving -----------------------------------------------------------------------------------------------------
class Receiver {
 public:
  Receiver(Shared& s, int thread)
      : s_(s),
        number_(s.world.rank * s.options.endpoints + thread % s.options.endpoints),
        own_(s.endpoints[static_cast<std::size_t>(thread % s.options.endpoints)]),
        random_(mix(s.options.seed + 77u * static_cast<std::uint64_t>(thread + 1))),
        posted_data_(sizeof(Head) + largest) {}

  // True when something came.
  bool receive_some() {
    bool any = false;
    for (int i = 0; i < 16; ++i) {
      MPI_Status status;
      if (posted_ != MPI_REQUEST_NULL) {
        int done = 0;
        MPI_Test(&posted_, &done, &status);
        if (done) {
          take(posted_data_, status);
          any = true;
        } else if (random_.below(8) == 0) {
          any |= cancel();
        }
      } else if (random_.below(2)) {
        // Sometimes for one tag only, which is then cancelled if it does not come.
        posted_tag_ = random_.below(4) ? MPI_ANY_TAG : static_cast<int>(random_.below(tags));
        MPI_Irecv(posted_data_.data(), static_cast<int>(posted_data_.size()), MPI_BYTE, MPI_ANY_SOURCE, posted_tag_,
                  own_.comm, &posted_);
      }
      int flag = 0;
      MPI_Message message;
      MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, own_.comm, &flag, &message, &status);
      if (!flag) continue;
      any = true;
      std::vector<unsigned char> data(static_cast<std::size_t>(count_of(status)) + 1);
      MPI_Mrecv(data.data(), static_cast<int>(data.size() - 1), MPI_BYTE, &message, &status);
      // This thread's receive that was posted before has matched before, if it wants anything.
      if (posted_ != MPI_REQUEST_NULL && posted_tag_ == MPI_ANY_TAG) {
        MPI_Status earlier;
        MPI_Wait(&posted_, &earlier);
        take(posted_data_, earlier);
      } else if (posted_ != MPI_REQUEST_NULL) {
        cancel();
      }
      take(data, status);
    }
    return any;
  }

  bool finished() const {
    // Acquire: the counts that the other thread of the endpoint added before.
    return own_.ends.load(std::memory_order_acquire) == s_.all_threads() &&
           own_.received.load(std::memory_order_acquire) == own_.promised.load(std::memory_order_acquire);
  }
  // Takes the posted receive back; true when it had got a message.
  bool cancel() {
    if (posted_ == MPI_REQUEST_NULL) return false;
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&posted_);
    MPI_Wait(&posted_, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled) take(posted_data_, status);
    s_.cancels.fetch_add(cancelled, std::memory_order_relaxed);
    return !cancelled;
  }

 private:
  void take(const std::vector<unsigned char>& data, const MPI_Status& status) {
    Head head;
    const auto bytes = static_cast<std::size_t>(count_of(status));
    CHECK_GE(bytes, sizeof head);
    std::memcpy(&head, data.data(), sizeof head);
    CHECK_EQ(head.endpoint, number_);
    CHECK(head.sender >= 0 && head.sender < s_.all_threads());
    const int process = head.sender / s_.options.threads;
    const int endpoint = head.sender % s_.options.threads % s_.options.endpoints;
    CHECK_EQ(status.MPI_SOURCE, s_.options.plain ? process : process * s_.options.endpoints + endpoint);
    if (status.MPI_TAG == end_tag) {
      own_.promised.fetch_add(head.number, std::memory_order_relaxed);
      own_.ends.fetch_add(1, std::memory_order_release);  // pairs with `finished`
      return;
    }
    const std::uint64_t seed = seed_of(s_.options, head);
    CHECK_EQ(status.MPI_TAG, seed % tags);
    CHECK_EQ(bytes, size_of(seed));
    std::vector<unsigned char> expected(bytes);
    fill(expected.data(), bytes, seed);
    std::memcpy(expected.data(), &head, sizeof head);
    CHECK_EQ(std::memcmp(data.data(), expected.data(), bytes), 0);
    // What one thread takes of a sender's messages with one tag, it takes in their order.
    long long& last = last_.try_emplace({head.sender, status.MPI_TAG}, -1).first->second;
    CHECK_GT(head.number, last);
    last = head.number;
    s_.bytes.fetch_add(static_cast<long long>(bytes), std::memory_order_relaxed);
    own_.received.fetch_add(1, std::memory_order_release);
  }

  Shared& s_;
  const int number_;
  Endpoint& own_;
  Random random_;
  std::vector<unsigned char> posted_data_;
  MPI_Request posted_ = MPI_REQUEST_NULL;
  int posted_tag_ = MPI_ANY_TAG;
  std::map<std::pair<int, int>, long long> last_;
};

// --- collectives ---------------------------------------------------------------------------------------------------
// One thread of each endpoint keeps a nonblocking collective under way on a duplicate of its communicator; every few
// hundred of them, on a new duplicate.
class Collectives {
 public:
  Collectives(Shared& s, MPI_Comm base) : s_(s), base_(base) {
    renew();
    start();
  }
  // False after the one that said that the time is up.
  bool advance() {
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (!done) return true;
    const bool stop = finish();
    s_.collectives.fetch_add(1, std::memory_order_relaxed);
    if (stop) {
      MPI_Comm_free(&comm_);
      return false;
    }
    if (++count_ % 300 == 0) {
      MPI_Comm_free(&comm_);
      renew();
    }
    start();
    return true;
  }

 private:
  void renew() {
    MPI_Comm_dup(base_, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  void start() {
    const auto n = static_cast<std::size_t>(size_);
    const bool late = std::chrono::steady_clock::now() > s_.end;
    switch (count_ % 4) {
      case 0:  // also decides whether to go on
        in_ = {late, rank_ + static_cast<int>(count_)};
        out_.assign(2, -1);
        MPI_Iallreduce(in_.data(), out_.data(), 2, MPI_INT, MPI_SUM, comm_, &request_);
        break;
      case 1:
        out_.assign(700, -1);
        if (rank_ == root()) std::fill(out_.begin(), out_.end(), static_cast<int>(count_));
        MPI_Ibcast(out_.data(), 700, MPI_INT, root(), comm_, &request_);
        break;
      case 2:
        in_.resize(n);
        for (std::size_t i = 0; i < n; ++i) in_[i] = rank_ * 1000 + static_cast<int>(i);
        out_.assign(n, -1);
        MPI_Ialltoall(in_.data(), 1, MPI_INT, out_.data(), 1, MPI_INT, comm_, &request_);
        break;
      default:
        MPI_Ibarrier(comm_, &request_);
    }
  }
  bool finish() {
    switch (count_ % 4) {
      case 0:
        CHECK_EQ(out_[1], size_ * (size_ - 1) / 2 + size_ * static_cast<int>(count_));
        return out_[0] > 0;
      case 1:
        for (const int value : out_) CHECK_EQ(value, static_cast<int>(count_));
        return false;
      case 2:
        for (int i = 0; i < size_; ++i) CHECK_EQ(out_[static_cast<std::size_t>(i)], i * 1000 + rank_);
        return false;
      default:
        return false;
    }
  }
  int root() const { return static_cast<int>(count_ / 4 % size_); }

  Shared& s_;
  const MPI_Comm base_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0, size_ = 0;
  long long count_ = 0;
  std::vector<int> in_, out_;
};

void work(Shared& s, int thread) {
  Sender sender(s, thread);
  Receiver receiver(s, thread);
  std::unique_ptr<Collectives> collectives;
  if (thread < s.options.endpoints)
    collectives = std::make_unique<Collectives>(s, s.endpoints[static_cast<std::size_t>(thread)].comm);
  while (!s.stopping.load(std::memory_order_relaxed)) {
    sender.send_some();
    if (!receiver.receive_some()) std::this_thread::yield();
    sender.collect();
    if (collectives && !collectives->advance()) {
      s.stopping.store(true, std::memory_order_relaxed);
      collectives.reset();
    }
  }
  sender.send_ends();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (;;) {
    const bool sent = sender.collect();
    // The last collective ends on all endpoints, but not everywhere at the same time.
    if (collectives && !collectives->advance()) collectives.reset();
    if (sent && !collectives && receiver.finished()) break;
    if (!receiver.receive_some()) std::this_thread::yield();
    CHECK(std::chrono::steady_clock::now() < limit);
  }
  CHECK(!receiver.cancel());
}

void make_endpoints(Shared& s) {
  const int n = s.options.endpoints;
  s.endpoints = std::make_unique<Endpoint[]>(static_cast<std::size_t>(n));
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(n));
  if (s.options.plain) {
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  } else {
#ifdef HAS_ENDPOINTS
    MPIX_Comm_create_endpoints(MPI_COMM_WORLD, n, MPI_INFO_NULL, comms.data());
#else
    check_fail(__FILE__, __LINE__, "this MPI has no endpoints: use --plain");
#endif
  }
  for (int e = 0; e < n; ++e) s.endpoints[static_cast<std::size_t>(e)].comm = comms[static_cast<std::size_t>(e)];
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Shared s;
  s.options = parse(argc, argv);
  s.world = w;
  make_endpoints(s);
  s.end = std::chrono::steady_clock::now() + std::chrono::seconds(s.options.seconds);
  run_threads(s.options.threads, [&](int t) { work(s, t); });
  long long received = 0;
  for (int e = 0; e < s.options.endpoints; ++e) {
    Endpoint& endpoint = s.endpoints[static_cast<std::size_t>(e)];
    CHECK_EQ(endpoint.received.load(), endpoint.promised.load());
    received += endpoint.received.load();
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, endpoint.comm, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Comm_free(&endpoint.comm);
  }
  CHECK_GT(received, 0);
  std::printf("rank %d: %lld messages, %lld MiB, %lld collectives, %lld receives cancelled\n", w.rank, received,
              s.bytes.load() >> 20, s.collectives.load(), s.cancels.load());
  return finish();
}
