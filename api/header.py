"""include/mpi.h and include/mpix.h: the templates api/*.h.in with the constants and the prototypes of the table."""
import textwrap

from model import HERE, Api, ConstantGroup, Function

WIDTH = 110


def wrap(text: str, indent: str = "    ") -> str:
    """Breaks a prototype at commas."""
    lines, line = [], ""
    for part in text.replace(", ", ",\0").split("\0"):
        if line and len(line) + len(part) + 1 > WIDTH:
            lines.append(line)
            line = indent + part
        else:
            line += (" " if line else "") + part
    return "\n".join(lines + [line])


def constant_lines(group: ConstantGroup) -> str:
    if group.enum:
        items = ",\n".join(f"  {c.name} = {c.value}" for c in group.constants)
        return f"/* {group.title} */\ntypedef enum {group.enum} {{\n{items}\n}} {group.enum};\n"
    width = max(len(c.name) for c in group.constants)
    out = [f"/* {group.title} */\n"]
    for c in group.constants:
        if c.type not in ("", "int"):
            value = f"(({c.type.replace(' *', '*').replace(' *', '*')}){c.value})"
        else:
            value = f"({c.value})" if c.value.startswith("-") else c.value
        out.append(f"#define {c.name:{width}} {value}\n")
    return "".join(out)


def prototypes(api: Api, prefix: str) -> str:
    out = []
    for chapter in api.chapters:
        out.append(f"\n/* {chapter.title} */\n")
        for f in chapter.functions:
            for large in f.forms():
                note = f" /* deprecated: {f.flags['deprecated']} */" if "deprecated" in f.flags else ""
                out.append(wrap(f.prototype(large, prefix) + ";" + note) + "\n")
    return "".join(out)


def extension_prototypes(api: Api) -> str:
    """Each with what the table says of it, since no standard describes it."""
    out = []
    for chapter in api.extensions:
        out.append(f"\n/* --- {chapter.title} {'-' * (WIDTH - len(chapter.title) - 12)} */\n")
        for f in chapter.functions:
            out.append("\n/* " + textwrap.fill(f"{f.purpose} {f.details}".strip(), WIDTH, subsequent_indent="   ",
                                              break_long_words=False, break_on_hyphens=False) + " */\n")
            for prefix in ("MPI_", "PMPI_"):
                for large in f.forms():
                    out.append(wrap(f.prototype(large, prefix) + ";") + "\n")
    return "".join(out)


def emit_extensions(api: Api) -> str:
    return (HERE / "mpix.h.in").read_text().replace("@functions\n", extension_prototypes(api))


def emit_header(api: Api) -> str:
    text = (HERE / "mpi.h.in").read_text()
    groups = {g.title: g for g in api.constants}
    used = set()

    def constants(*titles: str) -> str:
        used.update(titles)
        return "\n".join(constant_lines(groups[t]) for t in titles)

    out = []
    for line in text.splitlines(keepends=True):
        if line.startswith("@constants "):
            out.append(constants(*[t.strip() for t in line[len("@constants "):].split(";")]))
        elif line.startswith("@prototypes "):
            out.append(prototypes(api, line.split()[1]))
        else:
            out.append(line)
    missing = [t for t in groups if t not in used]
    if missing:
        raise SystemExit(f"api/mpi.h.in does not place these constants: {'; '.join(missing)}")
    return "".join(out)
