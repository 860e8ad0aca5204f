#!/usr/bin/python3
"""Numbers that leave the house: metrics of a real failover run, its record, and the row that is made of
both. The real binary; seconds, no root."""

import csv
import io
import json
import resource
import subprocess
import sys

import faults
from checks import check_end
from harness import check, check_equal, main, scenario, wait_until
from training import STEPS, launch

TIME_LIMIT_S = 60
HEADER = ("timestamp,system,config,nodes,gpus,status,wall_time_sec,throughput_tokens_per_sec,"
          "throughput_tokens_per_sec_per_gpu,mfu,tflops,final_loss,steps,error")
SERIES = [1045, 34601, 34686, 34715, 34833, 34650]
WHERE = ("--system", "SunSpot", "--nodes", 1, "--gpus", 12)


def export(context, directory, *words, **how):
    argv = [str(context.ezpz), "export-amsc", str(directory), *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, env=context.env(), timeout=TIME_LIMIT_S, **how)
    return done.returncode, done.stdout, done.stderr


def row(context, directory, *words):
    """The row as a reader of CSV sees it."""
    code, out, err = export(context, directory, *words)
    check_equal(code, 0, f"exit code; {err}")
    rows = list(csv.DictReader(io.StringIO(out)))
    check_equal(len(rows), 1, "rows")
    check_equal(out.splitlines()[0], HEADER, "header")
    return rows[0]


def refused(context, directory, *words):
    """Why: what it says on stderr; nothing may come out."""
    code, out, err = export(context, directory, *words)
    check_equal((code, out), (1, ""), f"exit code and output of a refusal; {err}")
    return err


def record(i, tps, gpus=12, **more):
    return {"timestamp": 1786393250.0 + i, "rank": 0,
            "metrics": {"train/iter": i, "train/loss": 13 - i * 0.01, "train/dt": 1.0, "train/tps": tps,
                        "train/tps_per_gpu": tps / gpus, "train/mfu": 5.8, "train/tflops": 17.4, **more}}


def lines(records):
    return "".join(json.dumps(r) + "\n" for r in records)


def run_dir(context, name="run", text=None, file="metrics-0.jsonl"):
    folder = context.dir / name
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(lines(record(i + 1, tps) for i, tps in enumerate(SERIES)) if text is None else text)
    return folder


# ---- the rules, through the real binary


@scenario
def the_published_row_comes_out_to_the_digit(context):
    """Twenty steps of a real Perlmutter run give the row that was published, every digit of it."""
    steps = [{"timestamp": f"2026-08-24T13:08:{30 + i:02}Z", "rank": 0,
              "metrics": {"train/iter": i, "train/loss": 14.734155 if i == 20 else 15.0,
                          "train/dt": 5.5378 if i == 1 else 2.6528, "train/tps": 2959.0 if i == 1 else 6175.041,
                          "train/tps_per_gpu": 369.875 if i == 1 else 6175.041 / 8,
                          "train/mfu": 1.11 if i == 1 else 2.3196, "train/tflops": 3.468 if i == 1 else 7.237}}
             for i in range(1, 21)]
    folder = run_dir(context, text=lines(steps))
    code, out, err = export(context, folder, "--config", "agpt-2b/bs1/seq2048/tp1", "--system", "Perlmutter",
                            "--nodes", 2, "--gpus", 8, "--status", "pass", "--no-header")
    check_equal((code, out),
                (0, "2026-08-24T13:08:50Z,Perlmutter,agpt-2b/bs1/seq2048/tp1,2,8,pass,55.941,6175.041,771.88,2.32,"
                    "7.237,14.734155,20,\n"), f"the row; {err}")


@scenario
def throughput_is_the_median_after_one_step_of_warm_up(context):
    """The known series gives 34686 by default, and what each flag says otherwise."""
    folder = run_dir(context)
    for flags, wanted in (((), "34686"), (("--reducer", "mean", "--warmup", 0), "29088.333"),
                          (("--reducer", "max"), "34833"), (("--reducer", "last"), "34650"),
                          (("--reducer", "min", "--warmup", 0), "1045")):
        seen = row(context, folder, "--config", "c", *WHERE, *flags)
        check_equal(seen["throughput_tokens_per_sec"], wanted, f"throughput with {flags}")
    check_equal((seen["wall_time_sec"], seen["steps"]), ("6", "6"), "wall time and steps")


