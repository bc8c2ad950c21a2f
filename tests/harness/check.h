/* Checks for MPI test programs, in C and in C++.
 *
 *   CHECK(cond)           cond holds
 *   CHECK_EQ(a, b)        a == b; prints both (also CHECK_NE, CHECK_LT, CHECK_LE, CHECK_GT, CHECK_GE)
 *   CHECK_STR(a, b)       two C strings are equal
 *   CHECK_OK(call)        an MPI call returned MPI_SUCCESS; prints the error's text
 *   CHECK_CLASS(call, c)  an MPI call failed with error class c (the error handler must be MPI_ERRORS_RETURN)
 *
 * A check that fails prints file:line, the rank, the expression and its values, and ends the whole job at once
 * with status 1, so that no other rank waits for this one. Safe from any thread. */
#ifndef HEDDLE_TESTS_CHECK_H
#define HEDDLE_TESTS_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GNUC__)
#define CHECK_PRINTF __attribute__((format(printf, 3, 4), noreturn, unused))
#else
#define CHECK_PRINTF
#endif

#include <stdarg.h>

/* Prints `file:line: rank R: <text>` and ends the job. */
static void CHECK_PRINTF check_fail(const char *file, int line, const char *format, ...) {
  char text[4096], where[32] = "rank ?";
  int initialized = 0, finalized = 0, rank = -1;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(where, sizeof where, "rank %d", rank);
  }
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, where, text);
  fflush(NULL);
  if (initialized && !finalized) MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

static inline void check_mpi(const char *file, int line, const char *call, int code) {
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, error_class = -1;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    check_fail(file, line, "%s returned %d (class %d): %s", call, code, error_class, text);
  }
}

static inline void check_class(const char *file, int line, const char *call, int code, int wanted) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  if (error_class != wanted)
    check_fail(file, line, "%s returned code %d of class %d, wanted class %d", call, code, error_class, wanted);
}

static inline void check_strings(const char *file, int line, const char *ea, const char *eb, const char *a,
                                 const char *b) {
  if (strcmp(a, b) != 0) check_fail(file, line, "%s == %s: \"%s\" against \"%s\"", ea, eb, a, b);
}

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) check_fail(__FILE__, __LINE__, "CHECK(%s)", #condition); \
  } while (0)
#define CHECK_OK(call) check_mpi(__FILE__, __LINE__, #call, (call))
#define CHECK_CLASS(call, error_class) check_class(__FILE__, __LINE__, #call, (call), (error_class))
#define CHECK_STR(a, b) check_strings(__FILE__, __LINE__, #a, #b, (a), (b))

#ifdef __cplusplus

#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

template <typename T>
inline std::string check_show(const T &value) {
  std::ostringstream out;
  out.precision(17);
  if constexpr (std::is_pointer_v<T>)
    out << reinterpret_cast<const void *>(value);
  else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>)
    out << static_cast<int>(value);
  else if constexpr (std::is_enum_v<T>)
    out << static_cast<long long>(value);
  else
    out << value;
  return out.str();
}

/* Integers are equal by value, whatever their signs and widths: counts come as int, MPI_Count and size_t alike. */
template <typename A, typename B>
inline bool check_equal(const A &a, const B &b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return std::cmp_equal(+a, +b);
  else
    return a == b;
}

#define CHECK_COMPARE(a, op, b)                                                                             \
  do {                                                                                                      \
    const auto check_a = (a);                                                                               \
    const auto check_b = (b);                                                                               \
    if (!(check_a op check_b))                                                                              \
      check_fail(__FILE__, __LINE__, "%s %s %s: %s against %s", #a, #op, #b, check_show(check_a).c_str(),   \
                 check_show(check_b).c_str());                                                              \
  } while (0)

#define CHECK_EQ(a, b)                                                                                      \
  do {                                                                                                      \
    const auto check_a = (a);                                                                               \
    const auto check_b = (b);                                                                               \
    if (!check_equal(check_a, check_b))                                                                     \
      check_fail(__FILE__, __LINE__, "%s == %s: %s against %s", #a, #b, check_show(check_a).c_str(),        \
                 check_show(check_b).c_str());                                                              \
  } while (0)

#else

/* Writes the value at `address` into `text`; `kind` is one of the letters that CHECK_KIND gives. */
static inline const char *check_show(char *text, size_t room, const void *address, size_t size, char kind) {
  long long i = 0;
  if (kind == 'f') {
    if (size == sizeof(float)) {
      float f;
      memcpy(&f, address, sizeof f);
      snprintf(text, room, "%.9g", (double)f);
    } else if (size == sizeof(double)) {
      double d;
      memcpy(&d, address, sizeof d);
      snprintf(text, room, "%.17g", d);
    } else {
      long double l;
      memcpy(&l, address, sizeof l);
      snprintf(text, room, "%.21Lg", l);
    }
    return text;
  }
  memcpy(&i, address, size < sizeof i ? size : sizeof i);
  if (kind == 'i' && size < sizeof i) { /* sign extension; x86-64 is little endian */
    int shift = (int)(8 * (sizeof i - size));
    i = (long long)((unsigned long long)i << shift) >> shift;
  }
  if (kind == 'p')
    snprintf(text, room, "%#llx", (unsigned long long)i);
  else if (kind == 'u')
    snprintf(text, room, "%llu", (unsigned long long)i);
  else
    snprintf(text, room, "%lld", i);
  return text;
}

#define CHECK_KIND(x)                                                                                              \
  _Generic((x), float: 'f', double: 'f', long double: 'f', char: 'i', signed char: 'i', short: 'i', int: 'i',      \
           long: 'i', long long: 'i', unsigned char: 'u', unsigned short: 'u', unsigned: 'u', unsigned long: 'u',  \
           unsigned long long: 'u', _Bool: 'u', default: 'p')

#define CHECK_COMPARE(a, op, b)                                                                                     \
  do {                                                                                                              \
    __typeof__(a) check_a = (a);                                                                                    \
    __typeof__(b) check_b = (b);                                                                                    \
    char check_ta[64], check_tb[64];                                                                                \
    if (!(check_a op check_b))                                                                                      \
      check_fail(__FILE__, __LINE__, "%s %s %s: %s against %s", #a, #op, #b,                                        \
                 check_show(check_ta, sizeof check_ta, &check_a, sizeof check_a, CHECK_KIND(check_a)),              \
                 check_show(check_tb, sizeof check_tb, &check_b, sizeof check_b, CHECK_KIND(check_b)));             \
  } while (0)

#define CHECK_EQ(a, b) CHECK_COMPARE(a, ==, b)

#endif

#define CHECK_NE(a, b) CHECK_COMPARE(a, !=, b)
#define CHECK_LT(a, b) CHECK_COMPARE(a, <, b)
#define CHECK_LE(a, b) CHECK_COMPARE(a, <=, b)
#define CHECK_GT(a, b) CHECK_COMPARE(a, >, b)
#define CHECK_GE(a, b) CHECK_COMPARE(a, >=, b)

#endif
