"""Binaries are interchangeable between libraries of the standard ABI: MPICH's on ours, ours on MPICH's.

A program is built by one vendor's compiler wrapper and runs, unchanged, on the other vendor's libmpi_abi.so.1, which
LD_LIBRARY_PATH alone puts in place.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tools"))
from tree import BIN, BUILD, TreeTest, run  # noqa: E402

MPICH = os.path.join(BUILD, "external/mpich")
PROGRAM = os.path.join(os.path.dirname(__file__), "abi_program.c")
OURS = {"wrapper": os.path.join(BIN, "mpicc"), "launcher": os.path.join(BIN, "mpiexec"),
        "libraries": os.path.join(BUILD, "lib"), "name": "Heddle"}
THEIRS = {"wrapper": os.path.join(MPICH, "bin/mpicc_abi"), "launcher": os.path.join(MPICH, "bin/mpiexec"),
          "libraries": os.path.join(MPICH, "lib"), "name": "MPICH"}


class Interchange(TreeTest):
    def check(self, built_by, launched_by, runs_on, ranks):
        """Builds with one, launches with another, runs on a third; checks the program's own report."""
        program = self.path("abi_program")
        run(built_by["wrapper"], PROGRAM, "-o", program)
        env = {"LD_LIBRARY_PATH": runs_on["libraries"]}
        output, _ = run(launched_by["launcher"], "-n", ranks, program, env=env)
        self.assertIn(runs_on["name"], output.splitlines()[0])
        self.assertEqual(output.splitlines()[1], f"{ranks} ranks, 0 failures, status of 32 bytes, ABI 1.0")

    def test_a_program_built_with_our_wrapper_runs_on_our_library(self):
        self.check(OURS, OURS, OURS, 3)

    def test_a_program_built_with_mpichs_wrapper_runs_on_our_library(self):
        self.check(THEIRS, OURS, OURS, 1)
        self.check(THEIRS, OURS, OURS, 3)

    def test_a_program_built_with_our_wrapper_runs_on_mpichs_library(self):
        self.check(OURS, THEIRS, THEIRS, 1)
        self.check(OURS, THEIRS, THEIRS, 3)

    def test_mpichs_launcher_starts_programs_on_our_library(self):
        self.check(OURS, THEIRS, OURS, 3)

    def test_our_launcher_starts_programs_on_mpichs_library(self):
        self.check(THEIRS, OURS, THEIRS, 3)

    def test_the_program_that_compares_libraries_can_fail(self):
        # Guards the guard: with a wrong expectation compiled in, it reports failures.
        program = self.path("broken")
        run(OURS["wrapper"], '-DABI_PROGRAM_MUST_FAIL', PROGRAM, "-o", program)
        run(OURS["launcher"], "-n", 2, program, status=1)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(BUILD, "external/mpich.stamp")):
        print("skipped: MPICH could not be fetched")
        sys.exit(77)
    unittest.main(verbosity=2)
