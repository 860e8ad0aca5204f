#!/usr/bin/python3
"""The main job over ssh alone, on hosts that are namespaces of this machine with an sshd each. Needs root
and OpenSSH; without them every scenario is skipped and counted."""

import contextlib
import queue
import shutil
import signal
import sys
import time
from pathlib import Path

import faults
from checks import (
    check_end,
    check_faults,
    check_losses,
    check_nobody_blamed,
    check_ranks_saw,
    check_resumed,
    check_success,
)
from harness import RUN_MARK, check, check_equal, main, processes, scenario, skip_all, wait_until
from mpi_job import command_lines, pull_cable
from ssh_job import IMPATIENT, SshJob, children_called, kill_all_on, kill_ranks
from training import CHECKPOINT_EVERY

from ssh_hosts import SshHosts

BASE = Path("/var/tmp")  # hosts have a /tmp of their own; this they share
NAMES = ("nid000001", "nid000002", "nid000003", "nid000004")
FIRST_WAIT_S = 30
LABS = 2


def on_hosts(function):
    """A scenario with a set of hosts of its own."""

    def run(context):
        free = context.lab
        context.lab = free.get(timeout=600)
        context.at_end(lambda: free.put(context.lab))
        function(context)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    scenario(run)
    return function


def started(context, *toy_flags, **how):
    """The job, with a checkpoint behind it."""
    job = SshJob(context, *toy_flags, **how)
    job.wait_step(CHECKPOINT_EVERY + 1, timeout_s=FIRST_WAIT_S)
    return job


def check_hosts_empty(context, timeout_s=5):
    def empty():
        return not any(context.lab.left_on(name) for name in NAMES)

    wait_until("every process on the hosts to be gone", empty, timeout_s)


def check_rendezvous(job, attempt):
    """MASTER_ADDR of every rank is the host that rank 0 really runs on."""
    receipts = job.receipts(attempt)
    addresses = {receipt.start["master_addr"] for receipt in receipts.values()}
    check_equal(addresses, {receipts[0].start["hostname"]}, f"MASTER_ADDR of attempt {attempt}")


def check_swapped(context, job, provenance, verdict):
    """active[1] was taken out, the first spare came in, and the training is whole."""
    check_success(job, attempts=2)
    check_equal(job.verdicts(), [verdict, "success"], "verdicts")
    check_equal(job.bad_hosts(), [(NAMES[1], provenance)], "bad_nodes.txt")
    check_equal(job.hosts_used(2), [NAMES[0], NAMES[2]], "hosts used by attempt 2")
    check_equal(job.active(), [NAMES[0], NAMES[2]], "active.hostfile")
    check_resumed(job, 2)
    check_rendezvous(job, 2)


# ---- nothing wrong


@on_hosts
def trains_to_the_end(context):
    """The job takes one attempt, ranks sit where the plan says, nothing stays on the hosts."""
    job = SshJob(context)
    check_success(job, attempts=1)
    check_equal(job.hosts_used(1), list(NAMES[:2]), "hosts used")
    places = {rank: receipt.start["hostname"] for rank, receipt in job.receipts(1).items()}
    check_equal(places, {0: NAMES[0], 1: NAMES[0], 2: NAMES[1], 3: NAMES[1]}, "where the ranks ran")
    placed = job.contexts("placement")[0]
    check_equal(placed["mismatch"], [], "ranks elsewhere than planned")
    check_rendezvous(job, 1)
    check_losses(context, job)
    check_nobody_blamed(job)
    check_hosts_empty(context)


