#!/usr/bin/python3
"""ezpz-train under every launcher: its ranks are killed, a host is cut off, the job is told to stop; what
was trained afterwards is what a run that nothing befell trains. Needs libtorch; the clusters need root
and their packages. What cannot run is skipped and counted."""

import contextlib
import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import slurm_job
from harness import check, check_equal, main, scenario, skip_all
from launchers import BASE, ONE_THREAD, Clusters, Srun, check_same_losses, kill_ranks, on_each, ranks_of

STEPS = 60
EVERY = 10
KILL_AFTER = 2 * EVERY + 3
START_S, END_S = 60, 120
LOSS_NOTICED_S = 90
# Some 50 ms a step of four ranks on two cores: long enough to be killed in, short enough to wait for.
MODEL = ("--model", "debug", "--dim", 64, "--hidden-dim", 192, "--vocab-size", 4096, "--seq-len", 256, "--threads", 1, "--lr", "1e-3")
STEP = re.compile(r"(?m)^step=(\d+) loss=(\S+) dt=")
SAVED = re.compile(rb"(?m)^step=(\d+) checkpoint=\S+ saved$")
RESUMED = re.compile(rb"(?m)^resumed from checkpoint step=(\d+) ")
WORLD = 4  # two ranks on each of two hosts


def command(context, *flags):
    trainer = context.ezpz.parent / "ezpz-train"
    return [trainer, *MODEL, "--train-iters", STEPS, "--outdir", context.dir / "out", "--save-interval", EVERY, *flags]


_unbroken = {}
_unbroken_lock = threading.Lock()


def unbroken_losses(context):
    """{step: loss} of the same training by one process, without a launcher: the known answer."""
    with _unbroken_lock:
        if not _unbroken:
            argv = [context.ezpz.parent / "ezpz-train", *MODEL, "--train-iters", STEPS, "--batch-size", WORLD]
            done = subprocess.run(list(map(str, argv)), env=context.env(**ONE_THREAD), capture_output=True, text=True, timeout=END_S)
            check_equal(done.returncode, 0, f"return code of the run by hand; {done.stderr}")
            _unbroken.update({int(step): float(loss) for step, loss in STEP.findall(done.stdout)})
            check(_unbroken[STEPS] < _unbroken[1] - 0.3, f"it did not learn: {_unbroken[1]} came to {_unbroken[STEPS]}")
        return _unbroken


def check_losses(context, job, upto=STEPS):
    check_same_losses(steps_of(job), unbroken_losses(context), upto, 2e-4)


def is_rank(argv):
    return argv[:1] != [] and Path(argv[0]).name == "ezpz-train"


