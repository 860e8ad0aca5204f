#!/usr/bin/python3
"""A plain DistributedDataParallel training on CPUs, as a tutorial would have it: env://, gloo, a
checkpoint every few steps that the next start resumes from. It knows nothing of who starts it; a
launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT is enough.

    python3 ddp_train.py --steps 200 --checkpoint model.pt
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SAMPLES = 512
FEATURES = 16


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--batch", type=int, default=16, help="samples a rank and step")
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--checkpoint", help="file to resume from and to save to")
    p.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    p.add_argument("--step-s", type=float, default=0, help="seconds a step takes longer, as with a larger model")
    return p.parse_args()


def teacher_data():
    """Points with the answers of a fixed small network: something that can be learned."""
    maker = torch.Generator().manual_seed(1)
    points = torch.randn(SAMPLES, FEATURES, generator=maker)
    weights = torch.randn(FEATURES, 1, generator=maker) / FEATURES**0.5
    return TensorDataset(points, torch.tanh(points @ weights))


def batches(data, batch, start):
    """Batches from step `start` on, epoch after epoch, in the same order whenever it began."""
    sampler = DistributedSampler(data, seed=7)
    loader = DataLoader(data, batch_size=batch, sampler=sampler, drop_last=True)
    epoch, skip = divmod(start, len(loader))
    while True:
        sampler.set_epoch(epoch)
        for i, pair in enumerate(loader):
            if i >= skip:
                yield pair
        epoch, skip = epoch + 1, 0


def save(path, step, model, optimizer):
    """Whole or not at all: a crash while it writes leaves the checkpoint before it."""
    part = f"{path}.part"
    torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, part)
    os.replace(part, path)
    print(f"saved checkpoint step={step}", flush=True)


def main():
    args = options()
    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    step, optimizer_state = 0, None
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, map_location="cpu")
        step, optimizer_state = saved["step"], saved["optimizer"]
        model.load_state_dict(saved["model"])
        if rank == 0:
            print(f"resumed from step {step}", flush=True)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    if optimizer_state is not None:
        optimizer.load_state_dict(optimizer_state)

    for points, wanted in batches(teacher_data(), args.batch, step):
        if step >= args.steps:
            break
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(points), wanted)
        loss.backward()
        optimizer.step()
        time.sleep(args.step_s)
        step += 1
        mean = loss.detach() / world
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step={step} loss={mean.item():.9f}", flush=True)
            if args.checkpoint and step % args.every == 0:
                save(args.checkpoint, step, model, optimizer)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
