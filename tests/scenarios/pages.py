#!/usr/bin/python3
"""Every `ezpz` command of README.md and docs/machines/*.md, taken from its fenced blocks and given to the
real binary in the environment of such a machine: launch and submit with --dry-run, of others the flags
are looked up in their --help. What a page shows below `$ ezpz ...` must be what comes out."""

import re
import shlex
import subprocess
import sys

from harness import HERE, check, check_equal, main, scenario

ROOT = HERE.parent.parent
PAGES = sorted((ROOT / "docs" / "machines").glob("*.md"))
BLOCK = re.compile(r"(?ms)^```[a-z]*\n(.*?)^```$")
INSTALLED = "/home/me/bin/ezpz"  # where pages have it
PALS = ("aurora", "sunspot", "polaris")
PALS_BIN, BIN = "/opt/cray/pals/bin", "/usr/bin"
PLANNERS = ("launch", "submit")  # they plan without doing anything
MACHINES = ("perlmutter", "frontier", "aurora", "sunspot", "polaris", "own-cluster", "laptop")


# ---- what a page says


class Command:
    """One command line; shown: the lines below it, of one that begins with a `$`."""

    def __init__(self, page, text, shown=None):
        self.page, self.text, self.shown = page, text, shown
        self.words = shlex.split(text, comments=True)[1:]

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}: {self.text}"


def commands_of(page):
    found = []
    for block in BLOCK.findall(page.read_text()):
        lines = block.replace("\\\n", " ").splitlines()
        if lines and lines[0].startswith("$ ezpz "):
            found.append(Command(page, lines[0][2:], lines[1:]))
        else:
            found += [Command(page, line) for line in lines if line.startswith("ezpz ")]
    return found


# ---- where it is tried


def surroundings(context, name):
    """The environment of a job on that machine, or of a shell where there is no scheduler."""
    folder = context.dir / name
    (folder / "bin").mkdir(parents=True)
    (folder / "hosts.txt").write_text("".join(f"node{i:02}\n" for i in range(1, 11)))
    (folder / "job.out").write_text("")
    env = {"PATH": str(folder / "bin"), "HOME": "/home/me"}
    if name in ("perlmutter", "frontier"):
        nodes = "nid[001001-001034]" if name == "perlmutter" else "frontier[00001-00034]"
        env |= {"SLURM_JOB_ID": "57", "SLURM_JOB_NODELIST": nodes, "SLURM_JOB_NUM_NODES": "34"}
        env |= {"NERSC_HOST": name} if name == "perlmutter" else {"LMOD_SYSTEM_NAME": name}
        tools = {"sbatch": "exit 1"}
    elif name in PALS:
        chassis = {"aurora": "x4101c0", "sunspot": "x1921c0", "polaris": "x3005c0"}[name]
        hosts = [f"{chassis}s{i}b0n0" for i in range(1, 35)]
        (folder / "nodefile").write_text("".join(f"{host}\n" for host in hosts))
        submitter = {"aurora": "aurora-uan-0010", "sunspot": "sunspot-uan-01", "polaris": "polaris-login-01"}[name]
        env |= {"PBS_JOBID": f"57.{name}-pbs-01", "PBS_NODEFILE": str(folder / "nodefile"), "PBS_O_HOST": submitter}
        tools = {"qsub": "exit 1", "mpiexec": "echo 'mpiexec version 1.4.0 (PALS)'"}
    else:
        tools = {"mpirun.openmpi": "echo 'mpirun.openmpi (OpenRTE) 4.1.4'", "mpiexec.hydra": "echo 'HYDRA build details:'"}
    for tool, does in tools.items():
        (folder / "bin" / tool).write_text(f"#!/bin/sh\n{does}\n")
        (folder / "bin" / tool).chmod(0o755)
    return folder, env


