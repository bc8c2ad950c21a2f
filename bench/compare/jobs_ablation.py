"""Paper 004's figures 5 to 8 with Heddle's own optimisations: the library of the target `ablation` does without one of them.

What is compared is the row with nothing switched off, of the same library.
"""

from job import MT, PROGRAMS, thread_counts


def ablation_rows(job, row, seconds, cores, library):
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
