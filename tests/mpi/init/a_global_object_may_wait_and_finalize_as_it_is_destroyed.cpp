// ranks: 2
// timeout: 60
// env: HEDDLE_SPIN_US=0 HEDDLE_SHM=0
// endpoints: none (it is about the end of a process)
// binary: own (its global object would be in every program of the folder)
// Programs leave MPI_Finalize, and messages before it, to the destructor of a global object. For one that was there before MPI_Init it comes
// after the exit handlers that MPI_Init registers, under a launcher that is not ours too; and after what a thread keeps (thread_local), with
// which nothing may be done any more where a thread sleeps.
#include <array>
#include <memory>

#include "../support.hpp"

using namespace test;
using namespace std::chrono_literals;

namespace {

// One rank sleeps in a receive until the other sends.
void wait_for_the_other(const World& w, int tag) {
  int value = -1;
  if (w.rank == 0) {
    MPI_Recv(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(value, tag);
  } else {
    std::this_thread::sleep_for(20ms);
    MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

struct Leaver {
  World w;
  ~Leaver() {
    // All small blocks that have been given back lately, filled with something.
    struct Block {
      std::size_t bytes;
      std::unique_ptr<unsigned char[]> memory;
    };
    static std::array<Block, 256> blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t bytes = 8 + 16 * (i % 16);
      blocks[i] = {bytes, std::make_unique<unsigned char[]>(bytes)};
      std::memset(blocks[i].memory.get(), 0xa5, bytes);
    }
    for (int tag = 100; tag < 104; ++tag) wait_for_the_other(w, tag);
    for (const Block& block : blocks)
      for (std::size_t k = 0; k < block.bytes; ++k) CHECK_EQ(int{block.memory[k]}, 0xa5);
    MPI_Finalize();
  }
} leaver;

}  // namespace

int main() {
  leaver.w = init();
  for (int tag = 0; tag < 4; ++tag) wait_for_the_other(leaver.w, tag);
  return 0;
}
