#!/usr/bin/python3
"""The main job on the local launcher: nodes are sessions of processes on this machine. Seconds, no
root (what needs it is skipped and counted)."""

import re
import signal
import sys
import time

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
from harness import check, check_equal, main, scenario, wait_until
from training import CHECKPOINT_EVERY, launch, plain_launch

TERM, USR1 = signal.SIGTERM, signal.SIGUSR1


# ---- nothing wrong


@scenario
def a_job_without_trouble_takes_one_attempt(context):
    """With no fault there is one attempt, the stop reason is success, and no host is blamed."""
    job = launch(context)
    check_success(job, attempts=1)
    check_losses(context, job)
    check_nobody_blamed(job)
    check_equal(job.hosts_used(1), ["sim1", "sim2"], "hosts used")
    check_equal(job.active(), ["sim1", "sim2"], "active.hostfile")


@scenario
def the_attempt_log_holds_the_output_byte_for_byte(context):
    """Junk, NUL and half characters reach the terminal and attempt-1.log unchanged."""
    job = launch(context, "--print-junk")
    check_success(job, attempts=1)
    log = job.attempt_log(1)
    check(b"\xff\xfe\x80 not text" in log and b"nul \0 nul\n" in log, "the junk is not in the log")
    step = b"\x1b[1mst\x1b[0mep=\x1b[36m14\x1b[0m lo\x1b[31mss\x1b[0m="
    check(step in log, "the coloured step line is not in the log")
    check(job.stdout() == log, "the terminal and attempt-1.log differ")


@scenario
def a_plain_launch_gives_the_programs_own_code(context):
    """Without --auto-retry there is one try, and ezpz returns what the program returned."""
    job = plain_launch(context, "--exit-at-step", 3, "--exit-code", 7, "--exit-rank", 2)
    check_faults(job, "exit", 1, [2])
    check_equal(job.wait(), 7, "return code")
    check_equal(job.receipts(2), {}, "ranks of a second attempt")


@scenario
def a_plain_launch_reports_a_signal_as_a_shell_does(context):
    """Without --auto-retry a program that dies of SIGSEGV makes ezpz return 139."""
    job = plain_launch(context, "--segv-at-step", 3, "--fault-rank", 1)
    check_faults(job, "segv", 1, [1])
    check_equal(job.wait(), 128 + signal.SIGSEGV, "return code")


@scenario
def plain_retries_repeat_on_the_same_hosts(context):
    """--retries 1 runs a failed program a second time, and then gives its success."""
    job = plain_launch(context, "--exit-at-step", 3, "--exit-rank", 2, "--exit-on-attempt", 1, flags=["--retries", 1])
    check_faults(job, "exit", 1, [2])
    check_equal(job.wait(), 0, "return code")
    check_equal(job.hosts_used(2), ["sim1", "sim2"], "hosts used by the second try")


@scenario
def a_dry_run_prints_the_plan_and_runs_nothing(context):
    """--dry-run prints the exact command with its ranks and starts no rank."""
    job = launch(context, flags=["--dry-run"])
    check_equal(job.wait(), 0, "return code")
    check(str(context.toy).encode() in job.stdout(), "the command is not in what was printed")
    check_equal(job.receipts(1), {}, "ranks that started")


# ---- a node dies


def swap_after(context, break_it, node="sim2", spare="sim3", keeps="sim1", **how):
    """Breaks `node` after its first checkpoint: the spare takes its place and the run goes on."""
    job = launch(context, **how)
    job.wait_step(CHECKPOINT_EVERY + 1)
    fault = break_it(job, node)
    fault.prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.bad_hosts(), [(node, "scraped")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), [keeps, spare], "hosts used by attempt 2")
    check_equal(job.active(), [keeps, spare], "active.hostfile")
    check_resumed(job, 2)
    check_losses(context, job)
    return job, fault


@scenario
def a_dead_node_is_named_and_a_spare_takes_its_place(context):
    """When everything on active[1] dies, that node is retired on evidence, the first spare takes its
    place, and the run resumes from its checkpoint to the result of an unbroken one."""
    job, _ = swap_after(context, faults.kill_node)
    fields = job.bad_nodes()[0][2]
    check_equal((fields["attempt"], fields["verdict"]), ("1", "node_failure"), "why, in bad_nodes.txt")


@scenario
def a_node_whose_ranks_all_die_is_named(context):
    """SIGKILL to all ranks of active[1], its node process surviving, is a node failure as well."""
    swap_after(context, faults.kill_ranks)


