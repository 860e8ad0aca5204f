#!/usr/bin/python3
"""The main job under real mpiexecs, MPICH's Hydra and Open MPI, on hosts that are namespaces of this
machine and are reached by an rsh of their own. Needs root and both packages; without them every
scenario is skipped and counted."""

import contextlib
import shutil
import signal
import sys
import threading
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
from harness import RUN_MARK, check, check_equal, main, scenario, skip_all, wait_until
from mpi_job import Hydra, MpiJob, OpenMpi, command_lines, kill_host, kill_rank, pull_cable
from training import CHECKPOINT_EVERY

from hosts import Hosts

BASE = Path("/var/tmp")  # hosts have a /tmp of their own; this they share
NAMES = ("nid000001", "nid000002", "nid000003", "nid000004")
FIRST_WAIT_S = 30
IDLE_S = 4


def both(function):
    """One scenario for each mpiexec."""
    for mpi in (Hydra, OpenMpi):

        def run(context, mpi=mpi):
            take_hosts(context, mpi)
            function(context, mpi)

        run.__name__ = f"{mpi.name}_{function.__name__}"
        run.__doc__ = f"{mpi.program}: {function.__doc__}"
        scenario(run)
    return function


def take_hosts(context, mpi):
    context.lab = context.lab[mpi.name]
    context.lab.taken.acquire()
    context.at_end(context.lab.taken.release)


def check_rendezvous(job, attempt):
    """MASTER_ADDR of every rank is the host that rank 0 really runs on."""
    receipts = job.receipts(attempt)
    addresses = {receipt.start["master_addr"] for receipt in receipts.values()}
    check_equal(addresses, {receipts[0].start["hostname"]}, f"MASTER_ADDR of attempt {attempt}")


def started(context, mpi, *toy_flags, **how):
    """The job, with a checkpoint behind it."""
    job = MpiJob(context, mpi, *toy_flags, **how)
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=FIRST_WAIT_S)
    return job


def check_hosts_empty(context, timeout_s=5):
    def empty():
        return not any(context.lab.pids_on(name) for name in NAMES)

    wait_until("every process on the hosts to be gone", empty, timeout_s)


# ---- nothing wrong


@both
def trains_to_the_end(context, mpi):
    """The job takes one attempt, ranks sit where the plan says, nothing stays on the hosts."""
    job = MpiJob(context, mpi)
    check_success(job, attempts=1)
    check_equal(job.hosts_used(1), list(NAMES[:2]), "hosts used")
    places = {rank: receipt.start["hostname"] for rank, receipt in job.receipts(1).items()}
    check_equal(places, {0: NAMES[0], 1: NAMES[0], 2: NAMES[1], 3: NAMES[1]}, "where the ranks ran")
    check_rendezvous(job, 1)
    check_losses(context, job)
    check_nobody_blamed(job)
    check_hosts_empty(context)


@both
def uneven_ranks_run_as_planned(context, mpi):
    """Six ranks over four hosts are 2, 2, 1, 1, and each knows which host is its own."""
    show = ["/bin/sh", "-c", "echo AT=$RANK/$WORLD_SIZE:$EZPZ_NODE:$NODE_RANK:$LOCAL_RANK/$LOCAL_WORLD_SIZE"]
    how = {"active": 4, "ppn": None, "flags": ["-n", 6], "command": show}
    for plain in (True, False):  # hosts on the command line, hosts in a file
        job = MpiJob(context, mpi, plain=plain, **how)
        check_equal(job.wait(), 0, f"return code; {job.stderr()}")
        seen = sorted(line[3:] for line in job.stdout().decode().splitlines() if line.startswith("AT="))
        at = [(0, 0, 0, 2), (1, 0, 1, 2), (2, 1, 0, 2), (3, 1, 1, 2), (4, 2, 0, 1), (5, 3, 0, 1)]
        wanted = [f"{rank}/6:{NAMES[node]}:{node}:{local}/{here}" for rank, node, local, here in at]
        check_equal(seen, wanted, "what the ranks say of themselves")


