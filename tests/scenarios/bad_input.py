#!/usr/bin/python3
"""What a person may mistype, and what may be wrong around them: a one-line error that names the
trouble, exit 2, and nothing started. One scenario a row of the table, and some that are no row."""

import os
import subprocess
import sys
from dataclasses import dataclass

from harness import check, check_equal, main, scenario
from training import hostfile, launch, toy

TIME_LIMIT_S = 20


@dataclass(frozen=True)
class Row:
    """`flags` go before the command; each text of `says` must stand in the one line on stderr. {dir}
    is the scenario's folder. files: what to put there first."""

    name: str
    flags: tuple
    says: tuple
    files: tuple = ()
    command: tuple | None = None


AUTO = ("--auto-retry", "--launcher", "local")
LOCAL = ("--launcher", "local")
POOL = ("--hostfile", "{dir}/hosts.txt")

ROWS = [
    Row("a missing hostfile", (*AUTO, "--hostfile", "{dir}/nowhere.txt", "--nhosts", "1"), ("nowhere.txt",)),
    Row(
        "an empty hostfile",
        (*AUTO, "--hostfile", "{dir}/empty.txt", "--nhosts", "1"),
        ("empty", "empty.txt"),
        files=(("empty.txt", ""),),
    ),
    Row(
        "a hostfile of comments only",
        (*AUTO, "--hostfile", "{dir}/comments.txt", "--nhosts", "1"),
        ("comments.txt",),
        files=(("comments.txt", "# nobody\n\n   \n"),),
    ),
    Row("a folder as hostfile", (*AUTO, "--hostfile", "{dir}", "--nhosts", "1"), ("{dir}",)),
    Row("zero hosts", (*AUTO, *POOL, "--nhosts", "0"), ("--nhosts", "0")),
    Row("a negative number of hosts", (*AUTO, *POOL, "--nhosts", "-2"), ("--nhosts", "-2")),
    Row("a number that is none", (*AUTO, *POOL, "--nhosts", "two"), ("--nhosts", "two")),
    Row("a number beyond all bounds", (*AUTO, *POOL, "--nhosts", "99999999999999999999"), ("--nhosts",)),
    Row("zero ranks", (*LOCAL, "-n", "0"), ("-n", "0")),
    Row("zero ranks a node", (*LOCAL, "--nhosts", "2", "--ppn", "0"), ("--ppn", "0")),
    Row("counts that contradict each other", (*LOCAL, "-n", "5", "--ppn", "2", "--nhosts", "2"), ("5", "2")),
    Row("more hosts than there are", (*AUTO, *POOL, "--nhosts", "9"), ("9", "4")),
    Row("no active size", (*AUTO, *POOL), ("--nhosts",)),
    Row("more spares than hosts", (*AUTO, *POOL, "--nhosts", "2", "--spare-nodes", "7"), ("spare", "7")),
    Row("a negative number of spares", (*AUTO, *POOL, "--nhosts", "2", "--spare-nodes", "-1"), ("--spare-nodes",)),
    Row("an unknown flag", (*AUTO, *POOL, "--nhost", "2"), ("--nhost", "--nhosts")),
    Row("a flag with a letter swapped", (*AUTO, *POOL, "--nhosts", "2", "--spare-ndoes", "1"), ("--spare-nodes",)),
    Row("a flag without its value", (*AUTO, "--nhosts"), ("--nhosts",)),
    Row("an unknown launcher", ("--launcher", "locla", "--nhosts", "1"), ("locla", "local")),
    Row("an unknown word for --blind", (*AUTO, *POOL, "--nhosts", "2", "--blind", "maybe"), ("maybe", "last-resort")),
    Row("a time that is none", (*AUTO, *POOL, "--nhosts", "2", "--timeout", "soon"), ("--timeout", "soon")),
    Row("two kinds of retries", (*AUTO, *POOL, "--nhosts", "2", "--retries", "3"), ("--retries", "--auto-retry")),
    Row("all hosts excluded", (*AUTO, *POOL, "--nhosts", "1", "--exclude", "sim1,sim2,sim3,sim4"), ("exclude",)),
    Row("no command", (*AUTO, *POOL, "--nhosts", "2"), ("command",), command=()),
    Row("auto-retry outside any allocation", ("--auto-retry", "--launcher", "srun", "--nhosts", "2"), ("allocation",)),
    Row(
        "a log directory below a file",
        (*AUTO, *POOL, "--nhosts", "2", "--log-dir", "{dir}/file/logs"),
        ("{dir}/file",),
        files=(("file", "not a folder\n"),),
    ),
]


def run_to_end(context, argv, env=None):
    done = subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
        cwd=context.dir,
        env=context.env(**(env or {})),
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def check_one_line_error(code, out, err, says):
    check_equal(code, 2, f"return code ({err.strip()!r})")
    lines = err.splitlines()
    check_equal(len(lines), 1, f"lines on stderr:\n{err}")
    missing = [text for text in says if text not in lines[0]]
    check(not missing, f"{missing} not in {lines[0]!r}")
    check_equal(out, "", "stdout")


