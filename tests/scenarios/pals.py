#!/usr/bin/python3
"""The main job under HPE Cray's PALS, as far as a stand-in for its mpiexec (tests/fakes/mpiexec) can
tell: what is on the command line, that a swap reaches the hostfile, how its messages are read."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import faults
from checks import (
    check_end,
    check_faults,
    check_losses,
    check_nobody_blamed,
    check_ranks_saw,
    check_resumed,
    check_some_fault,
    check_success,
)
from harness import HERE, check, check_equal, main, processes, scenario
from job import Job
from training import CHECKPOINT_EVERY, toy

FAKES = HERE.parent / "fakes"
DOMAIN = ".hsn.cm.sunspot.alcf.anl.gov"
# Two spellings, as such a machine has them; the record and the hostfile keep them.
HOSTS = [f"x1921c7s{blade}b0n0-hsn0{DOMAIN}" for blade in (1, 2)] + [f"x1921c7s{blade}b0n0" for blade in (3, 4)]
SHORT = [host.split("-")[0] for host in HOSTS]  # as the ranks see themselves
LABEL = re.compile(rb"(?m)^x[0-9a-z.-]+ [0-9]+: ")
BINDING = "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100"


class PalsJob(Job):
    def __init__(self, context, *toy_flags, flags=(), ppn=2, active=2, hosts=HOSTS, **how):
        hostfile = context.dir / "hosts.txt"
        hostfile.write_text("".join(f"{host}\n" for host in hosts))
        self.starts_log = context.dir / "mpiexec.starts"
        env = {"PATH": f"{FAKES}:{os.environ['PATH']}", "EZPZ_FAKE_PALS_LOG": str(self.starts_log)}
        logs = context.dir / "logs"
        argv = [context.ezpz, "launch", "--auto-retry", "--launcher", "pals", "--machine", "sunspot"]
        argv += ["--hostfile", hostfile, "--nhosts", active, "--ppn", ppn, "--log-dir", logs, *flags]
        argv += ["--", *toy(context, *toy_flags, **how)]
        super().__init__(context, argv, logs, context.dir / "receipts", env=context.env(**env))

    def stdout(self):
        return LABEL.sub(b"", super().stdout())

    def attempt_log(self, attempt):
        return LABEL.sub(b"", super().attempt_log(attempt))

    def starts(self):
        """What each start of mpiexec for ranks was: those for checks run beside them are left out."""
        lines = self.starts_log.read_text().splitlines()
        return [entry for line in lines if "node-check" not in (entry := json.loads(line))["argv"]]

    def checks(self):
        lines = self.starts_log.read_text().splitlines()
        return [entry for line in lines if "node-check" in (entry := json.loads(line))["argv"]]


def kill_rank(job, rank, attempt=1):
    receipt = job.receipts(attempt)[rank]
    process = processes.ProcessId(receipt.start["pid"], receipt.start["start_ticks"])
    check_equal(processes.environ_of(process.pid).get("PALS_RANKID"), str(rank), "the process to kill")
    alive = processes.kill_and_wait([process], 5)
    check(not alive, f"rank {rank} cannot be killed")
    return faults.Killed(receipt.host, (rank,), (process.pid,), 0)


@scenario
def a_job_without_trouble_takes_one_attempt(context):
    """The command line is the one of the site's manuals, and the ranks are where the plan says."""
    job = PalsJob(context)
    check_success(job, attempts=1)
    argv = job.starts()[0]["argv"]
    hostfile = f"--hostfile={job.dir}/active.hostfile"
    check_equal(argv[1:6], ["--envall", "--line-buffer", "--np=4", "--ppn=2", hostfile], "mpiexec's flags")
    check_equal(argv[6], "--label", "labels, as Sunspot's table says")
    check_equal(job.starts()[0]["hosts"], HOSTS[:2], "hosts, as spelled")
    check_equal(job.starts()[0]["master"], HOSTS[0], "MASTER_ADDR")
    nodes = {rank: (r.start["hostname"], r.start["node_rank"]) for rank, r in job.receipts(1).items()}
    first, second = ("x1921c7s1b0n0", 0), ("x1921c7s2b0n0", 1)
    check_equal(nodes, {0: first, 1: first, 2: second, 3: second}, "where the ranks ran")
    labelled = [line for line in Job.stdout(job).splitlines() if b"step=" in line]
    check(all(line.startswith(HOSTS[0].encode() + b" 0: ") for line in labelled), f"lines without labels: {labelled[:3]}")
    check_losses(context, job)
    check_nobody_blamed(job)


@scenario
def twelve_ranks_a_node_are_bound_as_the_site_says(context):
    """With one rank a tile the machine's table binds CPUs; --cpu-bind replaces that."""
    for flags, wanted in (([], BINDING), (["--cpu-bind", "depth"], "depth")):
        job = PalsJob(context, flags=["--dry-run", *flags], ppn=12)
        check_equal(job.wait(), 0, f"return code; {job.stderr()}")
        check(f"--cpu-bind={wanted} ".encode() in job.stdout(), f"no such binding in {job.stdout()}")


