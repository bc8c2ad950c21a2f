// ranks: 2
// timeout: 120
// Messages whose two ends have different random layouts of equal size: what is packed from the receive buffer is what
// would have been packed from the send buffer, at sizes of every protocol, blocking, nonblocking, to another rank and
// to oneself.
#include <algorithm>

#include "../support.hpp"

using namespace test;

namespace {

// `type` with an extent that covers all its data: marks of a member further in would hide the members behind it.
MPI_Datatype covering(MPI_Datatype type, int hole) {
  MPI_Datatype t;
  MPI_Aint true_lb, true_extent;
  CHECK_OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
  CHECK_OK(MPI_Type_create_resized(type, 0, true_lb + true_extent + hole, &t));
  CHECK_OK(MPI_Type_free(&type));
  return t;
}

// A random layout of exactly `bytes` bytes in ascending order, so that no byte of a receive buffer is named twice.
MPI_Datatype random_layout(Random& random, int bytes, int depth) {
  MPI_Datatype t, inner;
  if (depth == 0 || bytes < 2) {
    CHECK_OK(MPI_Type_contiguous(bytes, MPI_BYTE, &t));
    return t;
  }
  switch (random.between(0, 3)) {
    case 0: {  // vector of something, and the rest behind it
      const int n = random.between(1, std::min(bytes, 40)), each = bytes / n, rest = bytes % n;
      inner = random_layout(random, each, depth - 1);
      MPI_Datatype parts[2], strided;
      MPI_Aint lb, extent, at[2];
      CHECK_OK(MPI_Type_get_extent(inner, &lb, &extent));
      CHECK_OK(MPI_Type_create_hvector(n, 1, extent + random.between(0, 9), inner, &strided));
      CHECK_OK(MPI_Type_free(&inner));
      parts[0] = strided;
      parts[1] = MPI_BYTE;
      at[0] = 0;
      CHECK_OK(MPI_Type_get_extent(strided, &lb, &extent));
      at[1] = lb + extent + random.between(0, 3);
      const int lengths[] = {1, rest};
      CHECK_OK(MPI_Type_create_struct(2, lengths, at, parts, &t));
      CHECK_OK(MPI_Type_free(&strided));
      return covering(t, 0);
    }
    case 1: {  // indexed blocks of random or of equal length
      std::vector<int> lengths, starts;
      const int most = random.between(1, 64);
      const bool equal = random.between(0, 1);
      int at = 0, left = bytes;
      while (left > 0) {
        const int n = std::min(left, equal ? most : random.between(1, most));
        lengths.push_back(n);
        starts.push_back(at);
        at += n + random.between(0, 5);
        left -= n;
      }
      CHECK_OK(MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), starts.data(), MPI_BYTE, &t));
      return t;
    }
    case 2: {  // struct of two layouts
      const int first = random.between(1, bytes - 1);
      MPI_Datatype parts[] = {random_layout(random, first, depth - 1), random_layout(random, bytes - first, depth - 1)};
      MPI_Aint lb, extent, at[2] = {0, 0};
      CHECK_OK(MPI_Type_get_extent(parts[0], &lb, &extent));
      at[1] = lb + extent + random.between(0, 8);
      const int ones[] = {1, 1};
      CHECK_OK(MPI_Type_create_struct(2, ones, at, parts, &t));
      for (MPI_Datatype& p : parts) CHECK_OK(MPI_Type_free(&p));
      return covering(t, 0);
    }
    default:  // with a hole behind
      return covering(random_layout(random, bytes, depth - 1), random.between(0, 16));
  }
}

struct Side {
  MPI_Datatype type;
  int count;
  std::vector<unsigned char> memory;

  Side(Random& random, int bytes, int repeat) : type(random_layout(random, bytes, 3)), count(repeat) {
    MPI_Aint lb, extent, true_lb, true_extent;
    CHECK_OK(MPI_Type_commit(&type));
    CHECK_OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK_OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    CHECK(true_lb >= 0);
    memory.resize(static_cast<std::size_t>(std::max<MPI_Aint>(0, extent) * repeat + true_lb + true_extent));
  }
  ~Side() { MPI_Type_free(&type); }
  Side(const Side&) = delete;
  std::vector<unsigned char> packed() const {
    int size = 0, position = 0;
    MPI_Type_size(type, &size);
    std::vector<unsigned char> out(static_cast<std::size_t>(size * count));
    CHECK_OK(MPI_Pack(memory.data(), count, type, out.data(), size * count, &position, MPI_COMM_SELF));
    return out;
  }
};

}  // namespace

int main() {
  const World w = init();
  Random random(2024);  // the same on both ranks
  for (int round = 0; round < 240; ++round) {
    static const int scales[] = {1, 9, 64, 300, 4000, 9000, 40000, 150000};
    const int bytes = random.between(1, scales[round % 8]), factor = random.between(1, 4);
    Side from(random, bytes, factor), to(random, bytes * factor, 1);
    fill(from.memory.data(), from.memory.size(), static_cast<std::uint64_t>(round));
    const std::vector<unsigned char> wanted = from.packed();
    const bool to_self = round % 5 == 4;
    const int sender = to_self ? w.rank : round / 2 % 2, receiver = to_self ? w.rank : 1 - sender;
    std::fill(to.memory.begin(), to.memory.end(), 0x77);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    if (w.rank == receiver)
      CHECK_OK(MPI_Irecv(to.memory.data(), to.count, to.type, sender, round, MPI_COMM_WORLD, &requests[0]));
    if (w.rank == sender) {
      if (to_self || round % 3)
        CHECK_OK(MPI_Isend(from.memory.data(), from.count, from.type, receiver, round, MPI_COMM_WORLD, &requests[1]));
      else
        CHECK_OK(MPI_Send(from.memory.data(), from.count, from.type, receiver, round, MPI_COMM_WORLD));
    }
    CHECK_OK(MPI_Wait(&requests[0], &status));
    CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    if (w.rank == receiver) {
      CHECK_EQ(count_of(status), static_cast<long long>(wanted.size()));
      CHECK(to.packed() == wanted);
      // The gaps stay as they were.
      std::vector<unsigned char> mask(to.memory.size(), 0);
      std::vector<unsigned char> ones(wanted.size(), 1);
      int position = 0;
      CHECK_OK(MPI_Unpack(ones.data(), static_cast<int>(ones.size()), &position, mask.data(), to.count, to.type,
                          MPI_COMM_SELF));
      for (std::size_t i = 0; i < mask.size(); ++i)
        if (!mask[i]) CHECK_EQ(to.memory[i], 0x77);
    }
  }
  return finish();
}
