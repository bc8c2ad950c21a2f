"""The table as objects: every function family with its parameters, every constant.

`api/table/*.txt` holds one family per paragraph (README.md describes the notation), `api/extensions/*.txt` those of include/mpix.h,
`api/constants.txt` the constants.
Everything that is generated is a view of what `load()` returns.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

HERE = Path(__file__).resolve().parent

# kind: (C type, C type in the _c twin) of one value. `in` passes the value, `out` and `inout` a pointer to it.
SCALARS = {
    "INT": ("int", "int"),              # any integer
    "BOOL": ("int", "int"),             # zero is false
    "LENGTH": ("int", "int"),           # a number of array elements: not negative
    "RANK": ("int", "int"),             # a rank of the communicator's local group
    "DEST": ("int", "int"),             # a rank to send to, or MPI_PROC_NULL
    "SOURCE": ("int", "int"),           # a rank to receive from, MPI_PROC_NULL or MPI_ANY_SOURCE
    "ROOT": ("int", "int"),             # the root of a collective; MPI_ROOT and MPI_PROC_NULL on intercommunicators
    "TARGET": ("int", "int"),           # a rank of a window's group
    "TAG": ("int", "int"),              # a tag to send with
    "RTAG": ("int", "int"),             # a tag to receive with, or MPI_ANY_TAG
    "COUNT": ("int", "MPI_Count"),      # a number of elements: not negative
    "LARGECOUNT": ("MPI_Count", "MPI_Count"),  # the same, where the standard has this form only
    "STEP": ("int", "MPI_Count"),       # a distance in elements, of either sign
    "UNIT": ("int", "MPI_Aint"),        # a displacement unit in bytes
    "ACOUNT": ("MPI_Aint", "MPI_Count"),  # a number of bytes
    "ASTEP": ("MPI_Aint", "MPI_Count"),   # a distance in bytes, of either sign
    "AINT": ("MPI_Aint", "MPI_Aint"),
    "OFFSET": ("MPI_Offset", "MPI_Offset"),
    "LARGE": ("MPI_Count", "MPI_Count"),
    "STATUS": ("MPI_Status", "MPI_Status"),
}
# kind: (C handle type, C++ class that an `in` handle is resolved to; None: passed on as it is)
HANDLES = {
    "COMM": ("MPI_Comm", "Comm"),
    "TYPE": ("MPI_Datatype", "Datatype"),   # need not be committed
    "CTYPE": ("MPI_Datatype", "Datatype"),  # must be committed
    "OP": ("MPI_Op", "Op"),
    "GROUP": ("MPI_Group", "Group"),
    "INFO": ("MPI_Info", "Info"),
    "ERRHANDLER": ("MPI_Errhandler", "Errhandler"),
    "SESSION": ("MPI_Session", "Session"),
    "WIN": ("MPI_Win", "Window"),
    "FILE": ("MPI_File", None),
    "REQUEST": ("MPI_Request", None),
    "MESSAGE": ("MPI_Message", None),
    "THREADCOMM": ("MPI_Comm", "Threadcomm"),
    "STREAM": ("MPIX_Stream", "Stream"),
}
# kind: (element type, element type in the _c twin). `in` arrays are const.
ARRAYS = {
    "INTS": ("int", "int"),
    "WEIGHTS": ("int", "int"),          # may be MPI_UNWEIGHTED or MPI_WEIGHTS_EMPTY
    "AINTS": ("MPI_Aint", "MPI_Aint"),
    "LARGES": ("MPI_Count", "MPI_Count"),
    "COUNTS": ("int", "MPI_Count"),
    "DISPLS": ("int", "MPI_Aint"),      # displacements in elements
    "ADISPLS": ("MPI_Aint", "MPI_Count"),  # displacements in bytes
    "TYPES": ("MPI_Datatype", "MPI_Datatype"),
    "INFOS": ("MPI_Info", "MPI_Info"),
    "REQUESTS": ("MPI_Request", "MPI_Request"),
    "STATUSES": ("MPI_Status", "MPI_Status"),
    "COMMS": ("MPI_Comm", "MPI_Comm"),
    "STREAMS": ("MPIX_Stream", "MPIX_Stream"),
}
# `in` arrays of these kinds reach implementations as CountArray, whatever their elements are.
COUNT_ARRAYS = ("COUNTS", "DISPLS", "ADISPLS", "AINTS")
POINTERS = {  # kind: (C type of `in`, of `out` and `inout`)
    "BUFFER": ("const void *", "void *"),
    "POINTER": ("void *", "void *"),
    "CPOINTER": ("const void *", "const void *"),
    "ADDRESS": ("void *", "void *"),    # where a pointer is stored, declared void * by the standard
    "STRING": ("const char *", "char *"),
}


@dataclass
class Param:
    name: str
    kind: str                 # a key of the tables above, "TRIPLES", "FUNCTION", "...", or "<C type>"
    direction: str = "in"
    args: List[str] = field(default_factory=list)
    optional: bool = False    # `?`: may be null, or is not significant everywhere
    twin_only: bool = False   # `!`: only the _c form has it

    @property
    def verbatim(self) -> Optional[str]:
        return self.kind[1:-1] if self.kind.startswith("<") else None

    @property
    def is_wide(self) -> bool:
        """True when the _c form declares another type."""
        for table in (SCALARS, ARRAYS):
            if self.kind in table:
                small, large = table[self.kind]
                return small != large
        return self.kind == "FUNCTION"

    def declare(self, large: bool, name: Optional[str] = None) -> str:
        """The C declaration in the plain or the _c form."""
        name = self.name if name is None else name
        which = 1 if large else 0
        if self.kind in SCALARS or self.kind in HANDLES:
            base = SCALARS[self.kind][which] if self.kind in SCALARS else HANDLES[self.kind][0]
            if self.kind == "STATUS" and self.direction == "in":
                return f"const MPI_Status *{name}"
            return f"{base} {name}" if self.direction == "in" else f"{base} *{name}"
        if self.kind in ARRAYS:
            const = "const " if self.direction == "in" else ""
            if self.kind == "WEIGHTS":  # as an array, GCC warns that MPI_UNWEIGHTED is too small to be one
                return f"{const}int *{name}"
            return f"{const}{ARRAYS[self.kind][which]} {name}[]"
        if self.kind in POINTERS:
            return POINTERS[self.kind][self.direction != "in"] + name
        if self.kind == "TRIPLES":
            return f"int {name}[][3]"
        if self.kind == "FUNCTION":
            return f"{self.args[0]}{'_c' if large else ''} *{name}"
        if self.kind == "...":
            return "..."
        base = self.verbatim
        assert base, self.kind
        suffix = "[]" if base.endswith("[]") else ""
        base = base[: len(base) - len(suffix)].strip()
        if self.direction != "in":
            base += "*" if base.endswith("*") else " *"
        return base + ("" if base.endswith("*") else " ") + name + suffix


@dataclass
class Function:
    name: str          # without MPI_ or MPIX_
    purpose: str
    chapter: "Chapter"
    params: List[Param] = field(default_factory=list)
    flags: Dict[str, str] = field(default_factory=dict)
    details: str = ""  # more sentences, of extensions: for the manual page and the header

    @property
    def returns(self) -> str:
        return self.flags.get("returns", "int")

    @property
    def returns_code(self) -> bool:
        return "returns" not in self.flags

    @property
    def has_twin(self) -> bool:
        return any(p.is_wide or p.twin_only for p in self.params) and "same as" not in self.flags

    @property
    def implementation(self) -> str:
        """The family whose implementation serves this one."""
        return self.flags.get("same as", self.name)

    def forms(self) -> List[bool]:
        """The forms to declare: [plain] or [plain, _c]."""
        return [False, True] if self.has_twin else [False]

    def c_name(self, large: bool = False, prefix: str = "MPI_") -> str:
        if self.chapter.extension:
            prefix = prefix.replace("MPI_", "MPIX_")
        return prefix + self.name + ("_c" if large else "")

    def c_params(self, large: bool) -> List[Param]:
        return [p for p in self.params if large or not p.twin_only]

    def prototype(self, large: bool, prefix: str = "MPI_") -> str:
        params = ", ".join(p.declare(large) for p in self.c_params(large)) or "void"
        if self.name == "Pcontrol":
            params = params.replace("int level", "const int level")
        space = "" if self.returns.endswith("*") else " "
        return f"{self.returns}{space}{self.c_name(large, prefix)}({params})"


@dataclass
class Chapter:
    key: str
    title: str
    section: str
    functions: List[Function] = field(default_factory=list)
    extension: bool = False  # MPIX_ functions, declared in mpix.h


@dataclass
class Constant:
    name: str
    value: str
    type: str   # "int" for plain integers, "enum X" for items of an enumeration, "" for another name of a constant


@dataclass
class ConstantGroup:
    title: str
    constants: List[Constant] = field(default_factory=list)
    enum: str = ""


@dataclass
class Api:
    chapters: List[Chapter]
    constants: List[ConstantGroup]
    extensions: List[Chapter] = field(default_factory=list)

    def functions(self):
        """The standard's."""
        return [f for c in self.chapters for f in c.functions]

    def extension_functions(self):
        return [f for c in self.extensions for f in c.functions]

    def find(self, name: str) -> Function:
        return next(f for f in self.functions() if f.name == name)

    def names(self):
        """All function names of the standard with MPI_, both forms, sorted."""
        return sorted(f.c_name(large) for f in self.functions() for large in f.forms())

    def extension_names(self):
        """The same for MPIX_."""
        return sorted(f.c_name(large) for f in self.extension_functions() for large in f.forms())


