"""What is measured: jobs (one program run each) and rows (one figure of a job each, with its target).

A job runs on every library in turn. A row picks one key of the job's results, says which way is better, which peers it
is judged against and what ratio to the best of them is wanted.
"""

import os
from dataclasses import dataclass, field

PROGRAMS = "bench/programs/"
MT = "bench/mt/mt.c"
INPROC = "bench/mt/inproc.c"
SWEEP = [0, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304]
DEPTHS = [1, 10, 100, 1000, 10000, 100000]
MPICH_AND_OPENMPI = ("mpich5", "mpich4", "openmpi5")
MPICH = ("mpich5", "mpich4")
# How each library is made to send everything over TCP; Open MPI by its launcher's options (profiles tcp, tcp-threads). Checked by
# the bytes that the loopback interface counts: MPICH 5 also has, and prefers, UCX, which is MPICH 4's only one and would use shared memory.
OVER_TCP = {
    "heddle": {"HEDDLE_SHM": "0"},
    "mpich5": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "mpich4": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"},
    "intel": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
}


@dataclass
class Job:
    name: str
    source: str
    arguments: list
    profile: str = "pair"
    ranks: int = 2
    libraries: tuple = ()  # empty: all
    variants: tuple = ()  # keys of libraries.VARIANTS that run too
    env: dict = field(default_factory=dict)  # library key -> variables
    kind: str = "run"  # or "startstop", "callgrind"
    timeout: float = 60


@dataclass
class Row:
    name: str  # dotted, for --rows
    title: str
    unit: str
    better: str  # "lower" or "higher"
    job: str
    key: str
    ratio: float = 0  # wanted of ours / best peer; 0: none
    absolute: float = 0  # wanted of ours; 0: none
    against: tuple = ()  # the peers that count for `ratio`; empty: all
    own_row: str = ""  # a row of ours that `own_ratio` refers to
    own_ratio: float = 0
    group: str = ""


def size_name(size):
    for unit, text in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {text}"
    return f"{size} B"


def thread_counts(cores):
    """1, 2, 4 and on in powers of two up to the number of cores, and that number itself."""
    counts = [1, 2, 4]
    while counts[-1] * 2 <= cores:
        counts.append(counts[-1] * 2)
    if cores > counts[-1]:
        counts.append(cores)
    return counts


