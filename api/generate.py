#!/usr/bin/env python3
"""Everything that follows from the table of MPI functions and constants.

  generate.py --out DIR    bindings, their declarations, stand-ins for what is not built, function list, man pages
  generate.py --header     writes include/mpi.h and include/mpix.h
  generate.py --check      fails when they are not what the table says

DIR/generated/impl.hpp     declarations of the implementations, heddle::mpi::X
DIR/bindings/CHAPTER.cpp   extern "C" PMPI_X and MPI_X: check, resolve, call, raise
DIR/unbuilt/CHAPTER.cpp    weak heddle::mpi::X that return MPI_ERR_UNSUPPORTED_OPERATION
DIR/functions.json         names, chapters and forms, for tests and other generators
DIR/man/man3/MPI_X.3       manual pages

Needs Python 3.9 and its standard library.
"""
import argparse
import json
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import bindings  # noqa: E402
import header  # noqa: E402
import man  # noqa: E402
import model  # noqa: E402

ROOT = model.HERE.parent


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def library_version() -> str:
    match = re.search(r"project\(heddle\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    return match.group(1) if match else ""


def function_list(api: model.Api) -> str:
    rows = [{"name": "MPI_" + f.name, "chapter": f.chapter.title, "section": f.chapter.section, "twin": f.has_twin,
             "implementation": f.implementation, "purpose": f.purpose, "deprecated": f.flags.get("deprecated")}
            for f in api.functions()]
    return json.dumps({"functions": rows, "names": api.names(), "extensions": api.extension_names()}, indent=1) + "\n"


def generate(api: model.Api, out: Path) -> None:
    write(out / "generated" / "impl.hpp", bindings.emit_impl(api))
    for chapter in api.chapters + api.extensions:
        write(out / "bindings" / f"{chapter.key}.cpp", bindings.emit_bindings(chapter))
        write(out / "unbuilt" / f"{chapter.key}.cpp", bindings.emit_unbuilt(chapter))
    write(out / "functions.json", function_list(api))
    for name, text in man.pages(api, library_version()).items():
        write(out / "man" / "man3" / name, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--header", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    api = model.load()
    for name, text in (("mpi.h", header.emit_header(api)), ("mpix.h", header.emit_extensions(api))):
        path = ROOT / "include" / name
        if options.header:
            write(path, text)
        if options.check and (not path.exists() or path.read_text() != text):
            print(f"include/{name} is not what api/ says; run: python3 api/generate.py --header", file=sys.stderr)
            return 1
    if options.out:
        generate(api, options.out)
    if not (options.out or options.header or options.check):
        parser.error("say what to do: --out, --header or --check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
