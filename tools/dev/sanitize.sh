#!/bin/sh
# sanitize.sh PRESET [JOBS [build | test [OPTIONS OF CTEST...]]]: builds with a sanitizer preset (asan or tsan) and runs the unit and MPI
# tests on it, and those of the network that go over the library's own sockets; or does only one of the two.
set -eu
preset=$1
jobs=${2:-$(nproc)}
step=${3:-both}
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/../.."
if [ "$step" != test ]; then
  cmake --preset "$preset"
  cmake --build --preset "$preset" -j "$jobs" --target all unit_tests mpi_tests sockets_tests
fi
[ "$step" != build ] || exit 0
# A report is a failure whatever the program does afterwards. Leaks are looked for as well.
# Tests ask for more memory than there is, and must get the null pointer that malloc gives without a sanitizer.
export ASAN_OPTIONS="detect_stack_use_after_return=1:allocator_may_return_null=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:${TSAN_OPTIONS:-}"
# ThreadSanitizer keeps up to five bytes for each of the program's: messages beyond 2 GiB would take more than 20 GiB.
[ "$preset" != tsan ] || without=large
exec ctest --test-dir "build-$preset" -j "$jobs" -L '^(unit|mpi|sockets)$' -LE "^${without:-none}\$" --output-on-failure "$@"
