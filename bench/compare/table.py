"""From raw figures to rows: medians, the best peer, ratios, targets; and their text form."""

import statistics
from dataclasses import dataclass, field

import measure


@dataclass
class Cell:
    value: float = None
    low: float = None
    high: float = None
    error: str = ""
    variant: str = ""  # the settings variant that gave the figure, when it beat the plain settings


@dataclass
class Line:
    """One row as printed."""

    name: str
    title: str
    group: str
    unit: str
    better: str
    ours: Cell
    peers: dict  # key -> Cell
    best: str = ""  # key of the best peer that counts
    ratio: float = None  # ours / best
    wants: list = field(default_factory=list)  # (text, met or None)


def near_rounds(results, job):
    """{library: rounds} of a job: those with the cores near each other where every library has such, else all."""
    records = results.get(job, {})
    seen = [d for job in results.values() for record in job.values() for d in record.get("distances", []) if d]
    chosen = {}
    for library, record in records.items():
        distances = record.get("distances") or [None] * len(record["rounds"])
        near = [r for r, d in zip(record["rounds"], distances) if d is None or d <= measure.Cores.NEAR * min(seen)]
        if record["rounds"] and not near:
            return {library: record["rounds"] for library, record in records.items()}
        chosen[library] = near
    return chosen


def cell(results, job, library, key):
    """The median over the rounds of one figure."""
    record = results.get(job, {}).get(library)
    if not record:
        return Cell()
    values = [figures[key] for figures in near_rounds(results, job)[library] if key in figures]
    if not values:
        return Cell(error=record.get("error") or f"no figure {key}")
    return Cell(statistics.median(values), min(values), max(values))


def better_of(a, b, better):
    if a.value is None:
        return b
    if b.value is None:
        return a
    return a if (a.value <= b.value) == (better == "lower") else b


def make_lines(rows, results, peer_keys, variants):
    """`results`: {job: {library: {"rounds": [{key: value}], "error": text}}}; `variants`: {key: (base, title)}."""
    lines = []
    for row in rows:
        ours = cell(results, row.job, "heddle", row.key)
        peers = {}
        for key in peer_keys:
            found = cell(results, row.job, key, row.key)
            for variant, (base, title) in variants.items():
                if base == key:
                    other = cell(results, row.job, variant, row.key)
                    other.variant = title
                    if other.value is not None:
                        found = better_of(found, other, row.better)
            peers[key] = found
        line = Line(row.name, row.title, row.group, row.unit, row.better, ours, peers)
        counted = {
            k: c
            for k, c in peers.items()
            if c.value is not None and k != "baseline" and (not row.against or k in row.against)
        }
        if counted:
            pick = min if row.better == "lower" else max
            line.best = pick(counted, key=lambda k: counted[k].value)
            if ours.value is not None and counted[line.best].value:
                line.ratio = ours.value / counted[line.best].value
        lines.append(line)
    by_name = {line.name: line for line in lines}
    sign = {"lower": "≤", "higher": "≥"}
    for row, line in zip(rows, lines):

        def met(value, limit, row=row):
            if value is None:
                return None
            return value <= limit if row.better == "lower" else value >= limit

        if row.ratio:
            line.wants.append((f"{sign[row.better]} {row.ratio:g}×", met(line.ratio, row.ratio)))
        if row.absolute:
            line.wants.append(
                (f"{sign[row.better]} {row.absolute:g} {row.unit}".strip(), met(line.ours.value, row.absolute))
            )
        if row.own_ratio:
            base = by_name.get(row.own_row)
            value = None
            if base and base.ours.value and line.ours.value is not None:
                value = line.ours.value / base.ours.value
            line.wants.append((f"{sign[row.better]} {row.own_ratio:g}× {row.own_row}", met(value, row.own_ratio)))
    return lines


def number(value):
    """Three significant digits, without an exponent."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    if abs(value) >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}"


MARK = {True: "✓", False: "✗", None: "·"}


def want_text(line):
    return ", ".join(f"{text} {MARK[met]}" for text, met in line.wants)


def print_table(lines, peer_keys, titles, out):
    """The table as text, `*` marking a figure from a settings variant; errors are listed below it."""
    header = ["", "Heddle", *[titles[k] for k in peer_keys], "unit", "best peer", "ratio", "wanted"]
    grid, errors, used_variants = [], {}, set()
    group = None
    for line in lines:
        if line.group != group:
            group = line.group
            grid.append([f"— {group}"])
        cells = [number(line.ours.value)]
        for key in peer_keys:
            c = line.peers[key]
            cells.append(number(c.value) + ("*" if c.variant else ""))
            if c.variant:
                used_variants.add(c.variant)
        for who, c in (("Heddle", line.ours), *((titles[k], line.peers[k]) for k in peer_keys)):
            if c.error:
                errors.setdefault((who, c.error), []).append(line.name)
        grid.append([line.title, *cells, line.unit, titles.get(line.best, "–"), number(line.ratio), want_text(line)])
    widths = [max(len(r[i]) for r in [header, *(g for g in grid if len(g) > 1)]) for i in range(len(header))]
    numeric = range(1, 2 + len(peer_keys))

    def show(cells):
        parts = []
        for i, text in enumerate(cells):
            right = i in numeric or i == len(header) - 2
            parts.append(text.rjust(widths[i]) if right else text.ljust(widths[i]))
        print("  ".join(parts).rstrip(), file=out)

    show(header)
    for cells in grid:
        if len(cells) == 1:
            print(f"\n{cells[0]}", file=out)
        else:
            show(cells)
    if used_variants:
        print(f"\n* {'; '.join(sorted(used_variants))}", file=out)
    if errors:
        print("\nNot measured:", file=out)
        for (who, why), names in errors.items():
            print(f"  {who}: {why}\n    {', '.join(names)}", file=out)
    met = [m for line in lines for _, m in line.wants]
    if met:
        print(f"\nTargets: {met.count(True)} met, {met.count(False)} missed, {met.count(None)} not measured.", file=out)