@both
def variables_reach_the_ranks_and_stay_off_command_lines(context, mpi):
    """What is named, set or of a known kind reaches ranks whole, lines and all; what belongs to this
    host does not; and no value is ever on a command line."""
    secret = "s3cr3t-" + "x" * 40_000 + "\nsecond line"
    script = f'started_by={mpi.name};' + 'echo "GOT=$RANK:${#MY_TOKEN}:$(echo "$MY_TOKEN" | tail -n 1):$SET_VALUE:$NCCL_TEST:$TMPDIR:$LEFT"; sleep 3'
    env = {"MY_TOKEN": secret, "NCCL_TEST": "tuned", "TMPDIR": "/nowhere", "LEFT": "behind"}
    flags = ["-x", "MY_TOKEN", "-x", "SET_VALUE=s3t"]
    job = MpiJob(context, mpi, plain=True, flags=flags, env=env, command=["/bin/bash", "-c", script])
    wait_until("all ranks to speak", lambda: job.stdout().count(b"GOT=") == 4, FIRST_WAIT_S)
    lines = command_lines()
    check(sum(f"started_by={mpi.name}" in line for line in lines) >= 4, "the ranks' command lines were not looked at")
    leaks = [line[:200] for line in lines if "s3cr3t" in line]
    check(not leaks, f"the secret is on command lines: {leaks}")
    own = [line for line in lines if "SET_VALUE=s3t" in line and str(context.ezpz) not in line.split(" ")[0]]
    check(not own, f"a value is on the launcher's command line: {own}")
    check_equal(job.wait(), 0, "return code")
    seen = sorted(line for line in job.stdout().decode().splitlines() if "GOT=" in line)
    wanted = [f"GOT={rank}:{len(secret)}:second line:s3t:tuned::" for rank in range(4)]
    check_equal(seen, wanted, "what the ranks got")


# ---- what dies


@both
def a_killed_rank_names_its_host_which_is_swapped(context, mpi):
    """SIGKILL to one rank: the launcher's own words name its host, a spare takes its place, and the job
    resumes from its checkpoint."""
    job = started(context, mpi)
    kill_rank(job, 2).prove([2])
    check_success(job, attempts=2)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.bad_hosts(), [(NAMES[1], "scraped")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), [NAMES[0], NAMES[2]], "hosts used by attempt 2")
    check_equal(job.active(), [NAMES[0], NAMES[2]], "active.hostfile")
    fences = job.contexts("fence")
    check(fences and all(fence["ran"] for fence in fences), f"the fence did not run: {fences}")
    check_resumed(job, 2)
    check_losses(context, job)
    check_rendezvous(job, 2)
    check_hosts_empty(context)


@both
def a_rank_that_exits_is_the_programs_matter(context, mpi):
    """A rank that exits 3 in each attempt is an error of the program: no host is convicted."""
    flags = ["--exit-at-step", "6", "--exit-code", "3", "--exit-rank", "2", "--on-peer-loss", "exit"]
    job = MpiJob(context, mpi, *flags)
    check_faults(job, "exit", 1, [2])
    check_equal(job.verdicts()[0], "app_error", "first verdict")
    check_equal(set(job.verdicts()), {"app_error"}, "verdicts")
    check(job.returncode() not in (0, None), f"return code {job.returncode()}")
    check(job.stop_reason().startswith("stuck"), f"stop reason {job.stop_reason()}")
    check_nobody_blamed(job)
    check_hosts_empty(context)


@both
def a_pulled_cable_is_a_hang_and_convicts_nobody(context, mpi):
    """The launcher prints nothing about a host that is cut off, so --timeout makes it a hang that
    convicts nobody. What takes the host out is that it cannot be reached: Open MPI says so to the probe,
    Hydra says nothing and the fence finds no answer."""
    job = started(context, mpi, flags=["--timeout", IDLE_S, "--grace", 1], steps=40)
    pull_cable(job, NAMES[1])
    said_before = len(job.attempt_log(1))
    job.wait(110)
    after = job.attempt_log(1)[said_before:]
    check(NAMES[1].encode() not in after, f"the launcher did name the host: {after!r}")
    check_equal(job.verdicts()[0], "hang", "first verdict")
    check_equal(job.culprits(1), [], "convicted for the hang")
    check_equal(job.bad_hosts(), [(NAMES[1], mpi.lost_host_is)], "bad_nodes.txt")
    check_success(job, attempts=2)
    check_losses(context, job, steps=40)


