"""Hosts (hosts.py) with an sshd each, and what an ssh needs to reach them: a key, known host keys and a
configuration that maps their names, which do not resolve on this machine, to addresses.

    with SshHosts(["nid000001", "nid000002"]) as hosts:
        subprocess.run(["ssh", "-F", hosts.config, "nid000001", "hostname"])

    hosts.config                the ssh configuration; hosts.config_without_key: one that is not let in
    hosts.run_on(name, argv)    as root, without its sshd
    hosts.busy(name)            a context in which sshd there drops every connection
    hosts.stop_sshd(name)       nobody listens there any more; sessions live on
    hosts.left_on(name)         host pids of all that runs there but the listening sshd

Logins are as noisy as people make them. Everything is made in the hosts' own folder. /run of each host is its own, for sshd's empty folder.
"""

import contextlib
import os
import socket
import subprocess
import time

import lab_processes
from hosts import Hosts as PlainHosts
from lab_errors import LabError

SSHD = "/usr/sbin/sshd"
START_TIMEOUT_S = 15

SERVER = """\
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
X11Forwarding yes
PrintMotd no
MaxStartups 2:100:2
ForceCommand printf 'Welcome to a noisy login'; printf '\\n' >&2; eval "$SSH_ORIGINAL_COMMAND"
"""
CLIENT = """\
Host *
  User {user}
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""
# $1: the configuration. A /run of its own, because sshd wants a folder of root's there.
START_SSHD = "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec /usr/sbin/sshd -D -e -f \"$1\""


class SshHosts(PlainHosts):
    def __enter__(self):
        self._sshds = {}
        return super().__enter__()

    def _start(self):
        super()._start()
        folder = self.directory
        for name in ("host_key", "key", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=20)
        public = " ".join((folder / "host_key.pub").read_text().split()[:2])
        known = "".join(f"{address} {public}\n" for address in self.addresses.values())
        (folder / "known_hosts").write_text(known)
        (folder / "sshd_config").write_text(SERVER.format(folder=folder))
        self.config = self._write_client("config", "key")
        self.config_without_key = self._write_client("config_without_key", "stranger")
        for name in self.names:
            self._start_sshd(name)

    def _write_client(self, name, key):
        path = self.directory / name
        text = "".join(f"Host {host}\n  HostName {address}\n" for host, address in self.addresses.items())
        path.write_text(text + CLIENT.format(user="root", key=self.directory / key, folder=self.directory))
        return path

    def _start_sshd(self, name):
        argv = ["/bin/sh", "-c", START_SSHD, "sh", str(self.directory / "sshd_config")]
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        with open(self.directory / "log" / f"{name}.sshd.log", "ab") as log:
            # The parent is nsenter, which waits for it; the hosts' process 1 inherits nothing.
            holder = subprocess.Popen(
                self._nodes[name].enter_argv(argv, "/"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._listens(name):
            if time.monotonic() > deadline or holder.poll() is not None:
                raise LabError(f"sshd of {name} does not start: {(self.directory / 'log' / f'{name}.sshd.log').read_text()}")
            time.sleep(0.02)
        found = [p for p in self.pids_on(name) if lab_processes.name_of(p) == "sshd"]
        listeners = [p for p in found if _parent_of(p) not in found]
        if len(listeners) != 1:
            raise LabError(f"{name}: expected one listening sshd, found {listeners}")
        self._sshds[name] = (lab_processes.identify(listeners[0]), holder)

    def _listens(self, name):
        try:
            socket.create_connection((self.addresses[name], 22), timeout=1).close()
            return True
        except OSError:
            return False

    @contextlib.contextmanager
    def busy(self, name):
        """As many logins are under way as sshd allows."""
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                held = stack.enter_context(socket.create_connection((self.addresses[name], 22), timeout=5))
                held.recv(64)  # its banner: it counts now
            yield

    def stop_sshd(self, name):
        process, holder = self._sshds.pop(name)
        if lab_processes.kill_and_wait([process], 10):
            raise LabError(f"sshd of {name} does not end")
        holder.wait(timeout=10)
        if self._listens(name):
            raise LabError(f"somebody still listens on {name}")

    def run_on(self, name, argv):
        """As root on the host, without its sshd; what it mounts, only the host sees."""
        subprocess.run(self._nodes[name].enter_argv(argv, "/"), check=True, timeout=20, capture_output=True)

    def left_on(self, name):
        process, _ = self._sshds.get(name, (None, None))
        return [pid for pid in self.pids_on(name) if process is None or pid != process.pid]

    def restore(self):
        super().restore()
        for name in self.names:
            process, holder = self._sshds.pop(name, (None, None))
            if holder is not None:
                holder.wait(timeout=10)
            self._start_sshd(name)

    def down(self):
        super().down()
        for _, holder in self._sshds.values():
            holder.wait(timeout=10)

    @staticmethod
    def available():
        ok, reason = PlainHosts.available()
        if not ok:
            return ok, reason
        missing = [program for program in (SSHD, "/usr/bin/ssh", "/usr/bin/ssh-keygen") if not os.access(program, os.X_OK)]
        return (False, f"not installed: {', '.join(missing)}") if missing else (True, "")


def _parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return None
    return int(text[text.rindex(")") + 2 :].split()[1])
