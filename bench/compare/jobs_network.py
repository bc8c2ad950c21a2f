"""The work of two ranks when every message takes TCP over the loopback interface."""

from job import MT, sizes

# How each library is made to send everything over TCP; Open MPI by its launcher's options (profiles tcp, tcp-threads). Checked by
# the bytes that the loopback interface counts: MPICH 5 also has, and prefers, UCX, which is MPICH 4's only one and would use shared memory.
OVER_TCP = {
    "heddle": {"HEDDLE_SHM": "0"},
    "mpich5": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "mpich4": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"},
    "intel": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
}


def network_rows(job, row, seconds, quick):
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
    # The floor comes from the same processes: where an idle core takes long to wake (virtual machines), nobody who sleeps wakes sooner.
    title = "from a send until a receive that was asleep returns"
    row("net.wake", title, "µs", "lower", "net-idle", "wake_us", absolute=50, own_row="net.wake.bare", own_ratio=1.5, group=group)
    title = "the same of a thread asleep in recv() on a socket, no MPI: the floor"
    row("net.wake.bare", title, "µs", "lower", "net-idle", "wake_bare_us", group=group)
