#!/usr/bin/env python3
"""Where the instructions of a message go: callgrind's list of functions for one test of count.c, per message.

    python3 bench/compare/instructions.py --build build --test self [--thread multiple] [--library heddle|mpich5|...]

Tests: self, selfrecv (one process); pair, prepost (two ranks, shown for each). Figures are exclusive (the function
alone), divided by the number of messages; one-time costs are not taken off here, so the sum is a little above the
row `instr.*` of the comparison.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import libraries as libs
import measure
import peers

ROOT = Path(__file__).resolve().parents[2]
REPEAT = {1: 1000, 2: 100}
BURST = {1: 1, 2: 32}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--test", default="self", choices=["self", "selfrecv", "pair", "prepost"])
    parser.add_argument("--thread", default="single", choices=["single", "funneled", "serialized", "multiple"])
    parser.add_argument("--library", default="heddle", choices=["heddle", *peers.ALL])
    parser.add_argument("--lines", type=int, default=25, help="functions to show")
    options = parser.parse_args()
    if options.library == "heddle":
        library = libs.heddle(options.build)
    else:
        have, _ = peers.ensure(options.build, [options.library])
        library = libs.MAKERS[options.library](have[options.library]) if have else None
    if not library:
        print(f"{options.library} is not there", file=sys.stderr)
        return 1
    program = libs.compile_program(
        library, "bench/programs/count.c", Path(options.build).resolve() / "bench/programs", ROOT
    )
    ranks = 1 if options.test.startswith("self") else 2
    profile = "single" if ranks == 1 else "pair"
    with tempfile.TemporaryDirectory(prefix="heddle-count-") as directory:
        for rank in range(2):
            os.mkfifo(f"{directory}/to{rank}")
        tool = measure.callgrind(library, directory, program)
        arguments = [
            f"--test={options.test}",
            f"--thread={options.thread}",
            f"--repeat={REPEAT[ranks]}",
            f"--pipes={directory}",
        ]
        measure.start(
            library.command(profile, ranks, tool, arguments), library.environment(profile), 300, cwd=directory
        )
        for path in sorted(Path(directory).glob("count.*")):
            show(path, ranks, options)
    return 0


def show(path, ranks, options):
    messages = REPEAT[ranks] * BURST[ranks]
    text = subprocess.run(["callgrind_annotate", "--threshold=100", str(path)], capture_output=True, text=True).stdout
    print(f"\nrank {path.name.rpartition('.')[2]}, {options.test}, instructions per message:")
    shown = 0
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+)\s*\([^)]*\)\s+(.*)", line)
        if not match:
            continue
        count = int(match.group(1).replace(",", "")) / messages
        where = re.sub(r" \[.*/([^/]+)\]$", r"  [\1]", match.group(2))
        where = re.sub(r"^\S*/([^/:]+:)", r"\1", where)
        if count >= 0.5 and shown <= options.lines:
            print(f"{count:9.1f}  {where}")
            shown += 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (measure.JobError, libs.CompileError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
