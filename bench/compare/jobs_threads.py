"""Two ranks of several threads: the modes of paper 004, figures 10, 11 and 17 to 19."""

from job import MT, size_name, sizes, thread_counts

INPROC = "bench/mt/inproc.c"


def threads_rows(job, row, seconds, sweep_seconds, cores, variants):
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
    by_size = [8, 64, 512, 4096, 32768, 262144, 1048576]
    for threads in sorted({2, max(2, cores // 2)}):
        group = f"Message rate by size, T = {threads}"
        rows_name = "mt.size" if threads == 2 else f"mt.size{threads}"
        for mode, title, mode_variants in modes:
            name = f"mt-sizes-{mode}" if threads == 2 else f"mt-sizes-{mode}-{threads}"
            arguments = (sizes(by_size), f"--seconds={sweep_seconds}")
            mt(name, mode, threads, "rate", *arguments, variants=mode_variants, timeout=120)
            for size in by_size:
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
