#!/usr/bin/env python3
"""Runs the same work on Heddle and on the other MPIs, side by side, and prints one table.

    python3 bench/compare/run.py --build build [--rows 'lat.*,rate.*'] [--rounds 3] [--quick] [--list]

Every job runs on all libraries in turn, then in the opposite order, for --rounds rounds; the table shows medians.
Results go to BUILD/bench/results.json and, with plots, to BUILD/bench/report.html.
--merge keeps the figures of jobs that this call does not run. One instance at a time; nothing else should use the
machine (the report says how idle it was).
"""

import argparse
import datetime
import fcntl
import fnmatch
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import jobs as work
import jobs_ablation
import libraries as libs
import measure
import peers
import report
import table

ROOT = Path(__file__).resolve().parents[2]
DISTURBED = 0.10  # share of the machine used by others during a run from which on it is called disturbed


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def busy_seconds():
    """CPU seconds the whole machine has spent on anything but idling."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, soft, steal = fields
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime + own.ru_utime + own.ru_stime


class Disturbance:
    """Which share of the machine others used while a job ran."""

    def __enter__(self):
        self.busy, self.own, self.start = busy_seconds(), children_seconds(), time.monotonic()
        return self

    def __exit__(self, *_):
        spent = time.monotonic() - self.start
        others = (busy_seconds() - self.busy) - (children_seconds() - self.own)
        self.share = max(0.0, others / (spent * os.cpu_count())) if spent > 0.05 else 0.0


def machine():
    load = os.getloadavg()[0]
    revision = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        "load_before": round(load, 2),
        "revision": revision.stdout.strip(),
    }


def select(jobs, rows, patterns):
    """The rows whose name matches, those their targets refer to, and the jobs they need."""
    if patterns:
        names = {r.name for r in rows if any(fnmatch.fnmatch(r.name, p) for p in patterns)}
        names |= {r.own_row for r in rows if r.name in names and r.own_row}
        rows = [r for r in rows if r.name in names]
    needed = {r.job for r in rows}
    return {name: job for name, job in jobs.items() if name in needed}, rows


def gather_libraries(build, wanted, baseline, settings, say):
    found, lacking = {}, {}
    ours = libs.heddle(build, env=dict(s.split("=", 1) for s in settings))
    if ours:
        found["heddle"] = ours
    else:
        lacking["heddle"] = f"no {build}/bin/mpicc and mpiexec: run make first"
        say(f"Heddle is left out: {lacking['heddle']}")
    if baseline:
        other = libs.heddle(baseline, "baseline", "Heddle (baseline)")
        if other:
            found["baseline"] = other
        else:
            lacking["baseline"] = f"no {baseline}/bin/mpicc and mpiexec"
            say(f"The baseline is left out: {lacking['baseline']}")
    have, missing = peers.ensure(build, [k for k in peers.ALL if not wanted or k in wanted], say)
    lacking.update(missing)
    for key in peers.ALL:
        if key in have:
            found[key] = libs.MAKERS[key](have[key])
    return found, lacking


class Progress:
    """One line a job that fills up while it runs; on a terminal it is redrawn in place."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def show(self, text):
        if self.terminal:
            print(f"\r\033[K[{self.done}/{self.total}] {text[:150]}", end="", file=sys.stderr, flush=True)

    def end_job(self, text):
        self.done += 1
        spent = time.monotonic() - self.start
        left = spent / self.done * (self.total - self.done)
        start = "\r\033[K" if self.terminal else ""
        print(f"{start}[{self.done}/{self.total}] {text}  ({left / 60:.0f} min left)", file=sys.stderr, flush=True)


def libraries_of(job, found):
    """The libraries a job runs on, variants behind the library they vary."""
    chosen = []
    for key, library in found.items():
        if job.libraries and key.replace("baseline", "heddle") not in job.libraries:
            continue
        chosen.append(library)
        for name in job.variants:
            if libs.VARIANTS[name][0] == key:
                chosen.append(libs.variant(name, found))
    return chosen


def run_one(job, chosen, rounds, out, progress, cores):
    """All rounds of one job. Returns its record {library: {"rounds", "error"}} and the largest disturbance."""
    record = {library.key: {"rounds": [], "distances": [], "error": ""} for library in chosen}
    programs = {}
    for library in chosen:
        try:
            programs[library.key] = libs.compile_program(library, job.source, out, ROOT)
        except libs.CompileError as error:
            record[library.key]["error"] = "does not compile: " + str(error).splitlines()[0][:200]
    disturbed = 0.0
    exact = job.kind == "callgrind"
    for turn in range(1 if exact else rounds):
        order = chosen if turn % 2 == 0 else list(reversed(chosen))
        for library in order:
            entry = record[library.key]
            if entry["error"]:
                continue
            distance = None if exact else cores.settle()
            progress.show(f"{job.name}: round {turn + 1}, {library.title}")
            with Disturbance() as others:
                try:
                    entry["rounds"].append(measure.run_job(job, library, programs[library.key]))
                    entry["distances"].append(distance and max(distance, cores.distance()))
                except measure.JobError as error:
                    entry["error"] = str(error)
            if not exact:
                disturbed = max(disturbed, others.share)
    return record, disturbed


