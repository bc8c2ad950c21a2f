// Which operations are defined for which datatypes, and the arithmetic of the types that few programs use.
#include "core/op.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/basic_type.hpp"
#include "core/datatype_envelope.hpp"
#include "core/half.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

Datatype& type_of(MPI_Datatype handle) { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(handle)); }
Op& op_of(MPI_Op handle) { return *builtin_op(reinterpret_cast<std::uintptr_t>(handle)); }

const MPI_Op all_ops[] = {MPI_SUM,  MPI_MIN,  MPI_MAX, MPI_PROD, MPI_BAND,   MPI_BOR,
                          MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC};

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  error_text(code, text);
  return text;
}

TEST(Op, every_predefined_handle_is_found_and_every_other_value_is_not) {
  std::set<std::uintptr_t> known;
  for (MPI_Op handle : all_ops) known.insert(reinterpret_cast<std::uintptr_t>(handle));
  known.insert(reinterpret_cast<std::uintptr_t>(MPI_REPLACE));
  known.insert(reinterpret_cast<std::uintptr_t>(MPI_NO_OP));
  for (std::uintptr_t value = 0; value < 4096; ++value) {
    Op* op = builtin_op(value);
    ASSERT_EQ(op != nullptr, known.count(value) == 1) << std::hex << value;
    if (op) {
      EXPECT_EQ(op->predefined_handle(), value);
      EXPECT_TRUE(op->builtin);
    }
  }
  for (MPI_Op handle : all_ops) EXPECT_TRUE(op_of(handle).commutative);
}

// The standard's table of groups, by the names of the types.
std::string group_of(const BasicInfo& info) {
  using R = Representation;
  switch (info.representation) {
    case R::i8:
    case R::i16:
    case R::i32:
    case R::i64:
    case R::i128:
    case R::u8:
    case R::u16:
    case R::u32:
    case R::u64:
      return "integer";
    case R::f16:
    case R::f32:
    case R::f64:
    case R::f80:
    case R::f128:
      return "real";
    case R::c_f16:
    case R::c_f32:
    case R::c_f64:
    case R::c_f80:
    case R::c_f128:
      return "complex";
    case R::l8:
    case R::l16:
    case R::l32:
    case R::l64:
    case R::l128:
      return "logical";
    case R::bytes:
      return std::string(info.name) == "MPI_BYTE" || std::string(info.name) == "MPI_PACKED" ? "bytes" : "";
    case R::character:
      return std::string(info.name) == "MPI_CHAR" ? "integer" : "";  // more than the standard asks for
    case R::pair:
      return "pair";
    case R::none:
      break;
  }
  return "";
}

TEST(Op, operations_are_defined_for_exactly_the_types_of_their_groups) {
  const auto groups = [](MPI_Op op) -> std::set<std::string> {
    if (op == MPI_MIN || op == MPI_MAX) return {"integer", "real"};
    if (op == MPI_SUM || op == MPI_PROD) return {"integer", "real", "complex"};
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) return {"integer", "bytes"};
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) return {"integer", "logical"};
    return {"pair"};
  };
  int types = 0;
  for (const BasicInfo& info : basic_types) {
    if (!info.name) continue;
    ++types;
    Datatype& type = *builtin_datatype(0x200u + info.value);
    for (MPI_Op handle : all_ops) {
      const int code = check_op(op_of(handle), type);
      const bool defined = groups(handle).count(group_of(info)) == 1;
      EXPECT_EQ(code == MPI_SUCCESS, defined) << op_name(op_of(handle)) << " on " << info.name;
      if (code != MPI_SUCCESS) {
        EXPECT_EQ(error_class(code), MPI_ERR_OP);
        EXPECT_NE(text_of(code).find(info.name), std::string::npos) << text_of(code);
        EXPECT_NE(text_of(code).find(op_name(op_of(handle))), std::string::npos) << text_of(code);
      }
    }
    EXPECT_EQ(error_class(check_op(op_of(MPI_REPLACE), type)), MPI_ERR_OP);
    EXPECT_EQ(error_class(check_op(op_of(MPI_NO_OP), type)), MPI_ERR_OP);
  }
  EXPECT_GT(types, 60);
}

TEST(Op, derived_datatypes_need_a_user_defined_operation_but_duplicates_do_not) {
  Datatype *two = nullptr, *same = nullptr;
  ASSERT_EQ(make_contiguous(2, type_of(MPI_INT), false, two), MPI_SUCCESS);
  ASSERT_EQ(commit(*two), MPI_SUCCESS);
  ASSERT_EQ(make_dup(type_of(MPI_INT), same), MPI_SUCCESS);
  EXPECT_EQ(error_class(check_op(op_of(MPI_SUM), *two)), MPI_ERR_OP);
  EXPECT_NE(text_of(check_op(op_of(MPI_SUM), *two)).find("MPI_Op_create"), std::string::npos);
  EXPECT_EQ(check_op(op_of(MPI_SUM), *same), MPI_SUCCESS);
  Op user;
  EXPECT_EQ(check_op(user, *two), MPI_SUCCESS);
  release(*two);
  release(*same);
}

