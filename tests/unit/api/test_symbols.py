"""The exported symbols of libmpi_abi.so.1 are the functions of the table and nothing else."""
import subprocess
import unittest

from common import LIBRARY, main, model


def exported():
    """Name → (address, nm's letter) of every symbol that leaves the library."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", str(LIBRARY)], check=True, capture_output=True,
                         text=True).stdout
    return {f[0]: (int(f[2], 16), f[1]) for f in (line.split() for line in out.splitlines())}


class Symbols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.symbols = exported()
        api = model.load()
        cls.names = api.names() + api.extension_names()

    def test_exactly_the_functions_of_the_table_are_exported(self):
        self.assertEqual(set(self.symbols), set(self.names) | {"P" + n for n in self.names})

    def test_each_mpi_name_is_a_weak_alias_of_its_pmpi_name(self):
        for name in self.names:
            self.assertEqual(self.symbols[name][0], self.symbols["P" + name][0], name)
            self.assertEqual(self.symbols[name][1], "W", name)
            self.assertEqual(self.symbols["P" + name][1], "T", name)

    def test_no_symbol_has_a_version_and_the_soname_is_the_abis(self):
        out = subprocess.run(["readelf", "--wide", "--dynamic", "--version-info", str(LIBRARY)], check=True, capture_output=True,
                             text=True).stdout
        self.assertIn("[libmpi_abi.so.1]", out)
        self.assertNotIn("Version definition section", out)


if __name__ == "__main__":
    main(None if LIBRARY.exists() else f"{LIBRARY} has not been built")
