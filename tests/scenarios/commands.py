#!/usr/bin/python3
"""The commands that answer from a log, or about the patterns themselves. The real binary on logs made
here. Seconds, no root."""

import json
import resource
import subprocess
import sys

from harness import check, check_equal, main, scenario
from training import launch

TIME_LIMIT_S = 60


def run(context, *words, stdin=b""):
    """(exit code, stdout, stderr), both as text."""
    argv = [str(context.ezpz), *map(str, words)]
    done = subprocess.run(argv, input=stdin, capture_output=True, env=context.env(), timeout=TIME_LIMIT_S, cwd=context.dir)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def answer(context, *words, stdin=b""):
    """stdout of a command that must succeed and say nothing else."""
    code, out, err = run(context, *words, stdin=stdin)
    check_equal((code, err), (0, ""), f"exit code and stderr of {words}")
    return out


def log(context, text, name="job.log"):
    path = context.dir / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def banner(host, rank, last):
    return f"['{host}'][device='cuda'][node=0/1][local_rank={rank % 4}/3][rank={rank}/{last}]\n"


SRUN = "srun: launching StepId=57.0 on host nid001329, 4 tasks: [0-3]\n" \
       "srun: launching StepId=57.0 on host nid002813, 4 tasks: [4-7]\n"


# ---- info


@scenario
def info_tells_every_mpiexec_in_path(context):
    """Which they are, by their own word, and the launcher each is for; one that is of no kind is for none."""
    folder = context.dir / "bin"
    folder.mkdir()
    said = {"mpiexec": "mpiexec (OpenRTE) 4.1.4", "mpirun": "some other program", "mpiexec.hydra": "HYDRA build details:"}
    for name, words in said.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{words}'\n")
        (folder / name).chmod(0o755)
    env = context.env(PATH=str(folder))
    done = subprocess.run([context.ezpz, "info", "--json"], capture_output=True, env=env, timeout=TIME_LIMIT_S)
    check_equal(done.returncode, 0, "exit code")
    info = json.loads(done.stdout)
    seen = [(p["path"], p["kind"], p["launcher"]) for p in info["mpiexec"]]
    wanted = [("mpiexec", "Open MPI", "openmpi"), ("mpirun", "of an unknown kind", None),
              ("mpiexec.hydra", "MPICH's Hydra", "hydra")]
    check_equal(seen, [(f"{folder}/{name}", kind, launcher) for name, kind, launcher in wanted], "mpiexec")
    check("mpirun is of an unknown kind" in info["why"]["mpiexec"], f"no reason: {info['why']['mpiexec']}")
    text = subprocess.run([context.ezpz, "info"], capture_output=True, env=env, timeout=TIME_LIMIT_S).stdout.decode()
    check(f"{folder}/mpiexec (--launcher openmpi), {folder}/mpirun (for no launcher)" in text, text)


# ---- topology


@scenario
def topology_is_a_line_a_host(context):
    """What srun says at the start of a step becomes one line for each host."""
    out = answer(context, "topology", log(context, SRUN))
    check_equal(out.splitlines()[1:], ["nid001329  ranks 0-3", "nid002813  ranks 4-7"], "the hosts")
    check("world size unknown" in out, f"srun does not tell the world size, yet it is said: {out}")


@scenario
def topology_json_says_the_same(context):
    """--json, before or behind the log, on standard input: host, ranges, spellings, world size."""
    text = "".join(banner("x1921c0s0b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov" if r < 4 else "x1921c1s0b0n0", r, 7)
                   for r in range(8))
    for words in (["topology", "--json", "-"], ["topology", "-", "--json"]):
        seen = json.loads(answer(context, *words, stdin=text.encode()))
        check_equal(seen["world_size"], 8, "world size")
        check_equal([(h["host"], h["ranks"]) for h in seen["hosts"]],
                    [("x1921c0s0b0n0", "0-3"), ("x1921c1s0b0n0", "4-7")], "hosts")
        check_equal(seen["hosts"][0]["spelled"], ["x1921c0s0b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov"], "spellings")
        check_equal((seen["conflicts"], seen["unplaced"]), ([], ""), "conflicts and unplaced")


@scenario
def names_are_taken_apart_as_the_machine_says(context):
    """--machine decides what is a domain: two spellings are one node where its table says so."""
    text = log(context, banner("nid1.chn.perlmutter.nersc.gov", 0, 1) + banner("nid1", 1, 1))
    for machine, hosts in (("perlmutter", 1), ("aurora", 2)):
        seen = json.loads(answer(context, "topology", "--json", "--machine", machine, text))
        check_equal(len(seen["hosts"]), hosts, f"hosts on {machine}")