@both
def a_host_that_loses_power_is_replaced(context, mpi):
    """Everything on a host vanishes at once: the launcher loses its daemon there and ends the job, the
    host is taken out, and the spare runs its ranks."""
    job = started(context, mpi, steps=40, flags=["--timeout", 20, "--grace", 1])
    kill_host(job, NAMES[1])
    check_success(job, attempts=2, timeout_s=120)
    check_equal([host for host, _ in job.bad_hosts()], [NAMES[1]], "bad_nodes.txt")
    check_equal(job.hosts_used(2), [NAMES[0], NAMES[2]], "hosts used by attempt 2")
    check_resumed(job, 2)
    check_losses(context, job, steps=40)


@both
def more_faults_than_spares_end_as_exhausted(context, mpi):
    """When the only spare is spent, the next lost rank's host stops the job, and is named."""
    job = started(context, mpi, names=NAMES[:3], steps=60)
    kill_rank(job, 2).prove([2])
    job.wait_step(2 * CHECKPOINT_EVERY + 1, attempt=2, timeout_s=FIRST_WAIT_S)
    kill_rank(job, 2, attempt=2).prove([2])
    check_end(job, "exhausted", attempts=2)
    check_equal(job.bad_hosts()[0], (NAMES[1], "scraped"), "the first host of bad_nodes.txt")
    check_equal(job.culprits(2), [NAMES[2]], "whom the verdict on attempt 2 names")
    check_hosts_empty(context)


@both
def a_spare_that_is_cut_off_is_not_used(context, mpi):
    """A spare that nobody can reach is found before ranks are sent to it, and the next one is used."""
    job = started(context, mpi, steps=40)
    pull_cable(job, NAMES[2])
    kill_rank(job, 2).prove([2])
    check_success(job, attempts=2, timeout_s=150)
    check_equal(job.bad_hosts()[0], (NAMES[1], "scraped"), "the first host of bad_nodes.txt")
    check_equal(job.hosts_used(2), [NAMES[0], NAMES[3]], "hosts used by attempt 2")
    check(NAMES[2] in dict(job.bad_hosts()), f"the spare is not in bad_nodes.txt: {job.bad_hosts()}")
    check_losses(context, job, steps=40)


@both
def only_the_hosts_of_the_hostfile_are_used(context, mpi):
    """A hostfile that names three of four hosts is the whole pool, spares included."""
    job = started(context, mpi, names=NAMES[1:], steps=40)
    kill_rank(job, 2).prove([2])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(1), list(NAMES[1:3]), "hosts used by attempt 1")
    check_equal(job.hosts_used(2), [NAMES[1], NAMES[3]], "hosts used by attempt 2")


# ---- the program's own fault


@both
def a_program_that_never_starts_costs_no_spare(context, mpi):
    """Exit 1 before the first step, twice: stuck_pre_training, nobody blamed."""
    job = MpiJob(context, mpi, "--exit-before-first-step", 1)
    for attempt in (1, 2):
        check_some_fault(job, "exit_before_first_step", attempt)
    check_end(job, "stuck_pre_training", attempts=2)
    check_nobody_blamed(job)


@both
def a_crash_after_progress_is_retried_on_the_same_hosts(context, mpi):
    """A program that made steps before it failed gets another attempt on the same hosts."""
    flags = ("--exit-at-step", 7, "--exit-rank", 3, "--exit-on-attempt", 1, "--on-peer-loss", "exit")
    job = MpiJob(context, mpi, *flags)
    check_faults(job, "exit", 1, [3])
    check_success(job, attempts=2)
    check_equal(job.hosts_used(2), list(NAMES[:2]), "hosts used by attempt 2")
    check_resumed(job, 2)
    check_nobody_blamed(job)
    check_losses(context, job)


@both
def the_same_crash_at_the_same_step_stops_at_the_second_time(context, mpi):
    """A crash at one step after every resume: stuck_at_step, no spare spent."""
    job = MpiJob(context, mpi, "--exit-at-step", 7, "--exit-rank", 3, "--on-peer-loss", "exit")
    for attempt in (1, 2):
        check_faults(job, "exit", attempt, [3])
    check_end(job, "stuck_at_step", attempts=2)
    check_nobody_blamed(job)


