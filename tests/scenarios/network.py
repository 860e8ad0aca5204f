#!/usr/bin/python3
"""Guards while the job runs: which network the ranks use. They print NCCL's lines as a real job's do,
in the names of simulated nodes."""

import json
import subprocess
import sys

from checks import check_end, check_nobody_blamed, check_success
from harness import check, check_equal, main, scenario
from job import Job
from training import hostfile, launch

GOOD, WRONG = "AWS Libfabric", "Socket"
USER = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_VERSION", "LOADEDMODULES", "LD_LIBRARY_PATH")

# Each rank tells what NCCL_DEBUG=INFO makes it tell, then trains.
TALK = r"""
net="$1"; odd_host="$2"; odd_net="$3"; shift 3
[ "$EZPZ_NODE" = "$odd_host" ] && net="$odd_net"
at="$EZPZ_NODE:$$:$$ [$LOCAL_RANK]"
if [ "$NCCL_DEBUG" = INFO ]; then
  [ "$RANK" = 0 ] && echo "NCCL version 2.29.7+cuda13.0"
  [ "$net" = "AWS Libfabric" ] && echo "$at NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)"
  echo "$at NCCL INFO Using network $net"
  echo "$at NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/$net/0"
fi
exec "$@"
"""


def talking(context, net=GOOD, odd=("none", ""), steps=6, step_ms=50):
    return ["/bin/sh", "-c", TALK, "talk", net, *odd, context.toy, "--steps", steps, "--step-ms", step_ms,
            "--receipts", context.dir / "receipts"]


def clean_env(**more):
    """A user who has set nothing of NCCL's."""
    return {**{name: None for name in USER}, **more}


def start(context, command, *flags, machine="perlmutter", nodes=("sim1", "sim2", "sim3"), env=None, retry=True, logs=None):
    logs = logs or context.dir / "logs"
    argv = [context.ezpz, "launch", "--launcher", "local", "--machine", machine, "--log-dir", logs]
    if retry:
        argv += ["--auto-retry", "--hostfile", hostfile(context, nodes)]
    argv += ["--nhosts", 2, "--ppn", 2, *flags, "--", *command]
    whole = {name: value for name, value in context.env(**clean_env(**(env or {}))).items() if value is not None}
    return Job(context, argv, logs, context.dir / "receipts", env=whole)


def said(job, words):
    return [line for line in job.stderr().splitlines() if words in line]


@scenario
def the_network_is_recorded_and_its_lines_stay_off_the_terminal(context):
    """On a machine that expects a plugin, the ranks tell their network: journal and report have it by
    host, the log has the lines, the terminal has none."""
    job = start(context, talking(context))
    check_success(job, attempts=1)
    check(b"NCCL INFO Using network AWS Libfabric" in job.attempt_log(1), "the log lacks NCCL's lines")
    check(b"NCCL" not in job.stdout(), f"NCCL's lines are on the terminal: {job.stdout()!r}")
    hidden = [line for line in job.attempt_log(1).splitlines(keepends=True) if b"NCCL" not in line]
    check_equal(job.stdout(), b"".join(hidden), "the terminal, which is the log without NCCL's lines")
    network = job.contexts("network")[-1:]
    seen = [(use["name"], sorted(use["hosts"])) for use in network[0]["networks"]]
    check_equal(seen, [(GOOD, ["sim1", "sim2"])], "networks and their hosts")
    check_equal(network[0]["providers"][0]["name"], "cxi", "provider")
    check_equal(network[0]["versions"][0]["name"], "2.29.7+cuda13.0", "version")
    check_equal(said(job, "instead of"), [], "fallbacks told")
    report = subprocess.run([context.ezpz, "report", job.dir], capture_output=True, text=True, timeout=30).stdout
    check("network: AWS Libfabric; provider cxi; library 2.29.7+cuda13.0" in report, report)
    as_json = subprocess.run([context.ezpz, "report", "--json", job.dir], capture_output=True, timeout=30).stdout
    check_equal(json.loads(as_json)["attempts"][0]["network"]["networks"][0]["name"], GOOD, "report --json")
    after = subprocess.run([context.ezpz, "postmortem", "--json", job.dir / "attempt-1.log"], capture_output=True, timeout=30)
    check_equal(json.loads(after.stdout)["network"]["networks"][0]["name"], GOOD, "postmortem --json")


@scenario
def a_fallback_is_told_once_in_each_attempt(context):
    """Ranks on plain sockets: one line with the hosts, the price and the machine's remedy, though every
    rank says it, and again in the next attempt; the job runs on."""
    command = talking(context, WRONG) + ["--exit-at-step", 3, "--exit-rank", 1, "--exit-on-attempt", 1]
    job = start(context, command)
    check_success(job, attempts=2)
    lines = said(job, "Socket instead of AWS Libfabric")
    check_equal(len(lines), 2, f"lines about it, in two attempts: {lines}")
    for words in ("sim1", "sim2", "8.3 times slower", "module load nccl/2.24.3"):
        check(words in lines[0], f"{words!r} is not in {lines[0]!r}")
    told = {c["attempt"]: c["fallback"]["network"] for c in job.contexts("network")}
    check_equal(told, {1: WRONG, 2: WRONG}, "fallbacks in the journal")
    report = subprocess.run([context.ezpz, "report", job.dir], capture_output=True, text=True, timeout=30).stdout
    check("FALLBACK: AWS Libfabric was expected; 8.3 times slower" in report, report)


