// ranks: 1
// Envelope and contents of every constructor in both forms: the arguments come back in the standard's order, and a type
// rebuilt from them has the same bounds and moves the same bytes.
#include "../support.hpp"

using namespace test;

namespace {

struct Contents {
  MPI_Count ni = -1, na = -1, nc = -1, nt = -1;
  int combiner = -1;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Datatype> types;
};

Contents contents_of(MPI_Datatype type) {
  Contents c;
  CHECK_OK(MPI_Type_get_envelope_c(type, &c.ni, &c.na, &c.nc, &c.nt, &c.combiner));
  if (c.combiner == MPI_COMBINER_NAMED) return c;
  c.integers.assign(static_cast<std::size_t>(c.ni) + 1, -99);
  c.addresses.assign(static_cast<std::size_t>(c.na) + 1, -99);
  c.counts.assign(static_cast<std::size_t>(c.nc) + 1, -99);
  c.types.assign(static_cast<std::size_t>(c.nt) + 1, MPI_DATATYPE_NULL);
  CHECK_OK(MPI_Type_get_contents_c(type, c.ni, c.na, c.nc, c.nt, c.integers.data(), c.addresses.data(), c.counts.data(),
                                   c.types.data()));
  CHECK_EQ(c.integers.back(), -99);
  CHECK_EQ(c.addresses.back(), -99);
  CHECK_EQ(c.counts.back(), -99);
  CHECK(c.types.back() == MPI_DATATYPE_NULL);
  c.integers.pop_back();
  c.addresses.pop_back();
  c.counts.pop_back();
  c.types.pop_back();
  return c;
}

void drop(Contents& c) {
  for (MPI_Datatype& t : c.types)
    if (contents_of(t).combiner != MPI_COMBINER_NAMED) CHECK_OK(MPI_Type_free(&t));
}

using Ints = std::vector<int>;
using Aints = std::vector<MPI_Aint>;
using Counts = std::vector<MPI_Count>;

// Calls the constructor again with what came back.
MPI_Datatype rebuild(const Contents& c) {
  MPI_Datatype t = MPI_DATATYPE_NULL;
  const int* i = c.integers.data();
  const MPI_Aint* a = c.addresses.data();
  const MPI_Count* n = c.counts.data();
  const MPI_Datatype* d = c.types.data();
  const bool large = c.nc > 0;
  switch (c.combiner) {
    case MPI_COMBINER_DUP:
      CHECK_OK(MPI_Type_dup(d[0], &t));
      break;
    case MPI_COMBINER_CONTIGUOUS:
      CHECK_OK(large ? MPI_Type_contiguous_c(n[0], d[0], &t) : MPI_Type_contiguous(i[0], d[0], &t));
      break;
    case MPI_COMBINER_VECTOR:
      CHECK_OK(large ? MPI_Type_vector_c(n[0], n[1], n[2], d[0], &t) : MPI_Type_vector(i[0], i[1], i[2], d[0], &t));
      break;
    case MPI_COMBINER_HVECTOR:
      CHECK_OK(large ? MPI_Type_create_hvector_c(n[0], n[1], n[2], d[0], &t)
                     : MPI_Type_create_hvector(i[0], i[1], a[0], d[0], &t));
      break;
    case MPI_COMBINER_INDEXED:
      CHECK_OK(large ? MPI_Type_indexed_c(n[0], n + 1, n + 1 + n[0], d[0], &t)
                     : MPI_Type_indexed(i[0], i + 1, i + 1 + i[0], d[0], &t));
      break;
    case MPI_COMBINER_HINDEXED:
      CHECK_OK(large ? MPI_Type_create_hindexed_c(n[0], n + 1, n + 1 + n[0], d[0], &t)
                     : MPI_Type_create_hindexed(i[0], i + 1, a, d[0], &t));
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      CHECK_OK(large ? MPI_Type_create_indexed_block_c(n[0], n[1], n + 2, d[0], &t)
                     : MPI_Type_create_indexed_block(i[0], i[1], i + 2, d[0], &t));
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      CHECK_OK(large ? MPI_Type_create_hindexed_block_c(n[0], n[1], n + 2, d[0], &t)
                     : MPI_Type_create_hindexed_block(i[0], i[1], a, d[0], &t));
      break;
    case MPI_COMBINER_STRUCT:
      CHECK_OK(large ? MPI_Type_create_struct_c(n[0], n + 1, n + 1 + n[0], d, &t)
                     : MPI_Type_create_struct(i[0], i + 1, a, d, &t));
      break;
    case MPI_COMBINER_SUBARRAY:
      CHECK_OK(large
                   ? MPI_Type_create_subarray_c(i[0], n, n + i[0], n + 2 * i[0], i[1], d[0], &t)
                   : MPI_Type_create_subarray(i[0], i + 1, i + 1 + i[0], i + 1 + 2 * i[0], i[1 + 3 * i[0]], d[0], &t));
      break;
    case MPI_COMBINER_DARRAY: {
      const int k = i[2];
      CHECK_OK(large
                   ? MPI_Type_create_darray_c(i[0], i[1], k, n, i + 3, i + 3 + k, i + 3 + 2 * k, i[3 + 3 * k], d[0], &t)
                   : MPI_Type_create_darray(i[0], i[1], k, i + 3, i + 3 + k, i + 3 + 2 * k, i + 3 + 3 * k, i[3 + 4 * k],
                                            d[0], &t));
      break;
    }
    case MPI_COMBINER_RESIZED:
      CHECK_OK(large ? MPI_Type_create_resized_c(d[0], n[0], n[1], &t) : MPI_Type_create_resized(d[0], a[0], a[1], &t));
      break;
    default:
      check_fail(__FILE__, __LINE__, "combiner %d", c.combiner);
  }
  return t;
}

std::vector<unsigned char> packed(MPI_Datatype type) {
  static std::vector<unsigned char> memory;
  if (memory.empty()) {
    memory.resize(8192);
    fill(memory.data(), memory.size(), 11);
  }
  CHECK_OK(MPI_Type_commit(&type));
  int bytes = 0, position = 0;
  CHECK_OK(MPI_Type_size(type, &bytes));
  std::vector<unsigned char> out(static_cast<std::size_t>(2 * bytes) + 1);
  CHECK_OK(MPI_Pack(memory.data() + 4096, 2, type, out.data(), 2 * bytes, &position, MPI_COMM_SELF));
  CHECK_EQ(position, 2 * bytes);
  return out;
}

// What came back, against what was given; then the type made again against the first one. Frees the type.
void expect(MPI_Datatype type, int combiner, const Ints& integers, const Aints& addresses, const Counts& counts,
            const std::vector<MPI_Datatype>& types) {
  Contents c = contents_of(type);
  CHECK_EQ(c.combiner, combiner);
  CHECK(c.integers == integers);
  CHECK(c.addresses == addresses);
  CHECK(c.counts == counts);
  CHECK_EQ(c.types.size(), types.size());
  for (std::size_t k = 0; k < types.size(); ++k) {
    if (contents_of(types[k]).combiner == MPI_COMBINER_NAMED) CHECK(c.types[k] == types[k]);
  }

  int ni = -1, na = -1, nt = -1, same = -1;
  if (counts.empty()) {  // the int form sees the same
    CHECK_OK(MPI_Type_get_envelope(type, &ni, &na, &nt, &same));
    CHECK(ni == c.ni && na == c.na && nt == c.nt && same == combiner);
    Ints i(integers.size() + 1);
    Aints a(addresses.size() + 1);
    std::vector<MPI_Datatype> d(types.size() + 1);
    CHECK_OK(MPI_Type_get_contents(type, ni, na, nt, i.data(), a.data(), d.data()));
    i.pop_back();
    a.pop_back();
    CHECK(i == integers && a == addresses);
    for (int k = 0; k < nt; ++k) {
      MPI_Datatype& t = d[static_cast<std::size_t>(k)];
      if (contents_of(t).combiner != MPI_COMBINER_NAMED) CHECK_OK(MPI_Type_free(&t));
    }
    if (ni > 0 && library_is_heddle())
      CHECK_CLASS(MPI_Type_get_contents(type, ni - 1, na, nt, i.data(), a.data(), d.data()), MPI_ERR_ARG);
  } else {
    CHECK_CLASS(MPI_Type_get_envelope(type, &ni, &na, &nt, &same), MPI_ERR_TYPE);
    int some[64];
    MPI_Aint more[64];
    MPI_Datatype last[8];
    CHECK_CLASS(MPI_Type_get_contents(type, 64, 64, 8, some, more, last), MPI_ERR_TYPE);
  }

  MPI_Datatype again = rebuild(c);
  MPI_Count lb1, lb2, e1, e2;
  CHECK_OK(MPI_Type_get_extent_c(type, &lb1, &e1));
  CHECK_OK(MPI_Type_get_extent_c(again, &lb2, &e2));
  CHECK(lb1 == lb2 && e1 == e2);
  CHECK(packed(type) == packed(again));
  drop(c);
  CHECK_OK(MPI_Type_free(&type));
  // The copy stands on its own: what it was made of is gone but for its own references.
  CHECK(!packed(again).empty());
  CHECK_OK(MPI_Type_free(&again));
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype t, pair;

  const Contents named = contents_of(MPI_DOUBLE_INT);
  CHECK(named.combiner == MPI_COMBINER_NAMED && named.ni == 0 && named.na == 0 && named.nc == 0 && named.nt == 0);
  int none[1];
  MPI_Aint nowhere[1];
  CHECK_CLASS(MPI_Type_get_contents(MPI_INT, 0, 0, 0, none, nowhere, &t), MPI_ERR_TYPE);

  CHECK_OK(MPI_Type_contiguous(2, MPI_INT, &pair));  // a derived type to build on

  CHECK_OK(MPI_Type_dup(pair, &t));
  expect(t, MPI_COMBINER_DUP, {}, {}, {}, {pair});
  CHECK_OK(MPI_Type_contiguous(7, pair, &t));
  expect(t, MPI_COMBINER_CONTIGUOUS, {7}, {}, {}, {pair});
  CHECK_OK(MPI_Type_contiguous_c(7, MPI_CHAR, &t));
  expect(t, MPI_COMBINER_CONTIGUOUS, {}, {}, {7}, {MPI_CHAR});
  CHECK_OK(MPI_Type_vector(3, 2, -5, MPI_SHORT, &t));
  expect(t, MPI_COMBINER_VECTOR, {3, 2, -5}, {}, {}, {MPI_SHORT});
  CHECK_OK(MPI_Type_vector_c(3, 2, -5, pair, &t));
  expect(t, MPI_COMBINER_VECTOR, {}, {}, {3, 2, -5}, {pair});
  CHECK_OK(MPI_Type_create_hvector(3, 2, 50, pair, &t));
  expect(t, MPI_COMBINER_HVECTOR, {3, 2}, {50}, {}, {pair});
  CHECK_OK(MPI_Type_create_hvector_c(3, 2, 50, pair, &t));
  expect(t, MPI_COMBINER_HVECTOR, {}, {}, {3, 2, 50}, {pair});

  const int lengths[] = {1, 3, 0}, places[] = {4, -2, 9};
  const MPI_Aint addresses[] = {40, -20, 90};
  const MPI_Count clengths[] = {1, 3, 0}, cplaces[] = {4, -2, 9}, caddresses[] = {40, -20, 90};
  CHECK_OK(MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &t));
  expect(t, MPI_COMBINER_INDEXED, {3, 1, 3, 0, 4, -2, 9}, {}, {}, {MPI_DOUBLE});
  CHECK_OK(MPI_Type_indexed_c(3, clengths, cplaces, pair, &t));
  expect(t, MPI_COMBINER_INDEXED, {}, {}, {3, 1, 3, 0, 4, -2, 9}, {pair});
  CHECK_OK(MPI_Type_create_hindexed(3, lengths, addresses, pair, &t));
  expect(t, MPI_COMBINER_HINDEXED, {3, 1, 3, 0}, {40, -20, 90}, {}, {pair});
  CHECK_OK(MPI_Type_create_hindexed_c(3, clengths, caddresses, pair, &t));
  expect(t, MPI_COMBINER_HINDEXED, {}, {}, {3, 1, 3, 0, 40, -20, 90}, {pair});
  CHECK_OK(MPI_Type_create_indexed_block(3, 2, places, pair, &t));
  expect(t, MPI_COMBINER_INDEXED_BLOCK, {3, 2, 4, -2, 9}, {}, {}, {pair});
  CHECK_OK(MPI_Type_create_indexed_block_c(3, 2, cplaces, MPI_INT, &t));
  expect(t, MPI_COMBINER_INDEXED_BLOCK, {}, {}, {3, 2, 4, -2, 9}, {MPI_INT});
  CHECK_OK(MPI_Type_create_hindexed_block(3, 2, addresses, MPI_INT, &t));
  expect(t, MPI_COMBINER_HINDEXED_BLOCK, {3, 2}, {40, -20, 90}, {}, {MPI_INT});
  CHECK_OK(MPI_Type_create_hindexed_block_c(3, 2, caddresses, pair, &t));
  expect(t, MPI_COMBINER_HINDEXED_BLOCK, {}, {}, {3, 2, 40, -20, 90}, {pair});
  const MPI_Datatype members[] = {pair, MPI_CHAR, pair};
  CHECK_OK(MPI_Type_create_struct(3, lengths, addresses, members, &t));
  expect(t, MPI_COMBINER_STRUCT, {3, 1, 3, 0}, {40, -20, 90}, {}, {pair, MPI_CHAR, pair});
  CHECK_OK(MPI_Type_create_struct_c(3, clengths, caddresses, members, &t));
  expect(t, MPI_COMBINER_STRUCT, {}, {}, {3, 1, 3, 0, 40, -20, 90}, {pair, MPI_CHAR, pair});

