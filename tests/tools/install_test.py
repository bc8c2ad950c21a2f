"""The installation: complete, movable, found by CMake and pkg-config."""
import os
import shutil
import subprocess
import unittest

from tree import BIN, BUILD, HELLO, TreeTest, run

PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(hello C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
message(STATUS "MPI_C_VERSION=${MPI_C_VERSION}")
add_executable(hello_c hello.c)
target_link_libraries(hello_c MPI::MPI_C)
add_executable(hello_cxx hello.cpp)
target_link_libraries(hello_cxx MPI::MPI_CXX)
message(STATUS "MPIEXEC=${MPIEXEC_EXECUTABLE}")
"""


class Install(TreeTest):
    def installed(self, name="moved"):
        """Installs into a folder, moves it elsewhere, returns the new prefix."""
        run("cmake", "--install", BUILD, "--prefix", self.path("first"))
        os.rename(self.path("first"), self.path(name))
        return self.path(name)

    def test_everything_a_user_needs_is_installed(self):
        prefix = self.installed()
        wanted = ["bin/mpicc", "bin/mpicxx", "bin/mpic++", "bin/mpifort", "include/mpi.h", "lib/libmpi_abi.so",
                  "lib/libmpi_abi.so.1", "lib/pkgconfig/heddle.pc", "lib/pkgconfig/mpi.pc"]
        wanted += [f"bin/{tool}" for tool in ("mpiexec", "mpirun", "heddle")]
        missing = [name for name in wanted if not os.path.exists(os.path.join(prefix, name))]
        self.assertEqual(missing, [])

    def test_man_pages_are_installed_where_man_looks(self):
        prefix = self.installed()
        self.assertTrue(os.path.exists(os.path.join(prefix, "share/man/man3/MPI_Send.3")))

    def test_a_moved_installation_compiles_and_runs_programs(self):
        prefix = self.installed("moved to a name with spaces")  # which FindMPI and pkg-config cannot take
        source = self.write("hello.c", HELLO)
        run(os.path.join(prefix, "bin/mpicc"), source, "-o", self.path("hello"))
        output, _ = run(os.path.join(prefix, "bin/mpiexec"), "-n", "2", self.path("hello"))
        self.assertEqual(sorted(output.splitlines()), ["rank 0 of 2", "rank 1 of 2"])
        loaded, _ = run("ldd", self.path("hello"))
        self.assertIn(os.path.join(prefix, "lib/libmpi_abi.so.1"), loaded)

    def test_nothing_installed_names_the_build_tree(self):
        prefix = self.installed()
        for folder, _, names in os.walk(prefix):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) or path.endswith((".so", ".so.1")) or "/bin/" in path and b"\x7fELF" == \
                        open(path, "rb").read(4):
                    continue  # debug information names sources, wherever they were
                with open(path, "rb") as file:
                    self.assertNotIn(os.path.realpath(BUILD).encode(), file.read(), path)
        for binary in "bin/mpiexec", "bin/heddle", "lib/libmpi_abi.so.1":
            path = os.path.join(prefix, binary)
            if os.path.exists(path):
                self.assertNotIn(os.path.realpath(BUILD), run("readelf", "-d", path)[0])

    def pkg_config(self, folder, name):
        source = self.write("hello.c", HELLO)
        env = {"PKG_CONFIG_PATH": folder}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", name], env={**os.environ, **env}, check=True,
                               capture_output=True, text=True).stdout
        run("sh", "-c", f'cc "{source}" -o "{self.path("hello")}" {flags}')
        self.assertEqual(run(self.path("hello"))[0], "rank 0 of 1\n")

    def test_pkg_config_describes_the_build_tree(self):
        self.pkg_config(os.path.join(BUILD, "lib/pkgconfig"), "mpi")

    def test_pkg_config_describes_an_installation(self):
        prefix = self.installed()
        for name in "heddle", "mpi":
            self.pkg_config(os.path.join(prefix, "lib/pkgconfig"), name)

    def find_package(self, bin_folder):
        self.write("project/CMakeLists.txt", PROJECT)
        self.write("project/hello.c", HELLO)
        self.write("project/hello.cpp", HELLO)
        env = {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
        build = self.path("project/build")
        said, _ = run("cmake", "-S", self.path("project"), "-B", build, env=env)
        self.assertIn("MPI_C_VERSION=5.0", said)
        run("cmake", "--build", build, env=env)
        for program in "hello_c", "hello_cxx":
            self.assertEqual(run(os.path.join(build, program))[0], "rank 0 of 1\n")
        if os.path.exists(os.path.join(bin_folder, "mpiexec")):
            self.assertIn(f"MPIEXEC={bin_folder}/mpiexec", said)
        shutil.rmtree(build)

    def test_cmake_finds_the_build_tree(self):
        self.find_package(os.path.realpath(BIN))

    def test_cmake_finds_an_installation(self):
        self.find_package(os.path.join(os.path.realpath(self.installed()), "bin"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
