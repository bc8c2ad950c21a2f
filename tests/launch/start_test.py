#!/usr/bin/env python3
"""Starting ranks: the command line, what a rank sees, and what the user reads when it does not work."""
import os
import pty
import select
import stat
import subprocess
import tempfile
import unittest

from launch import CLIENT, LONG, LaunchTest, MPIEXEC, clean_environment, mpiexec


def lines(text):
    return sorted(text.splitlines())


class Ranks(LaunchTest):
    def test_every_rank_is_told_who_it_is(self):
        out = self.succeeds("-n", 3, CLIENT, "hello")
        for rank, line in enumerate(lines(out)):
            self.assertRegex(line, rf"rank={rank} size=3 local={rank}/3 locals=0,1,2 appnum=0 universe=3 kind=pmi1 singleton=0 "
                                   r"cores=\d+ memory=1 id=[0-9a-f]{32}$")

    def test_jobs_have_different_names_and_all_ranks_of_one_the_same(self):
        jobs = [{line.split("id=")[1] for line in self.succeeds("-n", 2, CLIENT).splitlines()} for _ in range(2)]
        self.assertEqual([len(names) for names in jobs], [1, 1])
        self.assertNotEqual(jobs[0], jobs[1])

    def test_without_a_launcher_a_program_is_a_singleton(self):
        done = mpiexec("hello", launcher=CLIENT)
        self.assertRegex(done.out, r"rank=0 size=1 local=0/1 locals=0 appnum=-1 universe=-1 kind=singleton singleton=1 cores=0 memory")

    def test_several_programs_make_one_job(self):
        out = self.succeeds("-n", 2, CLIENT, "hello", ":", "-n", 1, CLIENT, "hello", ":", CLIENT)
        self.assertEqual([(l.split()[0], l.split()[4]) for l in lines(out)],
                         [("rank=0", "appnum=0"), ("rank=1", "appnum=0"), ("rank=2", "appnum=1"),
                          ("rank=3", "appnum=2")])

    def test_sixty_four_ranks_start(self):
        out = self.succeeds("-n", 64, CLIENT, "hello")
        self.assertEqual(len(set(out.splitlines())), 64)

    def test_programs_without_mpi_run_too(self):
        self.assertEqual(self.succeeds("-np", 3, "echo", "hi"), "hi\n" * 3)

    def test_a_text_file_without_an_interpreter_line_is_run_by_the_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script")
            with open(path, "w", encoding="ascii") as script:
                script.write("echo from $PMI_RANK $1\n")
            os.chmod(path, stat.S_IRWXU)
            self.assertEqual(lines(self.succeeds("-n", 2, path, "x")), ["from 0 x", "from 1 x"])

    def test_a_rank_that_starts_another_program_does_not_lend_it_its_identity(self):
        # The descriptor is closed on exec only once MPI is initialized; here nobody has done that.
        out = self.succeeds("-n", 1, "python3", "-c",
                            f"import subprocess, sys; sys.stderr.write(subprocess.run([{CLIENT!r}], close_fds=True, "
                            "stderr=subprocess.PIPE).stderr.decode())")
        self.assertEqual(out, "")
        done = mpiexec("-n", 1, "python3", "-c", f"import subprocess; subprocess.run([{CLIENT!r}], close_fds=True)")
        self.assertRegex(done.err, r"descriptor \d+ is not a connection to its launcher.*env -u PMI_FD")

    def test_a_script_that_uses_low_descriptors_does_no_harm(self):
        self.succeeds("-n", 2, "bash", "-c", f"exec 3</dev/null 4</dev/null 5</dev/null 9</dev/null; {CLIENT} memory")

    def test_a_script_that_closes_the_jobs_memory_is_an_error_that_says_so(self):
        # The other rank must not wait for one that looks elsewhere.
        close = "import os, re; fd = int(re.search(r',fd=(\\d+)', os.environ['HEDDLE_JOB'])[1]); os.close(fd); "
        self.fails(3, r"descriptor \d+, the memory that the ranks of this job share, has been closed", "-n", 1,
                   "python3", "-c", close + f"os.execv({CLIENT!r}, [{CLIENT!r}, 'memory'])", ":", CLIENT, "hang")

    def test_the_signals_a_rank_starts_with_are_as_usual(self):
        out = self.succeeds("-n", 1, "grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
        expected = subprocess.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"], capture_output=True, text=True,
                                  check=True).stdout
        self.assertEqual(out, expected)

    def test_a_rank_inherits_no_descriptors_but_its_own(self):
        out = self.succeeds("-n", 1, "python3", "-c", "import os; print(len(os.listdir('/proc/self/fd')))")
        # 0, 1, 2, the PMI connection, the job's memory, and the one that listdir opens.
        self.assertEqual(out, "6\n")

    def test_closed_standard_streams_of_mpiexec_do_no_harm(self):
        done = subprocess.run(["sh", "-c", f"exec {MPIEXEC} -n 2 {CLIENT} exchange 100 <&- >&- 2>&-"], timeout=LONG,
                              env=clean_environment(), check=False)
        self.assertEqual(done.returncode, 0)


