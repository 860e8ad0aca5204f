#!/usr/bin/python3
"""How ezpz stands in the world around it: shells, pipes, inherited signals, unfinished lines. Each
scenario was once a fault that a review found. Seconds, no root."""

import os
import signal
import subprocess
import sys
import time

from harness import RUN_MARK, check, check_equal, main, scenario, wait_until


def environment(context):
    return {**os.environ, RUN_MARK: context.run_id}


def start(context, *words, **how):
    argv = [str(context.ezpz), "launch", "--launcher", "local", *map(str, words)]
    how.setdefault("stdout", subprocess.PIPE)
    how.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen(argv, env=environment(context), cwd=context.dir, start_new_session=True, **how)


@scenario
def a_slow_reader_gets_every_byte(context):
    """`ezpz launch ... | slow reader`: the tail of the output is not dropped when the job has ended."""
    script = "i=0; while [ $i -lt 20000 ]; do echo line-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done"
    whole = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout
    job = start(context, "-q", "-n", 1, "--", "sh", "-c", script, stderr=subprocess.DEVNULL)
    time.sleep(1.5)  # the job is over, its output waits in the pipe and in ezpz
    seen = b""
    while chunk := job.stdout.read1(65536):
        seen += chunk
        time.sleep(0.01)
    check_equal(job.wait(30), 0, "return code")
    lines = b"".join(line for line in seen.splitlines(keepends=True) if line.startswith(b"line-"))
    check(lines == whole, f"{len(lines)} bytes of {len(whole)} arrived")


