#!/usr/bin/python3
"""What `ezpz launch` costs, each figure beside a named peer in the same run.

    bench/launch.py [--ezpz PATH] [--pairs N] [--srun] [--ssh]

Pairs A B A B, medians; the machine may be noisy, so read the ratios. --srun adds the SLURM rows: it
brings up the lab of tests/cluster (root). --ssh adds the row of the ssh launcher, with hosts of
tests/cluster that run an sshd each (root); --only-ssh is that row alone.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent
LINE = b"step=%d loss=2.3456 tokens/s=51234.1 lr=3.0e-04 grad_norm=0.712 mem=31.2GiB elapsed=12.34s\n"
FIRST_RANK = ["sh", "-c", 'date +%s%N > "$STAMP"']


def once_ms(argv, stamp, env=None):
    """From starting argv to its first rank's time stamp."""
    stamp.unlink(missing_ok=True)
    begun = time.time_ns()
    subprocess.run(argv, env={**os.environ, **(env or {}), "STAMP": str(stamp)}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (int(stamp.read_text()) - begun) / 1e6


def pairs(count, first, second):
    """Medians of both and of the differences, after a warm-up of each."""
    first(), second()
    taken = [(first(), second()) for _ in range(count)]
    return (statistics.median(a for a, _ in taken), statistics.median(b for _, b in taken),
            statistics.median(a - b for a, b in taken))


def row(what, ours, peer, comparison, target):
    print(f"{what:<46} {ours:>14} {peer:>34} {comparison:>14} {target:>12}")


def bench_usage(ezpz, count):
    def timed(argv):
        begun = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - begun) * 1e3

    ours, peer, extra = pairs(count, lambda: timed([ezpz, "launch", "--help"]), lambda: timed(["/bin/true"]))
    row("start to usage text", f"{ours:.2f} ms", f"/bin/true {peer:.2f} ms", f"+{extra:.2f} ms", "< 10 ms")


def bench_first_rank_local(ezpz, count, folder):
    stamp = folder / "stamp"
    launch = [ezpz, "launch", "--launcher", "local", "-n", "1", "--", *FIRST_RANK]
    bare = [ezpz, "local-run", "--hosts=here", "--ranks=1", "--ranks-per-node=1", "--", *FIRST_RANK]
    ours, peer, extra = pairs(count, lambda: once_ms(launch, stamp), lambda: once_ms(bare, stamp))
    row("first rank, local", f"{ours:.2f} ms", f"bare local launcher {peer:.2f} ms", f"+{extra:.2f} ms", "<= 20 ms")


def bench_output(ezpz, count, folder, megabytes):
    """Everything on one core: the program, ezpz and its writers."""
    core = str(min(os.sched_getaffinity(0)))
    log = folder / "big.log"
    with log.open("wb") as out:
        block = b"".join(LINE % step for step in range(10000))
        for _ in range(megabytes * 1_000_000 // len(block)):
            out.write(block)
    size_mb = log.stat().st_size / 1e6
    program = ["cat", str(log)]

    def rate(argv, **how):
        begun = time.perf_counter()
        subprocess.run(argv, check=True, stderr=subprocess.DEVNULL, **how)
        return size_mb / (time.perf_counter() - begun)

    def ours():
        shutil.rmtree(folder / "logs", ignore_errors=True)
        with (folder / "terminal").open("wb") as terminal:
            return rate(["taskset", "-c", core, ezpz, "launch", "--launcher", "local", "-n", "1", "--log-dir",
                         str(folder / "logs"), "--", *program], stdout=terminal)

    def tee():
        with (folder / "terminal").open("wb") as terminal:
            return rate(["taskset", "-c", core, "sh", "-c", f"cat {log} | tee {folder}/copy"], stdout=terminal)

    ours_rate, peer, _ = pairs(count, ours, tee)
    row(f"output path, one core, {size_mb:.0f} MB to terminal and log", f"{ours_rate:.0f} MB/s",
        f"cat | tee FILE {peer:.0f} MB/s", f"x{ours_rate / peer:.2f}", ">= 300 MB/s")
    bench_memory(ezpz, folder, program, core)


def bench_memory(ezpz, folder, program, core):
    peaks = []
    for repeat in (1, 4):
        shutil.rmtree(folder / "logs", ignore_errors=True)
        script = " ; ".join([" ".join(program)] * repeat)
        argv = ["/usr/bin/python3", "-c",
                "import resource,subprocess,sys\n"
                "subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL,check=True)\n"
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                "taskset", "-c", core, ezpz, "launch", "--launcher", "local", "-n", "1", "--log-dir",
                str(folder / "logs"), "--", "sh", "-c", script]
        peaks.append(int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout) / 1024)
    row("largest process, 4x the output", f"{peaks[1]:.1f} MiB", f"1x the output {peaks[0]:.1f} MiB",
        f"x{peaks[1] / peaks[0]:.2f}", "flat")


def verdict_ms_after(journal, stamp_ns):
    """From a time stamp to the verdict in the journal."""
    for text in journal.read_text().splitlines():
        event = json.loads(text)
        if event["name"] == "verdict":
            seconds = event["time"].rstrip("Z")
            whole, fraction = seconds.split(".")
            wall = time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + fraction)
            return wall * 1e3 - stamp_ns / 1e6
    raise SystemExit("no verdict in the journal")


