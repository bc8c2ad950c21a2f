#!/usr/bin/env python3
"""Runs every benchmark program of bench/compare once, briefly, on the built library: their results, not their speed."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/compare"))
import jobs as work
import libraries as libs
import measure

BUILD = os.environ.get("HEDDLE_BUILD", str(ROOT / "build"))
MANY = 4  # ranks: enough to be more than the cores of a small machine


def shortened(job):
    """The same work in a fraction of the time; None for what is only about time or needs callgrind."""
    if job.kind != "run" or job.ranks > 2 * MANY or job.arguments and "sweep" in job.name:
        return None
    arguments = [a for a in job.arguments if not a.startswith(("--seconds=", "--depths="))]
    arguments.append("--seconds=0.02")
    if job.source.endswith("matching.c"):
        arguments.append("--depths=1,1000")
    return work.Job(job.name, job.source, arguments, job.profile, min(job.ranks, 2 * MANY), env=job.env, timeout=60)


class Programs(unittest.TestCase):
    def test_every_program_ends_well_and_reports_the_figures_its_rows_want(self):
        library = libs.heddle(BUILD)
        self.assertIsNotNone(library, f"no mpicc and mpiexec in {BUILD}")
        jobs, rows = work.everything(quick=True, cores=2)
        with tempfile.TemporaryDirectory() as out:
            has_endpoints = bool(libs.endpoint_flags(library))
            for name, job in jobs.items():
                short = shortened(job)
                if not short or (not has_endpoints and any(a.endswith("=endpoints") for a in job.arguments)):
                    continue
                with self.subTest(job=name):
                    program = libs.compile_program(library, job.source, out, ROOT)
                    found = measure.run_job(short, library, program)
                    for row in rows:
                        if row.job == name and not name.startswith("match-"):
                            self.assertGreaterEqual(found.get(row.key, -1), 0, row.key)


if __name__ == "__main__":
    unittest.main()