class Environment(LaunchTest):
    def test_env_is_for_one_program_and_genv_for_all(self):
        out = self.succeeds("-genv", "A", "1", "-n", 1, "-env", "B", "2", "sh", "-c", "echo a=$A b=$B", ":",
                            "-env", "A", "3", "sh", "-c", "echo a=$A b=$B")
        self.assertEqual(lines(out), ["a=1 b=2", "a=3 b="])

    def test_x_sets_or_passes_on(self):
        out = self.succeeds("-x", "A=1", "-x", "B", "sh", "-c", "echo $A $B", env={"B": "2"})
        self.assertEqual(out, "1 2\n")

    def test_envlist_passes_on_only_what_it_names(self):
        out = self.succeeds("-envlist", "A,B", "-env", "C", "3", "/usr/bin/env", env={"A": "1", "B": "2", "D": "4"})
        kept = {line.split("=")[0] for line in out.splitlines()}
        self.assertLessEqual({"A", "B", "C", "PMI_RANK"}, kept)
        self.assertFalse(kept & {"D", "PATH", "HOME"})

    def test_genvnone_passes_on_nothing(self):
        out = self.succeeds("-genvnone", "/usr/bin/env", env={"D": "4"})
        self.assertFalse([line for line in out.splitlines() if not line.startswith(("PMI", "HEDDLE", "MPI_LOCAL"))])

    def test_traces_of_another_job_are_not_passed_on(self):
        traces = {"PMI_PORT": "x:1", "PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "9", "PMI_SPAWNED": "1"}
        out = self.succeeds("-n", 1, "/usr/bin/env", env=traces)
        for name in traces:
            self.assertNotIn(name + "=", out)

    def test_a_job_inside_a_job_is_a_job_of_its_own(self):
        out = self.succeeds("-n", 2, MPIEXEC, "-n", 2, CLIENT, "hello")
        self.assertEqual([l.split()[0] for l in lines(out)], ["rank=0", "rank=0", "rank=1", "rank=1"])
        self.assertEqual(len({l.split("id=")[1] for l in lines(out)}), 2)

    def test_the_users_variables_cannot_disturb_the_jobs_own(self):
        out = self.succeeds("-genv", "PMI_RANK", "7", "-n", 2, CLIENT, "hello")
        self.assertEqual([l.split()[0] for l in lines(out)], ["rank=0", "rank=1"])

    def test_wdir_is_where_the_ranks_run(self):
        self.assertEqual(lines(self.succeeds("-n", 1, "-wdir", "/", "pwd", ":", "-wdir", "/usr", "pwd")), ["/", "/usr"])

    def test_a_program_found_in_a_relative_directory_starts_in_wdir_too(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "programs"))
            file = os.path.join(folder, "programs", "says-where")
            with open(file, "w", encoding="ascii") as script:
                script.write("#!/bin/sh\npwd\n")
            os.chmod(file, 0o755)
            self.assertEqual(self.succeeds("-path", "programs", "-wdir", "/", "says-where", cwd=folder), "/\n")
            self.assertEqual(self.succeeds("-wdir", "/", "says-where", cwd=folder, env={"PATH": "programs:" + os.environ["PATH"]}), "/\n")

    def test_a_relative_program_is_looked_for_in_wdir(self):
        self.assertEqual(self.succeeds("-wdir", "/bin", "./echo", "x"), "x\n")


