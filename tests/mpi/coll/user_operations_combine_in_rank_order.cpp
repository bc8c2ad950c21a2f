// ranks: 1 2 3 4 5
// timeout: 120
// MPI_Op_create(_c): operations that do not commute combine in rank order at every root and length; they see the user's
// datatype, derived ones included; an operation freed while a collective uses it stays usable for it. Results of
// absolute addresses, at MPI_BOTTOM, are as good a place as any; elements lie as the compiler aligns them.
#include "forms.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

using namespace test;

namespace {

// x → a x + b modulo 2^32: composition is associative and does not commute.
struct Affine {
  std::uint32_t a, b;
  bool operator==(const Affine& o) const { return a == o.a && b == o.b; }
};
Affine after(Affine first, Affine second) { return {second.a * first.a, second.a * first.b + second.b}; }

thread_local MPI_Datatype affine = MPI_DATATYPE_NULL, gappy = MPI_DATATYPE_NULL;
std::atomic<long> calls{0};

// Any thread of the process may run an operation for any of its ranks: the datatypes of all of them.
std::mutex made_mutex;
std::vector<MPI_Datatype> made;

bool is_affine(MPI_Datatype type) {
  const std::lock_guard lock(made_mutex);
  return std::find(made.begin(), made.end(), type) != made.end();
}

void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  ++calls;
  if (!is_affine(*type)) check_fail(__FILE__, __LINE__, "the function got another datatype");
  auto* from = static_cast<Affine*>(in);
  auto* to = static_cast<Affine*>(inout);
  for (int i = 0; i < *length; ++i) to[i] = after(from[i], to[i]);
}
void compose_c(void* in, void* inout, MPI_Count* length, MPI_Datatype*) {
  auto* from = static_cast<Affine*>(in);
  auto* to = static_cast<Affine*>(inout);
  for (MPI_Count i = 0; i < *length; ++i) to[i] = after(from[i], to[i]);
}

// Elements of two affine maps with a hole between; the hole must not be touched.
struct Gappy {
  Affine first;
  std::uint32_t hole;
  Affine second;
};
void compose_gappy(void* in, void* inout, int* length, MPI_Datatype*) {
  auto* from = static_cast<Gappy*>(in);
  auto* to = static_cast<Gappy*>(inout);
  for (int i = 0; i < *length; ++i) {
    to[i].first = after(from[i].first, to[i].first);
    to[i].second = after(from[i].second, to[i].second);
  }
}

Affine value(int rank, int i) {
  const std::uint64_t random = mix(static_cast<std::uint64_t>(rank * 100003 + i));
  return {static_cast<std::uint32_t>(random) | 1, static_cast<std::uint32_t>(random >> 32)};
}
Affine combined(int last, int i) {
  Affine result = value(0, i);
  for (int r = 1; r <= last; ++r) result = after(result, value(r, i));
  return result;
}

void expect(const std::vector<Affine>& got, int first, int length, int last_rank) {
  for (int i = 0; i < length; ++i)
    if (!(got[static_cast<std::size_t>(i)] == combined(last_rank, first + i)))
      check_fail(__FILE__, __LINE__, "element %d (of the ranks up to %d) is wrong", first + i, last_rank);
}

void test_order(const World& w, MPI_Op op, int each) {
  const int n = w.size, total = each * n;
  std::vector<Affine> own, result;
  for (int i = 0; i < total; ++i) own.push_back(value(w.rank, i));
  const void* from = own.data();
  for (const Form form : all_forms) {
    result = own;
    allreduce(form, MPI_COMM_WORLD, from, static_cast<void*>(result.data()), total, affine, op);
    expect(result, 0, total, n - 1);
    result = own;
    allreduce_once(form, MPI_COMM_WORLD, MPI_IN_PLACE, static_cast<void*>(result.data()), total, affine, op);
    expect(result, 0, total, n - 1);
    for (int root = 0; root < n; ++root) {
      result = own;
      reduce_once(form, MPI_COMM_WORLD, w.rank == root && root % 2 ? MPI_IN_PLACE : from,
                  static_cast<void*>(w.rank == root ? result.data() : nullptr), total, affine, op, root);
      if (w.rank == root) expect(result, 0, total, n - 1);
    }
    result = own;
    reduce_scatter_block(form, MPI_COMM_WORLD, from, static_cast<void*>(result.data()), each, affine, op);
    expect(result, w.rank * each, each, n - 1);
    scan(form, MPI_COMM_WORLD, from, static_cast<void*>(result.data()), total, affine, op);
    expect(result, 0, total, w.rank);
    exscan(form, MPI_COMM_WORLD, from, static_cast<void*>(result.data()), total, affine, op);
    if (w.rank > 0) expect(result, 0, total, w.rank - 1);
  }
}

