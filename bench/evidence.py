#!/usr/bin/python3
"""What reading a job's output costs, beside peers in the same run.

    bench/evidence.py [--build DIR] [--dir DIR] [--megabytes N] [--runs N] [--live SECONDS]

Three logs of a training job with one fault in the middle: plain; hostile, where one line in twenty
nearly is a failure; coloured, with escapes inside tokens. Peers: cat; ripgrep (grep, where there is
none) and RE2::Set with the grammar's literals, which do less: they tell no message, host, step or
line number. Medians of rates by wall clock and by CPU time: on a machine that does other things,
only the latter says much.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launch  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
FAULT = "srun: error: nid001306: task 5: Killed\nsrun: error: Node failure on nid001306\n"
NEAR_MISSES = [
    "srun: error in configuration of step {}: none; job 12345 continues as before on nid001304",
    "RuntimeWarning: CUDA out of bounds check disabled for step {} (memory is fine)",
    "WARNING: retrying connection to the data server, error: connection reset count 0, attempt {}",
    "NCCL WARN ring {} slow: timeout not reached (limit 1800000 ms), continuing",
    "checkpoint interval: {} not failed: nothing was saved; killed 0 workers",
    "srun: task {}: note: node failure recovery enabled; nothing terminated",
    "slurmstepd: info: memory limit 0 exceeded times {}; oom-kill events 0",
]


def healthy_line(step):
    rank = step % 8
    kind = random.random()
    if kind < 0.3:
        return (f"step={step} loss={random.uniform(1, 4):.6f} tokens/s=51234.1 lr=3.0e-04 "
                f"grad_norm={random.random():.3f} mem=31.2GiB elapsed={step * .31:.2f}s")
    if kind < 0.6:
        return (f"[rank{rank}]: step: {step:>6}  loss: {random.uniform(1, 4):7.4f}  grad_norm: {random.random():7.4f}  "
                "memory: 41.36GiB(87.04%)  tps: 5,123  tflops: 61.01  mfu: 19.56%")
    if kind < 0.85:
        place = f"nid00{1300 + rank}:{119000 + step % 97}:{119410 + step % 13} [{step % 4}] NCCL INFO "
        return place + random.choice([
            f"Channel {step % 16:02d}/08 :    0   1   2   3   4   5   6   7",
            f"Channel {step % 16:02d}/0 : {rank}[{step % 4}] -> {(rank + 1) % 8}[{(step + 1) % 4}] via P2P/CUMEM/read",
            "Connected all rings"])
    return f"{rank}: rank {rank}: batch {step} shape torch.Size([1, 2048]) dtype torch.bfloat16 done in 0.{step % 97:02d} s"


def coloured(line):
    words = line.split(" ")
    for i, word in enumerate(words):
        if random.random() < 0.3:
            middle = len(word) // 2
            words[i] = word[:middle] + "\x1b[1;36m" + word[middle:] + "\x1b[0m"
    return "\x1b[32m" + " ".join(words) + "\x1b[0m"


def write_log(path, kind, megabytes):
    random.seed(11)
    lines, size, step = [], 0, 0
    while size < min(megabytes, 32) * 1_000_000:
        step += 1
        line = random.choice(NEAR_MISSES).format(step) if kind == "hostile" and random.random() < 0.05 else \
            healthy_line(step)
        lines.append((coloured(line) if kind == "coloured" else line) + "\n")
        size += len(lines[-1])
    block = "".join(lines).encode()
    copies = max(1, megabytes * 1_000_000 // len(block))
    with path.open("wb") as log:
        for copy in range(copies):
            if copy == copies // 2:
                log.write(FAULT.encode())
            log.write(block)


class Run:
    """One run of a command: its time, CPU time, peak memory (MiB) and output."""

    def __init__(self, argv):
        begun = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            # cat's output is the log: nobody needs it.
            stdout = subprocess.DEVNULL if argv[0] == "cat" else output
            with subprocess.Popen(argv, stdout=stdout, stderr=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.wall = time.perf_counter() - begun
            output.seek(0)
            self.output = output.read()
        self.cpu = usage.ru_utime + usage.ru_stime
        self.peak = usage.ru_maxrss / 1024


def check_verdict(run):
    verdict = json.loads(run.output)
    if "nid001306" not in json.dumps(verdict):
        raise SystemExit("the verdict does not name nid001306: " + run.output.decode(errors="replace")[:500])


def bench_log(kind, log, ezpz, peers, runs, target):
    size = log.stat().st_size / 1e9
    ways = {"ezpz postmortem": [ezpz, "postmortem", "--json", str(log)], **{n: a + [str(log)] for n, a in peers.items()}}
    taken = {name: [] for name in ways}
    for _ in range(runs):  # in turn, so that what disturbs one disturbs all
        for name, argv in ways.items():
            taken[name].append(Run(argv))
    check_verdict(taken["ezpz postmortem"][-1])
    ours = statistics.median(run.cpu for run in taken["ezpz postmortem"])
    for name, each in taken.items():
        wall = statistics.median(run.wall for run in each)
        cpu = statistics.median(run.cpu for run in each)
        best = min(run.cpu for run in each)
        print(f"{kind:<10} {name:<16} {size / wall:8.2f} {size / cpu:8.2f} {size / best:8.2f} {cpu:9.3f} "
              f"{max(run.peak for run in each):8.1f} {cpu / ours:8.2f}  {target if name == 'ezpz postmortem' else ''}")


WRITER = """
import os, sys, time
block = open(sys.argv[1], 'rb').read(2_000_000)
block = block[:block.rindex(b'\\n') + 1]
begun = time.monotonic()
for tenth in range(10 * int(sys.argv[2])):
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
    time.sleep(max(0, begun + (tenth + 1) / 10 - time.monotonic()))
