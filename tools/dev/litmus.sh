#!/bin/sh
# litmus.sh [N [PATTERN]]: runs the litmus programs of tests/mpi/litmus (those whose name holds PATTERN) N times in a row
# each (1000), with every number of ranks that their first lines name, and prints what became of them. Needs the target
# `mpi_tests` in build/ (or in $BUILD).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
times=${1:-1000}
pattern=${2:-}
failed=0
for source in tests/mpi/litmus/*"$pattern"*.cpp; do
  name=$(basename "$source" .cpp)
  [ -x "$build/tests/mpi/litmus/$name" ] || { echo "not built: $name (cmake --build $build --target mpi_tests)"; exit 2; }
  for ranks in $(sed -n 's|^// ranks: *||p' "$source"); do
    began=$(date +%s)
    if output=$(tests/harness/run --mpiexec "$build/bin/mpiexec" --ranks "$ranks" --timeout 1800 --directives "$source" -- \
        "$build/tests/mpi/litmus/$name" --repeat "$times" 2>&1); then
      word=ok
    else
      word=FAILED failed=1
      printf '%s\n' "$output"
    fi
    printf '%-6s %5d times, %s ranks, %4d s  %s\n' "$word" "$times" "$ranks" $(($(date +%s) - began)) "$name"
  done
done
exit $failed