@scenario
def a_relaunch_after_a_conviction_does_not_wait(context):
    """With a host convicted there is no backoff: the next attempt's ranks start within 3 s."""
    job = launch(context)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    killed_s = time.time()
    check_success(job, attempts=2)
    delay_s = job.receipts(2)[0].start["time"] - killed_s
    check(0 < delay_s < 3, f"attempt 2 began {delay_s:.1f} s after the kill")


@scenario
def the_first_node_can_die_too(context):
    """When active[0] dies rank 0 moves to another host, and the ranks still meet."""
    job = launch(context)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim1").prove([0, 1])
    check_success(job, attempts=2)
    check_equal(job.bad_hosts(), [("sim1", "scraped")], "bad_nodes.txt")
    check_equal(sorted(job.hosts_used(2)), ["sim2", "sim3"], "hosts used by attempt 2")
    check_losses(context, job)


@scenario
def the_right_host_is_blamed_after_the_ranks_moved(context):
    """With a spare that sorts before the active hosts the rank-to-host plan still holds: a second
    death blames the host it happened on, not the one that had those ranks before."""
    job = launch(context, nodes=("zeta", "yak", "alpha", "beta"), steps=24)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "zeta").prove([0, 1])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2)
    victim = job.receipts(2)[0].host
    faults.kill_node(job, victim, attempt=2).prove([0, 1])
    check_success(job, attempts=3)
    check_equal(job.bad_hosts(), [("zeta", "scraped"), (victim, "scraped")], "bad_nodes.txt")
    check(victim not in job.hosts_used(3) and "zeta" not in job.hosts_used(3), "a retired host was used again")


@scenario
def more_faults_than_spares_end_as_exhausted(context):
    """When the spares are gone the next lost node stops the job as exhausted, with every loss recorded."""
    job = launch(context, nodes=("sim1", "sim2", "sim3"), steps=40)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2)
    faults.kill_node(job, "sim3", attempt=2).prove([2, 3])
    check_end(job, "exhausted", attempts=2)
    check_equal(job.bad_hosts()[0], ("sim2", "scraped"), "the first host of bad_nodes.txt")
    check_equal(job.culprits(2), ["sim3"], "whom the verdict on attempt 2 names")


@scenario
def a_job_may_shrink_when_it_was_allowed_to(context):
    """With --min-nodes 1 and no spare left the job goes on without the lost host."""
    job = launch(context, nodes=("sim1", "sim2"), flags=["--min-nodes", 1])
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(2), ["sim1"], "hosts used by attempt 2")
    check_equal(sorted(job.receipts(2)), [0, 1], "ranks of attempt 2")


@scenario
def relaunches_are_bounded(context):
    """--max-failover-retries 1 allows one relaunch, whatever spares are left."""
    job = launch(context, steps=40, flags=["--max-failover-retries", 1])
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2)
    faults.kill_node(job, "sim3", attempt=2).prove([2, 3])
    check_end(job, "max_retries", attempts=2)


@scenario
def junk_in_the_output_hides_neither_progress_nor_death(context):
    """Colour inside words, NUL, broken UTF-8 and progress bars do not keep the loop from seeing steps
    and naming the dead node."""
    job = launch(context, "--print-junk")
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.bad_hosts(), [("sim2", "scraped")], "bad_nodes.txt")


@scenario
def only_the_hosts_of_the_hostfile_are_used(context):
    """A hostfile that names two hosts is the whole pool: no third is ever used, even for a swap."""
    job = launch(context, nodes=("sim7", "sim9"), active=1, steps=24)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim7").prove([0, 1])
    check_success(job, attempts=2)
    check_equal([job.hosts_used(n) for n in (1, 2)], [["sim7"], ["sim9"]], "hosts used")


@scenario(root="it freezes a filesystem to make a rank unkillable")
def a_host_with_an_unkillable_rank_is_not_used_again(context):
    """A surviving rank in D state cannot be cleared away: its host is retired as unkillable, and
    attempt 2 does not start beside it."""
    disk = faults.FrozenMount(context)
    job = launch(context, "--write-file", disk.path / "data", "--write-rank", 0, "--write-on-attempt", 1)
    job.wait_step(CHECKPOINT_EVERY + 1)
    writer = job.receipts(1)[0].start
    disk.freeze()
    faults.await_unkillable(writer["pid"])
    faults.kill_node(job, "sim2").prove([2, 3])
    check_equal(faults.state_of(writer["pid"]), "D", "state of the rank on the frozen mount")
    code = job.wait(60)
    check_equal(faults.state_of(writer["pid"]), "D", "state of that rank at the end")
    disk.thaw()
    check_equal(code, 0, "return code")
    check_equal(job.stop_reason(), "success", "stop reason")
    check_equal(sorted(job.bad_hosts()), [("sim1", "unkillable"), ("sim2", "scraped")], "bad_nodes.txt")
    check_equal(sorted(job.hosts_used(2)), ["sim3", "sim4"], "hosts used by attempt 2")


