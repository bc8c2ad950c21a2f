"""results.json as one self-contained HTML page: the table, plots as inline SVG, how it was measured."""

import html
import re

import plot
import table

STYLE = """
:root { --ink: #1d2330; --soft: #667085; --line: #d8dce5; --back: #fff;
  --band: #f5f6f9; --good: #12805c; --bad: #b42318;
  --heddle: #d6336c; --mpich5: #1c7ed6; --mpich4: #6741d9; --openmpi5: #e8590c; --intel: #2b8a3e; --baseline: #868e96;
  --own: #d6336c; --windows: #1c7ed6; --shared: #1c7ed6; --everywhere: #868e96; --endpoints: #2b8a3e;
  --all: #d6336c; --one: #868e96; --progress: #1c7ed6; --looks: #15aabf; --progress-looks: #6741d9; --requests: #e8590c;
  --lines: #2b8a3e; --progress-looks-requests-lines: #343a40; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #98a2b3; --line: #39404f; --back: #14171d;
  --band: #1c2028; --good: #4ade9f; --bad: #ff8a7a; --heddle: #ff6b9d; --mpich5: #66b2ff; --mpich4: #a78bfa;
  --openmpi5: #ffa066; --intel: #69db7c; --baseline: #868e96; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { padding: .22rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
thead th { border-bottom: 2px solid var(--line); } tr.group td { background: var(--band); font-weight: 600; }
td.ours { font-weight: 700; } td.best { text-decoration: underline; } 
.met { color: var(--good); } .missed { color: var(--bad); }
.wide { overflow-x: auto; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); gap: 1.5rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--line); stroke-width: 1; } .note { border-left: 4px solid var(--bad); padding-left: .8rem; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; } code { font-size: 12.5px; }
"""


def cell_to_json(cell):
    return {k: v for k, v in vars(cell).items() if v not in (None, "")}


def line_to_json(line):
    return {
        "name": line.name,
        "title": line.title,
        "group": line.group,
        "unit": line.unit,
        "better": line.better,
        "ours": cell_to_json(line.ours),
        "peers": {k: cell_to_json(c) for k, c in line.peers.items()},
        "best": line.best,
        "ratio": line.ratio,
        "wants": [{"text": t, "met": m} for t, m in line.wants],
    }


def without_places(text, places):
    """Takes the directories of the measuring machine out: a report is published."""
    for place in sorted({str(p) for p in places}, key=len, reverse=True):
        text = text.replace(place + "/", "").replace(place, ".")
    return text


def escape(text):
    return html.escape(str(text))


def rows_html(data):
    titles = {k: v["title"] for k, v in data["libraries"].items()}
    out, group = [], None
    for row in data["rows"]:
        if row["group"] != group:
            group = row["group"]
            out.append(f'<tr class="group"><td colspan="{5 + len(data["peers"])}">{escape(group)}</td></tr>')
        cells = [f'<td title="{escape(row["name"])}">{escape(row["title"])}</td>', td(row["ours"], "ours")]
        cells += [td(row["peers"].get(k, {}), "best" if k == row["best"] else "") for k in data["peers"]]
        wants = ", ".join(
            f'<span class="{"met" if w["met"] else "missed" if w["met"] is False else "soft"}">'
            f'{escape(w["text"])} {table.MARK[w["met"]]}</span>'
            for w in row["wants"]
        )
        cells += [f"<td>{escape(row['unit'])}</td>", f"<td>{table.number(row['ratio'])}</td>", f"<td>{wants}</td>"]
        out.append("<tr>" + "".join(cells) + "</tr>")
    head = "".join(
        f"<th>{escape(t)}</th>"
        for t in ["", "Heddle", *[titles[k] for k in data["peers"]], "unit", "ours / best", "wanted"]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(out)}</tbody></table></div>'


def td(cell, kind):
    notes = []
    if "low" in cell and cell["low"] != cell["high"]:
        notes.append(f"{table.number(cell['low'])} to {table.number(cell['high'])}")
    notes += [cell[k] for k in ("variant", "error") if k in cell]
    text = table.number(cell.get("value")) + ("*" if cell.get("variant") else "")
    return f'<td class="{kind}" title="{escape("; ".join(notes))}">{text}</td>'


def series_of(data, pattern):
    """{library: [(x, value)]} of the rows whose name matches `pattern`, whose group 1 is x."""
    found = {}
    for row in data["rows"]:
        match = re.fullmatch(pattern, row["name"])
        if not match:
            continue
        x = float(match.group(1))
        for key, cell in (("heddle", row["ours"]), *row["peers"].items()):
            if "value" in cell:
                found.setdefault(key, []).append((x, cell["value"]))
    return found


