#!/usr/bin/python3
"""Proves that the lab is what it says: a real Slurm, nodes that really die, and nothing left behind.

Run as root: tests/cluster/lab_test.py [-v] [LabTest.test_...]. Takes about two minutes, most of it
spent in waiting for Slurm to notice that a node is gone.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import lab as lab_module
import lab_processes
from lab import Lab, LabError, LabTimeout

UP_AT_MOST_S = 8
NOTICE_AT_MOST_S = 60
STEP = "srun -u -N4 --gpus-per-node=4 --kill-on-bad-exit=1 bash -c '{}'; echo rc=$?"
LONG_STEP = STEP.format("echo rank $SLURM_PROCID on $(hostname); exec sleep 300")

LISTEN = "import socket; s = socket.create_server(('', 7777)); s.accept()[0].send(b'hello from there')"
CONNECT = (
    "import socket, sys; s = socket.create_connection((sys.argv[1], 7777), timeout=3); "
    "print(s.recv(100).decode())"
)


def leftovers(directory, bridge):
    """What there is of a lab: processes that know its configuration, interfaces, mounts, its folder."""
    conf = str(directory) + "/slurm.conf"
    mark = {"SLURM_CONF": conf}
    left = [f"process {p.pid}: {lab_processes.argv_of(p.pid)}" for p in lab_processes.with_environment(mark)]
    left += [f"interface {name}" for name in os.listdir("/sys/class/net") if name.startswith(bridge)]
    left += [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(directory) in line]
    if Path(directory).exists():
        left.append(f"folder {directory}")
    return left


def run_python(node_lab, node, code, *args):
    return node_lab.run_on(node, ["/usr/bin/python3", "-c", code, *args], timeout_s=20)


class LabTest(unittest.TestCase):
    """All of these share one lab and reset it in between, which is a test of reset()."""

    @classmethod
    def setUpClass(cls):
        began = time.monotonic()
        cls.lab = Lab()
        cls.lab.up()
        cls.up_s = time.monotonic() - began

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def setUp(self):
        self.lab.reset()

    def start_long_step(self, args=("--no-kill",)):
        job = self.lab.submit(LONG_STEP, nodes=4, args=args)
        for rank in range(4):
            self.lab.wait_output(job, f"rank {rank} on", 20)
        return job

    def test_is_up_within_its_time(self):
        self.assertLess(self.up_s, UP_AT_MOST_S)
        self.assertEqual(set(self.lab.node_states().values()), {"IDLE"})

    def test_step_runs_on_four_nodes_by_their_names(self):
        job = self.lab.submit("srun --gpus-per-node=4 hostname")
        self.assertEqual(self.lab.wait_job(job, 30).state, "COMPLETED")
        expected = [f"nid00000{n}" for n in (1, 2, 3, 4)]
        self.assertEqual(sorted(self.lab.output(job).split()), expected)
        self.assertEqual(self.lab.job_nodes(job), expected)

    def test_step_sees_its_gpus(self):
        job = self.lab.submit("srun --gpus-per-node=4 bash -c 'echo $CUDA_VISIBLE_DEVICES'", nodes=2)
        self.lab.wait_job(job, 30)
        self.assertEqual(self.lab.output(job).split(), ["0,1,2,3"] * 2)

    def test_exit_code_of_a_failed_job(self):
        end = self.lab.wait_job(self.lab.submit("exit 7", nodes=1), 30)
        self.assertEqual((end.state, end.exit_code, end.signal), ("FAILED", 7, 0))

    def test_cancelled_job_is_over(self):
        job = self.start_long_step()
        self.lab.cancel(job)
        self.assertEqual(self.lab.wait_job(job, 20).state, "CANCELLED")

    def test_every_name_resolves_on_every_node(self):
        for node in self.lab.nodes:
            for name in self.lab.nodes:
                words = self.lab.run_on(node, ["getent", "hosts", name]).stdout.split()
                self.assertEqual(words, [self.lab.address(name), name])
        self.assertNotIn("nid000001", Path("/etc/hosts").read_text())

    def test_tcp_works_until_the_cable_is_pulled(self):
        with self.lab.popen_on("nid000001", ["/usr/bin/python3", "-c", LISTEN]) as server:
            done = self.connect_to("nid000001")
            self.assertEqual(done.stdout, "hello from there\n", done.stderr)
            server.wait(timeout=10)
        self.lab.cable_pull("nid000001")
        self.assertNotEqual(run_python(self.lab, "nid000002", CONNECT, "nid000001").returncode, 0)
        self.lab.cable_plug("nid000001")
        with self.lab.popen_on("nid000001", ["/usr/bin/python3", "-c", LISTEN]) as server:
            self.assertEqual(self.connect_to("nid000001").stdout, "hello from there\n")
            server.wait(timeout=10)

    def connect_to(self, node):
        """Tries again for a while, as the server has to come up first."""
        for _ in range(20):
            done = run_python(self.lab, "nid000002", CONNECT, node)
            if done.returncode == 0:
                break
            time.sleep(0.2)
        return done

    def test_node_has_its_own_processes_tmp_hostname_and_interfaces(self):
        self.lab.run_on("nid000001", ["touch", "/tmp/only-here", "/dev/shm/only-here"])
        for place in ("/tmp", "/dev/shm"):
            self.assertEqual(self.lab.run_on("nid000001", ["ls", place]).stdout, "only-here\n")
            self.assertEqual(self.lab.run_on("nid000002", ["ls", place]).stdout, "")
        self.assertEqual(self.lab.run_on("nid000002", ["hostname"]).stdout, "nid000002\n")
        self.assertIn("hsn0", self.lab.run_on("nid000002", ["ls", "/sys/class/net"]).stdout.split())
        processes = self.lab.run_on("nid000002", ["ps", "-e", "-o", "comm="]).stdout.split()
        self.assertEqual(sorted(processes), ["ps", "sleep", "slurmd"])

    def test_process_run_on_a_node_ends_with_its_time(self):
        with self.assertRaises(LabTimeout):
            self.lab.run_on("nid000001", ["sh", "-c", "sleep 300 & sleep 300"], timeout_s=0.5)
        time.sleep(0.2)
        self.assertEqual(self.lab.find_processes("nid000001", name="sleep"), [])

    def test_tasks_are_found_by_their_environment(self):
        job = self.start_long_step()
        step = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": "0"}
        found = [self.lab.find_processes(node, step) for node in self.lab.nodes]
        self.assertEqual([len(pids) for pids in found], [1, 1, 1, 1, 0, 0])
        self.lab.kill_process(found[2][0])
        self.lab.wait_output(job, "srun: error: nid000003: task 2: Killed", 10)

    def test_foreign_process_cannot_be_killed_through_the_lab(self):
        with self.assertRaises(LabError):
            self.lab.kill_process(os.getpid(), 0)

    def check_loss(self, lose):
        job = self.start_long_step()
        lose("nid000002")
        self.lab.wait_output(job, "Node failure on nid000002", NOTICE_AT_MOST_S)
        self.lab.wait_node_state("nid000002", "DOWN", NOTICE_AT_MOST_S)
        self.lab.wait_output(job, "rc=", 20)
        self.assertIn(self.lab.wait_job(job, 20).state, ("COMPLETED", "FAILED"))
        self.lab.reset()
        self.assertEqual(set(self.lab.node_states().values()), {"IDLE"})
        job = self.lab.submit("srun hostname", nodes=6)
        self.assertEqual(self.lab.wait_job(job, 20).state, "COMPLETED")

    def test_killed_node_is_a_node_failure_and_comes_back(self):
        self.check_loss(self.lab.kill_node)

    def test_node_without_power_is_a_node_failure_and_comes_back(self):
        self.check_loss(lambda node: self.lab.kill_node(node, silent=True))

    def test_node_without_daemons_is_a_node_failure_and_comes_back(self):
        self.check_loss(self.lab.kill_node_daemons)

    def test_node_off_the_network_is_a_node_failure_and_comes_back(self):
        self.check_loss(self.lab.cable_pull)

    def test_lost_node_is_noticed_at_once(self):
        job = self.start_long_step()
        began = time.monotonic()
        self.lab.lose_node("nid000003")
        self.lab.wait_output(job, "Node failure on nid000003", 5)
        self.lab.wait_output(job, "rc=", 5)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIn("DOWN", self.lab.node_state("nid000003"))

    def test_node_revived_by_hand_returns_to_service(self):
        self.lab.kill_node("nid000006")
        self.assertEqual(self.lab.pids_on("nid000006"), [])
        self.lab.revive_node("nid000006")
        self.lab.wait_ready()
        self.assertEqual(self.lab.run_on("nid000006", ["hostname"]).stdout, "nid000006\n")

    def test_killing_daemons_lets_tasks_live(self):
        job = self.start_long_step()
        self.lab.kill_node_daemons("nid000002")
        self.assertEqual(len(self.lab.find_processes("nid000002", {"SLURM_JOB_ID": job}, name="sleep")), 1)
        self.assertEqual(self.lab.find_processes("nid000002", name="slurmd"), [])

    def test_reset_leads_out_of_a_mess(self):
        self.start_long_step(args=())
        self.lab.submit("sleep 300", nodes=6)
        self.lab.kill_node("nid000001")
        self.lab.cable_pull("nid000002")
        self.lab.kill_node_daemons("nid000003")
        self.lab.set_node_state("nid000004", "DRAIN")
        self.lab.set_node_state("nid000005", "DOWN")
        stray = self.lab.popen_on("nid000006", ["setsid", "sleep", "300"])
        began = time.monotonic()
        self.lab.reset()
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.lab.find_processes("nid000006", name="sleep"), [])
        stray.wait(timeout=5)
        job = self.lab.submit("srun hostname", nodes=6)
        self.assertEqual(self.lab.wait_job(job, 20).state, "COMPLETED")

    def test_reset_spares_the_hosts_folders_below_tmp(self):
        """A reset once emptied the checkout it was run from, through the node's view of it."""
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="lab-test-") as shared:
            precious = Path(shared) / "folder" / "file"
            precious.parent.mkdir()
            precious.write_text("precious")
            with Lab(share=[shared]) as lab:
                write = f"echo mine > /tmp/own; mkdir -p /tmp/a/b; echo more >> {precious}; ls /tmp"
                self.assertIn("own", lab.run_on("nid000002", ["sh", "-c", write]).stdout)
                self.assertEqual(precious.read_text(), "preciousmore\n")
                lab.reset()
                self.assertEqual(precious.read_text(), "preciousmore\n")
                left = lab.run_on("nid000002", ["ls", "/tmp"]).stdout.split()
                self.assertNotIn("own", left)
                self.assertNotIn("a", left)
                self.assertEqual(lab.run_on("nid000002", ["cat", str(precious)]).stdout, "preciousmore\n")
            self.assertEqual(precious.read_text(), "preciousmore\n")

    def test_unknown_node_is_refused(self):
        with self.assertRaisesRegex(LabError, "no node 'nid9'"):
            self.lab.cable_pull("nid9")

    def test_timeout_says_what_was_awaited_and_shows_the_log(self):
        with self.assertRaisesRegex(LabTimeout, "(?s)waited 0 s for node nid000001 to be DOWN.*slurmctld"):
            self.lab.wait_node_state("nid000001", "DOWN", 0)

    def test_two_labs_live_side_by_side(self):
        with Lab() as other:
            self.assertNotEqual(other.address("nid000001"), self.lab.address("nid000001"))
            jobs = [(lab, lab.submit("srun hostname", nodes=6)) for lab in (self.lab, other)]
            for lab, job in jobs:
                self.assertEqual(lab.wait_job(job, 20).state, "COMPLETED")
        self.lab.wait_ready()


