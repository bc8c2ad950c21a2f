#!/usr/bin/env python3
"""The key-value exchange: correct at 64 ranks, and a server that no client can break."""
import unittest

from launch import CLIENT, LaunchTest, mpiexec

# A rank in Python that speaks raw PMI-1: TALK is a list of (bytes to send, prefixes of the replies expected).
RAW = """
import os, socket
s = socket.socket(fileno=int(os.environ["PMI_FD"]))
lines = s.makefile("rb")
for send, replies in %r:
    s.sendall(send)
    for reply in replies:
        line = lines.readline()
        assert line.startswith(reply), (send[:100], line, reply)
"""
INIT = b"cmd=init pmi_version=1 pmi_subversion=1\n"
HELLO = (INIT, [b"cmd=response_to_init rc=0"])
BYE = (b"cmd=finalize\n", [b"cmd=finalize_ack"])
ERROR = b"cmd=error rc=-1"


class Exchange(LaunchTest):
    def test_every_value_arrives_on_few_ranks(self):
        for size in (0, 1, 1000, 20000, 300000):
            self.succeeds("-n", 3, CLIENT, "exchange", size)

    def test_every_value_arrives_on_sixty_four_ranks(self):
        self.succeeds("-n", 64, CLIENT, "exchange", 3000)

    def test_names_are_published_found_and_withdrawn(self):
        self.succeeds("-n", 3, CLIENT, "names")

    def test_the_jobs_memory_is_shared_by_all_ranks(self):
        self.succeeds("-n", 5, CLIENT, "memory")

    def test_a_singleton_can_exchange_with_itself(self):
        for command in (["exchange", "5000"], ["names"]):
            self.succeeds(*command, launcher=CLIENT)


class Protocol(LaunchTest):
    def talk(self, *steps):
        return self.succeeds("-n", 1, "python3", "-c", RAW % (list(steps),))

    def test_the_dialogue_of_another_client_is_answered(self):
        self.talk(HELLO,
                  (b"cmd=get_maxes\n", [b"cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"]),
                  (b"cmd=get_universe_size\n", [b"cmd=universe_size rc=0 size=1"]),
                  (b"cmd=get_appnum\n", [b"cmd=appnum rc=0 appnum=0"]),
                  (b"cmd=get_my_kvsname\n", [b"cmd=my_kvsname rc=0 kvsname="]),
                  (b"cmd=get kvsname=any key=PMI_process_mapping\n",
                   [b"cmd=get_result rc=0 msg=success value=(vector,(0,1,1))"]),
                  (b"cmd=put key=a value=b=c\n", [b"cmd=put_result rc=0"]),
                  (b"cmd=barrier_in\n", [b"cmd=barrier_out"]),
                  (b"cmd=get key=a\n", [b"cmd=get_result rc=0 msg=success value=b=c"]), BYE)

    def test_commands_may_come_in_pieces_and_in_bunches(self):
        self.talk((INIT[:9], []), (INIT[9:], [b"cmd=response_to_init"]),
                  (b"cmd=get_maxes\ncmd=get_appnum\ncmd=fin", [b"cmd=maxes", b"cmd=appnum"]),
                  (b"alize\n", [b"cmd=finalize_ack"]))

    def test_nonsense_is_refused_and_the_next_command_answered(self):
        for nonsense, reply in (
                (b"cmd=\n", ERROR), (b"hello\n", ERROR), (b"=\n", ERROR), (b"cmd=nosuch a=b\n", ERROR),
                (b"CMD=init\n", ERROR), (b"cmd = init\n", ERROR), (b"\xff\xfe\x80\n", ERROR),
                (b"cmd=get\0_maxes\n", ERROR),
                (b"mcmd=dance\n", ERROR), (b"endcmd\n", ERROR), (b"%s%n%p\n", ERROR), (b"x" * 65000 + b"\n", ERROR),
                (b"cmd=init pmi_version=7 pmi_subversion=1\n", b"cmd=response_to_init rc=-1"),
                (b"cmd=put\n", b"cmd=put_result rc=-1"), (b"cmd=put key=\n", b"cmd=put_result rc=-1"),
                (b"cmd=put kvsname=other key=a value=b\n", b"cmd=put_result rc=-1"),
                (b"cmd=get\n", b"cmd=get_result rc=-1"), (b"cmd=get key=missing\n", b"cmd=get_result rc=-1"),
                (b"cmd=publish_name\n", b"cmd=publish_result rc=-1"), (b"cmd=lookup_name\n", b"cmd=lookup_result rc=1"),
                (b"cmd=unpublish_name service=\n", b"cmd=unpublish_result rc=1")):
            with self.subTest(nonsense[:40]):
                self.talk(HELLO, (nonsense, [reply]), (b"cmd=get_maxes\n", [b"cmd=maxes"]), BYE)

    def test_empty_lines_and_carriage_returns_are_overlooked(self):
        self.talk((b"\n\r\n" + INIT[:-1] + b"\r\n", [b"cmd=response_to_init"]), BYE)

    def test_spawn_is_read_whole_and_refused(self):
        part = b"mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=2\nspawnssofar=%d\nargcnt=0\ninfo_num=0\nendcmd\n"
        self.talk(HELLO, (part % 1, []), (part % 2, [b"cmd=spawn_result rc=-1"]), (b"cmd=get_maxes\n", [b"cmd=maxes"]),
                  BYE)

    def test_a_line_without_end_ends_the_job_with_a_message(self):
        self.fails(1, r"rank 0 .* sent a line of more than 65536 bytes", "-n", 2, "python3", "-c",
                   "import os; os.environ['PMI_RANK'] == '0' and os.write(int(os.environ['PMI_FD']), b'x' * 200000); "
                   "import signal; signal.pause()")

    def test_a_client_that_never_reads_blocks_nobody_else(self):
        flood = "import os, signal\n" \
                "for _ in range(20000): os.write(int(os.environ['PMI_FD']), b'cmd=get_maxes\\n')\n"
        self.succeeds("-n", 1, "python3", "-c", flood)

    def test_a_client_that_closes_its_connection_and_lives_on_is_no_error(self):
        self.succeeds("-n", 2, "python3", "-c", "import os; os.close(int(os.environ['PMI_FD']))")

    def test_a_code_or_text_of_abort_that_makes_no_sense_still_aborts(self):
        for line in (b"cmd=abort\n", b"cmd=abort exitcode=999999999999\n", b"cmd=abort exitcode=x message=%zz%\n"):
            script = f"import os, signal; os.write(int(os.environ['PMI_FD']), {line!r}); signal.pause()"
            done = mpiexec("-n", 2, "python3", "-c", script)
            self.assertEqual(done.code, 1, done)
            self.assertRegex(done.err, "called MPI_Abort")


if __name__ == "__main__":
    unittest.main()
