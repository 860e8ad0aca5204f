#!/usr/bin/python3
"""Twenty steps of a tiny model by the Python reference, in float64: what ezpz-train must come to.

    tests/reference/twenty_steps.py --store     write expected/*.json anew
    tests/reference/twenty_steps.py             compute, and compare with what is stored
    tests/reference/twenty_steps.py --adapter DIR
                                                the same from that adapter; print losses and norms as JSON

A file of expected/ has the flags of the run, the checksums of its inputs (tiny.py makes them), twenty
losses and the first five gradient norms before clipping.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

import tiny
from folder import add_adapter, load_model
from formats import read_tokens, samples_of
from llama import Recipe, train

EXPECTED = Path(__file__).resolve().parent / "expected"
STEPS, NORMS = 20, 5
RECIPE = Recipe(lr=5e-3, min_lr=5e-4, warmup=3, steps=STEPS)
# Name, folder of the model, whether the adapter is trained.
CASES = {"full": ("model", False), "tied": ("tied", False), "lora": ("model", True)}
# Between two machines float64 differs by rounding only; the trainer's fp32 gets 1e-4.
SAME = 1e-9


def run(folder, case, dtype=torch.float64, order=None, adapter=None):
    """Losses and gradient norms of the tiny model in that folder; order: of the samples in a batch;
    adapter: instead of the folder's."""
    model_name, lora = CASES[case]
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model = load_model(Path(folder) / model_name, tiny.SEQ)
        if lora:
            add_adapter(model, adapter or Path(folder) / "adapter")
        tokens, _ = read_tokens(Path(folder) / "text.tok")
        batch = torch.tensor(samples_of(tokens, tiny.SEQ))
        batch = batch[order] if order is not None else batch
        losses, norms = [], []

        def report(_step, loss, norm, _lr):
            losses.append(float(loss))
            norms.append(float(norm))

        train(model, lambda step: batch, RECIPE, report)
        return losses, norms
    finally:
        torch.set_default_dtype(before)


def record(folder, case):
    losses, norms = run(folder, case)
    flags = {"--train-iters": STEPS, "--lr": RECIPE.lr, "--min-lr": RECIPE.min_lr, "--warmup-iters": RECIPE.warmup,
             "--weight-decay": RECIPE.weight_decay, "--clip": RECIPE.clip, "--seq-len": tiny.SEQ}
    if CASES[case][1]:
        flags.update({"--lora-rank": tiny.LORA_RANK, "--lora-alpha": tiny.LORA_ALPHA, "--lora-dropout": 0,
                      "--lora-target": "attn,mlp"})
    return {"model": CASES[case][0], "global_batch": tiny.BATCH, "flags": flags, "inputs": tiny.checksums(folder),
            "losses": losses, "gradient_norms": norms[:NORMS]}


def stored(case):
    return json.loads((EXPECTED / f"{case}.json").read_text())


def differences(case, now):
    """What of a record is not as it is stored, in words."""
    was = stored(case)
    found = [f"{case}: {key} is not what is stored" for key in ("model", "global_batch", "flags", "inputs") if was[key] != now[key]]
    for key in ("losses", "gradient_norms"):
        if len(was[key]) != len(now[key]):
            found.append(f"{case}: {len(now[key])} {key}, {len(was[key])} are stored")
        for i, (a, b) in enumerate(zip(was[key], now[key])):
            if not abs(a - b) <= SAME * max(1, abs(a)):
                found.append(f"{case}: {key} of step {i + 1} is {b!r}, stored is {a!r}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="write expected/*.json anew")
    parser.add_argument("--adapter", type=Path, metavar="DIR", help="train this adapter; print, compare nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    trouble = []
    with tempfile.TemporaryDirectory(prefix="ezpz-reference-") as folder:
        tiny.write_all(folder)
        if options.adapter is not None:
            losses, norms = run(folder, "lora", adapter=options.adapter)
            print(json.dumps({"losses": losses, "gradient_norms": norms[:NORMS]}))
            return 0
        for case in CASES:
            now = record(folder, case)
            if options.store:
                EXPECTED.mkdir(exist_ok=True)
                (EXPECTED / f"{case}.json").write_text(json.dumps(now, indent=1) + "\n")
            else:
                trouble += differences(case, now)
            print(f"{case}: loss {now['losses'][0]:.6f} to {now['losses'][-1]:.6f}, first norm {now['gradient_norms'][0]:.6f}")
    for line in trouble:
        print(line, file=sys.stderr)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
