// ranks: 1
// Alignment as asked, sizes of nothing and of too much, and what MPI_Free_mem says of pointers it must not free.
#include "../support.hpp"

using namespace test;

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

  MPI_Info info;
  MPI_Info_create(&info);
  for (const int alignment : {8, 64, 4096, 65536, 2 << 20}) {
    MPI_Info_set(info, "mpi_minimum_memory_alignment", std::to_string(alignment).c_str());
    void* first = nullptr;
    void* second = nullptr;
    CHECK_OK(MPI_Alloc_mem(100, info, &first));
    CHECK_OK(MPI_Alloc_mem(300'000, info, &second));
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(first) % static_cast<std::uintptr_t>(alignment), 0u);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(second) % static_cast<std::uintptr_t>(alignment), 0u);
    fill(first, 100, 1);
    fill(second, 300'000, 2);
    CHECK_FILLED(first, 100u, 1);
    CHECK_OK(MPI_Free_mem(first));
    CHECK_OK(MPI_Free_mem(second));
  }
  MPI_Info_free(&info);

  void* nothing = nullptr;
  void* nothing_else = nullptr;
  CHECK_OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &nothing));
  CHECK_OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &nothing_else));
  CHECK(nothing != nothing_else);
  CHECK_OK(MPI_Free_mem(nothing));
  CHECK_OK(MPI_Free_mem(nothing_else));

  void* much = nullptr;
  const int code = MPI_Alloc_mem(static_cast<MPI_Aint>(1) << 60, MPI_INFO_NULL, &much);
  CHECK_EQ(error_class(code), MPI_ERR_NO_MEM);
  CHECK_NAMES(error_text(code), std::to_string(1LL << 60));

  int on_the_stack = 0;
  CHECK_EQ(error_class(MPI_Free_mem(&on_the_stack)), MPI_ERR_BASE);
  unsigned char* block = nullptr;
  CHECK_OK(MPI_Alloc_mem(100'000, MPI_INFO_NULL, &block));
  const int inside = MPI_Free_mem(block + 64);
  CHECK_EQ(error_class(inside), MPI_ERR_BASE);
  CHECK_OK(MPI_Free_mem(block));
  const int again = MPI_Free_mem(block);
  CHECK_EQ(error_class(again), MPI_ERR_BASE);
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(block));
  CHECK_NAMES(error_text(again), address);
  return finish();
}
