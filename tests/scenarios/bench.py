#!/usr/bin/python3
"""`ezpz bench`: tables of real launches on this machine, some of which fail, hang, or claim what cannot be.
No root."""

import csv
import json
import os
import signal
import subprocess
import sys

from harness import check, check_equal, main, scenario, wait_until

TIME_LIMIT_S = 120
# Writes the metrics that its arguments claim, for each rank, into the launch's directory; "count" keeps a
# line for each time it was started.
PROGRAM = """#!/usr/bin/python3
import json, os, signal, sys, time
say = dict(word.split("=", 1) for word in sys.argv[1:])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if rank == 0:
    with open(say["count"], "a") as f:
        f.write(say["name"] + "\\n")
folder = say.get("dir", os.environ["EZPZ_RUN_DIR"])
os.makedirs(folder, exist_ok=True)
if "hang" in say and not os.path.exists(say["hang"]):
    signal.sigwait([signal.SIGUSR1])
if "code" in say and not os.path.exists(say.get("mended", "/nonexistent")):
    sys.exit(int(say["code"]))
tps, dt = float(say.get("tps", 100)), float(say.get("dt", 1))
with open(os.path.join(folder, f"metrics-{rank}.jsonl"), "a") as f:
    for i in range(1, 6):
        f.write(json.dumps({"timestamp": 1786393250.0 + i, "rank": rank, "metrics": {
            "train/iter": i, "train/loss": 5 - i * 0.1, "train/dt": dt, "train/tps": tps,
            "train/tps_per_gpu": tps / world, "train/mfu": float(say.get("mfu", 40)), "train/tflops": 1.0}}) + "\\n")
"""


