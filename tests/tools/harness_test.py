"""The test harness itself: what it must catch, it catches."""
import os
import re
import unittest

from tree import BIN, TreeTest, run

HARNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness/run")
CHECK_H = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness")

HANG = """
#include <mpi.h>
static void wait_for_a_message_that_nobody_sends(void) {
  int x;
  MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  wait_for_a_message_that_nobody_sends();
  MPI_Finalize();
  return 0;
}
"""

CHECKS = r"""
#include "check.h"
int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) CHECK_EQ(rank + 1, 3);
  MPI_Barrier(MPI_COMM_WORLD); /* the others wait here for the rank that failed */
  MPI_Finalize();
  return 0;
}
"""


class Harness(TreeTest):
    def harness(self, *arguments, status):
        """Runs the harness; its output."""
        return run(HARNESS, *arguments, status=status, timeout=200)[0]

    def compiled(self, source, language="c"):
        """Compiles an MPI program and returns its path."""
        path = self.write(f"program.{language}", source)
        wrapper, standard = ("mpicc", "-std=gnu11") if language == "c" else ("mpicxx", "-std=c++20")
        run(os.path.join(BIN, wrapper), standard, "-g", "-O0", f"-I{CHECK_H}", path, "-o", self.path("program"))
        return self.path("program")

    def mpi(self, ranks, program, *more, status):
        """Runs an MPI program under the harness."""
        return self.harness("--mpiexec", os.path.join(BIN, "mpiexec"), "--ranks", ranks, *more, "--", program, status=status)

    def test_success_and_failure_are_told_apart(self):
        self.assertIn("harness: passed", self.harness("--", "true", status=0))
        self.assertIn("ended with status 3", self.harness("--", "sh", "-c", "exit 3", status=1))
        self.assertIn("SIGSEGV", self.harness("--", "sh", "-c", "kill -SEGV $$", status=1))

    def test_a_test_that_asks_to_be_skipped_is_skipped(self):
        self.assertIn("harness: skipped", self.harness("--", "sh", "-c", "exit 77", status=77))

    def test_every_ranks_stack_is_printed_when_the_time_is_up_and_nothing_is_left(self):
        program = self.compiled(HANG)
        text = self.mpi(2, program, "--timeout", 3, status=1)
        self.assertEqual(len(re.findall(r"in wait_for_a_message_that_nobody_sends", text)), 2, text)
        self.assertIn("timed out after 3 s", text)
        self.assertNotIn(program, run("ps", "ax", "-o", "args")[0])

    def test_a_process_that_outlives_its_test_fails_it(self):
        text = self.harness("--", "sh", "-c", "sleep 987 >/dev/null 2>&1 & exit 0", status=1)
        self.assertIn("left processes behind", text)
        self.assertNotIn("sleep 987", run("ps", "ax", "-o", "args")[0])

    def test_a_failed_check_names_place_rank_and_values_and_ends_the_job(self):
        for language in "c", "cpp":
            text = self.mpi(3, self.compiled(CHECKS, language), "--timeout", 60, status=1)
            self.assertRegex(text, r"program\.(c|cpp):7: rank 1: rank \+ 1 == 3: 2 against 3")
            self.assertNotIn("timed out", text)

    def test_an_expected_failure_must_fail_and_say_so(self):
        expect = self.write("expect.c", '// expect: fail "out of [a-z]+"\n')
        self.assertIn("passed", self.harness("--directives", expect, "--", "sh", "-c", "echo out of cheese; exit 1", status=0))
        self.assertIn("does not match", self.harness("--directives", expect, "--", "sh", "-c", "exit 1", status=1))
        self.assertIn("expected to fail", self.harness("--directives", expect, "--", "echo", "out of cheese", status=1))

    def test_directives_set_environment_and_arguments(self):
        said = self.write("said.c", "// env: A=1 B='two words'\n// args: --fast \"x y\"\n")
        text = self.harness("--directives", said, "--", "sh", "-c", 'echo "$A/$B/$0/$1"', status=0)
        self.assertIn("1/two words/--fast/x y", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
