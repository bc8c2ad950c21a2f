// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000
// Messages by the million between all threads of all ranks: random sizes (0 to 256 KiB, most of them small), tags,
// communicators, datatypes, send modes and ways of receiving. None is lost, doubled, torn, or out of order.
//
//   messages [--messages N] [--seconds S] [--threads T] [--seed X] [--verbose]
//
// N messages in all, or as many as fit S seconds; T pairs of a sending and a receiving thread on each rank. The same
// seed sends the same messages.
//
// Receiving thread t of a rank owns an inbox: its rank on communicator t. A stream is (sending thread, tag, inbox), and
// MPI keeps the order within it. What the i-th message of a stream is (size, bytes, layout) follows from the stream and
// i alone, so the receiver checks every byte against what it computes itself. After its last message a sender tells
// every inbox how many it has sent there.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <span>

#include "../mpi/threads/team.hpp"
#include "options.hpp"

using namespace test;

namespace {

constexpr int tags = 8;  // data tags of one sender; sender s uses s * tags .. s * tags + tags - 1
constexpr int end_tag = 30'000;
constexpr std::size_t largest = 256 << 10;

struct Options {
  long long messages = 1'000'000, seconds = 0;
  std::uint64_t seed = 1;
  int threads = 2;
  bool verbose = false;
};

Options parse(int argc, char** argv) {
  Options o;
  read_options(argc, argv,
               {{"--messages", &o.messages}, {"--seconds", &o.seconds}, {"--seed", &o.seed}, {"--threads", &o.threads}, {"--verbose", &o.verbose}});
  if (o.seconds) o.messages = 1LL << 60;
  return o;
}

// Bytes in blocks of `block`, one every `stride` bytes.
struct Layout {
  MPI_Datatype type;
  std::size_t block, stride;

  int count(std::size_t bytes) const { return static_cast<int>((bytes + block - 1) / block); }
  std::size_t span(std::size_t bytes) const { return (bytes + block - 1) / block * stride; }
  void scatter(const unsigned char* from, unsigned char* to, std::size_t bytes) const {
    for (std::size_t i = 0, k = 0; i < bytes; i += block, k += stride)
      std::memcpy(to + k, from + i, std::min(block, bytes - i));
  }
  void gather(const unsigned char* from, unsigned char* to, std::size_t bytes) const {
    for (std::size_t i = 0, k = 0; i < bytes; i += block, k += stride)
      std::memcpy(to + i, from + k, std::min(block, bytes - i));
  }
};

Layout strided(std::size_t block, std::size_t stride) {
  Layout layout{MPI_DATATYPE_NULL, block, stride};
  MPI_Datatype piece;
  MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(stride), &layout.type);
  MPI_Type_commit(&layout.type);
  MPI_Type_free(&piece);
  return layout;
}

struct Shared {
  Options options;
  World world;
  std::vector<MPI_Comm> inboxes;
  std::array<Layout, 3> layouts;
  std::atomic<long long> sent{0}, received{0}, bytes{0};  // relaxed: a report, and read for good after the join
  std::chrono::steady_clock::time_point end;

  int partners() const { return world.size * options.threads; }  // senders, and as many inboxes
};

// Message `sequence` of the stream from `sender` to `inbox` by `tag`.
struct Message {
  std::uint64_t seed;
  std::size_t bytes;
  const Layout* layout;  // the sender's

  Message(const Shared& s, int sender, int inbox, int tag, std::uint32_t sequence) {
    seed = mix(s.options.seed ^ (static_cast<std::uint64_t>(sender) << 48) ^ (static_cast<std::uint64_t>(inbox) << 40) ^
               (static_cast<std::uint64_t>(tag) << 32) ^ sequence);
    Random random(seed);
    bytes = pick_size(random);
    layout = &s.layouts[random.below(8) < 6 ? 0 : 1 + random.below(2)];
    bytes -= bytes % layout->block;
  }

  static std::size_t pick_size(Random& random) {
    switch (random.below(64)) {
      case 0: return random.below(largest + 1);
      case 1: return random.below(64 << 10);
      case 2:
      case 3: return random.below(16 << 10);
      case 4:
      case 5:
      case 6:
      case 7: return random.below(4096);
      case 8: return 0;
      default: return random.below(200);
    }
  }
};

class Sender {
 public:
  Sender(Shared& shared, int thread)
      : s_(shared),
        me_(shared.world.rank * shared.options.threads + thread),
        random_(mix(shared.options.seed) + static_cast<std::uint64_t>(me_)),
        sequences_(static_cast<std::size_t>(s_.partners() * tags), 0),
        counts_(static_cast<std::size_t>(s_.partners()), 0),
        slots_(window) {}

