"""A job that `ezpz launch` starts by a real mpiexec on hosts of tests/cluster/hosts.py, and its faults."""

import socket
import time

import faults
from harness import Failure, check, processes
from job import Job
from slurm_job import inner_pid
from training import toy


class Hydra:
    name = "hydra"
    program = "mpiexec.hydra"
    lost_host_is = "unkillable"

    @staticmethod
    def flags(hosts):
        return ["-launcher", "rsh", "-launcher-exec", hosts.agent, "-localhost", hosts.gateway]


class OpenMpi:
    name = "openmpi"
    program = "mpirun.openmpi"
    lost_host_is = "probed"

    @staticmethod
    def flags(hosts):
        return ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", hosts.agent]


class MpiJob(Job):
    def __init__(self, context, mpi, *toy_flags, active=2, ppn=2, flags=(), plain=False, command=None, env=None,
                 names=None, **how):
        self.hosts_there = context.lab
        hostfile = context.dir / "hosts.txt"
        hostfile.write_text("".join(f"{name}\n" for name in names or context.lab.names))
        logs = context.dir / "logs"
        argv = [context.ezpz, "launch", "--launcher", mpi.name, "--hostfile", hostfile]
        argv += ["--nhosts", active, *(["--ppn", ppn] if ppn else [])]
        argv += [] if plain else ["--auto-retry", "--log-dir", logs]
        argv += [*flags, "--", *mpi.flags(context.lab), "--"]
        argv += command or toy(context, *toy_flags, **how)
        super().__init__(context, argv, logs, context.dir / "receipts", env=context.env(**(env or {})))
        # Whatever a scenario leaves behind on the hosts, the next one finds them empty.
        context.at_end(context.lab.restore)


def rank_process(job, receipt):
    """This machine's view of the process that wrote a receipt."""
    for process in job.context.processes():
        environ = processes.environ_of(process.pid)
        if (environ.get("EZPZ_NODE"), environ.get("RANK")) != (receipt.host, str(receipt.rank)):
            continue
        if process.start == receipt.start["start_ticks"] and inner_pid(process.pid) == receipt.start["pid"]:
            return process
    raise Failure(f"rank {receipt.rank} of {receipt.host} does not run any more")


def kill_rank(job, rank, attempt=1):
    """SIGKILL to one rank, and nothing else of its host."""
    receipt = job.receipts(attempt)[rank]
    process = rank_process(job, receipt)
    at_s = time.monotonic()
    alive = processes.kill_and_wait([process], 5)
    check(not alive, f"rank {rank} cannot be killed")
    return faults.Killed(receipt.host, (rank,), (process.pid,), at_s)


def pull_cable(job, name):
    """Cuts the host off; proven by an echo that came back before and does not after."""
    check(reaches(job.hosts_there, name), f"{name} was not reachable to begin with")
    job.hosts_there.pull(name)
    check(not reaches(job.hosts_there, name), f"{name} is still reachable")


def kill_host(job, name):
    """Everything on the host dies at once, and the host is gone."""
    check(job.hosts_there.pids_on(name), f"nothing ran on {name}")
    job.hosts_there.kill(name)
    check(not reaches(job.hosts_there, name), f"{name} is still reachable")


def reaches(hosts, name):
    """A closed port answers with a refusal; a cut cable does not answer."""
    try:
        socket.create_connection((hosts.addresses[name], 1), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def command_lines():
    """Of every process on this machine, hosts' processes included."""
    return [" ".join(processes.argv_of(pid)) for pid in processes.all_pids()]
