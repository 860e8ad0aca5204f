"""What `ezpz doctor --json` answered, for scenarios to look at."""

import json
import os
import subprocess

from harness import check, check_equal

LIMIT_S = 60


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.json = json.loads(out) if out.startswith("{") else None
        self.rows = {row["check"]: row for row in self.json["checks"]} if self.json else {}

    def health(self, name):
        return self.rows[name]["health"] if name in self.rows else None

    def groups(self, name, health=None):
        check(name in self.rows, f"no check is called {name}: {sorted(self.rows)}")
        return [g for g in self.rows[name]["groups"] if health in (None, g["health"])]

    def why(self, name, health=None):
        return "; ".join(group["why"] for group in self.groups(name, health))

    def hosts(self, name, health):
        return sorted(host for group in self.groups(name, health) for host in group["hosts"])

    def expect(self, name, health, *words):
        """That check is so, says these words, and what to do where something is wrong."""
        check_equal(self.health(name), health, f"{name} ({self.why(name) if name in self.rows else self.err})")
        for word in words:
            check(word in self.why(name, health), f"{name} does not say {word!r}: {self.why(name, health)}")
        if health != "ok":
            check(all(group["remedy"] for group in self.groups(name, health)), f"{name} tells no remedy")
        return self

    def fine(self, *but):
        """No error and no warning, except in these checks."""
        bad = {n: self.why(n) for n, r in self.rows.items() if r["health"] in ("error", "warning") and n not in but}
        check_equal(bad, {}, "errors and warnings")
        return self


def run(argv, env, cwd, timeout_s=LIMIT_S):
    done = subprocess.run([str(w) for w in argv], env=env, cwd=cwd, timeout=timeout_s, stdin=subprocess.DEVNULL,
                          capture_output=True)
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def without_jobs(env):
    """That environment, outside any job."""
    marks = ("SLURM", "PBS_", "PALS_", "PMI", "EZPZ_NODE")
    return {name: value for name, value in env.items() if not name.startswith(marks)}


def doctor(context, *flags, env=None, as_json=True, timeout_s=LIMIT_S, prefix=()):
    """`ezpz doctor` in the scenario's folder."""
    argv = [*prefix, context.ezpz, "doctor", *(["--json"] if as_json else []), *flags]
    return run(argv, {**without_jobs(context.env()), **(env or {})}, context.dir, timeout_s)


def in_own_mounts(script):
    """A prefix: what follows sees mounts that the script has made, and nobody else does."""
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return [*enter, "/bin/sh", "-e", "-c", script + '\nexec "$@"', "in-own-mounts"]
