"""What the tests about confined jobs share."""
import os
import subprocess
import sys

from launch import BUILD

FORBID = os.path.join(BUILD, "tests/confined/forbid")
TRAFFIC = os.path.join(BUILD, "tests/confined/traffic")
MESSAGES = os.path.join(BUILD, "tests/stress/messages")


def skip(reason):
    """Ends the whole file as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def check_forbid(what):
    """Skips where system calls cannot be forbidden."""
    done = subprocess.run([FORBID, what, "true"], capture_output=True, check=False)
    if done.returncode == 77:
        skip(f"this process may not install a seccomp filter: {done.stderr.decode().strip()}")


def small_shm(kib):
    """The beginning of a command that runs the rest where /dev/shm is a tmpfs of `kib` KiB."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--mount", "--propagation", "private", "sh", "-c",
            f'mount -t tmpfs -o size={kib}k,mode=1777 tmpfs /dev/shm && exec "$@"', "sh"]


def check_namespaces():
    """Skips where no mount namespace can be made."""
    try:
        done = subprocess.run([*small_shm(64), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        skip("there is no unshare (util-linux)")
    if done.returncode:
        skip(f"this process may not mount a file system of its own: {done.stderr.decode().strip()}")
