#!/usr/bin/env python3
"""Test programs that share an executable (tests/harness/programs.cmake) define nothing that another of them could define too."""
import pathlib
import re
import subprocess
import unittest

from tree import BUILD

# What comes from headers is the same in every program.
SHARED = re.compile(r"(?:[\w:<>*&, ]+ )?(?:std|test|check|__gnu_cxx|__gnu_debug|__cxxabiv1)(?:::|_)|operator |typeinfo|vtable|guard variable|DW\.ref\.|"
                    r"__(?:asan|ubsan|tsan|odr_asan|clang)|std::|_ZS|virtual thunk|non-virtual thunk|construction vtable|VTT")
MAIN = re.compile(r"main_of_\w+\(")


def symbols(objects):
    """(object, demangled name) of all that the objects define for others."""
    listed = subprocess.run(["nm", "-A", "-C", "--defined-only", "--extern-only", "--format=posix", *map(str, objects)],
                            capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        found = re.match(r"(\S+\.o): (.*) ([A-Za-z]) [0-9a-f]+ ?[0-9a-f]*$", line)
        if found:
            yield pathlib.Path(found[1]).name, found[2]


class Programs(unittest.TestCase):
    def test_what_a_program_defines_beside_main_is_its_own(self):
        objects = sorted(path for kind in ("mpi", "stress") for path in pathlib.Path(BUILD, "tests/CMakeFiles").glob(f"{kind}_*_object.dir/**/*.o"))
        if not objects:
            self.skipTest("no test program is built")
        named = list(symbols(objects))
        self.assertEqual(len({file for file, name in named if MAIN.match(name)}), len({path.name for path in objects}))
        self.assertEqual([(file, name) for file, name in named if not MAIN.match(name) and not SHARED.match(name)], [],
                         "put it into an anonymous namespace, or say `// binary: own (why)` at the program's head")


if __name__ == "__main__":
    unittest.main()