  void run() {
    const long long quota = s_.options.messages / s_.partners();
    for (long long i = 0; i < quota; ++i) {
      if (s_.options.seconds && i % 64 == 0 && std::chrono::steady_clock::now() > s_.end) break;
      post();
    }
    for (auto& slot : slots_) complete(slot);
    MPI_Buffer_flush();
    for (int inbox = 0; inbox < s_.partners(); ++inbox)
      MPI_Send(&counts_[static_cast<std::size_t>(inbox)], 1, MPI_UINT64_T, inbox / s_.options.threads, end_tag,
               comm_of(inbox));
  }

 private:
  static constexpr std::size_t window = 32;
  enum Mode { send, ssend, bsend, sendrecv, isend, issend, ibsend, isendrecv, persistent, modes };
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<unsigned char> data;
    bool persistent = false;
  };

  MPI_Comm comm_of(int inbox) const { return s_.inboxes[static_cast<std::size_t>(inbox % s_.options.threads)]; }

  void post() {
    const int inbox = static_cast<int>(random_.below(static_cast<std::uint64_t>(s_.partners())));
    const int tag = static_cast<int>(random_.below(tags));
    const Message message(s_, me_, inbox, tag, sequences_[static_cast<std::size_t>(inbox * tags + tag)]++);
    ++counts_[static_cast<std::size_t>(inbox)];

    Slot& slot = free_slot();
    const Layout& layout = *message.layout;
    slot.data.resize(layout.span(message.bytes) + 1);
    if (layout.block == layout.stride) {
      fill(slot.data.data(), message.bytes, message.seed);
    } else {
      scratch_.resize(message.bytes + 1);
      fill(scratch_.data(), message.bytes, message.seed);
      layout.scatter(scratch_.data(), slot.data.data(), message.bytes);
    }
    start(slot, static_cast<Mode>(random_.below(modes)), layout.count(message.bytes), layout.type,
          inbox / s_.options.threads, me_ * tags + tag, comm_of(inbox));
    s_.sent.fetch_add(1, std::memory_order_relaxed);
    s_.bytes.fetch_add(static_cast<long long>(message.bytes), std::memory_order_relaxed);
  }

  void start(Slot& slot, Mode mode, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    const void* data = slot.data.data();
    MPI_Request* request = &slot.request;
    constexpr int none = MPI_PROC_NULL;
    switch (mode) {
      case send: MPI_Send(data, n, type, to, tag, comm); break;
      case ssend: MPI_Ssend(data, n, type, to, tag, comm); break;
      case bsend:
        MPI_Bsend(data, n, type, to, tag, comm);
        bound_the_buffer();
        break;
      case sendrecv:
        MPI_Sendrecv(data, n, type, to, tag, nullptr, 0, MPI_BYTE, none, 0, comm, MPI_STATUS_IGNORE);
        break;
      case isend: MPI_Isend(data, n, type, to, tag, comm, request); break;
      case issend: MPI_Issend(data, n, type, to, tag, comm, request); break;
      case ibsend:
        MPI_Ibsend(data, n, type, to, tag, comm, request);
        bound_the_buffer();
        break;
      case isendrecv: MPI_Isendrecv(data, n, type, to, tag, nullptr, 0, MPI_BYTE, none, 0, comm, request); break;
      case persistent:
        if (random_.below(2))
          MPI_Send_init(data, n, type, to, tag, comm, request);
        else
          MPI_Ssend_init(data, n, type, to, tag, comm, request);
        MPI_Start(request);
        slot.persistent = true;
        break;
      case modes: break;
    }
  }

  // The automatic buffer has no limit of its own.
  void bound_the_buffer() {
    if (++buffered_ % 256 == 0) MPI_Buffer_flush();
  }

  Slot& free_slot() {
    for (auto& slot : slots_)
      if (slot.request == MPI_REQUEST_NULL) return slot;
    Slot& slot = slots_[random_.below(window)];
    complete(slot);
    return slot;
  }

  void complete(Slot& slot) {
    MPI_Wait(&slot.request, MPI_STATUS_IGNORE);
    if (slot.persistent) MPI_Request_free(&slot.request);
    slot.persistent = false;
  }

  Shared& s_;
  int me_;
  Random random_;
  std::vector<std::uint32_t> sequences_;
  std::vector<std::uint64_t> counts_;
  std::vector<Slot> slots_;
  std::vector<unsigned char> scratch_;
  long long buffered_ = 0;
};

class Receiver {
 public:
  Receiver(Shared& shared, int thread)
      : s_(shared),
        me_(shared.world.rank * shared.options.threads + thread),
        comm_(shared.inboxes[static_cast<std::size_t>(thread)]),
        random_(mix(shared.options.seed + 77) + static_cast<std::uint64_t>(me_)),
        sequences_(static_cast<std::size_t>(s_.partners() * tags), 0),
        counts_(static_cast<std::size_t>(s_.partners()), 0),
        places_(most_posted) {}