@on_hosts
def ranks_know_who_and_where_they_are(context):
    """Six ranks over four hosts are 2, 2, 1, 1; each knows its numbers, its host, the rendezvous and the
    folder, and nobody types into it."""
    script = 'echo AT=$RANK/$WORLD_SIZE:$EZPZ_NODE:$(hostname):$NODE_RANK:$LOCAL_RANK/$LOCAL_WORLD_SIZE:$MASTER_ADDR:$(pwd):$(readlink /proc/self/fd/0):${MASTER_PORT:+port}'
    for plain in (True, False):
        job = SshJob(context, plain=plain, active=4, ppn=None, flags=["-n", 6], command=["/bin/sh", "-c", script])
        check_equal(job.wait(), 0, f"return code; {job.stderr()}")
        seen = sorted(line[3:] for line in job.stdout().decode().splitlines() if line.startswith("AT="))
        at = [(0, 0, 0, 2), (1, 0, 1, 2), (2, 1, 0, 2), (3, 1, 1, 2), (4, 2, 0, 1), (5, 3, 0, 1)]
        wanted = [
            f"{rank}/6:{NAMES[node]}:{NAMES[node]}:{node}:{local}/{here}:{NAMES[0]}:{context.dir}:/dev/null:port"
            for rank, node, local, here in at
        ]
        check_equal(seen, wanted, "what the ranks say of themselves")


@on_hosts
def variables_reach_the_ranks_and_stay_off_command_lines(context):
    """What is named, set or of a known kind reaches ranks whole, lines and all; what belongs to this
    host does not; and no value is on a command line, here or on the hosts."""
    secret = "s3cr3t-" + "x" * 40_000 + "\nsecond $(line)"
    script = 'started_by=ssh; echo "GOT=$RANK:${#MY_TOKEN}:$(echo "$MY_TOKEN" | tail -n 1):$SET_VALUE:$NCCL_TEST:$TMPDIR:$LEFT"; sleep 3'
    env = {"MY_TOKEN": secret, "NCCL_TEST": "tu'n\"ed", "TMPDIR": "/nowhere", "LEFT": "behind"}
    flags = ["-x", "MY_TOKEN", "-x", "SET_VALUE=s3t"]
    job = SshJob(context, plain=True, flags=flags, env=env, command=["/bin/bash", "-c", script])
    wait_until("all ranks to speak", lambda: job.stdout().count(b"GOT=") == 4, FIRST_WAIT_S)
    lines = command_lines()
    check(sum("started_by=ssh" in line for line in lines) >= 4, "the ranks' command lines were not looked at")
    check(sum(line.endswith(" ssh-node") for line in lines) >= 2, "the hosts' command lines were not looked at")
    leaks = [line[:200] for line in lines if "s3cr3t" in line]
    check(not leaks, f"the secret is on command lines: {leaks}")
    own = [line for line in lines if "SET_VALUE=s3t" in line and " launch " not in line]
    check(not own, f"a value is on another command line than the user's: {own}")
    check_equal(job.wait(), 0, "return code")
    seen = sorted(line for line in job.stdout().decode().splitlines() if "GOT=" in line)
    wanted = [f"GOT={rank}:{len(secret)}:second $(line):s3t:tu'n\"ed::" for rank in range(4)]
    check_equal(seen, wanted, "what the ranks got")


@on_hosts
def output_arrives_whole_and_in_order(context):
    """A burst of every rank arrives by whole lines, each rank's in order; an unfinished last line comes
    as it is, and so does one that waits for its end."""
    count = 40_000
    script = f'i=0; exec 3>&1; seq -f "r$RANK %.0f aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" 1 {count}; printf "end$RANK"'
    job = SshJob(context, plain=True, command=["/bin/sh", "-c", script])
    check_equal(job.wait(60), 0, f"return code; {job.stderr()[-500:]}")
    lines = job.stdout().decode().splitlines()
    for rank in range(4):
        mine = [line for line in lines if line.startswith(f"r{rank} ")]
        check_equal(len(mine), count, f"lines of rank {rank}")
        check(all(line == f"r{rank} {i} " + "a" * 61 for i, line in enumerate(mine, 1)), f"rank {rank}: a line is damaged")
        check(f"end{rank}" in lines, f"the last words of rank {rank} are missing")
    one = SshJob(context, plain=True, active=1, ppn=1, command=["/bin/sh", "-c", "printf 'a\\000\\377b'; sleep 1; printf c"])
    check_equal(one.wait(), 0, "return code")
    check(b"a\0\xffbc" in one.stdout(), f"bytes were changed: {one.stdout()!r}")
    check(one.stdout().endswith(b"c"), "something was put behind the last byte")


# ---- what dies