void test_derived(const World& w) {
  MPI_Op op;
  CHECK_OK(MPI_Op_create(compose_gappy, 0, &op));
  for (const int count : {1, 100, 5000}) {
    std::vector<Gappy> own, result;
    for (int i = 0; i < count; ++i) own.push_back({value(w.rank, 2 * i), 5, value(w.rank, 2 * i + 1)});
    result.assign(own.size(), Gappy{{1, 1}, 6, {1, 1}});
    CHECK_OK(MPI_Allreduce(own.data(), result.data(), count, gappy, op, MPI_COMM_WORLD));
    for (int i = 0; i < count; ++i) {
      const Gappy& g = result[static_cast<std::size_t>(i)];
      CHECK(g.first == combined(w.size - 1, 2 * i));
      CHECK(g.second == combined(w.size - 1, 2 * i + 1));
      CHECK_EQ(own[static_cast<std::size_t>(i)].hole, 5u);
    }
  }
  CHECK_OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
}

// The result lies where the datatype says, not where the buffer begins; both buffers have the one datatype.
void test_absolute(const World& w, MPI_Op op, int count) {
  std::vector<Affine> own, result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) own.push_back(value(w.rank, i));
  MPI_Aint from_address, to_address;
  CHECK_OK(MPI_Get_address(own.data(), &from_address));
  CHECK_OK(MPI_Get_address(result.data(), &to_address));
  const int one = 1;
  MPI_Datatype there;
  CHECK_OK(MPI_Type_create_hindexed(1, &one, &to_address, affine, &there));
  CHECK_OK(MPI_Type_commit(&there));
  const void* from = reinterpret_cast<const void*>(MPI_Aint_diff(from_address, to_address));
  for (const Form form : all_forms) {
    for (const bool in_place : {false, true}) {
      const auto restart = [&] {  // stays where it is
        for (std::size_t i = 0; i < own.size(); ++i) result[i] = in_place ? own[i] : Affine{};
      };
      const void* send = in_place ? MPI_IN_PLACE : from;
      restart();
      allreduce_once(form, MPI_COMM_WORLD, send, MPI_BOTTOM, count, there, op);
      expect(result, 0, count, w.size - 1);
      for (int root = 0; root < w.size; ++root) {
        restart();
        reduce_once(form, MPI_COMM_WORLD, w.rank == root ? send : from, MPI_BOTTOM, count, there, op, root);
        if (w.rank == root) expect(result, 0, count, w.size - 1);
      }
      restart();
      scan_once(form, MPI_COMM_WORLD, send, MPI_BOTTOM, count, there, op);
      expect(result, 0, count, w.rank);
    }
  }
  CHECK_OK(MPI_Type_free(&there));
}

// Reads and writes where the datatype says.
void compose_there(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Aint low, stretch;
  CHECK_OK(MPI_Type_get_true_extent(*type, &low, &stretch));
  const auto at = [low](void* buffer) { return reinterpret_cast<Affine*>(reinterpret_cast<MPI_Aint>(buffer) + low); };
  for (int i = 0; i < *length; ++i) at(inout)[i] = after(at(in)[i], at(inout)[i]);
}

// A structure whose first member does not travel: the data begin at an odd multiple of 8 bytes, the structure does not.
struct alignas(16) Aligned {
  double own;
  double value;
  long double more;
};
std::atomic<long> misplaced{0};
void add_aligned(void* in, void* inout, int* length, MPI_Datatype*) {
  for (void* buffer : {in, inout})
    if (reinterpret_cast<std::uintptr_t>(buffer) % alignof(Aligned)) ++misplaced;
  auto* from = static_cast<Aligned*>(in);
  auto* to = static_cast<Aligned*>(inout);
  for (int i = 0; i < *length && !misplaced; ++i) to[i].value += from[i].value, to[i].more += from[i].more;
}

