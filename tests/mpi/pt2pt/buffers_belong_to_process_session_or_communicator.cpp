// ranks: 2
// timeout: 60
// endpoints: none (the process's one send buffer, and a session of the process)
// MPI-4.1's buffers: attached to a communicator, to a session or to the process, tried in that order; flush, iflush,
// detach of each; MPI_BUFFER_AUTOMATIC, which never overflows.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int n = 400'000, go = 90;  // too large to leave without its receive
constexpr int room = n + MPI_BSEND_OVERHEAD + 64;

void receive(int from, int tag, MPI_Comm comm, std::uint64_t seed) {
  std::vector<unsigned char> data(n);
  MPI_Recv(data.data(), n, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
  CHECK_FILLED(data.data(), n, seed);
}

void send(int tag, MPI_Comm comm, std::uint64_t seed) {
  std::vector<unsigned char> data(n);
  fill(data.data(), n, seed);
  CHECK_EQ(MPI_Bsend(data.data(), n, MPI_BYTE, 1, tag, comm), MPI_SUCCESS);
}

void token(const World& w, int from) {
  if (w.rank == from)
    MPI_Send(nullptr, 0, MPI_BYTE, 1 - from, go, MPI_COMM_WORLD);
  else
    MPI_Recv(nullptr, 0, MPI_BYTE, from, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void communicator_buffer(const World& w) {
  MPI_Comm own, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  if (w.rank == 0) {
    std::vector<unsigned char> mine(room), all(room);
    CHECK_EQ(MPI_Comm_attach_buffer(own, mine.data(), room), MPI_SUCCESS);
    char byte = 0;
    CHECK_CLASS(MPI_Bsend(&byte, 1, MPI_BYTE, 1, 1, other), MPI_ERR_BUFFER);  // not for other communicators
    MPI_Buffer_attach(all.data(), room);
    send(1, own, 1);    // fills the communicator's
    send(2, other, 2);  // fills the process's
    // Each is full, and neither helps the other out.
    std::vector<unsigned char> data(n);
    CHECK_CLASS(MPI_Bsend(data.data(), n, MPI_BYTE, 1, 1, own), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Bsend(data.data(), n, MPI_BYTE, 1, 1, other), MPI_ERR_BUFFER);
    token(w, 0);
    MPI_Comm_flush_buffer(own);  // all delivered: the space is free again
    send(3, own, 3);
    MPI_Request request;
    CHECK_EQ(MPI_Comm_iflush_buffer(own, &request), MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Buffer_flush();
    send(4, other, 4);
    MPI_Buffer_iflush(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    send(5, own, 5);
    void* address = nullptr;
    int bytes = 0;
    MPI_Comm_detach_buffer(own, &address, &bytes);
    CHECK(address == mine.data());
    CHECK_EQ(bytes, room);
    send(6, own, 6);  // now the process's buffer serves it
    MPI_Count big = 0;
    MPI_Buffer_detach_c(&address, &big);
    CHECK(address == all.data());
    CHECK_EQ(big, room);
  } else {
    token(w, 0);
    receive(0, 2, other, 2);
    receive(0, 1, own, 1);
    receive(0, 3, own, 3);
    receive(0, 4, other, 4);
    receive(0, 5, own, 5);
    receive(0, 6, own, 6);
  }
  MPI_Comm_free(&own);
  MPI_Comm_free(&other);
}

// A flush waits for the messages that were inside when it began, whatever later ones do. To oneself: nothing moves before
// its receive.
void flush_waits_for_what_was_there(const World& w) {
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, w.rank, 0, &comm);
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  std::vector<unsigned char> data(n);
  const auto send_here = [&](int count, int tag) { MPI_Bsend(data.data(), count, MPI_BYTE, 0, tag, comm); };
  const auto receive_here = [&](int count, int tag) {
    MPI_Recv(data.data(), count, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE);
  };
  const auto is_over = [](MPI_Request& request) {
    int flag = 0;
    for (int looks = 0; looks < 100 && !flag; ++looks) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  };
  MPI_Request first, second;
  send_here(n, 1);
  MPI_Buffer_iflush(&first);
  send_here(1, 2);  // comes later and leaves earlier
  receive_here(1, 2);
  CHECK(!is_over(first));
  send_here(n, 3);
  MPI_Buffer_iflush(&second);
  receive_here(n, 3);
  CHECK(!is_over(first));
  CHECK(!is_over(second));
  send_here(n, 4);  // stays inside
  receive_here(n, 1);
  MPI_Wait(&first, MPI_STATUS_IGNORE);
  MPI_Wait(&second, MPI_STATUS_IGNORE);
  receive_here(n, 4);
  void* address;
  int bytes;
  MPI_Buffer_detach(&address, &bytes);
  MPI_Comm_free(&comm);
}

// Any number of large messages before the first is received.
void automatic(const World& w, bool on_communicator) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  constexpr int messages = 20;
  if (w.rank == 0) {
    if (on_communicator)
      CHECK_EQ(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    else
      CHECK_EQ(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    for (int m = 0; m < messages; ++m) send(m, comm, static_cast<std::uint64_t>(m));
    token(w, 0);
    void* address = nullptr;
    int bytes = -1;
    if (on_communicator) {
      MPI_Comm_flush_buffer(comm);
      MPI_Comm_detach_buffer(comm, &address, &bytes);
    } else {
      MPI_Buffer_flush();
      MPI_Buffer_detach(&address, &bytes);
    }
    CHECK(address == MPI_BUFFER_AUTOMATIC);
    CHECK_EQ(bytes, 0);
  } else {
    token(w, 0);
    for (int m = messages - 1; m >= 0; --m) receive(0, m, comm, static_cast<std::uint64_t>(m));
  }
  MPI_Comm_free(&comm);
}

void session_buffer(const World& w) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "org.heddle.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Group_free(&group);
  if (w.rank == 0) {
    std::vector<unsigned char> memory(room);
    CHECK_EQ(MPI_Session_attach_buffer(session, memory.data(), room), MPI_SUCCESS);
    send(1, comm, 1);
    token(w, 0);
    MPI_Session_flush_buffer(session);
    send(2, comm, 2);
    MPI_Request request;
    MPI_Session_iflush_buffer(session, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    void* address = nullptr;
    int bytes = 0;
    MPI_Session_detach_buffer(session, &address, &bytes);
    CHECK(address == memory.data());
    CHECK_EQ(bytes, room);
  } else {
    token(w, 0);
    receive(0, 1, comm, 1);
    receive(0, 2, comm, 2);
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
}

// Whatever was made of the session's groups and communicators uses its buffer; closing the session waits for what is inside.
void heirs_of_a_session(const World& w) {
  MPI_Session session;
  MPI_Group world, group, rest, all;
  MPI_Comm comms[4];
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  const int second = 1;
  MPI_Group_incl(world, 1, &second, &group);
  MPI_Group_difference(world, group, &rest);
  MPI_Group_union(group, rest, &all);
  MPI_Comm_create_from_group(all, "org.heddle.test.heirs", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comms[0]);
  for (MPI_Group* g : {&world, &group, &rest, &all}) MPI_Group_free(g);
  MPI_Comm_dup(comms[0], &comms[1]);
  MPI_Comm_split(comms[1], 0, w.rank, &comms[2]);
  MPI_Comm_group(comms[2], &group);
  MPI_Comm_create_group(comms[2], group, 4, &comms[3]);
  MPI_Group_free(&group);
  std::vector<unsigned char> memory(room);
  const int tried = library_is_mpich() ? 3 : 4;  // MPICH 5.0.2 forgets the session in MPI_Comm_create_group
  for (int c = 0; c < tried; ++c) {
    int rank = -1, on_the_other_side = -1;
    MPI_Comm_rank(comms[c], &rank);
    on_the_other_side = 1 - rank;
    if (w.rank == 0) {
      std::vector<unsigned char> data(n);
      fill(data.data(), n, static_cast<std::uint64_t>(c));
      CHECK_EQ(error_class(MPI_Bsend(data.data(), n, MPI_BYTE, on_the_other_side, c, comms[c])), MPI_ERR_BUFFER);
      CHECK_EQ(MPI_Session_attach_buffer(session, memory.data(), room), MPI_SUCCESS);
      CHECK_EQ(MPI_Bsend(data.data(), n, MPI_BYTE, on_the_other_side, c, comms[c]), MPI_SUCCESS);
      token(w, 0);
      if (c == tried - 1) break;  // closing the session gives the buffer back
      void* address = nullptr;
      int bytes = 0;
      MPI_Session_detach_buffer(session, &address, &bytes);
    } else {
      token(w, 0);
      receive(on_the_other_side, c, comms[c], static_cast<std::uint64_t>(c));
    }
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  std::memset(memory.data(), 0xee, memory.size());
}

}  // namespace

int main() {
  const World w = init();
  communicator_buffer(w);
  flush_waits_for_what_was_there(w);
  automatic(w, false);
  automatic(w, true);
  session_buffer(w);
  heirs_of_a_session(w);
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
