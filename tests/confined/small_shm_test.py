#!/usr/bin/env python3
"""A small /dev/shm: jobs work, or say what is missing. Never SIGBUS."""
import os
import re
import subprocess
import unittest

from confined import FORBID, MESSAGES, TRAFFIC, check_forbid, check_namespaces, small_shm
from launch import LONG, Done, LaunchTest, MPIEXEC, clean_environment

check_forbid("cma")
check_namespaces()
FILE = {"HEDDLE_SHM_BACKING": "file"}
NO_JOB_MEMORY = ["env", "-u", "HEDDLE_JOB", "-u", "HEDDLE_JOB_ID"]  # as under a launcher that offers none


def run(kib, *arguments, env=None):
    """mpiexec where /dev/shm has `kib` KiB; then what is left there, as lines of output."""
    look = 'first=$1; shift; "$first" "$@"; code=$?; for f in /dev/shm/*; do [ -e "$f" ] && echo "left: $f"; done; exit $code'
    done = subprocess.run([*small_shm(kib), "sh", "-c", look, "sh", MPIEXEC, *map(str, arguments)], capture_output=True, timeout=LONG,
                          check=False, stdin=subprocess.DEVNULL, env=clean_environment(env))
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class SmallShm(LaunchTest):
    def right(self, done, notices=()):
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.out, "all bytes as sent|none lost, none out of order")
        self.assertNotIn("left:", done.out)
        self.assertEqual(len(done.err.splitlines()), len(notices), done)
        for notice in notices:
            self.assertEqual(len(re.findall(notice, done.err)), 1, done)

    def test_with_memfd_its_size_does_not_matter(self):
        for kib in (65536, 64):
            self.right(run(kib, "-n", 4, TRAFFIC, "--alloc", 50_000_000))

    def test_cma_forbidden_and_64_mib_give_one_notice(self):
        for env in (None, FILE):
            for prefix in ([], NO_JOB_MEMORY):
                done = run(65536, "-n", 4, *prefix, FORBID, "cma", TRAFFIC, "--message", 3_000_001, "--alloc", 40_000_000, env=env)
                self.right(done, ["does not let ranks read"])

    def test_64_mib_hold_the_random_messages(self):
        self.right(run(65536, "-n", 4, FORBID, "cma", MESSAGES, "--messages", 20000, env=FILE), ["does not let ranks read"])

    def test_memory_that_does_not_fit_comes_from_elsewhere(self):
        self.right(run(16384, "-n", 4, TRAFFIC, "--alloc", 30_000_000, env=FILE))

    def test_little_room_gives_smaller_rings(self):
        for prefix in ([], NO_JOB_MEMORY):
            done = run(1024, "-n", 4, *prefix, TRAFFIC, "--alloc", 2_000_000, env={**FILE, "HEDDLE_VCIS": "2"})
            self.right(done, ["rings of (16|32|64) KiB instead of 256"])

    def test_too_little_room_is_said_with_the_remedy(self):
        for prefix in ([], NO_JOB_MEMORY):
            done = run(64, "-n", 4, *prefix, TRAFFIC, env=FILE)
            self.assertNotEqual(done.code, 0, done)
            self.assertRegex(done.err, r"/dev/shm, 64 KiB.*has no room for .*shm-size")
            self.assertNotRegex(done.err, "SIGBUS|Bus error")
            self.assertNotIn("left:", done.out)

    def test_without_memfd_it_is_the_same(self):
        """mpiexec itself cannot make one, so the job's memory is a nameless file of /dev/shm."""
        done = subprocess.run([*small_shm(65536), FORBID, "memfd", MPIEXEC, "-n", "4", TRAFFIC], capture_output=True,
                              timeout=LONG, check=False, stdin=subprocess.DEVNULL, env=clean_environment())
        self.right(Done(done.returncode, done.stdout.decode(), done.stderr.decode()))


if __name__ == "__main__":
    os.environ.pop("HEDDLE_QUIET", None)
    unittest.main()
