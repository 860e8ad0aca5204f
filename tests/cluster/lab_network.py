"""The lab's wire: one bridge, and one veth pair for each node.

The bridge's name is made from its subnet, and creating a bridge is atomic, so the name is also the
lock: two labs can never hold the same addresses.
"""

import os
import subprocess
import time

from lab_errors import LabError

SUBNETS = 40 * 256
ATTEMPTS = 32
DELETE_TIMEOUT_S = 10


class NetworkError(LabError):
    pass


def run_ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise NetworkError(f"`ip {' '.join(args)}` failed: {done.stderr.strip()}")
    return done.stdout


class Network:
    """A /24 inside 10.200.0.0 .. 10.239.255.0; the host is .254 on it, the head .250."""

    def __init__(self, second, third):
        self.subnet = (second, third)
        self.base = f"10.{second}.{third}"
        self.bridge = f"ezl{second:02x}{third:02x}"

    @classmethod
    def claim(cls):
        """Creates the bridge of the first free subnet, starting at one made from this pid."""
        taken = []
        for attempt in range(ATTEMPTS):
            number = (os.getpid() + attempt * 257) % SUBNETS
            network = cls(200 + number // 256, number % 256)
            if network._is_routed():
                taken.append(f"{network.base}.0/24 (has a route)")
                continue
            try:
                run_ip("link", "add", network.bridge, "type", "bridge", "forward_delay", "0")
            except NetworkError as error:
                if "File exists" not in str(error):
                    raise
                taken.append(f"{network.base}.0/24 (bridge {network.bridge} exists)")
                continue
            return network
        raise NetworkError("no free address range for a lab; in use: " + ", ".join(taken))

    def _is_routed(self):
        return bool(run_ip("-4", "route", "show", "table", "all", "root", f"{self.base}.0/24").strip())

    def raise_bridge(self):
        run_ip("addr", "add", f"{self.base}.254/24", "dev", self.bridge)
        run_ip("link", "set", self.bridge, "up")

    def address(self, index):
        return f"{self.base}.{index}"

    def veth(self, index):
        return f"{self.bridge}-{index}"

    def connect(self, index, init_pid):
        """Gives the namespace of init_pid an interface hsn0 (a real machine's name) on the bridge."""
        veth = self.veth(index)
        run_ip("link", "add", veth, "type", "veth", "peer", "name", "hsn0", "netns", str(init_pid))
        run_ip("link", "set", veth, "master", self.bridge, "up")
        # A host that is booted anew has a new link address: whoever knew the old one would go on
        # sending there for ten seconds and more.
        run_ip("neigh", "flush", "dev", self.bridge)
        inside = ["nsenter", f"--net=/proc/{init_pid}/ns/net", "ip", "-batch", "-"]
        batch = f"addr add {self.address(index)}/24 dev hsn0\nlink set hsn0 up\n"
        subprocess.run(inside, input=batch, text=True, check=True, timeout=20)

    def disconnect(self, index):
        """For a node whose processes are dead: sockets with unsent data would keep its network."""
        delete_interface(self.veth(index))

    def pull(self, index):
        run_ip("link", "set", self.veth(index), "down")

    def plug(self, index):
        run_ip("link", "set", self.veth(index), "up")


def remove(bridge):
    """Removes the bridge and every veth of it that is still there."""
    for name in interfaces_of(bridge):
        delete_interface(name)


def delete_interface(name):
    """Deletes it and sees that it is gone.

    A veth also goes by itself, at some moment after its node's end; that the kernel refuses to delete
    one that is just going is no failure.
    """
    deadline = time.monotonic() + DELETE_TIMEOUT_S
    while name in os.listdir("/sys/class/net"):
        done = subprocess.run(["ip", "link", "del", name], capture_output=True, text=True, timeout=20)
        if time.monotonic() > deadline:
            raise LabError(f"network interface {name} stays: {done.stderr.strip()}")
        if done.returncode != 0:
            time.sleep(0.05)


def interfaces_of(bridge):
    """The bridge's and its veths' names, as far as they exist; veths first."""
    names = os.listdir("/sys/class/net")
    return sorted(n for n in names if n.startswith(bridge + "-")) + [n for n in names if n == bridge]
