"""A started `ezpz launch`, and everything it leaves behind, read for tests."""

import json
import os
import re
import signal
import subprocess

from harness import Failure, check, processes, wait_until

STEP = re.compile(rb"(?m)^step=(\d+) loss=(\S+)$")
SAVED = re.compile(rb"(?m)^saved checkpoint step=(\d+)$")
STOP = "FAILOVER STOP: "


class Receipt:
    """What one rank of one attempt wrote about itself; see tests/workload/receipts.h."""

    def __init__(self, path):
        lines = path.read_text().splitlines()
        self.events = [json.loads(line) for line in lines if line.endswith("}")]
        starts = [e for e in self.events if e["event"] == "start"]
        check(len(starts) == 1, f"{path}: {len(starts)} ranks of this number started, not one")
        self.start = starts[0]
        self.rank, self.host, self.attempt = self.start["rank"], self.start["host"], self.start["attempt"]

    def all(self, event):
        return [e for e in self.events if e["event"] == event]

    def signals(self):
        return [e["signal"] for e in self.all("signal")]


class Artifacts:
    """What a launch leaves: logs/failover-<jobid>/, the receipts of its ranks, and what it printed.
    A subclass says how it is started, and returncode()."""

    def __init__(self, context, logs, receipts, stdout, stderr):
        self.context = context
        self.logs, self.receipts_dir = logs, receipts
        self.stdout_path, self.stderr_path = stdout, stderr

    def returncode(self):
        """None while it runs; negative for a signal, as Python says it."""
        raise NotImplementedError

    @property
    def dir(self):
        found = sorted(self.logs.glob("failover-*"))
        check(len(found) == 1, f"{self.logs}: expected one failover-* folder, found {[p.name for p in found]}")
        return found[0]

    def journal(self, name=None):
        """Its events, or those called `name`; an unfinished last line is left out."""
        path = self.dir / "journal.jsonl"
        text = path.read_text() if path.exists() else ""
        events = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [e for e in events if name is None or e["name"] == name]

    def journal_text(self):
        return (self.dir / "journal.jsonl").read_text()

    def contexts(self, name):
        return [event["context"] for event in self.journal(name)]

    def verdicts(self):
        """The kind of each attempt's verdict, in order."""
        return [c["verdict"] for c in self.contexts("verdict")]

    def culprits(self, attempt):
        """The hosts that the verdict on an attempt convicts."""
        verdict = next(c for c in self.contexts("verdict") if c["attempt"] == attempt)
        return [culprit["host"] for culprit in verdict["culprits"]]

    def bad_nodes(self):
        """bad_nodes.txt as (host, provenance, {"attempt": "1", "verdict": "..."})."""
        path = self.dir / "bad_nodes.txt"
        rows = []
        for line in path.read_text().splitlines() if path.exists() else []:
            host, provenance, *pairs = line.split()
            rows.append((host, provenance, dict(pair.split("=", 1) for pair in pairs if "=" in pair)))
        return rows

    def bad_hosts(self):
        return [(host, provenance) for host, provenance, _ in self.bad_nodes()]

    def doubtful(self):
        """Hosts whose line in bad_nodes.txt is marked doubtful."""
        return [line.split()[0] for line in (self.dir / "bad_nodes.txt").read_text().splitlines() if "doubtful" in line]

    def active(self):
        return (self.dir / "active.hostfile").read_text().split()

    def attempt_log(self, attempt):
        return (self.dir / f"attempt-{attempt}.log").read_bytes()

    def attempts(self):
        return len(list(self.dir.glob("attempt-*.log")))

    def receipts(self, attempt):
        """{rank: Receipt} of the ranks that started in this attempt."""
        files = self.receipts_dir.glob(f"attempt-{attempt}.rank-*")
        # An empty one is of a rank that was ended before it could say anything.
        found = [Receipt(p) for p in files if p.stat().st_size > 0]
        return {r.rank: r for r in sorted(found, key=lambda r: r.rank)}

    def hosts_used(self, attempt):
        """The hosts the ranks really ran on, in rank order, each once."""
        return list(dict.fromkeys(r.host for r in self.receipts(attempt).values()))

    def stdout(self):
        return self.stdout_path.read_bytes()

    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def stop_reason(self):
        """The word after FAILOVER STOP, which must be the last line, and the only one of its kind."""
        lines = self.stderr().splitlines()
        said = [line for line in lines if STOP in line]
        check(len(said) == 1, f"expected one line with {STOP!r}, saw {len(said)}:\n{self.stderr()}")
        check(lines[-1] == said[0], f"the last line is not {STOP!r}: {lines[-1]!r}")
        words = said[0].split(STOP, 1)[1].split()
        check(words, "no reason after FAILOVER STOP")
        return words[0].rstrip(":,.;")

    def steps(self):
        """(step, loss) as printed, in order, over all attempts."""
        return [(int(s), loss.decode()) for s, loss in STEP.findall(self.stdout())]

    def saved(self):
        return [int(s) for s in SAVED.findall(self.stdout())]

    def saved_in(self, attempt):
        """Steps of the checkpoints that one attempt announced."""
        return [int(s) for s in SAVED.findall(self.attempt_log(attempt))]

    def wait_step(self, step, attempt=1, timeout_s=20):
        """Until that step was finished by rank 0 of that attempt."""

        def seen():
            rank_0 = self._receipt_of(attempt, 0)
            return rank_0 is not None and any(e["step"] >= step for e in rank_0.all("step"))

        self.wait_for(f"step {step} of attempt {attempt}", seen, timeout_s)

    def wait_attempt(self, attempt, ranks, timeout_s=20):
        """Until so many ranks of that attempt have met."""

        def met():
            found = [self._receipt_of(attempt, rank) for rank in range(ranks)]
            return all(r is not None and r.all("ready") for r in found)

        self.wait_for(f"{ranks} ranks of attempt {attempt} to meet", met, timeout_s)

    def _receipt_of(self, attempt, rank):
        path = self.receipts_dir / f"attempt-{attempt}.rank-{rank}"
        return Receipt(path) if path.exists() and path.stat().st_size > 0 else None

    def wait_for(self, what, condition, timeout_s):
        """Until condition() is true, which it must become before ezpz ends."""

        def now():
            if condition():
                return True
            if self.returncode() is not None:
                raise Failure(f"ezpz ended (rc {self.returncode()}) before {what}; it said:\n{self.stderr()}")
            return False

        wait_until(what, now, timeout_s)

    def processes(self):
        """What the job runs: everything with this scenario's mark that has a rank."""
        return [p for p in self.context.processes() if "RANK" in processes.environ_of(p.pid)]


class Job(Artifacts):
    """One running or ended ezpz."""

    def __init__(self, context, argv, logs, receipts, env=None):
        index = len(list(context.dir.glob("ezpz-*.stderr")))
        files = [context.dir / f"ezpz-{index}.{kind}" for kind in ("stdout", "stderr")]
        super().__init__(context, logs, receipts, *files)
        self.argv = [str(word) for word in argv]
        (context.dir / f"ezpz-{index}.argv").write_text("\n".join(self.argv) + "\n")
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env or context.env(),
                cwd=context.dir,
                start_new_session=True,
            )
        context.at_end(self._end)

    def returncode(self):
        return self.process.poll()

    def _end(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)  # ours and not yet waited for: the pid is its own
            self.process.wait(10)

    def wait(self, timeout_s=30):
        """The return code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"ezpz did not end within {timeout_s} s; it said:\n{self.stderr()}") from None

    def signal(self, number):
        check(self.process.poll() is None, f"ezpz had ended already (rc {self.process.returncode})")
        self.process.send_signal(number)

    def ctrl_c(self):
        """As a terminal does it: to the whole process group."""
        check(self.process.poll() is None, "ezpz had ended before Ctrl-C")
        os.killpg(self.process.pid, signal.SIGINT)
