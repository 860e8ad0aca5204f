#!/usr/bin/python3
"""The main job on a real SLURM of six nodes (tests/cluster): batch jobs of four or five nodes that run
`ezpz launch --auto-retry`, and what goes wrong on clusters. Needs root; without it every scenario is
skipped and counted."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import faults
import slurm_job
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
from harness import check, check_equal, main, processes, scenario, skip_all, wait_until
from slurm_job import SlurmJob
from training import CHECKPOINT_EVERY, toy

from lab import Lab

# Nodes have a /tmp of their own; this is shared by all.
BASE = Path("/var/tmp")
FIRST_WAIT_S = 40
LOSS_NOTICED_S = 90
disk = None  # FrozenMount, made before the lab: nodes see only what was mounted before they came up


def start(context, *toy_flags, **how):
    """Starts the job and waits until it has a checkpoint behind it. (job, hosts in Slurm's order)"""
    job = SlurmJob(context, *toy_flags, **how)
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=FIRST_WAIT_S)
    return job, job.hosts()


def check_fenced(job):
    """The kept hosts were really looked at before the relaunch. (In a job with GPUs the check once asked
    for what the job forbids, and every fence was skipped.)"""
    fences = job.contexts("fence")
    check(fences, "the journal has no fence")
    check(all(fence["ran"] for fence in fences), f"a fence did not run: {fences}")


def check_swapped(context, job, victim, spare, keeps, provenance=("scraped", "scheduler")):
    """One node was lost, named and replaced; the ranks really moved; the training is unharmed."""
    check_success(job, attempts=2)
    check_fenced(job)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal([host for host, _ in job.bad_hosts()], [victim], "bad_nodes.txt")
    check(job.bad_hosts()[0][1] in provenance, f"provenance {job.bad_hosts()[0][1]}, expected one of {provenance}")
    check_equal(sorted(job.hosts_used(2)), sorted([keeps, spare]), "hosts used by attempt 2")
    check_equal(sorted(job.active()), sorted([keeps, spare]), "active.hostfile")
    check_resumed(job, 2)
    check_losses(context, job)
    check_rendezvous(job, 2)


def check_rendezvous(job, attempt):
    """MASTER_ADDR of every rank is the host that rank 0 really runs on."""
    receipts = job.receipts(attempt)
    addresses = {receipt.start["master_addr"] for receipt in receipts.values()}
    check_equal(addresses, {receipts[0].start["hostname"]}, f"MASTER_ADDR of attempt {attempt}")


# ---- nothing wrong


@scenario
def a_job_without_trouble_takes_one_attempt(context):
    """With no fault there is one attempt on the first two hosts, success, and nobody is blamed."""
    job = SlurmJob(context)
    check_success(job, attempts=1)
    check_equal(job.hosts_used(1), job.hosts()[:2], "hosts used")
    check_losses(context, job)
    check_rendezvous(job, 1)
    check_nobody_blamed(job)


@scenario
def gpus_are_asked_for_where_there_are_some(context):
    """On nodes with GPUs every rank's step has them."""
    show = ["/bin/sh", "-c", "echo RANK=$RANK GPUS=$CUDA_VISIBLE_DEVICES"]
    job = SlurmJob(context, command=show, args=["--no-kill", "--gpus-per-node=4"])
    check_success(job, attempts=1)
    lines = sorted(line for line in job.stdout().decode().splitlines() if line.startswith("RANK="))
    check_equal(lines, [f"RANK={rank} GPUS=0,1,2,3" for rank in range(4)], "what the ranks saw")


# ---- a node is lost


@scenario
def a_node_whose_ranks_all_die_is_named_and_replaced(context):
    """SIGKILL to all ranks of active[1]: that node is retired as scraped, the spare runs its ranks, and
    the training resumes from the last checkpoint."""
    job, hosts = start(context)
    slurm_job.kill_ranks(job, hosts[1]).prove([2, 3])
    check_swapped(context, job, hosts[1], hosts[2], hosts[0], provenance=("scraped",))
    fields = job.bad_nodes()[0][2]
    check_equal((fields["attempt"], fields["verdict"]), ("1", "node_failure"), "why, in bad_nodes.txt")


@scenario
def a_node_without_its_daemons_is_a_node_failure(context):
    """slurmd and slurmstepd of active[1] die: srun then ends with code 0, and that is no success."""
    job, hosts = start(context)
    slurm_job.kill_daemons(job, hosts[1])
    job.wait(LOSS_NOTICED_S)
    check_swapped(context, job, hosts[1], hosts[2], hosts[0])


