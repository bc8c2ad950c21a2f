// ranks: 1 2 3 5
// timeout: 120
// Each predefined operation on each datatype that it is defined for, in every reduction, against plain loops.
#include "../op_cases.hpp"
#include "forms.hpp"

using namespace test;

namespace {

/// Elements of an OpCase.
class Vector {
 public:
  Vector(const OpCase& c, int count) : case_(&c), bytes_(c.size * static_cast<std::size_t>(count)) {}
  Vector(const OpCase& c, int rank, int count) : Vector(c, count) {
    for (int i = 0; i < count; ++i) c.make(mix(static_cast<std::uint64_t>(rank * 7919 + i)), at(i));
  }
  void* data() { return bytes_.data(); }
  void* at(int i) { return bytes_.data() + case_->size * static_cast<std::size_t>(i); }
  const void* at(int i) const { return bytes_.data() + case_->size * static_cast<std::size_t>(i); }
  int count() const { return static_cast<int>(bytes_.size() / case_->size); }

 private:
  const OpCase* case_;
  std::vector<unsigned char> bytes_;
};

Vector combine(const OpCase& c, const Vector& a, const Vector& b) {
  Vector result(c, a.count());
  for (int i = 0; i < a.count(); ++i) c.combine(a.at(i), b.at(i), result.at(i));
  return result;
}

void check_case(const OpCase& c, int count) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const int rank = rank_of(comm), n = size_of(comm), total = count * n;
  std::vector<Vector> combined{Vector(c, 0, total)};  // [r]: the values of ranks 0 to r
  for (int r = 1; r < n; ++r) combined.push_back(combine(c, combined.back(), Vector(c, r, total)));
  Vector own(c, rank, total);
  const void* from = own.data();
  const auto expect = [&](const Vector& got, const Vector& wanted, int first, int length) {
    for (int i = 0; i < length; ++i)
      if (!c.equal(got.at(i), wanted.at(first + i)))
        check_fail(__FILE__, __LINE__, "%s: element %d is wrong", c.what, i);
  };
  // What differs between the forms does not depend on the type: all of them for one type of each kind.
  const bool every_form =
      c.type == MPI_INT || c.type == MPI_DOUBLE || c.type == MPI_C_DOUBLE_COMPLEX || c.type == MPI_DOUBLE_INT;
  for (const Form form : all_forms) {
    if (form != Form::blocking && !every_form) continue;
    Vector result(c, total);
    allreduce(form, comm, from, result.data(), total, c.type, c.op);
    expect(result, combined.back(), 0, total);
    result = own;
    allreduce_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    expect(result, combined.back(), 0, total);
    for (int root = 0; root < n; ++root) {
      result = own;
      reduce(form, comm, from, rank == root ? result.data() : nullptr, count, c.type, c.op, root);
      if (rank == root) expect(result, combined.back(), 0, count);
    }
    const int root = n - 1;
    result = own;
    reduce_once(form, comm, rank == root ? MPI_IN_PLACE : from, rank == root ? result.data() : nullptr, total, c.type,
                c.op, root);
    if (rank == root) expect(result, combined.back(), 0, total);
    result = own;
    reduce_scatter_block(form, comm, from, result.data(), count, c.type, c.op);
    expect(result, combined.back(), rank * count, count);
    result = own;
    reduce_scatter_block_once(form, comm, MPI_IN_PLACE, result.data(), count, c.type, c.op);
    expect(result, combined.back(), rank * count, count);
    std::vector<int> counts(static_cast<std::size_t>(n), 0);
    counts[0] = total - (n - 1) / 2;
    for (int r = 1; r <= (n - 1) / 2; ++r) counts[static_cast<std::size_t>(r)] = 1;
    int start = 0;
    for (int r = 0; r < rank; ++r) start += counts[static_cast<std::size_t>(r)];
    result = own;
    reduce_scatter(form, comm, from, result.data(), counts.data(), c.type, c.op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    result = own;
    reduce_scatter_once(form, comm, MPI_IN_PLACE, result.data(), counts.data(), c.type, c.op);
    expect(result, combined.back(), start, counts[static_cast<std::size_t>(rank)]);
    scan(form, comm, from, result.data(), total, c.type, c.op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    result = own;
    scan_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    expect(result, combined[static_cast<std::size_t>(rank)], 0, total);
    exscan(form, comm, from, result.data(), total, c.type, c.op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
    result = own;
    exscan_once(form, comm, MPI_IN_PLACE, result.data(), total, c.type, c.op);
    if (rank > 0) expect(result, combined[static_cast<std::size_t>(rank - 1)], 0, total);
  }
  Vector a(c, 1, total), b(c, 2, total);  // the local form: inout = in op inout
  const Vector expected = combine(c, a, b);
  CHECK_OK(MPI_Reduce_local(a.data(), b.data(), total, c.type, c.op));
  expect(b, expected, 0, total);
}

}  // namespace

int main() {
  init();
  for (const OpCase& c : OpCases().all) check_case(c, 13);
  return finish();
}