def run(context, folder, env, words):
    done = subprocess.run([context.ezpz, *words], capture_output=True, timeout=30, cwd=folder, env=env,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def dry(words):
    """With --dry-run, which goes before the command's own words."""
    return words if "--dry-run" in words else [words[0], "--dry-run", *words[1:]]


def check_plans(context, command, there):
    folder, env = there
    code, out, err = run(context, folder, env, dry(command.words))
    check_equal(code, 0, f"exit code of `{command}`; it said: {err}")
    if command.shown is not None:
        programs = PALS_BIN if folder.name in PALS else BIN
        check_shown(command, out.replace(str(context.ezpz), INSTALLED).replace(str(folder / "bin"), programs))


def check_shown(command, out):
    """The page's lines in order; a line `...` stands for any number of others, :PORT for a port."""
    pattern = ""
    for line in command.shown:
        pattern += r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(":PORT", r":\d+") + r"\n"
    check(re.fullmatch(pattern, out if out.endswith("\n") else out + "\n"), f"`{command}` does not print what is shown, but:\n{out}")


def flags_of(context, words):
    """Every flag that the command's help names."""
    code, out, err = run(context, context.dir, {"PATH": "/nowhere"}, [words[0], "--help"])
    check_equal(code, 0, f"exit code of `ezpz {words[0]} --help`: {err}")
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", out))


def check_flags(context, command):
    known = flags_of(context, command.words)
    own = command.words[: command.words.index("--")] if "--" in command.words else command.words
    asked = [word.split("=")[0] for word in own[1:] if re.match(r"--?[a-zA-Z]", word)]
    unknown = [flag for flag in asked if flag not in known]
    check(not unknown, f"`{command}`: its help does not know {unknown}")


# ---- scenarios


@scenario
def every_machine_has_a_page_with_every_part(context):
    """Each page names install, check or first launch, submit, looking back, what bites, what was tried;
    README links to each."""
    check_equal(sorted(page.stem for page in PAGES), sorted(MACHINES), "pages")
    readme = (ROOT / "README.md").read_text()
    for page in PAGES:
        check(f"docs/machines/{page.name}" in readme, f"README does not link to {page.name}")
        titles = re.findall(r"(?m)^## (.*)$", page.read_text())
        for part in ("Install", "First launch", "Submit with spares", "Watch, and look back", "What bites here",
                     "What has been tried"):
            check(part in titles, f"{page.name} has no part called {part!r}")
        words = [command.words[0] for command in commands_of(page)]
        for word in ("info", "launch", "submit", "report", "postmortem"):
            check(word in words, f"{page.name} never says `ezpz {word}`")


@scenario
def every_command_of_a_page_is_one_that_ezpz_takes(context):
    """launch and submit come to a plan in the environment of that machine, and print what the page shows;
    flags of all others stand in their help."""
    for page in PAGES:
        there = surroundings(context, page.stem)
        commands = commands_of(page)
        check(len(commands) >= 6, f"only {len(commands)} commands were found in {page.name}")
        for command in commands:
            if command.words[0] in PLANNERS:
                check_plans(context, command, there)
            else:
                check_flags(context, command)


@scenario
def every_command_of_the_readme_is_one_that_ezpz_takes(context):
    """README.md speaks of several machines at once: of all its commands the flags are looked up."""
    commands = commands_of(ROOT / "README.md")
    check(len(commands) >= 6, f"only {len(commands)} commands were found")
    for command in commands:
        check_flags(context, command)


@scenario
def a_flag_that_does_not_exist_is_found(context):
    """The checks themselves: a page with a wrong flag, or with output that is not so, fails."""
    page = context.dir / "wrong.md"
    wrong = ("ezpz report --no-such-flag logs", "ezpz launch --no-such-flag -- true", "ezpz submit -N 2 --spare 1 -- true")
    there = surroundings(context, "laptop")
    for text in wrong:
        command = Command(ROOT / "README.md", text)
        judge = check_flags if command.words[0] == "report" else lambda c, x: check_plans(c, x, there)
        check(fails(judge, context, command), f"`{text}` passes")
    page.write_text("```\n$ ezpz launch --dry-run -n 2 -- true\nlauncher: srun\n...\n```\n")
    shown = commands_of(page)[0]
    shown.page = ROOT / "README.md"
    check(fails(lambda c, x: check_plans(c, x, there), context, shown), "output that is not so passes")


def fails(judge, context, command):
    try:
        judge(context, command)
    except AssertionError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main("pages"))