def summary(job, rows, record, found):
    """The first row of a job in one line."""
    row = next(r for r in rows if r.job == job.name)
    results = {job.name: record}
    parts = []
    for key in found:
        if key in record:
            c = table.cell(results, job.name, key, row.key)
            parts.append(
                f"{found[key].title.split(' 20')[0]} {table.number(c.value)}"
                if not c.error
                else f"{found[key].title} failed"
            )
    return f"{row.title}: {' · '.join(parts)} {row.unit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory (default: build)")
    parser.add_argument("--rows", help="comma separated names or patterns of rows (see --list)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all libraries (default: 3)")
    parser.add_argument(
        "--patience",
        type=int,
        default=600,
        help="seconds to wait in all for cores that the host of a virtual machine has moved apart (default: 600)",
    )
    parser.add_argument("--quick", action="store_true", help="shorter measurements, one round: a look, not a claim")
    parser.add_argument("--peers", help="comma separated keys of the peers to run: " + ", ".join(peers.ALL))
    parser.add_argument(
        "--baseline",
        metavar="BUILD",
        help="another build of Heddle to run beside this one; it does " "not count as a peer",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable for Heddle (not the baseline), for experiments",
    )
    parser.add_argument("--list", action="store_true", help="list the rows and end")
    parser.add_argument("--merge", action="store_true", help="keep the other jobs' figures of an earlier call")
    parser.add_argument("--output", help="directory for results.json and report.html (default: BUILD/bench)")
    options = parser.parse_args()

    ablation = Path(options.build).resolve() / "ablation"
    jobs, rows = work.everything(options.quick, ablation=ablation if jobs_ablation.built(ablation) else None)
    all_rows = rows
    jobs, rows = select(jobs, rows, options.rows.split(",") if options.rows else None)
    if options.list:
        for row in rows:
            print(f"{row.name:28} {row.group}: {row.title}")
        return 0
    if not rows:
        print("no row has such a name; --list shows them", file=sys.stderr)
        return 2

    lock = open(Path(tempfile.gettempdir()) / "heddle-bench.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("another benchmark is running on this machine: two at once measure each other", file=sys.stderr)
        return 2

    def say(text):
        print(text, file=sys.stderr, flush=True)

    out = Path(options.output or Path(options.build) / "bench").resolve()
    out.mkdir(parents=True, exist_ok=True)
    programs = Path(options.build).resolve() / "bench/programs"
    about = machine()
    found, lacking = gather_libraries(
        options.build, options.peers.split(",") if options.peers else None, options.baseline, options.set, say
    )
    for library in found.values():
        try:
            library.version = measure.identify(
                library, libs.compile_program(library, "bench/programs/version.c", programs, ROOT)
            )
        except (measure.JobError, libs.CompileError) as error:
            library.version = f"did not start: {error}"
    for library in found.values():
        say(f"  {library.title:20} {library.version}")
    quiet_limit = 0.3 * about["cores"]
    if about["load_before"] > quiet_limit:
        say(f"NOTE: the load is {about['load_before']} on {about['cores']} cores already: times will be noise")

    results, disturbances = {}, {}
    results_path = out / "results.json"
    if options.merge and results_path.exists():
        earlier = json.loads(results_path.read_text())
        results, disturbances = earlier["results"], earlier["disturbed"]
        rows = [r for r in all_rows if r.job in jobs or r.job in results]
    rounds = 1 if options.quick else max(1, options.rounds)
    progress = Progress(len(jobs))
    variants = {k: (v[0], v[1]) for k, v in libs.VARIANTS.items()}
    peer_keys = [k for k in ("baseline", *peers.ALL) if k in found]
    titles = {k: library.title for k, library in found.items()}

    def save():
        lines = table.make_lines(rows, results, peer_keys, variants)
        data = {
            "machine": about,
            "rounds": rounds,
            "quick": options.quick,
            "lacking": lacking,
            "libraries": {
                k: {"title": l.title, "version": l.version, "settings": {p: l.settings(p) for p in libs.PROFILES}}
                for k, l in found.items()
            },
            "variants": {k: {"title": v[1], "base": v[0], "env": v[2]} for k, v in libs.VARIANTS.items()},
            "peers": peer_keys,
            "disturbed": disturbances,
            "results": results,
            "rows": [report.line_to_json(line) for line in lines],
        }
        text = report.without_places(
            json.dumps(data, indent=1, ensure_ascii=False), [ROOT, Path(options.build).resolve()]
        )
        results_path.write_text(text)
        (out / "report.html").write_text(report.page(json.loads(text)))
        return lines

    cores = measure.Cores(programs, ROOT, options.patience)
    segments = measure.shared_segments()
    try:
        for name, job in jobs.items():
            chosen = libraries_of(job, found)
            if not chosen:
                progress.end_job(f"{name}: no library to run it")
                continue
            record, disturbed = run_one(job, chosen, rounds, programs, progress, cores)
            results[name] = record
            disturbances.pop(name, None)
            if disturbed > DISTURBED:
                disturbances[name] = round(disturbed, 3)
            progress.end_job(summary(job, rows, record, found))
            save()
    except KeyboardInterrupt:
        say("\ninterrupted: the table shows what there is")
    finally:
        measure.remove_leftovers(segments)
    lines = save()
    print()
    table.print_table(lines, peer_keys, titles, sys.stdout)
    if disturbances:
        worst = max(disturbances.values())
        print(
            f"\nNOTE: {len(disturbances)} of {len(results)} jobs ran while other work used the machine (up to "
            f"{100 * worst:.0f} % of it): do not trust their times."
        )
    print(f"\n{results_path}\n{out / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
