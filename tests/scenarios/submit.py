#!/usr/bin/python3
"""`ezpz submit` against imitations of sbatch and qsub (tests/fakes). The script that they were given is
run by a real bash, with a stand-in for ezpz that writes its words down."""

import json
import os
import subprocess
import sys
from pathlib import Path

from harness import check, check_equal, main, scenario

FAKES = Path(__file__).resolve().parent.parent / "fakes"
HOSTILE = ["two words", "it's", 'say "no"', "$HOME", "$(touch owned)", "`touch owned`", "a\nb", "", "*", "~", "\\n"]
HOSTILE += ["!x", "#SBATCH -p evil", "a\n#SBATCH --partition=evil\n#PBS -q evil", "tab\there", "\x1b[31m", "; touch owned"]


def submit(context, scheduler, *words, env=None, cwd=None):
    (context.dir / "batch").mkdir(exist_ok=True)
    given = {"PATH": f"{FAKES}:{os.environ['PATH']}", "FAKE_BATCH": str(context.dir / "batch"), **(env or {})}
    return subprocess.run(
        [str(w) for w in (context.ezpz, "submit", "--scheduler", scheduler, *words)],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=20, cwd=cwd or context.dir, env=context.env(**given),
    )


def submitted(context, *how, **more):
    """(job id, the options that the scheduler saw) of a submission that succeeds."""
    done = submit(context, *how, **more)
    check_equal(done.returncode, 0, f"return code ({done.stderr.decode()})")
    return done.stdout.decode(), json.loads((context.dir / "batch" / "options.json").read_text())


def run_script(context, **env):
    """Runs what was submitted: what it printed, and the words that ezpz got."""
    stand_in = context.dir / "stand-in"
    stand_in.write_text(f"#!/usr/bin/python3\nimport json, sys\nopen({str(context.dir / 'words.json')!r}, 'w')"
                        ".write(json.dumps(sys.argv[1:]))\n")
    stand_in.chmod(0o755)
    text = (context.dir / "batch" / "script.sh").read_text().replace(str(context.ezpz), str(stand_in))
    script = context.dir / "job.sh"
    script.write_text(text)
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(context.dir), **env}
    done = subprocess.run(["bash", str(script)], capture_output=True, timeout=20, env=context.env(**clean))
    check_equal(done.returncode, 0, f"the script's return code ({done.stderr.decode()})")
    return done.stdout.decode(), json.loads((context.dir / "words.json").read_text())


@scenario
def a_slurm_job_asks_for_what_it_needs_to_outlive_a_node(context):
    """Whole nodes, --no-kill, a word before the end; the id alone is printed."""
    words = ["-N", 34, "--spares", 2, "-t", "12h", "-q", "regular", "-A", "m1", "--machine", "perlmutter", "--ppn", 4]
    printed, options = submitted(context, "slurm", *words, "--", "python3", "train.py")
    check_equal(printed, "4711\n", "stdout")
    logs = context.dir / "logs"
    expected = {"--job-name": "train", "--nodes": "34", "--time": "12:00:00", "--qos": "regular", "--account": "m1"}
    expected |= {"--constraint": "gpu", "--gpus-per-node": "4", "--exclusive": True, "--no-kill": True}
    expected |= {"--signal": "B:USR1@120", "--output": f"{logs}/%x-%j.out", "--parsable": True}
    check_equal(options, expected, "options")
    _, launched = run_script(context)
    start = ["launch", "--auto-retry", "--nhosts", "32", "--ppn", "4", "--log-dir", str(logs), "--"]
    check_equal(launched, [*start, "python3", "train.py"], "ezpz's words")
    kept = list(logs.glob("train.*.sbatch"))
    check_equal(len(kept), 1, "scripts kept")
    check_equal(kept[0].stat().st_mode & 0o077, 0, "the script's mode for others")


@scenario
def a_pbs_job_asks_for_what_it_needs_to_outlive_a_node(context):
    """One chunk a node, tolerance of lost nodes, and what the machine's table says the site wants."""
    words = ["-N", 10, "--spares", 2, "-t", "1-12:00:00", "-q", "prod", "-A", "proj", "--machine", "polaris"]
    printed, options = submitted(context, "pbs", *words, "--", "python3", "train.py")
    check_equal(printed, "4711.vm\n", "stdout")
    asked = {"select": "10:system=polaris", "place": "scatter", "walltime": "36:00:00", "filesystems": "home:eagle"}
    check_equal(options["-l"], asked, "-l")
    check_equal(options["-W"], {"tolerate_node_failures": "all"}, "-W")
    check_equal((options["-q"], options["-A"], options["-N"]), ("prod", "proj", "train"), "-q, -A, -N")
    _, launched = run_script(context)
    check_equal(launched[:4], ["launch", "--auto-retry", "--nhosts", "8"], "ezpz's words")


