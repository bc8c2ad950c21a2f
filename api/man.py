"""Manual pages (section 3), one for each function family; the _c form's page leads to it."""
from typing import Dict, List

from model import ARRAYS, HANDLES, HERE, SCALARS, Api, Function, Param

KIND_TEXT = {
    "INT": "an integer", "BOOL": "true or false", "LENGTH": "a number of array elements", "KEYVAL": "the key",
    "RANK": "a rank", "DEST": "a rank", "SOURCE": "a rank", "ROOT": "rank of the root", "TARGET": "a rank of the window",
    "TAG": "a tag", "RTAG": "a tag", "COUNT": "a number of elements", "LARGECOUNT": "a number of elements", "STEP": "a distance in elements",
    "UNIT": "bytes of one displacement", "ACOUNT": "a number of bytes", "ASTEP": "a distance in bytes",
    "AINT": "an address or a number of bytes", "OFFSET": "a place in the file", "LARGE": "a number",
    "STATUS": "a status", "COMM": "a communicator", "TYPE": "a datatype", "CTYPE": "a committed datatype",
    "OP": "a reduction operation", "GROUP": "a group", "INFO": "an info object", "ERRHANDLER": "an error handler",
    "SESSION": "a session", "THREADCOMM": "a thread communicator", "WIN": "a window", "FILE": "a file", "REQUEST": "a request", "MESSAGE": "a message",
    "INTS": "integers", "WEIGHTS": "weights", "AINTS": "displacements in bytes", "LARGES": "numbers",
    "COUNTS": "numbers of elements", "DISPLS": "displacements in elements", "ADISPLS": "displacements in bytes",
    "TYPES": "datatypes", "INFOS": "info objects", "REQUESTS": "requests", "STATUSES": "statuses",
    "STREAM": "a stream", "STREAMS": "streams", "COMMS": "communicators",
    "BUFFER": "address of the data", "POINTER": "an address", "CPOINTER": "an address", "ADDRESS": "address of a pointer",
    "STRING": "a string", "TRIPLES": "triples of integers", "FUNCTION": "a function of the program", "...": "ignored",
}
DIRECTIONS = {"in": "in", "out": "out", "inout": "in and out"}