@scenario
def each_layout_and_each_provenance_is_read(context):
    """metrics.jsonl, a run id's file beside logs; run_info.json, config.json and a report's bullets."""
    told = {"MACHINE": "SunSpot", "WORLD_SIZE_IN_USE": "24", "GPUS_PER_NODE": "12", "NUM_NODES": "4", "NGPUS": "48"}
    text = lines(record(i + 1, tps, 24) for i, tps in enumerate(SERIES))
    for number, (file, provenance) in enumerate((("metrics.jsonl", "run_info.json"), ("2026-08-11-a.jsonl", "config.json"),
                                                 ("metrics-0.jsonl", "train/report-train.md"))):
        folder = run_dir(context, f"run{number}", text, file)
        (folder / "journal.jsonl").write_text('{"time": "x", "name": "start", "context": {}}\n')
        path = folder / provenance
        path.parent.mkdir(exist_ok=True)
        path.write_text("### Distributed\n\n" + "".join(f"- **{k}**: {v}\n" for k, v in told.items())
                        if provenance.endswith(".md") else json.dumps({"Distributed": told}))
        seen = row(context, folder, "--config", "c", "--status", "pass")
        check_equal((seen["system"], seen["nodes"], seen["gpus"], seen["throughput_tokens_per_sec"]),
                    ("SunSpot", "2", "24", "34686"), f"{file} with {provenance}")


@scenario
def missing_provenance_names_the_flags(context):
    """Nothing is guessed: not from the rank files, and not from what was allocated."""
    folder = run_dir(context)
    for rank in range(1, 8):
        (folder / f"metrics-{rank}.jsonl").write_text(lines([record(1, 5)]))
    err = refused(context, folder, "--config", "c")
    check(all(flag in err for flag in ("--system", "--nodes", "--gpus")), err)
    (folder / "config.json").write_text(json.dumps({"MACHINE": "SunSpot", "NUM_NODES": 4, "NGPUS": 48}))
    err = refused(context, folder, "--config", "c")
    check("--nodes" in err and "--gpus" in err and "--system" not in err and "48" in err, err)


# ---- planted damage


@scenario
def a_truncated_last_line_is_left_out_and_said(context):
    """The steps before it count; how the run ended must then be said."""
    folder = run_dir(context)
    with open(folder / "metrics-0.jsonl", "a") as f:
        f.write('{"timestamp": 1786393261.0, "rank": 0, "metr')
    check("--status" in refused(context, folder, "--config", "c", *WHERE), "the end was not asked for")
    code, out, err = export(context, folder, "--config", "c", *WHERE, "--status", "fail", "--error", "killed, by hand")
    check_equal(code, 0, f"exit code; {err}")
    check("1 truncated last line" in err, err)
    check_equal(out.splitlines()[1].split(",")[-2:], ['"killed', ' by hand"'], "the error column")


@scenario
def a_missing_rank_file_changes_nothing_and_is_said(context):
    """Rank 0 tells for all; that rank 2 of four left nothing is said."""
    folder = run_dir(context)
    for rank in (1, 3):
        (folder / f"metrics-{rank}.jsonl").write_text(
            lines({**record(i + 1, tps), "rank": rank} for i, tps in enumerate(SERIES)))
    code, out, err = export(context, folder, "--config", "c", *WHERE)
    check_equal(code, 0, f"exit code; {err}")
    check("34686" in out and "no metrics of ranks 2" in err, out + err)


@scenario
def foreign_lines_are_counted_and_do_no_harm(context):
    """A log's lines and another tool's records among the metrics."""
    text = lines([{"level": "INFO", "message": "hello"}, record(1, 1045), {"rank": 0, "metrics": {"eval/loss": 1}}])
    folder = run_dir(context, text=text + "plain text\n" + lines(record(i + 1, t) for i, t in enumerate(SERIES) if i))
    code, out, err = export(context, folder, "--config", "c", *WHERE)
    check_equal(code, 0, f"exit code; {err}")
    check("34686" in out and "1 damaged line" in err and "1 line that is no record" in err, out + err)


@scenario
def a_nan_is_an_empty_cell(context):
    """Python's NaN is no number: not in a median, not a loss, and said."""
    folder = run_dir(context)
    with open(folder / "metrics-0.jsonl", "a") as f:
        f.write(lines([record(7, float("nan"), **{"train/loss": float("nan")})]))
    seen = row(context, folder, "--config", "c", *WHERE)
    check_equal((seen["final_loss"], seen["throughput_tokens_per_sec"]), ("", "34686"), "loss and throughput")
    check("no number" in seen["error"], seen["error"])


@scenario
def a_clock_that_goes_backwards_changes_no_number(context):
    """Steps and wall time come from the steps, the timestamp is the latest."""
    records = [record(i + 1, tps) for i, tps in enumerate(SERIES)]
    for r in records[3:]:
        r["timestamp"] -= 7200
    folder = run_dir(context, text=lines(records))
    seen = row(context, folder, "--config", "c", *WHERE)
    check_equal((seen["steps"], seen["wall_time_sec"], seen["timestamp"]), ("6", "6", "2026-08-10T20:20:53Z"), "row")


