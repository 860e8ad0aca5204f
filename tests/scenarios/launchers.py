"""The launchers that a training program is tried under, a row each, with the clusters they need."""

import shutil
from pathlib import Path

import faults
from harness import RUN_MARK, Skip, check, check_equal, processes, scenario, wait_until
from mpi_job import Hydra, MpiJob, OpenMpi
from slurm_job import SlurmJob
from ssh_job import SshJob
from training import NODES, launch

from hosts import Hosts
from lab import Lab
from ssh_hosts import SshHosts

BASE = Path("/var/tmp")  # nodes have a /tmp of their own; this they share
HOSTS = ("nid000001", "nid000002", "nid000003")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


class Local:
    name = "local"

    def start(self, context, command, ppn=1):
        return launch(context, nodes=NODES[:3], ppn=ppn, command=command, env=ONE_THREAD), NODES


class Srun:
    name = "srun"

    def start(self, context, command, ppn=1):
        context.lab = context.lab.get(Lab)
        job = SlurmJob(context, nodes=3, ppn=ppn, args=["--no-kill"], command=command, env=ONE_THREAD)
        wait_until("the job to run", lambda: context.lab.job_state(job.id) == "RUNNING", 20)
        return job, job.hosts()


class Mpi:
    def __init__(self, mpi):
        self.mpi, self.name = mpi, mpi.name

    def start(self, context, command, ppn=1):
        if shutil.which(self.mpi.program) is None:
            raise Skip(f"{self.mpi.program} is not installed")
        context.lab = context.lab.get(Hosts, HOSTS, marks=[RUN_MARK])
        return MpiJob(context, self.mpi, ppn=ppn, command=command, env=ONE_THREAD), HOSTS


class Ssh:
    name = "ssh"

    def start(self, context, command, ppn=1):
        context.lab = context.lab.get(SshHosts, HOSTS, marks=[RUN_MARK])
        return SshJob(context, ppn=ppn, command=command, env=ONE_THREAD), HOSTS


# A launcher is one row; start() answers (the job, its hosts in order: two active, one spare).
LAUNCHERS = (Local(), Srun(), Mpi(Hydra), Mpi(OpenMpi), Ssh())


class Clusters:
    """Each is started when the first scenario asks for it, and stands to the end."""

    def __init__(self, stack):
        self._stack = stack
        self._up = {}

    def get(self, kind, *what, **how):
        if kind not in self._up:
            ok, reason = kind.available()
            if not ok:
                raise Skip(reason)
            self._up[kind] = self._stack.enter_context(kind(*what, **how))
        return self._up[kind]


def on_each(function):
    """One scenario for each launcher."""
    for launcher in LAUNCHERS:

        def run(context, launcher=launcher):
            function(context, launcher)

        run.__name__ = f"{launcher.name}_{function.__name__}"
        run.__doc__ = f"{launcher.name}: {function.__doc__}"
        scenario(run)
    return function


# ---- ranks, of which nothing is known but what the kernel tells


def ranks_of(job, attempt, is_rank):
    """{rank: (node, process)} of the training processes of an attempt that run now. is_rank(argv)"""
    found = {}
    for process in job.context.processes():
        environ = processes.environ_of(process.pid)
        if environ.get("EZPZ_ATTEMPT") == str(attempt) and is_rank(processes.argv_of(process.pid)):
            found[int(environ["RANK"])] = (environ["EZPZ_NODE"], process)
    return found


def kill_ranks(ranks, node):
    """SIGKILL to every rank of a node at once."""
    members = {rank: process for rank, (there, process) in ranks.items() if there == node}
    check(members, f"no rank runs on {node}")
    alive = processes.kill_and_wait(list(members.values()), 5)
    check(not alive, f"ranks of {node} cannot be killed: {alive}")
    return faults.Killed(node, tuple(members), tuple(p.pid for p in members.values()), 0)


def check_same_losses(seen, known, upto, tolerance):
    """Of (step, loss) every step was reached, with the loss of the run that was never broken."""
    check_equal(sorted({step for step, _ in seen}), list(range(1, upto + 1)), "steps seen")
    wrong = [(step, loss, known[step]) for step, loss in seen if abs(loss - known[step]) > tolerance]
    check(not wrong, f"losses differ from the unbroken run's (step, seen, expected): {wrong[:5]}")
