#!/usr/bin/env python3
"""Writes the comparison table of README.md from the figures of `make bench`.

    tools/dev/readme_table.py [build/bench/results.json]

Replaces what stands between the two marks in README.md. Nothing is typed by hand there: a figure without a measurement
is shown as a dash.
"""
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BEGIN, END = "<!-- figures: begin (made by tools/dev/readme_table.py) -->", "<!-- figures: end -->"

# Row of the benchmark, and its words here.
ROWS = [
    ("lat.8", "8-byte message, one way"),
    ("lat.1K", "1 KiB message"),
    ("lat.1M.malloc.fresh", "1 MiB message, freshly written"),
    ("rate.8", "8-byte messages per second"),
    ("self.1", "messages to oneself"),
    ("mt.self.2", "the same, 2 threads with a communicator each"),
    ("instr.self", "instructions for one of them"),
    ("coll.allreduce.8", "allreduce of 8 bytes, 2 ranks"),
    ("coll.barrier.0", "barrier, 2 ranks"),
    ("storm", "barrier, 4 ranks on each core"),
    ("start.64", "start and stop 64 ranks"),
    ("idle", "processor time of a blocked receive"),
]


def number(value):
    """Three significant digits."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def make(results):
    """The table, and a line on where it was measured."""
    if results is None:
        names = ["MPICH", "Open MPI", "Intel MPI"]
        lines = ["| | Heddle | " + " | ".join(names) + " |", "|---|--:|" + "--:|" * len(names)]
        lines += [f"| {words} |" + " – |" * (len(names) + 1) for _, words in ROWS]
        return lines + ["", "*Not measured yet on this page; `make bench` measures all of them side by side.*"]
    rows = {row["name"]: row for row in results["rows"]}
    peers = results["peers"]
    titles = [results["libraries"][key]["title"] for key in peers]
    lines = ["| | Heddle | " + " | ".join(titles) + " |", "|---|--:|" + "--:|" * len(peers)]
    for name, words in ROWS:
        row = rows.get(name)
        if row is None:
            continue
        values = {"heddle": row["ours"].get("value")}
        values.update({key: row["peers"].get(key, {}).get("value") for key in peers})
        known = [v for v in values.values() if v is not None]
        best = (min if row["better"] == "lower" else max)(known) if known else None
        shown = [f"**{number(v)}**" if v is not None and v == best else number(v) for v in values.values()]
        unit = f" ({row['unit']})" if row["unit"] else ""
        lines.append(f"| {words}{unit} | " + " | ".join(shown) + " |")
    machine = results["machine"]
    return lines + ["", f"*One run of `make bench`, all libraries in alternation, medians of {results['rounds']} rounds, "
                        f"on one machine of {machine['cores']} cores ({machine['cpu']}); the best of a row in bold.*"]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/bench/results.json")
    results = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    elif len(sys.argv) > 1:
        sys.exit(f"{path} is not there: run `make bench` first")
    readme = os.path.join(ROOT, "README.md")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"README.md lacks the marks {BEGIN} and {END}")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + "\n".join(make(results)) + "\n" + END + after)


if __name__ == "__main__":
    main()
