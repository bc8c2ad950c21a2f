"""docs/coverage.md says what the library in the build directory contains."""
import subprocess
import sys
import unittest

from common import BUILD, SOURCE, main

OBJECTS = BUILD / "objects.txt"


class Coverage(unittest.TestCase):
    def test_the_committed_page_is_what_the_object_files_say(self):
        run = subprocess.run([sys.executable, str(SOURCE / "api" / "coverage.py"), str(OBJECTS), "--check"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    main(None if OBJECTS.exists() else "the library has not been configured")
