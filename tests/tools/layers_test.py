#!/usr/bin/env python3
"""The folders of src/ have a strict order: docs/architecture.md, section 3."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))
import include_graph as graph  # noqa: E402

# From below; every folder of src/ stands here, and includes only what stands before it.
ORDER = ("sys", "sys/bootstrap", "sync", "transport", "transport/shm", "transport/ofi", "transport/tcp", "transport/net", "core", "match", "vci/park",
         "vci", "proto", "coll", "comm", "part", "rma", "mpi")
HEIGHT = {folder: height for height, folder in enumerate(ORDER)}
# The folder that a namespace below heddle belongs to: what is declared in it is defined there.
NAMESPACES = {"sys": "sys", "sync": "sync", "wire": "transport", "shm": "transport/shm", "ofi": "transport/ofi", "tcp": "transport/tcp",
              "net": "transport/net", "match": "match", "proto": "proto", "coll": "coll", "part": "part", "rma": "rma", "mpi": "mpi", "check": "mpi"}
WIRES = {"ofi", "tcp", "verbs"}  # as a word of an identifier

def violations(src):
    """Each as a sentence."""
    files = [(path, path.relative_to(src).as_posix(), path.relative_to(src).parent.as_posix()) for path in graph.sources(src)]
    said = {name: graph.declarations(path) for path, name, _ in files}
    home = {kind: folder for _, name, folder in files for kind in said[name][2]}
    found = set()

    def check(name, folder, verb, what, owner):
        if HEIGHT[owner] > HEIGHT[folder]:
            found.add(f"{name} {verb}{what and ' ' + what + ' of'} {owner}")

    for path, name, folder in files:
        for included in graph.includes(path):
            check(name, folder, "includes", "", included)
        opened, declared, _ = said[name]
        for space in opened:
            words = space.split("::")
            if len(words) > 1 and words[1] in NAMESPACES:
                check(name, folder, "opens namespace", space, NAMESPACES[words[1]])
        for kind in declared & home.keys():
            check(name, folder, "declares", kind, home[kind])
        if not folder.startswith("transport") and HEIGHT[folder] > HEIGHT["transport"]:
            for word in re.findall(r"\w+", graph.code(path)):
                if WIRES & set(word.lower().split("_")):
                    found.add(f"{name} names a wire: {word}")
            for wire in {included.split("/")[1] for included in graph.includes(path) if included.startswith("transport/")} & WIRES:
                found.add(f"{name} names a wire: transport/{wire}")
    return found


class Layers(unittest.TestCase):
    def test_every_folder_has_its_place_and_looks_only_down(self):
        src = ROOT / "src"
        self.assertEqual({path.relative_to(src).parent.as_posix() for path in graph.sources(src)} - HEIGHT.keys(), set())
        self.assertEqual(sorted(violations(src)), [])

    def test_looks_upwards_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            src = pathlib.Path(folder)
            for name, text in {
                "core/a.hpp": '#include "proto/b.hpp"\n#include "core/c.hpp"\nnamespace heddle { struct Later; struct Own; struct In { struct Later; }; }\n',
                "core/c.hpp": 'namespace heddle::coll { void run(); }  // of coll/\nnamespace heddle { struct Own {}; }\n',
                "proto/b.hpp": 'namespace heddle { struct Later final : Own { int tcp_port; }; }  // "tcp" here is a comment\n',
            }.items():
                (src / name).parent.mkdir(exist_ok=True)
                (src / name).write_text(text)
            self.assertEqual(violations(src), {
                "core/a.hpp includes proto", "core/a.hpp declares heddle::Later of proto", "core/c.hpp opens namespace heddle::coll of coll",
                "proto/b.hpp names a wire: tcp_port"})

    def test_no_two_folders_include_each_other_by_any_way(self):
        self.assertEqual(graph.circles(graph.graph()), [])
        self.assertEqual(graph.circles({"a": {"b": 1}, "b": {"c": 1}, "c": {"b": 1}}), [("b", "c")])

    def test_sync_includes_nothing_but_itself(self):
        self.assertEqual({name for path in graph.sources(ROOT / "src/sync") for name in graph.includes(path)} - {"sync"}, set())

    def test_layers_for_other_libraries_and_applications_include_nothing_private_but_sync_and_sys(self):
        for folder in "layer", "apps":
            for path in graph.sources(ROOT / folder):
                allowed = {"sync", "sys"} if folder == "layer" else set()
                self.assertEqual(set(graph.includes(path)) & HEIGHT.keys() - allowed, set(), path)


if __name__ == "__main__":
    unittest.main()