@on_hosts
def a_killed_rank_names_its_host_which_is_swapped(context):
    """SIGKILL to one rank: its host is named, a spare takes its place, and the job resumes from its
    checkpoint."""
    job = started(context)
    kill_ranks(job, [2]).prove([2])
    check_swapped(context, job, "scraped", "node_failure")
    fences = job.contexts("fence")
    check(fences and all(fence["ran"] for fence in fences), f"the fence did not run: {fences}")
    check_losses(context, job)
    check_hosts_empty(context)


@on_hosts
def all_ranks_of_a_host_killed_name_it(context):
    """SIGKILL to all ranks of active[1], its ssh living on, is a node failure as well."""
    job = started(context)
    kill_ranks(job, [2, 3]).prove([2, 3])
    check_swapped(context, job, "scraped", "node_failure")
    check_losses(context, job)
    check_hosts_empty(context)


@on_hosts
def a_host_that_dies_is_found_by_the_probe(context):
    """The whole host dies at once: ssh loses it, one witness makes it a suspect, and the probe, which
    reaches all but it, takes it out."""
    job = started(context, ssh=IMPATIENT, steps=40)
    check(context.lab.left_on(NAMES[1]), f"nothing ran on {NAMES[1]}")
    context.lab.kill(NAMES[1])
    check_swapped(context, job, "probed", "launcher_fault")
    check_equal(job.culprits(1), [], "convicted on one witness")
    check(f"lost contact with {NAMES[1]}".encode() in job.attempt_log(1), "the host is not named")
    check_losses(context, job, steps=40)


@on_hosts
def a_pulled_cable_convicts_no_survivor(context):
    """A host that is cut off is noticed without --timeout, found by the probe and swapped; its ranks end
    when it has heard nothing for too long, though no connection was closed."""
    job = started(context, "--ignore-term", ssh=IMPATIENT, steps=40)
    pull_cable(job, NAMES[1])
    before = context.lab.left_on(NAMES[1])
    check(before, f"nothing ran on {NAMES[1]}")
    check_swapped(context, job, "probed", "launcher_fault")
    check_equal(job.culprits(1), [], "convicted on one witness")
    check(b"Timeout, server" in job.attempt_log(1), "ssh did not say that it gave the host up")
    check_losses(context, job, steps=40)
    check(context.lab.left_on(NAMES[1]), "the cut host's ranks were ended by somebody who could not have reached them")
    wait_until("the cut host to end its ranks by itself", lambda: not _runs(context, NAMES[1], "toy_train"), 80)


def _runs(context, name, program):
    return [pid for pid in context.lab.left_on(name) if processes.name_of(pid) == program]


@on_hosts
def a_host_that_lives_is_not_taken_out_for_a_lost_session(context):
    """Everything of the job on a host dies at once, sshd's session first, and the survivors say that they
    lost a peer: the host answers the probe, so nobody is blamed and the job goes on where it was."""
    job = started(context, "--on-peer-loss", "exit")
    kill_all_on(job, NAMES[1])
    check_success(job, attempts=2, timeout_s=90)
    check_equal(job.verdicts(), ["launcher_fault", "success"], "verdicts")
    check_nobody_blamed(job)
    check_equal(job.hosts_used(2), list(NAMES[:2]), "hosts used by attempt 2")
    check_losses(context, job)


@on_hosts
def a_killed_ssh_is_no_word_about_its_host(context):
    """Somebody kills an ssh of ezpz's on this machine: that is told, no host is taken out, and the far end
    takes its ranks down."""
    job = started(context, "--ignore-term")
    clients = children_called(job, "ssh")
    check_equal(len(clients), 2, "ssh processes of the job")
    check(not processes.kill_and_wait(clients[1:], 5), "the ssh cannot be killed")
    check_success(job, attempts=2, timeout_s=90)
    check_equal(job.verdicts(), ["launcher_fault", "success"], "verdicts")
    check(b"its ssh was ended by signal 9" in job.attempt_log(1), "what happened was not told")
    check_nobody_blamed(job)
    check_losses(context, job)


