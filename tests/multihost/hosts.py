"""Several hosts on one machine, for tests and for trying things out.

Each host is a set of namespaces of its own: network, host name, processes, System V and POSIX shared memory, mounts (with a
/dev/shm, a /tmp and an /etc/hosts of its own). They are cabled to one switch, a bridge in a further network namespace; the machine's own
network is never touched. All share the machine's other files, as nodes of a cluster do.

    with Hosts(2) as hosts:
        hosts.run(0, ["hostname"])
        hosts.cut(1); hosts.join(1); hosts.kill(1)

Nothing outlives the object: a host is a process (`unshare --kill-child`) whose death ends everything in it, and dies with us.
`hosts.agent` is a program that stands in for ssh: launchers call it as `agent HOST COMMAND`, from inside any host.
"""
import array
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

NAMESPACES = ["--net", "--uts", "--ipc", "--mount", "--pid"]
PR_SET_PDEATHSIG = 1
FOLDER = "heddle-hosts-"
# Every host has a /tmp of its own, unless what is tested lies there.
PRIVATE_TMP = not os.path.realpath(__file__).startswith("/tmp/") and not os.environ.get("HEDDLE_BUILD", "").startswith("/tmp/")
AGENT = """import array, json, os, socket, sys
words = sys.argv[1:]
while words and words[0].startswith("-"):
    words.pop(0)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(%r)
    server.sendmsg([json.dumps(words).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    for descriptor in 0, 1, 2:
        os.close(descriptor)
    sys.exit(int(server.recv(16) or b"255"))
"""
# The first process of a host: it reaps what loses its parents, as an init does. "$@" makes the host.
INIT = """set -e
hostname "$1"
mount -t tmpfs -o size="$4" tmpfs /dev/shm
mount --bind "$2" /etc/hosts
[ -z "$3" ] || mount --bind "$3" /tmp
ip link set lo up
echo ready
sleep infinity & while kill -0 $! 2>/dev/null; do wait $! || true; done
"""


