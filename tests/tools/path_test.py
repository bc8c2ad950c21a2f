#!/usr/bin/env python3
"""Every name on docs/path-of-a-message.md exists in the file that the page gives for it."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "path-of-a-message.md"


class PathOfAMessage(unittest.TestCase):
    def rows(self):
        for line in PAGE.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and len(cells) == 3 and "`" in cells[1]:
                yield re.findall(r"`([\w:]+)`", cells[1]), re.findall(r"[\w/]+\.[ch]pp", cells[2])

    def test_every_name_in_the_tables_is_in_its_file(self):
        rows = list(self.rows())
        self.assertGreater(len(rows), 10)
        for names, files in rows:
            text = "".join((ROOT / file).read_text() for file in files)
            for name in names:
                self.assertRegex(text, rf"\b{re.escape(name)}\b", f"{name} is not in {files}")

    def test_every_step_of_the_pictures_is_in_its_file(self):
        steps = 0
        for line in PAGE.read_text().splitlines():
            files = re.findall(r"src/[\w/]+\.[ch]pp", line)
            step = re.match(r"\s*└ ([\w:]+)(?: → ([\w:]+))?", line)
            if not files or not step:
                continue
            text = "".join((ROOT / file).read_text() for file in files)
            for name in filter(None, step.groups()):
                self.assertRegex(text, rf"\b{name.split('::')[-1]}\b", f"{name} is not in {files}")
                steps += 1
        self.assertGreater(steps, 8)


if __name__ == "__main__":
    unittest.main()
