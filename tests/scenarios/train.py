#!/usr/bin/python3
"""ezpz-train as processes: alone, as ranks that find each other, and as ranks that lose each other.
Minutes on two cores, no root."""

import json
import re
import signal
import subprocess
import sys

from harness import check, check_equal, main, scenario
from train_ranks import STEP, TIME_LIMIT_S, Ranks, clean_environment, free_port

STOPPED, PEERS_LOST = 75, 76
SMALL = ("--model", "debug", "--dim", "32", "--n-layers", "2", "--hidden-dim", "64", "--vocab-size", "96", "--seq-len", "16",
         "--dataset", "chain", "--lr", "3e-3", "--warmup-iters", "3", "--threads", "1")


def trained(context, count, *flags):
    ranks = Ranks(context, count, *SMALL, *flags)
    codes = ranks.wait()
    check_equal(codes, [0] * count, f"exit codes of {count} ranks; rank 0 said: {ranks.output()[-2000:]}")
    return ranks


@scenario
def alone_it_trains_and_sums_up(context):
    """Without a launcher it is one rank: a banner, a line a step with six decimals, a JSON object at the end."""
    ranks = trained(context, 1, "--train-iters", 12, "--json")
    lines = ranks.output().splitlines()
    check(re.fullmatch(r"\['.+'\]\[device='cpu'\]\[node=0/0\]\[local_rank=0/0\]\[rank=0/0\]", lines[0]), f"banner: {lines[0]}")
    steps = ranks.steps()
    check_equal([n for n, _, _ in steps], list(range(1, 13)), "the steps")
    check(steps[-1][1] < steps[0][1] - 0.1, f"nothing was learnt: {steps}")
    told = json.loads(lines[-1])
    check_equal(told["steps"], 12, "steps of the summary")
    check_equal(round(told["final_loss"], 6), steps[-1][1], "final loss")
    for name in ("tokens_per_sec", "tokens_per_sec_per_gpu", "mfu", "tflops", "params", "peak_rss_bytes"):
        check(told[name] > 0, f"{name} is {told[name]}")


@scenario
def ranks_train_as_one_process_does(context):
    """Two and four processes, over gloo or shared memory, have the losses and gradient norms of one, at equal global batch."""
    alone = trained(context, 1, "--train-iters", 20, "--batch-size", 4).steps()
    for count, flags in ((2, ("--batch-size", 1, "--grad-accum", 2, "--transport", "gloo")), (2, ("--batch-size", 2)),
                         (4, ("--batch-size", 1)), (2, ("--batch-size", 4, "--tp", 2)),
                         (4, ("--batch-size", 2, "--tp", 2, "--transport", "gloo")), (4, ("--batch-size", 1, "--tied", "--transport", "gloo"))):
        if "--tied" in flags:
            alone = trained(context, 1, "--train-iters", 20, "--batch-size", 4, "--tied").steps()
        ranks = trained(context, count, "--train-iters", 20, *flags)
        steps = ranks.steps()
        check_equal(len(steps), 20, f"steps of {count} ranks")
        for (n, loss, norm), (_, want_loss, want_norm) in zip(steps, alone):
            check(abs(loss - want_loss) < 1e-4, f"{count} ranks, step {n}: loss {loss}, alone {want_loss}")
            check(n > 5 or abs(norm / want_norm - 1) < 1e-4, f"{count} ranks, step {n}: norm {norm}, alone {want_norm}")
        check_equal(len(STEP.findall(ranks.output(1))), 0, "step lines of rank 1")


@scenario
def asked_to_stop_all_end_after_the_same_step(context):
    """SIGTERM to one rank: every rank ends after a whole step, says where, with an exit code of its own."""
    ranks = Ranks(context, 2, *SMALL, "--train-iters", 1000000)
    ranks.until_step(2)
    ranks.processes[1].send_signal(signal.SIGTERM)
    check_equal(ranks.wait(), [STOPPED, STOPPED], "exit codes")
    last = ranks.steps()[-1][0]
    check(f"stopped step={last} of 1000000" in ranks.output(), f"rank 0 ended with: {ranks.output()[-500:]}")


@scenario
def a_dead_peer_is_noticed_at_once(context):
    """A killed rank: the other says what it saw in one line and exits with a code of its own, over either transport."""
    for transport in ("auto", "gloo"):
        ranks = Ranks(context, 2, *SMALL, "--train-iters", 1000000, "--transport", transport)
        ranks.until_step(2)
        ranks.processes[0].send_signal(signal.SIGKILL)
        check_equal(ranks.processes[1].wait(timeout=20), PEERS_LOST, f"exit code of the survivor over {transport}")
        lines = [line for line in ranks.output(1).splitlines() if "lost its peers" in line]
        check_equal(len(lines), 1, f"lines about it in {ranks.output(1)[-1000:]}")


@scenario
def a_peer_that_never_comes_is_not_awaited_for_ever(context):
    """A rank whose peers do not come gives up after the time for connecting."""
    env = {**clean_environment(context), "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = subprocess.run([str(context.ezpz), "train", *SMALL], env=env, capture_output=True, timeout=TIME_LIMIT_S, cwd=context.dir)
    check_equal(done.returncode, PEERS_LOST, f"exit code; it said {done.stderr.decode()[-500:]}")
    check(b"lost its peers: meeting at 127.0.0.1" in done.stderr, f"it said {done.stderr.decode()[-500:]}")


@scenario
def what_cannot_be_is_refused(context):
    """One line that says what is wrong, exit 2, before anything is computed."""
    for words, env, piece in [
        (["--model", "no-such"], {}, "no-such"),
        (["--transport", "ucx"], {}, "gloo"),
        (["--tp", "2"], {}, "--tp"),
        (["--tp", "4"], {}, "kv heads"),
        (["--n-heads", "3"], {}, "n-heads"),
        (["--lr", "-1"], {}, "--lr"),
        (["extra"], {}, "extra"),
        (SMALL, {"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
        (SMALL, {"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of only 2"),
        (SMALL, {"RANK": "x", "WORLD_SIZE": "2"}, "RANK"),
    ]:
        done = subprocess.run([str(context.ezpz), "train", *words], env={**clean_environment(context), **env}, capture_output=True,
                              timeout=TIME_LIMIT_S, cwd=context.dir)
        said = done.stderr.decode()
        check_equal((done.returncode, done.stdout, said.count("\n")), (2, b"", 1), f"{words} {env}: {said}")
        check(piece in said, f"{words} {env} should say {piece!r}: {said}")


if __name__ == "__main__":
    sys.exit(main("train"))
