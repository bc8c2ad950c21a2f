#!/usr/bin/env python3
"""Our bootstrap under MPICH's launcher, and MPICH's programs under ours."""
import os
import socket
import subprocess
import sys
import unittest

from launch import BUILD, CLIENT, HEAP_PROGRAM, HYDRA, MPICH, LaunchTest, mpiexec, wait_until

if HYDRA is None:
    print("skipped: no mpiexec.hydra")
    sys.exit(77)


class Hydra(LaunchTest):
    def test_ranks_know_who_they_are(self):
        done = mpiexec("-n", 3, CLIENT, "hello", ":", "-n", 1, CLIENT, "hello", launcher=HYDRA)
        self.check_hello(done, 4, 1)

    def test_every_value_arrives(self):
        for size in (0, 1000, 20000):
            self.succeeds("-n", 4, CLIENT, "exchange", size, launcher=HYDRA)

    def test_sixty_four_ranks_exchange(self):
        self.succeeds("-n", 64, CLIENT, "exchange", 100, launcher=HYDRA)

    def test_a_second_start_finds_what_was_put_before(self):
        self.succeeds("-n", 3, CLIENT, "again", launcher=HYDRA)

    def test_names_are_published_found_and_withdrawn_with_and_without_a_server_of_its_own(self):
        if HYDRA.startswith(MPICH):  # MPICH 5
            self.succeeds("-n", 3, CLIENT, "names", launcher=HYDRA)
        server = os.path.join(os.path.dirname(HYDRA), "hydra_nameserver")
        if not os.path.exists(server):
            self.skipTest("no hydra_nameserver")
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        with subprocess.Popen([server, "-port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as served:
            try:
                with socket.socket() as probe:
                    wait_until(lambda: probe.connect_ex(("127.0.0.1", port)) == 0, "the name server listens")
                self.succeeds("-nameserver", f"localhost:{port}", "-n", 3, CLIENT, "names", launcher=HYDRA)
            finally:
                served.kill()

    def test_no_abort_is_a_success(self):
        for code in 0, 256, -256:
            self.assertEqual(mpiexec("-n", 2, CLIENT, "abort-now", code, "why", launcher=HYDRA).code, 1)

    def test_abort_ends_the_job_with_its_code(self):
        done = mpiexec("-n", 2, "-s", "1", CLIENT, "abort", 5, "why", stdin=b"go\n", launcher=HYDRA)
        self.assertNotEqual(done.code, 0, done)

    def test_hydra_inside_a_heddle_job_is_a_launcher_of_its_own(self):
        out = self.succeeds("-n", 1, HYDRA, "-n", 2, CLIENT, "hello")
        self.assertEqual([line.split()[1] for line in out.splitlines()], ["size=2"] * 2)

    def test_the_shared_heap_is_preloaded_through_our_mpiexec(self):
        if not os.path.exists(HEAP_PROGRAM):
            self.skipTest("the program that uses the heap is not built")
        env = {"HEDDLE_SHARED_HEAP": "1", "PATH": os.path.dirname(HYDRA) + ":" + os.environ["PATH"]}
        self.succeeds("-launcher", "hydra", "-n", 2, HEAP_PROGRAM, env=env)

    def test_a_program_of_mpich_runs_under_our_mpiexec(self):
        compiler = os.path.join(MPICH, "mpicc")
        if not os.path.exists(compiler):
            self.skipTest("no mpicc of MPICH")
        source = os.path.join(BUILD, "tests/launch/hello.c")
        with open(source, "w", encoding="ascii") as out:
            out.write("#include <mpi.h>\n#include <stdio.h>\nint main(void) { int r, s, t; MPI_Init(0, 0);"
                      "MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Allreduce(&r, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);"
                      "MPI_Comm_size(MPI_COMM_WORLD, &t); printf(\"%d %d\\n\", t, s); return MPI_Finalize(); }\n")
        program = source[:-2] + "_mpich"
        built = mpiexec(source, "-o", program, f"-Wl,-rpath,{os.path.dirname(MPICH)}/lib", launcher=compiler)
        self.assertEqual(built.code, 0, built)
        self.assertEqual(self.succeeds("-n", 4, program), "4 6\n" * 4)


if __name__ == "__main__":
    unittest.main()
