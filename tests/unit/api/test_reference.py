"""include/mpi.h against the reference header of the ABI: names, types, values and layouts."""
import tempfile
import unittest
from pathlib import Path

from common import CC, SOURCE, compile_text, main, model, prototypes, reference_header, run_text

REFERENCE = reference_header()
TYPES = ["MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Status", "MPI_Comm", "MPI_Datatype", "MPI_T_cb_safety",
         "MPI_T_source_order", "MPI_T_enum", "MPI_Session"]
FIELDS = ["MPI_SOURCE", "MPI_TAG", "MPI_ERROR", "MPI_internal"]


def values_program(include):
    """A program that prints the value and the size of the type of every constant, and the layout of every type."""
    lines = []
    for group in model.load().constants:
        for c in group.constants:
            lines.append(f'printf("{c.name} %lld %d\\n", (long long)({c.name}), (int)sizeof({c.name}));')
    for t in TYPES:
        lines.append(f'printf("{t} %d %d\\n", (int)sizeof({t}), (int)_Alignof({t}));')
    for f in FIELDS:
        lines.append(f'printf("{f} %d %d\\n", (int)offsetof(MPI_Status, {f}), (int)sizeof(((MPI_Status *)0)->{f}));')
    return (f'#include <stdio.h>\n#include <stddef.h>\n#include <{include}>\nint main(void) {{\n' + "\n".join(lines)
            + "\nreturn 0;\n}\n")


class Reference(unittest.TestCase):
    def test_function_names_are_equal(self):
        theirs = {n for n in prototypes(REFERENCE.read_text()) if n.startswith("MPI_")}
        ours = set(model.load().names())
        self.assertEqual(ours, theirs)

    def test_every_function_has_the_same_type(self):
        # Declaring a function twice is an error unless both declarations agree.
        theirs = [d for n, d in prototypes(REFERENCE.read_text()).items()
                  if not n.startswith(("MPIX_", "PMPIX_"))]
        self.assertGreater(len(theirs), 1300)
        self.assertEqual(compile_text(CC, "#include <mpi.h>\n" + "\n".join(theirs) + "\n", "-std=c11", suffix=".c"), "")

    def test_a_wrong_declaration_would_be_noticed(self):
        wrong = "#include <mpi.h>\nint MPI_Send(const void *buf, long count, MPI_Datatype, int, int, MPI_Comm);\n"
        self.assertIn("conflicting types", compile_text(CC, wrong, "-std=c11", suffix=".c"))

    def test_every_constant_and_every_layout_has_the_same_value(self):
        with tempfile.TemporaryDirectory() as folder:
            ours = run_text(values_program("mpi.h"), SOURCE / "include", Path(folder), "ours")
            theirs = run_text(values_program("mpi_abi.h"), REFERENCE.parent, Path(folder), "theirs")
        self.assertGreater(len(ours.splitlines()), 360)
        self.assertEqual(ours, theirs)

    def test_no_constant_is_missing(self):
        import re
        text = re.sub(r"/\*.*?\*/", "", REFERENCE.read_text(), flags=re.S)
        theirs = set(re.findall(r"^#define\s+(MPI_\w+)\s+\S", text, re.M))
        for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", text, re.S):
            theirs |= set(re.findall(r"(MPI_\w+)\s*=", body))
        theirs -= {"MPI_H_ABI", "MPI_ABI_Aint", "MPI_ABI_Offset", "MPI_ABI_Count"}
        ours = {c.name for g in model.load().constants for c in g.constants}
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    main(None if REFERENCE else "no mpi_abi.h of MPICH to compare with: external/prepare-mpich says why")