@on_hosts
def a_rank_that_exits_is_the_programs_matter(context):
    """A rank that exits 3 in each attempt is an error of the program: no host is convicted."""
    flags = ["--exit-at-step", "6", "--exit-code", "3", "--exit-rank", "2"]
    job = SshJob(context, *flags)
    check_faults(job, "exit", 1, [2])
    check_equal(set(job.verdicts()), {"app_error"}, "verdicts")
    check_equal(job.returncode(), 3, "return code")
    check(job.stop_reason().startswith("stuck"), f"stop reason {job.stop_reason()}")
    check_nobody_blamed(job)
    check_hosts_empty(context)


@on_hosts
def a_program_that_never_starts_costs_no_spare(context):
    """Exit 1 before the first step, twice: stuck_pre_training, and nobody is blamed."""
    job = SshJob(context, "--exit-before-first-step", "--exit-code", 1)
    check_end(job, "stuck_pre_training", attempts=2)
    check_nobody_blamed(job)


@on_hosts
def more_faults_than_spares_end_as_exhausted(context):
    """When the spare is gone the next host whose ranks are killed stops the job as exhausted, with both recorded."""
    job = started(context, names=NAMES[:3], steps=60)
    kill_ranks(job, [2, 3]).prove([2, 3])
    job.wait_attempt(2, 4, timeout_s=FIRST_WAIT_S)
    check_equal(job.hosts_used(2), [NAMES[0], NAMES[2]], "hosts used by attempt 2")
    kill_ranks(job, [0, 1], attempt=2).prove([0, 1])
    check_end(job, "exhausted", attempts=2)
    check_equal(job.bad_hosts(), [(NAMES[1], "scraped"), (NAMES[0], "scraped")], "bad_nodes.txt")


@on_hosts
def silence_alone_convicts_nobody(context):
    """A hang without any evidence, with --blind never: the watchdog ends the attempt, the probe through ssh
    finds every host well, and nobody is blamed."""
    flags = ["--timeout", 12, "--grace", 1, "--blind", "never", "--max-failover-retries", 1]
    job = SshJob(context, "--hang-at-step", 6, "--fault-on-host", NAMES[1], flags=flags)
    check_faults(job, "hang", 1, [2, 3])
    check_equal(job.verdicts()[0], "hang", "first verdict")
    probes = job.contexts("probe")
    check(probes and all(probe["ran"] for probe in probes), f"no probe ran: {probes}")
    check_nobody_blamed(job)
    check_hosts_empty(context)


# ---- what cannot be started


@on_hosts
def a_host_without_sshd_is_swapped_before_anything_ran(context):
    """Nobody listens on active[1]: the probe agrees, and the spare takes its place. No rank of the first
    attempt was started on the hosts that could be reached."""
    context.lab.stop_sshd(NAMES[1])
    job = SshJob(context)
    check_success(job, attempts=2)
    check(b"Connection refused" in job.attempt_log(1), "the fault was not there")
    check_equal(job.receipts(1), {}, "ranks of attempt 1")
    check_equal(job.verdicts(), ["launcher_fault", "success"], "verdicts")
    check_equal(job.bad_hosts(), [(NAMES[1], "probed")], "bad_nodes.txt")
    check_losses(context, job)


@on_hosts
def a_busy_sshd_is_asked_again(context):
    """An sshd that drops connections because too many logins are under way, as a jump host's may, is no
    lost host: the start waits for it."""
    with context.lab.busy(NAMES[1]):
        job = SshJob(context)
        wait_until("a connection to be dropped", lambda: b"closed by" in job.stdout(), 20)
    check_success(job, attempts=1)
    check_nobody_blamed(job)
    check_losses(context, job)


@on_hosts
def a_wrong_key_stops_with_the_remedy(context):
    """No host lets ezpz in: an environment fault, at once, with the remedy, and nobody is blamed."""
    job = SshJob(context, config=context.lab.config_without_key)
    check_end(job, "env_fault", attempts=1)
    check(b"Permission denied (publickey)" in job.attempt_log(1), "the fault was not there")
    check_nobody_blamed(job)
    check("ssh -o BatchMode=yes" in job.stderr(), f"no remedy: {job.stderr()}")


