#!/usr/bin/env python3
"""What happens to a job when a cable is cut, for a while or for good, when a rank is killed, when a host dies."""
import os
import re
import signal
import subprocess
import time
import unittest

import engines
from hosts import Hosts, ranks_on

engines.skip_without("hydra")
DEAD_AFTER = 3  # seconds without an answer from a peer's kernel, as the tests set it
NOTICED = 40    # seconds: a bound on hangs; what is stated for users is HEDDLE_NET_TIMEOUT and a half


class Job:
    """An exchange of 4 ranks on 2 hosts that has begun."""

    def __init__(self, hosts, seconds, engine="hydra", options=(), **settings):
        command = engines.command(engine, hosts, 2)
        exported = ["-x", "HEDDLE_NET_TIMEOUT"] if engine == "prte" else []
        self.process = hosts.start(0, [*command, *exported, *options, "-n", 4, engines.EXCHANGE, *str(seconds).split()],
                                   env={"HEDDLE_NET_TIMEOUT": str(DEAD_AFTER), **settings}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.before = ""  # engines may bring what another rank says afterwards sooner
        while (line := engines.read_line(self.process).decode(errors="replace")) != "running\n":
            assert line, self.before
            self.before += line

    def end(self):
        """Exit code and output, or a failure when the job hangs."""
        try:
            text = self.process.communicate(timeout=NOTICED)[0].decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError("the job hangs\n" + self.process.communicate()[0].decode(errors="replace")) from late
        return self.process.returncode, self.before + text


class Faults(unittest.TestCase):
    def setUp(self):
        self.hosts = Hosts(2)
        self.addCleanup(self.hosts.close)

    def ends_with_a_message(self, job, pattern):
        code, text = job.end()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, pattern)
        self.assertNotIn("done", text)

    def nothing_runs_on(self, host):
        end = time.monotonic() + NOTICED
        while ranks_on(self.hosts, host, engines.EXCHANGE):
            self.assertLess(time.monotonic(), end, "ranks are left behind")
            time.sleep(0.05)

    def test_a_cable_out_for_two_seconds_delays_and_harms_nothing(self):
        # TCP repeats later and later: the first that gets through may come as long after the cable's return as it was out.
        for provider in "", "tcp;ofi_rxm":
            with self.subTest(provider):
                job = Job(self.hosts, 4, HEDDLE_NET_TIMEOUT="30", HEDDLE_OFI_PROVIDER=provider)
                self.hosts.cut(1)
                time.sleep(2)
                self.hosts.join(1)
                code, text = job.end()
                self.assertEqual((code, text), (0, "done\n"))

    def test_a_cable_that_is_out_when_ranks_connect_delays_them_as_it_does_later(self):
        go = os.path.join(self.hosts.folder, "go")
        job = Job(self.hosts, f"late {go}", HEDDLE_NET_TIMEOUT="30")
        self.hosts.cut(1)
        open(go, "w", encoding="ascii").close()
        time.sleep(5)  # who connects is told that there is no such host after three
        self.hosts.join(1)
        self.assertEqual(job.end(), (0, "done\n"))

    def test_a_cable_cut_before_MPI_Init_ends_the_job_where_a_time_is_set_for_its_start(self):
        go = os.path.join(self.hosts.folder, "go")
        waits = f"echo up; while [ ! -e {go} ]; do sleep 0.05; done; exec {engines.EXCHANGE} 1"
        job = self.hosts.start(0, [*engines.command("hydra", self.hosts, 2), "-n", 4, "sh", "-c", waits], env={"HEDDLE_START_TIMEOUT": "3"},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (os.killpg(job.pid, signal.SIGKILL) if job.poll() is None else None, job.communicate()))
        for _ in range(4):
            self.assertEqual(job.stdout.readline(), b"up\n")
        self.hosts.cut(1)
        open(go, "w", encoding="ascii").close()
        text = job.communicate(timeout=NOTICED)[0].decode(errors="replace")
        self.assertNotEqual(job.returncode, 0, text)
        self.assertRegex(text, r"rank 0 has waited for 3 s \(HEDDLE_START_TIMEOUT\) for the job's other ranks: not all 4 have come to MPI_Init")
        self.nothing_runs_on(0)
        self.nothing_runs_on(1)

    def test_a_cable_cut_for_good_ends_the_job_with_a_message_that_names_the_peer(self):
        job = Job(self.hosts, 1000)
        self.hosts.cut(1)
        self.ends_with_a_message(job, r"\[rank [01]\] fatal: .*rank [23]\b")
        self.nothing_runs_on(0)
        self.nothing_runs_on(1)

    def test_a_rank_that_only_waits_learns_of_a_cut_cable_too(self):
        job = Job(self.hosts, "wait")
        time.sleep(2)  # until all that was sent is confirmed, which nothing shows from outside
        self.hosts.cut(1)
        self.ends_with_a_message(job, r"\[rank [01]\] fatal: the host of rank [23]\b")
        self.nothing_runs_on(0)
        self.nothing_runs_on(1)

    def test_a_host_that_dies_ends_the_job_with_a_message_that_names_a_peer(self):
        job = Job(self.hosts, 1000)
        self.hosts.kill(1)
        self.ends_with_a_message(job, r"\[rank [01]\] fatal: .*rank [23]\b")
        self.nothing_runs_on(0)

    def test_a_rank_that_exits_without_finalize_ends_the_job_with_its_code_and_one_sentence(self):
        for engine in filter(lambda e: engines.why_not(e) is None, ("hydra", "prte")):
            for code in 3, 0:
                with self.subTest(engine, code=code):
                    status, text = Job(self.hosts, f"exit {code}", engine).end()
                    self.assertEqual(status, code or 1, text)
                    # An engine that ends a job at once may lose a rank's last words on the way from another host. Nothing else may be said.
                    sentence = f"heddle: rank 3 calls MPI_Abort with code {code or 1}: it has called exit({code}) without MPI_Finalize"
                    self.assertIn(re.findall("heddle: .*", text), ([sentence], []))
                    self.nothing_runs_on(0)
                    self.nothing_runs_on(1)

    @unittest.skipIf(engines.why_not("slurm"), "Slurm's")
    def test_slurm_does_not_let_ranks_wait_for_one_that_has_exited(self):
        slurm = engines.Slurm(self.hosts)
        self.addCleanup(slurm.stop)
        for code in 3, 0:  # on one host, where no connection between ranks ends
            status, text = Job(self.hosts, f"exit {code}", "slurm", ["--nodes=1", "--ntasks-per-node=4"], **slurm.env).end()
            self.assertNotEqual(status, 0, text)
            self.assertIn(f"it has called exit({code}) without MPI_Finalize", text)
            self.nothing_runs_on(0)

    def test_a_killed_rank_ends_the_job_on_all_hosts(self):
        for engine in filter(lambda e: engines.why_not(e) is None, ("hydra", "prte")):
            with self.subTest(engine):
                job = Job(self.hosts, 1000, engine)
                os.kill(ranks_on(self.hosts, 1, engines.EXCHANGE)[0], signal.SIGKILL)
                code, text = job.end()
                self.assertNotEqual(code, 0, text)
                self.assertNotIn("done", text)
                self.assertLessEqual(text.count("fatal"), 1, text)  # the launcher says it; or one rank, where that takes it long
                self.nothing_runs_on(0)
                self.nothing_runs_on(1)


if __name__ == "__main__":
    unittest.main()
