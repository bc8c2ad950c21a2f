#!/usr/bin/env python3
"""mpiexec over several hosts that are namespaces of this machine: for every test that takes HEDDLE_TEST_MPIEXEC.

    onhosts.py ENGINE HOSTS OPTIONS-AND-PROGRAM...     ENGINE: hydra, prte, slurm

Ranks are spread evenly: 4 on 2 hosts are 2 on each. Example, every MPI test with its ranks on two hosts:

    HEDDLE_TEST_MPIEXEC="tests/multihost/onhosts.py hydra 2" ctest --test-dir build -L mpi
"""
import os
import signal
import sys

import engines
from hosts import Hosts


def count_ranks(words):
    """The sum of all `-n N` of a command line up to its programs (good enough: programs come after their options)."""
    total, part_done = 0, False
    for word, following in zip(words, words[1:] + [""]):
        if word == ":":
            part_done = False
        elif not part_done and word in ("-n", "-np", "--np"):
            total, part_done = total + int(following), True
    return max(total, 1)


def main():
    engine, count, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    engines.skip_without(engine)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with everything cleaned up
    per_host = -(-count_ranks(words) // count)
    with Hosts(count) as hosts:
        slurm = engines.Slurm(hosts) if engine == "slurm" else None
        launcher = engines.find(*engines.PROGRAMS[engine])
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TMPDIR", "PWD"))}
        env.update(hosts.environment(0), PATH=os.path.dirname(launcher) + ":" + os.environ["PATH"],
                   HYDRA_LAUNCHER_EXEC=hosts.agent, PRTE_MCA_plm_ssh_agent=hosts.agent)
        env.setdefault("HEDDLE_SPIN_US", "20")  # each host takes the machine's cores for its own, but they share them
        env.update(slurm.env if slurm else {})
        command = [os.path.join(engines.BUILD, "bin/mpiexec"), "-launcher", engine, "-host",
                   ",".join(f"{name}:{per_host}" for name in hosts.names), *words]
        process = hosts.start(0, command, env=env)
        code = process.wait()
        if slurm:
            slurm.stop()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
