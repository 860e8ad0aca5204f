#!/usr/bin/python3
"""A PBS job, imitated (pbs_job.py). Ranks run on the local launcher. No root."""

import json
import signal
import socket
import sys
import time

import faults
from checks import check_end, check_faults, check_losses, check_nobody_blamed, check_success
from harness import check, check_equal, main, scenario, wait_until
from pbs_job import COOKIE, FAKES, HOSTS, SERVER, Pbs
from training import CHECKPOINT_EVERY

# ---- discovery


@scenario
def a_job_is_found_with_everything_about_it(context):
    """In a PBS job `ezpz info` tells its hosts (each once, in PBS's order), its end, that it outlives
    a node, the machine by its server's name; and why for each."""
    hosts = ("h3", "h1", "h4", "h2")
    pbs = Pbs(context, hosts=hosts)
    info = pbs.info()
    check_equal((info["scheduler"], info["job_id"]), ("pbs", pbs.job_id), "scheduler and job")
    check_equal(info["hosts"], list(hosts), "hosts")
    check_equal((info["job_state"], info["no_kill"]), ("R", True), "state and tolerance")
    check(2990 <= info["time_left_s"] <= 3000, f"time left: {info['time_left_s']}")
    check_equal((info["cluster"], info["machine"]), (SERVER, "aurora"), "server and machine")
    check_equal((info["unfit_hosts"], info["running_jobs"]), ({}, ["7"]), "unfit hosts and running jobs")
    check_equal(info["trouble"], [], "trouble")
    why = info["why"]
    check_equal((why["hosts"], why["scheduler"]), ("PBS_NODEFILE", "PBS_JOBID is set"), "why")
    check("time zone" in why["end_time"], f"the end is not said to rest on the zone: {why['end_time']}")
    text = pbs.run("info")
    check("h[3,1,4,2]" in text and "Aurora" not in text.split("machine")[0], text)


@scenario
def a_job_array_and_a_long_walltime_are_understood(context):
    """`123[4].server` is a job, and 36:00:00 a day and a half."""
    pbs = Pbs(context, job_id="123[4].vm", walltime="36:00:00", server="vm")
    info = pbs.info()
    check_equal((info["job_id"], info["cluster"]), ("123[4].vm", "vm"), "job and server")
    check(36 * 3600 - 620 <= info["time_left_s"] <= 36 * 3600 - 600, f"time left: {info['time_left_s']}")


@scenario
def hosts_come_from_qstat_where_the_node_file_is_gone(context):
    """Without its node file the hosts are those of exec_host, and the missing file is said."""
    pbs = Pbs(context)
    pbs.node_file.unlink()
    info = pbs.info()
    check_equal(info["hosts"], list(HOSTS), "hosts")
    check("nodefile" in "".join(info["trouble"]), f"trouble: {info['trouble']}")
    check_equal(info["why"]["hosts"], "qstat -f -F json", "why")


@scenario
def a_server_that_stumbles_is_asked_again(context):
    """Two answers of `cannot connect to server` cost a second, and nothing else."""
    pbs = Pbs(context, unreachable=2)
    info = pbs.info()
    check_equal(json.loads(pbs.path.read_text())["unreachable"], 0, "failures left")
    check_equal(pbs.asked()[:3], ["qstat -u tester"] * 3, "the first questions")
    check_equal((info["trouble"], info["job_state"]), ([], "R"), "trouble and state")


@scenario
def a_server_that_is_gone_costs_answers_not_the_launch(context):
    """When the server cannot be reached the hosts are still known, the trouble is said with how often
    it was asked, and it is not asked everything else."""
    pbs = Pbs(context, unreachable=True)
    begun = time.monotonic()
    info = pbs.info()
    check(time.monotonic() - begun < 8, "it took too long")
    check_equal((info["hosts"], info["job_state"], info["time_left_s"]), (list(HOSTS), None, None), "answers")
    check_equal(len(info["trouble"]), 1, f"lines of trouble ({info['trouble']})")
    check("asked 3 times" in info["trouble"][0], f"trouble: {info['trouble']}")
    check_equal(len(pbs.asked()), 3, "questions")


@scenario
def a_server_that_hangs_is_not_awaited_twice(context):
    """A qstat that never answers is ended after its time, and nothing else is asked."""
    pbs = Pbs(context, hang=True)
    begun = time.monotonic()
    info = pbs.info()
    check(time.monotonic() - begun < 8, "it took too long")
    check_equal((info["hosts"], len(info["trouble"])), (list(HOSTS), 1), "hosts and trouble")


