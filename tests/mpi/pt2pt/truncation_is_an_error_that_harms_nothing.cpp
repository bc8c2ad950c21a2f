// ranks: 2
// timeout: 60
// A message longer than its receive: MPI_ERR_TRUNCATE in every form of receiving, nothing written behind the buffer,
// the sender unharmed, the next message intact; the text names rank, communicator, tag and both sizes.
#include "../support.hpp"

using namespace test;

namespace {

enum Form { recv, irecv, waitall, mrecv, imrecv, sendrecv, self, persistent, forms };

void check_text(int code, MPI_Comm comm, int source, int tag, std::size_t sent, std::size_t room) {
  CHECK_EQ(error_class(code), MPI_ERR_TRUNCATE);
  const std::string text = error_text(code);
  CHECK(!text.empty());
  if (!library_is_heddle()) return;
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Comm_get_name(comm, name, &length);
  CHECK_NAMES(text, name);
  CHECK_NAMES(text, std::to_string(source));
  CHECK_NAMES(text, std::to_string(tag));
  CHECK_NAMES(text, std::to_string(sent));
  CHECK_NAMES(text, std::to_string(room));
}

void receive(const World& w, MPI_Comm comm, Form form, std::size_t sent, std::size_t room, int tag) {
  Guarded buffer(room);
  const int n = static_cast<int>(room);
  int code = MPI_SUCCESS;
  MPI_Status status = dirty_status();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message;
  switch (form) {
    case recv: code = MPI_Recv(buffer.data(), n, MPI_BYTE, 0, tag, comm, &status); break;
    case irecv:
      CHECK_OK(MPI_Irecv(buffer.data(), n, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &request));
      code = MPI_Wait(&request, &status);
      break;
    case waitall: {
      int ok = -1;
      MPI_Request requests[2];
      MPI_Status statuses[2] = {dirty_status(), dirty_status()};
      CHECK_OK(MPI_Irecv(buffer.data(), n, MPI_BYTE, 0, tag, comm, &requests[0]));
      CHECK_OK(MPI_Irecv(&ok, 1, MPI_INT, w.rank, tag + 1, comm, &requests[1]));
      MPI_Send(&w.rank, 1, MPI_INT, w.rank, tag + 1, comm);
      CHECK_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
      code = statuses[0].MPI_ERROR;
      status = statuses[0];
      if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) {  // allowed: it is still to be waited for
        CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      } else {
        CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
      }
      CHECK_EQ(ok, w.rank);
      break;
    }
    case mrecv:
      MPI_Mprobe(0, tag, comm, &message, MPI_STATUS_IGNORE);
      code = MPI_Mrecv(buffer.data(), n, MPI_BYTE, &message, &status);
      if (!library_is_mpich()) CHECK(message == MPI_MESSAGE_NULL);  // MPICH 5.0.2 keeps it after an error
      break;
    case imrecv:
      MPI_Mprobe(0, tag, comm, &message, MPI_STATUS_IGNORE);
      MPI_Imrecv(buffer.data(), n, MPI_BYTE, &message, &request);
      code = MPI_Wait(&request, &status);
      break;
    case sendrecv:
      code = MPI_Sendrecv(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, buffer.data(), n, MPI_BYTE, 0, tag, comm, &status);
      break;
    case persistent:
      MPI_Recv_init(buffer.data(), n, MPI_BYTE, 0, tag, comm, &request);
      MPI_Start(&request);
      code = MPI_Wait(&request, &status);
      MPI_Request_free(&request);
      break;
    case self:
    case forms: return;
  }
  check_text(code, comm, 0, tag, sent, room);
  CHECK(buffer.untouched_outside(room));
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQ(status.MPI_SOURCE, 0);
  CHECK_EQ(status.MPI_TAG, tag);
}

// The receive is there before the message (posted) or the message before the receive.
void between_two(const World& w, MPI_Comm comm) {
  int tag = 1'000;
  for (const std::size_t sent : {2u, 64u, 65u, 3'000u, 50'000u, 3u << 20})
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, sent / 2, sent - 1})
      for (int f = 0; f < forms; ++f)
        for (const bool posted : {false, true}) {
          const auto form = static_cast<Form>(f);
          if (form == self) continue;
          tag += 10;
          const auto seed = static_cast<std::uint64_t>(tag);
          std::vector<unsigned char> data(sent);
          if (w.rank == 0) {
            fill(data.data(), sent, seed);
            if (posted) MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Request request;
            MPI_Isend(data.data(), static_cast<int>(sent), MPI_BYTE, 1, tag, comm, &request);
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));  // the sender did nothing wrong
            MPI_Send(data.data(), static_cast<int>(sent), MPI_BYTE, 1, tag + 5, comm);
          } else {
            if (posted) MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            receive(w, comm, form, sent, room, tag);
            CHECK_OK(MPI_Recv(data.data(), static_cast<int>(sent), MPI_BYTE, 0, tag + 5, comm, MPI_STATUS_IGNORE));
            CHECK_FILLED(data.data(), sent, seed);
          }
        }
}

// A receive posted well before, so that the error is found by whoever delivers, not by the receiving call.
void posted_long_before(const World& w, MPI_Comm comm) {
  constexpr std::size_t sizes[] = {16, 200, 9'000, 200'000};
  if (w.rank == 1) {
    std::vector<Guarded> buffers;
    MPI_Request requests[4];
    for (const std::size_t n : sizes) buffers.emplace_back(n - 8);
    for (int i = 0; i < 4; ++i)
      MPI_Irecv(buffers[static_cast<std::size_t>(i)].data(), static_cast<int>(sizes[i] - 8), MPI_BYTE, 0, 100 + i, comm,
                &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 3; i >= 0; --i) {
      MPI_Status status;
      const int code = MPI_Wait(&requests[i], &status);
      check_text(code, comm, 0, 100 + i, sizes[i], sizes[i] - 8);
      CHECK(buffers[static_cast<std::size_t>(i)].untouched_outside(sizes[i] - 8));
    }
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) {
      std::vector<unsigned char> data(sizes[i]);
      CHECK_OK(MPI_Send(data.data(), static_cast<int>(sizes[i]), MPI_BYTE, 1, 100 + i, comm));
    }
  }
}

void to_oneself(const World& w, MPI_Comm comm) {
  for (const std::size_t sent : {16u, 300u, 100'000u})
    for (const bool posted : {true, false}) {
      std::vector<unsigned char> data(sent);
      Guarded buffer(sent / 2);
      MPI_Request send, receive;
      if (posted) {
        MPI_Irecv(buffer.data(), static_cast<int>(sent / 2), MPI_BYTE, w.rank, 7, comm, &receive);
        MPI_Isend(data.data(), static_cast<int>(sent), MPI_BYTE, w.rank, 7, comm, &send);
      } else {
        MPI_Isend(data.data(), static_cast<int>(sent), MPI_BYTE, w.rank, 7, comm, &send);
        MPI_Irecv(buffer.data(), static_cast<int>(sent / 2), MPI_BYTE, w.rank, 7, comm, &receive);
      }
      MPI_Status status;
      check_text(MPI_Wait(&receive, &status), comm, w.rank, 7, sent, sent / 2);
      CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
      CHECK(buffer.untouched_outside(sent / 2));
    }
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "loom of twelve");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  // Whose handler MPI_Waitall calls is left open where requests of several communicators may meet.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  between_two(w, comm);
  posted_long_before(w, comm);
  to_oneself(w, comm);
  MPI_Comm_free(&comm);
  return finish();
}
