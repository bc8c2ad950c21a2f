#!/usr/bin/env python3
"""Ending a job: exit codes, signals, aborts and deaths, and that nothing is left behind."""
import os
import re
import subprocess
import tempfile
import time
import unittest

from launch import CLIENT, LONG, LaunchTest, MPIEXEC, Running, clean_environment, is_alive, mpiexec, signal, state_of, wait_until


class ExitCodes(LaunchTest):
    def test_success_is_zero(self):
        self.assertEqual(mpiexec("-n", 3, "true").code, 0)

    def test_a_nonzero_code_is_passed_on(self):
        self.assertEqual(mpiexec("-n", 3, "sh", "-c", "exit $((PMI_RANK == 1 ? 7 : 0))").code, 7)

    def test_a_rank_that_fails_without_mpi_does_not_stop_the_others(self):
        done = mpiexec("-n", 2, "sh", "-c", "[ $PMI_RANK = 0 ] && exit 3; echo done")
        self.assertEqual((done.code, done.out), (3, "done\n"))

    def test_a_nonzero_code_after_finalize_is_passed_on_in_silence(self):
        done = mpiexec("-n", 2, "sh", "-c", f"{CLIENT} hello >/dev/null; exit 4")
        self.assertEqual((done.code, done.err), (4, ""))

    def test_leaving_mpi_without_finalize_is_an_error_that_names_the_rank(self):
        self.fails(1, r"rank [01] \(.*launch_client, pid \d+\) on \S+ exited with code 0 after MPI_Init but without "
                      r"MPI_Finalize; ending the job", "-n", 1, CLIENT, "leave", 0, ":", "-n", 1, CLIENT, "hang")

    def test_leaving_mpi_with_a_code_ends_the_job_with_it(self):
        self.fails(9, r"exited with code 9 after MPI_Init", "-n", 3, CLIENT, "hang", ":", CLIENT, "leave", 9)

    def test_a_rank_that_never_calls_init_while_others_wait_is_an_error(self):
        for code in (0, 6):
            self.fails(code or 1, rf"rank 2 .* exited with code {code} without calling MPI_Init", "-n", 3, CLIENT,
                       "late", code)

    def test_init_after_finalize_is_allowed(self):
        self.succeeds("-n", 3, CLIENT, "again")


