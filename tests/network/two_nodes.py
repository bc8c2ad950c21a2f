#!/usr/bin/env python3
"""Runs PROGRAM as a rank of a job whose first half is one node and whose second half another:

    mpiexec -n 4 two_nodes.py PROGRAM [ARGUMENTS]

so that shared memory and the network are both in use, on one machine and without a launcher for several. It stands between mpiexec and
the rank, as a launcher that is not ours, and changes what the server says about who is where.
"""
import os
import re
import select
import signal
import socket
import subprocess
import sys


def two_nodes(line):
    """The mapping of `line`, if it is the answer that holds one, in two halves."""
    return re.sub(rb"\(vector,\(0,1,(\d+)\)\)", lambda m: b"(vector,(0,2,%d))" % (int(m[1]) // 2), line)


def main():
    server = socket.socket(fileno=int(os.environ["PMI_FD"]))
    ours, ranks = socket.socketpair()
    env = {k: v for k, v in os.environ.items() if k not in ("HEDDLE_JOB", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")}
    env["PMI_FD"] = str(ranks.fileno())
    child = subprocess.Popen(sys.argv[1:], env=env, pass_fds=[ranks.fileno()])
    ranks.close()
    rest = b""
    while True:
        ready = select.select([server, ours], [], [])[0]
        if ours in ready:
            said = ours.recv(1 << 16)
            if not said:
                break  # the rank has ended
            server.sendall(said)
        if server in ready:
            said = server.recv(1 << 16)
            if not said:
                ours.shutdown(socket.SHUT_WR)
                break
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                ours.sendall(two_nodes(line) + b"\n")
    status = child.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