@scenario
def a_node_cut_off_the_network_is_named_and_its_survivor_kept(context):
    """The cable of active[1] is pulled. Slurm prints the survivor as Killed, but the cut node is the
    one retired, and the relaunch begins within 3 s of the verdict beside the stale step."""
    job, hosts = start(context)
    slurm_job.pull_cable(job, hosts[1])
    job.wait(LOSS_NOTICED_S)
    check_swapped(context, job, hosts[1], hosts[2], hosts[0])
    delay_s = job.receipts(2)[0].start["time"] - seconds(job.journal("verdict")[0]["time"])
    check(0 < delay_s < 3, f"attempt 2 began {delay_s:.1f} s after the verdict")


@scenario
def a_node_that_loses_power_is_replaced(context):
    """Everything on active[1] vanishes at once, without a word on the network."""
    job, hosts = start(context)
    slurm_job.kill_node(job, hosts[1])
    job.wait(LOSS_NOTICED_S)
    check_swapped(context, job, hosts[1], hosts[2], hosts[0])


@scenario
def more_faults_than_spares_end_as_exhausted(context):
    """When the only spare is spent, the next lost node stops the job."""
    job, hosts = start(context, nodes=3, steps=60)
    slurm_job.kill_ranks(job, hosts[1]).prove([2, 3])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2, timeout_s=FIRST_WAIT_S)
    slurm_job.kill_ranks(job, hosts[2], attempt=2).prove([2, 3])
    check_end(job, "exhausted", attempts=2)
    check_equal(job.bad_hosts()[0], (hosts[1], "scraped"), "the first host of bad_nodes.txt")
    check_equal(job.culprits(2), [hosts[2]], "whom the verdict on attempt 2 names")


@scenario
def a_spare_that_is_down_is_skipped(context):
    """A spare that Slurm calls DOWN is recorded as scheduler, and the next one used."""
    job, hosts = start(context, steps=40)
    job.lab.set_node_state(hosts[2], "DOWN")
    job.lab.wait_node_state(hosts[2], "DOWN", 10)
    slurm_job.kill_ranks(job, hosts[1]).prove([2, 3])
    check_success(job, attempts=2)
    check_equal(sorted(job.hosts_used(2)), [hosts[0], hosts[3]], "hosts used by attempt 2")
    expected = {(hosts[1], "scraped"), (hosts[2], "scheduler")}
    check_equal(set(job.bad_hosts()), expected, "bad_nodes.txt")


@scenario
def a_spare_that_sorts_before_the_active_hosts_gets_rank_0(context):
    """Slurm numbers ranks in its own order, not the hostfile's: after such a swap rank 0, MASTER_ADDR
    and the rank-to-host plan agree, the ranks meet, and a second loss blames the right host."""
    listed = write_hosts_behind(context)
    job, hosts = start(context, steps=60, before=listed, flags=["--hostfile", context.dir / "hosts.txt"])
    check_equal(job.hosts_used(1), [hosts[2], hosts[3]], "hosts used by attempt 1")
    slurm_job.kill_ranks(job, hosts[3]).prove([2, 3])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2, timeout_s=FIRST_WAIT_S)
    check_equal(job.hosts_used(2), [hosts[0], hosts[2]], "hosts used by attempt 2, in rank order")
    check_rendezvous(job, 2)
    slurm_job.kill_ranks(job, hosts[2], attempt=2).prove([2, 3])
    check_success(job, attempts=3)
    check_equal(job.bad_hosts(), [(hosts[3], "scraped"), (hosts[2], "scraped")], "bad_nodes.txt")
    check_equal(job.hosts_used(3), [hosts[0], hosts[1]], "hosts used by attempt 3")


def write_hosts_behind(context):
    """A line of the batch script: the job's hosts into hosts.txt, its last two first."""
    names = "scontrol show hostnames"
    return f"({names} | tail -n 2; {names} | head -n 2) > {context.dir}/hosts.txt"


