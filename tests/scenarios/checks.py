"""What the scenarios of both launchers say about a finished job."""

import json
import subprocess

from harness import check, check_equal
from training import CHECKPOINT_EVERY, STEPS, unbroken_losses


def check_end(job, reason, attempts=None, success=False, timeout_s=60):
    """The job ends by itself, with this word, and with 0 only if that word is success."""
    code = job.wait(timeout_s)
    check_equal(job.stop_reason(), reason, f"stop reason (return code {code})")
    check((code == 0) == success, f"return code {code} with stop reason {reason}")
    if attempts is not None:
        check_equal(job.attempts(), attempts, "attempts")
    check_replay(job)


def check_replay(job):
    """Judged anew from its logs and its journal, every attempt comes to the verdict on record."""
    if not job.journal("attempt_end") or job.journal("log_gap"):
        return
    argv = [job.context.ezpz, "postmortem", "--json", job.dir]
    done = subprocess.run(argv, capture_output=True, timeout=30, env=job.context.env())
    check(done.returncode in (0, 1), f"postmortem of the job's directory: {done.stderr.decode()}")
    for attempt in json.loads(done.stdout)["attempts"]:
        was = attempt["recorded"]
        seen, recorded = (attempt["verdict"], sorted(attempt["culprits"])), (was["verdict"], sorted(was["culprits"]))
        check_equal(seen, recorded, f"verdict and culprits of attempt {attempt['attempt']}, judged anew")


def check_success(job, attempts, timeout_s=60):
    check_end(job, "success", attempts, success=True, timeout_s=timeout_s)


def check_losses(context, job, steps=STEPS, world_size=4):
    """Every step was reached, with the loss of a run that was never broken."""
    reference = unbroken_losses(context, world_size, steps)
    seen = job.steps()
    check_equal(sorted({step for step, _ in seen}), list(range(1, steps + 1)), "steps seen")
    wrong = [(step, loss, reference[step]) for step, loss in seen if loss != reference[step]]
    check(not wrong, f"losses differ from the unbroken run's (step, seen, expected): {wrong}")


def check_resumed(job, attempt):
    """It began at the last checkpoint of the attempt before it."""
    ready = job.receipts(attempt)[0].all("ready")[0]
    check_equal(ready["step"], job.saved_in(attempt - 1)[-1], f"step that attempt {attempt} resumed from")
    check(ready["step"] >= CHECKPOINT_EVERY, "there was no checkpoint to resume from")


def check_nobody_blamed(job):
    check_equal(job.bad_nodes(), [], "bad_nodes.txt")


def check_ranks_saw(job, number, attempt=1, ranks=4):
    """Each rank's own record says that it got the signal."""
    receipts = job.receipts(attempt)
    check_equal(sorted(receipts), list(range(ranks)), "ranks with a receipt")
    deaf = [rank for rank, receipt in receipts.items() if number not in receipt.signals()]
    check(not deaf, f"ranks {deaf} never saw signal {number}")


def check_faults(job, kind, attempt, ranks):
    """The self-inflicted fault really happened, to these ranks of that attempt. Waits for the end of
    the job, so that it can be said before anything else."""
    job.wait(90)
    hit = [r.rank for r in job.receipts(attempt).values() if any(f["kind"] == kind for f in r.all("fault"))]
    check_equal(hit, list(ranks), f"ranks with the fault {kind!r} in attempt {attempt}")


def check_some_fault(job, kind, attempt):
    """The same for a fault of all ranks: the first one's end may have taken the others down before
    they came to it."""
    job.wait(90)
    receipts = job.receipts(attempt).values()
    hit = [r.rank for r in receipts if any(f["kind"] == kind for f in r.all("fault"))]
    check(hit, f"no rank had the fault {kind!r} in attempt {attempt}")