# ---- the program's own fault


@scenario
def a_program_that_never_starts_costs_no_spare(context):
    """Exit 1 before the first step, twice: stuck_pre_training, and no host is blamed for it."""
    job = launch(context, "--exit-before-first-step", 1)
    for attempt in (1, 2):
        check_some_fault(job, "exit_before_first_step", attempt)
    check_end(job, "stuck_pre_training", attempts=2)
    check_nobody_blamed(job)


@scenario
def a_crash_after_progress_is_retried_on_the_same_hosts(context):
    """A program that made steps before it failed is worth another attempt, and no spare."""
    job = launch(context, "--exit-at-step", 7, "--exit-rank", 3, "--exit-on-attempt", 1)
    check_faults(job, "exit", 1, [3])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(2), ["sim1", "sim2"], "hosts used by attempt 2")
    check_resumed(job, 2)
    check_nobody_blamed(job)
    check_losses(context, job)


@scenario
def a_segfault_after_progress_blames_no_host(context):
    """SIGSEGV of one rank is the program's own: retried in place."""
    job = launch(context, "--segv-at-step", 7, "--fault-rank", 2, "--fault-on-attempt", 1)
    check_faults(job, "segv", 1, [2])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(2), ["sim1", "sim2"], "hosts used by attempt 2")
    check_nobody_blamed(job)


@scenario
def the_same_crash_at_the_same_step_stops_at_the_second_time(context):
    """A crash at one step after every resume is the program's: stuck_at_step, no spare spent."""
    job = launch(context, "--exit-at-step", 7, "--exit-rank", 3)
    for attempt in (1, 2):
        check_faults(job, "exit", attempt, [3])
    check_end(job, "stuck_at_step", attempts=2)
    check_nobody_blamed(job)


@scenario
def the_same_seat_dying_on_two_hosts_clears_the_first(context):
    """Rank 1 dies on sim2 and then, at the same step, on its replacement: that is the program,
    the job stops, and the record calls the first retirement doubtful."""
    job = launch(context, "--kill-self-at-step", 7, "--fault-rank", 1, ppn=1)
    for attempt in (1, 2):
        check_faults(job, "kill_self", attempt, [1])
    check_end(job, "same_seat", attempts=2)
    check_equal([job.hosts_used(n)[1] for n in (1, 2)], ["sim2", "sim3"], "the seat's hosts")
    check_equal([c["host"] for c in job.contexts("doubtful")], ["sim2"], "whom the journal calls doubtful")
    check_equal(job.doubtful(), ["sim2"], "whom bad_nodes.txt calls doubtful")
    check("sim3" not in [host for host, _ in job.bad_hosts()], "the second host was retired, too")


# ---- silence

# Each attempt dies at another step, as a sick host's do: the same step twice would be the program's.
SICK_SIM2 = ("--hang-at-step", "10,6,3", "--fault-on-host", "sim2")


@scenario
def silence_alone_convicts_nobody(context):
    """A hang without any evidence, with --blind never: the watchdog ends the attempt, probes find
    nothing, and the job stops without a host in bad_nodes.txt."""
    job = launch(context, *SICK_SIM2, checkpoint=None, flags=["--timeout", 1, "--blind", "never"])
    check_faults(job, "hang", 1, [2, 3])
    check_end(job, "no_evidence")
    check("hang" in job.verdicts(), f"no verdict is hang: {job.verdicts()}")
    check_nobody_blamed(job)


@scenario
def a_blind_swap_is_recorded_as_one(context):
    """A hang that comes back is answered by a guess when that is allowed, and the record says so: the
    host is benched as blind, never as scraped or probed."""
    job = launch(context, *SICK_SIM2, checkpoint=None, flags=["--timeout", 1])
    for attempt in (1, 2):
        check_faults(job, "hang", attempt, [2, 3])
    provenances = {provenance for _, provenance in job.bad_hosts()}
    check_equal(provenances, {"blind"}, "provenances in bad_nodes.txt")
    check_success(job, attempts=3)
    check("sim2" not in job.hosts_used(3), "the sick host is still in use")


@scenario
def steady_output_keeps_the_watchdog_quiet(context):
    """An idle limit longer than a step never ends a job that goes on printing."""
    job = launch(context, step_ms=250, steps=10, flags=["--timeout", 1])
    check_success(job, attempts=1)


# ---- somebody stops it


