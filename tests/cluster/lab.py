#!/usr/bin/python3
"""A real Slurm of six nodes on this one machine, for tests that kill nodes and pull cables.

    import sys; sys.path.insert(0, ".../tests/cluster")
    from lab import Lab, LabError

    ok, reason = Lab.available()            # root, Slurm, munge and namespaces are needed
    with Lab() as lab:                      # up and idle in a few seconds; gone after the block
        job = lab.submit("srun hostname", nodes=4)
        print(lab.wait_job(job, 30).state)  # "COMPLETED"
        print(lab.output(job))

WHAT A NODE IS. nid000001 .. nid000006, each with its own network, hostname, pids and /proc,
/etc/hosts, /tmp and /dev/shm; 8 CPUs, 4000 MB and 4 GPUs (plain files) as far as Slurm is told. All
other files are shared by nodes and host. A folder below the host's /tmp is therefore NOT seen by a
job, except this repository, the current folder, and what `share=[...]` names: put a test's files
below lab.workdir. The names of the nodes resolve on the nodes only; lab.address(node) works on the
host.

RULES. Every wait is bounded and raises LabTimeout (a LabError) that says what was awaited and shows
the end of the log that should know why. Whatever `node` is, a bad name raises LabError. One object
belongs to one thread.

THE LAB
    Lab(keep=False, lifetime_s=2700, directory=None, share=())
    lab.up(), lab.down()        what `with` calls. down() is safe to call twice
    Lab.available()             -> (bool, reason)
    lab.nodes                   the node names
    lab.directory, lab.workdir  its private folder; a folder for the test's own files, in it
    lab.log(name)               text of log/NAME.log: "slurmctld" or a node's name (its slurmd)
    lab.env()                   environment for client commands (and for ezpz) on the host
    lab.client(*argv)           runs a client command on the host, returns its stdout, raises on rc != 0
    lab.wait_ready(timeout_s=30)
                                every node IDLE and no job left
    lab.reset(timeout_s=60)     ends all jobs and left-over processes, revives and plugs in all nodes,
                                empties their /tmp, then wait_ready(). For use between two tests
JOBS
    lab.submit(script, nodes=4, args=[], env={}) -> job id (str)
                                sbatch --exclusive of the script text (a #!/bin/bash is put before it
                                when it has no #! line); `args` are further sbatch arguments such as
                                "--no-kill" or "--time=1". `env` is added to lab.env()
    lab.job(job)                -> dict, the fields of `scontrol show job`
    lab.job_state(job)          -> "PENDING", "RUNNING", "COMPLETED", "FAILED", "TIMEOUT", ...
    lab.job_nodes(job)          -> the names of the nodes it has
    lab.wait_job(job, timeout_s)         -> JobEnd(state, exit_code, signal) when it is over
    lab.wait_running(job, timeout_s=20)  until the batch script has been started
    lab.wait_output(job, text, timeout_s)  until `text` stands in the output
    lab.output(job)             what it printed (stdout and stderr)
    lab.cancel(job)             scancel; lab.cancel(f"{job}.0") ends a step
NODES
    lab.run_on(node, argv, timeout_s=30, cwd=None, env=None) -> subprocess.CompletedProcess with text
    lab.popen_on(node, argv, cwd=None, env=None, **popen_arguments) -> a subprocess.Popen whose kill(),
                                terminate() and send_signal() reach all it has started on the node.
                                `env` of both is added to lab.env()
    lab.pids_on(node)           host pids of everything on the node but its process 1
    lab.find_processes(node, env={"SLURM_STEP_ID": "0"}, name=None) -> host pids of processes started
                                with these variables; name: the command's name. Tasks of a step have
                                SLURM_JOB_ID, SLURM_STEP_ID and SLURM_PROCID; a batch script and the
                                srun in it have no SLURM_STEP_ID
    lab.kill_process(pid, signal=SIGKILL)   a pid from these two, nothing else
    lab.kill_node(node, silent=False)  every process of the node dies at once. Its sockets are closed by
                                the kernel, so peers see that at once; silent=True pulls the cable
                                first, as when the power fails. Slurm notices 14 to 20 s later
    lab.lose_node(node, silent=False)  kill_node() and set_node_state(node, "DOWN"): what Slurm would do
                                by itself, only at once. For tests that are not about the waiting
    lab.kill_node_daemons(node) SIGKILL to slurmd and slurmstepd only; tasks live on as orphans
    lab.revive_node(node)       undoes the two above: boots the node, starts slurmd
    lab.cable_pull(node), lab.cable_plug(node)  no packet in or out; processes live on
    lab.node(node)              -> dict, the fields of `scontrol show node`
    lab.node_state(node)        -> e.g. "IDLE", "MIXED", "ALLOCATED", "DOWN*+DRAIN"
    lab.wait_node_state(node, word, timeout_s)  until `word` (such as "DOWN") is part of the state
    lab.set_node_state(node, state, reason="lab")   scontrol update: "DOWN", "DRAIN", "RESUME", "FAIL". A
                                node whose slurmd lives does not stay DOWN (ReturnToService=2)

BY HAND
    lab.py up [--dir DIR] [--lifetime S]    prints the folder and how to talk to the lab
    lab.py status                           the labs that are up on this machine
    lab.py down --dir DIR [--keep]

HOW IT ENDS. `with`, atexit and SIGTERM/SIGHUP/SIGINT take it down; when the owner is SIGKILLed a
guardian process does, within two seconds; it also does when lifetime_s is over. See README.md.
"""

