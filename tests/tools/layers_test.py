#!/usr/bin/env python3
"""Includes inside src/ point down: docs/architecture.md, section 3."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# From below.
LAYERS = ("sys", "sync", "transport", "core", "match", "vci", "proto", "coll", "comm", "mpi")
HEIGHT = {folder: height for height, folder in enumerate(LAYERS)}
INCLUDE = re.compile(r'^#\s*include\s+"(\w+)/', re.MULTILINE)


def includes_below(folder):
    """(file, folder of what it includes) for each include that names a folder."""
    for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
        for name in INCLUDE.findall(path.read_text()):
            yield path.relative_to(ROOT), name


class Layers(unittest.TestCase):
    def test_no_file_includes_a_layer_above_its_own(self):
        seen = 0
        for file, name in includes_below("src"):
            if name != "generated":
                self.assertLessEqual(HEIGHT[name], HEIGHT[file.parts[1]], f"{file} includes {name}/")
                seen += 1
        self.assertGreater(seen, 200)

    def test_sync_includes_nothing_but_itself(self):
        self.assertEqual([row for row in includes_below("src/sync") if row[1] != "sync"], [])

    def test_layers_for_other_libraries_and_applications_include_nothing_private_but_sync_and_sys(self):
        for folder in "layer", "apps":
            for file, name in includes_below(folder):
                self.assertTrue(name not in HEIGHT or (folder == "layer" and name in ("sync", "sys")), f"{file} includes {name}/")


if __name__ == "__main__":
    unittest.main()