@scenario
def a_table_with_another_header_is_refused(context):
    """And left as it is."""
    folder, table = run_dir(context), context.dir / "runs.csv"
    table.write_text("timestamp,system\n1,2\n")
    err = refused(context, folder, "--config", "c", *WHERE, "--append", table)
    check("header" in err and str(table) in err, err)
    check_equal(table.read_text(), "timestamp,system\n1,2\n", "the table")


@scenario
def a_number_that_is_off_by_the_gpus_is_refused(context):
    """The error of three published rows: the speed of 12 GPUs, said to be of 4. --force says it in the row."""
    folder = run_dir(context)
    words = ("--config", "c", "--system", "S", "--nodes", 1, "--gpus", 4)
    check("12 times" in refused(context, folder, *words), "the reason")
    check("12 times" in row(context, folder, *words, "--force")["error"], "the note")


@scenario
def bad_usage_is_exit_code_two(context):
    """Without a label, without a directory, with a reducer that does not exist."""
    for words in ((), ("--config", "c", "more"), ("--config", "c", "--reducer", "mode"), ("--config", "c", "--warmup", -1)):
        check_equal(export(context, run_dir(context), *words)[0], 2, f"exit code of {words}")


@scenario
def two_that_append_at_once_lose_nothing(context):
    """Many at once, with commas and quotes in their text: every row whole, one header."""
    folder, table = run_dir(context), context.dir / "new" / "runs.csv"
    argv = [str(context.ezpz), "export-amsc", str(folder), *map(str, WHERE), "--append", str(table)]
    started = [subprocess.Popen([*argv, "--config", f"c{i}", "--error", f'a, "b" {i}\nc'], env=context.env(),
                                stderr=subprocess.DEVNULL) for i in range(12)]
    check_equal([p.wait(TIME_LIMIT_S) for p in started], [0] * 12, "exit codes")
    with open(table, newline="") as f:
        rows = list(csv.DictReader(f))
    check_equal({(r["config"], r["error"]) for r in rows}, {(f"c{i}", f'a, "b" {i}\nc') for i in range(12)}, "rows")
    check_equal(len(rows), 12, "number of rows")


@scenario
def vit_weather_has_its_own_three_columns(context):
    """Samples and iterations a second."""
    folder = run_dir(context, text=lines(
        record(i, 1, **{"train/dt": 9 if i == 1 else 0.25, "train/samples_per_sec": 128.0}) for i in range(1, 6)))
    code, out, err = export(context, folder, "--config", "vit", *WHERE, "--format", "vit-weather")
    check_equal((code, out), (0, "configuration_name,samples_per_sec,iters_per_sec\nvit,128,4\n"), err)


@scenario
def a_large_directory_is_read_as_a_stream(context):
    """128 MB in 32 MB of memory: it grows with the steps of one rank, not with the bytes."""
    folder = context.dir / "big"
    folder.mkdir()
    ranks, per_rank = 16, 4000
    text = lines({**record(i, 34686), "rank": "RANK", "padding": "x" * 1800} for i in range(1, per_rank + 1))
    for rank in range(ranks):
        (folder / f"metrics-{rank}.jsonl").write_text(text.replace('"RANK"', str(rank)))
    check(ranks * len(text) > 128_000_000, "the directory is too small to prove anything")

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (32 << 20, 32 << 20))

    code, out, err = export(context, folder, "--config", "c", *WHERE, preexec_fn=limited)
    check_equal(code, 0, f"exit code; {err}")
    check_equal(out.splitlines()[1].split(",")[-2], str(per_rank), "steps")


# ---- history