@both
def the_same_seat_dying_on_two_hosts_clears_the_first(context, mpi):
    """Rank 1 dies on one host and then, at the same step, on its replacement: the job stops, and the
    first retirement is called doubtful."""
    job = MpiJob(context, mpi, "--kill-self-at-step", 7, "--fault-rank", 1, ppn=1)
    for attempt in (1, 2):
        check_faults(job, "kill_self", attempt, [1])
    check_equal([job.hosts_used(n)[1] for n in (1, 2)], list(NAMES[1:3]), "the seat's hosts")
    check_end(job, "same_seat", attempts=2)
    check_equal([c["host"] for c in job.contexts("doubtful")], [NAMES[1]], "whom the journal calls doubtful")
    check_equal(job.doubtful(), [NAMES[1]], "whom bad_nodes.txt calls doubtful")


# ---- silence

# Each attempt dies at another step, as a sick host's do: the same step twice would be the program's.
SICK_RANK_2 = ("--hang-at-step", "10,6,3", "--fault-rank", 2)


@both
def silence_alone_convicts_nobody(context, mpi):
    """A hang without evidence, with --blind never: the watchdog ends it, and nobody is retired."""
    job = MpiJob(context, mpi, *SICK_RANK_2, checkpoint=None, flags=["--timeout", 3, "--grace", 1, "--blind", "never"])
    check_faults(job, "hang", 1, [2])
    check_end(job, "no_evidence")
    check("hang" in job.verdicts(), f"no verdict is hang: {job.verdicts()}")
    check_nobody_blamed(job)


@scenario
def hydra_ranks_left_behind_by_an_error_are_not_awaited_for_long(context):
    """mpiexec.hydra: a rank that ends with a traceback ends no other. When the others then say nothing, a
    sixth of --timeout is enough, and the end is the program's error, not a hang."""
    take_hosts(context, Hydra)
    fails = "import os, time\nif os.environ['RANK'] == '2': raise ValueError('no such shape')\ntime.sleep(600)"
    job = MpiJob(context, Hydra, flags=["--timeout", 30, "--grace", 1], command=["/usr/bin/python3", "-c", fails])
    wait_until("the traceback", lambda: b"ValueError: no such shape" in job.stdout(), FIRST_WAIT_S)
    check_equal(len(job.processes()), 3, "ranks that live on")
    wait_until("the verdict", lambda: job.dir.exists() and job.verdicts(), 20)
    check_equal(job.verdicts()[0], "app_error", "first verdict")
    job.wait(60)
    check(job.stop_reason().startswith("stuck"), f"stop reason {job.stop_reason()}")
    check("after a rank's error" in job.stderr(), f"not said why it was ended:\n{job.stderr()}")
    check_nobody_blamed(job)
    check_hosts_empty(context)


@both
def a_blind_swap_is_recorded_as_one(context, mpi):
    """A hang that comes back is answered by a guess, recorded as blind and as nothing else."""
    job = MpiJob(context, mpi, *SICK_RANK_2, checkpoint=None, flags=["--timeout", 3, "--grace", 1])
    check_faults(job, "hang", 1, [2])
    check_faults(job, "hang", 2, [2])
    check_equal({provenance for _, provenance in job.bad_hosts()}, {"blind"}, "provenances in bad_nodes.txt")


# ---- stopping


@both
def ctrl_c_ends_with_130(context, mpi):
    """Ctrl-C: the ranks are asked to stop, 130, nothing left on the hosts, a whole journal."""
    job = started(context, mpi, steps=4000)
    job.ctrl_c()
    check_equal(job.wait(20), 130, "return code")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    if mpi is OpenMpi:  # Hydra ends all others when the first rank has died of its SIGTERM
        check_ranks_saw(job, signal.SIGTERM)
        check_equal(job.saved()[-1], job.steps()[-1][0], "step of the last checkpoint")
    check(job.journal_text().endswith("\n"), "the journal's last line is torn")
    check_hosts_empty(context)


@both
def sigterm_gives_every_rank_its_grace(context, mpi):
    """SIGTERM to ezpz reaches every rank as SIGTERM, once, and each has the time it needs to save, more
    than the two seconds that Open MPI itself would leave it."""
    script = 'trap "echo TERM=$RANK; sleep 3; echo SAVED=$RANK; exit 0" TERM; echo READY; while :; do sleep 0.1; done'
    job = MpiJob(context, mpi, command=["/bin/sh", "-c", script])
    wait_until("all ranks to start", lambda: job.stdout().count(b"READY") == 4, FIRST_WAIT_S)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(20), 143, "return code")
    # Open MPI may warn that its child was quicker than it ("setpgid ... errno=").
    said = sorted(line for line in job.stdout().decode().splitlines() if line.startswith(("SAVED=", "TERM=")))
    check_equal(said, [f"{word}={rank}" for word in ("SAVED", "TERM") for rank in range(4)], "what the ranks said")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_hosts_empty(context)