@scenario
def json_that_a_variable_breaks_is_read_as_text(context):
    """A quote in the user's own variables makes qstat's JSON invalid: its text is read instead."""
    pbs = Pbs(context, broken_json=True)
    info = pbs.info()
    check_equal((info["job_state"], info["no_kill"]), ("R", True), "state and tolerance")
    check(2990 <= info["time_left_s"] <= 3000, f"time left: {info['time_left_s']}")
    check_equal(info["why"]["job_state"], "qstat -f -w", "why")
    check("no valid JSON" in "".join(info["trouble"]), f"trouble: {info['trouble']}")


@scenario
def a_dead_mom_is_shown_though_the_job_lists_it(context):
    """A node that only pbsnodes calls down stays among the job's hosts and is named as unfit; so is
    one that was taken offline."""
    pbs = Pbs(context, states={"h2": "job-busy,down", "h4": "offline,job-busy", "h9": "down"})
    info = pbs.info()
    check_equal(info["hosts"], list(HOSTS), "hosts")
    check_equal(info["unfit_hosts"], {"h2": "job-busy,down", "h4": "offline,job-busy"}, "unfit hosts")


@scenario
def an_answer_that_breaks_off_is_not_taken_for_whole(context):
    """Of a pbsnodes answer that ends in the middle the nodes before it count, and the rest is said to
    be unknown."""
    pbs = Pbs(context, states={"h1": "down"}, broken_nodes="h3")
    info = pbs.info()
    check_equal(info["unfit_hosts"], {"h1": "down"}, "unfit hosts")
    check("2 of 4" in "".join(info["trouble"]), f"trouble: {info['trouble']}")


@scenario
def a_job_that_is_over_is_still_found(context):
    """In a shell that outlived its job the state is F, which is finished and not SLURM's failed."""
    pbs = Pbs(context, job={"job_state": "F"})
    info = pbs.info()
    check_equal((info["job_state"], info["why"]["job_state"]), ("F", "qstat -x -f -w"), "state and why")


@scenario
def outside_a_job_the_users_running_jobs_are_listed(context):
    """On a login node the scheduler is known by its commands, and the running jobs by their numbers."""
    pbs = Pbs(context)
    pbs.change(jobs={**pbs.world["jobs"], f"8.{SERVER}": {"Job_Owner": "tester@x", "job_state": "Q"},
                     f"9.{SERVER}": {"Job_Owner": "other@x", "job_state": "R"}})
    info = pbs.info(in_job=False, PATH=str(FAKES))  # no other scheduler's commands
    check_equal((info["scheduler"], info["job_id"]), ("pbs", None), "scheduler and job")
    check_equal(info["running_jobs"], ["7"], "running jobs")
    check("qstat and pbsnodes" in info["why"]["scheduler"], f"why: {info['why']['scheduler']}")


@scenario
def a_dry_run_tells_the_plan_and_no_secret(context):
    """--dry-run in a PBS job plans on the node file's hosts, each once, and prints no cookie."""
    pbs = Pbs(context)
    words = ["launch", "--dry-run", "--json", "--launcher", "local", "--hostfile", pbs.node_file, "--nhosts", 2]
    plan = json.loads(pbs.run(*words, "--ppn", 2, "--", "true"))
    check_equal(plan["hosts"], ["h1", "h2"], "hosts")
    check_equal(plan["placement"], {"h1": "0-1", "h2": "2-3"}, "ranks")
    pbs.run(*[word for word in words if word != "--json"], "--ppn", 2, "--", "true")


# ---- a run in it


def warned(job):
    return "tolerate_node_failures=all" in job.stderr()


@scenario
def a_job_that_dies_with_a_node_is_told_so_at_the_start(context):
    """Submitted without -W tolerate_node_failures=all a job ends with its first lost node: said."""
    pbs = Pbs(context, job={"tolerate_node_failures": None})
    job = pbs.launch(steps=4)
    check_success(job, attempts=1)
    check(warned(job), f"nothing was said: {job.stderr()}")