@scenario
def a_required_network_stops_the_job_before_time_is_burned(context):
    """--require-net: the attempt is ended as soon as the ranks name another network: env_fault with the
    remedy, no spare is spent, nobody is blamed."""
    job = start(context, talking(context, WRONG, steps=4000), "--require-net", GOOD)
    check_end(job, "env_fault", attempts=1)
    check_equal(job.returncode(), 1, "return code")
    check_equal(job.verdicts(), ["env_fault"], "verdicts")
    check_nobody_blamed(job)
    check(said(job, "stop: ") and "module load nccl/2.24.3" in said(job, "stop: ")[0], job.stderr())
    check_equal(len(said(job, "swap:")), 0, "swaps")


@scenario
def a_required_network_stops_a_plain_launch_too(context):
    """Without --auto-retry, and with --retries, the wrong network ends the launch at once with 1."""
    job = start(context, talking(context, WRONG, steps=4000), "--require-net", GOOD, "--retries", 3, retry=False)
    check_equal(job.wait(30), 1, "return code")
    check_equal(job.attempts(), 1, "attempts")
    check(said(job, "which was required") and said(job, "try: module load"), job.stderr())


@scenario
def one_host_alone_on_another_network_is_probed(context):
    """One host that differs from its peers is a suspect: it is probed, and when the probe finds nothing
    the job stops as an environment fault that names it."""
    odd = talking(context, GOOD, odd=("sim2", WRONG), steps=4000)
    job = start(context, odd, "--require-net", GOOD)
    check_end(job, "env_fault", attempts=1)
    check_equal([c["suspects"] for c in job.contexts("verdict")], [["sim2"]], "suspects")
    check_equal(len(job.contexts("probe")), 1, "probes")
    check("sim2 alone" in job.stderr(), job.stderr())
    check_nobody_blamed(job)


@scenario
def the_users_own_nccl_debug_is_left_alone(context):
    """Who sets NCCL_DEBUG himself sees its lines, and the network is recorded from them all the same."""
    for name, value in (("env", {"NCCL_DEBUG": "INFO"}), ("flag", None)):
        flags = () if value else ("-x", "NCCL_DEBUG=INFO")
        job = start(context, talking(context), *flags, env=value, logs=context.dir / f"logs-{name}")
        check_success(job, attempts=1)
        check(b"NCCL INFO Using network" in job.stdout(), "the user's own lines are not on the terminal")
        check_equal(job.stdout(), job.attempt_log(1), "the terminal")
        check("set by the user" in job.contexts("start")[0]["network_watch"], str(job.contexts("start")[0]))
        check_equal(job.contexts("network")[-1]["networks"][0]["name"], GOOD, "network")


@scenario
def a_network_that_nobody_named_is_unknown_and_no_failure(context):
    """With --require-net and ranks that print none of NCCL's lines the job runs, and its end says that
    the network was not seen."""
    job = start(context, talking(context), "--require-net", GOOD, env={"NCCL_DEBUG": "WARN"})
    check_success(job, attempts=1)
    lines = said(job, "--require-net could not check it")
    check_equal(len(lines), 1, f"lines about it in {job.stderr()!r}")
    check("NCCL_DEBUG is set by the user" in lines[0], lines[0])
    check_equal([c["what"] for c in job.contexts("unknown") if c["what"] == "network"], ["network"], "journal")


@scenario
def nothing_is_set_where_nothing_is_expected(context):
    """A dry run shows NCCL_DEBUG on a machine that expects a plugin, for several hosts, and nowhere else."""
    for machine, hosts, expected in (
        ("perlmutter", 2, "INFO"), ("frontier", 2, "INFO"), ("perlmutter", 1, None), ("aurora", 2, None), ("generic", 2, None)
    ):
        argv = [context.ezpz, "launch", "--launcher", "local", "--machine", machine, "--nhosts", hosts, "--ppn", 1,
                "--dry-run", "--json", "--", "true"]
        env = {n: v for n, v in context.env(**clean_env()).items() if v is not None}
        done = subprocess.run([str(w) for w in argv], capture_output=True, timeout=30, env=env)
        check_equal(done.returncode, 0, f"return code; {done.stderr.decode()}")
        check_equal(json.loads(done.stdout)["env"].get("NCCL_DEBUG"), expected, f"NCCL_DEBUG on {machine}, {hosts} hosts")


@scenario
def another_nccl_than_the_module_is_told(context):
    """The version that NCCL prints is held against the module's: PyTorch's own may have won."""
    job = start(context, talking(context), env={"LOADEDMODULES": "craype/2.7.30:nccl/2.24.3"})
    check_success(job, attempts=1)
    check_equal(len(said(job, "NCCL 2.29.7 is used, though 2.24.3 was asked for")), 1, job.stderr())
    check_equal(job.contexts("network")[-1]["nccl_asked"], "2.24.3", "journal")


@scenario
def silence_before_the_first_step_is_called_early(context):
    """A job that falls silent right after its start is ended by --first-step-timeout, long before the
    limit for one that has trained."""
    quiet = ["/bin/sh", "-c", "echo started; exec sleep 1000"]
    job = launch(context, command=quiet, flags=["--timeout", 900, "--first-step-timeout", 1, "--blind", "never"])
    job.wait(60)
    check_equal(job.verdicts()[0], "hang", "verdict")
    check("no progress since the start" in job.contexts("verdict")[0]["summary"], str(job.contexts("verdict")[0]))


if __name__ == "__main__":
    sys.exit(main("network"))
