"""A few hosts without a scheduler, on this one machine: for launchers that reach them by rsh or ssh.

    from hosts import Hosts
    ok, reason = Hosts.available()
    with Hosts(["nid000001", "nid000002"]) as hosts:
        subprocess.run(["mpiexec.hydra", "-launcher-exec", hosts.agent, ...])

A host is a node of the SLURM lab (lab_node.py: its own network, hostname, pids, /tmp and /dev/shm; all
other files are shared) without daemons. hosts.agent is what a launcher runs in the place of rsh: `AGENT
[-l USER] HOST COMMAND...` enters the host. Like a real one it carries no variable over (but the marks
by which tests find what they started), starts a session of its own there, and fails for a host that is
down or cut off. hosts.gateway is this machine's address on their network.

    hosts.addresses             {name: address}; the names resolve on the hosts only
    hosts.rename({name: address})   what the hosts find under these names
    hosts.pull(name), .plug(name)   the cable: no packet in or out, processes live on
    hosts.kill(name)            every process there dies, and the host is gone
    hosts.pids_on(name)         host pids of all that runs there, but its process 1

It ends as the lab does (lab_teardown.py): at the end of `with`, or by a guardian when the owner dies.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import lab_processes
import lab_teardown
from lab_errors import LabError
from lab_network import Network
from lab_node import Node

BASE = Path("/var/tmp")
LIFETIME_S = 30 * 60
TOOLS = ("ip", "nsenter", "unshare", "setsid")
CONNECT_S = 2  # as ssh's ConnectTimeout
GATEWAY_NAME = "gateway"

AGENT = """\
#!/bin/sh
# [-l USER] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do
  [ "$1" = -l ] && shift
  shift
done
host=$1
shift
[ -f {folder}/"$host.host" ] || {{ echo "rsh: $host: no such host" >&2; exit 255; }}
read -r pid address < {folder}/"$host.host"
# Entering needs no network, rsh does: a closed port of a host that can be reached refuses.
said=$(LC_ALL=C timeout {connect_s} bash -c 'exec 3<>"/dev/tcp/$0/1"' "$address" 2>&1)
case $said in
  *refused*) ;;
  *)
    echo "rsh: connect to host $host: Connection timed out" >&2
    exit 255
    ;;
esac
exec nsenter --target "$pid" --net --mount --uts --ipc --pid -- \\
  setsid --wait env -i PATH=/usr/bin:/bin HOME=/root {marks} /bin/sh -c "$*"
"""


class Hosts:
    def __init__(self, names, marks=()):
        """marks: names of variables that the agent does carry over."""
        self.names = list(names)
        self.directory = None
        self.gateway = None
        self._marks = marks
        self._nodes = {}
        self._network = None
        self._guardian = None

    @staticmethod
    def available():
        if os.geteuid() != 0:
            return False, "hosts are namespaces and a bridge, and need root for that"
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            return False, f"not installed: {', '.join(missing)}"
        probe = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"]
        if subprocess.run(probe, capture_output=True, timeout=20).returncode != 0:
            return False, "this kernel or container does not allow new namespaces"
        return True, ""

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="ezpz-hosts-", dir=BASE))
        self._record()
        self._start_guardian()
        try:
            self._start()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        lab_teardown.take_down(self.directory, keep=False)
        for node in self._nodes.values():
            node.forget()
        self._guardian.stdin.close()
        self._guardian.wait(timeout=10)

    def _start(self):
        self._network = Network.claim()
        self._record()
        self._network.raise_bridge()
        self.gateway = self._network.address(254)
        self.addresses = {name: self._network.address(i) for i, name in enumerate(self.names, start=1)}
        self._write_names(self.addresses)
        (self.directory / "log").mkdir()
        self._write_agent()
        environment = {**os.environ, lab_teardown.MARK: str(self.directory)}
        for i, name in enumerate(self.names, start=1):
            (self.directory / "node" / name / "tmp").mkdir(parents=True)
            self._nodes[name] = Node(name, i, self.directory, environment)
        self._boot(self._nodes.values())

    def _write_names(self, addresses):
        """/etc/hosts of all hosts: one file, written in place, for it is mounted there."""
        lines = ["127.0.0.1 localhost", f"{self.gateway} {GATEWAY_NAME}"]
        lines += [f"{address} {name}" for name, address in addresses.items()]
        (self.directory / "hosts").write_text("\n".join(lines) + "\n")

    def rename(self, addresses):
        """What the hosts find under these names from now on; interfaces keep their addresses."""
        self._write_names({**self.addresses, **addresses})

    def _boot(self, nodes):
        for node in nodes:
            node.start(self._shared_below_tmp(), LIFETIME_S + 60)
        for node in nodes:
            node.await_ready()
            self._network.connect(node.index, node.init.pid)
            entry = f"{node.init.pid} {self.addresses[node.name]}\n"
            (self.directory / f"{node.name}.host").write_text(entry)
        self._record()

    def _write_agent(self):
        marks = " ".join(f'{name}="${name}"' for name in self._marks)
        self.agent = self.directory / "agent"
        self.agent.write_text(AGENT.format(connect_s=CONNECT_S, folder=shlex.quote(str(self.directory)), marks=marks))
        self.agent.chmod(0o755)

    def _record(self):
        inits = {name: node.init for name, node in self._nodes.items() if node.init is not None}
        lab_teardown.write_state(
            self.directory,
            {
                "keep": False,
                "bridge": self._network.bridge if self._network else None,
                "subnet": self._network.subnet if self._network else None,
                "inits": {name: [init.pid, init.start] for name, init in inits.items()},
            },
        )

    def _start_guardian(self):
        argv = [sys.executable, str(HERE / "lab_teardown.py"), str(self.directory), str(LIFETIME_S), "owned"]
        with open(self.directory / "guardian.log", "ab") as log:
            self._guardian = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    @staticmethod
    def _shared_below_tmp():
        wanted = {HERE.parent.parent, Path.cwd().resolve()}
        return sorted(path for path in wanted if Path("/tmp") in path.parents)

    # ---- what happens to hosts

    def _node(self, name):
        if name not in self._nodes:
            raise LabError(f"no host is called {name}")
        return self._nodes[name]

    def pull(self, name):
        self._network.pull(self._node(name).index)

    def plug(self, name):
        self._network.plug(self._node(name).index)

    def pids_on(self, name):
        init = self._node(name).init
        if init is None:
            return []
        inside = lab_processes.pid_namespace_of(init.pid)
        return [p for p in lab_processes.all_pids() if p != init.pid and lab_processes.pid_namespace_of(p) == inside]

    def kill(self, name):
        """The processes first feel nothing of a cut cable: its sockets close at once."""
        node = self._node(name)
        left = lab_processes.kill_and_wait([node.init], 10)
        if left:
            raise LabError(f"host {name} does not end")
        node.forget()
        self._network.disconnect(node.index)
        (self.directory / f"{name}.host").unlink()
        self._record()

    def restore(self):
        """Every host is up, plugged in and empty; for use between two tests."""
        down = [node for node in self._nodes.values() if node.init is None]
        self._boot(down)
        for name, node in self._nodes.items():
            self._network.plug(node.index)
            found = [p for pid in self.pids_on(name) if (p := lab_processes.identify(pid)) is not None]
            left = lab_processes.kill_and_wait(found, 10)
            if left:
                raise LabError(f"processes on {name} do not end: {left}")