sys.stdout.buffer.write(b'srun: error: Node failure on nid001306\\n')
sys.stdout.buffer.flush()
with open(sys.argv[3], 'w') as stamp:
    stamp.write(str(time.time_ns()))
os._exit(3)
"""


def bench_live(log, ezpz, folder, seconds):
    """20 MB/s through `ezpz launch`: its CPU time beside the same without a grammar to match."""
    stamp, writer = folder / "stamp", folder / "writer.py"
    writer.write_text(WRITER)
    program = ["/usr/bin/python3", str(writer), str(log), str(seconds), str(stamp)]

    def cpu_of(argv):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (folder / "terminal").open("wb") as terminal:
            subprocess.run(argv, stdout=terminal, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    alone = cpu_of(["sh", "-c", 'exec "$@" | cat', "sh", *program])
    logs = folder / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    ours = cpu_of([ezpz, "launch", "--launcher", "local", "-n", "1", "--log-dir", str(logs), "--", *program])
    journal = next(logs.glob("failover-*/journal.jsonl"))
    delay = launch.verdict_ms_after(journal, int(stamp.read_text()))
    print(f"live       20 MB/s for {seconds} s: {100 * (ours - alone) / seconds:.1f} % of a core more than `| cat` "
          f"(writing the log included), last byte to verdict {delay:.1f} ms  (targets: 2 %, 10 ms)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build" / "release")
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--live", type=int, default=20, help="seconds; 0: none")
    options = parser.parse_args()
    ezpz = str((options.build / "ezpz").resolve(strict=True))
    literal_set = str((options.build / "bench" / "literal_set").resolve(strict=True))
    with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
        cpu = next(line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name"))
    with tempfile.TemporaryDirectory(prefix="ezpz-bench-", dir=options.dir) as name:
        folder = pathlib.Path(name)
        literals = folder / "literals"
        literals.write_bytes(subprocess.run([literal_set], check=True, capture_output=True).stdout)
        search = [shutil.which("rg")] if shutil.which("rg") else ["env", "LC_ALL=C", "grep", "-a"]
        peers = {"cat": ["cat"],
                 "ripgrep" if shutil.which("rg") else "grep": [*search, "-c", "-i", "-F", "-f", str(literals)],
                 "RE2::Set": [literal_set]}
        print(f"{cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {len(literals.read_text().splitlines())} "
              f"literals, {options.megabytes} MB, median of {options.runs}")
        print(f"{'log':<10} {'reader':<16} {'GB/s':>8} {'GB/CPU s':>8} {'best':>8} {'CPU s':>9} {'MiB':>8} {'x ezpz':>8}  target")
        for kind, target in (("plain", ">= 2 GB/s, < 64 MiB"), ("hostile", ">= 0.8"), ("coloured", ">= 0.8")):
            log = folder / "log"
            # In a process of its own: what this one has in memory counts as its children's peak.
            writer = multiprocessing.Process(target=write_log, args=(log, kind, options.megabytes))
            writer.start()
            writer.join()
            bench_log(kind, log, ezpz, peers, options.runs, target)
            if kind == "plain" and options.live:
                bench_live(log, ezpz, folder, options.live)


if __name__ == "__main__":
    main()