void test_alignment(const World& w) {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {offsetof(Aligned, value), offsetof(Aligned, more)};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_LONG_DOUBLE};
  MPI_Datatype members, aligned;
  CHECK_OK(MPI_Type_create_struct(2, lengths, places, types, &members));
  CHECK_OK(MPI_Type_create_resized(members, 0, sizeof(Aligned), &aligned));
  CHECK_OK(MPI_Type_free(&members));
  CHECK_OK(MPI_Type_commit(&aligned));
  MPI_Op op;
  CHECK_OK(MPI_Op_create(add_aligned, 1, &op));
  for (const int count : {1, 700}) {
    std::vector<Aligned> own(static_cast<std::size_t>(count), Aligned{-1, 1.0 + w.rank, 2.0L}), result = own;
    for (const Form form : all_forms) {
      const void* from = own.data();
      void* to = result.data();
      allreduce(form, MPI_COMM_WORLD, from, to, count, aligned, op);
      CHECK_EQ(misplaced.load(), 0);
      CHECK(result[0].own == -1 && result[0].value == w.size * (w.size + 1) / 2 && result[0].more == 2.0L * w.size);
      reduce(form, MPI_COMM_WORLD, from, to, count, aligned, op, w.size - 1);
      reduce_scatter_block(form, MPI_COMM_WORLD, from, to, count / w.size, aligned, op);
      scan(form, MPI_COMM_WORLD, from, to, count, aligned, op);
      CHECK_EQ(misplaced.load(), 0);
      CHECK(result[0].value == (w.rank + 1) * (w.rank + 2) / 2);
    }
  }
  CHECK_OK(MPI_Op_free(&op));
  CHECK_OK(MPI_Type_free(&aligned));
}

void test_freed_while_used(const World& w) {
  MPI_Op op;
  CHECK_OK(MPI_Op_create(compose, 0, &op));
  std::vector<Affine> own, result(3000);
  for (int i = 0; i < 3000; ++i) own.push_back(value(w.rank, i));
  MPI_Datatype type;
  CHECK_OK(MPI_Type_dup(affine, &type));
  MPI_Request request;
  CHECK_OK(MPI_Iallreduce(own.data(), result.data(), 3000, affine, op, MPI_COMM_WORLD, &request));
  CHECK_OK(MPI_Op_free(&op));
  CHECK_OK(MPI_Type_free(&type));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  expect(result, 0, 3000, w.size - 1);
}

}  // namespace

int main() {
  const World w = init();
  CHECK_OK(MPI_Type_contiguous(2, MPI_UINT32_T, &affine));
  CHECK_OK(MPI_Type_commit(&affine));
  {
    const std::lock_guard lock(made_mutex);
    made.push_back(affine);
  }
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 12};
  const MPI_Datatype types[] = {affine, affine};
  CHECK_OK(MPI_Type_create_struct(2, lengths, places, types, &gappy));
  CHECK_OK(MPI_Type_commit(&gappy));

  MPI_Op plain, large;
  CHECK_OK(MPI_Op_create(compose, 0, &plain));
  CHECK_OK(MPI_Op_create_c(compose_c, 0, &large));
  int commutes = -1;
  CHECK_OK(MPI_Op_commutative(plain, &commutes));
  CHECK_EQ(commutes, 0);
  CHECK_OK(MPI_Op_commutative(MPI_SUM, &commutes));
  CHECK_EQ(commutes, 1);
  for (const int each : {1, 3, 700, 3000}) {
    test_order(w, plain, each);
    test_order(w, large, each);
  }
  if (w.size > 1) CHECK_GT(calls.load(), 0);
  Affine a = value(1, 1), b = value(2, 1);
  const Affine both = after(a, b);
  CHECK_OK(MPI_Reduce_local(&a, &b, 1, affine, plain));
  CHECK(b == both);
  test_derived(w);
  MPI_Op there;
  CHECK_OK(MPI_Op_create(compose_there, 0, &there));
  for (const int count : {1, 2500}) test_absolute(w, there, count);
  CHECK_OK(MPI_Op_free(&there));
  test_alignment(w);
  test_freed_while_used(w);
  CHECK_OK(MPI_Op_free(&plain));
  CHECK_OK(MPI_Op_free(&large));
  CHECK_OK(MPI_Type_free(&gappy));
  CHECK_OK(MPI_Type_free(&affine));
  return finish();
}
