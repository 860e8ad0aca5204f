#!/usr/bin/python3
"""The reference as a program: what bench/train.py measures ezpz-train beside. One process, or a rank of
DistributedDataParallel over gloo when RANK and WORLD_SIZE are set. Flags and step lines are ezpz-train's.

Plain eager PyTorch as one would write it, without a handicap: tokens are made once, before the first
step; all of a query group is one product; AdamW works on lists of tensors (foreach); DDP's gradients are
views of its buckets.
"""

import argparse
import os
import sys
import time
from datetime import timedelta

import torch
from torch import distributed

from llama import TARGETS, Llama, Recipe, Shape, train

BATCHES = 4  # of random tokens, used in turn


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--dim", "--n-layers", "--n-heads", "--n-kv-heads", "--hidden-dim", "--vocab-size", "--seq-len"):
        p.add_argument(name, type=int, required=True)
    p.add_argument("--tied", action="store_true")
    p.add_argument("--batch-size", type=int, default=1)
    p.add_argument("--train-iters", type=int, default=20)
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--lora-rank", type=int, default=0)
    p.add_argument("--lora-alpha", type=float, default=16)
    p.add_argument("--lora-target", default="attn")
    return p.parse_args()


def peak_gflops(size=1024, tries=5):
    """The best of some square products, as ezpz-train measures its own."""
    a, b = torch.full((size, size), 0.5), torch.full((size, size), 0.25)
    out, best = torch.empty(size, size), float("inf")
    for _ in range(tries):
        begun = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best / 1e9


def blas_file():
    """Which library the products come from: the file that is mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1].rsplit("/", 1)[-1] for line in maps if "blas" in line.lower()}
    return " ".join(sorted(files)) or "within torch"


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if rank == 0:
        print(f"threads={torch.get_num_threads()} sgemm_peak_gflops={peak_gflops():.1f} blas='{blas_file()}'", flush=True)
    shape = Shape(options.dim, options.n_layers, options.n_heads, options.n_kv_heads, options.hidden_dim,
                  options.vocab_size, options.tied)
    model = Llama(shape, options.seq_len)
    model.initialize(options.seed)
    if options.lora_rank > 0:
        targets = [module for word in options.lora_target.split(",") for module in TARGETS[word]]
        model.add_lora(options.lora_rank, options.lora_alpha, 0.0, targets)
    if world > 1:
        distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
        model = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)
    generator = torch.Generator().manual_seed(options.seed + rank)
    batches = [torch.randint(options.vocab_size, (options.batch_size, options.seq_len + 1), generator=generator)
               for _ in range(BATCHES)]
    tokens = options.batch_size * options.seq_len * world
    last = time.perf_counter()

    def report(step, loss, norm, lr):
        nonlocal last
        if world > 1:  # the mean over all ranks, as ezpz-train tells
            distributed.all_reduce(loss)
            loss = loss / world
        loss, norm = loss.item(), norm.item()
        now = time.perf_counter()
        took, last = now - last, now
        if rank == 0:
            print(f"step={step} loss={loss:.6f} dt={took:.4f} tps={tokens / took:.0f} grad_norm={norm:.6f} lr={lr:g}",
                  flush=True)

    train(model, lambda step: batches[step % BATCHES], Recipe(steps=options.train_iters), report)
    if world > 1:
        distributed.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