@scenario
def sigterm_lets_the_ranks_checkpoint(context):
    """SIGTERM to ezpz reaches the ranks, a checkpoint of the step they were at lands, and the end is
    cancelled, not success."""
    job = launch(context, steps=400)
    job.wait_step(CHECKPOINT_EVERY + 2)
    job.signal(TERM)
    code = job.wait()
    check_ranks_saw(job, TERM)
    check(code != 0, "a stopped job must not return 0")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_equal(job.saved()[-1], job.steps()[-1][0], "step of the last checkpoint")
    check_equal(job.attempts(), 1, "attempts")
    check_nobody_blamed(job)


@scenario
def sighup_is_a_graceful_stop_too(context):
    """A lost terminal (SIGHUP) stops the job in order, as SIGTERM does."""
    job = launch(context, steps=400)
    job.wait_step(CHECKPOINT_EVERY + 2)
    job.signal(signal.SIGHUP)
    check_end(job, "cancelled")
    check_ranks_saw(job, TERM)


@scenario
def ctrl_c_ends_with_130_and_a_whole_record(context):
    """Ctrl-C: the ranks are stopped in order, ezpz returns 130, the journal ends with the stop, and no
    process is left."""
    job = launch(context, steps=400)
    job.wait_step(CHECKPOINT_EVERY + 2)
    job.ctrl_c()
    check_equal(job.wait(), 130, "return code")
    check_ranks_saw(job, TERM)
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check(job.journal_text().endswith("\n"), "the journal's last line is torn")
    check("cancelled" in str(job.journal()[-1]), f"the journal does not end with the stop: {job.journal()[-1]}")
    check_equal(job.processes(), [], "ranks left")


@scenario
def a_second_ctrl_c_does_not_wait_for_the_grace(context):
    """Ranks that ignore SIGTERM are ended at once by a second Ctrl-C, long before the grace is over."""
    job = launch(context, "--ignore-term", steps=400)
    job.wait_step(CHECKPOINT_EVERY + 1)
    job.ctrl_c()
    saw_term = lambda: all(TERM in r.signals() for r in job.receipts(1).values())
    wait_until("the ranks to see SIGTERM", saw_term, 10)
    check(job.processes(), "the ranks did not ignore SIGTERM: the fault was not there")
    second_s = time.monotonic()
    job.ctrl_c()
    check_equal(job.wait(10), 130, "return code")
    check(time.monotonic() - second_s < 4, "the second Ctrl-C waited")


@scenario
def nothing_outlives_a_killed_ezpz(context):
    """SIGKILL to ezpz: its ranks are gone within 10 s, even those that ignore SIGTERM."""
    job = launch(context, "--ignore-term", steps=4000)
    job.wait_step(CHECKPOINT_EVERY + 1)
    check_equal(len(job.processes()), 4, "ranks before the kill")
    faults.kill_ezpz(job)
    check_equal(job.wait(), -signal.SIGKILL, "ezpz's end")
    wait_until("all processes to be gone", lambda: not context.processes(), 10)


@scenario
def usr1_reaches_the_ranks_and_ends_nothing(context):
    """SIGUSR1 is for the program: every rank gets it, and the job runs on to its end."""
    job = launch(context, steps=30)
    job.wait_step(CHECKPOINT_EVERY)
    job.signal(USR1)
    check_success(job, attempts=1)
    check_ranks_saw(job, USR1)


@scenario
def two_jobs_side_by_side_keep_to_themselves(context):
    """Two launches that share a log directory have folders and ports of their own."""
    jobs = [launch(context, receipts=name, checkpoint=f"checkpoint-{name}") for name in ("r1", "r2")]
    for job, name in zip(jobs, ("r1", "r2")):
        job.receipts_dir = context.dir / name
        check_equal(job.wait(), 0, "return code")
    folders = sorted((context.dir / "logs").glob("failover-*"))
    check_equal(len(folders), 2, "folders")
    ports = {job.receipts(1)[0].start["master_port"] for job in jobs}
    check_equal(len(ports), 2, "ports")


@scenario
def a_rank_sees_what_an_env_program_reads(context):
    """Ranks get RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT and
    EZPZ_NODE, consistent with each other; nodes are sessions."""
    show = 'echo "R $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR $MASTER_PORT $EZPZ_NODE"'
    job = launch(context, command=["/bin/sh", "-c", show])
    check_equal(job.wait(), 0, "return code")
    lines = sorted(re.findall(r"^R (.*)$", job.stdout().decode(), re.M))
    port = lines[0].split()[-2]
    expected = [
        f"{rank} {rank % 2} 4 2 {rank // 2} 127.0.0.1 {port} sim{rank // 2 + 1}" for rank in range(4)
    ]
    check_equal(lines, expected, "the ranks' environment")


if __name__ == "__main__":
    sys.exit(main("local"))
