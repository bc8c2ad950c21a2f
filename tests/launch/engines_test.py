#!/usr/bin/env python3
"""mpiexec hands jobs of several machines over: to whom, and with which command. The engines here only say how they were called."""
import os
import stat
import subprocess
import tempfile
import unittest

from launch import BUILD, LaunchTest, mpiexec

SAY = "#!/bin/sh\nprintf '%s|' \"$(basename \"$0\")\" \"$@\"\necho\n"
ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[1-2]",
              "SLURM_JOB_CPUS_PER_NODE": "2(x2)"}


class Engines(LaunchTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def install(self, *names, text=SAY):
        for name in names:
            path = os.path.join(self.folder.name, "bin", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
            os.chmod(path, stat.S_IRWXU)

    def run_with(self, *arguments, env=None):
        path = os.path.join(self.folder.name, "bin") + ":/usr/bin:/bin"
        return mpiexec(*arguments, env={"PATH": path, **(env or {})})

    def called(self, *arguments, env=None):
        done = self.run_with(*arguments, env=env)
        self.assertEqual(done.code, 0, done)
        return done.out.strip()

    def test_without_an_engine_the_message_says_what_to_install(self):
        done = self.run_with("-host", "far", "-n", 2, "x", env={"PATH": self.folder.name})
        self.assertEqual(done.code, 2, done)
        self.assertRegex(done.err, r'"far" is another machine, and nothing is installed.*prterun.*mpiexec.hydra.*PMIx')
        done = self.run_with("-launcher", "slurm", "-n", 2, "x", env={"PATH": self.folder.name})
        self.assertRegex(done.err, r"Slurm \(asked for by --launcher\), but srun is not installed")

    def test_one_machine_needs_no_engine(self):
        self.install("srun", "prterun", "mpiexec.hydra")
        for arguments in ([], ["-ppn", 2], ["-host", "localhost:2"]):
            self.assertEqual(self.called(*arguments, "-n", 2, "echo", "x"), "x\nx")
        one = {**ALLOCATION, "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": os.uname().nodename}
        self.assertEqual(self.called("-n", 1, "echo", "x", env=one), "x")

    def test_an_address_of_this_machine_is_this_machine(self):
        for address in "127.0.0.1", "::1", *subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split():
            self.assertEqual(self.called("-host", address, "-n", 1, "echo", "x"), "x")
        self.assertIn('"192.0.2.77" is another machine', self.run_with("-host", "192.0.2.77", "-n", 1, "x", env={"PATH": "/none"}).err)

    def test_an_engine_that_does_not_exist_is_named(self):
        self.fails(2, "-launcher slrum: slurm, prte, hydra or none is wanted", "-launcher", "slrum", "-n", 1, "true")
        self.install("mpiexec.hydra")
        self.assertIn("|-launcher|ssh|", self.called("-host", "a", "-launcher", "ssh", "-n", 1, "x"))

    def test_hydra_gets_the_job_in_its_words(self):
        self.install("mpiexec.hydra")
        self.assertEqual(
            self.called("-host", "a:2,b", "-ppn", 2, "-l", "-s", "all", "-wdir", "/tmp", "-env", "A", "1", "x", "-n", "y"),
            "mpiexec.hydra|-hosts|a:2,b|-ppn|2|-l|-s|all|-n|4|-wdir|/tmp|env|A=1|x|-n|y|")
        self.assertEqual(self.called("-host", "a", "-genvlist", "A,B", "-n", 1, "x", ":", "-n", 3, "y"),
                         "mpiexec.hydra|-hosts|a|-n|1|-envlist|A,B|x|:|-n|3|-envlist|A,B|y|")

    def test_prterun_is_preferred_and_passes_variables_on(self):
        self.install("prterun", "mpiexec.hydra")
        said = self.called("-host", "a:2,b", "-n", 3, "--mca", "p", "q", "x", env={"OMP_NUM_THREADS": "2"})
        self.assertRegex(said, rf"^prterun\|--prefix\|{self.folder.name}\|.*--prtemca\|p\|q\|--map-by\|slot:oversubscribe\|--bind-to\|none"
                               r"\|--stdin\|0\|--host\|a:2,b\|-n\|3\|.*-x\|OMP_NUM_THREADS(\|.*)?\|x\|$")
        self.assertNotIn("-x|PWD|", said)
        self.assertIn("--map-by|ppr:2:node:oversubscribe|", self.called("-host", "a,b", "-ppn", 2, "x"))
        self.assertRegex(self.called("-host", "a", "-launcher", "hydra", "x"), "^mpiexec.hydra")

    def test_a_slurm_allocation_is_served_by_srun(self):
        self.install("srun", "prterun")
        self.assertEqual(
            self.called("-n", 4, "-wdir", "/tmp", "x", "1", env=ALLOCATION),
            "srun|--mpi=pmi2|--kill-on-bad-exit=1|--quit-on-interrupt|--ntasks=4|--input=0|--chdir=/tmp|x|1|")
        self.assertIn("|--overcommit|", self.called("-n", 5, "x", env=ALLOCATION))
        self.assertIn("|--nodelist=n1,n2|--nodes=2|--ntasks-per-node=3|--ntasks=6|",
                      self.called("-host", "n1,n2", "-ppn", 3, "-n", 6, "x", env=ALLOCATION))
        self.assertNotIn("--ntasks", self.called("x", env={**ALLOCATION, "SLURM_NTASKS": "4"}))

    def test_several_programs_reach_srun_in_a_file(self):
        self.install("srun", text="#!/bin/sh\nfor w; do case $w in /proc/self/fd/*) cat $w; esac; done\n")
        self.assertEqual(self.called("-n", 1, "-env", "A", "b c", "x", ":", "-n", 3, "-wdir", "/tmp", "y", "z", env=ALLOCATION),
                         "0-0 env 'A=b c' x\n1-3 env --chdir=/tmp y z")

    def test_the_shared_heap_is_preloaded_into_the_programs_that_want_it_whoever_starts_them(self):
        heap = os.path.join(os.path.realpath(BUILD), "lib/libheddle_heap.so")
        if not os.path.exists(heap):
            self.skipTest("built without the heap")
        self.install("mpiexec.hydra", "prterun", "srun", text=SAY + "echo preloaded=$LD_PRELOAD\n")
        wish = {"HEDDLE_SHARED_HEAP": "1", "LD_PRELOAD": None}
        for engine in "hydra", "prte", "slurm":
            said = self.called("-launcher", engine, "-n", 2, "x", "y", env=wish)
            self.assertRegex(said, rf"\|env\|LD_PRELOAD={heap}\|x\|y\|\npreloaded=$")
        said = self.called("-launcher", "hydra", "-n", 1, "x", ":", "-n", 1, "-env", "HEDDLE_SHARED_HEAP", "on", "y")
        self.assertRegex(said, rf"\|-n\|1\|x\|:\|-n\|1\|env\|HEDDLE_SHARED_HEAP=on\|LD_PRELOAD={heap}\|y\|")
        said = self.called("-launcher", "prte", "-n", 1, "-env", "LD_PRELOAD", "/other.so", "x", env=wish)
        self.assertRegex(said, rf"\|env\|LD_PRELOAD=/other.so\|LD_PRELOAD={heap}:/other.so\|x\|")
        self.assertNotIn("heddle_heap", self.called("-launcher", "prte", "-n", 1, "x", env={"HEDDLE_SHARED_HEAP": "0"}))

    def test_a_timeout_ends_an_engine_with_the_promised_code(self):
        self.install("mpiexec.hydra", text="#!/bin/sh\nexec sleep 60\n")
        self.assertEqual(self.run_with("-host", "a", "-timeout", "0.2", "x").code, 124)

    def test_verbose_says_who_and_how(self):
        self.install("mpiexec.hydra")
        done = self.run_with("-v", "-host", "a", "-n", 2, "x", "two words")
        self.assertRegex(done.err, r"starts the ranks through Hydra \(\"a\" is another machine\): \S+/mpiexec.hydra -hosts a -n 2 "
                                   r"x 'two words'")
        self.assertRegex(self.run_with("-v", "-n", 1, "true").err, "starts the ranks itself")

    def test_host_files_of_hydra_and_open_mpi_are_read(self):
        self.install("mpiexec.hydra")
        path = os.path.join(self.folder.name, "hosts")
        with open(path, "w", encoding="ascii") as out:
            out.write("# ours\na:2\n\nb slots=3  # big\nc\n")
        self.assertIn("|-hosts|a:2,b:3,c|", self.called("-f", path, "-n", 2, "x"))


if __name__ == "__main__":
    unittest.main()
