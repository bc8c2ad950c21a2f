// ranks: 1 2
// threads: 4
// timeout: 60
// Four threads send buffered messages out of one attached buffer, and each out of its communicator's own; all arrive,
// in order per thread; overflow in one thread is that thread's error alone.
#include "team.hpp"

using namespace test;

namespace {

constexpr int threads = 4, messages = 400, ints = 700;

void receive(const World& w, MPI_Comm comm, int t) {
  std::vector<int> data(ints);
  const int from = (w.rank + w.size - 1) % w.size;
  for (int i = 0; i < messages; ++i) {
    MPI_Status status;
    MPI_Recv(data.data(), ints, MPI_INT, from, t, comm, &status);
    CHECK_EQ(count_of(status, MPI_INT), 1 + i % ints);
    CHECK_EQ(data[0], t * messages + i);
    CHECK_EQ(data[static_cast<std::size_t>(i % ints)], i ? i : t * messages);
  }
}

// Sends until the buffer is full, then lets the receiver drain some.
void send(const World& w, MPI_Comm comm, int t) {
  std::vector<int> data(ints);
  for (int i = 0; i < messages; ++i) {
    data[static_cast<std::size_t>(i % ints)] = i;
    data[0] = t * messages + i;
    const int to = (w.rank + 1) % w.size;
    CHECK(eventually([&] {
      const int code = MPI_Bsend(data.data(), 1 + i % ints, MPI_INT, to, t, comm);
      if (code != MPI_SUCCESS) CHECK_EQ(error_class(code), MPI_ERR_BUFFER);
      return code == MPI_SUCCESS;
    }));
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(threads + 1);
  for (int t = 0; t <= threads; ++t) MPI_Comm_set_errhandler(comms[t], MPI_ERRORS_RETURN);
  for (const bool own : {false, true}) {
    std::vector<unsigned char> pool(200'000);
    std::vector<std::vector<unsigned char>> pools(threads, std::vector<unsigned char>(50'000));
    if (own)
      for (int t = 0; t < threads; ++t)
        CHECK_OK(MPI_Comm_attach_buffer(comms[t], pools[static_cast<std::size_t>(t)].data(), 50'000));
    else
      CHECK_OK(MPI_Buffer_attach(pool.data(), 200'000));
    run_threads(2 * threads, [&](int k) {
      const int t = k / 2;
      const MPI_Comm comm = comms[own ? t : threads];
      if (k % 2)
        send(w, comm, t);
      else
        receive(w, comm, t);
    });
    void* address;
    int bytes;
    if (own)
      for (int t = 0; t < threads; ++t) CHECK_OK(MPI_Comm_detach_buffer(comms[t], &address, &bytes));
    else
      CHECK_OK(MPI_Buffer_detach(&address, &bytes));
  }
  comms.free();
  return finish();
}
