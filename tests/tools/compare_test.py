#!/usr/bin/env python3
"""Tests of bench/compare: a comparison that judges wrongly is worse than none. Needs no MPI."""

import io
import mmap
import os
import re
import sys
import unittest
import xml.dom.minidom
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/compare"))
import jobs as work
import jobs_ablation
import libraries as libs
import measure
import plot
import readme
import report
import table

PEERS = ["mpich5", "openmpi5"]
TITLES = {"mpich5": "MPICH", "openmpi5": "Open MPI"}


def row(**more):
    return work.Row(**{"name": "r", "title": "a row", "unit": "µs", "better": "lower", "job": "j", "key": "k", **more})


def results(**values):
    return {
        "j": {
            who.replace("_", "-"): {"rounds": [{"k": v} for v in several], "error": ""}
            for who, several in values.items()
        }
    }


def line(a_row, found, variants=None):
    return table.make_lines([a_row], found, PEERS, variants or {})[0]


class Judging(unittest.TestCase):
    def test_a_cell_is_the_median_over_the_rounds(self):
        self.assertEqual(line(row(), results(heddle=[9, 1, 2])).ours.value, 2)

    def test_rounds_with_the_cores_far_apart_do_not_count_where_all_libraries_have_others(self):
        found = results(heddle=[1, 9], mpich5=[2, 8])
        found["j"]["heddle"]["distances"] = [65.0, 295.0]
        found["j"]["mpich5"]["distances"] = [66.0, 300.0]
        judged = line(row(), found)
        self.assertEqual((judged.ours.value, judged.peers["mpich5"].value), (1, 2))
        found["j"]["mpich5"]["distances"] = [290.0, 300.0]
        judged = line(row(), found)
        self.assertEqual((judged.ours.value, judged.peers["mpich5"].value), (5, 5))

    def test_of_times_the_smallest_peer_is_best_and_a_smaller_ratio_meets_the_target(self):
        judged = line(row(ratio=0.5), results(heddle=[1], mpich5=[4], openmpi5=[2]))
        self.assertEqual((judged.best, judged.ratio, judged.wants), ("openmpi5", 0.5, [("≤ 0.5×", True)]))
        self.assertEqual(line(row(ratio=0.4), results(heddle=[1], mpich5=[4], openmpi5=[2])).wants, [("≤ 0.4×", False)])

    def test_of_rates_the_largest_peer_is_best_and_a_larger_ratio_meets_the_target(self):
        judged = line(row(better="higher", ratio=1.5), results(heddle=[6], mpich5=[4], openmpi5=[2]))
        self.assertEqual((judged.best, judged.ratio, judged.wants), ("mpich5", 1.5, [("≥ 1.5×", True)]))
        self.assertEqual(
            line(row(better="higher", ratio=1.6), results(heddle=[6], mpich5=[4])).wants, [("≥ 1.6×", False)]
        )

    def test_only_the_named_peers_count_for_a_row_that_names_some(self):
        judged = line(row(ratio=1, against=("mpich5",)), results(heddle=[3], mpich5=[4], openmpi5=[2]))
        self.assertEqual((judged.best, judged.wants), ("mpich5", [("≤ 1×", True)]))

    def test_a_target_without_our_figure_is_neither_met_nor_missed(self):
        self.assertEqual(line(row(ratio=1, absolute=3), results(mpich5=[4])).wants, [("≤ 1×", None), ("≤ 3 µs", None)])

    def test_a_peer_shows_the_better_of_its_settings(self):
        variants = {"mpich5-vcis": ("mpich5", "with VCIs")}
        judged = line(row(better="higher"), results(heddle=[1], mpich5=[2], mpich5_vcis=[3]), variants)
        self.assertEqual((judged.peers["mpich5"].value, judged.peers["mpich5"].variant), (3, "with VCIs"))
        judged = line(row(better="lower"), results(heddle=[1], mpich5=[2], mpich5_vcis=[3]), variants)
        self.assertEqual((judged.peers["mpich5"].value, judged.peers["mpich5"].variant), (2, ""))

    def test_a_target_may_refer_to_another_row_of_ours(self):
        rows = [row(name="one", key="a"), row(name="two", key="b", better="higher", own_row="one", own_ratio=1.8)]
        found = {"j": {"heddle": {"rounds": [{"a": 10, "b": 18}], "error": ""}}}
        self.assertEqual(table.make_lines(rows, found, PEERS, {})[1].wants, [("≥ 1.8× one", True)])
        found["j"]["heddle"]["rounds"][0]["b"] = 17
        self.assertEqual(table.make_lines(rows, found, PEERS, {})[1].wants, [("≥ 1.8× one", False)])

    def test_a_baseline_is_shown_and_never_the_best_peer(self):
        judged = table.make_lines([row()], results(heddle=[2], baseline=[1], mpich5=[4]), ["baseline", "mpich5"], {})[0]
        self.assertEqual((judged.best, judged.peers["baseline"].value), ("mpich5", 1))

    def test_a_failed_peer_is_listed_with_its_reason(self):
        found = results(heddle=[1], mpich5=[2])
        found["j"]["openmpi5"] = {"rounds": [], "error": "no end after 90 s"}
        out = io.StringIO()
        table.print_table(table.make_lines([row(ratio=1)], found, PEERS, {}), PEERS, TITLES, out)
        self.assertIn("Open MPI: no end after 90 s\n    r\n", out.getvalue())
        self.assertIn("1 met, 0 missed, 0 not measured", out.getvalue())