template <typename T>
std::vector<T> applied(MPI_Op op, MPI_Datatype type, std::vector<T> in, std::vector<T> inout) {
  apply(op_of(op), in.data(), inout.data(), static_cast<MPI_Count>(in.size()), type_of(type));
  return inout;
}

TEST(Op, integer_arithmetic_wraps_around) {
  EXPECT_EQ(applied<int>(MPI_SUM, MPI_INT, {INT_MAX, INT_MIN}, {1, -1}), (std::vector<int>{INT_MIN, INT_MAX}));
  EXPECT_EQ(applied<short>(MPI_PROD, MPI_SHORT, {SHRT_MIN}, {-1}), (std::vector<short>{SHRT_MIN}));
  EXPECT_EQ(applied<unsigned short>(MPI_PROD, MPI_UNSIGNED_SHORT, {65535}, {65535}), (std::vector<unsigned short>{1}));
  EXPECT_EQ(applied<long long>(MPI_PROD, MPI_LONG_LONG, {LLONG_MIN}, {-1}), (std::vector<long long>{LLONG_MIN}));
}

TEST(Op, sixteen_byte_integers_and_logicals_use_all_their_bytes) {
  using Wide = __int128;
  const Wide big = Wide{1} << 100;
  Wide in[2] = {big, -big}, inout[2] = {big, big};
  apply(op_of(MPI_SUM), in, inout, 2, type_of(MPI_INTEGER16));
  EXPECT_TRUE(inout[0] == Wide{1} << 101);
  EXPECT_TRUE(inout[1] == 0);
  Wide low[1] = {-big}, high[1] = {3};
  apply(op_of(MPI_MIN), low, high, 1, type_of(MPI_INTEGER16));
  EXPECT_TRUE(high[0] == -big);
  unsigned __int128 t[1] = {static_cast<unsigned __int128>(1) << 127}, u[1] = {1};
  apply(op_of(MPI_LAND), t, u, 1, type_of(MPI_LOGICAL16));
  EXPECT_TRUE(u[0] == 1);
}

TEST(Op, half_and_quadruple_precision_compute_in_their_own_precision) {
  const Half a[2] = {static_cast<Half>(1.5f), static_cast<Half>(2048.0f)};
  Half b[2] = {static_cast<Half>(2.25f), static_cast<Half>(1.0f)};
  apply(op_of(MPI_SUM), a, b, 2, type_of(MPI_REAL2));
  EXPECT_EQ(static_cast<float>(b[0]), 3.75f);
  EXPECT_EQ(static_cast<float>(b[1]), 2048.0f);  // 2049 has no half
  const __float128 tiny = static_cast<__float128>(1) / (static_cast<__float128>(1ull << 62) * (1ull << 40));
  const __float128 c[1] = {1};
  __float128 d[1] = {tiny};
  apply(op_of(MPI_SUM), c, d, 1, type_of(MPI_REAL16));
  EXPECT_TRUE(d[0] - 1 == tiny);
}

TEST(Op, complex_products_multiply) {
  struct C {
    double re, im;
  };
  const C a[1] = {{1, 2}};
  C b[1] = {{3, -4}};
  apply(op_of(MPI_PROD), a, b, 1, type_of(MPI_C_DOUBLE_COMPLEX));
  EXPECT_EQ(b[0].re, 11);
  EXPECT_EQ(b[0].im, 2);
}

TEST(Op, ties_of_minloc_and_maxloc_go_to_the_smaller_index) {
  struct P {
    double value;
    int index;
  };
  for (MPI_Op op : {MPI_MINLOC, MPI_MAXLOC}) {
    const P a[2] = {{1, 7}, {1, 3}};
    P b[2] = {{1, 5}, {1, 9}};
    apply(op_of(op), a, b, 2, type_of(MPI_DOUBLE_INT));
    EXPECT_EQ(b[0].index, 5);
    EXPECT_EQ(b[1].index, 3);
  }
}

int calls = 0;
MPI_Datatype seen = MPI_DATATYPE_NULL;
void subtract(void* in, void* inout, int* length, MPI_Datatype* type) {
  ++calls;
  seen = *type;
  for (int i = 0; i < *length; ++i)
    static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

TEST(Op, a_user_function_gets_in_as_the_left_operand_and_the_handle_of_the_type) {
  Op op;
  op.user = subtract;
  int in[2] = {10, 20}, inout[2] = {1, 2};
  apply(op, in, inout, 2, type_of(MPI_INT));
  EXPECT_EQ(inout[0], 9);
  EXPECT_EQ(inout[1], 18);
  EXPECT_EQ(seen, MPI_INT);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace heddle
