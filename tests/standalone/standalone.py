#!/usr/bin/python3
"""The installed binary runs on a bare node: alone in a chroot, on an old kernel, with no library of
anybody's. Needs root for the chroot; what does not is tested without."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scenarios"))

import faults
from harness import Skip, check, check_equal, main, scenario
from job import Job
from training import CHECKPOINT_EVERY

ROOT = "it changes its root directory"


def is_sanitized(binary):
    return b"__asan_init" in binary.read_bytes()


def require_static(context):
    if is_sanitized(context.ezpz):
        raise Skip("a sanitizer build is not static")


def bare_root(context):
    """A root directory that holds the two binaries, an empty /tmp, /proc and /dev/null."""
    root = context.dir / "root"
    for folder in ("bin", "tmp", "proc", "dev", "work"):
        (root / folder).mkdir(parents=True)
    shutil.copy(context.ezpz, root / "bin" / "ezpz")
    shutil.copy(context.toy, root / "bin" / "toy_train")
    (root / "dev" / "null").touch()
    mounts = [["-t", "proc", "proc", root / "proc"], ["--bind", "/dev/null", root / "dev" / "null"]]
    for arguments in mounts:
        subprocess.run(["mount", *map(str, arguments)], check=True, timeout=10)
        context.at_end(lambda target=arguments[-1]: subprocess.run(["umount", target], check=True, timeout=10))
    return root


def old_kernel(context):
    """Built beside toy_train."""
    helper = context.toy.parent / "old_kernel"
    check(helper.exists(), f"{helper} was not built")
    return helper


def bare_environment(context):
    """What the binary finds there: nothing of this machine's."""
    environment = {name: value for name, value in context.env().items() if name.startswith("EZPZ_TEST")}
    return {**environment, "PATH": "/bin"}


def run_bare(context, *argv):
    """Runs argv in the bare root to its end."""
    return subprocess.run(
        [old_kernel(context), bare_root(context), *argv],
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
        env=bare_environment(context),
    )


def launch_bare(context, *toy_flags):
    """The main job in the bare root: hosts, logs and receipts below /work there."""
    root = bare_root(context)
    (root / "work" / "hosts").write_text("sim1\nsim2\nsim3\nsim4\n")
    argv = [old_kernel(context), root, "/bin/ezpz", "launch", "--auto-retry", "--launcher", "local"]
    argv += ["--hostfile", "/work/hosts", "--nhosts", "2", "--ppn", "2", "--log-dir", "/work/logs", "--"]
    argv += ["/bin/toy_train", "--steps", "14", "--step-ms", "50", "--checkpoint-every", str(CHECKPOINT_EVERY)]
    argv += ["--checkpoint", "/work/checkpoint", "--receipts", "/work/receipts", *toy_flags]
    return Job(context, argv, root / "work" / "logs", root / "work" / "receipts", env=bare_environment(context))


@scenario
def it_needs_no_library(context):
    """The binary names no shared library and no interpreter."""
    require_static(context)
    text = subprocess.run(["readelf", "-ldW", context.ezpz], capture_output=True, text=True, check=True).stdout
    check("Program Headers" in text, "readelf said nothing")
    check("(NEEDED)" not in text, f"it needs shared libraries:\n{text}")
    check("INTERP" not in text, "it asks for a dynamic loader")


@scenario
def it_asks_for_no_newer_c_library(context):
    """No symbol is left to be resolved by the node's C library, of whatever version."""
    require_static(context)
    symbols = ["readelf", "--dyn-syms", "-VW", context.ezpz]
    text = subprocess.run(symbols, capture_output=True, text=True, check=True).stdout
    check(not re.search(r"GLIBC_\d", text), f"versioned symbols are asked for:\n{text}")


@scenario
def it_starts_fast(context):
    """Start to usage text is far from anything a person notices."""
    require_static(context)

    def once():
        start = time.monotonic()
        subprocess.run([context.ezpz, "--help"], capture_output=True, check=True, timeout=10)
        return time.monotonic() - start

    best = min(once() for _ in range(20))
    check(best < 0.1, f"the fastest of 20 starts took {best * 1000:.0f} ms")


@scenario(root=ROOT)
def help_works_in_an_empty_root(context):
    """With nothing around it the binary still explains itself."""
    require_static(context)
    done = run_bare(context, "/bin/ezpz", "--help")
    check_equal((done.returncode, done.stderr), (0, ""), "code and stderr")
    check("launch" in done.stdout, "the help does not speak of launch")


@scenario(root=ROOT)
def info_works_in_an_empty_root(context):
    """Without getent, scontrol or a single file of /etc, info still answers."""
    require_static(context)
    done = run_bare(context, "/bin/ezpz", "info")
    check_equal(done.returncode, 0, f"return code ({done.stderr})")
    check(done.stdout.strip(), "info says nothing")


@scenario(root=ROOT)
def the_main_job_runs_in_an_empty_root_on_an_old_kernel(context):
    """A node is lost and replaced, the run resumes and ends, with nothing but the binary, the program
    and the system calls of kernel 4.18."""
    require_static(context)
    job = launch_bare(context)
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_node(job, "sim2").prove([2, 3])
    check_equal(job.wait(60), 0, "return code")
    check_equal(job.stop_reason(), "success", "stop reason")
    check_equal(job.bad_hosts(), [("sim2", "scraped")], "bad_nodes.txt")
    check_equal(job.hosts_used(2), ["sim1", "sim3"], "hosts used by attempt 2")


@scenario(root=ROOT)
def a_killed_ezpz_leaves_nothing_on_an_old_kernel(context):
    """The keeper does its work without pidfds, too."""
    require_static(context)
    job = launch_bare(context, "--ignore-term", "--steps", "4000")
    job.wait_step(CHECKPOINT_EVERY + 1)
    faults.kill_ezpz(job)
    check_equal(job.wait(), -signal.SIGKILL, "ezpz's end")
    deadline = time.monotonic() + 10
    while context.processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    check_equal(context.processes(), [], "processes left")


if __name__ == "__main__":
    sys.exit(main("standalone"))