@both
def ranks_that_ignore_sigterm_are_ended(context, mpi):
    """Ranks that outlive SIGTERM are ended when the grace is over, on every host."""
    job = started(context, mpi, "--ignore-term", flags=["--grace", 1], steps=2000)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(20), 143, "return code")
    check_ranks_saw(job, signal.SIGTERM)
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_hosts_empty(context)


@both
def sigusr1_reaches_the_ranks(context, mpi):
    """SIGUSR1 to ezpz is passed on to every rank, and the job goes on."""
    job = started(context, mpi, steps=60)
    job.signal(signal.SIGUSR1)
    check_success(job, attempts=1)
    check_ranks_saw(job, signal.SIGUSR1)


@both
def nothing_outlives_a_killed_ezpz(context, mpi):
    """SIGKILL to ezpz: the launcher goes with it, and its ranks on the hosts with the launcher."""
    job = started(context, mpi, "--ignore-term", steps=2000)
    faults.kill_ezpz(job)
    check_hosts_empty(context, timeout_s=8)


@scenario
def auto_takes_the_mpiexec_that_is_installed(context):
    """--launcher auto, outside any job, starts the hosts of a file with the mpiexec in PATH, and says
    which one it is when another is asked for by name."""
    hostfile = context.dir / "hosts.txt"
    hostfile.write_text(f"{NAMES[0]}\n")
    folder = context.dir / "bin"
    folder.mkdir()
    for program in (Hydra.program, OpenMpi.program):
        (folder / "mpiexec").unlink(missing_ok=True)
        (folder / "mpiexec").symlink_to(shutil.which(program))
        job = MpiJobDry(context, hostfile, {"PATH": f"{folder}:/bin"}, "auto")
        wanted = Hydra.name if program == Hydra.program else OpenMpi.name
        check_equal(job.wait(), 0, f"return code; {job.stderr()}")
        check(f"launcher: {wanted}\n".encode() in job.stdout(), f"{program} was not taken:\n{job.stdout()}")
    wrong = MpiJobDry(context, hostfile, {"PATH": f"{folder}:/nowhere"}, "pals", dry=False)
    check_equal(wrong.wait(), 2, "return code")
    check("mpiexec is Open MPI" in wrong.stderr(), f"the wrong mpiexec is not named: {wrong.stderr()}")


class MpiJobDry(MpiJob):
    def __init__(self, context, hostfile, env, launcher, dry=True):
        from job import Job

        argv = [context.ezpz, "launch", *(["--dry-run"] if dry else []), "--launcher", launcher]
        argv += ["--hostfile", hostfile, "--", "/bin/true"]
        Job.__init__(self, context, argv, context.dir / "logs", context.dir / "receipts", env=context.env(**env))


@contextlib.contextmanager
def hosts_around(options):
    """Hosts for each mpiexec, one scenario at a time on each, and the binaries where they see them."""
    options.jobs = 2
    binaries = options.base / "bin"
    binaries.mkdir()
    options.ezpz = Path(shutil.copy(options.ezpz, binaries))
    options.toy = Path(shutil.copy(options.toy, binaries))
    try:
        with Hosts(NAMES, marks=[RUN_MARK]) as one, Hosts(NAMES, marks=[RUN_MARK]) as other:
            options.lab = {Hydra.name: one, OpenMpi.name: other}
            for hosts in options.lab.values():
                hosts.taken = threading.Lock()
            yield
    finally:
        shutil.rmtree(binaries)


def available():
    missing = [mpi.program for mpi in (Hydra, OpenMpi) if shutil.which(mpi.program) is None]
    return (False, f"not installed: {', '.join(missing)}") if missing else Hosts.available()


if __name__ == "__main__":
    ok, reason = available()
    sys.exit(main("mpi", base=BASE, around=hosts_around) if ok else skip_all("mpi", reason))