@on_hosts
def an_unknown_host_key_stops_and_asks_nobody(context):
    """A host whose key is not known cannot be asked about: it fails, and says so."""
    job = SshJob(context, ssh=["-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=ask"])
    check_end(job, "env_fault", attempts=1)
    check(b"Host key verification failed" in job.attempt_log(1), "the fault was not there")
    check_nobody_blamed(job)


@on_hosts
def a_name_that_does_not_resolve_stops_with_the_remedy(context):
    """A name of the hostfile that nobody knows is the hostfile's fault, and costs no spare."""
    job = SshJob(context, names=[NAMES[0], "nosuchhost.invalid", NAMES[2]])
    check_end(job, "env_fault", attempts=1)
    check(b"Could not resolve hostname" in job.attempt_log(1), "the fault was not there")
    check_nobody_blamed(job)
    check("hostfile" in job.stderr().split("nosuchhost")[-1], f"no remedy: {job.stderr()}")


@on_hosts
def a_host_without_ezpz_is_told_by_name_and_path(context):
    """The hosts do not have the binary where this machine has it: an environment fault that names both."""
    hidden = Path("/tmp") / f"ezpz-ssh-{context.run_id}"  # /tmp is each host's own
    shutil.copy(context.ezpz, hidden)
    context.at_end(hidden.unlink)
    context.ezpz = hidden
    job = SshJob(context)
    check_end(job, "env_fault", attempts=1)
    said = f"{NAMES[1]}: cannot run ezpz: {hidden}: No such file or directory"
    check(said.encode() in job.attempt_log(1), f"host and path are not told: {job.attempt_log(1)}")
    check_nobody_blamed(job)


@on_hosts
def one_host_without_the_folder_is_swapped(context):
    """Where one host lacks the working directory it is told with its path, checked, and replaced."""
    folder = Path("/tmp") / f"ezpz-ssh-{context.run_id}"  # /tmp is each host's own
    folder.mkdir()
    context.at_end(folder.rmdir)
    for name in NAMES:
        if name != NAMES[1]:
            context.lab.run_on(name, ["mkdir", str(folder)])
    job = SshJob(context, folder=folder)
    check_success(job, attempts=2)
    said = f"{NAMES[1]}: cannot enter the working directory: {folder}: No such file or directory"
    check(said.encode() in job.attempt_log(1), f"the fault was not told: {job.attempt_log(1)}")
    check_equal(job.bad_hosts(), [(NAMES[1], "probed")], "bad_nodes.txt")
    check_losses(context, job)


# ---- stopping


@on_hosts
def sigterm_gives_every_rank_its_grace(context):
    """SIGTERM to ezpz reaches every rank as SIGTERM, once, and each has the time it needs to save."""
    script = 'trap "echo TERM=$RANK; sleep 3; echo SAVED=$RANK; exit 0" TERM; echo READY; while :; do sleep 0.1; done'
    job = SshJob(context, command=["/bin/sh", "-c", script])
    wait_until("all ranks to start", lambda: job.stdout().count(b"READY") == 4, FIRST_WAIT_S)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(20), 143, "return code")
    said = sorted(line for line in job.stdout().decode().splitlines() if "=" in line)
    check_equal(said, [f"{word}={rank}" for word in ("SAVED", "TERM") for rank in range(4)], "what the ranks said")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_hosts_empty(context)


@on_hosts
def a_graceful_stop_gets_a_checkpoint(context):
    """The training saves when it is asked to stop, at a step that it would not have saved at."""
    job = started(context, steps=2000)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(30), 143, "return code")
    check_ranks_saw(job, signal.SIGTERM)
    last = job.steps()[-1][0]
    check_equal(job.saved_in(1)[-1], last, "the last checkpoint's step")
    check_hosts_empty(context)


@on_hosts
def ctrl_c_leaves_nothing(context):
    """Ctrl-C, twice, ends ranks that do not listen, on every host."""
    job = started(context, "--ignore-term", steps=2000)
    job.ctrl_c()
    wait_until("the stop to begin", lambda: "stopping the ranks" in job.stderr(), 5)
    job.ctrl_c()
    check_equal(job.wait(20), 130, "return code")
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_hosts_empty(context)


