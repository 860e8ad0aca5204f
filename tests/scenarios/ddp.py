#!/usr/bin/python3
"""A plain PyTorch DDP script (tests/workload/ddp_train.py, which nothing of ezpz is in) under every
launcher: it trains, loses all ranks of a host, and goes on from its checkpoint as if nothing had been.
Needs python3-torch; the clusters need root and their packages. What cannot run is skipped and counted."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from harness import HERE, RUN_MARK, Skip, check, check_equal, main, scenario, skip_all
from launchers import BASE, HOSTS, ONE_THREAD, Clusters, check_same_losses, kill_ranks, on_each, ranks_of
from mpi_job import Hydra, MpiJob
from training import free_port

from hosts import Hosts

PYTHON = "/usr/bin/python3"  # the distribution's, which has the distribution's torch
SCRIPT = "ddp_train.py"
STEPS = 120
EVERY = 10
KILL_AFTER = 2 * EVERY + 3
START_S = 90  # importing torch, twice at once
END_S = 120
RESUMED = re.compile(rb"(?m)^resumed from step (\d+)$")


def command(context, step_s=0.03):
    script = context.toy.parent / SCRIPT
    words = [PYTHON, script, "--steps", STEPS, "--every", EVERY, "--step-s", step_s]
    return [str(word) for word in [*words, "--checkpoint", context.dir / "model.pt"]]


# ---- the known answer


_unbroken = {}
_unbroken_lock = threading.Lock()


def unbroken_losses(context):
    """{step: loss} of the same script in one piece, started by hand."""
    with _unbroken_lock:
        if not _unbroken:
            _unbroken.update(_train_unbroken(context))
        return _unbroken


def _train_unbroken(context):
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **ONE_THREAD}
    argv = [PYTHON, str(context.toy.parent / SCRIPT), "--steps", str(STEPS)]
    ranks = [
        subprocess.Popen(argv, env=context.env(RANK=str(rank), **world), stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=START_S)[0] for rank in ranks]
    check_equal([rank.returncode for rank in ranks], [0, 0], "return codes of the run by hand")
    losses = {int(step): float(loss) for step, loss in re.findall(r"(?m)^step=(\d+) loss=(\S+)$", said[0])}
    check_equal(sorted(losses), list(range(1, STEPS + 1)), "steps of the run by hand")
    check(losses[STEPS] < losses[1] / 20, f"it did not learn: {losses[1]} came to {losses[STEPS]}")
    return losses


def check_losses(context, job):
    check_same_losses([(step, float(loss)) for step, loss in job.steps()], unbroken_losses(context), STEPS, 1e-6)


def is_rank(argv):
    return argv[:1] == [PYTHON] and argv[1].endswith(SCRIPT)


def await_ranks(job, attempt):
    """{rank: node}, once both are there."""
    found = {}

    def both():
        found.update(ranks_of(job, attempt, is_rank))
        return len(found) == 2

    job.wait_for(f"two ranks of attempt {attempt}", both, START_S)
    return {rank: node for rank, (node, _) in sorted(found.items())}


def last_step(job):
    """0 until there is one; a batch job that has just begun has no output file yet."""
    steps = job.steps() if job.stdout_path.exists() else []
    return steps[-1][0] if steps else 0


def finish(job):
    code = job.wait(END_S)
    check_equal((code, job.stop_reason()), (0, "success"), f"return code and stop reason; {job.stderr()}")


# ---- scenarios


@on_each
def a_plain_ddp_script_trains(context, launcher):
    """The script trains to its end in one attempt, a rank on each host, with the losses it has by hand."""
    job, hosts = launcher.start(context, command(context, step_s=0))
    finish(job)
    check_equal(job.attempts(), 1, "attempts")
    check_equal(job.active(), list(hosts[:2]), "active.hostfile")
    check_equal(job.bad_nodes(), [], "bad_nodes.txt")
    check_losses(context, job)


@on_each
def a_plain_ddp_script_is_failed_over(context, launcher):
    """All ranks of the second host are killed: it is named on what the launcher said, the spare takes
    its place, and the script goes on from its checkpoint to the losses of a run that nothing befell."""
    job, hosts = launcher.start(context, command(context))
    job.wait_for("the second checkpoint", lambda: last_step(job) >= KILL_AFTER, START_S)
    check_equal(await_ranks(job, 1), {0: hosts[0], 1: hosts[1]}, "where the ranks of attempt 1 run")
    kill_ranks(ranks_of(job, 1, is_rank), hosts[1]).prove([1])
    check_equal(await_ranks(job, 2), {0: hosts[0], 1: hosts[2]}, "where the ranks of attempt 2 run")
    finish(job)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.culprits(1), [hosts[1]], "whom the verdict on attempt 1 names")
    check_equal(job.bad_hosts(), [(hosts[1], "scraped")], "bad_nodes.txt")
    check_equal(job.active(), [hosts[0], hosts[2]], "active.hostfile")
    resumed = [int(step) for step in RESUMED.findall(job.attempt_log(2))]
    check_equal(resumed, job.saved_in(1)[-1:], "step that attempt 2 resumed from")
    check(resumed[0] >= EVERY, "there was no checkpoint to resume from")
    check_losses(context, job)


@scenario
def a_host_whose_name_means_loopback_needs_the_interfaces_name(context):
    """Hydra on hosts of which two find 127.0.1.1 under their own names, as Debian has it: gloo does not
    connect them, and with -x GLOO_SOCKET_IFNAME the same job trains."""
    if shutil.which(Hydra.program) is None:
        raise Skip(f"{Hydra.program} is not installed")
    context.lab = context.lab.get(Hosts, HOSTS, marks=[RUN_MARK])
    context.lab.rename({name: "127.0.1.1" for name in HOSTS[1:]})
    context.at_end(lambda: context.lab.rename({}))
    jobs = []
    for flags in ([], ["-x", "GLOO_SOCKET_IFNAME=hsn0"]):
        words = ["--timeout", 30, "--grace", 1, *flags]
        jobs.append(MpiJob(context, Hydra, active=3, ppn=1, plain=True, flags=words, command=command(context, step_s=0),
                           env=ONE_THREAD))
        code = jobs[-1].wait(END_S)
        check((code == 0) == bool(flags), f"return code {code} with {flags or 'nothing set'}; {jobs[-1].stderr()}")
    check(b"step=1 " not in jobs[0].stdout(), "the first job trained: the fault was not there")
    check(f"step={STEPS} ".encode() in jobs[1].stdout(), "the second job did not come to its end")


@contextlib.contextmanager
def around(options):
    """The files where all nodes see them."""
    options.jobs = 1  # an import of torch takes a processor
    folder = options.base / "bin"
    folder.mkdir()
    options.ezpz = Path(shutil.copy(options.ezpz, folder))
    options.toy = Path(shutil.copy(options.toy, folder))
    shutil.copy(HERE.parent / "workload" / SCRIPT, folder)
    try:
        with contextlib.ExitStack() as stack:
            options.lab = Clusters(stack)
            yield
    finally:
        shutil.rmtree(folder)


def torch_here():
    """(True, "") or why not."""
    if not os.access(PYTHON, os.X_OK):
        return False, f"there is no {PYTHON}"
    done = subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True, text=True, timeout=120)
    said = done.stderr.strip().splitlines()
    return (True, "") if done.returncode == 0 else (False, f"no torch: {said[-1] if said else done.returncode}")


if __name__ == "__main__":
    ok, reason = torch_here()
    sys.exit(main("ddp", base=BASE, around=around) if ok else skip_all("ddp", reason))
