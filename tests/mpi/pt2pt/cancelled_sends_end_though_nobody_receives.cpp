// ranks: 1 2
// timeout: 60
// A send that no receive has matched is cancelled: MPI_Wait returns, the message is in no probe and no receive, the next one of
// the same tag takes its place. One that was matched (a receive, a matched probe, a receive that waited for it) arrives whole and is
// not reported as cancelled. To another rank and to oneself, small synchronous ones and large ones, persistent and of any layout.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int go = 50, kept = 51, told = 52;

bool was_cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

struct Kind {
  std::size_t bytes;
  bool synchronous, strided;
};
constexpr Kind kinds[] = {{0, true, false},      {8, true, false},     {3'000, true, false},    {3'000, true, true},
                          {40'000, true, false}, {300'000, false, false}, {300'000, true, false}, {300'000, false, true},
                          {3 << 20, false, false}};

// Every other byte of twice as many.
MPI_Datatype strided(std::size_t bytes) {
  MPI_Datatype type;
  MPI_Type_vector(static_cast<int>(bytes), 1, 2, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  return type;
}

// A message under way, as a request of the kind.
struct Sending {
  Sending(const Kind& kind, int to, int tag, MPI_Comm comm, bool persistent = false)
      : kind_(kind), data_(2 * kind.bytes + 1), type_(kind.strided ? strided(kind.bytes) : MPI_BYTE) {
    std::vector<unsigned char> packed(kind.bytes + 1);
    fill(packed.data(), kind.bytes, kind.bytes);
    for (std::size_t i = 0; i < kind.bytes; ++i) data_[kind.strided ? 2 * i : i] = packed[i];
    const int count = kind.strided ? 1 : static_cast<int>(kind.bytes);
    if (persistent) {
      (kind.synchronous ? MPI_Ssend_init : MPI_Send_init)(data_.data(), count, type_, to, tag, comm, &request);
      MPI_Start(&request);
    } else {
      (kind.synchronous ? MPI_Issend : MPI_Isend)(data_.data(), count, type_, to, tag, comm, &request);
    }
    if (kind.strided) MPI_Type_free(&type_);
  }
  bool ends_cancelled() {
    MPI_Status status = dirty_status();
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    return was_cancelled(status);
  }
  MPI_Request request;

 private:
  Kind kind_;
  std::vector<unsigned char> data_;
  MPI_Datatype type_;
};

void receive(const Kind& kind, int from, int tag, MPI_Comm comm) {
  std::vector<unsigned char> data(kind.bytes + 1);
  MPI_Status status;
  MPI_Recv(data.data(), static_cast<int>(kind.bytes), MPI_BYTE, from, tag, comm, &status);
  CHECK_EQ(count_of(status), static_cast<long long>(kind.bytes));
  CHECK(!was_cancelled(status));
  CHECK_FILLED(data.data(), kind.bytes, kind.bytes);
}

// The receiver is in MPI, and asks for other things.
void nobody_receives(const World& w, const Kind& kind, int to, MPI_Comm comm) {
  const bool sends = w.rank == 0, receives = w.rank == to;
  if (sends) {
    int value = 5;
    Sending first(kind, to, 7, comm), second(kind, to, 7, comm), third(kind, to, 7, comm);
    CHECK_EQ(MPI_Cancel(&second.request), MPI_SUCCESS);
    CHECK(second.ends_cancelled());
    CHECK(second.request == MPI_REQUEST_NULL);
    MPI_Cancel(&third.request);
    MPI_Cancel(&third.request);  // asked twice
    MPI_Cancel(&first.request);
    CHECK(third.ends_cancelled());
    CHECK(first.ends_cancelled());
    Sending freed(kind, to, 7, comm);
    MPI_Cancel(&freed.request);
    MPI_Request_free(&freed.request);
    MPI_Send(&value, 1, MPI_INT, to, kept, comm);
    if (!receives) {  // of the freed one nothing is told here, and its buffer must stay till the receiver has looked
      MPI_Recv(&value, 1, MPI_INT, to, told, comm, MPI_STATUS_IGNORE);
      return;
    }
  }
  if (receives) {
    int value = 0, flag = 1;
    MPI_Status status;
    MPI_Probe(MPI_ANY_SOURCE, kept, comm, &status);
    MPI_Iprobe(0, 7, comm, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, comm, &status);
    CHECK_EQ(status.MPI_TAG, kept);
    CHECK_EQ(value, 5);
    if (!sends) MPI_Send(&value, 1, MPI_INT, 0, told, comm);
  }
}

// A cancelled message leaves its place to the next of its tag, to a receive that comes later and one that is there already.
void the_next_takes_its_place(const World& w, const Kind& kind, MPI_Comm comm) {
  if (w.rank == 0) {
    Sending cancelled(kind, 1, 7, comm, true);
    MPI_Cancel(&cancelled.request);
    CHECK(cancelled.ends_cancelled());
    CHECK(cancelled.request != MPI_REQUEST_NULL);
    MPI_Send(nullptr, 0, MPI_INT, 1, go, comm);
    for (int i = 0; i < 2; ++i) {  // the persistent request is as good as new
      MPI_Start(&cancelled.request);
      CHECK(!cancelled.ends_cancelled());
    }
    MPI_Start(&cancelled.request);
    MPI_Cancel(&cancelled.request);
    CHECK(cancelled.ends_cancelled());
    MPI_Request_free(&cancelled.request);
    MPI_Send(nullptr, 0, MPI_INT, 1, go, comm);
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, 0, go, comm, MPI_STATUS_IGNORE);
    receive(kind, 0, 7, comm);
    receive(kind, MPI_ANY_SOURCE, MPI_ANY_TAG, comm);
    MPI_Recv(nullptr, 0, MPI_INT, 0, go, comm, MPI_STATUS_IGNORE);
  }
}