@scenario
def a_host_with_an_unkillable_rank_is_not_used_again(context):
    """A surviving rank in D state cannot be cleared away: its host is retired as unkillable, and attempt
    2 does not start beside it."""
    context.at_end(disk.thaw)
    flags = ["--hostfile", context.dir / "hosts.txt"]
    listed = f"scontrol show hostnames | tail -n +2 > {context.dir}/hosts.txt"
    data = disk.path / "data"
    write = ("--write-file", data, "--write-rank", 0, "--write-on-attempt", 1)
    job, hosts = start(context, *write, nodes=5, before=listed, flags=flags)
    writer = slurm_job.rank_process(job, job.receipts(1)[0])
    disk.freeze()
    faults.await_unkillable(writer.pid)
    slurm_job.kill_ranks(job, hosts[2]).prove([2, 3])
    code = job.wait(120)
    check_equal(faults.state_of(writer.pid), "D", "state of the rank on the frozen mount at the end")
    disk.thaw()
    check_equal((code, job.stop_reason()), (0, "success"), "end")
    check_equal(set(job.bad_hosts()), {(hosts[2], "scraped"), (hosts[1], "unkillable")}, "bad_nodes.txt")
    check_equal(job.hosts_used(2), [hosts[3], hosts[4]], "hosts used by attempt 2")


@scenario
def only_the_hosts_of_the_hostfile_are_used(context):
    """A hostfile that names three of five hosts is the whole pool, spares included."""
    listed = f"scontrol show hostnames | head -n 4 | tail -n 3 > {context.dir}/hosts.txt"
    job, hosts = start(context, nodes=5, before=listed, flags=["--hostfile", context.dir / "hosts.txt"])
    slurm_job.kill_ranks(job, hosts[2]).prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(1), [hosts[1], hosts[2]], "hosts used by attempt 1")
    check_equal(job.hosts_used(2), [hosts[1], hosts[3]], "hosts used by attempt 2")


# ---- the program's own fault


@scenario
def a_program_that_never_starts_costs_no_spare(context):
    """Exit 1 before the first step, twice: stuck_pre_training, nobody blamed."""
    job = SlurmJob(context, "--exit-before-first-step", 1)
    for attempt in (1, 2):
        check_some_fault(job, "exit_before_first_step", attempt)
    check_end(job, "stuck_pre_training", attempts=2)
    check_nobody_blamed(job)


@scenario
def a_crash_after_progress_is_retried_on_the_same_hosts(context):
    """A program that made steps before it failed gets another attempt on the same hosts."""
    job = SlurmJob(context, "--exit-at-step", 7, "--exit-rank", 3, "--exit-on-attempt", 1)
    check_faults(job, "exit", 1, [3])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(2), job.hosts()[:2], "hosts used by attempt 2")
    check_resumed(job, 2)
    check_nobody_blamed(job)
    check_losses(context, job)


@scenario
def the_same_crash_at_the_same_step_stops_at_the_second_time(context):
    """A crash at one step after every resume: stuck_at_step, no spare spent."""
    job = SlurmJob(context, "--exit-at-step", 7, "--exit-rank", 3)
    for attempt in (1, 2):
        check_faults(job, "exit", attempt, [3])
    check_end(job, "stuck_at_step", attempts=2)
    check_nobody_blamed(job)


@scenario
def the_same_seat_dying_on_two_hosts_clears_the_first(context):
    """Rank 1 dies on one host and then, at the same step, on its replacement: the job stops, and the
    first retirement is called doubtful."""
    job = SlurmJob(context, "--kill-self-at-step", 7, "--fault-rank", 1, ppn=1)
    for attempt in (1, 2):
        check_faults(job, "kill_self", attempt, [1])
    hosts = job.hosts()
    check_equal([job.hosts_used(n)[1] for n in (1, 2)], [hosts[1], hosts[2]], "the seat's hosts")
    check_end(job, "same_seat", attempts=2)
    first = job.hosts_used(1)[1]
    check_equal([c["host"] for c in job.contexts("doubtful")], [first], "whom the journal calls doubtful")
    check_equal(job.doubtful(), [first], "whom bad_nodes.txt calls doubtful")


# ---- silence

# Each attempt dies at another step, as a sick host's do: the same step twice would be the program's.
SICK_RANK_2 = ("--hang-at-step", "10,6,3", "--fault-rank", 2)


@scenario
def silence_alone_convicts_nobody(context):
    """A hang without evidence, with --blind never: the watchdog ends it, and nobody is retired."""
    job = SlurmJob(context, *SICK_RANK_2, checkpoint=None, flags=["--timeout", 3, "--blind", "never"])
    check_faults(job, "hang", 1, [2])
    check_end(job, "no_evidence")
    check("hang" in job.verdicts(), f"no verdict is hang: {job.verdicts()}")
    check_nobody_blamed(job)