class Rows(unittest.TestCase):
    def setUp(self):
        self.jobs, self.rows = work.everything(cores=8, ablation=Path("lib"))

    def test_every_row_belongs_to_a_job_and_has_its_own_name(self):
        self.assertEqual({r.job for r in self.rows} - set(self.jobs), set())
        self.assertEqual(len({r.name for r in self.rows}), len(self.rows))

    def test_every_row_a_target_or_the_readme_refers_to_exists(self):
        names = {r.name for r in self.rows}
        self.assertEqual({r.own_row for r in self.rows if r.own_row} - names, set())
        self.assertEqual(set(readme.ROWS) - names, set())

    def test_every_job_names_known_programs_profiles_libraries_and_variants(self):
        for job in self.jobs.values():
            self.assertTrue((ROOT / job.source).exists(), job.source)
            self.assertIn(job.profile, libs.PROFILES)
            self.assertLessEqual(set(job.libraries), {"heddle", *libs.MAKERS})
            self.assertLessEqual(set(job.variants), set(libs.VARIANTS))

    def test_headers_of_ablation_replace_headers_of_the_library(self):
        folders = list((ROOT / "bench/ablation").iterdir())
        self.assertEqual({word for switches in jobs_ablation.SWITCHES for word in switches.split("-")}, {f.name for f in folders})
        for folder in folders:
            for header in folder.rglob("*.hpp"):
                self.assertTrue((ROOT / "src" / header.relative_to(folder)).exists(), header)

    def test_libraries_of_ablation_are_those_that_the_build_makes(self):
        built = re.search(r"switches IN ITEMS ([a-z -]+)\)", (ROOT / "cmake/HeddleBench.cmake").read_text())[1].split()
        self.assertEqual(built, list(jobs_ablation.SWITCHES))

    def test_threads_are_swept_up_to_the_number_of_cores(self):
        self.assertEqual(work.thread_counts(2), [1, 2, 4])
        self.assertEqual(work.thread_counts(24), [1, 2, 4, 8, 16, 24])