class Table:
    """A table of cells whose command is the program."""

    def __init__(self, context):
        self.context, self.cells, self.head = context, [], ""
        self.program = context.dir / "program.py"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.count = context.dir / "count"
        self.count.touch()
        self.path = context.dir / "table.toml"
        self.outdir = context.dir / "out"

    def cell(self, label, keys="", **says):
        command = ["/usr/bin/python3", str(self.program), f"name={label}", f"count={self.count}",
                   *(f"{key}={value}" for key, value in says.items())]
        self.cells.append(f'[[cell]]\nlabel = "{label}"\ncommand = {json.dumps(command)}\n{keys}\n')

    def write(self):
        self.path.write_text(self.head + '[defaults]\nlauncher = "local"\nppn = 1\n' + "".join(self.cells))

    def argv(self, *flags):
        self.write()
        return [str(self.context.ezpz), "bench", str(self.path), "--outdir", str(self.outdir), *map(str, flags)]

    def start(self, *flags):
        return subprocess.Popen(self.argv(*flags), env=self.context.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def run(self, *flags, code=0):
        done = subprocess.run(self.argv(*flags), capture_output=True, text=True, env=self.context.env(), timeout=TIME_LIMIT_S)
        check_equal(done.returncode, code, f"exit code; {done.stdout}{done.stderr}")
        return done

    def rows(self):
        with open(self.outdir / "results.csv", newline="") as f:
            return {row["label"]: row for row in csv.DictReader(f)}

    def record(self, label):
        return json.loads((self.outdir / label / "cell.json").read_text())

    def started(self):
        return self.count.read_text().split()


@scenario
def a_cell_that_fails_and_one_that_hangs_lose_nobody(context):
    """Each is told with its reason; those behind them run, and the efficiency is of what was measured."""
    table = Table(context)
    table.head = 'baseline = "one"\n'
    table.cell("one", "nodes = 1", tps=100)
    table.cell("bad", code=3)
    table.cell("hung", hang=context.dir / "never")
    table.cell("two", "nodes = 2", tps=180)
    done = table.run("--cell-timeout", "3s", "--grace", 2, code=1)
    rows = table.rows()
    check_equal({label: row["state"] for label, row in rows.items()},
                {"one": "done", "bad": "failed", "hung": "timed_out", "two": "done"}, "states")
    check_equal((rows["bad"]["exit_code"], rows["two"]["efficiency_percent"], rows["two"]["nodes"]), ("3", "90", "2"), "the rows")
    check("timed_out: hung: not done after" in done.stdout and "90" in done.stdout, done.stdout)
    record = table.record("one")
    check_equal((record["state"], record["attempts"], record["resolved"]["nodes"]), ("done", 1, "1"), "cell.json")
    check("launch" in record["argv"] and (table.outdir / "one" / "attempt-1" / "launch.log").exists(), f"{record}")
    check(f"nodes={1}" in done.stderr, f"the configuration is not echoed: {done.stderr}")


@scenario
def called_again_it_goes_on(context):
    """What is done is not run again, what failed only with --retry-failed, what changed only when that is said."""
    table = Table(context)
    mended = context.dir / "mended"
    table.cell("good")
    table.cell("bad", code=3, mended=mended)
    table.run(code=1)
    table.run(code=1)
    check_equal(table.started(), ["good", "bad"], "starts")
    mended.touch()
    table.run("--retry-failed")
    check_equal(table.started(), ["good", "bad", "bad"], "starts with --retry-failed")
    check_equal((table.record("bad")["state"], table.record("bad")["attempts"]), ("done", 2), "the record")
    table.cells[0] = table.cells[0].replace("name=good", "name=better")
    done = table.run(code=2)
    check("name=better" in done.stderr and "--rerun-changed" in done.stderr, done.stderr)
    table.run("--rerun-changed")
    check_equal(table.started(), ["good", "bad", "bad", "better"], "starts with --rerun-changed")
    check((table.outdir / "good" / "attempt-1" / "launch.log").exists(), "the earlier try is gone")


@scenario
def a_killed_bench_is_gone_on_with(context):
    """SIGKILL in the middle of a cell: its launch ends with it, and the next call runs that cell and the rest."""
    table = Table(context)
    go_on = context.dir / "go-on"
    table.cell("first")
    table.cell("second", hang=go_on)
    table.cell("third")
    bench = table.start("--grace", 2)
    wait_until("the second cell", lambda: table.started() == ["first", "second"], 60)
    bench.kill()
    bench.communicate(timeout=TIME_LIMIT_S)
    check_equal(table.record("second")["state"], "running", "the state that was left")
    go_on.touch()
    table.run("--grace", 2)
    check_equal(table.started(), ["first", "second", "second", "third"], "starts")
    check_equal(table.record("second")["attempts"], 2, "attempts")
    check_equal({row["state"] for row in table.rows().values()}, {"done"}, "states")


@scenario
def sigterm_ends_the_present_cell_in_order(context):
    """The code says so, no process stays, and the cell waits for the next call."""
    table = Table(context)
    table.cell("hung", hang=context.dir / "go-on")
    table.cell("after")
    bench = table.start("--grace", 2)
    wait_until("the cell", lambda: table.started() == ["hung"], 60)
    os.kill(bench.pid, signal.SIGTERM)
    _, err = bench.communicate(timeout=TIME_LIMIT_S)
    check_equal(bench.returncode, 143, f"exit code; {err}")
    check_equal((table.record("hung")["state"], table.record("hung")["why"]), ("pending", "interrupted"), "the record")
    (context.dir / "go-on").touch()
    table.run()
    check_equal(table.started(), ["hung", "hung", "after"], "starts")


@scenario
def implausible_rows_are_held_back(context):
    """Each with its reason; --force exports them with it; what was exported once is not exported again."""
    table = Table(context)
    runs = context.dir / "runs.csv"

    def keys(label, nodes):
        return f'nodes = {nodes}\ngpus = {nodes}\nsystem = "Lab"\nconfig = "{label}"'

    table.cell("fine", keys("fine", 1) + "\nbatch = 2\nseq = 50", tps=100)
    table.cell("mfu", keys("mfu", 1), mfu=130)
    table.cell("tokens", keys("tokens", 1) + "\nbatch = 2\nseq = 80", tps=100)
    table.cell("scale", keys("scale", "[1, 2]").replace("gpus = [1, 2]", "gpus = 1"), tps=100)
    done = table.run("--export", runs, code=1)
    with open(runs, newline="") as f:
        exported = [row["config"] for row in csv.DictReader(f)]
    check_equal(exported[:1], ["fine"], "what was exported")
    check("mfu" not in exported and "tokens" not in exported, f"exported: {exported}")
    flags = {label: row["flags"] for label, row in table.rows().items()}
    check_equal((flags["fine"], flags["mfu"], flags["tokens"]), ("", "mfu", "tokens"), "flags")
    check("held back from export: mfu: an MFU of 130 %" in done.stderr, done.stderr)
    before = len(exported)
    table.run("--export", runs, "--force", "--only", "mfu", "--only", "fine")
    with open(runs, newline="") as f:
        rows = list(csv.DictReader(f))
    check_equal(len(rows), before + 1, "rows after --force")
    check_equal(rows[-1]["config"], "mfu", "the forced row")
    check("130" in rows[-1]["error"], rows[-1]["error"])


@scenario
def a_second_node_that_slows_the_first_is_flagged(context):
    """One command on one and on two nodes, whose metrics say that two are slower than one."""
    table = Table(context)
    table.program.write_text(PROGRAM.replace('tps, dt = float(say.get("tps", 100))', "tps, dt = 100 / world ** 3"))
    table.cell("scale", "nodes = [1, 2]")
    table.run(code=1)
    rows = table.rows()
    check_equal((rows["scale/nodes1"]["flags"], rows["scale/nodes2"]["flags"]), ("", "slower,efficiency"), "flags")
    check("2 nodes do 12.5 tokens/s, 1 did 100" in rows["scale/nodes2"]["note"], rows["scale/nodes2"]["note"])


@scenario
def metrics_may_lie_where_the_command_puts_them(context):
    """{dir} in a command is the try's own directory; a cell that measures nothing is not done."""
    table = Table(context)
    table.cell("elsewhere", 'metrics = "numbers"', dir="{dir}/numbers")
    table.cell("nothing", 'metrics = "nowhere"')
    table.run(code=1)
    check_equal(table.rows()["elsewhere"]["tokens_per_sec"], "100", "the speed")
    check_equal(table.rows()["nothing"]["state"], "failed", "the state")
    check("measured nothing" in table.rows()["nothing"]["note"], table.rows()["nothing"]["note"])


@scenario
def bad_tables_are_refused_before_anything_runs(context):
    """With the file and the line; the same for a label or a table that does not exist."""
    table = Table(context)
    table.cell("a", "nodse = 2")
    done = table.run(code=2)
    check("table.toml:" in done.stderr and "did you mean nodes" in done.stderr, done.stderr)
    table.cells = []
    table.cell("a", 'baseline = "b"')
    check("baseline" in table.run(code=2).stderr, "a baseline that is no cell")
    table.cells = []
    check("no [[cell]]" in table.run(code=2).stderr, "a table without cells")
    table.cell("a")
    check("did you mean" in table.run("--only", "b", code=2).stderr, "a label that does not exist")
    check_equal(table.started(), [], "starts")
    none = subprocess.run([str(context.ezpz), "bench", "scalign"], capture_output=True, text=True, env=context.env(),
                          timeout=TIME_LIMIT_S, cwd=context.dir)
    check_equal(none.returncode, 2, "exit code without a table")
    check("amsc-series, lora-sweep, scaling" in none.stderr, none.stderr)


@scenario
def a_dry_run_shows_every_command_and_runs_nothing(context):
    """The built-in tables: each cell's nodes, trainer and flags; secrets are not shown."""
    for name, count in (("amsc-series", 3), ("lora-sweep", 4), ("scaling", 6)):
        done = subprocess.run([str(context.ezpz), "bench", name, "--dry-run"], capture_output=True, text=True,
                              env=context.env(), timeout=TIME_LIMIT_S, cwd=context.dir)
        check_equal(done.returncode, 0, f"exit code of {name}; {done.stderr}")
        check_equal(done.stdout.count(" launch --log-dir "), count, f"commands of {name}")
        check("ezpz-train --model agpt-2b --batch-size 1 --seq-len 2048" in done.stdout, done.stdout)
    check(not (context.dir / "logs").exists(), "a dry run wrote something")
    table = Table(context)
    table.cell("a", 'env = { MY_TOKEN = "hunter2", OMP_NUM_THREADS = 2 }')
    done = table.run("--dry-run")
    check("OMP_NUM_THREADS=2" in done.stdout and "hunter2" not in done.stdout, done.stdout)
    table.run()
    check("hunter2" not in json.dumps(table.record("a")), "the record holds a secret")


@scenario
def two_at_once_in_one_directory_are_refused(context):
    """The second says so and changes nothing."""
    table = Table(context)
    table.cell("hung", hang=context.dir / "go-on")
    bench = table.start("--grace", 2)
    wait_until("the cell", lambda: table.started() == ["hung"], 60)
    check("another ezpz bench" in table.run(code=2).stderr, "the reason")
    os.kill(bench.pid, signal.SIGTERM)
    bench.communicate(timeout=TIME_LIMIT_S)


@scenario
def json_tells_every_cell(context):
    """For programs: the same numbers, and null for what was not measured."""
    table = Table(context)
    table.cell("good", tps=50)
    table.cell("bad", code=4)
    cells = json.loads(table.run("--json", code=1).stdout)["cells"]
    check_equal([(c["label"], c["state"], c["exit_code"], c["tokens_per_sec"]) for c in cells],
                [("good", "done", 0, 50.0), ("bad", "failed", 4, None)], "cells")


if __name__ == "__main__":
    sys.exit(main("bench"))
