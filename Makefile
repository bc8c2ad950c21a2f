# A thin front for CMake. `make help` lists what there is; CMakePresets.json holds the settings.
.DEFAULT_GOAL := all
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CTEST_FLAGS ?=

.PHONY: help all packages configure demo tests check bench install clean format asan-check tsan-check

help:            ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */\1\t/p' $(MAKEFILE_LIST) | expand -t 14

all: configure   ## the library and the tools, into build/
	@cmake --build --preset release -j $(JOBS)

packages:        ## what the build needs from Debian: installed when root, named when not
	@cmake/packages.sh

configure: packages
	@cmake --preset release $(if $(wildcard build/CMakeCache.txt),>build/configure.log || { cat build/configure.log; exit 1; })

demo: all        ## the halo exchange of apps/stencil2d, in every mode
	@apps/stencil2d/demo.sh build

tests: all       ## the test programs, without running them
	@cmake --build --preset release -j $(JOBS) --target tests

check: tests     ## every test
	@ctest --test-dir build -j $(JOBS) --output-on-failure $(CTEST_FLAGS)

asan-check: packages   ## unit, MPI and socket tests under AddressSanitizer and UBSan
	@tools/dev/sanitize.sh asan $(JOBS)

tsan-check: packages   ## unit, MPI and socket tests under ThreadSanitizer
	@tools/dev/sanitize.sh tsan $(JOBS)

bench: all       ## the same work on every MPI there is; writes build/bench/
	@cmake --build --preset release -j $(JOBS) --target bench_programs
	@bench/run

install: all     ## into PREFIX (default /usr/local)
	@cmake --install build --prefix $(PREFIX)

clean:           ## remove every build directory
	@rm -rf build build-debug build-asan build-tsan
