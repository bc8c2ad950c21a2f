#!/usr/bin/env python3
"""The manual page and `mpiexec --help` tell the same."""
import os
import re
import unittest

from launch import LaunchTest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/mpiexec/mpiexec.1")


class Manual(LaunchTest):
    def test_every_option_is_in_the_manual_and_no_other(self):
        shown = set()
        for line in self.succeeds("--help").splitlines():
            if re.match(r"  -", line):
                shown |= set(re.findall(r"-[\w-]+", line.split()[0]))
        with open(PAGE, encoding="ascii") as page:
            described = set(re.findall(r"(?<![\w-])-{1,2}[a-zA-Z][\w-]*", page.read().replace("\\-", "-")))
        self.assertEqual(shown, described)


if __name__ == "__main__":
    unittest.main()
