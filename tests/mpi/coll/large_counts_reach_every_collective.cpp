// ranks: 2
// timeout: 180
// The _c forms: 64-bit arrays of counts and displacements, and counts above 2^31. The large buffers are one megabyte of
// memory mapped again and again, so that they cost address space and not memory.
#include <sys/mman.h>

#include "forms.hpp"

using namespace test;

namespace {

constexpr MPI_Count mib = 1 << 20, large = (MPI_Count{1} << 31) + 3 * mib;

/// `bytes` of address space that repeat one megabyte of shared memory.
class Repeated {
 public:
  explicit Repeated(MPI_Count bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    const int fd = memfd_create("repeated", 0);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, mib), 0);
    data_ = static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(data_ != MAP_FAILED);
    for (std::size_t at = 0; at < bytes_; at += mib)
      CHECK(mmap(data_ + at, mib, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
  }
  ~Repeated() { munmap(data_, bytes_); }
  Repeated(const Repeated&) = delete;
  unsigned char* data() { return data_; }

 private:
  std::size_t bytes_;
  unsigned char* data_;
};

thread_local long operations = 0;
void or_bytes(void* in, void* inout, int* length, MPI_Datatype*) {
  ++operations;
  CHECK_GT(*length, 0);
  // Only the ends: what matters here is that the calls cover everything, piece by piece.
  auto* from = static_cast<unsigned char*>(in);
  auto* to = static_cast<unsigned char*>(inout);
  to[0] = static_cast<unsigned char>(to[0] | from[0]);
  to[*length - 1] = static_cast<unsigned char>(to[*length - 1] | from[*length - 1]);
}

void arrays(const World& w) {
  const int n = w.size;
  std::vector<MPI_Count> counts(static_cast<std::size_t>(n), 2);
  std::vector<MPI_Aint> displs, bytes;
  for (int r = 0; r < n; ++r) displs.push_back(3 * r), bytes.push_back(12 * r);
  const int own[2] = {w.rank * 2, w.rank * 2 + 1};
  std::vector<int> all(static_cast<std::size_t>(3 * n), -1), back(all.size(), -1);
  CHECK_OK(MPI_Allgatherv_c(own, 2, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, MPI_COMM_WORLD));
  for (int r = 0; r < n; ++r) CHECK_EQ(all[static_cast<std::size_t>(3 * r + 1)], 2 * r + 1);
  CHECK_OK(MPI_Alltoallv_c(all.data(), counts.data(), displs.data(), MPI_INT, back.data(), counts.data(), displs.data(),
                           MPI_INT, MPI_COMM_WORLD));
  for (int r = 0; r < n; ++r) CHECK_EQ(back[static_cast<std::size_t>(3 * r)], 2 * w.rank);
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(n), MPI_INT);
  back.assign(back.size(), -1);
  CHECK_OK(MPI_Alltoallw_c(all.data(), counts.data(), bytes.data(), types.data(), back.data(), counts.data(),
                           bytes.data(), types.data(), MPI_COMM_WORLD));
  for (int r = 0; r < n; ++r) CHECK_EQ(back[static_cast<std::size_t>(3 * r + 1)], 2 * w.rank + 1);
  std::vector<int> gathered(all.size(), -1);
  CHECK_OK(MPI_Gatherv_c(own, 2, MPI_INT, gathered.data(), counts.data(), displs.data(), MPI_INT, 1, MPI_COMM_WORLD));
  int part[2] = {-1, -1};
  CHECK_OK(MPI_Scatterv_c(gathered.data(), counts.data(), displs.data(), MPI_INT, part, 2, MPI_INT, 1, MPI_COMM_WORLD));
  CHECK_EQ(part[1], w.rank * 2 + 1);
  const std::vector<int> ones(static_cast<std::size_t>(2 * n), 1);
  CHECK_OK(MPI_Reduce_scatter_c(ones.data(), part, counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(part[0], n);
  MPI_Request request;
  CHECK_OK(
      MPI_Iallgatherv_c(own, 2, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, MPI_COMM_WORLD, &request));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(all[1], 1);
}

}  // namespace

int main() {
  const World w = init();
  arrays(w);
  {
    Repeated buffer(large);
    fill(buffer.data(), mib, w.rank == 0 ? 42 : 7);
    CHECK_OK(MPI_Bcast_c(buffer.data(), large, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_FILLED(buffer.data(), static_cast<std::size_t>(mib), 42u);
    if (!library_is_mpich()) {  // 5.0.2 asserts that the count of a local reduction fits an int
      Repeated in(large);
      in.data()[0] = 2;
      buffer.data()[0] = 1;
      MPI_Op op;
      CHECK_OK(MPI_Op_create(or_bytes, 1, &op));
      CHECK_OK(MPI_Reduce_local_c(in.data(), buffer.data(), large, MPI_BYTE, op));
      CHECK_GE(operations, 2);  // the int of the function's length holds less than that
      CHECK_EQ(buffer.data()[0] & 3, 3);
      CHECK_OK(MPI_Op_free(&op));
    }
  }
  return finish();
}
