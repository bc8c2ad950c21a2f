"""The MPI libraries as the runner sees them: how each compiles a program and starts it at its best settings.

A *profile* says what a job needs of the launcher; docs/benchmarks.md gives the reason for each setting.

single       1 process
pair         2 ranks, each bound to a core of its own
crowd        more ranks than cores: no binding, waiting that yields
threads      2 ranks of several threads: no binding by the launcher, the program places its threads itself
tcp          as pair, and every message between the ranks goes over TCP on the loopback interface
tcp-threads  as threads, and the same
"""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CFLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-stringop-overflow"]
PROFILES = ("single", "pair", "crowd", "threads", "tcp", "tcp-threads")


@dataclass
class Library:
    key: str
    title: str
    compile: list  # command prefix; the sources follow it
    link: list  # what follows the sources
    launch: dict  # profile -> command prefix up to and with the option that takes the number of ranks
    env: dict = field(default_factory=dict)  # for every start
    profile_env: dict = field(default_factory=dict)  # profile -> more of it
    rank_variable: str = "PMI_RANK"
    version: str = ""  # filled in by identify()
    variant_of: str = ""  # the library whose binaries this one runs with other settings

    def command(self, profile, ranks, program, arguments):
        return [*self.launch[profile], str(ranks), *program, *arguments]

    def environment(self, profile, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MPIR_CVAR_", "I_MPI_", "OMPI_", "HEDDLE_"))}
        env.update(self.env)
        env.update(self.profile_env.get(profile, {}))
        env.update(extra or {})
        return env

    def settings(self, profile):
        """The settings of a profile as one line of text, for the report."""
        launcher = [Path(self.launch[profile][0]).name, *self.launch[profile][1:]]
        variables = {**self.env, **self.profile_env.get(profile, {})}
        shown = [f"{k}={v}" for k, v in variables.items() if k not in ("LD_LIBRARY_PATH", "I_MPI_ROOT")]
        return " ".join([*shown, *launcher])


def same_for_all(prefix):
    return {profile: list(prefix) for profile in PROFILES}


def flags_for(include, lib, name):
    return (
        ["cc", *CFLAGS, f"-I{include}"],
        [f"-L{lib}", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}", f"-l{name}", "-pthread", "-lm"],
    )


def heddle(build, key="heddle", title="Heddle", env=None):
    """Heddle from a build directory; None when it is not built there."""
    build = Path(build).resolve()
    compiler, launcher = build / "bin/mpicc", build / "bin/mpiexec"
    if not compiler.exists() or not launcher.exists():
        return None
    # No settings at all: what a user gets without reading anything. (`env` is for experiments, and shown.)
    return Library(
        key, title, [str(compiler), *CFLAGS], ["-pthread", "-lm"], same_for_all([str(launcher), "-n"]), env=dict(env or {})
    )


def mpich5(place):
    compile_, link = flags_for(place / "include", place / "lib", "mpi")
    launch = same_for_all([str(place / "bin/mpiexec"), "-n"])
    launch["pair"] = [str(place / "bin/mpiexec"), "-bind-to", "core", "-n"]
    return Library("mpich5", "MPICH 5.0.2", compile_, link, launch)


def mpich4(place):
    # Debian's triplet directory, whatever the architecture.
    lib = next((place / "root/usr/lib").glob("*-linux-gnu*"))
    include = next((place / "root/usr/include").glob("*/mpich"))
    compile_, link = flags_for(include, lib, "mpich")
    launcher = str(place / "root/usr/bin/mpiexec.hydra")
    launch = same_for_all([launcher, "-n"])
    launch["pair"] = [launcher, "-bind-to", "core", "-n"]
    return Library("mpich4", "MPICH 4.0.2", compile_, link, launch, env={"LD_LIBRARY_PATH": str(lib)})


def openmpi5(place):
    compile_, link = flags_for(place / "include", place / "lib", "mpi")
    start = [str(place / "bin/mpiexec"), "--allow-run-as-root", "--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
    # osc/sm would give windows shared memory.
    over_tcp = [*start[:-1], "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "^sm,ucx"]
    free = [*start, "--map-by", ":oversubscribe", "--bind-to", "none"]
    launch = {
        "single": [*free, "-n"],
        "pair": [*start, "--bind-to", "core", "-n"],
        "crowd": [*free, "--mca", "mpi_yield_when_idle", "1", "-n"],
        "threads": [*free, "-n"],
        "tcp": [*over_tcp, "--bind-to", "core", "-n"],
        "tcp-threads": [*over_tcp, "--map-by", ":oversubscribe", "--bind-to", "none", "-n"],
    }
    return Library("openmpi5", "Open MPI 5.0.11", compile_, link, launch, rank_variable="OMPI_COMM_WORLD_RANK")


def intel(place):
    compile_, link = flags_for(place / "include", place / "lib", "mpi")
    return Library(
        "intel",
        "Intel MPI 2021.18",
        compile_,
        link,
        same_for_all([str(place / "bin/mpiexec"), "-n"]),
        env={"I_MPI_ROOT": str(place), "I_MPI_FABRICS": "shm"},
        profile_env={
            "pair": {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"},
            "crowd": {"I_MPI_PIN": "0"},
            "threads": {"I_MPI_PIN": "0"},
            "single": {"I_MPI_PIN": "0"},
        },
    )


MAKERS = {"mpich5": mpich5, "openmpi5": openmpi5, "intel": intel, "mpich4": mpich4}

# As many VCIs as a program of the comparison has threads, or nearly: MPICH wants them asked for.
MPICH_VCIS = str(min(64, max(4, len(os.sched_getaffinity(0)))))

# Settings of a peer that help some work and hurt other: run beside the plain ones in the jobs that ask for them.
VARIANTS = {
    "mpich5-vcis": ("mpich5", f"MPICH 5.0.2, {MPICH_VCIS} VCIs", {"MPIR_CVAR_CH4_NUM_VCIS": MPICH_VCIS}),
    "mpich4-vcis": ("mpich4", f"MPICH 4.0.2, {MPICH_VCIS} VCIs", {"MPIR_CVAR_CH4_NUM_VCIS": MPICH_VCIS}),
    "openmpi5-yield": ("openmpi5", "Open MPI 5.0.11, yielding", {"OMPI_MCA_mpi_yield_when_idle": "1"}),
    "intel-yield": ("intel", "Intel MPI 2021.18, yielding", {"I_MPI_THREAD_YIELD": "3"}),
}


def variant(key, libraries):
    """The Library for a key of VARIANTS, or None when its peer is not there."""
    base_key, title, env = VARIANTS[key]
    base = libraries.get(base_key)
    if not base:
        return None
    return Library(
        key,
        title,
        base.compile,
        base.link,
        base.launch,
        {**base.env, **env},
        base.profile_env,
        base.rank_variable,
        base.version,
        base_key,
    )


FAILED = {}  # program -> what the compiler said: no use in trying again for the next job


class CompileError(Exception):
    """A benchmark program does not compile with a library; the text is the compiler's."""


def compile_program(library, source, out, root):
    """Compiles `source` for `library` into the directory `out` unless the result there is newer. Returns its path."""
    target = Path(out) / (library.variant_of or library.key) / Path(source).stem
    source = Path(root) / source
    programs = Path(root) / "bench/programs"
    sources = [source, programs / "pin.c"]
    needs = [*sources, programs / "bench.h", Path(library.compile[0])]
    extra = endpoint_flags(library)
    if target.exists() and all(not n.exists() or n.stat().st_mtime <= target.stat().st_mtime for n in needs):
        return target
    if target in FAILED:
        raise CompileError(FAILED[target])
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*library.compile, *extra, *map(str, sources), "-o", str(target), *library.link]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        FAILED[target] = (result.stderr or result.stdout).strip()
        raise CompileError(FAILED[target])
    return target


def endpoint_flags(library):
    """Switches on the endpoints mode of bench/mt where the library's own headers declare it."""
    header = Path(library.compile[0]).parent.parent / "include/mpix.h"
    if library.key in ("heddle", "baseline") and header.exists() and "MPIX_Comm_create_endpoints" in header.read_text():
        return ["-DHEDDLE_BENCH_ENDPOINTS"]
    return []
