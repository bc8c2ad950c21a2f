// ranks: 2
// timeout: 60
// Strided, indexed, nested and struct layouts on either side of a message, of few and of many elements, so that every
// protocol packs and unpacks; gaps stay as they were; MPI_BOTTOM with absolute addresses; partial receives.
#include <algorithm>
#include <functional>

#include "../support.hpp"

using namespace test;

namespace {

// A layout of `ints` ints: the type, its count, and the place (in ints) of element i in the buffer.
struct Layout {
  const char* name;
  MPI_Datatype type;
  int count;
  std::vector<int> places;
  int span;  // ints in the buffer
};

Layout contiguous(int ints) {
  Layout l{"contiguous", MPI_INT, ints, {}, ints};
  for (int i = 0; i < ints; ++i) l.places.push_back(i);
  return l;
}

Layout vector(int ints, int block, int stride) {
  Layout l{"vector", MPI_DATATYPE_NULL, 1, {}, ints / block * stride};
  MPI_Type_vector(ints / block, block, stride, MPI_INT, &l.type);
  for (int i = 0; i < ints; ++i) l.places.push_back(i / block * stride + i % block);
  return l;
}

// Elements laid out from the end to the beginning.
Layout reversed(int ints) {
  Layout l{"hvector with a negative stride", MPI_DATATYPE_NULL, 1, {}, ints};
  std::vector<int> lengths(static_cast<std::size_t>(ints), 1), places;
  for (int i = 0; i < ints; ++i) places.push_back(ints - 1 - i);
  MPI_Type_indexed(ints, lengths.data(), places.data(), MPI_INT, &l.type);
  l.places = places;
  return l;
}

Layout irregular(int ints) {
  Layout l{"indexed", MPI_DATATYPE_NULL, 1, {}, 0};
  std::vector<int> lengths, starts;
  Random random(7);
  int at = 0;
  for (int done = 0; done < ints;) {
    const int length = std::min(ints - done, random.between(1, 5));
    at += random.between(0, 3);
    lengths.push_back(length);
    starts.push_back(at);
    for (int k = 0; k < length; ++k) l.places.push_back(at++);
    done += length;
  }
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), starts.data(), MPI_INT, &l.type);
  l.span = at;
  return l;
}

// Pairs of ints, one int apart, resized so that consecutive counts interleave: 0 2 | 1 3 would overlap; use extent 4.
Layout resized_struct(int ints) {
  Layout l{"resized struct", MPI_DATATYPE_NULL, ints / 2, {}, ints / 2 * 5};
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 3 * sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Datatype plain;
  MPI_Type_create_struct(2, lengths, places, types, &plain);
  MPI_Type_create_resized(plain, 0, 5 * sizeof(int), &l.type);
  MPI_Type_free(&plain);
  for (int i = 0; i < ints; ++i) l.places.push_back(i / 2 * 5 + i % 2 * 3);
  return l;
}

Layout nested(int ints) {
  Layout l{"vector of a vector", MPI_DATATYPE_NULL, ints / 8, {}, 0};
  MPI_Datatype inner;
  MPI_Type_vector(2, 2, 3, MPI_INT, &inner);  // 0 1 3 4, extent 5
  MPI_Type_create_hvector(2, 1, 6 * sizeof(int), inner, &l.type);  // and again at 6: extent 11
  MPI_Type_free(&inner);
  static const int one[] = {0, 1, 3, 4, 6, 7, 9, 10};
  for (int i = 0; i < ints; ++i) l.places.push_back(i / 8 * 11 + one[i % 8]);
  l.span = ints / 8 * 11;
  return l;
}

using Maker = std::function<Layout(int)>;

