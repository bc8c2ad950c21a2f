// ranks: 2
// timeout: 60
// MPI_Mprobe, MPI_Improbe, MPI_Mrecv, MPI_Imrecv and the _c twins: the matched message belongs to its handle, nothing
// else can receive or probe it, handles may be received in any order, and each becomes MPI_MESSAGE_NULL.
#include "../support.hpp"

using namespace test;

namespace {

constexpr std::size_t sizes[] = {0, 8, 64, 5'000, 70'000, 2 << 20};

void every_form(const World& w) {
  for (const std::size_t n : sizes)
    for (int form = 0; form < 4; ++form)
      for (const bool synchronous : {false, true}) {
        const auto seed = n * 10 + static_cast<std::size_t>(form);
        if (w.rank == 0) {
          std::vector<unsigned char> data(n + 1);
          fill(data.data(), n, seed);
          if (synchronous)
            MPI_Ssend(data.data(), static_cast<int>(n), MPI_BYTE, 1, form, MPI_COMM_WORLD);
          else
            MPI_Send(data.data(), static_cast<int>(n), MPI_BYTE, 1, form, MPI_COMM_WORLD);
          continue;
        }
        Guarded buffer(n);
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status probed = dirty_status(), status = dirty_status();
        if (form % 2 == 0) {
          MPI_Mprobe(0, form, MPI_COMM_WORLD, &message, &probed);
        } else {
          int flag = 0;
          CHECK(eventually([&] {
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &probed);
            return flag != 0;
          }));
        }
        CHECK(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC);
        CHECK_EQ(probed.MPI_SOURCE, 0);
        CHECK_EQ(probed.MPI_TAG, form);
        CHECK_EQ(count_of(probed), n);
        CHECK_GT(MPI_Message_toint(message), 4095);  // as Fortran hands it on
        message = MPI_Message_fromint(MPI_Message_toint(message));
        MPI_Request request = MPI_REQUEST_NULL;
        switch (form) {
          case 0: MPI_Mrecv(buffer.data(), static_cast<int>(n), MPI_BYTE, &message, &status); break;
          case 1: MPI_Mrecv_c(buffer.data(), static_cast<MPI_Count>(n), MPI_BYTE, &message, &status); break;
          case 2: MPI_Imrecv(buffer.data(), static_cast<int>(n), MPI_BYTE, &message, &request); break;
          default: MPI_Imrecv_c(buffer.data(), static_cast<MPI_Count>(n), MPI_BYTE, &message, &request); break;
        }
        CHECK(message == MPI_MESSAGE_NULL);
        if (form >= 2) MPI_Wait(&request, &status);
        CHECK_EQ(status.MPI_SOURCE, 0);
        CHECK_EQ(status.MPI_TAG, form);
        CHECK_EQ(count_of(status), n);
        CHECK_FILLED(buffer.data(), n, seed);
        CHECK(buffer.untouched_outside(n));
      }
}

void reserved(const World& w) {
  if (w.rank == 0) {
    const int values[3] = {0, 1, 2};
    MPI_Request requests[3];
    for (int i = 0; i < 3; ++i) MPI_Isend(&values[i], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    return;
  }
  MPI_Message first, second;
  MPI_Status status;
  MPI_Mprobe(0, 5, MPI_COMM_WORLD, &first, &status);
  MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &second, &status);
  int got = -1, flag = -1;
  MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);  // the third: the two before it are taken
  CHECK_EQ(got, 2);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
  CHECK_EQ(flag, 0);
  MPI_Request request;
  MPI_Imrecv(&got, 1, MPI_INT, &second, &request);
  MPI_Wait(&request, &status);
  CHECK_EQ(got, 1);
  MPI_Mrecv(&got, 1, MPI_INT, &first, &status);
  CHECK_EQ(got, 0);
}

// 200 messages matched in order, received backwards.
void many_handles(const World& w) {
  constexpr int n = 200;
  if (w.rank == 0) {
    std::vector<MPI_Request> requests(n);
    std::vector<std::vector<unsigned char>> data;
    for (int i = 0; i < n; ++i) {
      data.emplace_back(static_cast<std::size_t>(i * 97 % 40'000) + 4);
      fill(data.back().data(), data.back().size(), static_cast<std::uint64_t>(i));
      MPI_Isend(data.back().data(), static_cast<int>(data.back().size()), MPI_BYTE, 1, i % 4, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(i)]);
    }
    MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
    return;
  }
  std::vector<MPI_Message> messages(n);
  std::vector<MPI_Status> statuses(n);
  for (std::size_t i = 0; i < n; ++i)
    MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &messages[i], &statuses[i]);
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t size = i * 97 % 40'000 + 4;
    CHECK_EQ(count_of(statuses[i]), size);
    CHECK_EQ(statuses[i].MPI_TAG, i % 4);
    std::vector<unsigned char> buffer(size);
    MPI_Status status;
    MPI_Mrecv(buffer.data(), static_cast<int>(size), MPI_BYTE, &messages[i], &status);
    CHECK_FILLED(buffer.data(), size, i);
  }
}

void proc_null_and_nothing(const World& w) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status = dirty_status();
  int flag = 0, value = 42;
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
  CHECK_EQ(count_of(status), 0);
  MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
  CHECK(message == MPI_MESSAGE_NULL);
  CHECK_EQ(value, 42);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQ(count_of(status), 0);

  MPI_Improbe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK_EQ(flag, 1);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  MPI_Request request;
  MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
  CHECK(message == MPI_MESSAGE_NULL);
  MPI_Wait(&request, &status);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
  CHECK_EQ(count_of(status), 0);

  MPI_Improbe(w.rank, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK_EQ(flag, 0);
}

void oneself(const World& w) {
  for (const std::size_t n : sizes) {
    std::vector<unsigned char> out(n + 1), in(n + 1);
    fill(out.data(), n, n);
    MPI_Request request;
    MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, w.rank, 1, MPI_COMM_WORLD, &request);
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(w.rank, 1, MPI_COMM_WORLD, &message, &status);
    CHECK_EQ(count_of(status), n);
    MPI_Mrecv(in.data(), static_cast<int>(n), MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_FILLED(in.data(), n, n);
  }
}

}  // namespace

int main() {
  const World w = init();
  every_form(w);
  reserved(w);
  MPI_Barrier(MPI_COMM_WORLD);
  many_handles(w);
  MPI_Barrier(MPI_COMM_WORLD);
  proc_null_and_nothing(w);
  oneself(w);
  return finish();
}