void what_matched_arrives(const World& w, const Kind& kind, MPI_Comm comm) {
  if (w.rank == 0) {
    MPI_Recv(nullptr, 0, MPI_INT, 1, go, comm, MPI_STATUS_IGNORE);
    Sending awaited(kind, 1, 7, comm);  // by a receive that is posted
    MPI_Cancel(&awaited.request);
    CHECK(!awaited.ends_cancelled());

    Sending probed(kind, 1, 8, comm);  // by a matched probe
    MPI_Recv(nullptr, 0, MPI_INT, 1, go, comm, MPI_STATUS_IGNORE);
    MPI_Cancel(&probed.request);
    MPI_Send(nullptr, 0, MPI_INT, 1, go, comm);
    CHECK(!probed.ends_cancelled());
  } else {
    std::vector<unsigned char> data(kind.bytes + 1);
    MPI_Request request;
    MPI_Irecv(data.data(), static_cast<int>(kind.bytes), MPI_BYTE, 0, 7, comm, &request);
    MPI_Send(nullptr, 0, MPI_INT, 0, go, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_FILLED(data.data(), kind.bytes, kind.bytes);

    MPI_Message message;
    MPI_Mprobe(0, 8, comm, &message, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_INT, 0, go, comm);
    MPI_Recv(nullptr, 0, MPI_INT, 0, go, comm, MPI_STATUS_IGNORE);  // the question was there before
    std::memset(data.data(), 0, data.size());
    MPI_Mrecv(data.data(), static_cast<int>(kind.bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK_FILLED(data.data(), kind.bytes, kind.bytes);
  }
}

// The same with oneself.
void matched_with_oneself(const World& w, const Kind& kind, MPI_Comm comm) {
  Sending probed(kind, w.rank, 8, comm);
  std::vector<unsigned char> data(kind.bytes + 1);
  MPI_Message message;
  MPI_Mprobe(w.rank, 8, comm, &message, MPI_STATUS_IGNORE);
  MPI_Cancel(&probed.request);
  MPI_Mrecv(data.data(), static_cast<int>(kind.bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
  CHECK(!probed.ends_cancelled());
  CHECK_FILLED(data.data(), kind.bytes, kind.bytes);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const Kind& kind : kinds) {
    nobody_receives(w, kind, w.size - 1, comm);
    matched_with_oneself(w, kind, comm);
    if (w.size == 1) continue;
    the_next_takes_its_place(w, kind, comm);
    what_matched_arrives(w, kind, comm);
  }
  MPI_Comm_free(&comm);
  return finish();
}
