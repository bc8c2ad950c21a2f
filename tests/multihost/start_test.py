#!/usr/bin/env python3
"""Starting, exchanging and ending over several hosts, through every engine: start_test.py hydra|prte|slurm"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import engines
from hosts import PRIVATE_TMP, Hosts, ranks_on

ENGINE = sys.argv.pop(1)
engines.skip_without(ENGINE)
CLIENT = os.path.join(engines.BUILD, "tests/launch/launch_client")
KIND = {"hydra": "pmi1", "prte": "pmix", "slurm": "pmi2"}[ENGINE]


class Start(unittest.TestCase):
    """Each number of hosts is made once; tests that break hosts make their own."""

    @classmethod
    def setUpClass(cls):
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        for hosts, slurm in cls.made.values():
            if slurm:
                slurm.stop()
            hosts.close()

    def hosts(self, count):
        """`count` hosts, and the environment that the engine needs on them."""
        if count not in self.made:
            hosts = Hosts(count)
            self.made[count] = hosts, engines.Slurm(hosts) if ENGINE == "slurm" else None
        hosts, slurm = self.made[count]
        return hosts, slurm.env if slurm else {}

    def job(self, count, ranks, *client, env=None, options=()):
        hosts, settings = self.hosts(count)
        command = engines.command(ENGINE, hosts, ranks // count) + [*options, "-n", ranks, CLIENT, *client]
        return hosts.run(0, command, env={**settings, **(env or {})})

    def succeeds(self, *arguments, **options):
        code, text = self.job(*arguments, **options)
        self.assertEqual(code, 0, text)
        return text

    def check_hello(self, count, per_host, kind, **options):
        ranks = count * per_host
        lines = {int(m[1]): m[0] for m in re.finditer(r"rank=(\d+) .*", self.succeeds(count, ranks, "hello", **options))}
        self.assertEqual(sorted(lines), list(range(ranks)))
        ids = set()
        for rank, line in lines.items():
            first = rank - rank % per_host
            local = ",".join(map(str, range(first, first + per_host)))
            self.assertRegex(line, rf" size={ranks} local={rank - first}/{per_host} locals={local} .*"
                                   rf"kind={kind} singleton=0 .*memory=0 id=[\w-]+$")
            ids.add(line.split("id=")[1])
        self.assertEqual(len(ids), 1, "the job has one name")

    def test_ranks_know_who_shares_their_host(self):
        self.check_hello(2, 2, KIND)
        self.check_hello(4, 2, KIND)
        self.check_hello(2, 1, KIND)

    def test_every_value_arrives_from_every_host(self):
        for size in (0, 1000, 50000):
            self.succeeds(2, 4, "exchange", size)
        self.succeeds(4, 8, "exchange", 1000)

    def test_a_second_start_finds_what_was_put_before(self):
        self.succeeds(2, 4, "again")

    def fetching(self, **env):
        """A job on two hosts that has begun, and the file whose existence makes those on the second host fetch what rank 0 put."""
        hosts, settings = self.hosts(2)
        go = os.path.join(hosts.folder, "go")
        if os.path.exists(go):
            os.remove(go)
        command = engines.command(ENGINE, hosts, 2)
        for name in env if ENGINE == "prte" else ():
            command += ["-x", name]
        job = hosts.start(0, [*command, "-n", 4, CLIENT, "fetch", go], env={**settings, **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (os.killpg(job.pid, signal.SIGKILL) if job.poll() is None else None, job.communicate()))
        for _ in range(4):
            line = engines.read_line(job)
            self.assertTrue(line.startswith(b"ready "), line)
        return job, go

    def test_a_rank_that_leaves_at_once_is_not_missed(self):
        job, go = self.fetching()
        open(go, "w", encoding="ascii").close()
        text = job.communicate(timeout=60)[0].decode(errors="replace")
        self.assertEqual(job.returncode, 0, text)

    def test_a_rank_that_does_not_come_ends_the_others_wait_where_a_time_is_set(self):
        hosts, settings = self.hosts(2)
        late = '[ "${PMI_RANK:-$PMIX_RANK}" != 3 ] || exec sleep 1000; exec "$0" 1'
        command = engines.command(ENGINE, hosts, 2) + (["-x", "HEDDLE_START_TIMEOUT"] if ENGINE == "prte" else [])
        code, text = hosts.run(0, [*command, "-n", 4, "sh", "-c", late, engines.EXCHANGE], env={**settings, "HEDDLE_START_TIMEOUT": "2"})
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"rank [02] has waited for 2 s \(HEDDLE_START_TIMEOUT\) for the job's other ranks: not all 4 have come")

    @unittest.skipIf(ENGINE != "prte", "PMIx fetches from the server on the other host")
    def test_a_server_that_does_not_answer_is_an_error_and_no_hang(self):
        job, go = self.fetching(HEDDLE_PMIX_TIMEOUT="2")
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as children:
            server = int(children.read())  # prterun, which serves the ranks of its host itself
        os.kill(server, signal.SIGSTOP)
        try:
            open(go, "w", encoding="ascii").close()
            end = time.monotonic() + 60
            while ranks_on(self.hosts(2)[0], 1, CLIENT):
                self.assertLess(time.monotonic(), end, "the ranks wait for good")
                time.sleep(0.05)
        finally:
            os.kill(server, signal.SIGCONT)
        text = job.communicate(timeout=60)[0].decode(errors="replace")
        self.assertEqual(job.returncode, 3, text)
        self.assertRegex(text, r"fetching a value of rank 0: .* no answer in 2 seconds \(HEDDLE_PMIX_TIMEOUT\)")

    @unittest.skipIf(ENGINE == "hydra", "Hydra serves names through hydra_nameserver only")
    def test_names_are_published_found_and_withdrawn(self):
        self.succeeds(2, 4, "names")

    @unittest.skipIf(ENGINE != "slurm", "Slurm serves both")
    def test_slurm_serves_pmi1_as_well(self):
        self.check_hello(2, 2, "pmi1", env={"HEDDLE_PMI": "pmi1"})
        for command in (["exchange", 1000], ["names"], ["again"]):
            self.succeeds(2, 4, *command, env={"HEDDLE_PMI": "pmi1"})

    @unittest.skipIf(ENGINE != "slurm" or not PRIVATE_TMP, "Slurm's, and it needs a /tmp on every host")
    def test_slurm_serves_pmix_as_well(self):
        code, text = self.job(2, 4, "hello", options=["--mpi=pmix"])
        if "not found" in text or "invalid MPI type" in text:
            self.skipTest("this Slurm has no PMIx: " + text)
        self.assertEqual(code, 0, text)
        self.assertEqual(len(re.findall(r"size=4 local=[01]/2 .* kind=pmix ", text)), 4, text)
        for size in (100, 1000):
            self.succeeds(2, 4, "exchange", size, options=["--mpi=pmix"])

    @unittest.skipIf(ENGINE != "slurm", "Slurm's")
    def test_a_launcher_inside_a_step_is_the_launcher(self):
        hosts, settings = self.hosts(2)
        inner = [[os.path.join(engines.BUILD, "bin/mpiexec")]]
        if engines.why_not("hydra") is None:
            inner.append([engines.find("mpiexec.hydra", "mpich"), "-launcher", "fork"])
        for launcher in inner:
            code, text = hosts.run(0, ["srun", "--mpi=pmi2", "-N1", "-n1", *launcher, "-n", 2, CLIENT, "hello"], env=settings)
            self.assertEqual(code, 0, text)
            self.assertEqual(len(re.findall(r"size=2 .* kind=pmi1 ", text)), 2, text)

    @unittest.skipIf(ENGINE != "slurm", "Slurm's")
    def test_no_server_is_an_error_that_names_the_flag(self):
        code, text = self.job(2, 4, "hello", options=["--mpi=none"])
        self.assertEqual(code, 3, text)
        self.assertEqual(text.count("use `srun --mpi=pmi2`"), 4, text)
        self.assertNotIn("size=1", text)

    def test_our_mpiexec_hands_the_job_over(self):
        hosts, settings = self.hosts(2)
        env = dict(settings, PATH=os.path.dirname(engines.command(ENGINE, hosts, 2)[0]) + ":" + os.environ["PATH"],
                   HYDRA_LAUNCHER_EXEC=hosts.agent, PRTE_MCA_plm_ssh_agent=hosts.agent, MESSAGE="it travels")
        code, text = hosts.run(0, [os.path.join(engines.BUILD, "bin/mpiexec"), "-v", "-launcher", ENGINE, "-host",
                                   "heddle0,heddle1", "-ppn", 2, "-n", 4, "sh", "-c",
                                   f'echo "$(hostname) $MESSAGE"; exec {CLIENT} hello'], env=env)
        self.assertEqual(code, 0, text)
        self.assertRegex(text, "mpiexec: starts the ranks through")
        for host in hosts.names:
            self.assertEqual(text.count(f"{host} it travels"), 2, text)
        self.assertEqual(text.count(f"size=4 local=0/2"), 2, text)

    def test_an_abort_ends_all_hosts(self):
        code, text = self.job(2, 4, "abort-now", 5, "why")
        self.assertNotEqual(code, 0, text)
        self.assertIn("rank 3 calls MPI_Abort with code 5: why", text)


if __name__ == "__main__":
    unittest.main()
