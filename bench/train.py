#!/usr/bin/python3
"""How fast ezpz-train is, beside eager PyTorch on the same model in the same run.

    bench/train.py [--build DIR] [--quick] [--only CELL]... [--pairs N] [--json FILE] [--peer-env NAME=VALUE]...

The peer is tests/reference/peer.py on Debian's python3-torch: same shapes, batch, threads, random tokens,
AdamW (foreach), clipping, BLAS core and lines printed; two ranks are DistributedDataParallel over gloo. Tokens/s come
from the wall clock of whole processes, N steps against 2N, so that starting and stopping cancel and nobody
reports on himself. Pairs run A B, B A, A B, ...; what is judged is the median of the pairs' ratios.

MFU is against the best sgemm that either side measured in that pair. Memory is the largest peak of a
process against weights, gradients and moments (`ezpz flops`), what the backward keeps, and what the
program holds with next to no model. Everything takes about 40 minutes on two idle cores; on cores that
do other things the ratios still mean something, the rest does not.

Cells: debug, s (sequence 512), lora (s, rank 16, attention): one process of two threads. ddp-debug,
ddp-s: two ranks of one thread. first-step: from exec to the line of step 1.
"""

import argparse
import json
import os
import pathlib
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PEER = REPOSITORY / "tests" / "reference" / "peer.py"
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "NODE_RANK", "SLURM_", "PMI_", "PALS_", "OMPI_", "OMP_", "EZPZ_")
STEP = re.compile(r"^step=(\d+) loss=(\S+) ", re.M)
PEAK = re.compile(r"\bsgemm_peak_gflops=(\S+)")
BLAS = re.compile(r"\bblas='([^']*)'")
RUN_LIMIT_S = 1800
TINY = ["--model", "debug", "--dim", "32", "--hidden-dim", "32", "--n-layers", "1", "--vocab-size", "64", "--seq-len", "16",
        "--train-iters", "2", "--threads", "2"]
MIB = 1 << 20


class Cell:
    """steps: N of a whole run, and of a quick one."""

    def __init__(self, name, model, seq, ranks, steps, target, mfu_target=None, lora=0):
        self.name, self.model, self.seq, self.ranks, self.steps = name, model, seq, ranks, steps
        self.target, self.mfu_target, self.lora = target, mfu_target, lora
        self.threads = 2 // ranks


CELLS = [
    Cell("debug", "debug", 256, 1, (120, 20), 1.35),
    Cell("s", "s", 512, 1, (3, 1), 1.15, mfu_target=65),
    Cell("lora", "s", 512, 1, (4, 1), 1.0, lora=16),
    Cell("ddp-debug", "debug", 256, 2, (80, 15), 1.2),
    Cell("ddp-s", "s", 512, 2, (3, 1), 1.05),
]
FIRST_STEP = "first-step"
FIRST_STEP_LIMIT_S = 2.0
MEMORY_TOLERANCE = 0.25


