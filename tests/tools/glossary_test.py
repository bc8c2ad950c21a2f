#!/usr/bin/env python3
"""The private words of the headers stand in the glossary: docs/architecture.md, section 2."""
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))
import include_graph as graph  # noqa: E402

# Words of type names that need no entry: MPI's and C++'s own, then plain English in its plain meaning. A word that stands for one particular
# thing of ours belongs into the glossary instead.
STANDARD = set("""
    abort accept ack action assertion array atomic attribute backend barrier bits blocking bytes bootstrap cache cancel capabilities clock code
    collective comm communicator completion context copy count cpu cq cts data datatype eager entry epoch errhandler error event exposure factory
    fence for fortran function futex get group handle header heap host id info inline iov job keyval kvs lock mpi mr mutex nic node nonblocking op
    operation ops page pack partitioned payload persistent pmi pmi2 pmix pool probe processor producer consumer progress protocol put qp queue rank
    read receive recv rendezvous request reservation rma rts runtime send session shm signals slab socket spin status stream sync tag thread target
    threadcomm topology traits type unpack waiter wait win window write yield
""".split())
PLAIN = set("""
    absence announcement arrival attached awaited back base basic batch block boolean buffer builder check checked choice chunk clear combination common
    completed contention control core creation crowding cursor decoder delay directory encoder ended exchange extension extent finish first form given
    greeting habit half hand hardware head held history hot index item keep kept kernel kind known leaving library limit line link list locate
    look map mapping match matcher member memory message mistake mode monotonic move name nap need network new next notice object observed
    off offer offered over own owner pace param part path pattern pending phase piece place placed point policy posted program range ref registration
    release remote reply representation result rule segment sequence set setting shape share side size sleep sleeper soft source split stage
    standing state subject table text to use user verdict view visitor waiting wanted watch wish word words
""".split())
DEFINITION = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^]]*\]\]\s*|alignas\([^)]*\)\s*|HEDDLE_\w+\s+)*"
                        r"([A-Z]\w*)(?:\s+final)?\s*(?::(?!:)[^{;()]*)?\{|\b(?:using|concept)\s+([A-Z]\w*)\s*=")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*\d*|[a-z]+\d*")


def singular(word):
    """`slots` is the same word as `slot`."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) and len(word) > 3 else word


def words_of(name):
    """`ReleaseBatch` and `release batch`: release, batch."""
    return [singular(word.lower()) for word in WORD.findall(name)]


def glossary():
    """The terms that section 2 defines, as lists of words: what stands in bold there."""
    page = (ROOT / "docs/architecture.md").read_text()
    section = re.search(r"^## 2\..*?(?=^## 3\.)", page, re.MULTILINE | re.DOTALL).group()
    return {term: words_of(term) for term in re.findall(r"\*\*([^*]+)\*\*", section)}


def types():
    """{word: names of the types in the headers that hold it}."""
    found = collections.defaultdict(set)
    for path in graph.sources(ROOT / "src"):
        if path.suffix == ".hpp":
            for match in DEFINITION.finditer(graph.code(path)):
                name = match.group(1) or match.group(2)
                for word in words_of(name):
                    if len(word) > 1:  # not a template's T
                        found[word].add(name)
    return found


class Glossary(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.terms = glossary()
        self.entries = {word for words in self.terms.values() for word in words}
        self.listed = {singular(word) for word in STANDARD | PLAIN}
        self.types = types()

    def test_every_word_of_a_type_s_name_is_in_the_glossary_or_needs_no_entry(self):
        self.assertGreater(len(self.types), 100)
        private = {word: sorted(names) for word, names in self.types.items() if word not in self.entries | self.listed}
        self.assertEqual(private, {}, "add the word to the glossary, or to the test's lists if it is an ordinary one")

    def test_every_term_of_the_glossary_is_in_the_headers(self):
        text = "\n".join(path.read_text() for path in graph.sources(ROOT / "src") if path.suffix == ".hpp")
        self.assertGreater(len(self.terms), 30)
        unused = [term for term, words in self.terms.items()
                  if not re.search(r"s?[\s_-]*".join(map(re.escape, words)), text, re.IGNORECASE)]
        self.assertEqual(unused, [], "nothing in the headers of src/ has this name")

    def test_no_word_is_both_explained_and_taken_for_an_ordinary_one(self):
        terms_of_one_word = {words[0] for words in self.terms.values() if len(words) == 1}
        self.assertEqual(sorted(terms_of_one_word & self.listed), [])

    def test_every_namespace_is_a_folder_or_a_word_that_is_explained(self):
        folders = {path.name for path in (ROOT / "src").rglob("*") if path.is_dir()}
        for path in graph.sources(ROOT / "src"):
            if path.suffix != ".hpp":
                continue
            for space in graph.declarations(path)[0]:
                for name in space.split("::"):
                    known = folders | self.entries | self.listed | {"heddle", "detail"}
                    self.assertTrue(name in known or set(words_of(name)) <= known, f"{path.relative_to(ROOT)} opens namespace {name}")


if __name__ == "__main__":
    unittest.main()