@scenario
def a_blind_swap_is_recorded_as_one(context):
    """A hang that comes back is answered by a guess, recorded as blind and as nothing else."""
    job = SlurmJob(context, *SICK_RANK_2, checkpoint=None, flags=["--timeout", 3])
    check_faults(job, "hang", 1, [2])
    check_faults(job, "hang", 2, [2])
    check_equal({provenance for _, provenance in job.bad_hosts()}, {"blind"}, "provenances in bad_nodes.txt")


# ---- limits and people


@scenario
def the_time_limit_is_walltime_and_blames_nobody(context):
    """The job's time limit ends tasks that ignore SIGTERM: walltime, no swap, nobody blamed."""
    job = SlurmJob(context, "--ignore-term", steps=4000, args=["--no-kill", "--time=1"])
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=FIRST_WAIT_S)
    wait_until("the time limit", lambda: job.lab.job_state(job.id) != "RUNNING", 120, poll_s=0.2)
    end = job.lab.wait_job(job.id, 30)
    check_equal(end.state, "TIMEOUT", "what Slurm calls the end")
    check_equal(job.stop_reason(), "walltime", "stop reason")
    check_equal((job.attempts(), job.verdicts()), (1, ["walltime"]), "attempts and verdicts")
    check_nobody_blamed(job)


@scenario
def a_cancelled_step_is_cancelled(context):
    """scancel of the step: no relaunch, nobody blamed."""
    job, _ = start(context, steps=4000)
    steps = job.steps_running()
    check_equal(len(steps), 1, "running steps")
    job.lab.cancel(steps[0])
    check_end(job, "cancelled", attempts=1)
    check_nobody_blamed(job)


@scenario
def a_cancelled_job_is_cancelled(context):
    """scancel of the whole job: the record says cancelled, and nothing is left."""
    job, _ = start(context, steps=4000)
    job.lab.cancel(job.id)
    end = job.lab.wait_job(job.id, 40)
    check_equal(end.state, "CANCELLED", "what Slurm calls the end")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_equal((job.attempts(), job.verdicts()), (1, ["cancelled"]), "attempts and verdicts")
    check_nobody_blamed(job)


@scenario
def sigterm_lets_the_ranks_checkpoint(context):
    """SIGTERM to ezpz reaches the ranks through Slurm, a checkpoint lands, the end is cancelled."""
    job, _ = start(context, steps=4000)
    job.signal(signal.SIGTERM)
    job.wait()
    check_ranks_saw(job, signal.SIGTERM)
    check_end(job, "cancelled", attempts=1)
    check_equal(job.saved()[-1], job.steps()[-1][0], "step of the last checkpoint")
    check_nobody_blamed(job)


@scenario
def ctrl_c_ends_with_130(context):
    """SIGINT to ezpz: the ranks stop in order, 130, no step left, a whole journal."""
    job, _ = start(context, steps=4000, after="sleep 20")
    job.signal(signal.SIGINT)
    check_equal(job.wait(), 130, "return code")
    check_ranks_saw(job, signal.SIGTERM)
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_equal(job.processes(), [], "ranks left")
    wait_until("the step to be gone", lambda: not job.steps_running(), 10)
    check(job.journal_text().endswith("\n"), "the journal's last line is torn")


@scenario
def nothing_outlives_a_killed_ezpz(context):
    """SIGKILL to ezpz: no step of it is left within 10 s, though its tasks ignore SIGTERM and the job
    goes on."""
    job, _ = start(context, "--ignore-term", steps=4000, after="sleep 60")
    check_equal(len(job.processes()), 4, "ranks before the kill")
    check_equal(len(job.steps_running()), 1, "steps before the kill")
    ezpz = job.ezpz()
    check(not processes.kill_and_wait([ezpz], 5), "ezpz cannot be killed")
    check_equal(job.wait(10), 137, "what the script saw of ezpz's end")
    wait_until("ranks and step to be gone", lambda: not job.processes() and not job.steps_running(), 10)
    check_equal(job.lab.job_state(job.id), "RUNNING", "state of the job")


