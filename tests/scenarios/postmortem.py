#!/usr/bin/python3
"""`ezpz postmortem` on what real jobs on the local launcher left behind, and on logs as they grow."""

import json
import os
import re
import signal
import subprocess
import sys

import faults
from checks import check_success
from harness import check, check_equal, main, scenario, wait_until
from training import CHECKPOINT_EVERY, launch

KILLED = """step=46 loss=2.1
saved checkpoint step=46
step=47 loss=2.0
srun: error: nid001306: tasks 4-7: Killed
srun: launch/slurm: _step_signal: Terminating StepId=2.1
srun: error: nid001304: tasks 0-3: Terminated
"""


def postmortem(context, *words, stdin=None):
    """(return code, stdout, stderr)"""
    argv = [str(word) for word in (context.ezpz, "postmortem", *words)]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=30, env=context.env())
    return done.returncode, done.stdout, done.stderr


def judged(context, *words):
    code, out, err = postmortem(context, "--json", *words)
    check_equal(code, 0, f"return code ({err})")
    return json.loads(out)


def log_of(context, text, name="job.log"):
    path = context.dir / name
    path.write_text(text)
    return path


# ---- a job's directory


@scenario
def a_replayed_job_comes_to_the_verdicts_it_recorded(context):
    """After a real node loss and failover, each attempt's log judged anew gives the recorded verdict
    and culprit; the printed story names both."""
    job = launch(context)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_success(job, attempts=2)
    replay = judged(context, job.dir)
    check_equal(replay["agrees"], True, "agreement with the record")
    seen = [(a["attempt"], a["verdict"], a["culprits"], a["log"]) for a in replay["attempts"]]
    check_equal(
        seen, [(1, "node_failure", ["sim2"], "attempt-1.log"), (2, "success", [], "attempt-2.log")], "attempts"
    )
    code, text, _ = postmortem(context, job.dir)
    check_equal(code, 0, "return code")
    check("Node failure on sim2" in text and "ended: success" in text, f"the story lacks something:\n{text}")


@scenario
def a_replay_that_differs_from_the_record_says_so_and_returns_1(context):
    """A record whose verdict was altered is told apart from what the log says."""
    job = launch(context)
    job.wait_step(2)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_success(job, attempts=2)
    journal = job.dir / "journal.jsonl"
    altered, count = re.subn(r'"verdict":"node_failure"', '"verdict":"walltime"', journal.read_text())
    check(count > 0, "the verdict to alter was not found")
    journal.write_text(altered)
    code, text, _ = postmortem(context, job.dir)
    check_equal(code, 1, "return code")
    check("NOTE: the record says walltime" in text, text)


@scenario
def an_attempts_log_alone_names_the_same_node(context):
    """attempt-1.log of a real node loss, without the journal, names the node and its line."""
    job = launch(context)
    job.wait_step(2)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_success(job, attempts=2)
    log = job.dir / "attempt-1.log"
    answer = judged(context, log)
    check_equal((answer["verdict"], answer["action"], answer["culprits"]), ("node_failure", "swap", ["sim2"]), "answer")
    line = answer["convictions"][0]["line"]
    check(b"Node failure on sim2" in log.read_bytes().splitlines()[line - 1], f"line {line} is not the evidence")


# ---- logs


@scenario
def three_lines_say_what_happened_what_to_do_and_how_sure(context):
    """The first three lines are for somebody who has to act now."""
    code, text, _ = postmortem(context, log_of(context, KILLED))
    check_equal(code, 0, "return code")
    first, second, third = text.splitlines()[:3]
    check(first.startswith("node failure: nid001306"), first)
    check(second.startswith("do:   swap nid001306"), second)
    check("65 %" in third and "steps 46 to 47, checkpoint 46" in third, third)


@scenario
def standard_input_and_several_logs_are_read(context):
    """- is standard input; several logs give a table, or a list in JSON; one that is missing is an
    error beside the others' answers."""
    code, out, _ = postmortem(context, "--json", "-", stdin=KILLED)
    check_equal((code, json.loads(out)["culprits"]), (0, ["nid001306"]), "answer from standard input")
    a, b = log_of(context, KILLED, "a.log"), log_of(context, "step=1\n", "b.log")
    code, out, _ = postmortem(context, "--rc", 0, "--json", a, b)
    logs = json.loads(out)["logs"]
    check_equal([(x["log"], x["verdict"]) for x in logs], [(str(a), "node_failure"), (str(b), "success")], "table")
    code, out, err = postmortem(context, a, b, context.dir / "missing.log")
    check_equal(code, 1, "return code with a missing log")
    check("missing.log" in err and len(out.splitlines()) == 3, out + err)


@scenario
def hosts_of_the_job_are_the_only_ones_to_blame(context):
    """--hosts names who ran; a host that is none of them is not convicted."""
    log = log_of(context, KILLED)
    mine, other = context.dir / "mine", context.dir / "other"
    mine.write_text("nid001304\nnid001306\n")
    other.write_text("nid000007\nnid000008\n")
    check_equal(judged(context, "--hosts", mine, log)["culprits"], ["nid001306"], "culprits")
    check_equal(judged(context, "--hosts", other, log)["culprits"], [], "culprits among other hosts")


@scenario
def what_is_mistyped_is_one_line_and_exit_2(context):
    """A missing log, a directory that is no job's, an unknown machine: one line that names it."""
    for words, said in [
        (("/nowhere.log",), "/nowhere.log"),
        ((context.dir,), "journal.jsonl"),
        ((), "give a log"),
        (("--machine", "perlmuter", log_of(context, KILLED)), "perlmutter"),
        (("--rc", "x", log_of(context, KILLED)), "--rc"),
    ]:
        code, out, err = postmortem(context, *words)
        check_equal((code, out), (2, ""), f"return code and output of {words}")
        check(said in err and len(err.splitlines()) == 1, f"{words}: {err}")


@scenario
def a_growing_log_is_followed_to_its_verdict(context):
    """--follow tells a cause while the log grows, and the whole verdict at Ctrl-C."""
    log = log_of(context, "step=1 loss=3\n")
    out_path = context.dir / "out.txt"
    with open(out_path, "wb") as out:
        argv = [context.ezpz, "postmortem", "--follow", log]
        follower = subprocess.Popen(argv, stdout=out, stderr=out, env=context.env())
    try:
        with open(log, "a", encoding="utf-8") as growing:
            growing.write("srun: error: Node fail")
            growing.flush()
            os.fsync(growing.fileno())
            growing.write("ure on nid001306\n")
        wait_until("the cause to be told", lambda: "so far: node failure: nid001306" in out_path.read_text(), 10)
        check("line 2: srun: error: Node failure on nid001306" in out_path.read_text(), out_path.read_text())
        follower.send_signal(signal.SIGINT)
        check_equal(follower.wait(10), 0, "return code")
    finally:
        if follower.poll() is None:
            follower.kill()
            follower.wait()
    check("do:   swap nid001306" in out_path.read_text(), out_path.read_text())


if __name__ == "__main__":
    sys.exit(main("postmortem"))