@scenario
def a_rank_that_two_hosts_claim_is_placed_nowhere(context):
    """A contradiction is said with both lines, and neither host gets the rank."""
    text = banner("nid1", 0, 7) + banner("nid2", 0, 7) + banner("nid1", 1, 7) + banner("nid3", 8, 7)
    out = answer(context, "topology", log(context, text))
    check("contradiction: rank 0 claimed by nid1 (line 1) and nid2 (line 2)" in out, out)
    check("nid1  rank 1\n" in out, out)
    check("unplaced: 0,2-7" in out, out)
    check("no place for these ranks, which are left out: 8" in out, f"rank 8 of 8 is not said to be nobody: {out}")


@scenario
def a_job_of_ezpz_tells_its_own_topology(context):
    """attempt-1.log of a real run places every rank where the ranks themselves say they were."""
    job = launch(context)
    check_equal(job.wait(), 0, "return code")
    seen = json.loads(answer(context, "topology", "--json", job.dir / "attempt-1.log"))
    placed = {h["host"]: h["ranks"] for h in seen["hosts"]}
    check_equal(placed, {"sim1": "0-1", "sim2": "2-3"}, "placement")
    for receipt in job.receipts(1).values():
        check(str(receipt.rank) in ("01" if receipt.host == "sim1" else "23"), f"rank {receipt.rank} on {receipt.host}")