# The order of the standard, for documents and the header.
CHAPTERS = ("pt2pt buffer partitioned datatype collective op group comm topology neighborhood environment error "
            "info init dynamic rma request io tool abi").split()
EXTENSIONS = "endpoints stream threadcomm".split()

PARAM = re.compile(r"^(?:(in|out|inout) )?(\w+): (<[^>]+>|\w+)(?:\(([^)]*)\))?([?!]*)$")


def parse_param(text: str, where: str) -> Param:
    text = text.strip()
    if text == "...":
        return Param("...", "...")
    match = PARAM.match(text)
    if not match:
        raise SystemExit(f"{where}: cannot read parameter `{text}`")
    direction, name, kind, args, marks = match.groups()
    known = kind in SCALARS or kind in HANDLES or kind in ARRAYS or kind in POINTERS or kind in ("TRIPLES", "FUNCTION")
    if not known and not kind.startswith("<"):
        raise SystemExit(f"{where}: unknown kind {kind}")
    return Param(name, kind, direction or "in", [a.strip() for a in args.split(",")] if args else [],
                 "?" in marks, "!" in marks)


def parse_flags(text: str) -> Dict[str, str]:
    flags = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        for key in ("same as", "deprecated", "returns", "raises on"):
            if part.startswith(key + " "):
                flags[key] = part[len(key) + 1:]
                break
        else:
            flags[part] = ""
    return flags