def verdict_delay_ms(ezpz, folder, lines):
    """From the last rank's own time stamp at its end to the verdict in the journal."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    stamp = folder / "stamp"
    script = f'head -n {lines} "$BIG"; date +%s%N > "$STAMP"; exit 3'
    subprocess.run([ezpz, "launch", "--launcher", "local", "-n", "1", "--log-dir", str(folder / "logs"), "--", "sh",
                    "-c", script], env={**os.environ, "STAMP": str(stamp), "BIG": str(folder / "big.log")},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    journal = next((folder / "logs").glob("failover-*/journal.jsonl"))
    return verdict_ms_after(journal, int(stamp.read_text()))


def bench_verdict(ezpz, count, folder):
    large = 3_000_000
    ours, peer, _ = pairs(count, lambda: verdict_delay_ms(ezpz, folder, large),
                          lambda: verdict_delay_ms(ezpz, folder, 100))
    row(f"rank's end to verdict, log of {large} lines", f"{ours:.1f} ms", f"log of 100 lines {peer:.1f} ms",
        f"x{ours / max(peer, 0.1):.2f}", "< 50 ms")


def bench_first_rank_srun(ezpz, count):
    sys.path.insert(0, str(REPOSITORY / "tests" / "cluster"))
    import lab as cluster  # pylint: disable=import-outside-toplevel

    with cluster.Lab() as lab:
        work = pathlib.Path(lab.workdir)
        binary = work / "ezpz"
        shutil.copy(ezpz, binary)
        inner = work / "inner.py"
        inner.write_text(INNER_SRUN.format(bench=str(HERE), ezpz=str(binary), work=str(work), count=count))
        job = lab.submit(f"#!/bin/sh\nexec /usr/bin/python3 {inner}\n", nodes=2)
        lab.wait_job(job, 240)
        medians = json.loads((work / "result.json").read_text())
    ours, peer, extra = medians
    row("first rank, srun", f"{ours:.1f} ms", f"bare srun {peer:.1f} ms", f"+{extra:.1f} ms", "<= 20 ms")


SSH_HOSTS = ("node1", "node2", "node3", "node4")


def bench_ssh(ezpz, count):
    """One rank on each of four hosts, from the start to the end of all; beside it four ssh at once."""
    sys.path.insert(0, str(REPOSITORY / "tests" / "cluster"))
    from ssh_hosts import SshHosts  # pylint: disable=import-outside-toplevel

    with SshHosts(SSH_HOSTS) as hosts, tempfile.TemporaryDirectory(prefix="ezpz-bench-", dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        binary = shutil.copy(ezpz, folder)
        (folder / "hosts").write_text("".join(f"{host}\n" for host in SSH_HOSTS))
        launch = [binary, "launch", "--launcher", "ssh", "--hostfile", str(folder / "hosts"), "--ppn", "1",
                  "--", "-F", str(hosts.config), "--", "/bin/true"]

        def timed(start):
            begun = time.perf_counter()
            for process in start():
                if process.wait() != 0:
                    raise SystemExit(f"{process.args}: {process.returncode}")
            return (time.perf_counter() - begun) * 1e3

        def run(argv):
            return subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)

        ours, peer, extra = pairs(
            count,
            lambda: timed(lambda: [run(launch)]),
            lambda: timed(lambda: [run(["ssh", "-F", str(hosts.config), host, "/bin/true"]) for host in SSH_HOSTS]))
    row("/bin/true on 4 hosts by ssh", f"{ours:.0f} ms", f"4 ssh at once {peer:.0f} ms", f"+{extra:.0f} ms", "")


INNER_SRUN = """
import json, pathlib, sys
sys.path.insert(0, {bench!r})
import launch
work = pathlib.Path({work!r})
stamp = work / "stamp"
ours = [{ezpz!r}, "launch", "--nhosts", "1", "-n", "1", "--", *launch.FIRST_RANK]
bare = ["srun", "-u", "-N1", "-n1", "--ntasks-per-node=1", "--input=none", *launch.FIRST_RANK]
result = launch.pairs({count}, lambda: launch.once_ms(ours, stamp), lambda: launch.once_ms(bare, stamp))
(work / "result.json").write_text(json.dumps(result))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ezpz", type=pathlib.Path, default=REPOSITORY / "build" / "release" / "ezpz")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--srun", action="store_true")
    parser.add_argument("--ssh", action="store_true")
    parser.add_argument("--only-ssh", action="store_true")
    options = parser.parse_args()
    ezpz = str(options.ezpz.resolve(strict=True))
    row("what", "ezpz", "peer", "", "target")
    if options.ssh or options.only_ssh:
        bench_ssh(ezpz, options.pairs)
    if options.only_ssh:
        return
    with tempfile.TemporaryDirectory(prefix="ezpz-bench-") as name:
        folder = pathlib.Path(name)
        bench_usage(ezpz, options.pairs)
        bench_first_rank_local(ezpz, options.pairs, folder)
        bench_output(ezpz, max(3, options.pairs // 5), folder, options.megabytes)
        bench_verdict(ezpz, max(3, options.pairs // 5), folder)
    if options.srun:
        bench_first_rank_srun(ezpz, options.pairs)


if __name__ == "__main__":
    main()