@scenario
def a_large_hostile_log_costs_no_memory(context):
    """Hundreds of MB of labels, binary junk and one endless line are read in little memory."""
    writer = f"""
import os, sys
out = sys.stdout.buffer
line = b"".join(b"x1%03dc0s0b0n0 %d: iter=1 loss=2.0 tokens per second and more of it\\n" % (r // 12, r) for r in range(3072))
for _ in range(500): out.write(line)
out.write(b"x" * (100 << 20))
out.write(os.urandom(1 << 20))
"""
    feed = subprocess.Popen([sys.executable, "-c", writer], stdout=subprocess.PIPE, env=context.env())
    limit = 256 << 20
    done = subprocess.run([str(context.ezpz), "topology", "--json", "-"], stdin=feed.stdout, capture_output=True,
                          env=context.env(), timeout=TIME_LIMIT_S,
                          preexec_fn=None if "asan" in str(context.ezpz) else
                          lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    feed.stdout.close()
    check_equal(feed.wait(TIME_LIMIT_S), 0, "the writer's return code")
    check_equal((done.returncode, done.stderr), (0, b""), "exit code and stderr")
    check_equal(len(json.loads(done.stdout)["hosts"]), 256, "hosts")


@scenario
def nothing_of_a_log_reaches_the_terminal_raw(context):
    """Escape sequences inside host names, ranks or messages are not printed as they came."""
    evil = b"srun: error: nid\x1b]0;owned\x07x: task 3: Killed\n['n\x9b1'][local_rank=0/3][rank=0/7]\nfatal \x1b[2Jerror\xff\x00\n"
    path = log(context, evil)
    for words in (["topology", path], ["patterns", "test", path], ["patterns", "test", "--json", path]):
        out = answer(context, *words)
        bad = [c for c in out if ord(c) < 32 and c != "\n"]
        check_equal(bad, [], f"control characters in the output of {words[:2]}")


# ---- patterns


SITE = """[[pattern]]
id = "site.blade"
regex = 'blade {host} lost power$'
triggers = ["lost power"]
unless = ["drill"]
kind = "node_failure"
role = "cause"
event = "node_lost"
example = [{ line = "blade nid1 lost power", host = "nid1" }]

[[pattern]]
id = "site.power"
regex = '{host} lost power'
triggers = ["lost power"]
kind = "unknown"
example = "nid1 lost power"
"""


def site_dir(context):
    path = context.dir / "patterns"
    path.mkdir()
    (path / "site.toml").write_text(SITE)
    return path


@scenario
def patterns_are_listed_with_file_and_line(context):
    """list tells id, meaning, file:line and triggers, of built-in patterns and a site's own."""
    out = answer(context, "patterns", "list", "--patterns-dir", site_dir(context), "--file", "site")
    check_equal([line.split() for line in out.splitlines()],
                [["site.blade", "node_failure", "cause", "node_lost", "site.toml:1", '"lost', 'power"'],
                 ["site.power", "unknown", "context", "message", "site.toml:11", '"lost', 'power"']], "the list")
    listed = json.loads(answer(context, "patterns", "list", "--json"))
    check("srun.node_failure" in [entry["id"] for entry in listed], "srun.node_failure is not listed")


@scenario
def an_author_sees_what_became_of_a_pattern(context):
    """test says of each pattern that looked at a line: taken with captures, vetoed, lost, or no match."""
    path = log(context, "step=1\n3: blade nid7 lost power\nblade nid8 lost power (drill)\nlost power somewhere:\n"
                        "kernel panic: fatal error of its own kind\n")
    words = ["patterns", "test", "--patterns-dir", site_dir(context), path]
    seen = json.loads(answer(context, *words, "--json"))
    fates = {(line["line"], look["id"]): look for line in seen["lines"] for look in line["looks"]
             if look["id"].startswith("site.")}
    expected = {(2, "site.blade"): ("taken", ""), (2, "site.power"): ("lost", "site.blade"),
                (3, "site.blade"): ("no match", ""), (3, "site.power"): ("taken", ""),
                (4, "site.blade"): ("no match", ""), (4, "site.power"): ("no match", "")}
    check_equal({key: (look["fate"], look["why"]) for key, look in fates.items()}, expected, "fates")
    check_equal(fates[2, "site.blade"]["captures"]["host"], "nid7", "captured host")
    check_equal(seen["patterns"]["site.blade"], {"looked": 3, "taken": 1}, "counts")
    check_equal([line["line"] for line in seen["not_known"]], [5], "lines not known")
    text = answer(context, *words)
    check("taken     site.blade (site.toml:1)  host=nid7" in text, text)
    check("to site.blade, which comes before it" in text, text)
    only = answer(context, *words, "--id", "site.blade")
    check("2: 3: blade" in only and "site.blade" in only, only)


@scenario
def a_veto_is_told(context):
    """A message that holds one of a pattern's unless texts is shown as vetoed, with the text."""
    directory = site_dir(context)
    path = log(context, "drill: blade nid8 lost power\n")
    out = answer(context, "patterns", "test", "--patterns-dir", directory, "--id", "site.blade", path)
    check('vetoed    site.blade (site.toml:1): unless "drill"' in out, out)


@scenario
def mistakes_are_one_line(context):
    """Wrong words, missing logs and broken pattern files: exit 2, one line that says what and where."""
    broken = context.dir / "broken"
    broken.mkdir()
    (broken / "x.toml").write_text("[[pattern]]\nid = 'a'\nregexp = 'x'\n")
    job = log(context, SRUN)
    rows = [
        (["topology"], ["topology LOG"]),
        (["topology", context.dir / "nowhere.log"], ["nowhere.log", "No such file"]),
        (["topology", context.dir], [str(context.dir), "directory"]),
        (["topology", job, job], ["one log"]),
        (["topology", "--machine", "perlmuter", job], ["perlmuter", "did you mean 'perlmutter'"]),
        (["topology", job, "--jsn"], ["--jsn", "did you mean --json"]),
        (["patterns"], ["list or test"]),
        (["patterns", "lst"], ["lst"]),
        (["patterns", "list", "x"], ["x"]),
        (["patterns", "list", "--file", "nope"], ["nope", "slurm.toml"]),
        (["patterns", "test"], ["test LOG"]),
        (["patterns", "test", "--id", "srun.task_kill", job], ["did you mean srun.task_killed"]),
        (["patterns", "test", "--patterns-dir", broken, job], ["x.toml:1", "regex is missing"]),
        (["patterns", "list", "--patterns-dir", context.dir / "nowhere"], [str(context.dir / "nowhere")]),
    ]
    for words, says in rows:
        code, out, err = run(context, *words)
        check_equal((code, out, len(err.splitlines())), (2, "", 1), f"exit, stdout, lines on stderr of {words}: {err}")
        for text in says:
            check(text in err, f"{words}: {text!r} is not in {err!r}")


# ---- a machine without patterns


def notices(stderr):
    return [line for line in stderr.splitlines() if "only general patterns apply" in line]


@scenario
def a_machine_without_patterns_is_said_once(context):
    """On a machine that no table fits, a failover job says so once, over several attempts, with the reason,
    the known machines and what to do; the journal has it, too."""
    job = launch(context, "--exit-at-step", 6, "--exit-rank", 2, "--exit-on-attempt", 1, flags=["--machine", "generic"])
    check_equal(job.wait(), 0, "return code")
    check(len(job.contexts("attempt_end")) == 2, "there were no two attempts")
    said = notices(job.stderr_path.read_text())
    check_equal(len(said), 1, f"notices on stderr: {said}")
    for text in ("machine generic", "--machine says so", "perlmutter", "--machine NAME", "--patterns-dir", "docs/patterns.md"):
        check(text in said[0], f"{text!r} is not in {said[0]!r}")
    recorded = [c for c in job.contexts("unknown") if c["what"] == "patterns"]
    check_equal([c["machine"] for c in recorded], ["generic"], "events in the journal")


@scenario
def a_known_machine_with_patterns_is_not_complained_about(context):
    """Where a table and a patterns file fit, nothing is said."""
    job = launch(context, flags=["--machine", "perlmutter"])
    check_equal(job.wait(), 0, "return code")
    check_equal(notices(job.stderr_path.read_text()), [], "notices")
    check_equal([c for c in job.contexts("unknown") if c["what"] == "patterns"], [], "events in the journal")


@scenario
def a_launcher_that_no_file_covers_is_named(context):
    """A site's machine whose launcher no patterns file knows: the launcher and the machine are named; a
    file with the key launchers ends that."""
    machines, patterns = context.dir / "machines", context.dir / "own"
    machines.mkdir()
    patterns.mkdir()
    (machines / "mine.toml").write_text('title = "mine"\nlauncher = "acme"\n')
    flags = ["--machines-dir", machines, "--machine", "mine"]
    job = launch(context, flags=flags)
    check_equal(job.wait(), 0, "return code")
    said = notices(job.stderr_path.read_text())
    check(len(said) == 1 and "the launcher acme of mine" in said[0], f"notices: {said}")
    (patterns / "acme.toml").write_text('launchers = ["acme"]\n')
    job = launch(context, flags=[*flags, "--patterns-dir", patterns], logs=context.dir / "logs2")
    check_equal(job.wait(), 0, "return code")
    check_equal(notices(job.stderr_path.read_text()), [], "notices with a file that covers it")


# ---- flops


PUBLISHED = [  # flags, GFLOP per token, tokens/s, GPUs, TFLOP/s per GPU, MFU of an A100: as published
    ("", 9.375842304, 52060.06, 8, "61.013", "19.556"),
    ("", 9.375842304, 40363, 4, "94.6", "30.3"),
    ("", 9.375842304, 51244, 8, "60.1", "19.2"),
    ("", 9.375842304, 6175.041, 8, "7.237", "2.320"),
    ("--lora-rank 16 --lora-target attn", 6.454444032, 90878.17, 8, "73.321", "23.500"),
    ("--lora-rank 32 --lora-target attn,mlp", 6.55982592, 82639, 8, "67.76", "21.72"),
    ("--lora-rank 64 --lora-target attn,mlp", 6.680346624, 82632.89, 8, "69.002", "22.116"),
]


@scenario
def flops_reproduces_every_published_row(context):
    """Cost, TFLOP/s and MFU, to the digits that were published."""
    def to_digits_of(number, published):
        return f"{number:.{len(published.partition('.')[2])}f}"

    for flags, gflop, speed, gpus, tflops, mfu in PUBLISHED:
        words = ["flops", "--model", "agpt-2b", "--seq", 2048, *flags.split(), "--tps", speed, "--gpus", gpus, "--device", "A100"]
        told = json.loads(answer(context, *words, "--json"))
        seen = (told["gflop_per_token"], to_digits_of(told["tflops"], tflops), to_digits_of(told["mfu"], mfu))
        check_equal(seen, (gflop, tflops, mfu), f"GFLOP, TFLOP/s, MFU of {words}")
        text = answer(context, *words)
        check(f"{gflop:.9f} GFLOP" in text, f"the cost is not in the text: {text}")


@scenario
def flops_payload_of_lora(context):
    """The gradient payload of a block over eight ranks, as known."""
    known = {8: 419840, 16: 839680, 17: 1055232, 32: 1679360, 64: 3358720}
    for rank, elements in known.items():
        told = json.loads(answer(context, "flops", "--model", "agpt-2b", "--lora-rank", rank, "--lora-target", "attn,mlp",
                                 "--ranks", 8, "--json"))
        check_equal(told["lora_payload_per_block"], elements, f"payload of rank {rank}")


@scenario
def flops_without_a_device_has_no_mfu(context):
    """An unknown peak is null, not zero."""
    told = json.loads(answer(context, "flops", "--model", "s", "--tps", "1000", "--json"))
    check_equal(told["mfu"], None, "MFU")
    check("unknown" in answer(context, "flops", "--model", "s", "--tps", "1000"), "the text does not say unknown")


@scenario
def flops_refuses_what_makes_no_sense(context):
    """One line that says what is wrong, exit 2."""
    for words, piece in [
        ([], "which model"),
        (["--model", "agpt"], "there are debug"),
        (["--model", "agpt-2b", "--n-heads", "15"], "n-heads must divide dim"),
        (["--model", "s", "--tps", "0"], "not a number above 0"),
        (["--model", "s", "--device", "T4"], "--peak-tflops"),
        (["--model", "s", "--lora-target", "mlp"], "--lora-rank"),
        (["--model", "s", "--lora-rank", "8", "--lora-target", "mpl"], "attn,mlp"),
        (["--modle", "s"], "--model"),
    ]:
        code, out, err = run(context, "flops", *words)
        check_equal((code, out, err.count("\n")), (2, "", 1), f"exit code, stdout and lines of {words}: {err}")
        check(piece in err, f"{words} should say {piece!r}: {err}")

if __name__ == "__main__":
    sys.exit(main("commands"))