@on_hosts
def ctrl_c_while_connecting_ends_at_once(context):
    """A host does not answer at all while the job starts: a stop does not wait for it."""
    pull_cable_before(context, NAMES[1])
    job = SshJob(context, ssh=["-o", "ConnectTimeout=60"])
    wait_until("ssh to be started", lambda: len(children_called(job, "ssh")) >= 2, 10)
    job.signal(signal.SIGINT)
    began_s = time.monotonic()
    check_equal(job.wait(10), 130, "return code")
    check(time.monotonic() - began_s < 5, "the stop waited for the host")
    context.lab.plug(NAMES[1])
    check_hosts_empty(context)


def pull_cable_before(context, name):
    class Nothing:
        hosts_there = context.lab

    pull_cable(Nothing, name)


@on_hosts
def ranks_that_ignore_sigterm_are_ended(context):
    """Ranks that outlive SIGTERM are ended when the grace is over, on every host."""
    job = started(context, "--ignore-term", flags=["--grace", 1], steps=2000)
    job.signal(signal.SIGTERM)
    check_equal(job.wait(20), 143, "return code")
    check_ranks_saw(job, signal.SIGTERM)
    check_equal(job.stop_reason(), "cancelled", "stop reason")
    check_hosts_empty(context)


@on_hosts
def signals_reach_the_ranks(context):
    """SIGUSR1 and SIGUSR2 to ezpz are passed on to every rank, and the job goes on."""
    job = started(context, steps=60)
    job.signal(signal.SIGUSR1)
    job.signal(signal.SIGUSR2)
    check_success(job, attempts=1)
    check_ranks_saw(job, signal.SIGUSR1)
    check_ranks_saw(job, signal.SIGUSR2)


@on_hosts
def nothing_outlives_a_killed_ezpz(context):
    """SIGKILL to ezpz: within 10 s nothing of it, and of what ranks that ignore SIGTERM have started in
    sessions of their own, is left on any host."""
    script = 'trap "" TERM HUP; setsid sleep 300 & echo READY; while :; do sleep 0.1; done'
    job = SshJob(context, command=["/bin/sh", "-c", script])
    wait_until("all ranks to start", lambda: job.stdout().count(b"READY") == 4, FIRST_WAIT_S)
    check(all(_runs(context, name, "sleep") for name in NAMES[:2]), "nothing ran on the hosts")
    faults.kill_ezpz(job)
    check_hosts_empty(context, timeout_s=10)


# ---- choosing it


@on_hosts
def auto_takes_ssh_where_there_is_no_mpi(context):
    """--launcher auto, outside any job, with a hostfile and no mpiexec in PATH, reaches the hosts by ssh."""
    folder = context.dir / "bin"
    folder.mkdir()
    (folder / "ssh").symlink_to(shutil.which("ssh"))
    from job import Job

    hostfile = context.dir / "hosts.txt"
    hostfile.write_text(f"{NAMES[0]}\n")
    argv = [context.ezpz, "launch", "--hostfile", hostfile, "--", "-F", context.lab.config, "--", "/bin/hostname"]
    job = Job(context, argv, context.dir / "logs", context.dir / "receipts", env=context.env(PATH=str(folder)))
    check_equal(job.wait(), 0, f"return code; {job.stderr()}")
    check_equal(job.stdout().decode().split()[-1], NAMES[0], "where it ran")


@contextlib.contextmanager
def hosts_around(options):
    """A few sets of hosts, one scenario at a time on each, and the binaries where they see them."""
    options.jobs = LABS
    binaries = options.base / "bin"
    binaries.mkdir()
    options.ezpz = Path(shutil.copy(options.ezpz, binaries))
    options.toy = Path(shutil.copy(options.toy, binaries))
    options.lab = queue.Queue()
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(LABS):
                options.lab.put(stack.enter_context(SshHosts(NAMES, marks=[RUN_MARK])))
            yield
    finally:
        shutil.rmtree(binaries)


if __name__ == "__main__":
    ok, reason = SshHosts.available()
    sys.exit(main("ssh", base=BASE, around=hosts_around) if ok else skip_all("ssh", reason))
