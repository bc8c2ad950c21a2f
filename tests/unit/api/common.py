"""What the tests of the function table share."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("HEDDLE_SOURCE", Path(__file__).resolve().parents[3]))
BUILD = Path(os.environ.get("HEDDLE_BUILD", SOURCE / "build"))
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()

sys.path.insert(0, str(SOURCE / "api"))

import model  # noqa: E402

LIBRARY = BUILD / "lib" / "libmpi_abi.so.1"
SKIPPED = 77  # the exit status that ctest reports as skipped


def compile_text(compiler, text, *options, suffix):
    """Compiles `text` (read from standard input), all the way since some warnings come late; the complaints, or nothing."""
    language = "c++" if suffix == ".cpp" else "c"
    run = subprocess.run([*compiler, *options, f"-I{SOURCE / 'include'}", "-S", "-o", "/dev/null", "-x", language, "-"],
                         input=text, capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def run_text(text, include, folder, name):
    """Compiles a C program in `folder`, with the headers of `include`, and returns what it prints."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run([*CC, "-w", f"-I{include}", str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def reference_header():
    """mpi_abi.h of the MPICH that tests/external/prepare.py has fetched (a fixture of ctest); None when it could not."""
    header = BUILD / "external" / "mpich" / "include" / "mpi_abi.h"
    return header if header.exists() else None


def prototypes(text):
    """Function name → declaration, of a header's MPI_ and PMPI_ functions."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for match in re.finditer(r"^([A-Za-z_][A-Za-z_ ]*?[ *]+)(P?MPIX?_\w+)\(([^;{}]*)\);", text, re.M):
        if not match.group(1).startswith("typedef"):
            found[match.group(2)] = match.group(0)
    return found


def main(skip_reason=None):
    if skip_reason:
        print(f"skipped: {skip_reason}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
