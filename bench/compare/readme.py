#!/usr/bin/env python3
"""Puts the comparison into README.md, between its two marks, and all of it into docs/results.md, from BUILD/bench/results.json.

    python3 bench/compare/readme.py --build build [--readme README.md] [--results docs/results.md]

The marks are the lines `<!-- comparison: begin -->` and `<!-- comparison: end -->`; what stands between
them is replaced. After a run of some rows only, README.md stays as it is, and so do the groups of docs/results.md
that were not measured; they say of which run they are.
Quick and disturbed runs are refused unless --force is given: a claim needs a quiet machine.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import jobs as work
import table

FOOTNOTE = "\\* a variant of the peer's settings was best: yielding, or with several VCIs."
OTHER_RUN = "Another run: "
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
ROWS = [
    "lat.8",
    "lat.1K",
    "lat.64K.malloc.fresh",
    "lat.1M.malloc.fresh",
    "lat.1M.heap.fresh",
    "rate.8",
    "bw.1M.malloc.untouched",
    "self.1",
    "mt.self.2",
    "instr.self",
    "mt.rate.own.2",
    "mt.rate.shared.2",
    "mt.lat.own.2",
    "coll.allreduce.8",
    "coll.barrier.0",
    "storm",
    "start.2",
    "start.64",
    "idle",
]


def make_table(data):
    """The table as Markdown; rows without a figure of ours are left out."""
    titles = [data["libraries"][k]["title"] for k in data["peers"]]
    lines = ["| " + " | ".join(["", "Heddle", *titles, "Heddle / best"]) + " |", "|---|" + "--:|" * (len(titles) + 2)]
    rows = {r["name"]: r for r in data["rows"]}
    for name in ROWS:
        row = rows.get(name)
        if not row or "value" not in row["ours"]:
            continue
        unit = f", {row['unit']}" if row["unit"] else ""
        title = row["title"]
        if row["group"].startswith("Message rate 8 B, 2 ranks"):
            title = f"message rate 8 B, 2 ranks × T threads, {title}"
        elif row["group"].startswith(("Messages to oneself", "Instructions")):
            what = "messages" if row["unit"] else "instructions a message"
            title = f"{what} to oneself, {title.removeprefix('to oneself: ')}"
        elif row["group"].startswith("Latency 8 B, T pairs"):
            title = f"latency 8 B, T pairs of threads, {title}"
        cells = [f"**{table.number(row['ours']['value'])}**"]
        for key in data["peers"]:
            cell = row["peers"].get(key, {})
            cells.append(table.number(cell.get("value")) + ("*" if cell.get("variant") else ""))
        ratio = f"{table.number(row['ratio'])} ×" if row["ratio"] is not None else ""
        lines.append("| " + " | ".join([title + unit, *cells, ratio]) + " |")
    lines.append("")
    lines.append(
        f"{machine(data)}; “best” is the best of the peers that the row is judged against. How: [docs/benchmarks.md]"
        "(docs/benchmarks.md); every row: [docs/results.md](docs/results.md); again: `make bench`."
    )
    return "\n".join(lines)


def machine(data):
    m = data["machine"]
    return f"{m['cpu']}, {m['cores']} cores, {m['date'][:10]}, medians of {data['rounds']} rounds, the libraries in turn"


def wanted(row):
    sign = {True: " ✓", False: " ✗", None: ""}
    return ", ".join(f"{text}{sign[met]}" for text, met in ((w["text"], w["met"]) for w in row["wants"]))


def earlier_groups(page):
    """The tables of an earlier page by group, each saying of which run it is."""
    head, *sections = page.split("\n## ")
    run = next((line.split(". Command:")[0] for line in head.splitlines() if ". Command:" in line), "")
    found = {}
    for section in sections:
        group, _, body = section.partition("\n")
        body = body.split(FOOTNOTE)[0].strip()
        found[group] = body if body.startswith(OTHER_RUN) else f"{OTHER_RUN}{run}.\n\n{body}"
    return found


def make_results(data, earlier=""):
    """A page with all rows, a table for each group; groups without a figure stay as they are on the page `earlier`."""
    titles = [data["libraries"][k]["title"] for k in data["peers"]]
    lines = [
        "<!-- Written by bench/compare/readme.py from a run of make bench: do not edit. -->",
        "# Results",
        "",
        f"{machine(data)}. Command: `make bench`. What the rows and the columns mean: [benchmarks.md](benchmarks.md).",
    ]
    header = "| " + " | ".join(["", "Heddle", *titles, "ratio", "wanted"]) + " |\n|---|" + "--:|" * (len(titles) + 2) + "---|"
    measured = {}
    for row in data["rows"]:
        if "value" not in row["ours"]:
            continue
        cells = [f"**{table.number(row['ours']['value'])}**"]
        for key in data["peers"]:
            cell = row["peers"].get(key, {})
            cells.append(table.number(cell.get("value")) + ("*" if cell.get("variant") else ""))
        cells.append(f"{table.number(row['ratio'])}" if row["ratio"] is not None else "")
        unit = f", {row['unit']}" if row["unit"] else ""
        line = "| " + " | ".join([row["title"] + unit, *cells, wanted(row)]) + " |"
        measured.setdefault(row["group"], [header]).append(line)
    kept = earlier_groups(earlier)
    everything = [row.group for row in work.everything(ablation=Path("."), cores=data["machine"]["cores"])[1]]
    for group in dict.fromkeys([*everything, *measured]):
        if group in measured:
            lines += ["", f"## {group}", "", *measured[group]]
        elif group in kept:
            lines += ["", f"## {group}", "", kept[group]]
    return "\n".join([*lines, "", FOOTNOTE, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--readme", default="README.md")
    parser.add_argument("--results", default="docs/results.md")
    parser.add_argument("--force", action="store_true", help="take figures of a quick or disturbed run too")
    options = parser.parse_args()
    results = Path(options.build) / "bench/results.json"
    if not results.exists():
        print(f"no {results}: run make bench first", file=sys.stderr)
        return 1
    data = json.loads(results.read_text())
    if (data["quick"] or data["disturbed"]) and not options.force:
        print("these figures come from a quick run or a machine that was not idle; --force takes them", file=sys.stderr)
        return 1
    readme = Path(options.readme)
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        print(f"{readme} has no lines {BEGIN} and {END}", file=sys.stderr)
        return 1
    figures = {row["name"] for row in data["rows"] if "value" in row["ours"]}
    if missing := [name for name in ROWS if name not in figures]:
        print(f"{readme} stays as it is: this run has no figures of {', '.join(missing)}", file=sys.stderr)
    else:
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        readme.write_text(f"{before}{BEGIN}\n{make_table(data)}\n{END}{after}")
    page = Path(options.results)
    page.write_text(make_results(data, page.read_text() if page.exists() else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