@scenario
def a_job_that_outlives_its_nodes_is_told_nothing(context):
    """With it there is nothing to say."""
    job = Pbs(context).launch(steps=4)
    check_success(job, attempts=1)
    check(not warned(job), f"it was said: {job.stderr()}")
    check_nobody_blamed(job)
    check(COOKIE not in job.journal_text() + job.stderr(), "the job's cookie was written down")


@scenario
def a_spare_with_a_dead_mom_is_never_used(context):
    """When active[1] dies, the first spare, which only pbsnodes calls down, is skipped."""
    pbs = Pbs(context, states={"h3": "down"})
    job = pbs.launch()
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "h2").prove([2, 3])
    check_success(job, attempts=2)
    check_equal(sorted(job.bad_hosts()), [("h2", "scraped"), ("h3", "scheduler")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), ["h1", "h4"], "hosts used by attempt 2")
    check_losses(context, job)


@scenario
def a_dead_mom_convicts_the_host_that_a_bare_exit_would_not(context):
    """Two ranks end with a code that says nothing; pbsnodes calls their node down: it is swapped, on
    the scheduler's word."""
    pbs = Pbs(context, states={"h2": "job-busy,down"})
    job = pbs.launch("--exit-at-step", 6, "--exit-rank", 2, "--exit-on-attempt", 1)
    check_faults(job, "exit", 1, [2])
    check_success(job, attempts=2)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.bad_hosts(), [("h2", "scheduler")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), ["h1", "h3"], "hosts used by attempt 2")


@scenario
def a_restarted_server_convicts_nobody(context):
    """A server that calls every node down, the one that asks among them, has only forgotten: a host
    is swapped for what the output says, and the spares stay usable."""
    here = socket.gethostname()
    everyone = {host: "state-unknown,down" for host in (*HOSTS, here)}
    pbs = Pbs(context, states=everyone)
    job = pbs.launch()
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "h2").prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.bad_hosts(), [("h2", "scraped")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), ["h1", "h3"], "hosts used by attempt 2")
    check("not believed" in job.journal_text(), "the journal does not say why")


@scenario
def a_server_that_goes_away_in_the_run_stops_nothing(context):
    """The server is gone when a node dies: the swap is made, and the record says what was unknown."""
    pbs = Pbs(context)
    job = pbs.launch()
    job.wait_step(CHECKPOINT_EVERY + 1)
    pbs.change(unreachable=True)
    faults.kill_node(job, "h2").prove([2, 3])
    check_success(job, attempts=2)
    check_equal(job.bad_hosts(), [("h2", "scraped")], "bad_nodes.txt")
    unknown = [c["what"] for c in job.contexts("unknown")]
    check("scheduler" in unknown and "spare states" in unknown, f"recorded as unknown: {unknown}")


@scenario
def no_relaunch_into_the_last_seconds(context):
    """With the job's end nearer than a restart and a checkpoint nothing is started again, also when
    the server does not answer any more: what it said at the start holds."""
    pbs = Pbs(context, started_s=time.time(), walltime="00:00:05")
    job = pbs.launch(step_ms=600)
    job.wait_step(CHECKPOINT_EVERY + 1)
    pbs.change(unreachable=True)
    faults.kill_node(job, "h2").prove([2, 3])
    check_end(job, "walltime_near", attempts=1)


@scenario
def a_sigterm_at_the_jobs_end_is_walltime(context):
    """PBS ends a job that had its time by SIGTERM, without a word on the job's own output and in state
    R: the clock says what it is, at once and not when the last rank has gone."""
    pbs = Pbs(context, started_s=time.time(), walltime="00:00:04")
    job = pbs.launch("--ignore-term", steps=1000, flags=["--grace", 3])
    job.wait_step(2)
    time.sleep(4)
    job.signal(signal.SIGTERM)
    wait_until("the last line", lambda: "FAILOVER STOP: walltime" in job.stderr(), 2)
    check_equal(job.returncode(), None, "return code while ranks ignore the signal")
    check_equal(job.wait(40), 143, "return code")
    check_equal(job.stop_reason(), "walltime", "stop reason")


@scenario
def a_sigterm_before_the_jobs_end_is_a_cancel(context):
    """The same signal with time left is somebody's wish."""
    job = Pbs(context).launch(steps=1000)
    job.wait_step(2)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(40), 143, "return code")
    check_equal(job.stop_reason(), "cancelled", "stop reason")


if __name__ == "__main__":
    sys.exit(main("pbs"))
