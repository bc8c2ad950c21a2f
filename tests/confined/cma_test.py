#!/usr/bin/env python3
"""Where the kernel refuses to copy between address spaces, messages arrive all the same, and one line says that it is slower."""
import os
import re
import unittest

from confined import FORBID, MESSAGES, TRAFFIC, check_forbid
from launch import LaunchTest, mpiexec

check_forbid("cma")


class ForbiddenCma(LaunchTest):
    def said_once(self, done):
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(re.findall("does not let ranks read each other's memory", done.err)), 1, done)
        self.assertEqual(len(done.err.splitlines()), 1, done)

    def test_large_messages_arrive_and_the_job_says_so_once(self):
        done = mpiexec("-n", 4, FORBID, "cma", TRAFFIC, "--message", 3_000_001)
        self.said_once(done)
        self.assertIn("all bytes as sent", done.out)

    def test_random_messages_of_many_threads_arrive(self):
        done = mpiexec("-n", 4, FORBID, "cma", MESSAGES, "--messages", 20000)
        self.said_once(done)
        self.assertIn("none lost, none out of order", done.out)

    def test_one_rank_under_the_ban_among_others_that_are_not(self):
        done = mpiexec("-n", 1, TRAFFIC, ":", "-n", 1, FORBID, "cma", TRAFFIC, ":", "-n", 2, TRAFFIC)
        self.said_once(done)

    def test_small_messages_are_no_reason_to_say_anything(self):
        done = mpiexec("-n", 3, FORBID, "cma", TRAFFIC, "--message", 1000)
        self.assertEqual((done.code, done.err), (0, ""), done)

    def test_without_memory_of_the_job_the_notice_comes_once_too(self):
        """Under other launchers ranks find each other's memory by way of the bootstrap."""
        env = ["env", "-u", "HEDDLE_JOB", "-u", "HEDDLE_JOB_ID"]
        self.said_once(mpiexec("-n", 3, *env, FORBID, "cma", TRAFFIC))


if __name__ == "__main__":
    os.environ.pop("HEDDLE_QUIET", None)
    unittest.main()
