"""A PBS job, imitated: the environment of one, and tests/fakes/qstat and pbsnodes in PATH, which answer
from a file that a scenario may change while the job runs."""

import json
import os
import subprocess
import time
from pathlib import Path

from harness import check, check_equal
from training import launch

FAKES = Path(__file__).resolve().parent.parent / "fakes"
COOKIE = "5EC4E7C00C1E"
SERVER = "aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov"
HOSTS = ("h1", "h2", "h3", "h4")


class Pbs:
    """A job of four hosts, two mpiprocs each, and its world."""

    def __init__(self, context, job_id=f"7.{SERVER}", hosts=HOSTS, started_s=None, walltime="01:00:00", **changes):
        self.context, self.job_id, self.hosts = context, job_id, hosts
        self.path, self.asked_path = context.dir / "pbs.json", context.dir / "asked.txt"
        self.node_file = context.dir / "nodefile"
        # As PBS writes it: in the job's order, a host once for each of its mpiprocs.
        self.node_file.write_text("".join(f"{host}\n{host}\n" for host in hosts))
        job = {
            "Job_Name": "train",
            "Job_Owner": "tester@uan1",
            "job_state": "R",
            "exec_host": "+".join(f"{host}/{slot}*2" for host in hosts for slot in (0, 1)),
            "exec_vnode": "+".join(f"({host}:ncpus=2)" for host in hosts for _ in (0, 1)),
            "Resource_List": {"ncpus": 8, "nodect": 8, "walltime": walltime},
            "stime": time.ctime(started_s or time.time() - 600),
            "Variable_List": {"PBS_O_HOME": "/home/tester", "MESSAGE": 'it said "no"'},
            "tolerate_node_failures": "all",
        }
        nodes = {host: self._node("job-busy", host) for host in (*hosts, "h9")}
        self.world = {"server": SERVER, "jobs": {job_id: job}, "nodes": nodes, "asked": str(self.asked_path)}
        self.change(**changes)

    @staticmethod
    def _node(state, host):
        return {"Mom": f"{host}.site.gov", "state": state, "resources_available": {"host": host, "vnode": host}}

    def change(self, job=None, states=None, **world):
        """Of the job (None takes a key out), of nodes' states, of the world itself."""
        self.world.update(world)
        mine = self.world["jobs"][self.job_id]
        mine.update(job or {})
        for key in [key for key, value in mine.items() if value is None]:
            del mine[key]
        for host, state in (states or {}).items():
            self.world["nodes"][host] = self._node(state, host)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.world))
        part.rename(self.path)

    def env(self, in_job=True, **more):
        """What a process sees there; outside the job, only the commands."""
        env = {"PATH": f"{FAKES}:{os.environ['PATH']}", "FAKE_PBS": str(self.path), "USER": "tester"}
        if in_job:
            env |= {"PBS_JOBID": self.job_id, "PBS_NODEFILE": str(self.node_file), "PBS_JOBCOOKIE": COOKIE}
            env |= {"PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_HOST": "uan1", "PBS_QUEUE": "workq"}
        return {**env, **more}

    def asked(self):
        return self.asked_path.read_text().splitlines() if self.asked_path.exists() else []

    def run(self, *words, in_job=True, timeout_s=20, **env):
        done = subprocess.run(
            [str(word) for word in (self.context.ezpz, *words)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            cwd=self.context.dir,
            env=self.context.env(**self.env(in_job, **env)),
        )
        check_equal(done.returncode, 0, f"return code ({done.stderr.decode()})")
        check(COOKIE not in done.stdout.decode() + done.stderr.decode(), "the job's cookie was printed")
        return done.stdout.decode()

    def info(self, **how):
        return json.loads(self.run("info", "--json", **how))

    def launch(self, *toy_flags, **how):
        """--auto-retry over the node file: two hosts active, two spare."""
        return launch(self.context, *toy_flags, nodes=self.hosts, env=self.env(), **how)
