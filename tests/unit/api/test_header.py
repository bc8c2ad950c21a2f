"""include/mpi.h and mpix.h: made from the table, and acceptable to every compiler mode that programs use."""
import subprocess
import sys
import unittest

from common import CC, CXX, SOURCE, compile_text, main, model, prototypes

STRICT = ("-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror")
PROGRAM = """
#include <mpi.h>
#include <mpix.h>
static MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_C_BOOL};
int main(int argc, char **argv) {
  MPI_Status status;
  int rank = MPI_PROC_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Sendrecv(&rank, 1, types[0], rank, 0, MPI_IN_PLACE, 0, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_SELF, &status);
  switch (status.MPI_SOURCE) {
    case MPI_ANY_SOURCE: case MPI_PROC_NULL: case MPI_ROOT: break;
    default: break;
  }
#if MPI_VERSION < 5 || !defined(MPI_THREAD_MULTIPLE)
#error "constants must work in the preprocessor"
#endif
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
"""


# Constants that are addresses of nothing, wherever the standard allows them.
ADDRESSES = """
#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Comm graph = MPI_COMM_SELF;
  MPI_Request request;
  int one = 1, zero = 0, sources[4], destinations[4];
  MPI_Init(&argc, &argv);
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 0, &zero, MPI_WEIGHTS_EMPTY, 0, &zero, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                 &graph);
  MPI_Dist_graph_create(MPI_COMM_SELF, 1, &zero, &one, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_create(MPI_COMM_SELF, 0, &zero, &one, &zero, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_neighbors(graph, 4, sources, MPI_UNWEIGHTED, 4, destinations, MPI_UNWEIGHTED);
  MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &graph, MPI_ERRCODES_IGNORE);
  MPI_Comm_spawn_multiple(1, argv, MPI_ARGVS_NULL, &one, (MPI_Info *)0, 0, MPI_COMM_SELF, &graph, MPI_ERRCODES_IGNORE);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, 1, MPI_INT, graph);
  MPI_Irecv(MPI_BOTTOM, 1, MPI_INT, 0, 0, graph, &request);
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  return MPI_Finalize();
}
"""
# A function that the standard gives one form takes MPI_Count there, and has no _c twin (MPI-5.0 section 4.2.1).
PARTITIONED = """
#include <mpi.h>
typedef int Send(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int Receive(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
Send *const sends[] = {MPI_Psend_init, PMPI_Psend_init};
Receive *const receives[] = {MPI_Precv_init, PMPI_Precv_init};
"""


class Header(unittest.TestCase):
    def test_is_what_the_table_says(self):
        run = subprocess.run([sys.executable, str(SOURCE / "api" / "generate.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_compiles_without_warnings_in_every_c_and_cpp_standard(self):
        for standard in ("c99", "c11", "c17"):
            with self.subTest(standard):
                self.assertEqual(compile_text(CC, PROGRAM, f"-std={standard}", *STRICT, suffix=".c"), "")
        for standard in ("c++98", "c++11", "c++17", "c++20"):
            with self.subTest(standard):
                self.assertEqual(compile_text(CXX, PROGRAM, f"-std={standard}", *STRICT, suffix=".cpp"), "")

    def test_constants_that_are_addresses_give_no_warnings_where_they_are_allowed(self):
        self.assertEqual(compile_text(CC, ADDRESSES, "-std=c99", "-O2", *STRICT, suffix=".c"), "")
        self.assertEqual(compile_text(CXX, ADDRESSES, "-std=c++17", "-O2", *STRICT, suffix=".cpp"), "")

    def test_partitioned_requests_have_one_form_that_takes_large_counts(self):
        self.assertEqual(compile_text(CC, PARTITIONED, "-std=c11", *STRICT, suffix=".c"), "")
        self.assertEqual({n for n in prototypes((SOURCE / "include" / "mpi.h").read_text()) if n.endswith("_init_c")
                          and n.startswith(("MPI_Ps", "MPI_Pr"))}, set())

    def test_declares_every_function_of_the_table_with_both_prefixes_and_nothing_else(self):
        names = set(model.load().names())
        self.assertEqual(len(names), 662)
        declared = set(prototypes((SOURCE / "include" / "mpi.h").read_text()))
        self.assertEqual(declared, names | {"P" + n for n in names})

    def test_declares_every_extension_with_both_prefixes_and_nothing_else(self):
        names = set(model.load().extension_names())
        declared = set(prototypes((SOURCE / "include" / "mpix.h").read_text()))
        self.assertEqual(declared, names | {"P" + n for n in names})


if __name__ == "__main__":
    main()
