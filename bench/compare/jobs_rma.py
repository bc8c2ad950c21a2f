"""One-sided communication: paper 003's tables and figures 1a to 1d, paper 004's figures 13, 14 and 16, as far as one machine shows them."""

from job import PROGRAMS, size_name, sizes
from jobs_network import OVER_TCP

RMA = PROGRAMS + "rma.c"
MIB = 1 << 20
BATCH = "--ops=64"  # operations before each flush, where rates are measured
TITLES = {
    "put": "put",
    "get": "get",
    "accumulate": "accumulate (sum of doubles)",
    "fetch_and_op": "fetch_and_op",
    "compare_and_swap": "compare_and_swap",
}
SYNCS = {"lock": "lock, unlock", "fence": "fence", "pscw": "start, complete"}
MEMORY = {"allocate": "", "create": ", window of malloc'd memory"}
HPCCG = {"messages": "messages", "threads": "messages, a thread a neighbour", "put": "put, a thread a neighbour", "get": "get, a thread a neighbour"}
THREADS = (1, 2, 4, 8)
SHARES = {"one": "one window", "windows": "a window a thread", "endpoints": "endpoints"}


def rma_rows(job, row, seconds, sweep_seconds, cores, variants):
    def rma(name, ops, *arguments, **more):
        job(name, RMA, "--op=" + ",".join(ops), *arguments, **more)

    brief = f"--seconds={sweep_seconds}"
    variants = [v for v in variants if v != "mpich4-vcis"]  # ends windows with "Internal error"

    group = "One-sided, two ranks of a node, 8 B"
    for memory, of_memory in MEMORY.items():
        place = "" if memory == "allocate" else f"{memory}."
        name = f"rma-lat-{memory}"
        rma(name, TITLES, f"--window={memory}", f"--seconds={seconds}")
        for op, title in TITLES.items():
            wanted = {"put": 0.7, "get": 0.7, "fetch_and_op": 0.8}.get(op, 1.0) if memory == "allocate" else 1.0
            row(f"rma.{place}lat.{op}", f"{title} and flush{of_memory}", "µs", "lower", name, f"time/{op}/8", ratio=wanted, group=group)
        name = f"rma-rate-{memory}"
        rma(name, TITLES, f"--window={memory}", BATCH, f"--seconds={seconds}")
        for op, title in TITLES.items():
            wanted = {"put": 2.0}.get(op, 1.0) if memory == "allocate" else 1.0
            row(f"rma.{place}rate.{op}", f"{title}, 64 a flush{of_memory}", "M/s", "higher", name, f"rate/{op}/8", ratio=wanted, group=group)
    rma("rma-both-rate", ("put", "get"), "--ways=2", BATCH, f"--seconds={seconds}")
    for op in ("put", "get"):
        title = f"{op}, 64 a flush, both ways at once"
        row(f"rma.both.rate.{op}", title, "M/s", "higher", "rma-both-rate", f"rate/{op}/8", ratio=1.0, group=group)

    group = "One-sided, ways to synchronise: a round of one operation of 8 B"
    some = ("put", "get", "accumulate", "fetch_and_op")
    for memory, of_memory in MEMORY.items():
        place = "" if memory == "allocate" else f"{memory}."
        for sync, sync_title in SYNCS.items():
            name = f"rma-{sync}-{memory}"
            rma(name, some, f"--sync={sync}", f"--window={memory}", brief)
            for op in some:
                title = f"{op}: {sync_title}{of_memory}"
                row(f"rma.{place}{sync}.{op}", title, "µs", "lower", name, f"time/{op}/8", ratio=1.0, group=group)

    # 1 MiB against the bare mechanism, which the same run measures: memcpy where memory is mapped, else the kernel's copy.
    group = "One-sided, 1 MiB"
    pair = ("put", "get")
    for memory, bare, most in (("allocate", "memcpy", 1.11), ("create", "cma", 1.1)):
        place = "" if memory == "allocate" else f"{memory}."
        name, both, sums = f"rma-large-{memory}", f"rma-both-large-{memory}", f"rma-large-{memory}-accumulate"
        rma(name, pair, f"--window={memory}", f"--bare={bare}", sizes([MIB]), f"--seconds={seconds}")
        rma(both, pair, f"--window={memory}", "--ways=2", sizes([MIB]), brief)
        rma(sums, ("accumulate",), f"--window={memory}", sizes([MIB]), f"--seconds={seconds}")
        for op in pair:
            base = f"rma.bare.{bare}.{op}"
            call = {"memcpy": "memcpy", "cma": f"process_vm_{'writev' if op == 'put' else 'readv'}"}[bare]
            title = f"{call} {'to' if op == 'put' else 'from'} the other process, no MPI"
            row(base, title, "µs", "lower", name, f"bare/{op}/{MIB}", group=group)
            wanted = {"ratio": 1.0, "own_row": base, "own_ratio": most}
            title = f"{op} and flush{MEMORY[memory]}"
            row(f"rma.{place}large.{op}", title, "µs", "lower", name, f"time/{op}/{MIB}", group=group, **wanted)
            title = f"{op}, both ways at once{MEMORY[memory]}"
            row(f"rma.{place}both.large.{op}", title, "GB/s", "higher", both, f"bandwidth/{op}/{MIB}", ratio=1.0, group=group)
        title = f"accumulate of doubles{MEMORY[memory]}"
        key = f"bandwidth/accumulate/{MIB}"
        row(f"rma.{place}large.accumulate", title, "GB/s", "higher", sums, key, ratio=1.0, group=group)

    group = "One-sided by size: a round of one operation"
    by_size = [8, 64, 512, 4096, 32768, 262144, MIB]
    for memory, of_memory in MEMORY.items():
        place = "" if memory == "allocate" else f"{memory}."
        for op in ("put", "get", "accumulate"):
            name = f"rma-size-{memory}-{op}"
            rma(name, (op,), f"--window={memory}", sizes(by_size), brief)
            for size in by_size:
                title = f"{op} {size_name(size)} and flush{of_memory}"
                row(f"rma.{place}size.{op}.{size}", title, "µs", "lower", name, f"time/{op}/{size}", ratio=1.0, group=group)

    # Each operation alone: with a library that needs the target's calls, each takes long or does not end.
    group = "One-sided, the target computes outside MPI, 8 B"
    for memory, of_memory in MEMORY.items():
        place = "" if memory == "allocate" else f"{memory}."
        for op in some:
            name = f"rma-busy-{memory}-{op}"
            rma(name, (op,), f"--window={memory}", "--target=computes", brief)
            wanted = {"ratio": 1.0, "own_row": f"rma.{place}lat.{op}", "own_ratio": 1.2}
            row(f"rma.{place}busy.{op}", f"{op} and flush{of_memory}", "µs", "lower", name, f"time/{op}/8", group=group, **wanted)

    group = "One-sided, N origins accumulate into disjoint parts of one target, 32 KiB each"
    for origins in (1, 2, 8):
        name = f"rma-origins-{origins}"
        arguments = ("--target=either", sizes([32768]), f"--seconds={seconds}")
        rma(name, ("accumulate",), *arguments, profile="pair" if origins == 1 else "crowd", ranks=origins + 1)
        # More origins than cores take turns.
        wanted = {"own_row": "rma.origins.1", "own_ratio": round(0.8 * min(origins, cores), 2)} if origins > 1 else {}
        title = f"{origins} origin{'s' * (origins > 1)}, together"
        key = "bandwidth/accumulate/32768"
        row(f"rma.origins.{origins}", title, "GB/s", "higher", name, key, ratio=1.0, group=group, **wanted)

    # Threads of one process; the other sleeps, so that all cores are theirs, or where a library needs it polls.
    for first, ops, ranks, of_where in (
        ("rma.threads", ("put", "get", "accumulate"), 2, "another process"),
        ("rma.threads.self", ("put",), 1, "the process itself"),
    ):
        base_name = first.replace(".", "-")
        for share in SHARES:
            for threads in THREADS:
                arguments = [f"--threads={threads}", f"--share={share}", "--pin=block", BATCH, brief]
                settings = {"libraries": ("heddle",)} if share == "endpoints" else {"variants": variants}
                if ranks == 2:
                    arguments.append("--target=either")
                rma(f"{base_name}-{share}-{threads}", ops, *arguments, profile="threads", ranks=ranks, **settings)
        for op in ops:
            group = f"One-sided, T threads of one process, {op} 8 B, 64 a flush, to {of_where}"
            for share, share_title in SHARES.items():
                for threads in THREADS:
                    wanted = {}
                    if share == "endpoints":
                        wanted = {"own_row": f"{first}.{op}.windows.{threads}", "own_ratio": 0.95}
                    elif share == "one" and threads == 2:
                        wanted = {"own_row": f"{first}.{op}.one.1", "own_ratio": 1.8, "ratio": 1.0}
                    elif share == "one" and threads > 2:
                        wanted = {"own_row": f"{first}.{op}.one.2", "own_ratio": 0.8, "ratio": 1.0}
                    name, title = f"{base_name}-{share}-{threads}", f"{share_title}, T = {threads}"
                    row(f"{first}.{op}.{share}.{threads}", title, "M/s", "higher", name, f"rate/{op}/8", group=group, **wanted)
            wanted = {"own_row": f"{first}.{op}.windows.2", "own_ratio": 0.95}
            title = "one window against a window a thread, T = 2"
            key = f"rate/{op}/8"
            row(f"{first}.{op}.one.2.windows", title, "M/s", "higher", f"{base_name}-one-2", key, group=group, **wanted)

    # Paper 003's table 1: what reaching the target's memory directly is worth against messages to it.
    group = "One-sided by messages (HEDDLE_RMA=am) and directly, T threads, one window"
    for size, ops, least in ((8, 64, 1.9), (MIB, 4, 1.4)):
        for threads in (1, 2):
            arguments = (f"--threads={threads}", "--pin=block", f"--ops={ops}", sizes([size]), f"--seconds={seconds}")
            for path, way in (("am", "by messages"), ("auto", "directly")):
                name = f"rma-native-{path}-{size}-{threads}"
                rma(name, pair, *arguments, env={"heddle": {"HEDDLE_RMA": path}}, libraries=("heddle",), profile="threads")
                for op in pair:
                    base = {"own_row": f"rma.native.am.{op}.{size}.{threads}", "own_ratio": least} if path == "auto" else {}
                    title = f"{op} {size_name(size)}, T = {threads}, {way}"
                    figure, unit = ("rate", "M/s") if size == 8 else ("bandwidth", "GB/s")
                    key = f"{figure}/{op}/{size}"
                    row(f"rma.native.{path}.{op}.{size}.{threads}", title, unit, "higher", name, key, group=group, **base)

    group = "One-sided over tcp on loopback, two ranks"
    over_tcp = "--window=create"  # memory that Open MPI allocates is shared, and reached past tcp
    tcp = {"profile": "tcp", "env": OVER_TCP}
    for op in ("put", "get", "fetch_and_op"):
        name = f"rma-net-lat-{op}"
        rma(name, (op,), over_tcp, f"--seconds={seconds}", **tcp)
        # 1.15 round trips of a message; net.lat.8 is half of one.
        wanted = {"ratio": 1.0, "own_row": "net.lat.8", "own_ratio": 2.3}
        row(f"rma.net.lat.{op}", f"{op} 8 B and flush", "µs", "lower", name, f"time/{op}/8", group=group, **wanted)
    for op in ("put", "get", "accumulate"):
        name = f"rma-net-rate-{op}"
        rma(name, (op,), over_tcp, BATCH, f"--seconds={seconds}", **tcp)
        wanted = {"ratio": 3.0, "own_row": "net.rate.8", "own_ratio": 1.0} if op == "put" else {"ratio": 1.0}
        row(f"rma.net.rate.{op}", f"{op} 8 B, 64 a flush", "M/s", "higher", name, f"rate/{op}/8", group=group, **wanted)
    for op in pair:
        name = f"rma-net-large-{op}"
        rma(name, (op,), over_tcp, "--ops=16", sizes([MIB]), f"--seconds={2 * seconds}", **tcp)
        wanted = {"ratio": 1.0, "own_row": "net.bw.1M", "own_ratio": 0.95}
        key = f"bandwidth/{op}/{MIB}"
        row(f"rma.net.large.{op}", f"{op} 1 MiB, 16 a flush", "GB/s", "higher", name, key, group=group, **wanted)
    for op in pair:
        name = f"rma-net-busy-{op}"
        rma(name, (op,), over_tcp, "--target=computes", f"--seconds={seconds}", **tcp)
        title = f"{op} 8 B and flush, the target computes"
        row(f"rma.net.busy.{op}", title, "µs", "lower", name, f"time/{op}/8", ratio=1.0, group=group)
    for share in ("windows", "one"):
        for threads in (1, 2):
            name = f"rma-net-threads-{share}-{threads}"
            arguments = (over_tcp, f"--threads={threads}", f"--share={share}", "--pin=block", BATCH, f"--seconds={seconds}")
            rma(name, ("put",), *arguments, profile="tcp-threads", env=OVER_TCP)
            wanted = {"own_row": f"rma.net.threads.windows.{threads}", "own_ratio": 0.8} if share == "one" else {}
            title = f"put 8 B, 64 a flush, {SHARES[share]}, T = {threads}"
            row(f"rma.net.threads.{share}.{threads}", title, "M/s", "higher", name, "rate/put/8", ratio=1.0, group=group, **wanted)

    # Paper 003's figures 1e and 1f, on one node and over tcp: all ways to exchange the halos in one run, which compares their residuals.
    group = "HPCCG, 48³ points a rank, two ranks: milliseconds an iteration"
    for place, profile, memory, env in (("", "threads", "allocate", {}), ("net.", "tcp-threads", "create", OVER_TCP)):
        name = f"rma-{place}hpccg".replace(".", "-")
        arguments = ("--size=48", "--iterations=30", "--repeat=2", f"--window={memory}")
        job(name, "apps/hpccg/hpccg.c", *arguments, profile=profile, env=env, timeout=120)
        for mode, title in HPCCG.items():
            over = ", over tcp" if place else ""
            total = f"rma.{place}hpccg.{mode}"
            wanted = {} if mode == "messages" else {"own_row": f"rma.{place}hpccg.messages.exchange", "own_ratio": 1.0}
            row(f"{total}.exchange", f"{title}: exchange of halos{over}", "ms", "lower", name, f"{mode}/exchange", group=group, **wanted)
            row(f"{total}.total", f"{title}: total{over}", "ms", "lower", name, f"{mode}/total", ratio=1.0, group=group)