class Streams(LaunchTest):
    def test_input_goes_to_rank_0(self):
        self.assertEqual(self.succeeds("-l", "-n", 3, "cat", stdin=b"one\ntwo\n"), "[0] one\n[0] two\n")

    def test_input_can_go_to_another_rank(self):
        self.assertEqual(self.succeeds("-l", "-n", 3, "-stdin", 2, "cat", stdin=b"x\n"), "[2] x\n")

    def test_the_reader_of_input_may_be_written_as_any_number(self):
        self.assertEqual(self.succeeds("-stdin", "01", "-n", 2, "cat", stdin=b"words\n"), "words\n")

    def test_input_can_go_to_nobody(self):
        self.assertEqual(self.succeeds("-n", 2, "--stdin", "none", "cat", stdin=b"x\n"), "")

    def test_input_can_go_to_everybody_complete(self):
        text = b"".join(b"line %d\n" % i for i in range(40000))  # several times what a pipe holds
        out = self.succeeds("-n", 3, "-s", "all", "md5sum", stdin=text)
        self.assertEqual(len(set(out.splitlines())), 1)
        alone = subprocess.run(["md5sum"], input=text, capture_output=True, check=True).stdout.decode()
        self.assertEqual(out, alone * 3)

    def test_input_from_a_file_can_go_to_everybody(self):
        with open("/proc/self/exe", "rb") as file:
            out = self.succeeds("-n", 2, "-s", "all", "md5sum", stdin=file)
        self.assertEqual(len(set(out.splitlines())), 1)
        self.assertEqual(len(out.splitlines()), 2)

    def test_a_rank_that_does_not_read_does_not_stop_the_others(self):
        text = b"x" * 1_000_000
        out = self.succeeds("-n", 2, "-s", "all", "sh", "-c", "if [ $PMI_RANK = 0 ]; then exec <&-; else wc -c; fi",
                            stdin=text)
        self.assertEqual(out.strip(), "1000000")

    def test_a_terminal_serves_rank_0(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(MPIEXEC, [MPIEXEC, "-n", "2", "sh", "-c", "[ $PMI_RANK = 1 ] || { read x; echo got=$x; }"],
                      clean_environment())
        os.write(terminal, b"word\n")
        seen = b""
        while b"got=word" not in seen:
            self.assertTrue(select.select([terminal], [], [], LONG)[0], seen)
            seen += os.read(terminal, 4096)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(terminal)

    def test_labels_are_on_every_line_of_output_and_errors(self):
        done = mpiexec("-l", "-n", 2, "sh", "-c", "echo out$PMI_RANK; echo more; echo err >&2; printf end")
        self.assertEqual(lines(done.out), ["[0] end", "[0] more", "[0] out0", "[1] end", "[1] more", "[1] out1"])
        self.assertEqual(lines(done.err), ["[0] err", "[1] err"])

    def test_labelled_output_loses_nothing(self):
        out = self.succeeds("-l", "-n", 4, "seq", 1, 50000)
        ranks = [[], [], [], []]
        for line in out.splitlines():
            ranks[int(line[1])].append(int(line[4:]))
        self.assertEqual(ranks, [list(range(1, 50001))] * 4)

    def test_a_reader_that_leaves_ends_the_ranks_and_not_the_launcher(self):
        for option in ([], ["-l"]):
            done = subprocess.run(["bash", "-c", f"{MPIEXEC} {' '.join(option)} -n 2 yes 2>&1 | head -1; "
                                                 "echo ${PIPESTATUS[0]}"],
                                  capture_output=True, text=True, timeout=LONG, env=clean_environment(), check=True)
            self.assertRegex(done.stdout, r"y\n141\n$")


class Mistakes(LaunchTest):
    def test_an_unknown_program_is_named(self):
        self.fails(127, r'cannot find the program "no-such-thing" in PATH', "no-such-thing")

    def test_a_program_in_the_working_directory_is_hinted_at(self):
        self.fails(127, r"start it as \./echo", "echo", cwd="/bin", env={"PATH": "/nonexistent"})

    def test_a_missing_path_is_named(self):
        self.fails(127, r'cannot start "/no/such/thing": No such file', "/no/such/thing")

    def test_a_file_that_is_not_executable_gets_the_remedy(self):
        self.fails(126, r"chmod \+x /etc/passwd", "/etc/passwd")

    def test_a_directory_is_not_a_program(self):
        self.fails(126, r'"/usr" is a directory', "/usr")

    def test_a_missing_interpreter_is_explained(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script")
            with open(path, "w", encoding="ascii") as script:
                script.write("#!/no/such/interpreter\n")
            os.chmod(path, stat.S_IRWXU)
            self.fails(127, r"not the interpreter it names", "-n", 2, path)

    def test_a_program_for_another_machine_is_explained(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "wb") as program:
                program.write(b"\x7fELF" + bytes(100))
            os.chmod(path, stat.S_IRWXU)
            self.fails(126, r"not a program for this machine", path)

    def test_a_missing_working_directory_is_named(self):
        self.fails(126, r'in the directory "/no/such".*Correct -wdir', "-wdir", "/no/such", "echo")

    def test_options_are_understood_as_people_write_them(self):
        for arguments in (["--n", 2], ["-n=2"], ["--n=2"], ["-np=2"], ["--np", 2]):
            with self.subTest(arguments):
                self.assertEqual(self.succeeds(*arguments, "echo", "x"), "x\nx\n")

    def test_an_option_that_is_nearly_right_is_suggested(self):
        for wrong, right in (("--timeot", "--timeout"), ("-hostfil", "--hostfile"), ("--report-binding", "--report-bindings")):
            with self.subTest(wrong):
                self.fails(2, f'unknown option "{wrong}"; did you mean {right}[?]', wrong, "x")
        self.assertNotIn("did you mean", self.fails(2, "unknown option", "--frobnicate", "x").err)

    def test_a_configuration_file_has_a_line_for_each_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job")
            with open(path, "w", encoding="ascii") as file:
                file.write("# two programs\n-n 2 echo one  # and a comment\n\n-n 1 \\\n  echo 'two words' \"a\\\"b\"\n")
            self.assertEqual(sorted(self.succeeds("-configfile", path).splitlines()), ["one", "one", 'two words a"b'])
            self.assertEqual(len(set(self.succeeds("-l", "-configfile", path).splitlines())), 3)  # labelled: all differ
            self.fails(2, "none may stand beside it", "-n", 2, "-configfile", path)
            self.fails(2, "none may stand beside it", "-configfile", path, "echo")
            self.fails(2, "none may stand beside it", "echo", ":", "-configfile", path)
            with open(path, "w", encoding="ascii") as file:
                file.write("# nothing\n")
            self.fails(2, "names no program", "-configfile", path)
            with open(path, "w", encoding="ascii") as file:
                file.write("\necho 'open\n")
            self.fails(2, "the quote ' of line 2 is never closed", "-configfile", path)
        self.fails(2, "cannot read the file", "-configfile", "/no/such/file")

    def test_a_file_of_options_stands_for_its_words(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "options")
            with open(path, "w", encoding="ascii") as file:
                file.write("-n 2   # ranks\n-env GREETING 'good day'\n")
            self.assertEqual(self.succeeds("-file", path, "sh", "-c", "echo $GREETING"), "good day\ngood day\n")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"-file {path}\n")
            self.fails(2, "one that names itself", "-file", path, "echo")

    def test_a_soft_number_of_ranks_is_the_largest_that_fits(self):
        for soft, ranks in (("1:8", 4), ("3", 3), ("1:9:2", 3), ("2,16", 2), ("8:1:-3", 2)):
            with self.subTest(soft):
                self.assertEqual(self.succeeds("-n", 4, "-soft", soft, "echo", "x"), "x\n" * ranks)
        self.fails(2, "none of these numbers is between 1 and the 4 ranks", "-n", 4, "-soft", "5:9", "echo")
        self.fails(2, "numbers of ranks are wanted", "-n", 4, "-soft", "some", "echo")

    def test_an_architecture_is_this_machines_or_refused(self):
        self.assertEqual(self.succeeds("-arch", os.uname().machine, "echo", "x"), "x\n")
        self.fails(2, "-arch pdp11: this machine is", "-arch", "pdp11", "echo")

    def test_the_initial_error_handler_reaches_the_ranks_of_its_program(self):
        out = self.succeeds("-initial-errhandler", "mpi_errors_return", "sh", "-c", "echo [$HEDDLE_INITIAL_ERRHANDLER]",
                            ":", "sh", "-c", "echo [$HEDDLE_INITIAL_ERRHANDLER]")
        self.assertEqual(sorted(out.splitlines()), ["[]", "[mpi_errors_return]"])
        self.fails(2, "initial-errhandler", "-initial-errhandler", "nobody", "echo")

    def test_wrong_options_are_named(self):
        for arguments, pattern in (
                (["--frobnicate", "x"], r'unknown option "--frobnicate"'),
                (["-n"], r'"-n" needs a value'),
                (["-env", "A"], r'"-env" needs 2 values'),
                (["-env", "A=1", "echo"], r"-env A=1: its name and value are two words, -env A 1; -x takes NAME=VALUE"),
                (["-n", "many", "x"], r"-n many: the number of ranks"),
                (["-n", "0", "x"], r"must be 1 or more"),
                (["-n", "2"], r"no program to start"),
                (["-n", "2", "echo", ":"], r"no program to start"),
                (["-n", "2", "-s", "2", "echo"], r"a rank below 2"),
                (["-bind", "sideways", "echo"], r"say none, core or even"),
                (["-timeout", "soon", "echo"], r"timeout"),
                (["-usize", "plenty", "echo"], r"--usize plenty: a number of ranks"),
                (["-launcher", "none", "-host", "elsewhere", "echo"], r'"elsewhere" is another machine: --launcher none'),
                (["-host", "a:0", "echo"], r'host a: 0: a number of ranks'),
                (["-ppn", "x", "echo"], r'-ppn x: a number of ranks'),
                (["-f", "/no/such/file", "echo"], r'cannot read the host file')):
            with self.subTest(arguments):
                self.fails(2, pattern, *arguments)

    def test_a_time_limit_in_the_environment_that_is_none_is_named(self):
        self.fails(2, r"MPIEXEC_TIMEOUT=1h: a number of seconds", "true", env={"MPIEXEC_TIMEOUT": "1h"})

    def test_options_of_other_launchers_are_accepted(self):
        out = self.succeeds("--oversubscribe", "--allow-run-as-root", "-ppn", 2, "-host", "localhost:8", "--map-by",
                            ":oversubscribe", "--mca", "btl", "self", "--bind-to", "core", "-iface", "lo", "-n", 2, "echo",
                            "x")
        self.assertEqual(out, "x\nx\n")

    def test_options_after_the_program_are_the_programs(self):
        self.assertEqual(self.succeeds("-n", 1, "echo", "-n", "-l", "--", "-x"), "-l -- -x")

    def test_a_job_environment_without_a_server_is_an_error_that_names_the_flag(self):
        for env, pattern in (
                ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, r"srun --mpi=pmi2"),
                ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0"}, r"srun --mpi=pmi2"),
                ({"OMPI_COMM_WORLD_SIZE": "4"}, r"mpiexec"),
                ({"PMI_RANK": "0", "PMI_SIZE": "2"}, r"PMI_FD"),
                ({"PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "2"}, r"descriptor 77 is not a connection"),
                ({"PMI_FD": "0", "PMI_RANK": "5", "PMI_SIZE": "2"}, r"do not describe a process")):
            with self.subTest(env):
                self.fails(3, pattern, "hello", env=env, launcher=CLIENT)

    def test_the_script_of_a_slurm_batch_job_may_run_a_single_process(self):
        self.succeeds("hello", env={"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, launcher=CLIENT)

    def test_singletons_can_be_asked_for(self):
        self.succeeds("hello", env={"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "HEDDLE_SINGLETON": "1"}, launcher=CLIENT)


if __name__ == "__main__":
    unittest.main()