import argparse
import atexit
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import lab_config
import lab_processes
import lab_teardown
from lab_errors import LabError, LabTimeout
from lab_network import Network
from lab_node import Node

# Not /tmp: every node has its own.
BASE = Path("/var/tmp")
PREFIX = "ezpz-lab-"
DEFAULT_LIFETIME_S = 45 * 60
HEAD_INDEX = 250
TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "munged", "ip", "nsenter", "unshare")
JOB_OVER = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
}
LOG_TAIL_LINES = 25
KILL_ROUNDS = 5
RUN_MARK = "EZPZ_LAB_RUN"
RUN_COUNT = itertools.count()


@dataclass(frozen=True)
class JobEnd:
    state: str
    exit_code: int
    signal: int


class NodePopen(subprocess.Popen):
    """An `nsenter` on the host, and what it runs on a node.

    nsenter returns what its child returns, but passes no signal on; so a signal goes to whatever
    carries this run's mark in its environment, which includes the child's own children.
    """

    def __init__(self, lab, node, argv, env, **popen_arguments):
        self._lab, self._node_name = lab, node
        self._mark = {RUN_MARK: f"{os.getpid()}-{next(RUN_COUNT)}"}
        super().__init__(argv, env=env | self._mark, **popen_arguments)

    def send_signal(self, sig):
        pids = self._lab.find_processes(self._node_name, self._mark)
        processes = [p for pid in pids if (p := lab_processes.identify(pid)) is not None]
        for process in processes:
            lab_processes.send_signal(process, sig)
        if not processes:  # still on its way to the node
            super().send_signal(sig)


