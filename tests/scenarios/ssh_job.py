"""A job that `ezpz launch --launcher ssh` starts on hosts of tests/cluster/ssh_hosts.py, and its faults."""

import time

import faults
from harness import check, processes
from job import Job
from mpi_job import rank_process
from training import toy

# A lost host is noticed in a few seconds; the launcher's own 40 s are for busy nodes.
IMPATIENT = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2")


class SshJob(Job):
    def __init__(self, context, *toy_flags, active=2, ppn=2, flags=(), plain=False, command=None, env=None, names=None,
                 ssh=(), config=None, folder=None, **how):
        self.hosts_there = context.lab
        hostfile = context.dir / "hosts.txt"
        hostfile.write_text("".join(f"{name}\n" for name in names or context.lab.names))
        logs = context.dir / "logs"
        argv = ["env", f"--chdir={folder}"] if folder else []
        argv += [context.ezpz, "launch", "--launcher", "ssh", "--hostfile", hostfile]
        argv += ["--nhosts", active, *(["--ppn", ppn] if ppn else [])]
        argv += [] if plain else ["--auto-retry", "--log-dir", logs]
        argv += [*flags, "--", "-F", config or context.lab.config, *ssh, "--"]
        argv += command or toy(context, *toy_flags, **how)
        super().__init__(context, argv, logs, context.dir / "receipts", env=context.env(**(env or {})))
        # Whatever a scenario leaves behind on the hosts, the next one finds them empty.
        context.at_end(context.lab.restore)


def kill_ranks(job, ranks, attempt=1):
    """SIGKILL to these ranks of one host, and nothing else of it."""
    receipts = [job.receipts(attempt)[rank] for rank in ranks]
    members = [rank_process(job, receipt) for receipt in receipts]
    at_s = time.monotonic()
    alive = processes.kill_and_wait(members, 5)
    check(not alive, f"ranks {ranks} cannot be killed")
    return faults.Killed(receipts[0].host, tuple(ranks), tuple(p.pid for p in members), at_s)


def kill_all_on(job, name):
    """SIGKILL to everything a host runs but its listening sshd: the session's sshd, ezpz, the ranks."""
    found = [p for pid in job.hosts_there.left_on(name) if (p := processes.identify(pid)) is not None]
    words = {processes.name_of(p.pid) for p in found}
    check({"sshd", "ezpz", "toy_train"} <= words, f"{name} does not run a job: {words}")
    check(not processes.kill_and_wait(found, 5), f"processes of {name} cannot be killed")


def children_called(job, name):
    """Processes of the job on this machine whose program is called so."""
    here = processes.pid_namespace_of(job.process.pid)
    return [p for p in job.context.processes()
            if processes.name_of(p.pid) == name and processes.pid_namespace_of(p.pid) == here]
