"""The compiler wrappers, in the build tree."""
import os
import shlex
import unittest

from tree import BIN, BUILD, HELLO, TreeTest, run

MPICC = os.path.join(BIN, "mpicc")
MPICXX = os.path.join(BIN, "mpicxx")
MPIFORT = os.path.join(BIN, "mpifort")


class Wrappers(TreeTest):
    def test_a_program_compiled_in_one_step_runs_without_a_launcher(self):
        source = self.write("hello.c", HELLO)
        run(MPICC, source, "-o", self.path("hello"))
        self.assertEqual(run(self.path("hello"))[0], "rank 0 of 1\n")

    def test_compiling_and_linking_may_be_two_steps(self):
        source = self.write("hello.cpp", HELLO)
        run(MPICXX, "-c", source, "-o", self.path("hello.o"))
        run(MPICXX, self.path("hello.o"), "-o", self.path("hello"))
        self.assertEqual(run(self.path("hello"))[0], "rank 0 of 1\n")

    def test_arguments_with_spaces_quotes_and_stars_reach_the_compiler_unchanged(self):
        source = self.write("a folder/hello.c", HELLO)
        run(MPICC, '-DGREETING="it\'s a * $HOME"', source, "-o", self.path("a folder/hello"))
        self.assertEqual(run(self.path("a folder/hello"))[0], "it's a * $HOME rank 0 of 1\n")

    def test_show_prints_a_command_that_a_shell_can_run(self):
        source = self.write("a folder/hello.c", HELLO)
        program = self.path("a folder/hello")
        shown, _ = run(MPICC, "-show", '-DGREETING="a  b"', source, "-o", program)
        self.assertFalse(os.path.exists(program))
        run("sh", "-c", shown)
        self.assertEqual(run(program)[0], "a  b rank 0 of 1\n")

    def test_twenty_thousand_objects_are_linked_without_delay(self):
        objects = [f"directory/object{i}.o" for i in range(20_000)]
        shown, _ = run(MPICC, *objects[:10_000], "-no-rpath", *objects[10_000:], "-show")  # within run's bound
        self.assertEqual(shlex.split(shown)[1:20_001], objects)

    def test_show_without_arguments_prints_compile_and_link_flags(self):
        for option in "-show", "-showme", "--showme":
            words = shlex.split(run(MPICC, option)[0])
            self.assertIn(f"-I{os.path.realpath(BUILD)}/include", words)
            self.assertIn(f"-L{os.path.realpath(BUILD)}/lib", words)
            self.assertIn("-lmpi_abi", words)

    def test_the_requests_of_open_mpi_users_are_answered(self):
        build = os.path.realpath(BUILD)
        self.assertIn(f"-I{build}/include", run(MPICC, "-showme:compile")[0])
        self.assertNotIn("-l", run(MPICC, "-showme:compile")[0].replace(build, ""))
        self.assertIn("-lmpi_abi", run(MPICC, "-showme:link")[0])
        self.assertNotIn("-I", run(MPICC, "-showme:link")[0])
        self.assertEqual(run(MPICC, "-showme:incdirs")[0], f"{build}/include\n")
        self.assertEqual(run(MPICC, "-showme:libdirs")[0], f"{build}/lib\n")
        self.assertEqual(run(MPICC, "-showme:libs")[0], "mpi_abi\n")
        self.assertRegex(run(MPICC, "-showme:version")[0], r"mpicc: Heddle \d+\.\d+\.\d+")
        self.assertEqual(run(MPICC, "-showme:command")[0], "cc\n")
        self.assertIn("-showme:nonsense", run(MPICC, "-showme:nonsense", status=1)[1])

    def test_the_requests_of_mpich_users_are_answered(self):
        self.assertRegex(run(MPICC, "-compile-info")[0], r"^cc .*-I")
        self.assertRegex(run(MPICXX, "-link-info")[0], r"^c\+\+ .*-lmpi_abi")

    def test_the_compiler_can_be_replaced_by_variable_and_by_option(self):
        for variable in "HEDDLE_CC", "MPICH_CC", "OMPI_CC":
            self.assertEqual(run(MPICC, "-showme:command", env={variable: "ccache gcc"})[0], "ccache gcc\n")
        self.assertEqual(run(MPICC, "-showme:command", env={"HEDDLE_CC": "a", "OMPI_CC": "b"})[0], "a\n")
        self.assertEqual(run(MPICC, "-cc=gcc", "-showme:command")[0], "gcc\n")
        self.assertEqual(run(MPICXX, "-showme:command", env={"OMPI_CXX": "g++"})[0], "g++\n")

    def test_a_missing_compiler_is_named_with_the_remedy(self):
        _, errors = run(MPICC, "x.c", status=1, env={"HEDDLE_CC": "no-such-compiler"})
        self.assertIn("no-such-compiler", errors)
        self.assertIn("HEDDLE_CC", errors)

    def test_a_wrapper_named_as_its_own_compiler_is_an_error_not_a_loop(self):
        source = self.write("hello.c", HELLO)
        _, errors = run(MPICC, source, status=1, env={"HEDDLE_CC": MPICC})
        self.assertIn("called by itself", errors)

    def test_the_library_is_found_by_runpath_unless_told_otherwise(self):
        source = self.write("hello.c", HELLO)
        run(MPICC, source, "-o", self.path("with"))
        self.assertRegex(run("readelf", "-d", self.path("with"))[0], r"RUNPATH.*/lib\]")
        for program, options, env in (("a", ["-no-rpath"], {}), ("b", [], {"HEDDLE_RPATH": "no"})):
            run(MPICC, *options, source, "-o", self.path(program), env=env)
            self.assertNotRegex(run("readelf", "-d", self.path(program))[0], r"RUNPATH|RPATH")

    def test_programs_need_libmpi_abi_and_no_other_mpi_library(self):
        source = self.write("hello.c", HELLO)
        run(MPICC, source, "-o", self.path("hello"))
        needed = [l for l in run("readelf", "-d", self.path("hello"))[0].splitlines() if "(NEEDED)" in l]
        self.assertEqual([l.split("[")[1].rstrip("]") for l in needed if "mpi" in l], ["libmpi_abi.so.1"])

    def test_questions_to_the_compiler_itself_pass_through(self):
        self.assertIn(".", run(MPICC, "-dumpfullversion")[0])
        run(MPICC, "--version")
        run(MPICC, "-v")

    def test_the_error_of_the_compiler_is_the_error_of_the_wrapper(self):
        source = self.write("broken.c", "int main(void) { return }\n")
        _, errors = run(MPICC, source, "-o", self.path("x"), status=1)
        self.assertIn("error", errors)

    def test_it_works_through_a_symbolic_link_and_through_the_path(self):
        source = self.write("hello.c", HELLO)
        os.symlink(MPICC, self.path("linked"))
        run(self.path("linked"), source, "-o", self.path("one"))
        run("mpicc", source, "-o", self.path("two"), env={"PATH": f"{BIN}:{os.environ['PATH']}"})
        run(self.path("one"))
        run(self.path("two"))

    def test_mpifort_says_where_the_modules_come_from(self):
        source = self.write("x.f90", "program x\nuse mpi_f08\nend program\n")
        _, errors = run(MPIFORT, source, status=1, env={"HEDDLE_FC": "false"})
        self.assertIn("mpif", errors)

    def test_mpifort_uses_the_modules_of_mpif_where_they_are(self):
        self.write("mpif/lib/libmpif.so", "")
        flags = run(MPIFORT, "-showme:link", env={"HEDDLE_MPIF": self.path("mpif")})[0]
        self.assertIn("-lmpif", flags)
        self.assertLess(flags.index("-lmpif"), flags.index("-lmpi_abi"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