@scenario
def a_killed_rank_swaps_its_host_and_the_swap_reaches_the_hostfile(context):
    """`HOST: rank N died from signal 9` convicts that host and not those of the teardown; the next
    mpiexec finds the spare in its hostfile, spelled as it came."""
    job = PalsJob(context)
    job.wait_step(CHECKPOINT_EVERY + 1)
    kill_rank(job, 2).prove([2])
    check_success(job, attempts=2)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.bad_hosts(), [(HOSTS[1], "scraped")], "bad_nodes.txt")
    check_equal([start["hosts"] for start in job.starts()], [HOSTS[:2], [HOSTS[0], HOSTS[2]]], "hosts of each start")
    check_equal(job.active(), [HOSTS[0], HOSTS[2]], "active.hostfile")
    check_equal(job.hosts_used(2), ["x1921c7s1b0n0", "x1921c7s3b0n0"], "hosts the ranks ran on")
    check(b"rank 3 died from signal 15" in job.attempt_log(1), "the teardown was not there")
    fences = job.contexts("fence")
    check(fences and all(fence["ran"] for fence in fences), f"the fence did not run: {fences}")
    check(job.checks(), "no check was started through mpiexec")
    check_resumed(job, 2)
    check_losses(context, job)


@scenario
def a_rank_that_exits_is_the_programs_matter(context):
    """`rank N exited with code 3` convicts nobody, though mpiexec itself ends with 143."""
    job = PalsJob(context, "--exit-at-step", 6, "--exit-code", 3, "--exit-rank", 2)
    check_faults(job, "exit", 1, [2])
    check(b"rank 2 exited with code 3" in job.attempt_log(1), "the message was not there")
    check_equal(set(job.verdicts()), {"app_error"}, "verdicts")
    check(job.stop_reason().startswith("stuck"), f"stop reason {job.stop_reason()}")
    check_nobody_blamed(job)


@scenario
def more_faults_than_spares_end_as_exhausted(context):
    """When the only spare is spent, the next lost rank's host stops the job, and is named."""
    job = PalsJob(context, hosts=HOSTS[:3], steps=60)
    job.wait_step(CHECKPOINT_EVERY + 1)
    kill_rank(job, 2).prove([2])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2)
    kill_rank(job, 2, attempt=2).prove([2])
    check_end(job, "exhausted", attempts=2)
    check_equal(job.bad_hosts()[0], (HOSTS[1], "scraped"), "the first host of bad_nodes.txt")
    check_equal(job.culprits(2), [HOSTS[2]], "whom the verdict on attempt 2 names")


@scenario
def a_program_that_never_starts_costs_no_spare(context):
    """Exit 1 before the first step, twice: stuck_pre_training, nobody blamed."""
    job = PalsJob(context, "--exit-before-first-step", 1)
    for attempt in (1, 2):
        check_some_fault(job, "exit_before_first_step", attempt)
    check_end(job, "stuck_pre_training", attempts=2)
    check_nobody_blamed(job)


@scenario
def a_crash_after_progress_is_retried_on_the_same_hosts(context):
    """A program that made steps before it failed gets another attempt on the same hosts."""
    job = PalsJob(context, "--exit-at-step", 7, "--exit-rank", 3, "--exit-on-attempt", 1)
    check_faults(job, "exit", 1, [3])
    check_success(job, attempts=2)
    check_equal([start["hosts"] for start in job.starts()], [HOSTS[:2], HOSTS[:2]], "hosts of each start")
    check_resumed(job, 2)
    check_nobody_blamed(job)
    check_losses(context, job)


@scenario
def the_same_seat_dying_on_two_hosts_clears_the_first(context):
    """Rank 1 dies on one host and then, at the same step, on its replacement: the job stops, and the
    first retirement is called doubtful."""
    job = PalsJob(context, "--kill-self-at-step", 7, "--fault-rank", 1, ppn=1)
    for attempt in (1, 2):
        check_faults(job, "kill_self", attempt, [1])
    check_equal([job.hosts_used(n)[1] for n in (1, 2)], SHORT[1:3], "the seat's hosts")
    check_end(job, "same_seat", attempts=2)
    check_equal(job.doubtful(), [HOSTS[1]], "whom bad_nodes.txt calls doubtful")


@scenario
def silence_alone_convicts_nobody(context):
    """A hang without evidence, with --blind never: the watchdog ends it, and nobody is retired."""
    sick = ("--hang-at-step", "10,6,3", "--fault-rank", 2)
    job = PalsJob(context, *sick, checkpoint=None, flags=["--timeout", 2, "--blind", "never"])
    check_faults(job, "hang", 1, [2])
    check_end(job, "no_evidence")
    check("hang" in job.verdicts(), f"no verdict is hang: {job.verdicts()}")
    check_nobody_blamed(job)


@scenario
def ctrl_c_ends_with_130(context):
    """Ctrl-C: the ranks stop in order and save, 130, a whole journal."""
    job = PalsJob(context, steps=4000)
    job.wait_step(CHECKPOINT_EVERY + 1)
    job.ctrl_c()
    check_equal(job.wait(), 130, "return code")
    check_ranks_saw(job, signal.SIGTERM)
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_equal(job.saved()[-1], job.steps()[-1][0], "step of the last checkpoint")
    check(job.journal_text().endswith("\n"), "the journal's last line is torn")


@scenario
def sigterm_gives_every_rank_its_grace(context):
    """SIGTERM to ezpz reaches the ranks through mpiexec; they save and end in order."""
    job = PalsJob(context, steps=2000)
    job.wait_step(CHECKPOINT_EVERY + 1)
    job.signal(signal.SIGTERM)
    check_end(job, "cancelled", attempts=1)
    check_ranks_saw(job, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main("pals", base=Path("/var/tmp")))