@scenario
def hostile_words_arrive_as_they_were(context):
    """Spaces, quotes, dollars, newlines and directives in the command reach the program unchanged, run
    nothing, and ask the scheduler for nothing."""
    for scheduler in ("slurm", "pbs"):
        _, options = submitted(context, scheduler, "--", "prog", *HOSTILE)
        check("evil" not in json.dumps(options), f"a word became an option: {options}")
        printed, launched = run_script(context)
        check_equal(launched[launched.index("--") + 1 :], ["prog", *HOSTILE], f"the command under {scheduler}")
        check(not list(context.dir.rglob("owned")), "a word was executed")
        check("\x1b" not in printed, "a control byte was printed raw")


@scenario
def a_folder_with_a_hostile_name_is_no_trouble(context):
    """A working directory of spaces, quotes and a '#' is where the job runs and keeps its logs."""
    folder = context.dir / "it's a #1 $HOME folder"
    folder.mkdir()
    for scheduler, output in (("slurm", "--output"), ("pbs", "-o")):
        _, options = submitted(context, scheduler, "--", "prog", cwd=folder)
        check(options[output].startswith(f"{folder}/logs/"), f"{output}: {options[output]}")
        _, launched = run_script(context)
        check_equal(launched[launched.index("--log-dir") + 1], f"{folder}/logs", "log directory")


@scenario
def raw_flags_reach_the_scheduler(context):
    """What stands between the two dashes is the scheduler's, word for word, and outranks ours."""
    raw = ["--", "--reservation=tuesday", "--comment=two words", "--time=5", "--"]
    _, options = submitted(context, "slurm", "-t", "1h", *raw, "prog")
    seen = (options["--reservation"], options["--comment"], options["--time"])
    check_equal(seen, ("tuesday", "two words", "5"), "options")


@scenario
def empty_is_not_unset(context):
    """COMPILE= is exported empty and shown so; a variable that is not there is called unset; secrets
    are not shown; an empty value of a flag is refused."""
    submitted(context, "slurm", "-x", "COMPILE=", "-x", "HF_TOKEN=hunter2", "-x", "NAME=a b", "--", "prog")
    printed, _ = run_script(context)
    lines = [line.strip() for line in printed.splitlines()]
    for line in ("COMPILE=''", "NAME=a\\ b", "VIRTUAL_ENV is unset", "HF_TOKEN is set, and not shown"):
        check(line in lines, f"{line!r} is not in {lines}")
    check("hunter2" not in printed, "the secret was printed")
    printed, _ = run_script(context, VIRTUAL_ENV="")
    check("VIRTUAL_ENV=''" in printed, printed)
    done = submit(context, "slurm", "--queue", "", "--", "prog")
    check_equal(done.returncode, 2, "return code for an empty queue")
    check("--queue" in done.stderr.decode() and "empty" in done.stderr.decode(), done.stderr.decode())


@scenario
def a_dry_run_submits_nothing_and_writes_nothing(context):
    """--dry-run prints the script on stdout and the command on stderr."""
    done = submit(context, "pbs", "--dry-run", "--", "prog")
    check_equal(done.returncode, 0, "return code")
    check(done.stdout.startswith(b"#!/bin/bash") and b"tolerate_node_failures=all" in done.stdout, "no script")
    check(b"qsub" in done.stderr, f"no command: {done.stderr}")
    check(not (context.dir / "logs").exists() and not (context.dir / "batch" / "script.sh").exists(), "written")


@scenario
def a_refusal_is_told_in_the_schedulers_words(context):
    """The scheduler's reason is in the one line on stderr, with the script that it concerns."""
    for scheduler in ("slurm", "pbs"):
        done = submit(context, scheduler, "--", "prog", env={"FAKE_BATCH_FAIL": "no such account"})
        said = done.stderr.decode()
        check_equal((done.returncode, done.stdout), (1, b""), "return code and stdout")
        check("no such account" in said and str(context.dir / "logs") in said, said)


@scenario
def what_cannot_be_submitted_is_refused_in_one_line(context):
    """Mistakes are named before anything is written."""
    rows = [(["-t", "30"], "--time"), (["--spares", 1], "--spares"), (["-N", 0], "-N"), (["--ppn", "x"], "--ppn")]
    rows += [(["--module", "a", "--job-name", "a\nb"], "--job-name"), (["-x", "1A=b"], "1A")]
    for words, name in rows:
        done = submit(context, "slurm", *words, "--", "prog")
        lines = done.stderr.decode().splitlines()
        check_equal((done.returncode, len(lines)), (2, 1), f"return code and lines for {words}: {lines}")
        check(name in lines[0], f"{name} is not in {lines[0]!r}")
    check_equal(submit(context, "slurm").returncode, 2, "return code without a command")
    check(not (context.dir / "logs").exists(), "something was written")


if __name__ == "__main__":
    sys.exit(main("submit"))