class Reading(unittest.TestCase):
    def test_figures_are_read_from_among_other_output(self):
        self.assertEqual(measure.figures("hello\nRESULT rate/8 1.5e-3\nRESULT x 2\n"), {"rate/8": 0.0015, "x": 2})

    def test_a_failing_program_is_an_error_that_quotes_it(self):
        with self.assertRaisesRegex(measure.JobError, "status 3: benchmark failed: because"):
            measure.start(["sh", "-c", "echo 'benchmark failed: because' >&2; exit 3"], None, 20)

    def test_a_hanging_program_is_ended_with_all_it_started(self):
        with self.assertRaisesRegex(measure.JobError, "no end after"):
            measure.start(["sh", "-c", "setsid sleep 1007 & sleep 1008"], None, 0.5)
        left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if self.is_ours(p)]
        self.assertEqual(left, [])

    def test_segments_a_peer_left_are_removed_and_those_in_use_or_older_than_the_run_are_kept(self):
        names = [f"mpich_shm_test{os.getpid()}_{kind}" for kind in ("before", "left", "used")]
        files = [Path("/dev/shm") / name for name in names]
        self.addCleanup(lambda: [f.unlink(missing_ok=True) for f in files])
        files[0].write_bytes(b"x" * 4096)
        before = measure.shared_segments()
        for file in files[1:]:
            file.write_bytes(b"x" * 4096)
        for file in files:
            os.utime(file, (0, 0))
        with open(files[2], "r+b") as used, mmap.mmap(used.fileno(), 4096):
            measure.remove_leftovers(before)
            self.assertEqual([f.exists() for f in files], [True, False, True])

    @staticmethod
    def is_ours(path):
        try:
            return path.read_bytes().split(b"\0")[:2] in ([b"sleep", b"1007"], [b"sleep", b"1008"])
        except OSError:
            return False


class Reporting(unittest.TestCase):
    def data(self):
        rows = [row(name="lat.8", title="latency <8>", ratio=1), row(name="sweep.lat.8"), row(name="sweep.lat.64")]
        lines = table.make_lines(rows, results(heddle=[1.0], mpich5=[2.0]), PEERS, {})
        library = {"title": "T & co", "version": "1", "settings": {"pair": "x -n"}}
        return {
            "machine": {
                "cpu": "c",
                "cores": 2,
                "kernel": "k",
                "date": "2000-01-01",
                "load_before": 0.1,
                "revision": "r",
            },
            "rounds": 3,
            "quick": False,
            "lacking": {},
            "peers": PEERS,
            "disturbed": {},
            "results": {},
            "variants": {},
            "libraries": {k: library for k in ("heddle", *PEERS)},
            "rows": [report.line_to_json(l) for l in lines],
        }

    def test_every_plot_is_well_formed(self):
        page = report.page(self.data())
        self.assertIn("latency &lt;8&gt;", page)
        self.assertIn("<svg", page)
        for piece in page.split("<svg")[1:]:
            xml.dom.minidom.parseString("<svg" + piece.split("</svg>")[0] + "</svg>")
        bars = plot.bars("t", [("a & b", {"heddle": 5, "mpich5": 10})], {})
        xml.dom.minidom.parseString(bars)

    def test_directories_of_the_measuring_machine_do_not_reach_the_report(self):
        self.assertEqual(report.without_places("/a/b/build/bin/x /a/b/y /a/b", ["/a/b", "/a/b/build"]), "bin/x y .")

    def test_the_readme_table_leaves_out_rows_we_have_no_figure_for(self):
        text = readme.make_table(self.data())
        self.assertIn("| latency <8>, µs | **1.00** | 2.00 | – | 0.500 × |", text)
        self.assertNotIn("barrier", text)

    def test_the_page_of_results_keeps_the_groups_that_a_run_did_not_measure_and_says_so(self):
        data, groups = self.data(), list(dict.fromkeys(r.group for r in work.everything(cores=2)[1]))
        for line in data["rows"]:
            line["group"] = groups[1]
        first = readme.make_results(data)
        for line in data["rows"]:
            line["group"] = groups[0]
        second = readme.make_results({**data, "rounds": 9}, first)
        self.assertLess(second.index(f"## {groups[0]}"), second.index(f"## {groups[1]}"))
        self.assertIn(f"## {groups[1]}\n\n{readme.OTHER_RUN}c, 2 cores, 2000-01-01, medians of 3 rounds", second)
        self.assertEqual(second.count(readme.FOOTNOTE), 1)
        self.assertEqual(readme.make_results({**data, "rounds": 9}, second), second)
        self.assertNotIn(readme.OTHER_RUN, readme.make_results(data, first.replace(groups[1], groups[0])))


if __name__ == "__main__":
    unittest.main()