@scenario
def history_lists_runs_and_compares_two(context):
    """Two runs with different speeds, one of which lost its end: a line each, and their ratio."""
    logs = context.dir / "logs"
    logs.mkdir()
    for name, factor, end in (("failover-1", 1, "success"), ("failover-2", 2, None)):
        folder = run_dir(context, f"logs/{name}", lines(record(i + 1, factor * tps) for i, tps in enumerate(SERIES)))
        (folder / "run_info.json").write_text(json.dumps({
            "format": "ezpz run_info 1", "system": "Aurora", "hosts": ["x1", "x2"], "gpus": 12, "end": end,
            "started": f"2026-08-2{factor}T00:00:00.000Z", "attempts": [{"attempt": 1}],
            "command": ["python3", "train.py", "--model", "agpt-2b", "--batch-size", str(factor)]}))

    def history(*words):
        done = subprocess.run([str(context.ezpz), "history", *map(str, words)], capture_output=True, text=True,
                              env=context.env(), timeout=TIME_LIMIT_S, cwd=context.dir)
        check_equal(done.returncode, 0, f"exit code; {done.stderr}")
        return done.stdout

    table = [line.split() for line in history().splitlines()]
    check_equal(table[1], ["2026-08-21T00:00:00", "Aurora", "x[1-2]", "agpt-2b/bs1", "success", "1", "6", "34686",
                           "5.8", "failover-1"], "the first run")
    check_equal(table[2][3:8], ["agpt-2b/bs2", "no", "end", "recorded", "1"], "the second run")
    seen = json.loads(history("logs", "--json"))
    check_equal([(r["path"], r["status"]) for r in seen], [("failover-1", "success"), ("failover-2", "no end recorded")],
                "--json")
    both = json.loads(history("--compare", "failover-1", "logs/failover-2", "--json"))
    check_equal(both["b_over_a"]["tok/s"], 2.0, "the ratio")
    check("differs" in history("--compare", "failover-1", "failover-2"), "what differs is not said")
    picture = history("--compare", "failover-1", "failover-2", "--plot", "--svg", "both.svg")
    check(f"{2 * max(SERIES)} |" in picture and "tokens/s" in picture and "loss" in picture, picture)
    check((context.dir / "both.svg").read_text().count("<polyline") == 4, "not two lines in each of two panels")
    check(history("--plot").startswith("failover-2\n"), "the newest run is not what is drawn")


# ---- a real run


def metrics_of(job, rank=0):
    return [json.loads(line) for line in (job.dir / f"metrics-{rank}.jsonl").read_text().splitlines()]


@scenario
def a_failover_run_exports_one_correct_row(context):
    """A node is killed mid-run: the steps count once, the hosts are those of the last attempt, and the row says so."""
    job = launch(context, "--metrics-dir", "run", "--no-save-on-term", "--checkpoint-every", 50)
    job.wait_step(6)
    faults.kill_node(job, "sim2")
    check_end(job, "success", attempts=2, success=True)
    info = json.loads((job.dir / "run_info.json").read_text())
    check_equal((info["hosts"], info["world_size"], info["end"]), (["sim1", "sim3"], 4, "success"), "run_info.json")
    check_equal([(a["attempt"], a["hosts"]) for a in info["attempts"]],
                [(1, ["sim1", "sim2"]), (2, ["sim1", "sim3"])], "attempts")
    check_equal([(s["out"], s["in"]) for s in info["swaps"]], [("sim2", "sim3")], "swaps")
    check(info["system"] is None and info["gpus"] is None, f"what nobody knows is told: {info}")
    check("--gpus" in refused(context, job.dir, "--config", "toy", "--system", "laptop"), "GPUs were guessed")
    seen = row(context, job.dir, "--config", "toy", "--system", "laptop", "--gpus", 4)
    done = metrics_of(job)
    last = {r["metrics"]["train/iter"]: r["metrics"] for r in done}
    check_equal((seen["steps"], seen["nodes"], seen["gpus"], seen["status"]), (str(STEPS), "2", "4", "pass"), "row")
    check(len(done) > STEPS, "no step was done twice, so nothing was tried")
    check("2 attempts, sim2 swapped for sim3 after attempt 1" in seen["error"], seen["error"])
    check(f"{len(done) - STEPS} steps were done again and counted once" in seen["error"], seen["error"])
    check_equal(float(seen["wall_time_sec"]), round(sum(m["train/dt"] for m in last.values()), 3), "wall time")
    check_equal(float(seen["final_loss"]), round(last[STEPS]["train/loss"], 6), "final loss")


@scenario
def a_killed_ezpz_leaves_a_true_record(context):
    """SIGKILL in the middle: run_info.json is whole, tells the attempt, and has no end."""
    job = launch(context, "--metrics-dir", "run", steps=1000)
    job.wait_step(3)
    faults.kill_ezpz(job)
    info = json.loads((job.dir / "run_info.json").read_text())
    check_equal((info["hosts"], info["end"], len(info["attempts"])), (["sim1", "sim2"], None, 1), "run_info.json")
    wait_until("the ranks' end", lambda: not context.processes(), 15)
    err = refused(context, job.dir, "--config", "toy", "--system", "laptop", "--gpus", 4)
    check("--status" in err, err)
    seen = row(context, job.dir, "--config", "toy", "--system", "laptop", "--gpus", 4, "--status", "fail")
    check(int(seen["steps"]) >= 3, f"steps: {seen}")


if __name__ == "__main__":
    sys.exit(main("amsc"))