class Deaths(LaunchTest):
    """Each job holds processes that are hard to find; none may survive."""

    def family(self, job, ranks):
        """All processes of `ranks` ranks running `family`."""
        pids, ready = [], {}
        while len(ready) < ranks or len(pids) < 3 * ranks:
            match = re.match(r"(ready (\d+)|member) (\d+)\n", job.process.stdout.readline().decode())
            self.assertTrue(match, job.error_text())
            if match[2] is None:
                pids.append(int(match[3]))
            else:
                ready[int(match[2])] = int(match[3])
        return ready, pids + list(ready.values())

    def test_a_killed_rank_ends_everything(self):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            # In a sanitizer's build the client would catch the latter itself.
            with Running("-n", 3, CLIENT, "family", env={"ASAN_OPTIONS": "handle_segv=0"}) as job:
                ready, pids = self.family(job, 3)
                os.kill(ready[1], number)
                code, err = job.wait()
            self.assertEqual(code, 128 + number)
            self.assertRegex(err, rf"rank 1 \(.*launch_client, pid {ready[1]}\) on \S+ was killed by signal {number} "
                                  rf"\({number.name}, .*ending the job")
            self.all_gone(pids)
            self.nothing_in_shared_memory()

    def test_a_stopped_rank_does_not_survive_the_others(self):
        with Running("-n", 2, CLIENT, "family") as job:
            ready, pids = self.family(job, 2)
            os.kill(ready[0], signal.SIGSTOP)
            os.kill(ready[1], signal.SIGKILL)
            self.assertEqual(job.wait()[0], 137)
        self.all_gone(pids)

    def test_abort_ends_everything_with_its_code_and_says_who(self):
        with Running("-n", 3, "-s", 2, CLIENT, "abort", 5, "the text, with 100 % of its signs") as job:
            pids = job.lines(3, r"ready \d+ (\d+)")
            job.process.stdin.write(b"go\n")
            job.process.stdin.flush()
            code, err = job.wait()
        self.assertEqual(code, 5)
        self.assertRegex(err, r"rank 2 \(.*\) on \S+ called MPI_Abort with code 5: the text, with 100 % of its signs; ")
        self.all_gone(map(int, pids))

    def test_an_abort_code_that_does_not_fit_is_still_a_failure(self):
        done = mpiexec("-n", 1, CLIENT, "abort", 256, stdin=b"go\n")
        self.assertEqual(done.code, 1)

    def test_the_death_of_the_launcher_itself_ends_everything(self):
        with Running("-n", 3, CLIENT, "family") as job:
            _, pids = self.family(job, 3)
            job.process.kill()
            self.assertEqual(job.wait()[0], -signal.SIGKILL)
        self.all_gone(pids)
        self.nothing_in_shared_memory()

    def test_ranks_that_ignore_the_request_to_leave_are_killed(self):
        script = f"trap '' TERM; [ $PMI_RANK = 0 ] && exec {CLIENT} hang; {CLIENT} hang"
        with Running("-n", 2, "sh", "-c", script) as job:
            pids = [int(pid) for pid in job.lines(2, r"ready \d+ (\d+)")]
            os.kill(pids[0], signal.SIGKILL)
            self.assertNotEqual(job.wait()[0], 0)
        self.all_gone(pids)

    def test_what_ranks_leave_behind_is_ended_with_a_job_that_succeeds(self):
        with Running("-n", 2, "sh", "-c", "sleep 1000 & echo ready 0 $!") as job:
            pids = [int(pid) for pid in job.lines(2, r"ready \d+ (\d+)")]
            self.assertEqual(job.wait(), (0, ""))
        self.assertFalse([pid for pid in pids if is_alive(pid)])

    def test_a_pipeline_left_behind_may_finish(self):
        # The last process of a pipe is not waited for by bash here, and still has something to say.
        done = mpiexec("bash", "-c", "(read x; echo got $x) < <(echo word) & disown; exit 0")
        self.assertEqual((done.code, done.out), (0, "got word\n"))

    def test_the_time_limit_ends_the_job_and_says_who_was_still_running(self):
        done = self.fails(124, r"longer than 0\.3 s \(--timeout\), ranks 0,2-3 still running; ending the job",
                          "-timeout", 0.3, "-n", 4, "sh", "-c", "[ $PMI_RANK = 1 ] || exec sleep 1000")
        self.assertEqual(done.out, "")

    def test_a_reader_that_stands_still_does_not_keep_a_job_from_being_ended(self):
        for option, out in (([], 1), (["-l"], 1), (["-l"], 2)):
            reading, writing = os.pipe()
            with tempfile.TemporaryDirectory() as folder:
                job = subprocess.Popen([MPIEXEC, *option, "-timeout", "2", "-n", "2", "bash", "-c",
                                        f"echo $$ > {folder}/$PMI_RANK; exec yes >&{out}"],
                                       stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, env=clean_environment())
                os.close(writing)
                files = [os.path.join(folder, rank) for rank in "01"]
                wait_until(lambda: all(os.path.exists(file) and os.path.getsize(file) for file in files), "the ranks start")
                ranks = [int(open(file, encoding="ascii").read()) for file in files]
            wait_until(lambda: not any(is_alive(pid) for pid in ranks), "the ranks end though nobody reads")
            with os.fdopen(reading, "rb") as reader:
                text = reader.read()
            self.assertEqual(job.wait(LONG), 124)
            self.assertIn(b"longer than 2 s", text)

    def test_an_interrupt_ends_a_launcher_whose_reader_stands_still(self):
        reading, writing = os.pipe()
        job = subprocess.Popen([MPIEXEC, "-timeout", "0.5", "-n", "1", "yes"], stdin=subprocess.DEVNULL, stdout=writing, stderr=writing,
                               env=clean_environment())
        os.close(writing)
        time.sleep(1.5)
        end = time.monotonic() + LONG
        while job.poll() is None and time.monotonic() < end:  # the first ones may come before the ranks are gone
            job.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        self.assertEqual(job.wait(1), -signal.SIGTERM)
        os.close(reading)

    def test_a_job_that_keeps_the_time_limit_is_not_disturbed(self):
        self.succeeds("-timeout", 1000, "-n", 2, CLIENT, "exchange", 10)


