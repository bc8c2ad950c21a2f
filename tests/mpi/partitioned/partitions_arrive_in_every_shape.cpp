// ranks: 1 2 4
// timeout: 100
// Every rank sends to the next one, itself if it is alone: partition counts that differ at the two ends and do not divide each other, datatypes
// with gaps, no data at all, sizes on both sides of every limit, both orders of initialization, receives that start late. In every round the
// partitions become ready in another order; one that MPI_Parrived reports is whole, and nothing is written before MPI_Start.
#include "../support.hpp"

#include <numeric>

using namespace test;

namespace {

constexpr int rounds = 8;

struct Shape {
  int out, in;             // partitions of the sender, of the receiver
  int out_count, in_count; // elements of each
};

// `out * out_count == in * in_count`: elements of eight bytes, at the receiver with or without gaps between their halves.
constexpr Shape shapes[] = {{1, 1, 1, 1},        {4, 4, 3, 3},       {6, 4, 2, 3},         {7, 3, 3, 7},      {1, 5, 10, 2},       {5, 1, 2, 10},
                            {16, 16, 128, 128},  {3, 4, 4000, 3000}, {8, 2, 20000, 80000}, {2, 9, 90000, 20000}, {300, 7, 7, 300}, {4, 6, 0, 0},
                            {3000, 3000, 1, 1},  {0, 0, 5, 7},       {2, 0, 0, 3}};

std::uint64_t value(int rank, int round, std::size_t i) { return mix(static_cast<std::uint64_t>(rank) << 48 ^ static_cast<std::uint64_t>(round) << 32 ^ i); }

// Element i of a buffer of elements `stride` ints apart whose two halves are `gap` ints apart.
struct Layout {
  std::size_t gap, stride;
  MPI_Datatype type;
};

void run(const World& w, const Shape& shape, const Layout& from, const Layout& to, bool receive_first, bool start_late, std::uint64_t seed) {
  const int next = (w.rank + 1) % w.size, previous = (w.rank + w.size - 1) % w.size;
  const std::size_t n = static_cast<std::size_t>(shape.out) * static_cast<std::size_t>(shape.out_count);
  CHECK_EQ(n, static_cast<std::size_t>(shape.in) * static_cast<std::size_t>(shape.in_count));
  std::vector<std::uint32_t> out(n * from.stride + 4, 0x55555555), in(n * to.stride + 4);
  MPI_Request requests[2];
  const auto init_receive = [&] {
    CHECK_OK(MPI_Precv_init(in.data(), shape.in, shape.in_count, to.type, previous, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  };
  if (receive_first) init_receive();
  CHECK_OK(MPI_Psend_init(out.data(), shape.out, shape.out_count, from.type, next, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
  if (!receive_first) init_receive();
  Random random(seed + static_cast<std::uint64_t>(w.rank));
  for (int round = 0; round < rounds; ++round) {
    std::fill(in.begin(), in.end(), 0xabababab);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t v = value(w.rank, round, i);
      out[i * from.stride] = static_cast<std::uint32_t>(v);
      out[i * from.stride + from.gap] = static_cast<std::uint32_t>(v >> 32);
    }
    if (start_late) CHECK_OK(MPI_Start(&requests[0])); else CHECK_OK(MPI_Startall(2, requests));
    std::vector<int> order(static_cast<std::size_t>(shape.out));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    switch (round % 3) {
      case 0:
        for (const int partition : order) CHECK_OK(MPI_Pready(partition, requests[0]));
        break;
      case 1: CHECK_OK(MPI_Pready_list(shape.out, order.data(), requests[0])); break;
      default:
        if (shape.out > 1) CHECK_OK(MPI_Pready_range(shape.out / 2, shape.out - 1, requests[0]));
        if (shape.out) CHECK_OK(MPI_Pready_range(0, shape.out > 1 ? shape.out / 2 - 1 : 0, requests[0]));
    }
    if (start_late) {
      if (round % 2) MPI_Barrier(MPI_COMM_WORLD);
      for (const std::uint32_t word : in) CHECK_EQ(word, 0xabababab);
      CHECK_OK(MPI_Start(&requests[1]));
    }
    const auto check = [&](std::size_t i) {
      const std::uint64_t v = value(previous, round, i);
      if (in[i * to.stride] != static_cast<std::uint32_t>(v) || in[i * to.stride + to.gap] != static_cast<std::uint32_t>(v >> 32))
        check_fail(__FILE__, __LINE__, "element %zu of %zu is wrong in round %d, %d to %d partitions", i, n, round, shape.out, shape.in);
    };
    if (round % 2) {
      for (int i = 0; i < shape.in; ++i) {
        const int partition = (i * 7 + round) % shape.in;
        int flag = 0;
        while (!flag) CHECK_OK(MPI_Parrived(requests[1], partition, &flag));
        for (int k = 0; k < shape.in_count; ++k) check(static_cast<std::size_t>(partition) * static_cast<std::size_t>(shape.in_count) + static_cast<std::size_t>(k));
      }
    }
    MPI_Status statuses[2];
    CHECK_OK(MPI_Waitall(2, requests, statuses));
    CHECK_EQ(statuses[1].MPI_SOURCE, previous);
    CHECK_EQ(statuses[1].MPI_TAG, 7);
    MPI_Count bytes = -1;
    MPI_Get_count_c(&statuses[1], MPI_BYTE, &bytes);
    CHECK_EQ(bytes, static_cast<MPI_Count>(n * 8));
    for (std::size_t i = 0; i < n; ++i) check(i);
    std::size_t strange = 0;  // what lies in the gaps is nobody's
    for (const std::uint32_t word : in) strange += word != 0xabababab;
    CHECK_LE(strange, 2 * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 1; k < to.stride; ++k)
        if (k != to.gap) CHECK_EQ(in[i * to.stride + k], 0xabababab);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Datatype gaps, wide;
  MPI_Type_vector(2, 1, 2, MPI_INT32_T, &gaps);  // two ints, one apart: extent 3
  MPI_Datatype resized;
  MPI_Type_create_resized(gaps, 0, 20, &resized);
  MPI_Type_contiguous(2, MPI_INT32_T, &wide);
  MPI_Type_commit(&resized);
  MPI_Type_commit(&wide);
  const Layout layouts[] = {{1, 2, wide}, {2, 5, resized}};
  std::uint64_t seed = 1;
  for (const Shape& shape : shapes)
    for (int mode = 0; mode < 4; ++mode) run(w, shape, layouts[seed % 2], layouts[seed / 2 % 2], mode % 2, mode / 2, seed), ++seed;
  // Where elements of the receiver are divided between partitions of the sender.
  {
    const int next = (w.rank + 1) % w.size, previous = (w.rank + w.size - 1) % w.size;
    std::vector<std::int32_t> out(30), in(15 * 5, -1);
    MPI_Request requests[2];
    MPI_Psend_init(out.data(), 10, 3, MPI_INT32_T, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in.data(), 5, 3, resized, previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Type_free(&resized);  // the request keeps it
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 30; ++i) out[static_cast<std::size_t>(i)] = w.rank * 1000 + round * 100 + i;
      MPI_Startall(2, requests);
      for (int i = 9; i >= 0; --i) MPI_Pready(i, requests[0]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      for (int i = 0; i < 30; ++i) CHECK_EQ(in[static_cast<std::size_t>(i / 2 * 5 + i % 2 * 2)], previous * 1000 + round * 100 + i);
      for (int i = 0; i < 15; ++i) CHECK_EQ(in[static_cast<std::size_t>(i * 5 + 1)], -1);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  }
  MPI_Type_free(&gaps);
  MPI_Type_free(&wide);
  return finish();
}