def everything(quick=False, cores=None, ablation=None):
    """All jobs and rows, in the order they are run and printed. `ablation`: the directory of that library, if it was built."""
    cores = cores or len(os.sched_getaffinity(0))
    jobs, rows = {}, []
    seconds = 0.1 if quick else 0.4
    sweep_seconds = 0.05 if quick else 0.15

    def job(name, source, *arguments, **more):
        source = source if "/" in source else PROGRAMS + source
        jobs[name] = Job(name, source, list(arguments), **more)

    def row(name, title, unit, better, job_name, key, **more):
        rows.append(Row(name, title, unit, better, job_name, key, **more))

    def sizes(values):
        return "--sizes=" + ",".join(map(str, values))

    # One thread, two ranks.
    group = "Two ranks, one thread"
    job("latency", "p2p.c", "--test=latency", sizes([8, 1024]), f"--seconds={seconds}")
    row("lat.8", "latency 8 B, one way", "µs", "lower", "latency", "latency/8", ratio=0.6, group=group)
    row("lat.1K", "latency 1 KiB", "µs", "lower", "latency", "latency/1024", ratio=0.8, group=group)
    job("latency-multiple", "p2p.c", "--test=latency", "--thread=multiple", sizes([8]), f"--seconds={seconds}")
    row(
        "lat.8.multiple",
        "latency 8 B, MPI_THREAD_MULTIPLE",
        "µs",
        "lower",
        "latency-multiple",
        "latency/8",
        ratio=0.6,
        own_row="lat.8",
        own_ratio=1.1,
        group=group,
    )
    job("rate", "p2p.c", "--test=bandwidth", sizes([8]), f"--seconds={seconds}")
    row("rate.8", "message rate 8 B, window 64", "M/s", "higher", "rate", "rate/8", ratio=1.5, group=group)
    job("rate-multiple", "p2p.c", "--test=bandwidth", "--thread=multiple", sizes([8]), f"--seconds={seconds}")
    row(
        "rate.8.multiple",
        "message rate 8 B, MPI_THREAD_MULTIPLE",
        "M/s",
        "higher",
        "rate-multiple",
        "rate/8",
        ratio=1.5,
        own_row="rate.8",
        own_ratio=0.9,
        group=group,
    )

    # Large messages: three kinds of buffer, untouched and freshly written.
    group = "Large messages"
    kinds = (
        ("malloc", "malloc", (), MPICH_AND_OPENMPI, 0.7, 1.0),
        ("alloc_mem", "MPI_Alloc_mem", (), ("intel",), 1.0, 1.0),
        ("heap", "shared heap", ("heddle", "intel"), ("intel",), 1.0, 1.0),
    )
    for kind, kind_title, only, against, time_ratio, rate_ratio in kinds:
        buffer = "alloc_mem" if kind == "alloc_mem" else "malloc"
        env = {"heddle": {"HEDDLE_SHARED_HEAP": "1"}} if kind == "heap" else {}
        for touch in ("untouched", "fresh"):
            name = f"large-{kind}-{touch}"
            job(
                name,
                "p2p.c",
                "--test=latency",
                f"--buffer={buffer}",
                f"--touch={touch}",
                sizes([65536, 1048576]),
                f"--seconds={seconds}",
                libraries=only,
                env=env,
            )
            job(
                name + "-bw",
                "p2p.c",
                "--test=bandwidth",
                f"--buffer={buffer}",
                f"--touch={touch}",
                sizes([1048576]),
                f"--seconds={2 * seconds}",
                libraries=only,
                env=env,
            )
            written = "written before each send" if touch == "fresh" else "untouched"
            for size, short in ((65536, "64K"), (1048576, "1M")):
                row(
                    f"lat.{short}.{kind}.{touch}",
                    f"latency {size_name(size)}, {kind_title}, {written}",
                    "µs",
                    "lower",
                    name,
                    f"latency/{size}",
                    ratio=time_ratio,
                    against=against,
                    group=group,
                )
                if touch == "fresh":
                    row(
                        f"lat.{short}.{kind}.written",
                        f"the same and the writing, {size_name(size)}, {kind_title}",
                        "µs",
                        "lower",
                        name,
                        f"latency_with_write/{size}",
                        against=against,
                        group=group,
                    )
            row(
                f"bw.1M.{kind}.{touch}",
                f"bandwidth 1 MiB, {kind_title}, {written}",
                "GB/s",
                "higher",
                name + "-bw",
                "bandwidth/1048576",
                ratio=rate_ratio,
                against=against,
                group=group,
            )

    # By size, for the plots.
    job("latency-sweep", "p2p.c", "--test=latency", sizes(SWEEP), f"--seconds={sweep_seconds}")
    job("bandwidth-sweep", "p2p.c", "--test=bandwidth", sizes(SWEEP[1:]), f"--seconds={sweep_seconds}")
    for size in SWEEP:
        row(
            f"sweep.lat.{size}",
            f"latency {size_name(size)}",
            "µs",
            "lower",
            "latency-sweep",
            f"latency/{size}",
            group="By size",
        )
        if size:
            row(
                f"sweep.bw.{size}",
                f"bandwidth {size_name(size)}",
                "GB/s",
                "higher",
                "bandwidth-sweep",
                f"bandwidth/{size}",
                group="By size",
            )

    # Messages to oneself.
    group = "Messages to oneself"
    job("self", "self.c", f"--seconds={seconds}", profile="single", ranks=1)
    row("self.1", "1 thread, irecv + isend + waitall", "M/s", "higher", "self", "rate", ratio=2.0, group=group)
    job("self-recv", "self.c", "--style=recv", f"--seconds={seconds}", profile="single", ranks=1)
    row("self.recv", "1 thread, isend + recv + wait", "M/s", "higher", "self-recv", "rate", ratio=2.0, group=group)
    job("self-window", "self.c", "--window=64", f"--seconds={seconds}", profile="single", ranks=1)
    row("self.window", "1 thread, windows of 64", "M/s", "higher", "self-window", "rate", ratio=2.0, group=group)
    vcis = ("mpich5-vcis", "mpich4-vcis")
    mt_variants = (*vcis, "openmpi5-yield", "intel-yield")
    for threads in thread_counts(cores):
        name = f"self-own-{threads}"
        job(
            name,
            "self.c",
            f"--threads={threads}",
            "--thread=multiple",
            f"--seconds={seconds}",
            profile="single",
            ranks=1,
            variants=vcis,
        )
        two = {"ratio": 3.0, "own_row": "mt.self.1", "own_ratio": 1.8} if threads == 2 else {}
        row(
            f"mt.self.{threads}",
            f"{threads} thread{'s' * (threads > 1)}, own communicators, MULTIPLE",
            "M/s",
            "higher",
            name,
            "rate",
            group=group,
            **two,
        )
    for threads in thread_counts(cores):
        name = f"self-endpoints-{threads}"
        arguments = (f"--threads={threads}", "--comm=endpoints", "--thread=multiple", f"--seconds={seconds}")
        job(name, "self.c", *arguments, profile="single", ranks=1, libraries=("heddle",))
        row(
            f"mt.self.endpoints.{threads}",
            f"{threads} thread{'s' * (threads > 1)}, an endpoint each",
            "M/s",
            "higher",
            name,
            "rate",
            own_row=f"mt.self.{threads}",
            own_ratio=0.95,
            group=group,
        )
    job(
        "self-shared-2",
        "self.c",
        "--threads=2",
        "--comm=shared",
        "--thread=multiple",
        f"--seconds={seconds}",
        profile="single",
        ranks=1,
        variants=vcis,
    )
    row("mt.self.shared.2", "2 threads, one communicator", "M/s", "higher", "self-shared-2", "rate", group=group)

    # Instructions: exact, so once is enough.
    group = "Instructions per message (callgrind)"
    job("count-self", "count.c", "--test=self", profile="single", ranks=1, kind="callgrind", timeout=240)
    row(
        "instr.self",
        "to oneself: irecv + isend + waitall",
        "",
        "lower",
        "count-self",
        "rank0",
        absolute=400,
        group=group,
    )
    job(
        "count-self-multiple",
        "count.c",
        "--test=self",
        "--thread=multiple",
        profile="single",
        ranks=1,
        kind="callgrind",
        timeout=240,
    )
    row("instr.self.multiple", "the same under MULTIPLE", "", "lower", "count-self-multiple", "rank0", group=group)
    job("count-self-recv", "count.c", "--test=selfrecv", profile="single", ranks=1, kind="callgrind", timeout=240)
    row("instr.self.recv", "to oneself: isend + recv + wait", "", "lower", "count-self-recv", "rank0", group=group)
    job("count-pair", "count.c", "--test=pair", kind="callgrind", timeout=240)
    row("instr.send", "two ranks, 8 B: sender (send)", "", "lower", "count-pair", "rank0", group=group)
    row("instr.recv", "two ranks, 8 B: receiver (recv, already there)", "", "lower", "count-pair", "rank1", group=group)
    job("count-pair-multiple", "count.c", "--test=pair", "--thread=multiple", kind="callgrind", timeout=240)
    row("instr.send.multiple", "the sender under MULTIPLE", "", "lower", "count-pair-multiple", "rank0", group=group)
    row("instr.recv.multiple", "the receiver under MULTIPLE", "", "lower", "count-pair-multiple", "rank1", group=group)
    job("count-prepost", "count.c", "--test=prepost", kind="callgrind", timeout=240)
    row(
        "instr.prepost",
        "two ranks, 8 B: receiver (irecv before, waitall)",
        "",
        "lower",
        "count-prepost",
        "rank1",
        group=group,
    )

    # Collectives.
    group = "Collectives, two ranks"
    for op, size, title, ratio in (
        ("allreduce", 8, "allreduce 8 B", 0.8),
        ("barrier", 0, "barrier", 0.8),
        ("bcast", 8, "bcast 8 B, root in turn", 1.0),
        ("bcast", 65536, "bcast 64 KiB, root in turn", 1.0),
        ("allreduce", 65536, "allreduce 64 KiB", 1.0),
        ("alltoall", 1024, "alltoall 1 KiB", 1.0),
    ):
        name = f"{op}-{size}"
        job(name, "coll.c", f"--op={op}", sizes([size]), f"--seconds={seconds}")
        row(f"coll.{op}.{size}", title, "µs", "lower", name, f"time/{size}", ratio=ratio, group=group)

    # The same work when every message takes TCP over the loopback interface.
    group = "Network: tcp on loopback, two ranks"
    job("net-latency", "p2p.c", "--test=latency", sizes([8, 65536]), f"--seconds={seconds}", profile="tcp", env=OVER_TCP)
    row("net.lat.8", "latency 8 B, one way", "µs", "lower", "net-latency", "latency/8", ratio=1.0, group=group)
    row("net.lat.64K", "latency 64 KiB", "µs", "lower", "net-latency", "latency/65536", ratio=1.0, group=group)
    job("net-bandwidth", "p2p.c", "--test=bandwidth", sizes([1048576]), f"--seconds={2 * seconds}", profile="tcp", env=OVER_TCP)
    row("net.bw.1M", "bandwidth 1 MiB", "GB/s", "higher", "net-bandwidth", "bandwidth/1048576", ratio=1.0, group=group)
    job("net-rate", "p2p.c", "--test=bandwidth", sizes([8]), f"--seconds={seconds}", profile="tcp", env=OVER_TCP)
    row("net.rate.8", "message rate 8 B, window 64", "M/s", "higher", "net-rate", "rate/8", ratio=5.0, group=group)
    for threads in (1, 2):
        name = f"net-threads-{threads}"
        arguments = ("--mode=own", f"--threads={threads}", "--test=rate", "--sizes=8", f"--seconds={seconds}")
        job(name, MT, *arguments, profile="tcp-threads", env=OVER_TCP)
        target = {"own_row": "net.threads.1", "own_ratio": 1.5} if threads == 2 else {}
        title = f"message rate 8 B, {threads} thread{'s' if threads > 1 else ''} a rank, own communicators"
        row(f"net.threads.{threads}", title, "M/s", "higher", name, "rate/8", group=group, **target)

    job("net-idle", "idle.c", f"--seconds={1 if quick else 2}", profile="tcp", env=OVER_TCP)
    row("net.idle", "CPU used by a blocked receive", "%", "lower", "net-idle", "cpu_percent", absolute=1.0, group=group)
    row("net.wake", "from a send until a receive that was asleep returns", "µs", "lower", "net-idle", "wake_us", absolute=50, group=group)

    # Living with few cores.
    group = "Few cores"
    crowd = max(8, 4 * cores)
    job(
        "storm",
        "coll.c",
        "--op=barrier",
        sizes([0]),
        f"--seconds={2 * seconds}",
        profile="crowd",
        ranks=crowd,
        timeout=180,
    )
    row("storm", f"barrier, {crowd} ranks on {cores} cores", "µs", "lower", "storm", "time/0", ratio=1.0, group=group)
    job("idle", "idle.c", f"--seconds={1 if quick else 2}")
    row("idle", "CPU used by a blocked receive", "%", "lower", "idle", "cpu_percent", absolute=1.0, group=group)
    job("start-2", "startstop.c", kind="startstop")
    row("start.2", "start and stop 2 ranks", "s", "lower", "start-2", "seconds", ratio=1.0, group=group)
    job("start-64", "startstop.c", kind="startstop", profile="crowd", ranks=64, timeout=180)
    row("start.64", "start and stop 64 ranks", "s", "lower", "start-64", "seconds", ratio=1.0, group=group)

    # Matching.
    group = "Latency with many others outstanding"
    depths = DEPTHS[:4] if quick else DEPTHS
    for kind in ("posted", "unexpected"):
        job(
            f"match-{kind}",
            "matching.c",
            f"--kind={kind}",
            "--depths=" + ",".join(map(str, depths)),
            f"--seconds={sweep_seconds}",
            timeout=240,
        )
        for depth in depths:
            what = "receives posted" if kind == "posted" else "unexpected messages"
            last = {"own_row": f"match.{kind}.1", "own_ratio": 1.25, "ratio": 1.0} if depth == depths[-1] else {}
            row(
                f"match.{kind}.{depth}",
                f"{depth:,} {what}",
                "µs",
                "lower",
                f"match-{kind}",
                f"latency/{depth}",
                group=group,
                **last,
            )

    # Datatypes.
    group = "Datatypes, packing 128 KiB and more"
    for kind, title in (
        ("vector8", "vector of single doubles"),
        ("vector64", "vector of 64 B blocks"),
        ("indexed", "indexed, uneven blocks"),
        ("struct", "nested struct"),
    ):
        job(f"pack-{kind}", "pack.c", f"--type={kind}", f"--seconds={sweep_seconds}", profile="single", ranks=1)
        for key in ("pack", "unpack"):
            row(
                f"{key}.{kind}",
                f"{key} {title}",
                "GB/s",
                "higher",
                f"pack-{kind}",
                key,
                ratio=1.0,
                against=MPICH,
                group=group,
            )

    threads_rows(job, row, seconds, sweep_seconds, cores, mt_variants)
    if ablation:
        ablation_rows(job, row, seconds, cores, ablation)
    return jobs, rows