def await_ranks(job, attempt, hosts):
    """Two ranks of the attempt run on each of the hosts, in order."""
    want = {rank: hosts[rank // 2] for rank in range(WORLD)}
    job.wait_for(f"ranks of attempt {attempt} on {hosts}",
                 lambda: {rank: node for rank, (node, _) in ranks_of(job, attempt, is_rank).items()} == want, START_S)


def steps_of(job):
    """(step, loss) as printed, in order, over all attempts."""
    return [(int(step), float(loss)) for step, loss in STEP.findall(job.stdout().decode(errors="replace"))]


def saved_in(job, attempt):
    """Steps of the checkpoints that one attempt announced."""
    return [int(step) for step in SAVED.findall(job.attempt_log(attempt))]


def last_step(job):
    """0 until there is one; a batch job that has just begun has no output file yet."""
    steps = steps_of(job) if job.stdout_path.exists() else []
    return steps[-1][0] if steps else 0


def finish(job, code=0, reason="success", within_s=END_S):
    check_equal((job.wait(within_s), job.stop_reason()), (code, reason), f"return code and stop reason; {job.stderr()}")


def check_resumed(job):
    resumed = [int(step) for step in RESUMED.findall(job.attempt_log(2))]
    check_equal(resumed, saved_in(job, 1)[-1:], "step that attempt 2 resumed from")
    check(resumed[0] >= EVERY, "there was no checkpoint to resume from")


@on_each
def the_trainer_trains(context, launcher):
    """It trains to its end in one attempt, two ranks on each of two hosts, with the losses of one process."""
    job, hosts = launcher.start(context, command(context), ppn=2)
    finish(job)
    check_equal(job.attempts(), 1, "attempts")
    check_equal(job.active(), list(hosts[:2]), "active.hostfile")
    check_equal(job.bad_nodes(), [], "bad_nodes.txt")
    check_losses(context, job)


@on_each
def the_trainer_is_failed_over(context, launcher):
    """All ranks of the second host are killed: it is named, the spare takes its place, and training goes on
    from the last checkpoint to the losses of a run that nothing befell."""
    job, hosts = launcher.start(context, command(context), ppn=2)
    job.wait_for("the second checkpoint", lambda: last_step(job) >= KILL_AFTER, START_S)
    await_ranks(job, 1, hosts[:2])
    kill_ranks(ranks_of(job, 1, is_rank), hosts[1]).prove([2, 3])
    await_ranks(job, 2, [hosts[0], hosts[2]])
    finish(job)
    check_equal(job.verdicts(), ["node_failure", "success"], "verdicts")
    check_equal(job.culprits(1), [hosts[1]], "whom the verdict on attempt 1 names")
    check_equal(job.bad_hosts(), [(hosts[1], "scraped")], "bad_nodes.txt")
    check_resumed(job)
    check_losses(context, job)


def check_row(context, job, swapped):
    """The run is one row of the benchmark's table: each step once, and what befell it in the note."""
    argv = [context.ezpz, "export-amsc", job.dir, "--config", "debug", "--system", "lab", "--gpus", WORLD]
    done = subprocess.run(list(map(str, argv)), env=context.env(), capture_output=True, text=True, timeout=START_S)
    check_equal(done.returncode, 0, f"return code of export-amsc; {done.stderr}")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    check_equal(len(rows), 1, "rows")
    row = rows[0]
    check_equal((row["steps"], row["nodes"], row["gpus"], row["status"]), (str(STEPS), "2", str(WORLD), "pass"), "row")
    metrics = [json.loads(line)["metrics"] for line in (job.dir / "metrics-0.jsonl").read_text().splitlines()]
    again = len(metrics) - STEPS
    check(again > 0, "no step was done twice, so nothing was tried")
    check(f"{again} steps were done again and counted once" in row["error"] or again == 1, row["error"])
    check("2 attempts, {} swapped for {} after attempt 1".format(*swapped) in row["error"], row["error"])
    last = {m["train/iter"]: m for m in metrics}
    check_equal(float(row["final_loss"]), round(last[STEPS]["train/loss"], 6), "final loss")
    check_equal(float(row["wall_time_sec"]), round(sum(m["train/dt"] for m in last.values()), 3), "wall time")


@scenario
def a_host_cut_off_is_swapped_and_the_training_goes_on(context):
    """srun: the cable of the second host is pulled: no peer can say more than that it hears nothing; Slurm
    calls the node lost, the training goes on on the spare, and the run exports one correct row."""
    job, hosts = Srun().start(context, command(context), ppn=2)
    job.wait_for("the second checkpoint", lambda: last_step(job) >= KILL_AFTER, START_S)
    slurm_job.pull_cable(job, hosts[1])
    finish(job, within_s=LOSS_NOTICED_S + END_S)
    check_equal([host for host, _ in job.bad_hosts()], [hosts[1]], "bad_nodes.txt")
    check_resumed(job)
    check_losses(context, job)
    check_row(context, job, (hosts[1], hosts[2]))


@scenario
def told_to_stop_it_saves_and_the_next_job_goes_on(context):
    """srun: ezpz gets SIGTERM, as before the time limit: the step is finished, a checkpoint saved, and the
    next job loses no step."""
    job, _ = Srun().start(context, command(context), ppn=2)
    job.wait_for("some steps", lambda: last_step(job) >= EVERY + 3, START_S)
    job.signal(signal.SIGTERM)
    job.wait(END_S)
    said = job.stdout().decode(errors="replace")
    stopped = re.findall(rf"(?m)^stopped step=(\d+) of {STEPS}$", said)
    check_equal(len(stopped), 1, f"words about the stop in {said[-1500:]}")
    check_equal(saved_in(job, 1)[-1:], [int(stopped[0])], "the last checkpoint")
    check_losses(context, job, upto=int(stopped[0]))
    flags = command(context)
    again = subprocess.run(list(map(str, [*flags, "--batch-size", WORLD])), env=context.env(**ONE_THREAD), capture_output=True, text=True,
                           timeout=END_S)
    check_equal(again.returncode, 0, f"return code of the run after it; {again.stderr}")
    steps = [(int(step), float(loss)) for step, loss in STEP.findall(again.stdout)]
    check_equal([step for step, _ in steps], list(range(int(stopped[0]) + 1, STEPS + 1)), "steps after it")
    known = unbroken_losses(context)
    check(all(abs(loss - known[step]) < 2e-4 for step, loss in steps), f"losses {steps}")


@contextlib.contextmanager
def around(options):
    """The files where all nodes see them."""
    options.jobs = 1
    folder = options.base / "bin"
    folder.mkdir()
    shutil.copy(options.ezpz.parent / "ezpz-train", folder)
    options.ezpz = Path(shutil.copy(options.ezpz, folder))
    options.toy = Path(shutil.copy(options.toy, folder))
    try:
        with contextlib.ExitStack() as stack:
            options.lab = Clusters(stack)
            yield
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if "--ezpz" in sys.argv and not (Path(sys.argv[sys.argv.index("--ezpz") + 1]).parent / "ezpz-train").exists():
        sys.exit(skip_all("train_launchers", "ezpz-train was not built beside ezpz"))
    sys.exit(main("train_launchers", base=BASE, around=around))
