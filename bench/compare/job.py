"""What is measured: jobs (one program run each) and rows (one figure of a job each, with its target).

A job runs on every library in turn. A row picks one key of the job's results, says which way is better, which peers it
is judged against and what ratio to the best of them is wanted.
"""

from dataclasses import dataclass, field

PROGRAMS = "bench/programs/"
MT = "bench/mt/mt.c"


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


def sizes(values):
    return "--sizes=" + ",".join(map(str, values))