def scenario_of(row):
    def run(context):
        hostfile(context)
        for name, text in row.files:
            (context.dir / name).write_text(text)
        filled = [word.replace("{dir}", str(context.dir)) for word in row.flags]
        command = toy(context) if row.command is None else row.command
        logs = [] if "--log-dir" in filled else ["--log-dir", context.dir / "logs"]
        result = run_to_end(context, [context.ezpz, "launch", *filled, *logs, "--", *command])
        check_one_line_error(*result, [text.replace("{dir}", str(context.dir)) for text in row.says])
        check(not (context.dir / "receipts").exists(), "a rank was started")

    run.__name__ = row.name.replace(" ", "_").replace("-", "_")
    run.__doc__ = f"{row.name[0].upper()}{row.name[1:]} is one line on stderr, exit 2, and starts nothing."
    return scenario(run)


for each in ROWS:
    scenario_of(each)


@scenario
def an_unknown_subcommand(context):
    """A mistyped subcommand is answered with the nearest one."""
    check_one_line_error(*run_to_end(context, [context.ezpz, "lanuch"]), ["lanuch", "launch"])


@scenario
def help_is_no_error(context):
    """--help goes to stdout with code 0, for the binary and for launch."""
    for argv in (["--help"], ["launch", "--help"]):
        code, out, err = run_to_end(context, [context.ezpz, *argv])
        check_equal((code, err), (0, ""), f"code and stderr of {argv}")
        check("launch" in out, f"{argv} does not speak of launch")


@scenario
def hosts_named_twice_are_used_once(context):
    """A duplicate in the hostfile is said, and dropped: each node gets its ranks once."""
    job = launch(context, nodes=("sim1", "sim2", "sim1", "sim3"), steps=4)
    check_equal(job.wait(), 0, "return code")
    check_equal(job.hosts_used(1), ["sim1", "sim2"], "hosts used")
    check("sim1" in job.stderr(), "the duplicate is not spoken of")
    check_equal(len(job.receipts(1)), 4, "ranks")


@scenario
def a_command_that_does_not_exist(context):
    """A missing program stops the job at once with its name, and costs no spare."""
    job = launch(context, command=["/nowhere/train"])
    check(job.wait(TIME_LIMIT_S) != 0, "it must not return 0")
    check("/nowhere/train" in job.stderr(), f"its name is not in: {job.stderr()}")
    if list(job.logs.glob("failover-*")):
        check_equal(job.stop_reason(), "env_fault", "stop reason")
        check_equal((job.attempts(), job.bad_nodes()), (1, []), "attempts and blamed hosts")


@scenario
def a_command_that_is_not_executable(context):
    """A file without the x bit is named as such, not retried."""
    script = context.dir / "train.sh"
    script.write_text("#!/bin/sh\n")
    job = launch(context, command=[script])
    check(job.wait(TIME_LIMIT_S) != 0, "it must not return 0")
    check(str(script) in job.stderr(), f"its name is not in: {job.stderr()}")
    if list(job.logs.glob("failover-*")):
        check_equal((job.attempts(), job.bad_nodes()), (1, []), "attempts and blamed hosts")


@scenario
def an_earlier_run_of_the_same_job_is_kept(context):
    """A folder left by an earlier run of the same job id is never touched: the new run gets a
    run-2 beside it."""
    helpers = context.dir / "bin"
    helpers.mkdir()
    for name in ("scontrol", "squeue", "sacct"):
        (helpers / name).write_text("#!/bin/sh\nexit 1\n")
        (helpers / name).chmod(0o755)
    job_4242 = {"SLURM_JOB_ID": "4242", "PATH": f"{helpers}:{os.environ['PATH']}"}
    first = launch(context, steps=4, env=job_4242)
    check_equal(first.wait(), 0, "return code of the first run")
    folder = context.dir / "logs" / "failover-4242"
    check(folder.is_dir(), f"no {folder}")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    check(before, "the first run left no files")
    second = launch(context, steps=4, env=job_4242, receipts="receipts-2", checkpoint="checkpoint-2")
    check_equal(second.wait(), 0, "return code of the second run")
    changed = [str(p) for p, content in before.items() if p.is_file() and p.read_bytes() != content]
    gone = [str(p) for p in before if not p.is_file() and p.name != "latest"]
    check_equal((changed, gone), ([], []), "files of the first run changed, gone")
    new = [p for p in (context.dir / "logs").rglob("*run-2*") if p.is_dir()]
    check_equal(len(new), 1, "folders called run-2")
    check((new[0] / "attempt-1.log").exists(), f"{new[0]} has no attempt-1.log")


if __name__ == "__main__":
    sys.exit(main("bad_input"))