  const int sizes[] = {5, 6}, parts[] = {2, 3}, starts[] = {1, 2};
  const MPI_Count csizes[] = {5, 6}, cparts[] = {2, 3}, cstarts[] = {1, 2};
  CHECK_OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, pair, &t));
  expect(t, MPI_COMBINER_SUBARRAY, {2, 5, 6, 2, 3, 1, 2, MPI_ORDER_FORTRAN}, {}, {}, {pair});
  CHECK_OK(MPI_Type_create_subarray_c(2, csizes, cparts, cstarts, MPI_ORDER_C, MPI_INT, &t));
  expect(t, MPI_COMBINER_SUBARRAY, {2, MPI_ORDER_C}, {}, {5, 6, 2, 3, 1, 2}, {MPI_INT});
  const int distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, 2},
            grid[] = {2, 3};
  const Ints shared = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 2, 3, MPI_ORDER_C};
  Ints expected = {6, 4, 2, 5, 6};
  expected.insert(expected.end(), shared.begin(), shared.end());
  CHECK_OK(MPI_Type_create_darray(6, 4, 2, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_INT, &t));
  expect(t, MPI_COMBINER_DARRAY, expected, {}, {}, {MPI_INT});
  expected = {6, 4, 2};
  expected.insert(expected.end(), shared.begin(), shared.end());
  CHECK_OK(MPI_Type_create_darray_c(6, 4, 2, csizes, distribs, dargs, grid, MPI_ORDER_C, pair, &t));
  expect(t, MPI_COMBINER_DARRAY, expected, {}, {5, 6}, {pair});
  CHECK_OK(MPI_Type_create_resized(pair, -8, 24, &t));
  expect(t, MPI_COMBINER_RESIZED, {}, {-8, 24}, {}, {pair});
  CHECK_OK(MPI_Type_create_resized_c(pair, -8, 24, &t));
  expect(t, MPI_COMBINER_RESIZED, {}, {}, {-8, 24}, {pair});

  // A handle from MPI_Type_get_contents is the user's: it works after everything else is gone, and is freed once.
  CHECK_OK(MPI_Type_contiguous(3, pair, &t));
  CHECK_OK(MPI_Type_free(&pair));
  Contents c = contents_of(t);
  CHECK_OK(MPI_Type_free(&t));
  MPI_Count size = 0;
  CHECK_OK(MPI_Type_size_c(c.types[0], &size));
  CHECK_EQ(size, 8);
  CHECK_OK(MPI_Type_free(&c.types[0]));
  return finish();
}