def load_texts() -> Dict[str, str]:
    lines = (HERE / "parameters.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def escape(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def describe(f: Function, p: Param, texts: Dict[str, str]) -> str:
    text = texts.get(f"{f.name}.{p.name}") or texts.get(p.name)
    if not text or "tool" in f.flags and p.verbatim:
        if p.name.endswith("keyval"):
            text = "the key"
        elif p.kind == "FUNCTION" or p.verbatim and p.verbatim.rstrip(" *").endswith(("_function", "_fn")):
            text = "a function of the program"
        elif p.verbatim:
            text = f"a value of type {p.verbatim.rstrip('*[] ')}"
        else:
            text = KIND_TEXT[p.kind]
    return text


def errors(f: Function) -> List[str]:
    """The error classes that the checks of the binding can raise, with what to do."""
    found = []

    def add(name, text):
        if (name, text) not in found:
            found.append((name, text))

    if "tool" in f.flags:
        add("MPI_T_ERR_NOT_INITIALIZED", "MPI_T_init_thread has not been called.")
        return found
    for p in f.params:
        kind = p.kind if p.direction == "in" else ""
        if kind in ("COMM", "TYPE", "CTYPE", "OP", "GROUP", "INFO", "ERRHANDLER", "SESSION", "WIN", "FILE"):
            handle = HANDLES[kind][0]
            name = {"MPI_Datatype": "TYPE"}.get(handle, handle[4:].upper())
            null = "" if p.optional and kind not in ("TYPE", "CTYPE") else "is null, "
            add(f"MPI_ERR_{name}", f"{p.name} {null}was freed, or is not what it should be."
                + (" A datatype must have been committed." if kind == "CTYPE" else ""))
        elif kind in ("COUNT", "LARGECOUNT", "LENGTH", "ACOUNT"):
            add("MPI_ERR_ARG" if kind == "LENGTH" and "count" not in p.name else "MPI_ERR_COUNT", f"{p.name} is negative.")
        elif kind in ("DEST", "SOURCE", "RANK"):
            add("MPI_ERR_RANK", f"{p.name} is not a rank of the communicator.")
        elif kind == "ROOT":
            add("MPI_ERR_ROOT", f"{p.name} is not a rank of the communicator.")
        elif kind in ("TAG", "RTAG"):
            add("MPI_ERR_TAG", f"{p.name} is negative" + (" and not MPI_ANY_TAG." if kind == "RTAG" else "."))
        if p.kind == "BUFFER" and p.args:
            add("MPI_ERR_BUFFER", f"{p.name} is null though there is data to move.")
        if p.kind in ("REQUEST", "REQUESTS", "MESSAGE") and p.direction != "out":
            add("MPI_ERR_REQUEST", f"{p.name} is not a valid {'message' if p.kind == 'MESSAGE' else 'request'}.")
        if p.direction != "in" and not p.optional and (p.kind in SCALARS or p.kind in HANDLES):
            add("MPI_ERR_ARG", "an address for a result is null.")
    for p in f.params:
        if p.direction == "out" and p.is_wide and p.kind in SCALARS and "undefined_if_large" not in f.flags:
            add("MPI_ERR_VALUE_TOO_LARGE", f"{p.name} does not fit the plain form's type; use the _c form.")
    return found


def emit_page(f: Function, texts: Dict[str, str], version: str) -> str:
    name, extension = f.c_name(), f.chapter.extension
    standard = "Extension" if extension else "MPI\\-5.0"
    names = ", ".join(f.c_name(large) for large in f.forms())
    out = ['.\\" Generated by api/generate.py: do not edit.\n',
           f'.TH "{name}" "3" "" "Heddle {version}" "{standard}"\n',
           f".SH NAME\n{escape(names)} \\- {escape(f.purpose[0].lower() + f.purpose[1:].rstrip('.'))}\n",
           f".SH SYNOPSIS\n.nf\n.B #include <{'mpix.h' if extension else 'mpi.h'}>\n.PP\n"]
    for large in f.forms():
        params = [p.declare(large) for p in f.c_params(large)] or ["void"]
        head = f"{f.returns} {f.c_name(large)}("
        text = head + (",\n" + " " * len(head)).join(params) + ");"
        out += [f".B {escape(line)}\n" if not line.startswith(" ") else f".B \"{escape(line)}\"\n" for line in text.splitlines()]
        out.append(".PP\n")
    out.append(".fi\n")
    if f.params:
        out.append(".SH PARAMETERS\n")
        for p in f.params:
            if p.kind == "...":
                continue
            note = " (only in the _c form)" if p.twin_only else ""
            text = describe(f, p, texts)
            out.append(f".TP\n.IR {p.name} \\ [{DIRECTIONS[p.direction]}]\n{escape(text)}{note}.\n")
    out.append(f".SH DESCRIPTION\n{escape(f.purpose)}\n")
    if f.details:
        out.append(f".PP\n{escape(f.details)}\n")
    if f.has_twin:
        out.append(".PP\nThe _c form takes counts and displacements of more than 31 bits.\n")
    if "same as" in f.flags:
        out.append(f".PP\nBehaves as\n.BR MPI_{f.flags['same as']} (3).\n")
    if "deprecated" in f.flags:
        out.append(f".PP\nDeprecated since {escape(f.flags['deprecated'])}.\n")
    if "anytime" in f.flags and f.name not in ("Init", "Init_thread"):
        out.append(".PP\nMay be called before MPI_Init and after MPI_Finalize.\n")
    if f.returns_code:
        out.append(".SH ERRORS\nReturns MPI_SUCCESS or an error code. ")
        if "tool" in f.flags:
            out.append("No error handler is called.\n")
        else:
            out.append("The error handler of the object that the function works on is called\nfirst, "
                       "and by default ends the job; MPI_Error_string gives the text.\n")
        for error, text in errors(f):
            out.append(f".TP\n.B {error}\n{escape(text)}\n")
    out.append(".SH THREAD SAFETY\nMay be called from any thread when MPI_THREAD_MULTIPLE was provided")
    out.append(".\n" if f.chapter.key not in ("pt2pt", "partitioned") else
               "; two threads must not complete or start the same request at once.\n")
    if extension:
        others = [g.c_name() for g in f.chapter.functions if g is not f]
        out.append(".SH SEE ALSO\n" + "".join(f".BR {other} (3),\n" for other in others) + f"{f.chapter.section}\n")
        return "".join(out)
    out.append(f".SH SEE ALSO\nMPI\\-5.0 section {f.chapter.section} ({escape(f.chapter.title)}). "
               "Whether this version has it: docs/coverage.md.\n")
    return "".join(out)


def pages(api: Api, version: str) -> Dict[str, str]:
    """File name → text."""
    texts = load_texts()
    functions = api.functions() + api.extension_functions()
    known = {p.name for f in functions for p in f.params}
    for key in texts:
        if key.split(".")[-1] not in known:
            raise SystemExit(f"api/parameters.txt: no function has a parameter {key}")
    out = {}
    for f in functions:
        out[f"{f.c_name()}.3"] = emit_page(f, texts, version)
        if f.has_twin:
            out[f"{f.c_name(True)}.3"] = f".so man3/{f.c_name()}.3\n"
    return out
