"""Ranks of ezpz-train as processes, as a launcher would start them: for scenarios."""

import re
import socket
import subprocess

from harness import wait_until

TIME_LIMIT_S = 240
STEP = re.compile(r"^step=(\d+) loss=(\d+\.\d{6,}) dt=\S+ tps=\S+ mfu=\S+ .*grad_norm=(\S+) ", re.M)


def clean_environment(context):
    """Without what a launcher around the tests may have left."""
    env = context.env()
    for name in list(env):
        if name.startswith(("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "NODE_RANK", "SLURM_", "PMI_", "PALS_", "OMPI_")):
            del env[name]
    # Ranks of a test share the cores: a waiting thread must not burn the other's.
    return {**env, "OMP_WAIT_POLICY": "passive"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ranks:
    """So many processes of `ezpz train`, their output in files."""

    def __init__(self, context, count, *flags):
        port = free_port()
        self.processes, self.paths = [], []
        context.started = getattr(context, "started", 0) + 1
        for rank in range(count):
            env = clean_environment(context)
            if count > 1:
                env.update(RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(count),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            path = context.dir / f"run{context.started}.rank{rank}.log"
            with path.open("wb") as out:
                self.processes.append(subprocess.Popen([str(context.ezpz), "train", *map(str, flags)], env=env, stdout=out,
                                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=context.dir))
            self.paths.append(path)
        context.at_end(self.kill)

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def output(self, rank=0):
        return self.paths[rank].read_text(errors="replace")

    def steps(self):
        return [(int(n), float(loss), float(norm)) for n, loss, norm in STEP.findall(self.output())]

    def wait(self):
        codes = [process.wait(timeout=TIME_LIMIT_S) for process in self.processes]
        return codes

    def until_step(self, step):
        wait_until(f"step {step}", lambda: any(n >= step for n, _, _ in self.steps()), TIME_LIMIT_S)