def threads_rows(job, row, seconds, sweep_seconds, cores, variants):
    """Two ranks of several threads: the modes of paper 004, figures 10, 11 and 17 to 19."""
    counts = thread_counts(cores)
    modes = (
        ("everywhere", "ranks only", ()),
        ("own", "own communicators", variants),
        ("shared", "one communicator", variants),
        ("endpoints", "endpoints", ()),
    )

    def mt(name, mode, threads, test, *arguments, **more):
        only = ("heddle",) if mode == "endpoints" else ()
        ranks = 2 * threads if mode == "everywhere" else 2
        profile = "crowd" if mode == "everywhere" and ranks > cores else "threads"
        job(
            name,
            MT,
            f"--mode={mode}",
            f"--threads={threads}",
            f"--test={test}",
            *arguments,
            profile=profile,
            ranks=ranks,
            libraries=only,
            **more,
        )

    group = "Message rate 8 B, 2 ranks × T threads (everywhere: 2 × T ranks)"
    for mode, title, mode_variants in modes:
        for threads in counts:
            name = f"mt-rate-{mode}-{threads}"
            mt(name, mode, threads, "rate", "--sizes=8", f"--seconds={seconds}", variants=mode_variants)
            wanted = {"own": 0.8, "shared": 0.5}.get(mode) if threads > 1 else None
            target = {"ratio": 1.0, "own_row": "mt.rate.own.1", "own_ratio": wanted} if wanted else {}
            if mode == "endpoints":
                target = {"own_row": f"mt.rate.own.{threads}", "own_ratio": 0.95}
            row(
                f"mt.rate.{mode}.{threads}",
                f"{title}, T = {threads}",
                "M/s",
                "higher",
                name,
                "rate/8",
                group=group,
                **target,
            )
    # Paper 004's figure 12 from the other side: what locks and atomics cost where nobody contends for them.
    group = "Thread safety: the message rate of ranks only, with MPI_THREAD_MULTIPLE"
    for threads in counts:
        name = f"mt-safety-{threads}"
        mt(name, "everywhere", threads, "rate", "--sizes=8", "--thread=multiple", f"--seconds={seconds}")
        row(
            f"mt.safety.{threads}",
            f"{2 * threads} ranks, MULTIPLE",
            "M/s",
            "higher",
            name,
            "rate/8",
            own_row=f"mt.rate.everywhere.{threads}",
            own_ratio=0.9,
            group=group,
        )
    # By size: for two threads, and for as many as there are cores for both ranks (papers 000, figures 5 and 6; 004, 11).
    sizes = [8, 64, 512, 4096, 32768, 262144, 1048576]
    for threads in sorted({2, max(2, cores // 2)}):
        group = f"Message rate by size, T = {threads}"
        rows_name = "mt.size" if threads == 2 else f"mt.size{threads}"
        for mode, title, mode_variants in modes:
            name = f"mt-sizes-{mode}" if threads == 2 else f"mt-sizes-{mode}-{threads}"
            arguments = ("--sizes=" + ",".join(map(str, sizes)), f"--seconds={sweep_seconds}")
            mt(name, mode, threads, "rate", *arguments, variants=mode_variants, timeout=120)
            for size in sizes:
                target = {"own_row": f"{rows_name}.own.{size}", "own_ratio": 0.95} if mode == "endpoints" else {}
                row(
                    f"{rows_name}.{mode}.{size}",
                    f"{title}, {size_name(size)}",
                    "M/s",
                    "higher",
                    name,
                    f"rate/{size}",
                    group=group,
                    **target,
                )
    group = "Latency 8 B, T pairs of threads at once"
    for mode, title, mode_variants in modes:
        for threads in counts[1:]:
            name = f"mt-latency-{mode}-{threads}"
            mt(name, mode, threads, "latency", "--sizes=8", f"--seconds={seconds}", variants=mode_variants)
            target = {}
            if mode == "own":
                target = {"ratio": 1.0} if threads == 2 else {"absolute": 10.0} if threads == 4 else {}
            row(
                f"mt.lat.{mode}.{threads}",
                f"{title}, T = {threads}",
                "µs",
                "lower",
                name,
                "latency/8",
                group=group,
                **target,
            )
    group = "Two threads of one process hand over 8 B, one way"
    for mode, title, only, target in (
        ("bare", "two flags, no MPI: the floor", ("heddle",), {}),
        ("shared", "one communicator", (), {}),
        ("own", "a communicator for each direction", (), {"ratio": 1.0}),
        ("endpoints", "endpoints", ("heddle",), {"own_row": "mt.inproc.bare", "own_ratio": 1.5}),
    ):
        name = f"mt-inproc-{mode}"
        arguments = [f"--mode={mode}", f"--seconds={seconds}"]
        job(name, INPROC, *arguments, profile="single", ranks=1, libraries=only, variants=variants if not only else ())
        row(f"mt.inproc.{mode}", title, "µs", "lower", name, "latency/8", group=group, **target)
    group = "Allreduce 8 B over 4: 4 ranks, or 2 ranks × 2 endpoints"
    for mode, title, target in (
        ("everywhere", "4 ranks", {}),
        ("endpoints", "2 ranks × 2 endpoints", {"own_row": "mt.allreduce.everywhere", "own_ratio": 1.0}),
    ):
        name = f"mt-allreduce-{mode}"
        mt(name, mode, 2, "allreduce", "--sizes=8", f"--seconds={seconds}")
        row(f"mt.allreduce.{mode}", title, "µs", "lower", name, "allreduce/8", group=group, **target)
    group = "Many senders, one receiver, 8 B"
    for mode, title, mode_variants in modes[1:]:
        for threads in counts:
            name = f"mt-incast-{mode}-{threads}"
            mt(name, mode, threads, "incast", "--sizes=8", f"--seconds={seconds}", variants=mode_variants)
            row(
                f"mt.incast.{mode}.{threads}",
                f"{title}, {threads} sender{'s' * (threads > 1)}",
                "M/s",
                "higher",
                name,
                "incast/8",
                group=group,
            )
    group = "Mapping mismatch, message rate 8 B, T = 4"
    for communicators in (4, 2, 1):
        name = f"mt-mismatch-{communicators}"
        mt(
            name,
            "own",
            4,
            "rate",
            "--sizes=8",
            f"--communicators={communicators}",
            f"--seconds={seconds}",
            variants=variants,
        )
        row(
            f"mt.mismatch.{communicators}",
            f"4 threads on {communicators} communicator{'s' * (communicators > 1)}",
            "M/s",
            "higher",
            name,
            "rate/8",
            group=group,
        )
    for stride in (2, 4):
        name = f"mt-stride-{stride}"
        mt(name, "own", 4, "rate", "--sizes=8", f"--stride={stride}", f"--seconds={seconds}", variants=variants)
        row(
            f"mt.stride.{stride}",
            f"own communicators, every {stride}nd made".replace("4nd", "4th"),
            "M/s",
            "higher",
            name,
            "rate/8",
            group=group,
        )


def ablation_rows(job, row, seconds, cores, library):
    """Paper 004's figures 5 to 8 with Heddle's own optimisations: the library of the target `ablation` does without one of them.
    What is compared is the row with nothing switched off, of the same library."""
    group = "What an optimisation is worth (8 B, own communicators)"
    switches = (
        ("", "everything on"),
        ("one", "one VCI"),
        ("progress", "without per-VCI progress"),
        ("looks", "polls lock without looking first"),
        ("progress,looks", "without per-VCI progress and without looking"),
        ("requests", "without per-VCI request caches"),
        ("lines", "locks of all VCIs in the same cache lines"),
        ("progress,looks,requests,lines", "many VCIs, none of all that"),
    )
    base = {"LD_LIBRARY_PATH": str(library)}
    for test, source, profile, ranks in (("self", PROGRAMS + "self.c", "single", 1), ("rate", MT, "threads", 2)):
        for threads in thread_counts(cores)[1:]:
            for switch, title in switches:
                env = {**base, "HEDDLE_VCIS": str(max(threads, 2)), "HEDDLE_ABLATE": switch}
                if switch == "one":
                    env |= {"HEDDLE_VCIS": "1", "HEDDLE_ABLATE": ""}
                word = switch.replace(",", "-") or "all"
                name = f"ablation-{test}-{word}-{threads}"
                arguments = [f"--threads={threads}", f"--seconds={seconds}", "--thread=multiple"]
                arguments += ["--mode=own", "--test=rate", "--sizes=8"] if test == "rate" else []
                job(name, source, *arguments, profile=profile, ranks=ranks, libraries=("heddle",), env={"heddle": env})
                row(
                    f"ablation.{test}.{word}.{threads}",
                    f"{'to oneself' if test == 'self' else '2 ranks'}, {threads} threads: {title}",
                    "M/s",
                    "higher",
                    name,
                    "rate" if test == "self" else "rate/8",
                    group=group,
                )