void exchange(const World& w, const Maker& send, const Maker& receive, int ints, bool nonblocking) {
  Layout out = send(ints), in = receive(ints);
  for (Layout* l : {&out, &in})
    if (l->type != MPI_INT) MPI_Type_commit(&l->type);
  std::vector<int> source(static_cast<std::size_t>(out.span), -1), target(static_cast<std::size_t>(in.span), -2);
  if (w.rank == 0) {
    for (int i = 0; i < ints; ++i) source[static_cast<std::size_t>(out.places[static_cast<std::size_t>(i)])] = i * 3;
    MPI_Send(source.data(), out.count, out.type, 1, ints % 1000, MPI_COMM_WORLD);
  } else {
    MPI_Status status;
    if (nonblocking) {
      MPI_Request request;
      MPI_Irecv(target.data(), in.count, in.type, 0, ints % 1000, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, &status);
    } else {
      MPI_Probe(0, ints % 1000, MPI_COMM_WORLD, &status);
      MPI_Recv(target.data(), in.count, in.type, 0, ints % 1000, MPI_COMM_WORLD, &status);
    }
    CHECK_EQ(count_of(status, MPI_INT), ints);
    CHECK_EQ(count_of(status, in.type), in.count);
    std::vector<int> expected(static_cast<std::size_t>(in.span), -2);
    for (int i = 0; i < ints; ++i) expected[static_cast<std::size_t>(in.places[static_cast<std::size_t>(i)])] = i * 3;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (target[i] != expected[i]) {
        fprintf(stderr, "%s to %s, %d ints, at int %zu\n", out.name, in.name, ints, i);
        CHECK_EQ(target[i], expected[i]);
      }
  }
  for (Layout* l : {&out, &in})
    if (l->type != MPI_INT) MPI_Type_free(&l->type);
}

void absolute_addresses(const World& w) {
  int a[3] = {w.rank, w.rank + 10, w.rank + 20};
  double b = w.rank + 0.5;
  char c[5] = {0, 1, 2, 3, static_cast<char>(w.rank)};
  MPI_Aint places[3];
  MPI_Get_address(a, &places[0]);
  MPI_Get_address(&b, &places[1]);
  MPI_Get_address(c, &places[2]);
  const int lengths[] = {3, 1, 5};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  MPI_Datatype all;
  MPI_Type_create_struct(3, lengths, places, types, &all);
  MPI_Type_commit(&all);
  if (w.rank == 0) {
    MPI_Send(MPI_BOTTOM, 1, all, 1, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(MPI_BOTTOM, 1, all, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; ++i) CHECK_EQ(a[i], 10 * i);
    CHECK(b == 0.5);
    CHECK_EQ(c[4], 0);
  }
  MPI_Type_free(&all);
}

// Fewer elements than the receive allows, ending in the middle of a block: only those are written.
void partial(const World& w) {
  for (const int sent : {1, 5, 6'001, 100'003}) {
    constexpr int room = 120'000;
    MPI_Datatype triples;
    MPI_Type_vector(room / 3, 3, 4, MPI_INT, &triples);
    MPI_Type_commit(&triples);
    if (w.rank == 0) {
      std::vector<int> data(static_cast<std::size_t>(sent));
      for (int i = 0; i < sent; ++i) data[static_cast<std::size_t>(i)] = i;
      MPI_Send(data.data(), sent, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
      std::vector<int> data(room / 3 * 4, -1);
      MPI_Status status;
      MPI_Recv(data.data(), 1, triples, 0, 2, MPI_COMM_WORLD, &status);
      int count = 0, elements = 0;
      MPI_Get_count(&status, triples, &count);
      MPI_Get_elements(&status, triples, &elements);
      CHECK_EQ(count, MPI_UNDEFINED);
      CHECK_EQ(elements, sent);
      for (int i = 0; i < room / 3 * 4; ++i) {
        const int element = i / 4 * 3 + i % 4;
        CHECK_EQ(data[static_cast<std::size_t>(i)], i % 4 == 3 || element >= sent ? -1 : element);
      }
    }
    MPI_Type_free(&triples);
  }
}

// The type is freed while messages that use it are pending.
void type_freed_while_pending(const World& w) {
  constexpr int n = 60'000;
  MPI_Datatype every_other;
  MPI_Type_vector(n, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  std::vector<int> data(2 * n, w.rank), in(2 * n, -1);
  MPI_Request requests[2];
  MPI_Irecv(in.data(), 1, every_other, 1 - w.rank, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(data.data(), 1, every_other, 1 - w.rank, 3, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&every_other);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2 * n; ++i) CHECK_EQ(in[static_cast<std::size_t>(i)], i % 2 ? -1 : 1 - w.rank);
}

}  // namespace

int main() {
  const World w = init();
  const Maker makers[] = {contiguous, [](int n) { return vector(n, 1, 2); }, [](int n) { return vector(n, 4, 7); },
                          reversed,   irregular,                            resized_struct, nested};
  for (const int ints : {8, 24, 1'000, 8'192, 40'000, 400'000})
    for (const auto& send : makers)
      for (const auto& receive : makers) exchange(w, send, receive, ints, ints % 3 == 0);
  absolute_addresses(w);
  partial(w);
  type_freed_while_pending(w);
  return finish();
}