class Signals(LaunchTest):
    TRAPS = "for s in INT TERM USR1 USR2 HUP; do trap \"echo got $s\" $s; done; echo ready; " \
            "while :; do sleep 1000 & wait $!; [ -n \"$once\" ] && exit 0; done"

    def test_signals_are_passed_on_to_every_rank(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name), Running("-n", 2, "bash", "-c", self.TRAPS) as job:
                job.lines(2, "(ready)")
                job.signal(number)
                job.lines(2, f"(got {number.name[3:]})")

    def test_an_interrupt_ends_ordinary_ranks_and_is_the_exit_code(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Running("-n", 2, CLIENT, "hang") as job:
                pids = job.lines(2, r"ready \d+ (\d+)")
                job.signal(number)
                self.assertEqual(job.wait(), (128 + number, ""))
            self.all_gone(map(int, pids))

    def test_a_program_that_handles_the_interrupt_by_exiting_is_no_error(self):
        script = f"trap 'exit 5' INT; {CLIENT} leave 0; echo ready; while :; do sleep 0.01; done"
        with Running("-n", 2, "bash", "-c", script) as job:
            job.lines(2, "(ready)")
            job.signal(signal.SIGINT)
            self.assertEqual(job.wait(), (5, ""))

    def test_a_second_interrupt_kills(self):
        script = "trap 'echo again' INT; echo ready 0 $$; while :; do sleep 1000 & wait $!; done"
        with Running("-n", 2, "bash", "-c", script) as job:
            pids = job.lines(2, r"ready \d+ (\d+)")
            job.signal(signal.SIGINT)
            job.lines(2, "(again)")
            job.signal(signal.SIGINT)
            code, err = job.wait()
        self.assertEqual(code, 130)
        self.assertRegex(err, "second signal")
        self.all_gone(map(int, pids))

    def test_a_rank_may_finish_its_work_after_the_first_signal(self):
        script = "[ $PMI_RANK = 0 ] || exec sleep 1000; trap 'stop=1' TERM; echo ready; " \
                 "while [ -z \"$stop\" ]; do sleep 0.01; done; sleep 0.5; echo saved"
        with Running("-n", 2, "bash", "-c", script) as job:
            job.lines(1, "(ready)")
            job.signal(signal.SIGTERM)
            job.lines(1, "(saved)")
            self.assertEqual(job.wait()[0], 143)

    def test_stopping_stops_the_ranks_and_continuing_continues_them(self):
        with Running("-n", 2, CLIENT, "hang") as job:
            pids = [int(pid) for pid in job.lines(2, r"ready \d+ (\d+)")] + [job.process.pid]
            job.signal(signal.SIGTSTP)
            wait_until(lambda: all(state_of(pid) == "T" for pid in pids), "everything stops")
            job.signal(signal.SIGCONT)
            wait_until(lambda: all(state_of(pid) in "SR" for pid in pids), "everything continues")

    def test_a_signal_that_was_ignored_when_mpiexec_started_stays_ignored(self):
        out = self.succeeds("-c", "trap '' HUP; exec \"$@\"", "sh", MPIEXEC, "-n", 1, "grep", "SigIgn", "/proc/self/status", launcher="/bin/sh")
        self.assertTrue(int(out.split()[1], 16) & 1, out)


if __name__ == "__main__":
    unittest.main()
