"""What users read when they misspell a HEDDLE_ variable or give one a value that it cannot have."""
import json
import os
import re
import unittest

from tree import BIN, HELLO, TreeTest, run

HEDDLE = os.path.join(BIN, "heddle")
MPIEXEC = os.path.join(BIN, "mpiexec")

SESSIONS = r"""
#include <mpi.h>
int main(void) {
  for (int i = 0; i < 3; i++) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
  }
  return 0;
}
"""

UNKNOWN = "HEDDLE_SMH is not a variable of Heddle's and is ignored; did you mean HEDDLE_SHM?"
EITHER = {"yes/no": "maybe", "number": "x1", "size": "12Q"}


class Variables(TreeTest):
    def program(self, text=HELLO):
        source, program = self.write("program.c", text), self.path("program")
        run(os.path.join(BIN, "mpicc"), source, "-o", program)
        return program

    def test_a_misspelt_name_is_said_once_for_a_job_and_once_for_a_process_on_its_own(self):
        program = self.program()
        for command in [(MPIEXEC, "-n", 3, program), (program,)]:
            errors = run(*command, env={"HEDDLE_SMH": "0"})[1]
            self.assertEqual(errors.count(UNKNOWN), 1, errors)
            self.assertEqual(len(errors.splitlines()), 1, errors)

    def test_a_misspelt_name_is_said_once_however_many_sessions_follow_one_another(self):
        program = self.program(SESSIONS)
        for command in [(MPIEXEC, "-n", 2, program), (program,)]:
            self.assertEqual(run(*command, env={"HEDDLE_SMH": "0"})[1].count(UNKNOWN), 1)

    def test_a_value_out_of_range_is_said_once_for_a_job(self):
        errors = run(MPIEXEC, "-n", 3, self.program(), env={"HEDDLE_VCIS": "-3"})[1]
        self.assertEqual(errors.count("HEDDLE_VCIS=-3 is out of range: it takes a whole number from 0 to 64."), 1, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)

    def test_a_program_behind_a_colon_is_told_of_the_values_that_it_alone_has(self):
        program = self.program()
        errors = run(MPIEXEC, "-n", 2, program, ":", "-n", 1, "-env", "HEDDLE_CMA", "perhaps", program)[1]
        self.assertRegex(errors, r"^heddle: \[rank 2\] HEDDLE_CMA=perhaps is not possible: it takes 1, yes")

    def test_variables_of_other_tools_and_of_module_files_are_not_mentioned(self):
        names = ("HEDDLE_ROOT", "HEDDLE_HOME", "HEDDLE_VERSION", "HEDDLE_CC", "HEDDLE_TEST_MPIEXEC", "HEDDLE_CI_MINUTES", "XHEDDLE_SMH")
        self.assertEqual(run(MPIEXEC, "-n", 2, self.program(), env=dict.fromkeys(names, "x"))[1], "")

    def test_the_quiet_are_told_nothing(self):
        self.assertEqual(run(self.program(), env={"HEDDLE_SMH": "0", "HEDDLE_VCIS": "x", "HEDDLE_QUIET": "1"})[1], "")

    def test_every_parameter_refuses_what_it_cannot_be_and_goes_on_with_its_default(self):
        wrong = {"HEDDLE_PMI": "pmi3", "HEDDLE_SHM_BACKING": "disk", "HEDDLE_THREAD_LEVEL": "some", "HEDDLE_INITIAL_ERRHANDLER": "none"}
        for item in json.loads(run(HEDDLE, "info", "--json")[0])["parameters"]:
            if item["type"] in EITHER:
                wrong[item["name"]] = EITHER[item["type"]]
        self.assertGreater(len(wrong), 30)
        said, errors = run(HEDDLE, "info", "--json", env=wrong)
        for item in json.loads(said)["parameters"]:
            if item["name"] in wrong:
                self.assertEqual(item["value"], item["default"], item)
        for name, value in wrong.items():
            self.assertEqual(len(re.findall(rf"{name}={value} is not possible: it takes .* The default .* is used", errors)), 1, (name, errors))

    def test_every_number_below_its_range_becomes_the_lowest_possible_one(self):
        names = [item["name"] for item in json.loads(run(HEDDLE, "info", "--json")[0])["parameters"] if item["type"] in ("number", "size")]
        errors = run(HEDDLE, "info", env=dict.fromkeys(names, "-2"))[1]
        for name in names:
            self.assertRegex(errors, rf"{name}=-2 is out of range: it takes .*(from|at least) (-?\w+).* \2 is used")

    def test_names_of_libraries_and_networks_that_are_not_there_are_errors_that_name_the_variable(self):
        program = self.program()
        for name in "HEDDLE_NET", "HEDDLE_OFI_PROVIDER":
            errors = run(MPIEXEC, "-n", 2, program, env={"HEDDLE_SHM": "0", name: "nowhere0"}, status=None)[1]
            self.assertRegex(errors, f"{name}.*nowhere0|nowhere0.*{name}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