def die_with_parent():
    """For a child about to exec: it is killed when we are."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def why_not():
    """None where hosts can be made, otherwise the reason why not."""
    for tool in "unshare", "nsenter", "ip":
        if not shutil.which(tool):
            return f"no {tool} (Debian: util-linux, iproute2)"
    tried = subprocess.run(["unshare", *NAMESPACES, "--fork", "--mount-proc", "ip", "link", "add", "type", "veth"],
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return "namespaces are not permitted here (" + (tried.stderr.strip().splitlines() or ["?"])[-1] + ")"
    return None


def remove_folders_of_the_dead():
    """A test that was killed leaves no process, but its folder."""
    for name in os.listdir("/var/tmp"):
        pid = name[len(FOLDER):].split("-")[0]
        if name.startswith(FOLDER) and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join("/var/tmp", name), ignore_errors=True)


def ranks_on(hosts, host, program):
    """Process ids, as seen from here, of the processes of a program on a host."""
    network = os.readlink(f"/proc/{hosts.holders[host][1]}/ns/net")
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/ns/net") == network and os.path.samefile(f"/proc/{entry}/exe", program):
                found.append(int(entry))
        except OSError:
            pass  # gone meanwhile, or a kernel thread
    return found


class Hosts:
    """`count` hosts named heddle0, heddle1, …, with the addresses 10.9.0.1, 10.9.0.2, … HEDDLE_TEST_NETWORKS=3: each with 10.9.1.1, … and
    10.9.2.1, … as well, on interfaces of their own."""

    def __init__(self, count, shm="64m"):
        self.count = count
        self.shm = shm  # size of each host's /dev/shm; other MPIs need more of it
        self.names = [f"heddle{i}" for i in range(count)]
        self.addresses = [f"10.9.0.{i + 1}" for i in range(count)]
        remove_folders_of_the_dead()
        self.folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir="/var/tmp")
        self.holders = []  # (process outside, process id of the namespaces' first process); the last one is the switch
        try:
            self._make_hosts()
            self._make_cables()
            self._serve_agents()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends everything on all hosts."""
        for holder, _ in self.holders:
            if holder.poll() is None:
                holder.kill()
            holder.wait()
            holder.stdout.close()
        self.holders = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_hosts(self):
        table = os.path.join(self.folder, "hosts")
        self.name_addresses(self.addresses)
        for name in self.names + ["switch"]:
            own_tmp = os.path.join(self.folder, name)
            os.mkdir(own_tmp)
            holder = subprocess.Popen(["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "bash", "-c", INIT,
                                       "bash", name, table, own_tmp if PRIVATE_TMP else "", self.shm], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      preexec_fn=die_with_parent)
            self.holders.append((holder, 0))
            if holder.stdout.readline() != b"ready\n":
                raise RuntimeError("cannot make a host")
            with open(f"/proc/{holder.pid}/task/{holder.pid}/children", encoding="ascii") as children:
                self.holders[-1] = (holder, int(children.read().split()[0]))

    def name_addresses(self, addresses):
        """What all hosts take the names for."""
        with open(os.path.join(self.folder, "hosts"), "w", encoding="ascii") as out:
            out.write("127.0.0.1 localhost\n")
            out.writelines(f"{a} {n}\n" for a, n in zip(addresses, self.names))

    def _make_cables(self):
        switch = self.holders[-1][1]
        lines = ["ip link add switch type bridge", "ip link set switch up"]
        for i in range(self.count):
            lines += [f"ip link add port{i} type veth peer name eth0 netns {self.holders[i][1]}",
                      f"ip link set port{i} master switch up"]
        self.in_network(switch, lines)
        for i, address in enumerate(self.addresses):
            self.in_network(self.holders[i][1], [f"ip address add {address}/24 dev eth0", "ip link set eth0 up"])
        for number in range(1, int(os.environ.get("HEDDLE_TEST_NETWORKS", "1"))):
            for i in range(self.count):
                self.in_network(switch, [f"ip link add port{i}at{number} type veth peer name eth{number} netns {self.holders[i][1]}",
                                         f"ip link set port{i}at{number} master switch up"])
                self.in_network(self.holders[i][1], [f"ip address add 10.9.{number}.{i + 1}/24 dev eth{number}", f"ip link set eth{number} up"])

    def in_network(self, pid, lines):
        """Runs lines of shell in the network of a host (or the switch), given by the process id in `holders`."""
        # Only the network's namespace: process ids keep their meaning.
        subprocess.run(["nsenter", "--target", str(pid), "--net", "sh", "-ec", "\n".join(lines)], check=True)

    def cut(self, host):
        """Pulls the host's cable out of the switch."""
        self.in_network(self.holders[-1][1], [f"ip link set port{host} down"])

    def join(self, host):
        """Plugs it in again."""
        self.in_network(self.holders[-1][1], [f"ip link set port{host} up"])

    def kill(self, host):
        """The host loses its power: nothing of it says goodbye."""
        self.cut(host)
        self.holders[host][0].kill()
        self.holders[host][0].wait()

    def environment(self, host, changes=None):
        """What a remote shell would find: nothing of ours but what it takes to run programs."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        if not PRIVATE_TMP:
            env["TMPDIR"] = os.path.join(self.folder, self.names[host])
        env.update(HEDDLE_TEST_AGENT=self.agent,
                   HEDDLE_TEST_HOSTS=",".join(self.names))
        env.update(changes or {})
        return env

    def _enter(self, host):
        """Begins a command line that runs `sh -c SCRIPT ARGUMENTS` on a host, in a child of that shell."""
        # nsenter's own child would be in the namespace of processes, too, but when somebody stops and continues everything
        # (another user's benchmark), nsenter may stop itself again because its child still is: a job that hangs.
        # Who enters a namespace of mounts finds itself at its root, which is not ours where we run under another one (chroot):
        # --root and --wd go where the host is.
        return ["nsenter", "--no-fork", "--target", str(self.holders[host][1]), *NAMESPACES, "--root", "--wd", "--",
                "sh", "-c", 'sh -c "$@"; exit $?', "sh"]

    def start(self, host, command, env=None, cwd=None, **options):
        """A process on a host, as from Popen: in a session of its own, killed when we are."""
        enter = [*self._enter(host), 'cd "$0" && exec "$@"', cwd or os.getcwd()]
        return subprocess.Popen(enter + list(map(str, command)), env=self.environment(host, env),
                                start_new_session=True, preexec_fn=die_with_parent, **options)

    def run(self, host, command, env=None, timeout=60, **options):
        """Runs a command on a host to its end: exit code, and all its output as text."""
        process = self.start(host, command, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, **options)
        try:
            text = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            text = process.communicate()[0]
            raise AssertionError(f"hung: {command}\n{text.decode(errors='replace')}") from late
        return process.returncode, text.decode(errors="replace")

    # --- the stand-in for ssh ----------------------------------------------------------------------------------------

    @property
    def agent(self):
        return os.path.join(self.folder, "agent")

    def _serve_agents(self):
        script, door = self.agent + ".py", self.agent + ".socket"
        with open(script, "w", encoding="ascii") as out:
            out.write(AGENT % door)
        with open(self.agent, "w", encoding="utf-8") as out:
            out.write(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} -ISB {script} "$@"\n')
        os.chmod(self.agent, 0o755)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(door)
        listener.listen(64)

        def serve():
            while True:
                client = listener.accept()[0]
                threading.Thread(target=self._serve_agent, args=(client,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()

    def _serve_agent(self, client):
        with client:
            words, ancillary, _, _ = client.recvmsg(1 << 17, socket.CMSG_SPACE(3 * 4))
            streams = array.array("i")
            for _, _, data in ancillary:
                streams.frombytes(data)
            host, *command = json.loads(words)
            code = 255
            if host in self.names or host in self.addresses:
                number = (self.names if host in self.names else self.addresses).index(host)
                # No die_with_parent: that would be the death of this thread.
                enter = [*self._enter(number), " ".join(command)]
                process = subprocess.Popen(enter, env=self.environment(number), start_new_session=True, stdin=streams[0],
                                           stdout=streams[1], stderr=streams[2])
            for stream in streams:
                os.close(stream)
            if host in self.names or host in self.addresses:
                code = process.wait()
            try:
                client.send(str(code if code >= 0 else 255).encode())
            except OSError:
                pass  # the agent was killed
