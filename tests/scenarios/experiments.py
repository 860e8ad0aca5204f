#!/usr/bin/python3
"""The job scripts of experiments/, as far as they can be tried without their machines: what they say and
store, what they refuse, and that every flag they give exists."""

import os
import re
import shutil
import subprocess
import sys

from harness import HERE, check, check_equal, main, scenario

ROOT = HERE.parent.parent
MACHINES = ("perlmutter", "aurora", "polaris", "sunspot")
TIME_LIMIT_S = 60


def run(context, machine, name, **settings):
    """A script, dry, outside of any job."""
    folder = context.dir / machine
    if not folder.exists():
        shutil.copytree(ROOT / "experiments", folder / "experiments")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PBS_"))}
    env.update(DRY_RUN="1", EZPZ=str(context.ezpz), VICTIM="n2", RESULTS="results", **settings)
    script = f"experiments/{machine}/{name}.sh"
    done = subprocess.run(["bash", script], cwd=folder, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    return done, folder / "results"


@scenario
def a_sweep_shows_every_cell_and_stores_what_its_settings_came_to(context):
    """Dry: each cell's command is said and stored; the settings are in a file that can be sourced again."""
    for machine in MACHINES:
        done, results = run(context, machine, "lora-sweep", LORA_RANKS="8 16", BATCH="3")
        check_equal(done.returncode, 0, f"{machine}: {done.stderr}")
        cells = [line.split()[0] for line in (results / "cells.txt").read_text().splitlines()]
        check_equal(cells, ["r8-attn", "r16-attn", "r8-attn-mlp", "r16-attn-mlp"], "cells")
        config = (results / "config.sh").read_text()
        check("BATCH=3  # given\n" in config and "SEQ=2048  # default\n" in config, f"config.sh of {machine}: {config}")
        check_equal(subprocess.run(["bash", "-n", results / "config.sh"], check=False).returncode, 0, "config.sh as a script")
        for cell in cells:
            command = (results / cell / "command.sh").read_text()
            rank, target = cell[1:].split("-", 1)
            check(f"--lora-rank {rank} " in command and f"--lora-target {target.replace('-', ',')} " in command.replace("\\", ""), command)


@scenario
def the_network_is_asserted_where_a_plugin_is_expected(context):
    """Perlmutter's runs stop on another network than its plugin's; an empty setting takes that away and says so."""
    for name in ("amsc", "lora-sweep", "node-kill"):
        done, _ = run(context, "perlmutter", name)
        check("--require-net AWS\\ Libfabric" in done.stdout, f"{name}: {done.stdout}")
    done, _ = run(context, "perlmutter", "amsc", REQUIRE_NET="")
    check("--require-net" not in done.stdout and "no network is asserted" in done.stderr, f"{done.stdout} {done.stderr}")


@scenario
def empty_and_unset_differ(context):
    """What must have a value refuses to be empty; what may be empty says that it was."""
    for setting in ("MODEL", "BATCH", "NODES"):
        done, results = run(context, "aurora", "amsc", **{setting: ""})
        check_equal((done.returncode, done.stdout), (2, ""), f"with {setting} empty")
        check(f"{setting} is set but empty" in done.stderr, done.stderr)
        check(not results.exists(), "something was written")
    done, results = run(context, "aurora", "amsc", MODULES="")
    check("MODULES=''  # empty\n" in (results / "config.sh").read_text(), done.stdout)
    for setting, value in (("BATCH", "x"), ("NODES", "0")):
        done, _ = run(context, "aurora", "amsc", **{setting: value})
        check_equal((done.returncode, done.stdout), (2, ""), f"with {setting}={value}: {done.stderr}")


@scenario
def every_flag_exists(context):
    """Each flag of each command is in the help text of the program that gets it."""
    helps = {}
    for program, argv in (("launch", [context.ezpz, "launch", "--help"]), ("train", [context.ezpz.parent / "ezpz-train", "--help"])):
        if argv[0].exists():
            helps[program] = subprocess.run(argv, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True).stdout
    for machine in MACHINES:
        for name in ("amsc", "lora-sweep", "node-kill"):
            done, _ = run(context, machine, name)
            commands = [line for line in done.stdout.splitlines() if " launch --nhosts " in line and " -- " in line]
            check(commands, f"{machine}/{name} shows no command: {done.stdout} {done.stderr}")
            for command in commands:
                launch, train = command.split(" -- ", 1)
                for program, words in (("launch", launch), ("train", train)):
                    for flag in re.findall(r" (--[a-z-]+)", words):
                        check(program not in helps or re.search(rf"(?m)^\s+.*{flag}\b", helps[program]), f"{program} has no {flag}")


if __name__ == "__main__":
    sys.exit(main("experiments"))
