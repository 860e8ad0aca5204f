"""Fault injectors. Each acts on processes it has identified (pid, start time, and the environment
they were started with), never on a name, and returns a receipt that proves the fault: a scenario
that forgot to look would otherwise pass when nothing was broken at all.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness import RUN_MARK, Failure, check, processes, wait_until


@dataclass(frozen=True)
class Killed:
    """All of these processes ran, were of that node, and are dead now."""

    node: str
    ranks: tuple
    pids: tuple
    at_s: float  # monotonic, when the signal was sent

    def prove(self, ranks):
        """What the scenario says first: that these ranks, and no others, were ended."""
        check(self.ranks == tuple(ranks), f"the fault was to hit ranks {ranks} on {self.node}, it hit {self.ranks}")


def kill_node(job, node, attempt=1):
    """SIGKILLs everything of one node of the local launcher at once: its session."""
    receipts = _ranks_of(job, node, attempt)
    sessions = {r.start["sid"] for r in receipts}
    check(len(sessions) == 1, f"the ranks of {node} are in several sessions: {sessions}")
    members = [p for p in job.context.processes() if _session_of(p.pid) in sessions]
    strangers = [r.rank for r in receipts if r.start["pid"] not in [p.pid for p in members]]
    check(not strangers, f"ranks {strangers} of {node} are not in its session")
    return _kill(node, receipts, members)


def kill_ranks(job, node, attempt=1):
    """SIGKILLs the ranks of one node, and nothing else of it."""
    receipts = _ranks_of(job, node, attempt)
    return _kill(node, receipts, [_process_of(r) for r in receipts])


def _ranks_of(job, node, attempt):
    """The receipts of the ranks of that node, each checked against the living process."""
    receipts = [r for r in job.receipts(attempt).values() if r.host == node]
    check(receipts, f"no rank of attempt {attempt} runs on {node}")
    for receipt in receipts:
        _check_identity(job, receipt)
    return receipts


def _process_of(receipt):
    return processes.ProcessId(receipt.start["pid"], receipt.start["start_ticks"])


def _kill(node, receipts, members):
    at_s = time.monotonic()
    alive = processes.kill_and_wait(members, 5)
    check(not alive, f"processes of {node} cannot be killed: {alive}")
    return Killed(node, tuple(r.rank for r in receipts), tuple(p.pid for p in members), at_s)


def _check_identity(job, receipt):
    pid = receipt.start["pid"]
    check(
        processes.identify(pid) == _process_of(receipt),
        f"rank {receipt.rank} (pid {pid}) does not run any more, or the pid is somebody else's",
    )
    environ = processes.environ_of(pid)
    seen = (environ.get(RUN_MARK), environ.get("EZPZ_NODE"), environ.get("RANK"))
    wanted = (job.context.run_id, receipt.host, str(receipt.rank))
    check(seen == wanted, f"pid {pid} is not what its receipt says: {seen} instead of {wanted}")


def kill_ezpz(job):
    """SIGKILL to the binary under test alone; its launcher and ranks are not touched."""
    process = processes.identify(job.process.pid)
    check(process is not None, "ezpz does not run any more")
    alive = processes.kill_and_wait([process], 5)
    check(not alive, "ezpz cannot be killed")
    return time.monotonic()


def _session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def state_of(pid):
    """The kernel's letter: R, S, D, Z, ...; None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2]


class FrozenMount:
    """A small filesystem on a loop device that can be frozen: who writes to it then is in D state,
    out of reach of SIGKILL, until it is thawed. Needs root."""

    def __init__(self, context, megabytes=64):
        self.image = context.dir / "disk.img"
        self.path = context.dir / "disk"
        self.path.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(megabytes << 20)
        self._run("mkfs.ext4", "-q", "-F", str(self.image))
        self._run("mount", "-o", "loop", str(self.image), str(self.path))
        self.frozen = False
        context.at_end(self._end)

    def _run(self, *argv):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise Failure(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")

    def freeze(self):
        self._run("fsfreeze", "--freeze", str(self.path))
        self.frozen = True
        # The proof: freezing a frozen filesystem is refused.
        again = subprocess.run(["fsfreeze", "--freeze", str(self.path)], capture_output=True, timeout=30)
        check(again.returncode != 0, "the filesystem did not freeze")

    def thaw(self):
        if self.frozen:
            self._run("fsfreeze", "--unfreeze", str(self.path))
            self.frozen = False

    def _end(self):
        self.thaw()

        def unmounted():
            return subprocess.run(["umount", str(self.path)], capture_output=True, timeout=30).returncode == 0

        wait_until(f"{self.path} to be unmounted", unmounted, 10, poll_s=0.2)


class FullDisk:
    """A tmpfs of a size; fill() leaves no byte of it. Needs root."""

    def __init__(self, context, megabytes=1):
        self.path = context.dir / "small"
        self.path.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(self.path)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
        check(done.returncode == 0, f"cannot mount a tmpfs: {done.stderr.strip()}")
        context.at_end(self._end)

    def fill(self):
        filler = self.path / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                os.write(fd, b"f" * 65536)
        except OSError:
            pass
        finally:
            os.close(fd)
        free = os.statvfs(self.path).f_bavail
        check(free == 0, f"the disk is not full: {free} blocks are free")

    def _end(self):
        def unmounted():
            return subprocess.run(["umount", str(self.path)], capture_output=True, timeout=30).returncode == 0

        wait_until(f"{self.path} to be unmounted", unmounted, 10, poll_s=0.2)


def await_unkillable(pid, timeout_s=10):
    """Until the process is in uninterruptible sleep and a SIGKILL has not ended it: the proof."""
    wait_until(f"process {pid} to be in D state", lambda: state_of(pid) == "D", timeout_s)


def send(process, number=signal.SIGTERM):
    check(processes.send_signal(process, number), f"process {process.pid} is gone already")
