#!/usr/bin/python3
"""ezpz-train against the Python reference of tests/reference: twenty steps of a tiny Hugging Face model,
whose losses and gradient norms are stored, and computed again where Debian's python3-torch is.
A minute, no root."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

from harness import HERE, Skip, check, check_equal, main, scenario
from train_ranks import Ranks

REFERENCE = HERE.parent / "reference"
EXPECTED = REFERENCE / "expected"
ADAPTER_FLAG = "--lora-adapter"  # starts from an adapter in PEFT's layout
LOSS_TOLERANCE, NORM_TOLERANCE = 1e-4, 1e-4
TIME_LIMIT_S = 300  # of a Python program on a busy machine


def inputs(context):
    """The files that both sides read, made anew and known to be the stored ones' to the bit."""
    folder = context.dir / "tiny"
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(["/usr/bin/python3", REFERENCE / "tiny.py", folder], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if "No module named 'numpy'" in done.stderr:
        raise Skip("numpy is missing: apt-get install python3-numpy")
    check_equal(done.returncode, 0, f"exit code of tiny.py; it said {done.stderr[-1000:]}")
    made = {name: digest for digest, name in (line.split() for line in done.stdout.splitlines())}
    for path in sorted(EXPECTED.glob("*.json")):
        check_equal(made, json.loads(path.read_text())["inputs"], f"checksums of the inputs of {path.name}")
    return folder


def flags_known(context):
    done = subprocess.run([context.ezpz, "train", "--help"], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    check_equal(done.returncode, 0, "exit code of `ezpz train --help`")
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", done.stdout))


def stored(case):
    return json.loads((EXPECTED / f"{case}.json").read_text())


def words_of(case, folder, ranks):
    expected = stored(case)
    words = ["--model", folder / expected["model"], "--dataset", folder / "text.tok", "--threads", 1,
             "--batch-size", expected["global_batch"] // ranks]
    for flag, value in expected["flags"].items():
        words += [flag, value]
    return words


def compare(run, ranks, expected):
    """Twenty losses, five gradient norms."""
    check_equal(run.wait(), [0] * ranks, f"exit codes; rank 0 said: {run.output()[-2000:]}")
    steps = run.steps()
    check_equal([n for n, _, _ in steps], list(range(1, len(expected["losses"]) + 1)), "the steps")
    for (n, loss, _), want in zip(steps, expected["losses"]):
        check(abs(loss - want) < LOSS_TOLERANCE, f"{ranks} ranks, step {n}: loss {loss}, the reference has {want:.6f}")
    for (n, _, norm), want in zip(steps, expected["gradient_norms"]):
        check(abs(norm / want - 1) < NORM_TOLERANCE, f"{ranks} ranks, step {n}: norm {norm}, the reference has {want:.6f}")


def compare_stored(context, case, ranks, *more):
    folder = inputs(context)
    compare(Ranks(context, ranks, *words_of(case, folder, ranks), *more), ranks, stored(case))


def reference(context, *words):
    """What twenty_steps.py prints."""
    if importlib.util.find_spec("torch") is None:
        raise Skip("python3-torch is missing: apt-get install python3-torch")
    done = subprocess.run(["/usr/bin/python3", REFERENCE / "twenty_steps.py", *words], capture_output=True, text=True,
                          env=context.env(), timeout=TIME_LIMIT_S)
    check_equal(done.returncode, 0, f"exit code of twenty_steps.py; it said {done.stderr[-2000:]}")
    return done.stdout


@scenario
def the_stored_values_are_what_the_reference_computes(context):
    """Stored losses and norms cannot drift from the script that made them."""
    reference(context)


@scenario
def one_process_trains_as_the_reference_does(context):
    """All weights of a Hugging Face folder, on a shard of tokens: twenty losses, five gradient norms."""
    compare_stored(context, "full", 1)


@scenario
def two_ranks_train_as_the_reference_does(context):
    """The same with the samples and the model divided over two ranks."""
    compare_stored(context, "full", 2)


@scenario
def a_tied_model_trains_as_the_reference_does(context):
    """One matrix is embedding and head: on one rank and on two."""
    for ranks in (1, 2):
        compare_stored(context, "tied", ranks)


@scenario
def an_adapter_trains_as_the_reference_does(context):
    """LoRA on attention and feed-forward: the reference goes on from the adapter that ezpz-train begins with,
    written by a run whose rate is 0, and has its losses and norms, on one rank and on two."""
    folder = inputs(context)
    words = words_of("lora", folder, 1)
    for flag, value in (("--train-iters", 1), ("--lr", 0), ("--min-lr", 0)):
        words[words.index(flag) + 1] = value
    first = Ranks(context, 1, *words, "--outdir", context.dir / "first")
    check_equal(first.wait(), [0], f"exit code; it said: {first.output()[-2000:]}")
    expected = json.loads(reference(context, "--adapter", context.dir / "first" / "adapter"))
    for ranks in (1, 2):
        compare(Ranks(context, ranks, *words_of("lora", folder, ranks)), ranks, expected)


@scenario
def a_given_adapter_trains_as_the_reference_does(context):
    """The same from an adapter in PEFT's layout that another program wrote, against what is stored."""
    if ADAPTER_FLAG not in flags_known(context):
        raise Skip(f"ezpz-train has no {ADAPTER_FLAG}: it cannot start from an adapter")
    for ranks in (1, 2):
        compare_stored(context, "lora", ranks, ADAPTER_FLAG, context.dir / "tiny" / "adapter")


if __name__ == "__main__":
    sys.exit(main("train_reference"))
