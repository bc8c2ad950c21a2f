"""What the launch tests share: starting mpiexec, talking to it, and looking for what it leaves behind."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ["HEDDLE_BUILD"]
MPIEXEC = os.path.join(BUILD, "bin/mpiexec")
CLIENT = os.path.join(BUILD, "tests/launch/launch_client")
MPICH = os.environ.get("HEDDLE_TEST_MPICH", os.path.join(BUILD, "external/mpich/bin"))
HYDRA = os.path.join(MPICH, "mpiexec.hydra") if os.path.exists(os.path.join(MPICH, "mpiexec.hydra")) else shutil.which("mpiexec.hydra")
HEAP_PROGRAM = os.path.join(BUILD, "tests/mpi/env/shared_heap_carries_messages_of_malloc")  # fails without the heap
LONG = 60  # seconds: a bound on hangs, nothing is expected to take it


def clean_environment(changes=None):
    """Our environment without any trace of a launcher; a value of None in `changes` removes the variable."""
    env = {k: v for k, v in os.environ.items()
           if not re.match(r"PMI|PRTE|HEDDLE_(JOB|SINGLETON)|OMP_NUM|MPI_LOCAL|OMPI_|SLURM_", k)}
    for name, value in (changes or {}).items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


class Done:
    """A finished mpiexec: code, out, err."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\n--- output\n{self.out}\n--- errors\n{self.err}"


def mpiexec(*arguments, stdin=b"", env=None, cwd=None, launcher=MPIEXEC):
    """Runs mpiexec, or another launcher (its path, or its command so far), to its end. Standard input is `stdin` (bytes) or an open file."""
    given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    launcher = [launcher] if isinstance(launcher, str) else launcher
    done = subprocess.run([*launcher, *map(str, arguments)], capture_output=True, timeout=LONG, check=False, cwd=cwd,
                          env=clean_environment(env), **given)
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Running:
    """An mpiexec that runs beside the test. Use as a context manager; it is killed at the end if need be."""

    def __init__(self, *arguments, env=None, launcher=(MPIEXEC,)):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*launcher, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=clean_environment(env))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()

    def lines(self, count, pattern):
        """The next `count` lines of output, each of which must match; their first groups."""
        found = []
        for _ in range(count):
            line = self.process.stdout.readline().decode()
            match = re.match(pattern, line)
            if not match:
                raise AssertionError(f"wanted {pattern!r}, got {line!r}\n{self.error_text()}")
            found.append(match[1])
        return found

    def error_text(self):
        """Everything written to standard error so far."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code, and the standard error."""
        code = self.process.wait(timeout=LONG)
        return code, self.error_text()


def is_alive(pid):
    """True for a process that exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def state_of(pid):
    """The one-letter state of a process, "" when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(condition, what):
    """Polls an effect that has no other way to be observed from outside; fails after LONG seconds."""
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.005)


class LaunchTest(unittest.TestCase):
    """Assertions about jobs."""

    def succeeds(self, *arguments, **options):
        """Runs mpiexec, which must return 0; its output."""
        done = mpiexec(*arguments, **options)
        self.assertEqual(done.code, 0, done)
        return done.out

    def check_hello(self, done, size, last_appnum):
        """The lines of `client hello` of a job on one machine whose last rank is of another program than the others."""
        self.assertEqual(done.code, 0, done)
        locals_ = ",".join(map(str, range(size)))
        lines = sorted(done.out.splitlines())
        self.assertEqual(len(lines), size, done)
        for rank, line in enumerate(lines):
            appnum = last_appnum if rank == size - 1 else 0
            self.assertRegex(line, rf"rank={rank} size={size} local={rank}/{size} locals={locals_} appnum={appnum} .*"
                                   r"singleton=0 .*memory=0 id=[\w-]+$")

    def fails(self, code, pattern, *arguments, **options):
        """Runs mpiexec, which must return `code` and say `pattern`; its output."""
        done = mpiexec(*arguments, **options)
        self.assertEqual(done.code, code, done)
        self.assertRegex(done.err, pattern)
        return done

    def all_gone(self, pids):
        """None of the processes is left, now or very soon (the kernel takes a moment to bury the dead)."""
        wait_until(lambda: not any(is_alive(pid) for pid in pids), f"the end of processes {pids}")

    def nothing_in_shared_memory(self):
        left = [name for name in os.listdir("/dev/shm") if "heddle" in name]
        self.assertEqual(left, [])


__all__ = ["BUILD", "CLIENT", "HEAP_PROGRAM", "LONG", "LaunchTest", "MPIEXEC", "Running", "clean_environment", "is_alive", "mpiexec",
           "signal", "state_of", "wait_until"]
