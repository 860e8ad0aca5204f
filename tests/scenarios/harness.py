"""Runs scenarios: functions that start the real binary, break something, and look at what it did.

A scenario is a function marked @scenario whose docstring is one sentence about behaviour. It gets a
Context, and fails by raising. The rules every scenario lives by:

 - A folder of its own; kept, and its path printed, when it fails.
 - Every process it starts carries EZPZ_TEST_RUN=<its own id> in its environment. When it is over, no
   such process may be left; one that is left fails the scenario and is then ended, by pid.
 - Every wait has a limit. Every injected fault is proven first: see faults.py.

    main("local", [module_with_scenarios], argv)

runs what -k NAME selects and prints one line for each, then "N passed, N failed, N skipped".
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))

import lab_processes as processes

RUN_MARK = "EZPZ_TEST_RUN"
END_OF_PROCESSES_S = 5


class Failure(AssertionError):
    """What was expected, what was seen instead."""


class Skip(Exception):
    """This machine cannot run the scenario; the reason is for a person."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def check_equal(seen, expected, what):
    check(seen == expected, f"{what}: expected {expected!r}, saw {seen!r}")


def wait_until(what, condition, timeout_s, poll_s=0.02):
    """The first true value of condition(); a Failure that names `what` after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"waited {timeout_s} s in vain for {what}")
        time.sleep(poll_s)


# ---- scenarios and their context

SCENARIOS = []


def scenario(function=None, *, root=None, alone=False):
    """Marks a scenario. root: why it needs root, which skips it without. alone: not beside others."""

    def mark(f):
        f.needs_root, f.alone = root, alone
        SCENARIOS.append(f)
        return f

    return mark(function) if function is not None else mark


class Context:
    """What one scenario works with."""

    def __init__(self, name, options):
        self.name = name
        self.ezpz = options.ezpz
        self.toy = options.toy
        self.lab = getattr(options, "lab", None)
        self.run_id = f"{uuid.uuid4()}"
        self.dir = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=options.base))
        self._at_end = []

    def env(self, **more):
        """For everything the scenario starts."""
        return {**os.environ, RUN_MARK: self.run_id, **more}

    def at_end(self, action):
        """Runs whatever happens, last registered first."""
        self._at_end.append(action)

    def end(self):
        trouble = []
        for action in reversed(self._at_end):
            try:
                action()
            except Exception as error:  # the other actions must run, too
                trouble.append(f"cleaning up: {error}")
        return trouble

    def processes(self):
        """Everything that carries this scenario's id, zombies left out."""
        return processes.with_environment({RUN_MARK: self.run_id})

    def left_over(self):
        """One line for each process still there after a moment; all of them are ended."""
        deadline = time.monotonic() + END_OF_PROCESSES_S
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        lines = [f"{p.pid} {' '.join(processes.argv_of(p.pid))[:150]}" for p in left]
        survivors = processes.kill_and_wait(left, 5)
        return lines + [f"{p.pid} cannot even be killed" for p in survivors]


# ---- the runner


class Result:
    def __init__(self, name, word, seconds, detail=""):
        self.name, self.word, self.seconds, self.detail = name, word, seconds, detail


def _run_one(function, options):
    name = function.__name__
    start = time.monotonic()
    if function.needs_root and os.geteuid() != 0:
        return Result(name, "SKIPPED", 0, f"needs root: {function.needs_root}")
    context = Context(name, options)
    word, detail = "ok", ""
    try:
        function(context)
    except Skip as skip:
        word, detail = "SKIPPED", str(skip)
    except Failure as failure:
        word, detail = "FAILED", f"{failure}\n{_where(failure)}"
    except Exception:
        word, detail = "FAILED", traceback.format_exc()
    trouble = context.end()
    left = context.left_over()
    if left:
        trouble.append("left processes behind:\n  " + "\n  ".join(left))
    if trouble:
        word, detail = "FAILED", "\n".join([detail, *trouble]).strip()
    if word == "FAILED" or options.keep:
        detail = f"{detail}\nkept: {context.dir}".strip()
    else:
        shutil.rmtree(context.dir, ignore_errors=True)
    return Result(name, word, time.monotonic() - start, detail)


def _where(failure):
    """The scenario's own line, without this file's frames."""
    frames = [f for f in traceback.extract_tb(failure.__traceback__) if f.filename != __file__]
    return "\n".join(f"  at {Path(f.filename).name}:{f.lineno}: {f.line}" for f in frames)


def _run_all(chosen, options):
    """Those that may run side by side first, then the rest one after the other."""
    results, lock = [], threading.Lock()

    def run(function):
        result = _run_one(function, options)
        with lock:
            results.append(result)
            _print(result)

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        list(pool.map(run, [f for f in chosen if not f.alone]))
    for function in chosen:
        if function.alone:
            run(function)
    return results


def _print(result):
    print(f"{result.word:8} {result.seconds:6.1f} s  {result.name}", flush=True)
    if result.detail:
        print("    " + result.detail.replace("\n", "\n    "), flush=True)


def parser(title):
    p = argparse.ArgumentParser(prog=f"{title}.py", description=f"The {title} scenarios.")
    p.add_argument("-k", metavar="NAME", action="append", default=[], help="only those whose name holds NAME")
    p.add_argument("--list", action="store_true", help="print names and what they say, run nothing")
    p.add_argument("--ezpz", type=Path, help="the binary under test")
    p.add_argument("--toy", type=Path, help="toy_train")
    p.add_argument("--jobs", type=int, default=4, help="how many at once (4)")
    p.add_argument("--keep", action="store_true", help="keep the folders of those that pass, too")
    return p


def hear_signals():
    """Undoes what nohup, or a shell's '&', does to all that is started below it: ezpz and the ranks
    keep ignoring what they were started to ignore, and then no scenario about Ctrl-C can pass."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)


def main(title, argv=None, base=None, around=None):
    """around(options): a context manager that stands while the scenarios run, such as a lab."""
    options = parser(title).parse_args(argv)
    hear_signals()
    chosen = [f for f in SCENARIOS if not options.k or any(k in f.__name__ for k in options.k)]
    if options.list:
        for function in chosen:
            print(f"{function.__name__}\n    {' '.join(function.__doc__.split())}")
        return 0
    if options.ezpz is None or options.toy is None:
        sys.exit(f"{title}.py: --ezpz and --toy are needed")
    if not chosen:
        sys.exit(f"{title}.py: no scenario is called that; see --list")
    options.ezpz, options.toy = options.ezpz.resolve(strict=True), options.toy.resolve(strict=True)
    options.base = Path(tempfile.mkdtemp(prefix=f"ezpz-{title}-", dir=base))
    try:
        with around(options) if around is not None else contextlib.nullcontext():
            return _summary(_run_all(chosen, options))
    finally:
        with contextlib.suppress(OSError):  # what failed is kept in it
            options.base.rmdir()


def skip_all(title, reason, argv=None):
    """For a title that cannot run here at all: says so for each scenario, and counts them."""
    options = parser(title).parse_args(argv)
    chosen = [f for f in SCENARIOS if not options.k or any(k in f.__name__ for k in options.k)]
    results = [Result(f.__name__, "SKIPPED", 0, reason) for f in chosen]
    for result in results:
        _print(result)
    return _summary(results)


def _summary(results):
    count = {word: sum(r.word == word for r in results) for word in ("ok", "FAILED", "SKIPPED")}
    print(f"{count['ok']} passed, {count['FAILED']} failed, {count['SKIPPED']} skipped", flush=True)
    return 1 if count["FAILED"] else 0
