#!/usr/bin/env python3
"""Prints which folders of src/ include which, with the number of includes. Exits 1 if any lie on a circle.

usage: tools/dev/include_graph.py [FILE|FOLDER]   (default: src)
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)/[^"/]+"', re.MULTILINE)
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# What opens or closes a scope, and types that are declared or defined. Parentheses keep `struct stat s)` out.
TOKEN = re.compile(r'\bnamespace\b([^{;=]*)([{;=])|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+'
                   r'((?:\[\[[^]]*\]\]\s*|alignas\([^)]*\)\s*|HEDDLE_\w+\s+)*)(\w+)(?:\s+final)?\s*(?::(?!:)[^{;()]*)?([{;])|([{}])')


def sources(base):
    """The C++ files below `base`."""
    return sorted(path for path in pathlib.Path(base).rglob("*.[ch]pp"))


def includes(path):
    """The folders that the file's includes name, `generated` ones left out."""
    return [folder for folder in INCLUDE.findall(path.read_text()) if not folder.startswith("generated")]


def code(path):
    """The file without comments and string literals; includes of the project lose their names with them."""
    return NOISE.sub(" ", path.read_text())


def declarations(path):
    """What the file says of types and namespaces: (opened, declared, defined), sets of qualified names.
    A type that is declared inside another, or in a function, belongs to it and is left out."""
    opened, declared, defined = set(), set(), set()
    scopes = []  # of each open brace: the namespace's name, or None
    for match in TOKEN.finditer(code(path)):
        space, after_space, _, name, after, brace = match.groups()
        if brace == "}":
            if scopes:
                scopes.pop()
        elif brace == "{":
            scopes.append(None)
        elif after_space == "{":
            scopes.append(space.strip() or "(unnamed)")
            opened.add("::".join(s for s in scopes if s))
        elif name:
            if None not in scopes:
                (defined if after == "{" else declared).add("::".join([*scopes, name]))
            if after == "{":
                scopes.append(None)
    return opened, declared, defined


def graph(base=ROOT / "src"):
    """{folder: {folder it includes: number of includes}}, includes within a folder left out."""
    edges = collections.defaultdict(collections.Counter)
    base = pathlib.Path(base)
    for path in sources(base):
        folder = path.relative_to(base).parent.as_posix()
        edges[folder].update(name for name in includes(path) if name != folder)
    return edges


def circles(edges):
    """The sets of folders that reach each other, each sorted."""
    reach = {}
    for start in edges:
        seen, todo = set(), list(edges[start])
        while todo:
            folder = todo.pop()
            if folder not in seen:
                seen.add(folder)
                todo += edges.get(folder, ())
        reach[start] = seen
    return sorted({tuple(sorted(other for other in reach[folder] if folder in reach.get(other, ())))
                   for folder in reach if folder in reach[folder]})


def main():
    edges = graph(sys.argv[1] if len(sys.argv) > 1 else ROOT / "src")
    for folder in sorted(edges):
        print(f"{folder}:", ", ".join(f"{name} {count}" for name, count in sorted(edges[folder].items())) or "nothing")
    found = circles(edges)
    for circle in found:
        print("circle:", ", ".join(circle))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
