"""Everything that is measured, in the order it is run and printed. What a job and a row are: job.py."""

import os

from job import PROGRAMS, Job, Row, size_name, sizes, thread_counts
from jobs_ablation import ablation_rows
from jobs_network import network_rows
from jobs_rma import rma_rows
from jobs_threads import threads_rows

SWEEP = [0, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304]
DEPTHS = [1, 10, 100, 1000, 10000, 100000]
MPICH_AND_OPENMPI = ("mpich5", "mpich4", "openmpi5")
MPICH = ("mpich5", "mpich4")


def everything(quick=False, cores=None, ablation=None):
    """All jobs and rows, in the order they are run and printed. `ablation`: the directory of those libraries, if they were built."""
    cores = cores or len(os.sched_getaffinity(0))
    jobs, rows = {}, []
    seconds = 0.1 if quick else 0.4
    sweep_seconds = 0.05 if quick else 0.15

    def job(name, source, *arguments, **more):
        source = source if "/" in source else PROGRAMS + source
        jobs[name] = Job(name, source, list(arguments), **more)

    def row(name, title, unit, better, job_name, key, **more):
        rows.append(Row(name, title, unit, better, job_name, key, **more))

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

    # With work between the calls, of which one rank has more than the other.
    job("late", "late.c", "--late=300,1000,3000", f"--seconds={seconds}")
    for late in (300, 1000, 3000):
        title = f"allreduce 8 B, a rank {late / 1000:g} ms late in turn: time beyond the work"
        row(f"late.{late}", title, "µs", "lower", "late", f"beyond/{late}", ratio=1.0, group=group)

    network_rows(job, row, seconds, quick)

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
            what = ("posted receive" if kind == "posted" else "unexpected message") + "s" * (depth > 1)
            last = {"own_row": f"match.{kind}.1", "own_ratio": 1.25, "ratio": 1.0} if depth == depths[-1] else {}
            row(
                f"match.{kind}.{depth}",
                f"latency beside {depth:,} {what}",
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
    rma_rows(job, row, seconds, sweep_seconds, cores, mt_variants)
    if ablation:
        ablation_rows(job, row, seconds, cores, ablation)
    return jobs, rows