class Lab:
    """See the top of this file."""

    def __init__(self, keep=False, lifetime_s=DEFAULT_LIFETIME_S, directory=None, share=()):
        self.nodes = list(lab_config.NODES)
        self.directory = Path(directory) if directory else None
        self._keep = keep
        self._lifetime_s = lifetime_s
        self._share = share
        self._owner = os.getpid()
        self._guardian = None
        self._network = None
        self._nodes = {}
        self._is_up = False

    @staticmethod
    def available():
        """(True, "") when a lab can be started here, else (False, the reason)."""
        if os.geteuid() != 0:
            return False, "the lab makes namespaces and a bridge, and needs root for that"
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            return False, f"not installed: {', '.join(missing)} (slurm-wlm, munge, iproute2, util-linux)"
        probe = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"]
        if subprocess.run(probe, capture_output=True, timeout=20).returncode != 0:
            return False, "this kernel or container does not allow new namespaces"
        return True, ""

    # ---- coming up and going down

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self, owned=True):
        """Starts everything and waits until all nodes are idle.

        owned: the lab dies with this process. Otherwise it lives until down() or its lifetime.
        """
        ok, reason = self.available()
        if not ok:
            raise LabError(f"no lab here: {reason}")
        self._make_directory()
        self._start_guardian(owned)
        if owned:
            atexit.register(self._down_at_exit)
            _exit_on_signals()
        try:
            self._start_everything()
        except BaseException:
            self.down()
            raise

    def _start_everything(self):
        self._network = Network.claim()
        self._record()
        self._network.raise_bridge()
        lab_config.write_all(self.directory, self._addresses())
        self._make_nodes()
        self._boot(self._nodes.values())
        self._is_up = True
        self._start_head_daemons()
        for name in self.nodes:
            self._start_slurmd(name)
        self.wait_ready()

    def down(self):
        """Ends and removes everything; the folder stays when keep was asked for."""
        if self.directory is None:
            return
        self._is_up = False
        lab_teardown.take_down(self.directory, self._keep)
        for node in self._nodes.values():
            node.forget()
        if self._guardian is not None:
            if self._guardian.stdin is not None:
                self._guardian.stdin.close()
            self._guardian.wait(timeout=10)
            self._guardian = None
        atexit.unregister(self._down_at_exit)

    def _down_at_exit(self):
        # A forked child of the owner inherits this handler, but not the lab.
        if os.getpid() == self._owner:
            self.down()

    @classmethod
    def attach(cls, directory):
        """The lab that `lab.py up` left in this folder, for further use."""
        directory = Path(directory).resolve()
        state = lab_teardown.read_state(directory)
        if state is None:
            raise LabError(f"no lab is up in {directory}")
        lab = cls(keep=state["keep"], directory=directory)
        lab._network = Network(*state["subnet"])
        lab._make_nodes()
        for name, (pid, start) in state["inits"].items():
            lab._nodes[name].adopt(pid, start)
        lab._is_up = True
        return lab

    def _make_directory(self):
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=BASE))
        else:
            self._adopt_directory()
        self._record()

    def _adopt_directory(self):
        self.directory = self.directory.resolve()
        if Path("/tmp") in self.directory.parents:
            raise LabError(f"{self.directory}: every node has its own /tmp; use a folder outside it")
        self.directory.mkdir(parents=True, exist_ok=True)
        if any(self.directory.iterdir()):
            raise LabError(f"{self.directory} is not empty; the lab needs a folder of its own")

    def _record(self):
        inits = {name: node.init for name, node in self._nodes.items() if node.init is not None}
        state = {
            "keep": self._keep,
            "bridge": self._network.bridge if self._network else None,
            "subnet": self._network.subnet if self._network else None,
            "inits": {name: [init.pid, init.start] for name, init in inits.items()},
        }
        lab_teardown.write_state(self.directory, state)

    def _start_guardian(self, owned):
        argv = [sys.executable, str(HERE / "lab_teardown.py"), str(self.directory)]
        argv += [str(self._lifetime_s), "owned" if owned else "free"]
        stdin = subprocess.PIPE if owned else subprocess.DEVNULL
        with open(self.directory / "guardian.log", "ab") as log:
            self._guardian = subprocess.Popen(argv, stdin=stdin, stdout=log, stderr=log, start_new_session=True)

    def _addresses(self):
        indexes = {name: i for i, name in enumerate(self.nodes, start=1)} | {lab_config.HEAD: HEAD_INDEX}
        return {name: self._network.address(index) for name, index in indexes.items()}

    def _make_nodes(self):
        environment = self._daemon_env()
        for i, name in enumerate(self.nodes, start=1):
            self._nodes[name] = Node(name, i, self.directory, environment)
        self._nodes[lab_config.HEAD] = Node(lab_config.HEAD, HEAD_INDEX, self.directory, environment)

    def _boot(self, nodes):
        """Makes the nodes' namespaces, all at once, and connects them."""
        for node in nodes:
            node.start(self._shared_below_tmp(), self._lifetime_s + 60)
        for node in nodes:
            node.await_ready()
            self._network.connect(node.index, node.init.pid)
        self._record()

    def _shared_below_tmp(self):
        wanted = {HERE.parent.parent, Path.cwd().resolve(), *(Path(p).resolve() for p in self._share)}
        return sorted(path for path in wanted if Path("/tmp") in path.parents)

    def _start_head_daemons(self):
        munge = self.directory / "munge"
        # --force: a folder above that not everybody may enter is a warning; everybody here is root.
        munged = ["munged", "--force", f"--socket={munge}/socket", f"--key-file={munge}/key"]
        munged += [f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"]
        self._daemon(lab_config.HEAD, [*munged, f"--log-file={self.directory}/log/munged.log"])
        self._daemon(lab_config.HEAD, ["slurmctld", "-f", str(self.directory / "slurm.conf")])

    def _start_slurmd(self, node):
        self._daemon(node, ["slurmd", "-N", node, "-f", str(self.directory / "slurm.conf")])

    def _daemon(self, node, argv):
        """Runs a command that puts itself in the background, on a node; `ezpzctl` is one, too."""
        argv = self._nodes[node].enter_argv(argv, self.directory)
        with open(self.directory / "log" / f"{node}.start.log", "ab") as log:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._daemon_env(), timeout=30
            )
        if done.returncode != 0:
            raise LabError(f"{' '.join(argv)} failed (rc {done.returncode}){self._tail(f'{node}.start')}")

    # ---- talking to Slurm

    def env(self):
        """This process's environment, less what a surrounding Slurm put in, plus this lab's."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
        return clean | {"SLURM_CONF": str(self.directory / "slurm.conf")}

    def _daemon_env(self):
        return self.env() | {lab_teardown.MARK: str(self.directory)}

    def client(self, *argv, timeout_s=30, env=None):
        """Runs a client command on the host; returns its stdout."""
        self._require_up()
        done = _run(argv, timeout_s, env=self.env() | (env or {}), cwd=self.workdir)
        if done.returncode != 0:
            raise LabError(f"`{' '.join(argv)}` failed (rc {done.returncode}): {done.stderr.strip()}")
        return done.stdout

    def _require_up(self):
        if not self._is_up:
            raise LabError("the lab is not up")

    @property
    def workdir(self):
        return self.directory / "work"

    def log(self, name):
        path = self.directory / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _tail(self, name):
        lines = self.log(name).splitlines()[-LOG_TAIL_LINES:]
        return f"\nend of {self.directory}/log/{name}.log:\n  " + "\n  ".join(lines)

    def _await(self, what, timeout_s, condition, log="slurmctld"):
        """Polls condition() until it is true (returned) or time is over (LabTimeout)."""
        deadline = time.monotonic() + timeout_s
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() >= deadline:
                raise LabTimeout(f"waited {timeout_s} s for {what}{self._tail(log)}")
            time.sleep(0.05)

    # ---- jobs

    def submit(self, script, nodes=4, args=(), env=None):
        self._require_up()
        fd, path = tempfile.mkstemp(prefix="job-", suffix=".sh", dir=self.workdir)
        with os.fdopen(fd, "w") as f:
            f.write(script if script.startswith("#!") else "#!/bin/bash\n" + script)
        argv = ["sbatch", "--parsable", "--exclusive", f"--nodes={nodes}", f"--output={self._output_path('%j')}"]
        return self.client(*argv, *args, path, env=env).strip().split(";")[0]

    def _output_path(self, job):
        return self.workdir / f"job-{job}.out"

    def output(self, job):
        path = self._output_path(job)
        return path.read_text(errors="replace") if path.exists() else ""

    def job(self, job):
        return _fields(self.client("scontrol", "--oneliner", "show", "job", str(job)))

    def job_state(self, job):
        return self.job(job)["JobState"]

    def job_nodes(self, job):
        return self.client("scontrol", "show", "hostnames", self.job(job)["NodeList"]).split()

    def wait_job(self, job, timeout_s):
        self._await(f"the end of job {job}", timeout_s, lambda: self.job_state(job) in JOB_OVER)
        fields = self.job(job)
        code, _, signum = fields["ExitCode"].partition(":")
        return JobEnd(fields["JobState"], int(code), int(signum))

    def wait_running(self, job, timeout_s=20):
        def has_started():
            state = self.job_state(job)
            if state in JOB_OVER:
                raise LabError(f"job {job} is over ({state}) before it was seen running")
            return state == "RUNNING" and self._output_path(job).exists()

        self._await(f"the start of job {job}", timeout_s, has_started)

    def wait_output(self, job, text, timeout_s):
        try:
            self._await(f"{text!r} in the output of job {job}", timeout_s, lambda: text in self.output(job))
        except LabTimeout as error:
            raise LabTimeout(f"{error}\nthe job ({self.job_state(job)}) has said:\n{self.output(job)}") from None

    def cancel(self, job):
        self.client("scancel", str(job))

    # ---- nodes

    def _node(self, name):
        if name not in self.nodes:
            raise LabError(f"no node {name!r} in the lab; there are {', '.join(self.nodes)}")
        return self._nodes[name]

    def address(self, node):
        return self._network.address(self._node(node).index)

    def run_on(self, node, argv, timeout_s=30, cwd=None, env=None):
        arguments = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.popen_on(node, argv, cwd=cwd, env=env, text=True, **arguments) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise LabTimeout(f"waited {timeout_s} s for the end of {argv} on {node}") from None
        return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)

    def popen_on(self, node, argv, cwd=None, env=None, **popen_arguments):
        argv = self._node(node).enter_argv(argv, cwd or self.workdir)
        return NodePopen(self, node, argv, env=self.env() | (env or {}), **popen_arguments)

    def pids_on(self, node):
        init = self._node(node).init
        if init is None:
            return []
        namespace = lab_processes.pid_namespace_of(init.pid)
        return [
            pid
            for pid in lab_processes.all_pids()
            if pid != init.pid and lab_processes.pid_namespace_of(pid) == namespace
        ]

    def find_processes(self, node, env=None, name=None):
        wanted = (env or {}).items()
        return [
            pid
            for pid in self.pids_on(node)
            if (name is None or lab_processes.name_of(pid) == name)
            and wanted <= lab_processes.environ_of(pid).items()
        ]

    def kill_process(self, pid, signum=signal.SIGKILL):
        process = lab_processes.identify(pid)
        namespaces = {lab_processes.pid_namespace_of(n.init.pid) for n in self._nodes.values() if n.init}
        if process is None or lab_processes.pid_namespace_of(pid) not in namespaces:
            raise LabError(f"pid {pid} is no living process of the lab")
        lab_processes.send_signal(process, signum)

    def kill_node(self, node, silent=False):
        node = self._node(node)
        if node.init is None:
            return
        if silent:
            self._network.pull(node.index)
        if lab_processes.kill_and_wait([node.init], 10):
            raise LabError(f"process 1 of {node.name} does not end")
        node.forget()
        self._network.disconnect(node.index)
        self._record()

    def lose_node(self, node, silent=False):
        self.kill_node(node, silent)
        self.set_node_state(node, "DOWN", "lab: lost")

    def kill_node_daemons(self, node):
        # slurmstepd's name is cut off and followed by the step's: slurmstepd: [1.0].
        self._kill_on(node, lambda pid: lab_processes.name_of(pid).startswith(("slurmd", "slurmstepd")))

    def _kill_on(self, node, is_meant):
        # In rounds, because a process that is still to be killed may start another one meanwhile.
        for _ in range(KILL_ROUNDS):
            pids = [pid for pid in self.pids_on(node) if is_meant(pid)]
            processes = [p for pid in pids if (p := lab_processes.identify(pid)) is not None]
            if not processes:
                return
            lab_processes.kill_and_wait(processes, 5)
        raise LabError(f"processes on {node} do not end: {[lab_processes.argv_of(pid) for pid in pids]}")

    def revive_node(self, node):
        if self._node(node).init is None:
            self._boot([self._node(node)])
        if not self._slurmd_runs(node):
            self._start_slurmd(node)

    def _slurmd_runs(self, node):
        return bool(self.find_processes(node, name="slurmd"))

    def cable_pull(self, node):
        self._network.pull(self._node(node).index)

    def cable_plug(self, node):
        self._network.plug(self._node(node).index)

    def node(self, node):
        return _fields(self.client("scontrol", "--oneliner", "show", "node", self._node(node).name))

    def node_state(self, node):
        return self.node(node)["State"]

    def wait_node_state(self, node, word, timeout_s):
        self._await(f"node {node} to be {word}", timeout_s, lambda: word in self.node_state(node))

    def set_node_state(self, node, state, reason="lab"):
        update = ["scontrol", "update", f"NodeName={self._node(node).name}", f"State={state}"]
        self.client(*update, f"Reason={reason}")

    # ---- all of it

    def node_states(self):
        """{name: state} of all nodes, by one query."""
        lines = self.client("scontrol", "--oneliner", "show", "node").splitlines()
        return {fields["NodeName"]: fields["State"] for fields in map(_fields, lines) if fields}

    def _is_quiet(self):
        try:
            states = self.node_states()
            jobs = self._live_jobs()
        except LabError:
            return False  # slurmctld is not there yet
        return not jobs and list(states) == self.nodes and set(states.values()) == {"IDLE"}

    def _live_jobs(self):
        return self.client("squeue", "--noheader", "--format=%i").split()

    def wait_ready(self, timeout_s=30):
        self._await("all nodes to be IDLE with no job", timeout_s, self._is_quiet)

    def reset(self, timeout_s=60):
        """Brutal on purpose: whatever state a test left, the same few steps lead out of it.

        A node that is marked DOWN has no job any more, not even one that is still completing, so
        nothing has to be waited for; with all its processes new it can be resumed at once.
        """
        self._require_up()
        jobs = self._live_jobs()
        if jobs:
            self.client("scancel", *jobs)
        used = [name for name, state in self.node_states().items() if state != "IDLE"]
        for name in used:
            self.set_node_state(name, "DOWN", "lab reset")
        for name in self.nodes:
            self._clear(name, is_used=name in used)
            self.revive_node(name)
        self._await("all nodes to be IDLE with no job after a reset", timeout_s, self._resume_until_quiet)

    def _clear(self, name, is_used):
        """Leaves nothing running on the node but an idle slurmd, its cable in, its /tmp empty."""
        node = self._nodes[name]
        if node.init is None:
            self._boot([node])
        self._network.plug(node.index)
        kept = [] if is_used else self.find_processes(name, name="slurmd")
        self._kill_on(name, lambda pid: pid not in kept)
        try:
            node.empty_tmp()
        except OSError as error:
            raise LabError(f"{name}: its /tmp cannot be emptied: {error}") from None
        done = self.run_on(name, ["find", "/dev/shm", "-xdev", "-mindepth", "1", "-delete"])
        if done.returncode != 0:
            raise LabError(f"{name}: its /dev/shm cannot be emptied: {done.stderr.strip()}")

    def _resume_until_quiet(self):
        for name, state in self.node_states().items():
            if re.search("DOWN|DRAIN|FAIL", state):
                # The state may have changed since it was asked for; the next round sees.
                with contextlib.suppress(LabError):
                    self.set_node_state(name, "RESUME")
        return self._is_quiet()


def _run(argv, timeout_s, **popen_arguments):
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, **popen_arguments
        )
    except subprocess.TimeoutExpired:
        raise LabTimeout(f"waited {timeout_s} s for the end of `{' '.join(argv)}`") from None


def _fields(line):
    """The KEY=VALUE words of one line of `scontrol --oneliner show`."""
    return dict(re.findall(r"(\S+?)=(.*?)(?= \S+?=|\s*$)", line))


def _exit_on_signals():
    """Lets a deadly signal unwind the stack, so that `with` and atexit do their work."""
    if threading.current_thread() is not threading.main_thread():
        return
    for signum in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is signal.SIG_DFL:
            signal.signal(signum, lambda number, _: sys.exit(128 + number))


# ---- by hand


def main(argv):
    parser = argparse.ArgumentParser(prog="lab.py", description="A real Slurm of six nodes on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a lab that outlives this command")
    up.add_argument("--dir", help="an empty or new folder for it, outside /tmp")
    up.add_argument("--lifetime", type=float, default=DEFAULT_LIFETIME_S, metavar="S")
    down = commands.add_parser("down", help="end a lab and remove all of it")
    down.add_argument("--dir", required=True)
    down.add_argument("--keep", action="store_true", help="leave the folder, for reading the logs")
    commands.add_parser("status", help="the labs that are up")
    options = parser.parse_args(argv)
    try:
        COMMANDS[options.command](options)
    except LabError as error:
        sys.exit(f"lab.py: {error}")


def _up(options):
    lab = Lab(directory=options.dir, lifetime_s=options.lifetime)
    lab.up(owned=False)
    print(lab.directory)
    print(f"export SLURM_CONF={lab.directory}/slurm.conf")


def _down(options):
    if lab_teardown.read_state(options.dir) is None:
        raise LabError(f"no lab is up in {options.dir}")
    lab_teardown.take_down(Path(options.dir).resolve(), options.keep)


def _status(_):
    marks = {lab_processes.environ_of(pid).get(lab_teardown.MARK) for pid in lab_processes.all_pids()}
    for directory in sorted(marks - {None}):
        lab = Lab.attach(directory)
        states = " ".join(f"{name}={state}" for name, state in lab.node_states().items())
        print(f"{lab.directory}  {states}")


COMMANDS = {"up": _up, "down": _down, "status": _status}

if __name__ == "__main__":
    main(sys.argv[1:])
