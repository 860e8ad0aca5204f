"""One node: a set of namespaces held by its own process 1.

A node is a network, a mount, a UTS, an IPC and a PID namespace. Its process 1 is a `sleep` that does
nothing; killing it makes the kernel kill everything else on the node at once, and makes the
namespaces, their mounts and the network interface vanish with it. So there is nothing that could be
left behind. Nothing here is named in /run/netns for the same reason.

A node has its own hostname, /proc, /etc/hosts, /tmp and /dev/shm. All other files are shared by
all nodes and the host, as on a machine with a parallel filesystem.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from lab_errors import LabError
from lab_processes import ProcessId, identify

# $1 is the node's folder, $2 its hostname, $3 the hosts file, $4 its life time in seconds.
#
# The pid is read while /proc is still the host's, so it is the host's number. A new sysfs is what shows
# the node's own network interfaces; the cgroups of the old one are kept, slurmd wants to see some.
# SIGCHLD ignored makes process 1 reap: the kernel then discards the children it inherits.
START_NODE = """\
set -e
read -r pid rest < /proc/self/stat
echo "$pid"
mount -t proc proc /proc
mkdir -p "$1/old"
mount --rbind /sys/fs/cgroup "$1/old"
mount -t sysfs sysfs /sys
mount --rbind "$1/old" /sys/fs/cgroup
umount -l "$1/old"
hostname "$2"
ip link set lo up
mount --bind "$3" /etc/hosts
mount -t tmpfs -o size=1g,mode=1777 tmpfs /dev/shm
{share}
echo ready
exec > /dev/null 2>&1
exec env --ignore-signal=CHLD sleep "$4"
"""

# A shared folder below /tmp would be hidden by the private /tmp, so it is kept reachable through a
# place outside while /tmp is covered.
COVER_TMP = """\
mount --rbind /tmp "$1/old"
mount --bind "$1/tmp" /tmp
"""
SHARE_ONE = 'mkdir -p {path}\nmount --rbind "$1"/old/{below} {path}\n'
END_COVER = 'umount -l "$1/old"\n'


class Node:
    """A node that may be up or down; the paths and names it is made of stay the same."""

    def __init__(self, name, index, directory, environment):
        self.name = name
        self.index = index
        self.folder = directory / "node" / name
        self.init = None  # ProcessId of its process 1, in the host's numbering
        self._hosts = directory / "hosts"
        self._log = directory / "log" / f"{name}.start.log"
        self._environment = environment
        self._holder = None  # the `unshare` that waits for process 1

    def start(self, shared_below_tmp, lifetime_s):
        """Starts process 1 without waiting for it; await_ready() must follow."""
        argv = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        argv += ["--propagation", "private", "/bin/sh", "-c", _start_script(shared_below_tmp)]
        argv += [self.name, str(self.folder), self.name, str(self._hosts), str(int(lifetime_s))]
        with open(self._log, "ab") as log:
            self._holder = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                text=True,
            )

    def await_ready(self):
        """Process 1 says its pid and "ready", or ends, which closes the pipe; so this is bounded."""
        pid, ready = self._holder.stdout.readline(), self._holder.stdout.readline()
        self._holder.stdout.close()
        if ready != "ready\n":
            raise LabError(f"node {self.name} did not start; {self._log} says:\n{self._log.read_text()}")
        self.init = identify(int(pid))
        if self.init is None:
            raise LabError(f"process 1 of node {self.name} ended at once")

    def forget(self):
        """To be called when process 1 is dead."""
        self.init = None
        if self._holder is not None:
            self._holder.wait(timeout=10)
            self._holder = None

    def adopt(self, pid, start):
        """Takes over a node that another process of this program has started."""
        self.init = ProcessId(pid, start)

    def empty_tmp(self):
        """Empties the node's /tmp, from the host's side and around what is mounted below it.

        Never from inside: there the folders of the host that the node shares (the repository, the
        current folder) lie below /tmp, and `find /tmp -delete` once deleted a whole checkout.
        """
        shared = {self.folder / mount.relative_to("/") for mount in self._mounts_below_tmp()}
        _empty(self.folder / "tmp", shared)

    def _mounts_below_tmp(self):
        mounts = []
        for line in Path(f"/proc/{self.init.pid}/mountinfo").read_text().splitlines():
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4])
            if Path("/tmp") in Path(point).parents:
                mounts.append(Path(point))
        return mounts

    def enter_argv(self, argv, cwd):
        """The argv that, run on the host, runs argv on this node in the folder cwd."""
        if self.init is None:
            raise LabError(f"node {self.name} is down: nothing can be run on it")
        enter = ["nsenter", "--target", str(self.init.pid)]
        enter += ["--net", "--mount", "--uts", "--ipc", "--pid", "--"]
        return [*enter, "env", f"--chdir={cwd}", *argv]


def _empty(folder, spared):
    """Deletes what is in the folder, but neither the spared folders nor what leads to them."""
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if path in spared:
            continue
        if any(path in each.parents for each in spared):
            _empty(path, spared)
        elif entry.is_dir(follow_symlinks=False):
            shutil.rmtree(path)
        else:
            path.unlink()


def _start_script(shared_below_tmp):
    parts = [COVER_TMP]
    for path in shared_below_tmp:
        below = path.relative_to("/tmp")
        parts.append(SHARE_ONE.format(path=shlex.quote(str(path)), below=shlex.quote(str(below))))
    parts.append(END_COVER)
    return START_NODE.format(share="".join(parts))
