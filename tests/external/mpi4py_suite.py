#!/usr/bin/env python3
"""Runs mpi4py's own test suite on our library.

    mpi4py_suite.py BUILD RANKS [MORE OPTIONS OF ITS test/main.py...]      for example -i p2p

Modules of chapters that Heddle does not have yet are left out; the list shrinks as they come.
"""
import os
import sys

# Each with the reason; regular expressions searched in the names of mpi4py's test modules.
LEFT_OUT = {
    r"test_file\.": "files",
    r"test_io\.": "files",
    "test_spawn": "dynamic processes",
    "test_dynproc": "dynamic processes",
    "test_cco_pr_ngh_": "neighborhood collectives",
    "test_cco_ngh_": "neighborhood collectives",
    "test_cco_.*_inter": "collectives on intercommunicators",
    "test_ulfm": "fault tolerance (not part of MPI-5.0)",
    "test_subclass": "files: it opens one when it is loaded",
}
# The same for single tests, in modules that are otherwise run.
TESTS_LEFT_OUT = {
    "test_errhandler.TestErrhandlerFile.*": "files",
    "test_objmodel.TestObjModel.testSafeFreeCreated": "files",
    "test_util_pkl5.*Inter": "collectives on intercommunicators",
    "test_util_pkl5.*testBigMPI": "collectives on intercommunicators",
}
# Names no communicator, so more ranks only repeat it beside each other; it is three fifths of the suite's processor time.
RUN_ON_ONE_RANK = (r"test_util_dtlib\.", r"test_datatype\.")
SKIPPED = 77


def main():
    build, ranks = os.path.realpath(sys.argv[1]), sys.argv[2]
    home = os.path.join(build, "external")
    if not os.path.exists(os.path.join(home, "mpi4py.stamp")):
        print("skipped: mpi4py could not be fetched")
        sys.exit(SKIPPED)
    source = os.path.join(home, "mpi4py-source/mpi4py-4.1.2")
    launcher = os.environ.get("HEDDLE_TEST_MPIEXEC", os.path.join(build, "bin/mpiexec")).split()
    command = launcher + ["-n", ranks, os.path.join(home, "mpi4py/bin/python"), "test/main.py", "--no-builddir", "-v"]
    for pattern in (*LEFT_OUT, *(RUN_ON_ONE_RANK if ranks != "1" else ())):
        command += ["-e", pattern]
    for pattern in TESTS_LEFT_OUT:
        command += ["-x", pattern]
    if not os.path.isfile("/etc/hosts"):  # which that test tries to load as a library; a bare Debian has none
        command += ["-x", "test_toplevel.TestProfile.testProfile"]
    command += sys.argv[3:]
    os.environ["MPI4PY_TEST_SPAWN"] = "0"  # mpi4py's own switch for its tests that spawn
    # One library under test, whatever else is installed on this machine.
    os.environ["LD_LIBRARY_PATH"] = os.path.join(build, "lib")
    os.chdir(source)
    print("+", *command, flush=True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
