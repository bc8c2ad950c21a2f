"""Runs one job on one library and returns its figures."""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

STARTS = 5  # start-and-stop repetitions a round for small jobs; one for large ones


class JobError(Exception):
    """The job failed on this library; the text is short enough for a table."""


def descendants(pid):
    """The process ids below `pid`, for ending a job whose launcher put its ranks into other process groups."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# What peers leave behind in /dev/shm, after a crash and sometimes after a clean end.
SEGMENTS = ("mpich_shm_", "sm_segment.", "vader_segment.", "Intel_MPI_", "impi-shm", "shm-tmp.")


def shared_segments():
    """Names of the peers' segments that are there now."""
    place = Path("/dev/shm")
    return {p.name for p in place.iterdir() if p.name.startswith(SEGMENTS)} if place.is_dir() else set()


def remove_leftovers(before):
    """Removes segments that came since `before` (shared_segments() then) and that no process maps any more."""
    mapped = ""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            mapped += maps.read_text()
        except OSError:
            pass  # gone, or not ours to look at; then its segment is younger than the second allowed below
    for name in shared_segments() - before:
        path = Path("/dev/shm") / name
        try:
            old = time.time() - path.stat().st_mtime > 1
            if old and str(path) not in mapped and path.stat().st_uid == os.geteuid():
                path.unlink()
        except FileNotFoundError:
            pass


def end_job(process):
    """Asks, then forces, the launcher and everything it started to end."""
    below = descendants(process.pid)
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        pass
    for pid in [process.pid, *below]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    # The next measurement must not share the machine with the dying.
    limit = time.monotonic() + 5
    while any(alive(pid) for pid in below) and time.monotonic() < limit:
        time.sleep(0.01)


def start(argv, env, timeout, cwd=None):
    """Runs a command to its end. Returns (stdout, seconds); raises JobError."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            end_job(process)
            raise JobError(f"no end after {timeout:.0f} s") from None
        except BaseException:
            end_job(process)
            raise
        seconds = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        text, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if status != 0:
        raise JobError(f"exit status {status}: {clue(errors or text)[:200]}")
    return text, seconds


def clue(text):
    """The line of a failed job's output that most likely says why."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=*") and not line.startswith("==")]
    for sign in ("benchmark failed", "fatal", "MPI_ERR", "rror", "failed"):
        for line in lines:
            if sign in line:
                return line
    return lines[-1] if lines else "no message"


def figures(text):
    return {key: float(value) for key, value in re.findall(r"RESULT (\S+) (\S+)", text)}


def run_job(job, library, program):
    """The figures {key: value} of one run of `job` on `library`. Raises JobError."""
    env = library.environment(job.profile, job.env.get(library.key.replace("baseline", "heddle")))
    if job.kind == "callgrind":
        return count_instructions(job, library, program, env)
    argv = library.command(job.profile, job.ranks, [str(program)], job.arguments)
    if job.kind == "startstop":
        times = sorted(start(argv, env, job.timeout)[1] for _ in range(STARTS if job.ranks <= 8 else 1))
        return {"seconds": times[len(times) // 2]}
    found = figures(start(argv, env, job.timeout)[0])
    if not found:
        raise JobError("no figures in the output")
    return found


def collected(directory):
    """{rank: instructions} from the callgrind files of one run."""
    counts = {}
    for path in Path(directory).glob("count.*"):
        rank = int(path.name.rpartition(".")[2])
        match = re.search(r"^(?:totals|summary): (\d+)", path.read_text(errors="replace"), re.M)
        counts[rank] = int(match.group(1)) if match else 0
    return counts


def callgrind(library, directory, program):
    """The command prefix that counts inside counted_region() and leaves DIRECTORY/count.<rank>."""
    return [
        "valgrind",
        "--tool=callgrind",
        "--collect-atstart=no",
        "--toggle-collect=counted_region",
        f"--callgrind-out-file={directory}/count.%q{{{library.rank_variable}}}",
        str(program),
    ]


def count_instructions(job, library, program, env):
    """Instructions per message and rank: the difference of two repeat counts inside counted_region()."""
    per_iteration = 1 if job.ranks == 1 else 32  # BURST in count.c
    few, many = (100, 300) if job.ranks == 1 else (20, 60)

    def run(repeat, arguments):
        with tempfile.TemporaryDirectory(prefix="heddle-count-") as directory:
            for rank in range(2):
                os.mkfifo(f"{directory}/to{rank}")
            tool = callgrind(library, directory, program)
            argv = library.command(
                job.profile, job.ranks, tool, [*arguments, f"--repeat={repeat}", f"--pipes={directory}"]
            )
            start(argv, env, job.timeout, cwd=directory)
            counts = collected(directory)
        if len(counts) != job.ranks:
            raise JobError(f"callgrind left {len(counts)} files for {job.ranks} ranks")
        return counts

    def slope(arguments):
        low, high = run(few, arguments), run(many, arguments)
        return {rank: (high[rank] - low[rank]) / (many - few) for rank in low}

    once = slope(job.arguments)
    if job.ranks > 1:  # take the turn taking by pipes off
        bare = slope(["--test=empty", *[a for a in job.arguments if not a.startswith("--test=")]])
        once = {rank: value - bare[rank] for rank, value in once.items()}
    return {f"rank{rank}": value / per_iteration for rank, value in once.items()}


def identify(library, program):
    """The text of MPI_Get_library_version, shortened to a line."""
    env = library.environment("single")
    text, _ = start(library.command("single", 1, [str(program)], []), env, 60)
    match = re.search(r"VERSION (.*)", text)
    return re.sub(r"\s+", " ", match.group(1)).strip()[:120] if match else "?"


class Cores:
    """How far apart the cores are, and waiting until they are near: on a virtual machine the host moves them about."""

    NEAR = 1.5  # times the nearest seen

    def __init__(self, out, root, patience):
        """`patience`: seconds to spend on waiting in all."""
        self.patience, self.nearest, self.program = patience, None, Path(out) / "distance"
        self.program.parent.mkdir(parents=True, exist_ok=True)
        source = Path(root) / "bench/programs/distance.c"
        subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(self.program)], check=True)

    def distance(self):
        """Nanoseconds one way between two cores now."""
        found = figures(start([str(self.program)], None, 60)[0])["distance"]
        self.nearest = min(found, self.nearest or found)
        return found

    def settle(self):
        """Keeps the cores busy while they are far apart and patience lasts (hosts bring together those that work). The distance then."""
        begin = time.monotonic()
        found = self.distance()
        while found > self.NEAR * self.nearest and time.monotonic() - begin < self.patience:
            found = self.distance()
        self.patience -= time.monotonic() - begin
        return found
