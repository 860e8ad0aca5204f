"""A batch job of the lab that runs `ezpz launch`, and the faults a real cluster has."""

import os
import shlex
import socket
import time

import faults
from harness import RUN_MARK, Failure, check, processes, wait_until
from job import Artifacts
from training import toy

from lab import LabError

BATCH = """\
{before}
{launch} > {dir}/ezpz.stdout 2> {dir}/ezpz.stderr
echo $? > {dir}/ezpz.rc
{after}
"""
SLURMD_PORT = 6818


class SlurmJob(Artifacts):
    """One batch job; `ezpz launch` is a line of its script, as people write it.

    flags go to ezpz, args to sbatch. after: what the script does when ezpz has ended.
    """

    def __init__(self, context, *toy_flags, nodes=4, active=2, ppn=2, flags=(), args=("--no-kill", "--gpus-per-node=4"), before="",
                 after="", command=None, env=None, launcher=None, **how):
        files = [context.dir / f"ezpz.{kind}" for kind in ("stdout", "stderr")]
        super().__init__(context, context.dir / "logs", context.dir / "receipts", *files)
        self.lab = context.lab
        argv = launcher or [context.ezpz, "launch", "--auto-retry", "--nhosts", active, "--ppn", ppn]
        argv += ["--log-dir", self.logs, *flags, "--", *(command or toy(context, *toy_flags, **how))]
        launch = " ".join(shlex.quote(str(word)) for word in argv)
        script = BATCH.format(before=before, launch=launch, dir=context.dir, after=after)
        marked = {RUN_MARK: context.run_id, **(env or {})}
        self.id = self.lab.submit(script, nodes=nodes, args=args, env=marked)
        # Whatever state a scenario leaves the nodes in, the next one finds them idle.
        context.at_end(self._reset)

    def _reset(self):
        try:
            self.lab.reset()
        except LabError:  # a node changed its state between question and order: ask again
            self.lab.reset()

    def returncode(self):
        path = self.context.dir / "ezpz.rc"
        text = path.read_text() if path.exists() else ""
        return int(text) if text.endswith("\n") else None

    def stderr(self):
        said = self.stderr_path.read_text(errors="replace") if self.stderr_path.exists() else ""
        return said or self.lab.output(self.id)

    def wait(self, timeout_s=60):
        def over():
            return self.returncode() is not None or self.lab.job_state(self.id) not in ("PENDING", "RUNNING")

        try:
            wait_until("the end of ezpz", over, timeout_s, poll_s=0.1)
        except Failure as failure:
            raise Failure(f"{failure}; it said:\n{self.stderr()}") from None
        code = self.returncode()
        check(code is not None, f"job {self.id} ended before its ezpz did; it said:\n{self.stderr()}")
        return code

    def hosts(self):
        """The job's hosts as Slurm orders them."""
        return self.lab.job_nodes(self.id)

    def steps_running(self):
        """Ids of its steps, without the batch script's."""
        listed = self.lab.client("squeue", "--steps", f"--jobs={self.id}", "--noheader", "--format=%i").split()
        return [step for step in listed if step.split(".")[-1].isdigit()]

    def ezpz(self):
        """The identity of the running ezpz: of the processes of that name, the one whose parent is
        none of them."""
        wanted = str(self.context.ezpz)
        found = [p for p in self.context.processes() if processes.argv_of(p.pid)[:2] == [wanted, "launch"]]
        pids = {p.pid for p in found}
        roots = [p for p in found if parent_of(p.pid) not in pids]
        check(len(roots) == 1, f"expected one running ezpz, found {roots}")
        return roots[0]

    def signal(self, number):
        faults.send(self.ezpz(), number)


def parent_of(pid):
    try:
        text = open(f"/proc/{pid}/stat").read()
    except OSError:
        return None
    return int(text[text.rindex(")") + 2 :].split()[1])


def inner_pid(pid):
    """The pid a process has in the innermost pid namespace it is in."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise Failure(f"no NSpid of process {pid}")


def kill_ranks(job, node, attempt=1):
    """SIGKILLs all ranks of a node at once; its slurmd and slurmstepd live on."""
    receipts = {r.rank: r for r in job.receipts(attempt).values() if r.host == node}
    check(receipts, f"no rank of attempt {attempt} runs on {node}")
    members = {rank: rank_process(job, receipt) for rank, receipt in receipts.items()}
    at_s = time.monotonic()
    alive = processes.kill_and_wait(list(members.values()), 5)
    check(not alive, f"ranks of {node} cannot be killed: {alive}")
    return faults.Killed(node, tuple(members), tuple(p.pid for p in members.values()), at_s)


def rank_process(job, receipt):
    """The host's view of the process that wrote a receipt, found by everything known of it."""
    for process in job.context.processes():
        environ = processes.environ_of(process.pid)
        if environ.get("EZPZ_NODE") != receipt.host or environ.get("RANK") != str(receipt.rank):
            continue
        if environ.get("EZPZ_ATTEMPT") != str(receipt.attempt):
            continue
        if process.start == receipt.start["start_ticks"] and inner_pid(process.pid) == receipt.start["pid"]:
            return process
    raise Failure(f"rank {receipt.rank} of {receipt.host} does not run any more")


def kill_daemons(job, node):
    """SIGKILLs slurmd and the slurmstepds of a node: Slurm loses it, its tasks become orphans."""
    check(job.lab.find_processes(node, name="slurmd"), f"no slurmd ran on {node}")
    job.lab.kill_node_daemons(node)
    check(not job.lab.find_processes(node, name="slurmd"), f"slurmd on {node} is still there")


def kill_node(job, node):
    """Everything on the node dies at once, and its network with it."""
    check(job.lab.pids_on(node), f"nothing ran on {node}")
    job.lab.kill_node(node, silent=True)
    check(not job.lab.pids_on(node), f"processes on {node} are still there")


def pull_cable(job, node):
    """Cuts the node off; proven by its slurmd, which answers before and not after."""
    check(reaches(job.lab, node), f"{node} was not reachable to begin with")
    job.lab.cable_pull(node)
    check(not reaches(job.lab, node), f"{node} is still reachable")


def reaches(lab, node):
    try:
        socket.create_connection((lab.address(node), SLURMD_PORT), timeout=1).close()
        return True
    except OSError:
        return False


def broken_helpers(context, script):
    """A PATH on which scontrol, squeue and sacct do what `script` says; each use leaves a mark."""
    folder = context.dir / "bin"
    folder.mkdir()
    for name in ("scontrol", "squeue", "sacct"):
        path = folder / name
        path.write_text(f"#!/bin/sh\necho {name} \"$@\" >> {context.dir}/helpers-used\n{script}\n")
        path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
