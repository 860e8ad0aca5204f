#!/usr/bin/python3
"""The output path: bursts, and a log directory whose disk is full or hangs. The disk may cost the
log, never the job."""

import hashlib
import sys
import time
from pathlib import Path

import faults
from harness import Failure, check, check_equal, main, processes, scenario
from training import CHECKPOINT_EVERY, launch, toy

BURST_MB = 256
MEMORY_LIMIT_MB = 64


def expected_burst(megabytes):
    """The bytes that --burst-mb prints; see tests/workload/noise.cc."""
    for first in range(0, megabytes * 8192, 8192):
        lines = (f"burst {number:08d} " for number in range(first, first + 8192))
        yield "".join(line.ljust(127, "x") + "\n" for line in lines).encode()


def burst_digest(data):
    """Of the burst's lines alone, whatever else was printed between them."""
    digest = hashlib.sha256()
    start = data.index(b"burst 00000000")
    end = data.rindex(b"\nburst ") + 129
    digest.update(data[start:end])
    return digest.hexdigest()


def peak_memory_mb(job):
    """The largest resident set of ezpz's own processes so far: those without a rank."""
    peak_kb = 0
    for process in job.context.processes():
        if "RANK" in processes.environ_of(process.pid):
            continue
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            continue
        rows = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
        peak_kb = max([peak_kb, *(int(row[1]) for row in rows)])
    return peak_kb / 1024


@scenario(alone=True)
def a_burst_arrives_whole_and_memory_stays_flat(context):
    """256 MiB as fast as they go reach the terminal and the log unchanged, and no process of ezpz
    grows by it."""
    job = launch(context, "--burst-mb", BURST_MB, steps=2)
    peak = 0.0
    deadline = time.monotonic() + 120
    while job.process.poll() is None:
        peak = max(peak, peak_memory_mb(job))
        if time.monotonic() > deadline:
            raise Failure("the burst did not end within 120 s")
        time.sleep(0.05)
    check_equal(job.stop_reason(), "success", "stop reason")
    expected = hashlib.sha256()
    for block in expected_burst(BURST_MB):
        expected.update(block)
    log = job.attempt_log(1)
    check(len(log) > BURST_MB << 20, f"the log has only {len(log)} bytes")
    check_equal(burst_digest(log), expected.hexdigest(), "digest of the log")
    check_equal(burst_digest(job.stdout()), expected.hexdigest(), "digest of the terminal")
    check(0 < peak < memory_limit_mb(context), f"peak memory was {peak:.0f} MiB")


def memory_limit_mb(context):
    """A sanitizer's shadow and quarantine are not the binary's own appetite."""
    sanitized = b"__asan_init" in context.ezpz.read_bytes()
    return 8 * MEMORY_LIMIT_MB if sanitized else MEMORY_LIMIT_MB


@scenario(alone=True, root="it mounts a small tmpfs")
def a_full_log_disk_costs_the_log_only(context):
    """With the log directory's disk full the job runs to its end, node failure included, and ezpz
    says that the log is not whole."""
    disk = faults.FullDisk(context)
    logs = disk.path / "logs"
    logs.mkdir()
    job = launch(context, logs=logs)
    job.wait_step(2)
    disk.fill()
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_equal(job.wait(60), 0, "return code")
    check_equal(job.stop_reason(), "success", "stop reason")
    check_equal(job.hosts_used(2), ["sim1", "sim3"], "hosts used by attempt 2")
    last = max(step for step, _ in job.steps())
    check_equal(last, 14, "last step on the terminal")
    check("No space left" in job.stderr(), f"nothing said of the disk:\n{job.stderr()}")


@scenario(alone=True, root="it mounts and freezes a filesystem")
def a_hung_log_disk_costs_the_log_only(context):
    """With the log directory's filesystem frozen the job runs to its end, node failure included, and
    ezpz ends although the disk never answers."""
    disk = faults.FrozenMount(context)
    logs = disk.path / "logs"
    logs.mkdir()
    job = launch(context, logs=logs)
    job.wait_step(2)
    disk.freeze()
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=40)
    faults.kill_node(job, "sim2").prove([2, 3])
    code = job.wait(90)
    check_equal(max(step for step, _ in job.steps()), 14, "last step on the terminal")
    check_equal((code, job.stop_reason()), (0, "success"), "end")
    check_equal(job.hosts_used(2), ["sim1", "sim3"], "hosts used by attempt 2")
    disk.thaw()


@scenario(alone=True, root="it mounts and freezes a filesystem")
def the_checkpoint_disk_may_hang_and_come_back(context):
    """A frozen checkpoint filesystem stalls the job, not ezpz: thawed within the idle limit, the run
    ends in one attempt."""
    disk = faults.FrozenMount(context)
    job = launch(context, command=toy(context, checkpoint="disk/checkpoint"))
    job.wait_step(CHECKPOINT_EVERY + 1)
    disk.freeze()
    rank_0 = job.receipts(1)[0].start["pid"]
    faults.await_unkillable(rank_0)
    time.sleep(1)
    check(job.process.poll() is None, "ezpz ended while the disk was hung")
    disk.thaw()
    check_equal(job.wait(), 0, "return code")
    check_equal((job.stop_reason(), job.attempts()), ("success", 1), "end")


if __name__ == "__main__":
    sys.exit(main("output"))
