// ranks: 2
// timeout: 60
// Standard, buffered, synchronous and ready sends; blocking, nonblocking and persistent; int and MPI_Count; to a posted
// receive and (all but ready) to one that is posted later; at sizes of every protocol.
#include "../support.hpp"

using namespace test;

namespace {

template <typename Count>
struct Mode {
  const char* name;
  bool ready;
  int (*send)(const void*, Count, MPI_Datatype, int, int, MPI_Comm);
  int (*isend)(const void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*init)(const void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
};

template <typename Count>
struct Receive {
  int (*recv)(void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
  int (*irecv)(void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*init)(void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
};

const Mode<int> modes[] = {
    {"standard", false, MPI_Send, MPI_Isend, MPI_Send_init},
    {"buffered", false, MPI_Bsend, MPI_Ibsend, MPI_Bsend_init},
    {"synchronous", false, MPI_Ssend, MPI_Issend, MPI_Ssend_init},
    {"ready", true, MPI_Rsend, MPI_Irsend, MPI_Rsend_init},
};
const Mode<MPI_Count> modes_c[] = {
    {"standard", false, MPI_Send_c, MPI_Isend_c, MPI_Send_init_c},
    {"buffered", false, MPI_Bsend_c, MPI_Ibsend_c, MPI_Bsend_init_c},
    {"synchronous", false, MPI_Ssend_c, MPI_Issend_c, MPI_Ssend_init_c},
    {"ready", true, MPI_Rsend_c, MPI_Irsend_c, MPI_Rsend_init_c},
};
const Receive<int> receive{MPI_Recv, MPI_Irecv, MPI_Recv_init};
const Receive<MPI_Count> receive_c{MPI_Recv_c, MPI_Irecv_c, MPI_Recv_init_c};

constexpr std::size_t sizes[] = {0, 1, 8, 63, 1024, 8192, 65536, 1 << 20};
enum Form { blocking, nonblocking, persistent };
constexpr int go_tag = 9;

template <typename Count>
void send_one(const Mode<Count>& mode, Form form, std::vector<unsigned char>& data, int tag) {
  const auto count = static_cast<Count>(data.size());
  MPI_Request request = MPI_REQUEST_NULL;
  switch (form) {
    case blocking: CHECK_EQ(mode.send(data.data(), count, MPI_BYTE, 1, tag, MPI_COMM_WORLD), MPI_SUCCESS); return;
    case nonblocking:
      CHECK_EQ(mode.isend(data.data(), count, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
      CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
      break;
    case persistent:
      CHECK_EQ(mode.init(data.data(), count, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
      CHECK_EQ(MPI_Start(&request), MPI_SUCCESS);
      CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
      CHECK(request != MPI_REQUEST_NULL);
      MPI_Request_free(&request);
      break;
  }
  CHECK(request == MPI_REQUEST_NULL);
}

template <typename Count>
void receive_one(const Receive<Count>& api, Form form, bool post_first, std::size_t size, std::uint64_t seed, int tag) {
  Guarded buffer(size);
  const auto count = static_cast<Count>(size);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status = dirty_status();
  if (!post_first) {  // tell the sender to go on before the receive exists
    MPI_Send(nullptr, 0, MPI_BYTE, 0, go_tag, MPI_COMM_WORLD);
    if (form == blocking) {
      CHECK_EQ(api.recv(buffer.data(), count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status), MPI_SUCCESS);
    }
  }
  if (post_first || form != blocking) {
    if (form == persistent) {
      CHECK_EQ(api.init(buffer.data(), count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
      CHECK_EQ(MPI_Start(&request), MPI_SUCCESS);
    } else {
      CHECK_EQ(api.irecv(buffer.data(), count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
    }
    if (post_first) MPI_Send(nullptr, 0, MPI_BYTE, 0, go_tag, MPI_COMM_WORLD);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    if (form == persistent) MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  }
  CHECK_EQ(status.MPI_SOURCE, 0);
  CHECK_EQ(status.MPI_TAG, tag);
  CHECK_EQ(count_of(status), size);
  CHECK_FILLED(buffer.data(), size, seed);
  CHECK(buffer.untouched_outside(size));
}

template <typename Count, std::size_t n>
void all(const Mode<Count> (&table)[n], const Receive<Count>& api, int rank) {
  std::uint64_t seed = 1;
  int tag = 100;
  for (const auto& mode : table)
    for (const Form form : {blocking, nonblocking, persistent})
      for (const bool post_first : {true, false}) {
        if (mode.ready && !post_first) continue;
        for (const std::size_t size : sizes) {
          ++seed, ++tag;
          if (rank == 0) {
            std::vector<unsigned char> data(size);
            fill(data.data(), size, seed);
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, go_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            send_one(mode, form, data, tag);
          } else {
            receive_one(api, form, post_first, size, seed, tag);
          }
        }
      }
}

}  // namespace

int main() {
  const World w = init();
  CHECK_EQ(w.size, 2);
  std::vector<unsigned char> pool((4 << 20) + 64 * MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
  all(modes, receive, w.rank);
  all(modes_c, receive_c, w.rank);
  void* address = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&address, &bytes);
  CHECK(address == pool.data());
  CHECK_EQ(bytes, pool.size());
  return finish();
}