def load_chapter(key: str, extension: bool = False) -> Chapter:
    path = HERE / ("extensions" if extension else "table") / f"{key}.txt"
    head, *paragraphs = path.read_text().strip().split("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    chapter = Chapter(key, fields["chapter"], fields["section"], extension=extension)
    common = parse_flags(fields.get("flags", ""))
    for paragraph in paragraphs:
        first, *rest = paragraph.splitlines()
        name, purpose = first.split(": ", 1)
        function = Function(name, purpose.strip(), chapter, flags=dict(common))
        function.details = " ".join(line.strip("| ") for line in rest if line.strip().startswith("|"))
        body = " ".join(line.strip() for line in rest if not line.strip().startswith(("[", "|")))
        flags = " ".join(line.strip() for line in rest if line.strip().startswith("["))
        function.flags.update(parse_flags(flags.strip("[]")))
        if body != "-":
            function.params = [parse_param(p, f"{path.name}: {name}") for p in body.split(";")]
        chapter.functions.append(function)
    return chapter


def load_constants() -> List[ConstantGroup]:
    groups: List[ConstantGroup] = []
    for line in (HERE / "constants.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            title, _, enum = line.strip("[]").partition(" : ")
            groups.append(ConstantGroup(title, enum=enum.replace("enum ", "")))
            continue
        name, value, *kind = line.split(None, 2)
        ctype = kind[0] if kind else ("" if value.startswith("MPI_") else "int")
        groups[-1].constants.append(Constant(name, value, ctype))
    return groups


def load() -> Api:
    api = Api([load_chapter(key) for key in CHAPTERS], load_constants(), [load_chapter(key, True) for key in EXTENSIONS])
    names = [f.name for f in api.functions() + api.extension_functions()]
    double = {n for n in names if names.count(n) > 1}
    if double:
        raise SystemExit(f"in the table more than once: {', '.join(sorted(double))}")
    return api
