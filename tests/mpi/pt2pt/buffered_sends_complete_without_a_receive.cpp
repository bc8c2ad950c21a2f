// ranks: 2
// timeout: 60
// endpoints: none (the process's one send buffer)
// MPI_Bsend completes locally however long the receiver waits; the space promised by MPI_Pack_size and
// MPI_BSEND_OVERHEAD suffices; space is used again; overflow is MPI_ERR_BUFFER and harms nothing; detach delivers.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int go = 90;

int space_for(int count, MPI_Datatype type) {
  int bytes = 0;
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &bytes);
  return bytes + MPI_BSEND_OVERHEAD;
}

void sends_before_any_receive(const World& w) {
  for (const int n : {0, 1, 100, 10'000, 500'000}) {
    constexpr int messages = 5;
    if (w.rank == 0) {
      std::vector<int> data(static_cast<std::size_t>(n) + 1);
      std::vector<unsigned char> pool(static_cast<std::size_t>(messages * space_for(n, MPI_INT)));
      MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
      for (int m = 0; m < messages; ++m) {
        fill(data.data(), static_cast<std::size_t>(n) * 4, static_cast<std::uint64_t>(m));
        if (m % 2) {
          MPI_Request request;
          MPI_Ibsend(data.data(), n, MPI_INT, 1, m, MPI_COMM_WORLD, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
          MPI_Bsend(data.data(), n, MPI_INT, 1, m, MPI_COMM_WORLD);
        }
        std::memset(data.data(), 0xEE, static_cast<std::size_t>(n) * 4);  // the data are the library's now
      }
      MPI_Send(nullptr, 0, MPI_INT, 1, go, MPI_COMM_WORLD);
      void* address = nullptr;
      int bytes = 0;
      MPI_Buffer_detach(&address, &bytes);  // returns when all are on their way out of the buffer
      CHECK(address == pool.data());
      CHECK_EQ(bytes, pool.size());
      std::memset(pool.data(), 0xDD, pool.size());
    } else {
      std::vector<int> data(static_cast<std::size_t>(n) + 1);
      MPI_Recv(nullptr, 0, MPI_INT, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int m = messages - 1; m >= 0; --m) {
        MPI_Recv(data.data(), n, MPI_INT, 0, m, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_FILLED(data.data(), static_cast<std::size_t>(n) * 4, static_cast<std::uint64_t>(m));
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Space for one message serves any number, as long as each is received before the next: what is done is given back.
void space_is_reused(const World& w) {
  constexpr int n = 3'000, rounds = 500;
  if (w.rank == 0) {
    std::vector<unsigned char> pool(static_cast<std::size_t>(2 * space_for(n, MPI_INT)));
    std::vector<int> data(n);
    MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
    for (int r = 0; r < rounds; ++r) {
      data[0] = r;
      MPI_Bsend(data.data(), 1 + r % n, MPI_INT, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
  } else {
    std::vector<int> data(n);
    for (int r = 0; r < rounds; ++r) {
      MPI_Recv(data.data(), n, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(data[0], r);
      MPI_Send(nullptr, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
  }
}

void overflow_is_an_error(const World& w) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  constexpr int n = 1'000'000;  // larger than anything a library sends without the receiver
  std::vector<unsigned char> data(n), got(n);
  if (w.rank == 0) {
    std::vector<unsigned char> pool(static_cast<std::size_t>(space_for(n, MPI_BYTE)));
    MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
    fill(data.data(), n, 1);
    CHECK_EQ(MPI_Bsend(data.data(), n, MPI_BYTE, 1, 5, MPI_COMM_WORLD), MPI_SUCCESS);
    const int code = MPI_Bsend(data.data(), n, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
    CHECK_EQ(error_class(code), MPI_ERR_BUFFER);
    if (library_is_heddle()) CHECK_NAMES(error_text(code), std::to_string(n));
    MPI_Send(nullptr, 0, MPI_INT, 1, go, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_INT, 1, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fill(data.data(), n, 2);
    CHECK_EQ(MPI_Bsend(data.data(), n, MPI_BYTE, 1, 5, MPI_COMM_WORLD), MPI_SUCCESS);  // the space is free again
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
    CHECK_EQ(bytes, pool.size());
    // Without a buffer even one byte is too much.
    const int none = MPI_Bsend(data.data(), 1, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
    CHECK_EQ(error_class(none), MPI_ERR_BUFFER);
    if (library_is_heddle()) CHECK_NAMES(error_text(none), "no buffer is attached");
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(got.data(), n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_FILLED(got.data(), n, 1);
    MPI_Send(nullptr, 0, MPI_INT, 0, go, MPI_COMM_WORLD);
    MPI_Recv(got.data(), n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_FILLED(got.data(), n, 2);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Barrier(MPI_COMM_WORLD);
}

void derived_types(const World& w) {
  MPI_Datatype column;
  MPI_Type_vector(2'000, 3, 7, MPI_INT, &column);
  MPI_Type_commit(&column);
  if (w.rank == 0) {
    std::vector<int> grid(14'000);
    for (int i = 0; i < 14'000; ++i) grid[static_cast<std::size_t>(i)] = i;
    std::vector<unsigned char> pool(static_cast<std::size_t>(space_for(1, column)));
    MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
    MPI_Bsend(grid.data(), 1, column, 1, 1, MPI_COMM_WORLD);
    std::fill(grid.begin(), grid.end(), -1);
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
  } else {
    std::vector<int> line(6'000);
    MPI_Recv(line.data(), 6'000, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6'000; ++i) CHECK_EQ(line[static_cast<std::size_t>(i)], i / 3 * 7 + i % 3);
  }
  MPI_Type_free(&column);
}

// Both ends buffer a large message to each other and to themselves before either receives.
void no_deadlock_between_two(const World& w) {
  constexpr int n = 300'000;
  std::vector<unsigned char> pool(static_cast<std::size_t>(2 * space_for(n, MPI_INT)));
  std::vector<int> data(n, w.rank), got(n);
  MPI_Buffer_attach_c(pool.data(), static_cast<MPI_Count>(pool.size()));
  MPI_Bsend(data.data(), n, MPI_INT, 1 - w.rank, 1, MPI_COMM_WORLD);
  MPI_Bsend(data.data(), n, MPI_INT, w.rank, 1, MPI_COMM_WORLD);
  for (const int from : {w.rank, 1 - w.rank}) {
    MPI_Recv(got.data(), n, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (const int x : got) CHECK_EQ(x, from);
  }
  void* address;
  MPI_Count bytes;
  MPI_Buffer_detach_c(&address, &bytes);
  CHECK(address == pool.data());
  CHECK_EQ(bytes, pool.size());
}

}  // namespace

int main() {
  const World w = init();
  sends_before_any_receive(w);
  space_is_reused(w);
  overflow_is_an_error(w);
  derived_types(w);
  no_deadlock_between_two(w);
  return finish();
}
