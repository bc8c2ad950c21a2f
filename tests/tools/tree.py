"""What the tests of the tools share: where the build is, and how to run a command."""
import os
import subprocess
import tempfile
import unittest

BUILD = os.environ["HEDDLE_BUILD"]
BIN = os.path.join(BUILD, "bin")

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef GREETING
  printf("%s ", GREETING);
#endif
  printf("rank %d of %d\n", rank, size);
  MPI_Finalize();
  return 0;
}
"""


def run(*command, status=0, env=None, cwd=None, timeout=120):
    """Runs a command, checks its exit status (None: any) and returns (standard output, standard error)."""
    full = dict(os.environ)
    full.update(env or {})
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=full, cwd=cwd,
                          timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{command} ended with {done.returncode}, wanted {status}\n--- output\n{done.stdout}"
                             f"--- errors\n{done.stderr}")
    return done.stdout, done.stderr


class TreeTest(unittest.TestCase):
    """A test with a folder of its own (self.folder) that is removed at the end."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="heddle-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def write(self, name, text):
        """Writes a file below self.folder and returns its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def path(self, name):
        """A path below self.folder."""
        return os.path.join(self.folder, name)