def sizes_threads(data):
    """The numbers of threads for which there are rows by size."""
    names = {re.match(r"mt\.size(\d*)\.", row["name"]) for row in data["rows"]} - {None}
    return sorted({int(match[1] or 2) for match in names})


def plots_html(data):
    names = {k: v["title"] for k, v in data["libraries"].items()}
    figures = []

    def lines(title, pattern, x_label, y_label, **more):
        figures.append(plot.lines(title, series_of(data, pattern), names, x_label, y_label, **more))

    lines("Latency, one way", r"sweep\.lat\.([1-9]\d*)", "bytes", "µs", x_log=True, y_log=True, x_bytes=True)
    lines("Bandwidth, window of 64", r"sweep\.bw\.(\d+)", "bytes", "GB/s", x_log=True, y_log=True, x_bytes=True)
    modes = (
        ("own", "a communicator per thread"),
        ("shared", "one communicator"),
        ("everywhere", "ranks only"),
        ("endpoints", "endpoints"),
    )
    # Heddle alone, all modes in one picture: paper 004's figures 10 and 11, paper 000's figures 5 and 6.
    mode_names = dict(modes)

    def all_modes(title, pattern, x_label, y_label="million/s", scale=None, **more):
        series = {mode: series_of(data, pattern % mode).get("heddle", []) for mode in mode_names}
        if scale:
            series = {mode: [(x, scale(x, y)) for x, y in points] for mode, points in series.items()}
        figures.append(plot.lines(title, series, mode_names, x_label, y_label, x_log=True, **more))

    all_modes("Heddle, all modes: message rate against threads", r"mt\.rate\.%s\.(\d+)", "threads (pairs)")
    for threads in sizes_threads(data):
        rows = r"mt\.size\.%s\.(\d+)" if threads == 2 else rf"mt\.size{threads}\.%s\.(\d+)"
        by_size = {"y_log": True, "x_bytes": True}
        all_modes(f"Heddle, all modes: message rate against size, {threads} threads", rows, "bytes", **by_size)
        all_modes(
            f"Heddle, all modes: bandwidth against size, {threads} threads",
            rows,
            "bytes",
            "GB/s",
            lambda size, rate: size * rate / 1000,
            **by_size,
        )
    all_modes("Heddle, all modes: latency of all pairs at once", r"mt\.lat\.%s\.(\d+)", "threads (pairs)", "µs", y_log=True)
    all_modes("Heddle, all modes: many senders, one receiver", r"mt\.incast\.%s\.(\d+)", "senders")
    safety = {"everywhere": r"mt\.rate\.everywhere\.(\d+)", "shared": r"mt\.safety\.(\d+)", "own": r"mt\.rate\.own\.(\d+)"}
    series = {mode: series_of(data, pattern).get("heddle", []) for mode, pattern in safety.items()}
    safety_names = {"everywhere": "ranks, SINGLE", "shared": "ranks, MULTIPLE", "own": "threads"}
    title = "Heddle: what thread safety costs"
    figures.append(plot.lines(title, series, safety_names, "pairs", "million/s", x_log=True))
    self_rows = {"own": r"mt\.self\.(\d+)", "endpoints": r"mt\.self\.endpoints\.(\d+)"}
    series = {mode: series_of(data, pattern).get("heddle", []) for mode, pattern in self_rows.items()}
    figures.append(
        plot.lines("Heddle: messages to oneself against threads", series, mode_names, "threads", "million/s", x_log=True)
    )
    # Paper 004's figures 5 to 7: what is lost without an optimisation.
    for test, title in (("self", "to oneself"), ("rate", "2 ranks")):
        series, names_of = {}, {}
        for row in data["rows"]:
            match = re.fullmatch(rf"ablation\.{test}\.([a-z-]+)\.(\d+)", row["name"])
            if match and "value" in row["ours"]:
                series.setdefault(match[1], []).append((float(match[2]), row["ours"]["value"]))
                names_of[match[1]] = row["title"].partition(": ")[2]
        figures.append(
            plot.lines(f"Without an optimisation: {title}", series, names_of, "threads", "million/s", x_log=True)
        )
    for mode, title in modes:
        lines(
            f"Message rate against threads: {title}",
            rf"mt\.rate\.{mode}\.(\d+)",
            "threads (pairs)",
            "million/s",
            x_log=True,
        )
    lines("Messages to oneself against threads", r"mt\.self\.(\d+)", "threads", "million/s", x_log=True)
    for mode, title in (("own", "a communicator per thread"), ("shared", "one communicator")):
        lines(
            f"Message rate by size, 2 threads: {title}",
            rf"mt\.size\.{mode}\.(\d+)",
            "bytes",
            "million/s",
            x_log=True,
            y_log=True,
            x_bytes=True,
        )
        lines(
            f"Latency of all pairs at once: {title}",
            rf"mt\.lat\.{mode}\.(\d+)",
            "threads (pairs)",
            "µs",
            x_log=True,
            y_log=True,
        )
        lines(f"Many senders, one receiver: {title}", rf"mt\.incast\.{mode}\.(\d+)", "senders", "million/s", x_log=True)
    for kind, title in (("posted", "posted receives"), ("unexpected", "unexpected messages")):
        lines(f"Latency with other {title} outstanding", rf"match\.{kind}\.(\d+)", title, "µs", x_log=True, y_log=True)
    for memory, title in (("", "MPI_Win_allocate"), (r"create\.", "malloc'd memory")):
        for op in ("put", "get", "accumulate"):
            lines(
                f"One-sided, {op} and flush by size: {title}",
                rf"rma\.{memory}size\.{op}\.(\d+)",
                "bytes",
                "µs",
                x_log=True,
                y_log=True,
                x_bytes=True,
            )
    shares = {"one": "one window", "windows": "a window a thread", "endpoints": "endpoints"}
    for op in ("put", "get", "accumulate"):
        series = {share: series_of(data, rf"rma\.threads\.{op}\.{share}\.(\d+)").get("heddle", []) for share in shares}
        title = f"Heddle, one-sided: {op} 8 B, 64 a flush, against threads"
        figures.append(plot.lines(title, series, shares, "threads", "million/s", x_log=True))
        for share, share_title in list(shares.items())[:2]:
            title = f"One-sided, {op} 8 B, 64 a flush, against threads: {share_title}"
            lines(title, rf"rma\.threads\.{op}\.{share}\.(\d+)", "threads", "million/s", x_log=True)
    counts = [r for r in data["rows"] if r["name"].startswith("instr.")]
    if counts:
        bars = [
            (r["title"], {k: c["value"] for k, c in (("heddle", r["ours"]), *r["peers"].items()) if "value" in c})
            for r in counts
        ]
        figures.append(plot.bars("Instructions per message", bars, names))
    return '<div class="plots">' + "".join(f"<figure>{f}</figure>" for f in figures if f) + "</div>"


