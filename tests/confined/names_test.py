#!/usr/bin/env python3
"""Shared memory with a name (HEDDLE_SHM_BACKING=file) has it only for moments, and an abandoned name does not stay."""
import fcntl
import os
import subprocess
import unittest

from confined import TRAFFIC
from launch import LONG, LaunchTest, MPIEXEC, Running, clean_environment, mpiexec, signal, wait_until

FILE = {"HEDDLE_SHM_BACKING": "file"}
NO_JOB_MEMORY = ["env", "-u", "HEDDLE_JOB", "-u", "HEDDLE_JOB_ID"]  # as under a launcher that offers none


def names():
    return {name for name in os.listdir("/dev/shm") if name.startswith("heddle-")}


class Names(LaunchTest):
    def test_a_running_job_has_no_name_in_dev_shm(self):
        before = names()
        for arguments in (["-n", 3, TRAFFIC], ["-n", 3, *NO_JOB_MEMORY, TRAFFIC], ["-n", 1, *NO_JOB_MEMORY, TRAFFIC]):
            with Running(*arguments, "--pause", env=FILE) as job:
                job.lines(1, "(ready)")
                # Ranks may have left MPI_Init's fence and not yet opened the last file when rank 0 is through a barrier.
                wait_until(lambda: names() <= before, "the end of the names")
                job.process.stdin.close()
                code, errors = job.wait()
                self.assertEqual((code, errors), (0, ""))
        self.assertLessEqual(names(), before)

    def test_killing_everything_during_start_leaves_nothing_for_long(self):
        """Whatever the moment: mpiexec is killed together with its ranks; at the latest the next job of the kind cleans up."""
        before = names()
        for moment in range(12):
            job = subprocess.Popen([MPIEXEC, "-n", "4", *NO_JOB_MEMORY, TRAFFIC], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=clean_environment(FILE))
            try:
                job.wait(timeout=0.004 * moment)
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
        # The ranks of the killed jobs may take a moment to die; while they live, their files are in use.
        def cleaned():
            self.assertEqual(mpiexec("-n", 2, *NO_JOB_MEMORY, TRAFFIC, env=FILE).code, 0)
            return names() <= before
        wait_until(cleaned, "the end of the names")

    def test_under_our_mpiexec_there_never_is_a_name(self):
        before = names()
        for moment in range(12):
            with Running("-n", 4, TRAFFIC, env=FILE) as job:
                try:
                    job.process.wait(timeout=0.004 * moment)
                except subprocess.TimeoutExpired:
                    job.signal(signal.SIGKILL)
            self.assertLessEqual(names(), before)

    def test_a_file_that_nobody_holds_is_removed_and_one_in_use_is_not(self):
        abandoned, used = (f"/dev/shm/heddle-test{os.getpid()}-{i}" for i in range(2))
        with open(abandoned, "w", encoding="ascii"), open(used, "w", encoding="ascii") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_SH)
                done = mpiexec("-n", 2, *NO_JOB_MEMORY, TRAFFIC, env=FILE)
                self.assertEqual(done.code, 0, done)
                self.assertFalse(os.path.exists(abandoned))
                self.assertTrue(os.path.exists(used))
            finally:
                for name in (abandoned, used):
                    if os.path.exists(name):
                        os.unlink(name)


if __name__ == "__main__":
    assert LONG
    unittest.main()
