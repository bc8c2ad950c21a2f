"""Paper 004's figures 5 to 7 with Heddle's own optimisations: a library of the target `ablation` does without one or several of them.

What is compared is the row of the library as it is.
"""

from job import MT, PROGRAMS, thread_counts

# The folders of bench/ablation whose headers a library is built with, and the title of its rows; as in cmake/HeddleBench.cmake.
SWITCHES = {
    "progress": "without per-VCI progress",
    "looks": "polls lock without looking first",
    "progress-looks": "without per-VCI progress and without looking",
    "requests": "without per-VCI request caches",
    "progress-looks-requests": "many VCIs, none of all that",
}


def library(directory, switches):
    return directory / switches / "lib"


def built(directory):
    """Whether all are there: a program would take the library as it is for one that is missing."""
    return all((library(directory, switches) / "libmpi_abi.so.1").exists() for switches in SWITCHES)


def ablation_rows(job, row, seconds, cores, directory):
    group = "What an optimisation is worth (8 B, own communicators)"
    for test, source, profile, ranks in (("self", PROGRAMS + "self.c", "single", 1), ("rate", MT, "threads", 2)):
        for threads in thread_counts(cores)[1:]:
            vcis = {"HEDDLE_VCIS": str(max(threads, 2))}
            variants = [("all", "everything on", vcis), ("one", "one VCI", {"HEDDLE_VCIS": "1"})]
            for switches, title in SWITCHES.items():
                variants.append((switches, title, vcis | {"LD_LIBRARY_PATH": str(library(directory, switches))}))
            for word, title, env in variants:
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
