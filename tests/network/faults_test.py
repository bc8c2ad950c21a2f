#!/usr/bin/env python3
"""What happens to a job on the network when its peers, its connections or strangers misbehave."""
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../launch"))
from launch import BUILD, HYDRA, MPIEXEC, LaunchTest, LONG, Running, clean_environment, mpiexec, state_of, wait_until  # noqa: E402

RANKS = os.path.join(BUILD, "tests/network/ranks")
STRANGER = os.path.join(BUILD, "tests/network/stranger")
PROVIDER = os.environ.get("HEDDLE_OFI_PROVIDER", "")  # empty: the library's own sockets
NETWORK = {"HEDDLE_SHM": "0", **({"HEDDLE_OFI_PROVIDER": PROVIDER} if PROVIDER else {})}

with open(RANKS, "rb") as program:
    SANITIZER = re.search(b"__[at]san_init", program.read())


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(p) for p in file.read().split()]


def listening_ports(pid):
    """The IPv4 ports that process `pid` accepts connections at."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    ports = []
    with open(f"/proc/{pid}/net/tcp", encoding="utf-8") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                ports.append((socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)))
    return ports


class Faults(LaunchTest):
    def start(self, ranks, *arguments, env=None, program=(RANKS,)):
        job = Running("-stdin", "all" if "late" in arguments else "0", "-n", ranks, *program, *arguments, env={**NETWORK, **(env or {})})
        self.addCleanup(job.__exit__, None, None, None)
        self.assertEqual(job.process.stdout.readline(), b"ready\n", job.error_text())
        return job

    def ranks_of(self, job):
        """Process ids of the ranks (mpiexec's guard is a child too)."""
        return [p for p in children(job.process.pid) if os.path.realpath(f"/proc/{p}/exe") == os.path.realpath(RANKS)]

    def ports_of(self, job):
        ports = [p for pid in self.ranks_of(job) for p in listening_ports(pid)]
        self.assertTrue(ports, "the ranks listen nowhere: is this provider one over TCP?")
        return ports

    def ends_well(self, job):
        job.process.stdin.write(b"\n")
        job.process.stdin.flush()
        self.assertEqual(job.process.stdout.read(), b"done\n", job.error_text())
        self.assertEqual(job.process.wait(LONG), 0, job.error_text())

    def test_a_killed_peer_ends_the_job_with_one_sentence_that_names_it(self):
        job = self.start(3, "exchange")
        os.kill(self.ranks_of(job)[1], signal.SIGKILL)
        started = time.monotonic()
        self.assertNotEqual(job.process.wait(LONG), 0)
        self.assertLess(time.monotonic() - started, 20)
        self.assertRegex(job.error_text(), r"rank 1 .* was killed by signal 9")

    def test_HEDDLE_SHM_for_some_ranks_of_a_host_only_ends_the_job_with_a_sentence_that_names_two_of_them(self):
        exchange, without = [RANKS, "exchange"], ["-env", "HEDDLE_SHM", "0", RANKS, "exchange"]
        for launcher in filter(None, (MPIEXEC, HYDRA)):
            for first, last, pair in (without, exchange, "rank 0, but not for rank [12]"), (exchange, without, "rank 2, but not for rank [01]"):
                with self.subTest(launcher, pair=pair):
                    done = mpiexec("-n", 1, *first, ":", "-n", 1, *exchange, ":", "-n", 1, *last, env={**NETWORK, "HEDDLE_SHM": None},
                                   launcher=launcher)
                    self.assertNotEqual(done.code, 0, done)
                    self.assertRegex(done.err, f"HEDDLE_SHM=0 is set for {pair} of the same host: set it for all ranks of a host or for none")
                    self.assertNotIn("ready", done.out)

    def test_a_broken_connection_ends_the_job_naming_the_peer_or_is_made_again(self):
        done = mpiexec("-n", 2, RANKS, "broken", env={**NETWORK, "HEDDLE_NET_TIMEOUT": "5"})
        if done.code == 0:
            self.assertIn("done", done.out)
        else:
            self.assertRegex(done.err, r"rank [01]\] fatal: (the connection to rank [01] was lost|messages of rank [01] were lost|"
                                       r"rank [01] has not confirmed)")

    def test_a_peer_that_stays_silent_ends_the_job_after_the_stated_time(self):
        job = self.start(2, "mute", env={"HEDDLE_NET_TIMEOUT": "3"})
        started = time.monotonic()
        self.assertNotEqual(job.process.wait(LONG), 0)
        self.assertRegex(job.error_text(), r"rank 1 has not confirmed for 3 s what was sent to it")
        self.assertLess(time.monotonic() - started, 40)

    def test_who_leaves_waits_for_a_peer_that_stands_still_says_so_and_nothing_is_lost(self):
        job = self.start(2, "leave")
        peer = self.ranks_of(job)[1]
        wait_until(lambda: state_of(peer) == "T", "rank 1 stops")
        self.assertEqual(job.process.stdout.readline(), b"done\n")  # of rank 0, which then finalizes
        wait_until(lambda: "MPI_Finalize waits for rank 1, which has not confirmed" in job.error_text(), "a notice that names rank 1")
        os.kill(peer, signal.SIGCONT)
        self.assertEqual(job.process.wait(LONG), 0, job.error_text())
        self.assertEqual(job.error_text().count("MPI_Finalize waits"), 1)

    @unittest.skipIf(SANITIZER, "a sanitizer takes SIGSEGV itself")
    def test_signals_stay_the_programs_own(self):
        job = self.start(2, "exchange")
        for pid in self.ranks_of(job):
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                caught = int(re.search(r"SigCgt:\s*(\w+)", status.read())[1], 16)
            for number in signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT:
                self.assertFalse(caught >> (number - 1) & 1, f"somebody has taken signal {number}")
        self.ends_well(job)

    def test_a_rank_that_waits_in_finalize_dies_of_sigterm(self):
        job = self.start(2, "leave")
        first, peer = self.ranks_of(job)
        wait_until(lambda: state_of(peer) == "T", "rank 1 stops")
        self.assertEqual(job.process.stdout.readline(), b"done\n")  # of rank 0, which then finalizes
        wait_until(lambda: "MPI_Finalize waits" in job.error_text(), "rank 0 waits in MPI_Finalize")
        os.kill(first, signal.SIGTERM)
        self.assertNotEqual(job.process.wait(LONG), 0)
        self.assertRegex(job.error_text(), "rank 0 .* was killed by signal 15")

    def test_a_message_that_nobody_receives_keeps_its_sender_only_until_the_other_has_left(self):
        for how in "unwanted", "unwanted-late":
            started = time.monotonic()
            # What nobody has received is still there when the process ends: no leak.
            done = mpiexec("-n", 2, RANKS, how, env={**NETWORK, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
            self.assertEqual((done.code, done.err), (0, ""), how)
            self.assertLess(time.monotonic() - started, 40, how)  # HEDDLE_NET_TIMEOUT is 60

    def test_a_first_message_to_a_peer_that_has_left_ends_the_job_with_one_sentence_that_names_it(self):
        started = time.monotonic()
        done = mpiexec("-n", 2, RANKS, "unwanted-first", env=NETWORK)
        self.assertNotEqual(done.code, 0, done)
        self.assertRegex(done.err, "the connection to rank 1 was lost while sending .*[Cc]onnection refused")
        self.assertLess(time.monotonic() - started, 40)

    @unittest.skipIf(PROVIDER, "libfabric has its own way to say it")
    def test_too_few_descriptors_are_an_error_that_names_the_limit(self):
        done = mpiexec("-n", 8, "sh", "-c", f"ulimit -n 10; exec {RANKS} exchange", env={**NETWORK, "HEDDLE_NET_TIMEOUT": "5"})
        self.assertNotEqual(done.code, 0)
        self.assertRegex(done.err, r"too many files open.*ulimit -n")

    @unittest.skipIf(PROVIDER, "libfabric lets strangers stay")
    def test_strangers_who_say_nothing_keep_no_descriptors_from_ranks(self):
        job = self.start(3, "late", program=("sh", "-c", f'ulimit -n 24; exec {RANKS} "$@"', "sh"))
        held = [socket.create_connection(port, timeout=LONG) for port in self.ports_of(job) for _ in range(30)]
        self.ends_well(job)
        self.assertEqual(len(held), 90)
        for client in held:
            client.close()

    @unittest.skipIf(PROVIDER, "it looks only at the name of a provider and at its buffers")
    def test_settings_that_do_not_fit_together_are_named(self):
        for setting, value in (("HEDDLE_NET_EAGER", "1M"), ("HEDDLE_NET_FRAME", "256K"),
                               ("HEDDLE_OFI_PROVIDER", "tcp;ofi_rxm")):
            with self.subTest(setting):
                done = mpiexec("-n", 1, "-env", setting, value, RANKS, "exchange", ":", "-n", 1, RANKS, "exchange",
                               env={**NETWORK, "HEDDLE_NET_TIMEOUT": "5"})
                self.assertNotEqual(done.code, 0, done)
                self.assertRegex(done.err, rf"cannot reach rank [01]: .*{setting}")

    def test_rubbish_on_the_ports_is_ignored(self):
        job = self.start(2, "exchange")
        chance = random.Random(5)
        held = []
        for address, port in self.ports_of(job):
            for size in (0, 1, 3, 8, 16, 40, 100, 5000):
                client = socket.create_connection((address, port), timeout=LONG)
                try:
                    client.sendall(chance.randbytes(size))
                    if chance.random() < 0.5:
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        client.close()  # a reset
                    else:
                        held.append(client)
                except OSError:
                    client.close()  # thrown out already
        self.ends_well(job)
        for client in held:
            client.close()

    def test_frames_with_another_jobs_key_are_ignored_with_one_notice(self):
        job = self.start(2, "exchange")
        for address, port in self.ports_of(job):
            done = subprocess.run([STRANGER, address, str(port)], capture_output=True, timeout=LONG, check=False,
                                  env=clean_environment(NETWORK))
            self.assertEqual(done.returncode, 0, done)
        self.ends_well(job)
        notice = r"a network message of \d+ bytes, [^,]+, was ignored" if PROVIDER else r"a connection was refused that does not begin as those"
        notices = re.findall(notice, job.error_text())
        self.assertTrue(1 <= len(notices) <= 2, job.error_text())  # one for each rank that was reached

    def test_gathered_messages_leave_though_their_sender_computes(self):
        done = mpiexec("-n", 2, RANKS, "burst", 3000, env=NETWORK)
        self.assertEqual(done.code, 0, done)
        times = [int(t) for t in re.findall(r"took (\d+) ms", done.out)]
        self.assertEqual(len(times), 3)
        self.assertLess(min(times), 1500, "the second message waited for its sender")


if __name__ == "__main__":
    unittest.main()
