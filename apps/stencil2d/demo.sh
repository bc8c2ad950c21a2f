#!/bin/sh
# demo.sh BUILD: builds and runs the halo exchange on 2 ranks of 2 threads, in every mode.
set -eu
build=$(cd "$1" && pwd)
cmake --build "$build" --target stencil2d >"$build/demo-build.log" 2>&1 || { cat "$build/demo-build.log"; exit 1; }

# An OpenMP thread that waits must not spin where it may share its core with the rank it waits for.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
echo '$ build/bin/mpiexec -n 2 build/bin/stencil2d --threads 2'
exec "$build/bin/mpiexec" -n 2 "$build/bin/stencil2d" --threads 2 --picture "$build/stencil2d.png"
