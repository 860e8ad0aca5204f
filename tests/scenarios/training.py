"""The usual training job of the scenarios on the local launcher: four simulated nodes, two of them
active, two ranks each; small steps, a checkpoint every four of them."""

import socket
import subprocess
import threading

from harness import check_equal
from job import Job

NODES = ("sim1", "sim2", "sim3", "sim4")
STEPS = 14
CHECKPOINT_EVERY = 4


def toy(context, *flags, steps=STEPS, step_ms=50, checkpoint="checkpoint", receipts="receipts"):
    """The command of the job. checkpoint=None: it never saves, and begins anew at each attempt."""
    argv = [context.toy, "--steps", steps, "--step-ms", step_ms, "--receipts", context.dir / receipts]
    if checkpoint is not None:
        argv += ["--checkpoint", context.dir / checkpoint, "--checkpoint-every", CHECKPOINT_EVERY]
    return [*argv, *flags]


def hostfile(context, nodes=NODES):
    path = context.dir / "hosts.txt"
    path.write_text("".join(f"{node}\n" for node in nodes))
    return path


def launch(context, *toy_flags, flags=(), nodes=NODES, active=2, ppn=2, logs=None, env=None, command=None, **how):
    """Starts `ezpz launch --auto-retry` on the simulated nodes; how: see toy()."""
    logs = logs or context.dir / "logs"
    argv = [context.ezpz, "launch", "--auto-retry", "--launcher", "local"]
    argv += ["--hostfile", hostfile(context, nodes), "--nhosts", active, "--ppn", ppn]
    argv += ["--log-dir", logs, *flags, "--"]
    argv += command or toy(context, *toy_flags, **how)
    return Job(context, argv, logs, context.dir / "receipts", env=context.env(**(env or {})))


def plain_launch(context, *toy_flags, flags=(), active=2, ppn=2, command=None, **how):
    """The same without --auto-retry: one attempt, no spares."""
    logs = context.dir / "logs"
    argv = [context.ezpz, "launch", "--launcher", "local", "--nhosts", active, "--ppn", ppn]
    argv += ["--log-dir", logs, *flags, "--", *(command or toy(context, *toy_flags, **how))]
    return Job(context, argv, logs, context.dir / "receipts")


_reference = {}  # (world size, steps) -> losses: the same for every scenario
_reference_lock = threading.Lock()


def unbroken_losses(context, world_size=4, steps=STEPS):
    """{step: loss} of the same training in one piece, without ezpz: the known answer."""
    with _reference_lock:
        key = (world_size, steps)
        if key not in _reference:
            _reference[key] = _train_unbroken(context, world_size, steps)
        return _reference[key]


def _train_unbroken(context, world_size, steps):
    world = {"WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    argv = [context.toy, "--steps", str(steps), "--step-ms", "0", "--on-peer-loss", "exit"]
    started = [
        subprocess.Popen(argv, env=context.env(RANK=str(rank), **world), stdout=subprocess.PIPE, text=True)
        for rank in range(world_size)
    ]
    lines = started[0].communicate(timeout=20)[0].splitlines()
    for process in started[1:]:
        process.communicate(timeout=20)
    check_equal([p.returncode for p in started], [0] * world_size, "the reference run's return codes")
    words = [line.split() for line in lines if line.startswith("step=")]
    return {int(step[len("step=") :]): loss[len("loss=") :] for step, loss in words}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