@scenario
def usr1_reaches_the_ranks_and_ends_nothing(context):
    """SIGUSR1 to ezpz, as `sbatch --signal` sends it, is passed on to every rank."""
    job, _ = start(context, steps=60)
    job.signal(signal.SIGUSR1)
    check_success(job, attempts=1)
    check_ranks_saw(job, signal.SIGUSR1)


# ---- the environment is worse than expected


def check_recovers(context, script):
    """Ranks of active[1] die while the scheduler's tools do what `script` says."""
    path = slurm_job.broken_helpers(context, script)
    job, hosts = start(context, before=f"export PATH={path}")
    slurm_job.kill_ranks(job, hosts[1]).prove([2, 3])
    check_success(job, attempts=2, timeout_s=120)
    check_equal(job.bad_hosts(), [(hosts[1], "scraped")], "bad_nodes.txt")
    check_equal(sorted(job.hosts_used(2)), [hosts[0], hosts[2]], "hosts used by attempt 2")
    used = context.dir / "helpers-used"
    check(used.exists(), "no helper was ever asked: the fault was never there")
    unknown = [e for e in job.journal() if "scontrol" in str(e["context"]) or "squeue" in str(e["context"])]
    check(unknown, "the journal does not say what was unknown")


@scenario
def failing_scheduler_tools_do_not_stop_the_loop(context):
    """scontrol, squeue and sacct fail: the loop still recovers, and the journal says what is unknown."""
    check_recovers(context, "echo broken >&2; exit 1")


@scenario
def hanging_scheduler_tools_do_not_stop_the_loop(context):
    """scontrol, squeue and sacct never answer: the loop still recovers."""
    check_recovers(context, "exec sleep 300")


@scenario
def two_launches_on_one_allocation_are_told_apart(context):
    """A second `ezpz launch --auto-retry` in the same job is refused while the first one runs."""
    second = context.dir / "second"
    again = f"{context.ezpz} launch --auto-retry --nhosts 2 --ppn 2 --log-dir {context.dir}/logs -- /bin/true"
    wait = f"until [ -e {context.dir}/receipts/attempt-1.rank-0 ]; do sleep 0.1; done"
    before = f"({wait}; {again} > {second}.out 2> {second}.err; echo $? > {second}.rc) &"
    job = SlurmJob(context, before=before, steps=60)
    check_success(job, attempts=1)
    check_equal((context.dir / "second.rc").read_text().strip(), "2", "return code of the second launch")
    check_equal(len((context.dir / "second.err").read_text().splitlines()), 1, "lines the second launch said")


@scenario
def a_step_of_another_job_in_the_output_is_left_alone(context):
    """The job prints what srun said in some other job, as an old log would: its own step is signalled,
    never the other one."""
    calls = context.dir / "scancel-calls"
    real = shutil.which("scancel")
    tools = context.dir / "tools"
    tools.mkdir()
    (tools / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {real} "$@"\n')
    (tools / "scancel").chmod(0o755)
    foreign = "echo 'srun: launching StepId=99999.3 on host nid000009, 1 tasks: [0]'; "
    foreign += "echo 'srun: Force Terminated StepId=99999.3'"
    command = ["sh", "-c", f'{foreign}; exec "$@"', "sh", *toy(context, steps=4000)]
    job = SlurmJob(context, command=command, before=f"export PATH={tools}:$PATH")
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=FIRST_WAIT_S)
    check(b"StepId=99999.3" in job.attempt_log(1), "the foreign line was never printed")
    job.signal(signal.SIGTERM)
    job.wait()
    asked = calls.read_text()
    check(f"{job.id}." in asked, f"the job's own step was not signalled: {asked!r}")
    check("99999" not in asked, f"somebody else's step was signalled: {asked!r}")
    check_ranks_saw(job, signal.SIGTERM)


@scenario
def a_missing_command_is_an_env_fault(context):
    """A program that is on no node: env_fault with the path in the remedy's reach, nobody blamed."""
    job = SlurmJob(context, command=["/no/such/program"])
    check_end(job, "env_fault", attempts=1)
    check("/no/such/program" in job.stderr(), f"the program is not named:\n{job.stderr()}")
    check_nobody_blamed(job)


