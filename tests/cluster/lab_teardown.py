"""Taking a lab down, by whoever comes first: its owner, `lab.py down`, or the guardian.

Everything needed lies in DIR/state.json, so it does not matter who started what. Only processes on
record, and processes that carry this lab's own mark in their environment, are ended.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import sys
import time
from pathlib import Path

import lab_network
from lab_errors import LabError
from lab_processes import ProcessId, is_alive, kill_and_wait, with_environment

# In the environment of what the lab itself starts, and of nothing a user of the lab starts.
MARK = "EZPZ_LAB_OWNED_BY"
STATE = "state.json"
END_TIMEOUT_S = 15
GUARDIAN_TRIES = 10


def write_state(directory, state):
    path = Path(directory) / STATE
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state, indent=1))
    fresh.replace(path)


def read_state(directory):
    """The lab's record, or None when there is no lab in this folder."""
    try:
        return json.loads((Path(directory) / STATE).read_text())
    except FileNotFoundError:
        return None


def take_down(directory, keep):
    """Ends the lab in directory and verifies it. keep: the folder stays, for reading its logs.

    Safe to call more than once and from several processes; raises LabError when something
    outlives it.
    """
    if not Path(directory).is_dir():
        return
    with _lock(directory):
        state = read_state(directory)
        if state is None:
            return
        _end_processes(directory, state)
        if state["bridge"]:
            lab_network.remove(state["bridge"])
        if keep:
            (Path(directory) / STATE).unlink()
        else:
            shutil.rmtree(directory)


@contextlib.contextmanager
def _lock(directory):
    fd = os.open(Path(directory) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _end_processes(directory, state):
    left = kill_and_wait([ProcessId(*pair) for pair in state["inits"].values()], END_TIMEOUT_S)
    # A start that was cut short may have left a process that is not on record yet.
    left += kill_and_wait(with_environment({MARK: str(directory)}), END_TIMEOUT_S)
    if left:
        raise LabError(f"processes of the lab in {directory} do not end: {left}")


def guard(directory, lifetime_s, owner_pipe):
    """The guardian's whole life: waits for the owner's end or the end of time, then takes down.

    owner_pipe: a descriptor whose other end only the owner holds, or None for a lab without an
    owner. The lab's folder (or its record) gone means that somebody else took the lab down.
    """
    deadline = time.monotonic() + lifetime_s
    while time.monotonic() < deadline and read_state(directory) is not None:
        if _owner_is_gone(owner_pipe, min(1.0, deadline - time.monotonic())):
            break
    for _ in range(GUARDIAN_TRIES):
        state = read_state(directory)
        if state is None:
            return
        try:
            take_down(directory, state["keep"])
        except (LabError, OSError) as error:
            # Goes to guardian.log in the lab's folder, which then is still there to be read.
            print(f"taking the lab down failed: {error!r}", file=sys.stderr, flush=True)
            time.sleep(1)


def _owner_is_gone(owner_pipe, wait_s):
    if owner_pipe is None:
        time.sleep(max(0, wait_s))
        return False
    readable, _, _ = select.select([owner_pipe], [], [], max(0, wait_s))
    return bool(readable)


if __name__ == "__main__":
    guard(sys.argv[1], float(sys.argv[2]), sys.stdin.fileno() if sys.argv[3] == "owned" else None)
