#!/usr/bin/env python3
"""Halo time against the size of the plate, in every mode and with ranks only: figure 22 of the paper on VCIs.

    apps/stencil2d/figure22.py [--build build] [--ranks 2] [--threads 2] [--sizes 128,256,512,1024,2048] [--out halo.svg]

"ranks-only" is the same number of threads of execution as single-threaded ranks: RANKS x THREADS of them. Times are medians of
the steps of one run; on a machine with fewer cores than ranks x threads they mostly show how waiting threads take turns.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/compare"))
import plot  # noqa: E402

COLOURS = {"ranks-only": "#444", "funneled": "#999", "multiple": "#c33", "comm-per-thread": "#27c", "endpoints": "#292"}
STYLE = "text{font-family:sans-serif;font-size:11px}.grid{stroke:#ddd}svg{background:#fff;%s}"


def run(build, ranks, threads, size, iterations):
    """{mode: median halo time in microseconds} of one run."""
    command = [build / "bin/mpiexec", "-n", ranks, build / "bin/stencil2d", "--threads", threads, "--size", size]
    command += ["--iterations", iterations, "--picture", "none"]
    env = {"OMP_WAIT_POLICY": "passive", **os.environ}
    done = subprocess.run([str(c) for c in command], env=env, text=True, capture_output=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return {m[1]: float(m[2]) for m in re.finditer(r"^  (\S+) +([0-9.]+) us ", done.stdout, re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("--ranks", default=2, type=int)
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--iterations", default=200, type=int)
    parser.add_argument("--sizes", default="128,256,512,1024,2048")
    parser.add_argument("--out", type=Path, help="an SVG file to draw")
    options = parser.parse_args()
    series = {}
    for size in map(int, options.sizes.split(",")):
        times = run(options.build, options.ranks, options.threads, size, options.iterations)
        everywhere = run(options.build, options.ranks * options.threads, 1, size, options.iterations)
        for mode, time in {"ranks-only": everywhere["funneled"], **times}.items():
            series.setdefault(mode, []).append((size, time))
    print("halo exchange, median, µs".ljust(28) + "".join(f"{size:>10}" for size, _ in series["ranks-only"]))
    for mode, points in series.items():
        print(f"  {mode:26}" + "".join(f"{time:10.1f}" for _, time in points))
    if options.out:
        title = f"Halo exchange, {options.ranks} ranks of {options.threads} threads"
        svg = plot.lines(title, series, {}, "cells along a side", "µs", x_log=True)
        colours = ";".join(f"--{mode}:{colour}" for mode, colour in COLOURS.items())
        head, rest = svg.split(">", 1)
        options.out.write_text(f'{head} xmlns="http://www.w3.org/2000/svg"><style>{STYLE % colours}</style>{rest}')
        print(options.out)


if __name__ == "__main__":
    main()
