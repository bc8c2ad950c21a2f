/// The speed of the datatype engine, one process: GB/s of payload through MPI_Pack and MPI_Unpack.
///
///   pack --type=vector8|vector64|indexed|struct --seconds=0.2
///
/// vector8: 16384 single doubles, every other one. vector64: 2048 blocks of 8 doubles with gaps of 8. indexed: 2048
/// blocks of 1..16 doubles at uneven distances. struct: a vector of 2048 structs {char; int; double[3]} inside a
/// contiguous pair inside a struct with a trailing int, as C lays them out.
#include "bench.h"

#include <stddef.h>

struct Inner {
  char c;
  int i;
  double d[3];
};

struct Pair {
  struct Inner inner[2];
  int tail;
};

struct Test {
  MPI_Datatype type;
  int count;
  char* user;
  char* packed;
  int packed_size;
  int pack;
};

static MPI_Datatype make_indexed(void) {
  enum { BLOCKS = 2048 };
  static int lengths[BLOCKS], places[BLOCKS];
  int at = 0;
  for (int i = 0; i < BLOCKS; i++) {
    lengths[i] = 1 + (i * 7) % 16;
    places[i] = at;
    at += lengths[i] + 1 + (i * 5) % 7;
  }
  MPI_Datatype type;
  MPI_Type_indexed(BLOCKS, lengths, places, MPI_DOUBLE, &type);
  return type;
}

static MPI_Datatype make_struct(void) {
  int lengths[3] = {1, 1, 3};
  MPI_Aint places[3] = {offsetof(struct Inner, c), offsetof(struct Inner, i), offsetof(struct Inner, d)};
  MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE}, inner, inner_sized, pair, pair_sized, all;
  MPI_Type_create_struct(3, lengths, places, types, &inner);
  MPI_Type_create_resized(inner, 0, sizeof(struct Inner), &inner_sized);
  int pair_lengths[2] = {2, 1};
  MPI_Aint pair_places[2] = {offsetof(struct Pair, inner), offsetof(struct Pair, tail)};
  MPI_Datatype pair_types[2] = {inner_sized, MPI_INT};
  MPI_Type_create_struct(2, pair_lengths, pair_places, pair_types, &pair);
  MPI_Type_create_resized(pair, 0, sizeof(struct Pair), &pair_sized);
  MPI_Type_vector(1024, 1, 2, pair_sized, &all);
  MPI_Type_free(&inner);
  MPI_Type_free(&inner_sized);
  MPI_Type_free(&pair);
  MPI_Type_free(&pair_sized);
  return all;
}

static double run(void* state, long iterations) {
  struct Test* t = state;
  for (long i = 0; i < iterations; i++) {
    int position = 0;
    if (t->pack)
      MPI_Pack(t->user, t->count, t->type, t->packed, t->packed_size, &position, MPI_COMM_SELF);
    else
      MPI_Unpack(t->packed, t->packed_size, &position, t->user, t->count, t->type, MPI_COMM_SELF);
  }
  return 0;
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  const char* name = bench_option(argc, argv, "type", "vector8");
  double seconds = bench_option_double(argc, argv, "seconds", 0.2);
  struct Test t = {.count = 1};
  if (strcmp(name, "vector8") == 0)
    MPI_Type_vector(16384, 1, 2, MPI_DOUBLE, &t.type);
  else if (strcmp(name, "vector64") == 0)
    MPI_Type_vector(2048, 8, 16, MPI_DOUBLE, &t.type);
  else if (strcmp(name, "indexed") == 0)
    t.type = make_indexed();
  else if (strcmp(name, "struct") == 0)
    t.type = make_struct();
  else
    bench_fail("--type is vector8, vector64, indexed or struct");
  MPI_Type_commit(&t.type);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(t.type, &lower, &extent);
  int payload, size;
  MPI_Type_size(t.type, &payload);
  MPI_Pack_size(t.count, t.type, MPI_COMM_SELF, &size);
  t.packed_size = size;
  t.user = malloc((size_t)extent);
  t.packed = malloc((size_t)size);
  for (MPI_Aint i = 0; i < extent; i++) t.user[i] = (char)(i * 31 + 5);
  memset(t.packed, 0, (size_t)size);

  // What is packed must be what unpacking puts back.
  int position = 0;
  MPI_Pack(t.user, t.count, t.type, t.packed, t.packed_size, &position, MPI_COMM_SELF);
  char *second = malloc((size_t)size), *copy = calloc(1, (size_t)extent);
  memset(second, 0, (size_t)size);
  int from = 0, again = 0;
  MPI_Unpack(t.packed, position, &from, copy, t.count, t.type, MPI_COMM_SELF);
  MPI_Pack(copy, t.count, t.type, second, size, &again, MPI_COMM_SELF);
  if (position != again || memcmp(t.packed, second, (size_t)position) != 0) bench_fail("pack and unpack disagree");

  t.pack = 1;
  bench_report("pack", 1e-9 * payload / bench_measure(MPI_COMM_SELF, run, &t, seconds));
  t.pack = 0;
  bench_report("unpack", 1e-9 * payload / bench_measure(MPI_COMM_SELF, run, &t, seconds));
  // The bare machine beside it: as many bytes by one memcpy.
  double start = bench_now();
  enum { COPIES = 2000 };
  for (int i = 0; i < COPIES; i++) {
    memcpy(second, t.packed, (size_t)payload);
    __asm__ volatile("" : : "r"(second) : "memory");
  }
  bench_report("memcpy", 1e-9 * payload * COPIES / (bench_now() - start));
  free(copy);
  free(second);
  free(t.packed);
  free(t.user);
  MPI_Type_free(&t.type);
  MPI_Finalize();
  return 0;
}