def how_html(data):
    used = []
    for library in data["libraries"].values():
        settings = "".join(f"<br><code>{escape(p)}: {escape(s)}</code>" for p, s in library["settings"].items())
        used.append(f"<dt>{escape(library['title'])}</dt><dd>{escape(library['version'])}{settings}</dd>")
    for variant in data["variants"].values():
        env = " ".join(f"{k}={v}" for k, v in variant["env"].items())
        used.append(
            f"<dt>{escape(variant['title'])}</dt><dd><code>{escape(env)}</code>, "
            "only in the rows of several threads, where the better of the two is shown and marked *</dd>"
        )
    for key, why in data["lacking"].items():
        used.append(f"<dt>{escape(key)}</dt><dd>left out: {escape(why)}</dd>")
    return "<dl>" + "".join(used) + "</dl>"


def page(data):
    m = data["machine"]
    notes = []
    if data["quick"]:
        notes.append("A quick run: one short round. A look, not a claim.")
    if m["load_before"] > 0.3 * m["cores"]:
        notes.append(f"The load was {m['load_before']} before anything ran: the times are noise.")
    if data["disturbed"]:
        notes.append(
            f"{len(data['disturbed'])} of {len(data['results'])} jobs ran while other work used the machine: "
            + ", ".join(data["disturbed"])
            + "."
        )
    note = "".join(f'<p class="note">{escape(n)}</p>' for n in notes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Heddle beside other MPIs</title><style>{STYLE}</style></head><body>
<h1>Heddle beside other MPIs</h1>
<p class="soft">{escape(m['cpu'])}, {m['cores']} cores, Linux {escape(m['kernel'])} · {escape(m['date'])} ·
revision {escape(m['revision'])} · medians of {data['rounds']} round(s), the libraries in turn and in both orders</p>
{note}<h2>Plots</h2>{plots_html(data)}<h2>Table</h2>
<p class="soft">The best peer that counts for a row's target is underlined.
Point at a figure for its range or its error.</p>
{rows_html(data)}<h2>Libraries and settings</h2>{how_html(data)}</body></html>
"""
