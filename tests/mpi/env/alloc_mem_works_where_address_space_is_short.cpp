// ranks: 2
// Under a limit on address space that leaves no room for the shared heap, MPI_Alloc_mem gives ordinary memory that carries
// messages as well and is freed as well.
#include <sys/resource.h>

#include "../support.hpp"

using namespace test;

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::puts("skipped: a sanitizer needs the address space that this test takes away");
  return 77;
#endif
  const rlimit limit{std::size_t{3500} << 20, std::size_t{3500} << 20};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const World w = init();
  constexpr std::size_t bytes = 1 << 20;
  void* out = nullptr;
  void* in = nullptr;
  CHECK_OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &out));
  CHECK_OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &in));
  fill(out, bytes, static_cast<std::uint64_t>(w.rank));
  MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - w.rank, 0, in, bytes, MPI_BYTE, 1 - w.rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_FILLED(in, bytes, static_cast<std::uint64_t>(1 - w.rank));
  CHECK_OK(MPI_Free_mem(out));
  CHECK_OK(MPI_Free_mem(in));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_EQ(error_class(MPI_Free_mem(in)), MPI_ERR_BASE);
  return finish();
}
