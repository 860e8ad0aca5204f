"""Processes as the kernel names them: a pid together with its start time.

A bare pid may belong to somebody else by the time it is used. Everything here that ends a process
opens a pidfd first, compares the start time (field 22 of /proc/PID/stat), and signals through the
pidfd, so a reused pid is never hit.
"""

import os
import select
import signal
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessId:
    pid: int
    start: int  # clock ticks after boot


def identify(pid):
    """The identity of a process that runs now, or None when there is none or it is a zombie."""
    fields = _stat_fields(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return ProcessId(pid, int(fields[19]))


def _stat_fields(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return None
    # The second field is the command in parentheses and may itself hold spaces and parentheses.
    return text[text.rindex(")") + 2 :].split()


def is_alive(process):
    return identify(process.pid) == process


def send_signal(process, signum):
    """Signals exactly this process; False when it is gone already."""
    fd = _open(process)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, signum)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)


def kill_and_wait(processes, timeout_s):
    """SIGKILLs all of them at once, then waits; returns those that still live after timeout_s."""
    fds = {p: fd for p in processes if (fd := _open(p)) is not None}
    try:
        for fd in fds.values():
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + timeout_s
        return [p for p, fd in fds.items() if not _has_ended(fd, deadline)]
    finally:
        for fd in fds.values():
            os.close(fd)


def _open(process):
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return None
    if is_alive(process):
        return fd
    os.close(fd)
    return None


def _has_ended(fd, deadline):
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(max(0, (deadline - time.monotonic()) * 1000)))


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environ_of(pid):
    """The environment a process was started with; empty when it is gone or out of reach."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            raw = f.read()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if b"=" in item)
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def name_of(pid):
    """The kernel's name of the command (15 characters at most), "" when the process is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def argv_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return [os.fsdecode(item) for item in f.read().split(b"\0")[:-1]]
    except OSError:
        return []


def pid_namespace_of(pid):
    """An opaque text, equal for processes of one pid namespace; None when the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def with_environment(wanted):
    """Identities of all processes whose start environment holds every pair of wanted."""
    found = []
    for pid in all_pids():
        if wanted.items() <= environ_of(pid).items():
            process = identify(pid)
            if process is not None:
                found.append(process)
    return found