class EndTest(unittest.TestCase):
    """After its end there is nothing of a lab, whoever ended it."""

    # Starts a lab with a job in it, says where it is, and then does what it is told.
    OWNER = (
        "import os, signal, sys, time; sys.path.insert(0, {here!r}); from lab import Lab\n"
        "with Lab(lifetime_s={lifetime}) as lab:\n"
        "    job = lab.submit('srun sleep 300', nodes=6)\n"
        "    lab.wait_running(job)\n"
        "    print(lab.directory, lab._network.bridge, flush=True)\n"
        "    {deed}\n"
    )

    def start_owner(self, deed="time.sleep(300)", lifetime=600):
        code = self.OWNER.format(here=str(lab_module.HERE), deed=deed, lifetime=lifetime)
        owner = subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(owner.__exit__, None, None, None)  # closes its stdout and waits for it
        self.addCleanup(owner.kill)
        directory, bridge = owner.stdout.readline().split()
        return owner, directory, bridge

    def await_nothing(self, directory, bridge, timeout_s):
        deadline = time.monotonic() + timeout_s
        while (left := leftovers(directory, bridge)) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(left, [])

    def test_down_leaves_nothing(self):
        lab = Lab()
        lab.up()
        job = lab.submit("srun sleep 300", nodes=6)
        lab.wait_running(job)
        bridge = lab._network.bridge
        self.assertGreater(len(leftovers(lab.directory, bridge)), 10)
        lab.down()
        self.assertEqual(leftovers(lab.directory, bridge), [])
        lab.down()

    def test_keep_leaves_the_logs_only(self):
        with Lab(keep=True) as lab:
            pass
        self.assertEqual(leftovers(lab.directory, lab._network.bridge), [f"folder {lab.directory}"])
        self.assertIn("slurmctld version", lab.log("slurmctld"))
        subprocess.run(["rm", "-r", str(lab.directory)], check=True)

    def test_killed_owner_leaves_nothing(self):
        owner, directory, bridge = self.start_owner()
        owner.kill()
        owner.wait()
        self.await_nothing(directory, bridge, 5)

    def test_terminated_owner_leaves_nothing(self):
        owner, directory, bridge = self.start_owner()
        owner.send_signal(signal.SIGTERM)
        self.assertEqual(owner.wait(timeout=20), 128 + signal.SIGTERM)
        self.assertEqual(leftovers(directory, bridge), [])

    def test_owner_that_forgets_leaves_nothing(self):
        owner, directory, bridge = self.start_owner(deed="sys.exit(3)")
        self.assertEqual(owner.wait(timeout=20), 3)
        self.assertEqual(leftovers(directory, bridge), [])

    def test_owner_killed_while_the_lab_comes_up_leaves_nothing(self):
        for delay_s in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
            before = set(os.listdir("/sys/class/net"))
            with tempfile.TemporaryDirectory(dir=lab_module.BASE) as place:
                code = f"import sys; sys.path.insert(0, {str(lab_module.HERE)!r}); from lab import Lab; "
                code += f"Lab(directory={place!r} + '/lab').up()"
                owner = subprocess.Popen(["/usr/bin/python3", "-c", code])
                time.sleep(delay_s)
                owner.kill()
                owner.wait()
                self.await_nothing(place + "/lab", "no-such-bridge", 8)
            self.assertEqual(set(os.listdir("/sys/class/net")) - before, set())

    def test_lifetime_ends_a_lab_whose_owner_lives(self):
        owner, directory, bridge = self.start_owner(lifetime=5)
        self.await_nothing(directory, bridge, 10)
        owner.kill()
        owner.wait()

    def test_lab_by_hand(self):
        tool = [str(lab_module.HERE / "lab.py")]
        with tempfile.TemporaryDirectory(dir=lab_module.BASE) as place:
            directory = f"{place}/lab"
            done = subprocess.run([*tool, "up", "--dir", directory], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            status = subprocess.run([*tool, "status"], capture_output=True, text=True)
            self.assertIn(f"{directory}  nid000001=IDLE", status.stdout)
            attached = Lab.attach(directory)
            job = attached.submit("srun hostname", nodes=2)
            self.assertEqual(attached.wait_job(job, 20).state, "COMPLETED")
            subprocess.run([*tool, "down", "--dir", directory], check=True)
            self.await_nothing(directory, attached._network.bridge, 3)

    def test_folder_in_use_is_refused(self):
        with tempfile.TemporaryDirectory(dir=lab_module.BASE) as place:
            Path(place, "something").touch()
            with self.assertRaisesRegex(LabError, "not empty"):
                Lab(directory=place).up()

    def test_folder_below_tmp_is_refused(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            with self.assertRaisesRegex(LabError, "its own /tmp"):
                Lab(directory=place).up()


def main():
    ok, reason = Lab.available()
    if not ok:
        print(f"0 passed, 0 failed (no lab here: {reason})")
        return 0
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