@scenario
def an_ezpz_that_the_nodes_do_not_have_is_said(context):
    """The binary lies in a folder that only the batch script's node can see."""
    private = f"/tmp/ezpz-private-{context.run_id}"
    before = f"mkdir -p {private}; cp {context.ezpz} {private}/ezpz; ls -l {private}"
    argv = [f"{private}/ezpz", "launch", "--auto-retry", "--nhosts", 2, "--ppn", 1]
    job = SlurmJob(context, before=before, command=["true"], launcher=argv)
    check_end(job, "env_fault", attempts=1)
    check("ezpz itself is not where the node looks for it" in job.stderr(), f"not said:\n{job.stderr()}")
    check_nobody_blamed(job)


@scenario
def host_lists_read_as_scontrol_reads_them(context):
    """`ezpz hostlist` agrees with `scontrol show hostnames` and `show hostlist` on every kind of list."""
    lists = [
        "nid[000001-000004]", "nid[1-3,7,10-12]", "nid000009", "a1,b[2-4],c", "rack[1-2]n[01-03]",
        "n[008-011]", "nid[0001,0003-0005],login[01-02]", "tux[0-99]", "g[1,1]",
    ]
    for text in lists:
        theirs = context.lab.client("scontrol", "show", "hostnames", text).split()
        ours = subprocess.run([context.ezpz, "hostlist", "expand", text], capture_output=True, text=True, check=True)
        check_equal(ours.stdout.split(), theirs, f"the hosts of {text}")
        folded = subprocess.run([context.ezpz, "hostlist", "compress", *theirs], capture_output=True, text=True,
                                check=True).stdout.strip()
        back = context.lab.client("scontrol", "show", "hostnames", folded).split()
        check_equal(back, theirs, f"{text} folded to {folded}, as scontrol reads it")


@scenario
def info_sees_what_scontrol_sees(context):
    """`ezpz info --json` inside a job: its id, hosts, GPUs and end, as Slurm has them."""
    job = SlurmJob(context, steps=2, args=["--no-kill", "--gpus-per-node=4", "--time=7"],
                   before=f"{context.ezpz} info --json > {context.dir}/info.json")
    check_success(job, attempts=1)
    info = json.loads((context.dir / "info.json").read_text())
    check_equal(info["job_id"], str(job.id), "job_id")
    check_equal(info["hosts"], job.hosts(), "hosts")
    check_equal(info["gpus_per_node"], 4, "gpus_per_node")
    check(300 < info["time_left_s"] <= 420, f"time_left_s of a 7-minute job: {info['time_left_s']}")
    check_equal(info["scheduler"], "slurm", "scheduler")
    check(info["why"]["hosts"], "no reason is given for the hosts")


@scenario
def a_host_outside_the_allocation_is_refused(context):
    """A hostfile with a host that the job does not have is a one-line error that names it."""
    listed = f"(scontrol show hostnames; echo nid009999) > {context.dir}/hosts.txt"
    job = SlurmJob(context, before=listed, flags=["--hostfile", context.dir / "hosts.txt"])
    check_equal(job.wait(), 2, "return code")
    check_equal(len(job.stderr().splitlines()), 1, f"lines on stderr:\n{job.stderr()}")
    check("nid009999" in job.stderr(), f"the host is not named: {job.stderr()}")
    check_equal(job.receipts(1), {}, "ranks that started")


def seconds(iso):
    """The journal's time as seconds since the epoch."""
    return datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()


class _DiskContext:
    """What FrozenMount needs of a context, for the one made before the lab."""

    def __init__(self, folder):
        self.dir = folder
        self.actions = []

    def at_end(self, action):
        self.actions.append(action)


@contextlib.contextmanager
def lab_around(options):
    """The disk first, then the lab that sees it; down in the opposite order. The binaries are copied
    to where all nodes see them."""
    global disk
    options.jobs = 1
    binaries = options.base / "bin"
    binaries.mkdir()
    options.ezpz = Path(shutil.copy(options.ezpz, binaries))
    options.toy = Path(shutil.copy(options.toy, binaries))
    folder = options.base / "shared-disk"
    folder.mkdir()
    holder = _DiskContext(folder)
    disk = faults.FrozenMount(holder)
    try:
        with Lab() as lab:
            options.lab = lab
            yield
    finally:
        for action in holder.actions:
            action()
        (folder / "disk").rmdir()
        (folder / "disk.img").unlink()
        folder.rmdir()
        shutil.rmtree(binaries)


if __name__ == "__main__":
    ok, reason = Lab.available()
    sys.exit(main("slurm", base=BASE, around=lab_around) if ok else skip_all("slurm", reason))