@scenario
def nohup_is_honoured(context):
    """A job started under nohup outlives the hang-up of its terminal."""
    job = start(context, "-n", 1, "--", "sh", "-c", "echo up; sleep 1.5; echo done",
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until("the start", lambda: b"up" in job.stdout.readline(), 10)
    os.kill(job.pid, signal.SIGHUP)
    out, _ = job.communicate(timeout=30)
    check_equal(job.returncode, 0, "return code")
    check(b"done" in out, f"the job did not come to its end: {out!r}")


@scenario
def an_ignored_hangup_does_not_cut_the_output_short(context):
    """Under nohup, a hang-up long past and a slow reader: every byte still arrives."""
    script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; sleep 1"
    job = start(context, "-q", "-n", 1, "--", "sh", "-c", script, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    time.sleep(0.3)
    os.kill(job.pid, signal.SIGHUP)
    time.sleep(1.5)
    seen = 0
    while chunk := job.stdout.read1(65536):
        seen += chunk.count(b"x")
        time.sleep(0.005)
    check_equal(job.wait(30), 0, "return code")
    check(seen >= 3000000, f"{seen} bytes of 3000000 arrived")


@scenario
def two_launches_may_share_an_output_file(context):
    """Two launches of one script write to the same file: no line of either is lost."""
    script = "i=0; while [ $i -lt 3000 ]; do echo $NAME-line-$i; i=$((i+1)); done"
    both = context.dir / "both"
    with both.open("wb") as sink:
        jobs = [start(context, "-q", "-x", f"NAME={name}", "-n", 1, "--", "sh", "-c", script, stdout=sink,
                      stderr=subprocess.DEVNULL) for name in ("a", "b")]
        for job in jobs:
            check_equal(job.wait(60), 0, "return code")
    lines = both.read_bytes().splitlines()
    for name in (b"a", b"b"):
        count = sum(line.startswith(name + b"-line-") for line in lines)
        check_equal(count, 3000, f"whole lines of launch {name.decode()}")


@scenario
def a_stop_during_the_fence_blames_nobody(context):
    """SIGTERM while the kept hosts are looked at: cancelled, and no host is written down for not having
    been asked."""
    hosts = context.dir / "hosts.txt"
    hosts.write_text("".join(f"n{i:03}\n" for i in range(122)))
    flags = ["--auto-retry", "--hostfile", hosts, "--nhosts", 120, "--ppn", 1, "--log-dir", context.dir / "logs"]
    job = start(context, *flags, "--", "sh", "-c", 'echo step=1; echo step=2; sleep 1; test "$RANK" != 3',
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def journal():
        return "".join(path.read_text() for path in (context.dir / "logs").glob("failover-*/journal.jsonl"))

    wait_until("the decision", lambda: '"name":"decision"' in journal(), 60, poll_s=0.002)
    os.kill(job.pid, signal.SIGTERM)
    check_equal(job.wait(60), 143, "return code")
    check('"reason":"cancelled"' in journal(), "the journal does not say cancelled")
    bad = next((context.dir / "logs").glob("failover-*/bad_nodes.txt")).read_text()
    check_equal(bad, "", "bad_nodes.txt")


@scenario
def an_ignored_sigchld_is_no_reason_to_hang(context):
    """A parent that ignores SIGCHLD hands that on; ezpz still hears of its children's ends."""
    job = start(context, "-n", 1, "--", "sh", "-c", "sleep 0.3; exit 5",
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    check_equal(job.wait(20), 5, "return code")


@scenario
def the_last_line_is_a_line_of_its_own(context):
    """Output without a newline at its end does not swallow FAILOVER STOP."""
    hosts = context.dir / "hosts.txt"
    hosts.write_text("sim1\nsim2\n")
    both = context.dir / "both"
    with both.open("wb") as sink:
        job = start(context, "-q", "--auto-retry", "--hostfile", hosts, "--nhosts", 1, "--", "printf", "unfinished",
                    stdout=sink, stderr=sink)
        check_equal(job.wait(20), 0, "return code")
    lines = both.read_bytes().splitlines()
    check_equal(lines[-1], b"FAILOVER STOP: success", "the last line")
    check(b"unfinished" in lines, f"the job's output is not there: {lines}")


@scenario
def a_terminal_that_is_full_is_said(context):
    """Output that cannot be written to stdout is lost aloud, not silently."""
    with open("/dev/full", "wb") as full:
        job = start(context, "-n", 1, "--", "sh", "-c", "echo important", stdout=full)
        _, said = job.communicate(timeout=20)
    check(b"not shown" in said and b"No space left" in said, f"nothing was said: {said!r}")


@scenario
def a_killed_writer_does_not_hide_the_end(context):
    """The process that writes to the terminal is killed: FAILOVER STOP is printed all the same."""
    hosts = context.dir / "hosts.txt"
    hosts.write_text("sim1\n")
    job = start(context, "--auto-retry", "--hostfile", hosts, "--nhosts", 1, "--", "sh", "-c", "echo up; sleep 1.5")
    wait_until("the start", lambda: b"up" in job.stdout.readline(), 10)

    def writers():
        found = []
        children = open(f"/proc/{job.pid}/task/{job.pid}/children").read().split()
        for pid in children:
            if open(f"/proc/{pid}/comm").read().strip() == "ezpz-terminal":
                found.append(int(pid))
        return found

    pids = writers()
    check(len(pids) == 1, f"expected one terminal writer among ezpz's children, found {pids}")
    os.kill(pids[0], signal.SIGKILL)
    _, said = job.communicate(timeout=20)
    check_equal(job.returncode, 0, "return code")
    check(said.decode().splitlines()[-1] == "FAILOVER STOP: success", f"the end is not there: {said!r}")


@scenario
def a_pipeline_ends_when_the_job_does(context):
    """`ezpz launch ... | cat`: nothing of ezpz keeps the pipe open after its own end."""
    job = start(context, "--log-dir", context.dir / "logs", "-n", 1, "--", "echo", "hello")
    begun = time.monotonic()
    out = job.stdout.read()
    check(b"hello" in out, f"{out!r}")
    check(time.monotonic() - begun < 5, "the end of the pipe came late")
    check_equal(job.wait(10), 0, "return code")


@scenario
def orphans_of_a_rank_leave_no_zombies(context):
    """A rank whose grandchildren end under it for days leaves no zombies on its node."""
    script = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'sleep 0.05' & ) ; done; sleep 1; echo ready; sleep 1"
    job = start(context, "-n", 1, "--", "sh", "-c", script)
    wait_until("the ready line", lambda: b"ready" in job.stdout.readline(), 10)

    def zombies():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] == "Z" and node_of.get(fields[1]):
                found.append(pid)
        return found

    node_of = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/comm").read().strip() == "ezpz-node":
                node_of[pid] = True
        except OSError:
            continue
    check(node_of, "no node process was found")
    check_equal(zombies(), [], "zombies of the node")
    check_equal(job.wait(20), 0, "return code")


@scenario
def secrets_of_the_command_line_stay_out_of_the_record(context):
    """--api-key=... and --token ... are masked in the journal and in a dry run."""
    secret = "hunter2-" + context.run_id
    words = ["-n", 1, "--log-dir", context.dir / "logs", "--", "true", f"--api-key={secret}", "--token", secret]
    job = start(context, *words)
    check_equal(job.wait(20), 0, "return code")
    journals = list((context.dir / "logs").glob("failover-*/journal.jsonl"))
    check(len(journals) == 1, "no journal")
    text = journals[0].read_text()
    check("--api-key=***" in text, "the flag itself is not in the journal")
    check(secret not in text, "the secret is in the journal")
    out, _ = start(context, "--dry-run", *words).communicate(timeout=20)
    check(secret.encode() not in out and b"--api-key" in out, "the secret is in the dry run")


if __name__ == "__main__":
    sys.exit(main("edges"))