  void run() {
    MPI_Request persistent;
    Place& place = prepare(0);
    MPI_Recv_init(place.data.data(), place.room, place.layout->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &persistent);
    while (ended_ < s_.partners()) {
      MPI_Status status;
      switch (random_.below(7)) {
        case 0: by_receive(); break;
        case 1: by_probe(); break;
        case 2: by_matched_probe(false); break;
        case 3: by_matched_probe(true); break;
        case 4:
          MPI_Start(&persistent);
          MPI_Wait(&persistent, &status);
          check(place, status);
          break;
        default: by_posted_receives(); break;
      }
    }
    MPI_Request_free(&persistent);
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);  // nothing comes after the end
  }

 private:
  static constexpr std::size_t most_posted = 12;
  struct Place {
    const Layout* layout = nullptr;
    std::vector<unsigned char> data;
    int room = 0;
  };

  // Room for the largest message in a random layout. Place 0 is the persistent request's.
  Place& prepare(std::size_t i) {
    Place& place = places_[i];
    place.layout = &s_.layouts[i == 0 ? 0 : random_.below(8) < 6 ? 0 : 1 + random_.below(2)];
    const std::size_t span = place.layout->span(largest);
    if (place.data.size() < span) place.data.resize(span);
    place.room = place.layout->count(largest);
    return place;
  }

  void by_receive() {
    Place& p = prepare(1);
    MPI_Status status;
    MPI_Recv(p.data.data(), p.room, p.layout->type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &status);
    check(p, status);
  }

  // Exact, or with a wildcard on one side: then a message other than the one probed may be the first that fits.
  void by_probe() {
    Place& p = prepare(1);
    MPI_Status status;
    int flag = 0;
    if (random_.below(2)) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &status);
    if (!flag) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &status);
    const bool any_source = status.MPI_TAG != end_tag && random_.below(3) == 0;
    const bool any_tag = !any_source && random_.below(3) == 0;
    MPI_Recv(p.data.data(), p.room, p.layout->type, any_source ? MPI_ANY_SOURCE : status.MPI_SOURCE,
             any_tag ? MPI_ANY_TAG : status.MPI_TAG, comm_, &status);
    check(p, status);
  }

  void by_matched_probe(bool nonblocking) {
    Place& p = prepare(1);
    MPI_Status status;
    MPI_Message message;
    int flag = 0;
    if (nonblocking) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &message, &status);
    if (!flag) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &message, &status);
    MPI_Status received;
    if (nonblocking) {
      MPI_Request request;
      MPI_Imrecv(p.data.data(), p.room, p.layout->type, &message, &request);
      MPI_Wait(&request, &received);
    } else {
      MPI_Mrecv(p.data.data(), p.room, p.layout->type, &message, &received);
    }
    CHECK_EQ(received.MPI_SOURCE, status.MPI_SOURCE);
    CHECK_EQ(received.MPI_TAG, status.MPI_TAG);
    CHECK_EQ(count_of(received), count_of(status));
    check(p, received);
  }

  // Several receives of all kinds at once. Some complete, the rest are cancelled while messages come in; in the order
  // of their posting, those that were not cancelled hold the messages of each stream in order.
  void by_posted_receives() {
    const std::size_t n = 2 + random_.below(most_posted - 3);
    std::array<MPI_Request, most_posted> requests;
    std::array<MPI_Status, most_posted> statuses;
    for (std::size_t i = 0; i < n; ++i) {
      Place& p = prepare(i + 1);
      const int sender = static_cast<int>(random_.below(static_cast<std::uint64_t>(s_.partners())));
      const bool any_source = i == 0 || random_.below(2), any_tag = i == 0 || random_.below(2);
      MPI_Irecv(p.data.data(), p.room, p.layout->type, any_source ? MPI_ANY_SOURCE : sender / s_.options.threads,
                any_tag ? MPI_ANY_TAG : sender * tags + static_cast<int>(random_.below(tags)), comm_, &requests[i]);
    }
    int index = -1, flag = 0;
    MPI_Status first;
    MPI_Waitany(static_cast<int>(n), requests.data(), &index, &first);  // the first takes anything: this ends
    for (std::uint64_t polls = random_.below(20); polls > 0; --polls)
      MPI_Request_get_status(requests[(static_cast<std::size_t>(index) + 1) % n], &flag, MPI_STATUS_IGNORE);
    for (auto& request : std::span(requests).first(n))
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    MPI_Waitall(static_cast<int>(n), requests.data(), statuses.data());
    statuses[static_cast<std::size_t>(index)] = first;
    for (std::size_t i = 0; i < n; ++i) {
      MPI_Test_cancelled(&statuses[i], &flag);
      if (!flag) check(places_[i + 1], statuses[i]);
    }
  }

  void check(Place& place, const MPI_Status& status) {
    const auto bytes = static_cast<std::size_t>(count_of(status));
    const unsigned char* data = place.data.data();
    if (place.layout->block != place.layout->stride) {
      scratch_.resize(largest);
      place.layout->gather(data, scratch_.data(), bytes);
      data = scratch_.data();
    }
    if (status.MPI_TAG == end_tag) {
      ended_ += 1;
      // One end from each thread of the rank: told apart by their sum.
      std::uint64_t count = 0;
      CHECK_EQ(bytes, sizeof count);
      std::memcpy(&count, data, sizeof count);
      auto& rank = ends_[status.MPI_SOURCE];
      rank.first += 1, rank.second += count;
      if (rank.first < s_.options.threads) return;
      std::uint64_t received = 0;
      for (int t = 0; t < s_.options.threads; ++t)
        received += counts_[static_cast<std::size_t>(status.MPI_SOURCE * s_.options.threads + t)];
      CHECK_EQ(received, rank.second);
      return;
    }
    const int sender = status.MPI_TAG / tags, tag = status.MPI_TAG % tags;
    CHECK(sender < s_.partners());
    CHECK_EQ(status.MPI_SOURCE, sender / s_.options.threads);
    const auto sequence = sequences_[static_cast<std::size_t>(status.MPI_TAG)]++;
    const Message expected(s_, sender, me_, tag, sequence);
    if (bytes != expected.bytes || first_wrong(data, bytes, expected.seed) != bytes)
      check_fail(__FILE__, __LINE__,
                 "inbox %d: message %u of sender %d by tag %d: %zu bytes came where %zu were due, first wrong at %zu",
                 me_, sequence, sender, tag, bytes, expected.bytes, first_wrong(data, bytes, expected.seed));
    ++counts_[static_cast<std::size_t>(sender)];
    s_.received.fetch_add(1, std::memory_order_relaxed);
  }

  Shared& s_;
  int me_;
  MPI_Comm comm_;
  Random random_;
  std::vector<std::uint32_t> sequences_;
  std::vector<std::uint64_t> counts_;
  std::vector<Place> places_;
  std::vector<unsigned char> scratch_;
  std::map<int, std::pair<int, std::uint64_t>> ends_;  // by rank: how many of its threads ended, messages they sent
  int ended_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Shared shared;
  shared.options = parse(argc, argv);
  shared.world = init_threads();
  CHECK(shared.partners() * tags < end_tag);
  shared.layouts = {Layout{MPI_BYTE, 1, 1}, strided(16, 24), strided(5, 7)};
  for (int t = 0; t < shared.options.threads; ++t) {
    shared.inboxes.emplace_back();
    MPI_Comm_dup(MPI_COMM_WORLD, &shared.inboxes.back());
  }
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  const auto start = std::chrono::steady_clock::now();
  shared.end = start + std::chrono::seconds(shared.options.seconds);

  std::atomic<bool> finished{false};  // relaxed: only ends the report
  std::thread reporter;
  if (shared.options.verbose && shared.world.rank == 0)
    reporter = std::thread([&] {
      for (int i = 1; !finished.load(std::memory_order_relaxed); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        if (i % 10 == 0)
          std::fprintf(stderr, "%4d s: rank 0 sent %lld messages, received %lld\n", i / 5,
                       shared.sent.load(std::memory_order_relaxed), shared.received.load(std::memory_order_relaxed));
      }
    });
  run_threads(2 * shared.options.threads, [&](int k) {
    if (k % 2)
      Sender(shared, k / 2).run();
    else
      Receiver(shared, k / 2).run();
  });
  finished.store(true, std::memory_order_relaxed);
  if (reporter.joinable()) reporter.join();

  void* address = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&address, &bytes);
  long long mine[3] = {shared.sent.load(), shared.received.load(), shared.bytes.load()}, all[3] = {};
  MPI_Reduce(mine, all, 3, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (shared.world.rank == 0) {
    CHECK_EQ(all[0], all[1]);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%lld messages, %.1f MB, %.1f s: none lost, none out of order\n", all[0],
                static_cast<double>(all[2]) / 1e6, seconds.count());
  }
  for (auto& comm : shared.inboxes) MPI_Comm_free(&comm);
  for (auto& layout : shared.layouts)
    if (layout.type != MPI_BYTE) MPI_Type_free(&layout.type);
  return finish();
}