def environment(more):
    """Without what a launcher, or a shell that tunes OpenMP, may have left."""
    return {**{n: v for n, v in os.environ.items() if not n.startswith(LAUNCHERS)}, **more}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Side:
    """How one of the two is started."""

    def __init__(self, name, command, words_of, env):
        self.name, self.command, self.words_of, self.env = name, command, words_of, env

    def run(self, cell, steps, folder):
        """Seconds from the first exec to the last exit, the largest peak of memory, rank 0's output."""
        port, started, outputs = free_port(), [], []
        begun = time.perf_counter()
        for rank in range(cell.ranks):
            env = dict(self.env)
            if cell.ranks > 1:
                env.update(RANK=str(rank), WORLD_SIZE=str(cell.ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                           LOCAL_WORLD_SIZE=str(cell.ranks), MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
            path = folder / f"{self.name}-{rank}.log"
            with path.open("wb") as out:
                started.append(subprocess.Popen([*self.command, *self.words_of(cell, steps)], stdout=out, stdin=subprocess.DEVNULL,
                                                stderr=subprocess.STDOUT, env=environment(env)))
            outputs.append(path)
        peak = 0
        for process, path in zip(started, outputs):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            peak = max(peak, usage.ru_maxrss * 1024)
            if process.returncode != 0:
                for other in started:
                    other.kill() if other.returncode is None else None
                sys.exit(f"{self.name}, {cell.name}: exit code {process.returncode}:\n{path.read_text(errors='replace')[-2000:]}")
        seconds = time.perf_counter() - begun
        text = outputs[0].read_text(errors="replace")
        done = STEP.findall(text)
        if [int(n) for n, _ in done] != list(range(1, steps + 1)) or not all(float(loss) < 100 for _, loss in done):
            sys.exit(f"{self.name}, {cell.name}: not {steps} sound steps:\n{text[-2000:]}")
        return seconds, peak, text

    def measure(self, cell, steps, folder):
        """Tokens/s, peak of memory, sgemm peak in GFLOP/s."""
        short, _, first = self.run(cell, steps, folder)
        long, peak, second = self.run(cell, 2 * steps, folder)
        rate = steps * cell.seq * cell.ranks / (long - short) if long > short else None
        gflops = [float(PEAK.search(text)[1]) for text in (first, second) if PEAK.search(text)]
        return {"tokens_per_s": rate, "rss": peak, "sgemm_gflops": max(gflops), "blas": BLAS.search(second)[1]}

    def first_step_s(self, cell):
        """From exec to the line of step 1."""
        begun = time.perf_counter()
        process = subprocess.Popen([*self.command, *self.words_of(cell, 1)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=environment(self.env))
        with process, selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            text = b""
            while ready.select(RUN_LIMIT_S):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                text += piece
                if re.search(rb"(?m)^step=1 .*\n", text):
                    return time.perf_counter() - begun
                if not piece:
                    break
            process.kill()
        return sys.exit(f"{self.name}: no first step:\n{text.decode(errors='replace')[-2000:]}")


def shape_flags(shape):
    words = []
    for flag in ("dim", "n_layers", "n_heads", "n_kv_heads", "hidden_dim", "vocab_size"):
        words += [f"--{flag.replace('_', '-')}", str(shape[flag])]
    return words


def lora_flags(cell):
    return ["--lora-rank", str(cell.lora), "--lora-alpha", "32", "--lora-target", "attn"] if cell.lora else []


class Bench:
    def __init__(self, options):
        self.ezpz, self.train = options.build / "ezpz", options.build / "ezpz-train"
        for path in (self.ezpz, self.train):
            if not path.exists():
                sys.exit(f"{path} is missing: cmake --preset train && cmake --build --preset train --target ezpz ezpz-train")
        self.costs = {}
        ours = Side("ezpz-train", [str(self.train)], lambda c, steps: self.common(c, steps), {})
        peer_env = self.blas_core() | dict(e.split("=", 1) for e in options.peer_env)
        peer = Side("PyTorch", ["/usr/bin/python3", str(PEER)], lambda c, steps: self.common(c, steps, with_shape=True), peer_env)
        self.sides = (ours, peer)

    def common(self, cell, steps, with_shape=False):
        which = shape_flags(self.cost(cell)) if with_shape else ["--model", cell.model]
        return [*which, "--seq-len", str(cell.seq), "--train-iters", str(steps), "--threads", str(cell.threads), *lora_flags(cell)]

    def knows_lora(self):
        return "--lora-rank" in subprocess.run([self.train, "--help"], capture_output=True, text=True, check=True).stdout

    def cost(self, cell):
        if cell.name not in self.costs:
            words = [self.ezpz, "flops", "--model", cell.model, "--seq", str(cell.seq), "--ranks", str(cell.ranks), "--json"]
            words += ["--lora-rank", str(cell.lora), "--lora-target", "attn"] if cell.lora else []
            self.costs[cell.name] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        return self.costs[cell.name]

    def blas_core(self):
        """OpenBLAS takes an old core for a processor newer than itself; ezpz-train sees that and chooses again.
        The peer gets the same core, or the ratio would flatter."""
        with tempfile.TemporaryDirectory(prefix="ezpz-bench-") as folder:
            words = [str(self.train), *TINY, "--outdir", folder]
            text = subprocess.run(words, capture_output=True, text=True, check=True, env=environment({})).stdout
        core = re.search(r"OpenBLAS \S+ (\S+) ", text)
        return {"OPENBLAS_CORETYPE": core.group(1)} if core else {}

    def floor_bytes(self, folder):
        """What the program holds with next to no model."""
        tiny = Cell("floor", "debug", 16, 1, None, None)
        return Side("floor", [str(self.train)], lambda cell, steps: TINY, {}).run(tiny, 2, folder)[1]

    def expected_bytes(self, cell):
        """Of a rank, beyond the program itself."""
        shape = self.cost(cell)
        dim, hidden, layers, vocab, tokens = (shape[k] for k in ("dim", "hidden_dim", "n_layers", "vocab_size", "seq_len"))
        held = sum(shape["rank_bytes"].values())
        if cell.ranks > 1:  # gathered whole, with their gradients: both tables, and two blocks by turns
            block = (shape["parameters"] - 2 * vocab * dim) / layers
            held += 4 * 2 * (2 * vocab * dim + 2 * block)
        kv = dim // shape["n_heads"] * shape["n_kv_heads"]
        kept = 6 * dim + 2 * kv + 2 * hidden  # a block's: input, norm, q k v, attention, sum, norm, gate and up
        passing = 6 * dim + 2 * kv + 2 * hidden + min(vocab, (128 * MIB // 4) // tokens)
        return held + 4 * tokens * (layers * kept + passing)


def verdict(holds):
    return "ok" if holds else "MISSED"


def spread(values, form="{:.2f}"):
    return f"{form.format(min(values))}-{form.format(max(values))}"


def row(what, ours, peer, ratio, low_high, target, word):
    print(f"{what:<26} {ours:>15} {peer:>15} {ratio:>9} {low_high:>14} {target:>12} {word:>7}", flush=True)


def in_turn(pairs, first, second):
    """Pairs of results, by turns A B and B A."""
    results = []
    for i in range(pairs):
        if i % 2 == 0:
            a, b = first(), second()
        else:
            b, a = second(), first()
        results.append((a, b))
    return results


def bench_cell(bench, cell, options, folder, floor):
    steps = options.steps or cell.steps[1 if options.quick else 0]
    ours, peer = bench.sides
    pairs = in_turn(options.pairs, lambda: ours.measure(cell, steps, folder), lambda: peer.measure(cell, steps, folder))
    sound = [(a, b) for a, b in pairs if a["tokens_per_s"] and b["tokens_per_s"]]
    if not sound:
        row(f"{cell.name}: tokens/s", "", "", "", "", "", "noise")
        return pairs
    ratios = [a["tokens_per_s"] / b["tokens_per_s"] for a, b in sound]
    rates = [statistics.median(side["tokens_per_s"] for side in both) for both in zip(*sound)]
    row(f"{cell.name}: tokens/s" + (f" ({len(sound)} of {len(pairs)} pairs)" if len(sound) < len(pairs) else ""),
        f"{rates[0]:.0f}", f"{rates[1]:.0f}", f"x{statistics.median(ratios):.2f}", spread(ratios), f">= x{cell.target:.2f}",
        verdict(statistics.median(ratios) >= cell.target))
    gflop = bench.cost(cell)["gflop_per_token"]
    # Of all ranks together against what one rank's threads can do, times the ranks.
    shares = [[100 * side["tokens_per_s"] * gflop / cell.ranks / max(a["sgemm_gflops"], b["sgemm_gflops"]) for side in (a, b)]
              for a, b in sound]
    mine, theirs = (statistics.median(column) for column in zip(*shares))
    row(f"{cell.name}: MFU", f"{mine:.1f} %", f"{theirs:.1f} %", "", spread([s[0] for s in shares], "{:.1f}"),
        f">= {cell.mfu_target} %" if cell.mfu_target else "", verdict(mine >= cell.mfu_target) if cell.mfu_target else "")
    row(f"{cell.name}: sgemm, GFLOP/s", *(f"{statistics.median(s['sgemm_gflops'] for s in both):.1f}" for both in zip(*pairs)), "",
        spread([max(a["sgemm_gflops"], b["sgemm_gflops"]) for a, b in pairs], "{:.1f}"), "", "")
    bench_memory(bench, cell, pairs, floor)
    return pairs


def bench_memory(bench, cell, pairs, floor):
    seen, peer = (statistics.median(side["rss"] for side in both) for both in zip(*pairs))
    expected = floor + bench.expected_bytes(cell)
    row(f"{cell.name}: peak RSS", f"{seen / MIB:.0f} MiB", f"{peer / MIB:.0f} MiB", f"x{seen / expected:.2f}",
        f"of {expected / MIB:.0f} MiB", f"+-{100 * MEMORY_TOLERANCE:.0f} %", verdict(abs(seen / expected - 1) <= MEMORY_TOLERANCE))


def bench_first_step(bench, options):
    cell = CELLS[0]
    pairs = in_turn(options.pairs, *(lambda side=side: side.first_step_s(cell) for side in bench.sides))
    mine, theirs = (statistics.median(column) for column in zip(*pairs))
    row("debug: first step after", f"{mine:.2f} s", f"{theirs:.2f} s", f"x{theirs / mine:.1f}", spread([a for a, _ in pairs]),
        f"<= {FIRST_STEP_LIMIT_S:.1f} s", verdict(mine <= FIRST_STEP_LIMIT_S))
    return pairs


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [cell.name for cell in CELLS] + [FIRST_STEP]
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build" / "train", help="where ezpz and ezpz-train are")
    parser.add_argument("--quick", action="store_true", help="three pairs of few steps: to see that it works, not to quote")
    parser.add_argument("--only", metavar="CELL", action="append", choices=names, help="one of: " + ", ".join(names))
    parser.add_argument("--pairs", type=int, help="how many (9; quick: 3)")
    parser.add_argument("--steps", type=int, help="N, instead of each cell's own")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every measurement, for programs")
    parser.add_argument("--peer-env", metavar="NAME=VALUE", action="append", default=[], help="set for the peer")
    options = parser.parse_args()
    options.pairs = options.pairs or (3 if options.quick else 9)
    options.only = options.only or names
    return options


def main():
    options = parse()
    bench, measured = Bench(options), {}
    row("what", "ezpz-train", "PyTorch eager", "ratio", "min-max", "target", "")
    with tempfile.TemporaryDirectory(prefix="ezpz-bench-") as name:
        folder = pathlib.Path(name)
        if FIRST_STEP in options.only:
            measured[FIRST_STEP] = bench_first_step(bench, options)
        floor = bench.floor_bytes(folder)
        for cell in CELLS:
            if cell.name not in options.only:
                continue
            if cell.lora and not bench.knows_lora():
                row(f"{cell.name}: tokens/s", "no --lora-rank", "", "", "", f">= x{cell.target:.2f}", "MISSED")
                continue
            measured[cell.name] = bench_cell(bench, cell, options, folder, floor)
    flavours = {side["blas"] for name, pairs in measured.items() if name != FIRST_STEP for pair in pairs for side in pair}
    print(f"blas: {'; '.join(sorted(flavours)) or 'not asked'}. {options.pairs} pairs, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
