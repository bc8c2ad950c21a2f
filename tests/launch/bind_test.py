#!/usr/bin/env python3
"""Which cores the ranks get."""
import os
import unittest

from launch import LaunchTest, mpiexec

# One write each, lest the ranks' words mix.
SHOW = ["python3", "-c", "import os; os.write(1, (' '.join([os.environ['PMI_RANK'], *map(str, sorted("
        "os.sched_getaffinity(0)))]) + '\\n').encode())"]
MINE = sorted(os.sched_getaffinity(0))


def masks(text):
    """Rank to list of cores."""
    return {int(line.split()[0]): [int(core) for core in line.split()[1:]] for line in text.splitlines()}


class Bind(LaunchTest):
    def test_more_ranks_than_cores_are_not_bound(self):
        ranks = len(MINE) + 1
        self.assertEqual(masks(self.succeeds("-n", ranks, *SHOW)), dict.fromkeys(range(ranks), MINE))

    def test_none_binds_nobody(self):
        self.assertEqual(masks(self.succeeds("-bind", "none", "-n", 2, *SHOW)), {0: MINE, 1: MINE})

    def test_one_rank_has_all_cores(self):
        self.assertEqual(masks(self.succeeds(*SHOW)), {0: MINE})

    @unittest.skipIf(len(MINE) < 2, "needs two cores")
    def test_the_cores_are_split_evenly_and_completely(self):
        found = masks(self.succeeds("-n", 2, *SHOW))
        self.assertEqual(sorted(found[0] + found[1]), MINE)
        self.assertLessEqual(abs(len(found[0]) - len(found[1])), 1)

    @unittest.skipIf(len(MINE) < 2, "needs two cores")
    def test_core_gives_each_rank_other_cores(self):
        found = masks(self.succeeds("--bind", "core", "-n", 2, *SHOW))
        self.assertFalse(set(found[0]) & set(found[1]))

    @unittest.skipIf(len(MINE) < 2, "needs two cores")
    def test_the_launchers_own_mask_is_respected(self):
        one = MINE[-1]
        done = mpiexec("-c", str(one), os.path.join(os.environ["HEDDLE_BUILD"], "bin/mpiexec"), "-n", 2, *SHOW,
                       launcher="taskset")
        self.assertEqual(masks(done.out), {0: [one], 1: [one]})

    def test_bindings_are_reported(self):
        done = mpiexec("-n", 2, "--report-bindings", "true")
        self.assertRegex(done.err, r"rank 0 on \S+: cores [\d,-]+")
        self.assertRegex(done.err, r"rank 1 on \S+: cores [\d,-]+")

    def test_too_many_threads_are_warned_about_once(self):
        many = str(len(MINE) + 1)
        done = mpiexec("-n", 2, "true", env={"OMP_NUM_THREADS": many})
        self.assertEqual(done.err.count("warning: OMP_NUM_THREADS=" + many), 1, done)
        done = mpiexec("-n", 1, "-env", "OMP_NUM_THREADS", many, "true")
        self.assertIn("warning: OMP_NUM_THREADS=" + many, done.err)

    def test_threads_that_have_cores_are_not_warned_about(self):
        done = mpiexec("-n", 1, "true", env={"OMP_NUM_THREADS": str(len(MINE))})
        self.assertEqual(done.err, "")

    def test_quiet_is_quiet(self):
        done = mpiexec("-q", "-n", 2, "true", env={"OMP_NUM_THREADS": "1000"})
        self.assertEqual(done.err, "")


if __name__ == "__main__":
    unittest.main()
