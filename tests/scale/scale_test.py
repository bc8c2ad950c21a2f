#!/usr/bin/env python3
"""Many ranks on one machine: they start, reduce, exchange and stop, in little memory, and start does not depend on their number.

    scale_test.py --measure RANKS       prints the table of docs/scale.md for one machine
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

BUILD = os.environ.get("HEDDLE_BUILD", os.path.realpath(os.path.join(os.path.dirname(__file__), "../../build")))
MPIEXEC = os.path.join(BUILD, "bin/mpiexec")
MEMORY = os.path.join(BUILD, "tests/scale/scale_memory")
HYDRA = os.path.join(BUILD, "external/mpich/bin/mpiexec.hydra")
COLUMNS = ("rss", "pss", "private", "shared", "tables", "mapped", "descriptors")


def parse(text):
    """The steps that scale_memory printed: a list of (name, peers, {column: (mean, max)})."""
    steps = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["step"]:
            values = dict(word.split("=") for word in words[2:])
            peers = int(values.pop("peers"))
            steps.append((words[1], peers, {k: tuple(map(float, v.split("/"))) for k, v in values.items()}))
    return steps


def per_peer(steps, column):
    """Growth of the mean from the first exchange of messages to the last, for each further peer."""
    messages = [(peers, values[column][0]) for name, peers, values in steps if name == "messages"]
    (few, before), (many, after) = messages[0], messages[-1]
    return (after - before) / (many - few)


def table(steps):
    """The steps in Markdown, in KiB (counts as they are)."""
    lines = ["| after | peers | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, peers, values in steps:
        cells = [f"{values[c][0] / (1024 if c in COLUMNS[:5] else 1):.0f}" for c in COLUMNS]
        lines.append(f"| {name} | {peers} | " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"per peer, {c}: {per_peer(steps, c):.0f} bytes" for c in COLUMNS[:5]]
    return "\n".join(lines)


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class OneMachine(unittest.TestCase):
    def test_256_ranks_start_reduce_exchange_and_stop_in_little_memory(self):
        steps = parse(run(MPIEXEC, "-n", 256, MEMORY))
        self.assertEqual([name for name, _, _ in steps][-1], "alltoall")
        self.assertEqual(steps[-1][1], 255)
        _, _, values = steps[-1]
        # What a process has for itself alone, with everybody as its peer; three times what is measured.
        self.assertLess(values["private"][0], 2.5e6)
        self.assertLess(values["shared"][0], 2e6)
        self.assertLess(per_peer(steps, "private"), 3000)
        self.assertLess(per_peer(steps, "shared"), 100)
        self.assertLess(per_peer(steps, "tables"), 32768)  # the kernel's, for one mapping a peer
        self.assertLess(per_peer(steps, "mapped"), 1.1)
        self.assertLess(per_peer(steps, "descriptors"), 0.1)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_start_is_the_same_few_system_calls_for_2_and_for_128_ranks(self):
        for launcher in filter(os.path.exists, (MPIEXEC, HYDRA)):
            counts = []
            for ranks in 2, 128:
                log = os.path.join(BUILD, f"tests/scale/calls.{ranks}")
                run(launcher, "-n", 1, "strace", "-f", "-o", log, MEMORY, "--start-only", ":", "-n", ranks - 1, MEMORY, "--start-only")
                with open(log, encoding="utf-8", errors="replace") as lines:
                    counts.append(sum(not re.search(r"(sched_yield|futex|resumed>|read|recv)", line) for line in lines))
            self.assertLess(abs(counts[1] - counts[0]), 8, f"{launcher}: {counts}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(table(parse(run(MPIEXEC, "-n", sys.argv[2], MEMORY))))
    else:
        unittest.main()
