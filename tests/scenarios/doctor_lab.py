#!/usr/bin/python3
"""`ezpz doctor` on a real SLURM of six nodes (tests/cluster), on faults that are really there: a drained
node, one that is cut off, one that lacks something. Most are asked inside one job of four nodes, which
stays up. Needs root; without it every scenario is skipped and counted."""

import contextlib
import json
import shlex
import shutil
import sys
import time
from pathlib import Path

import slurm_job
from doctor_answers import Answer, run, without_jobs
from harness import RUN_MARK, check, check_equal, main, scenario, skip_all, wait_until

from lab import Lab, LabError

FAKES = Path(__file__).resolve().parent.parent / "fakes"
BASE = Path("/var/tmp")
ANSWER_S = 60
# Runs what is put into its folder, one after the other, in the job's own environment.
SHELL = """\
{directives}
cd {dir}
while [ ! -e stop ]; do
  for command in *.command; do
    [ -e "$command" ] || continue
    name=${{command%.command}}
    mv "$command" "$name.running"
    bash "$name.running" > "$name.out" 2> "$name.err"
    echo $? > "$name.rc.part"
    mv "$name.rc.part" "$name.rc"
  done
  sleep 0.05
done
"""


class Shell:
    """A batch job that does what it is told."""

    def __init__(self, lab, folder, directives="#SBATCH --no-kill", nodes=4, args=()):
        self.lab, self.dir, self.count = lab, folder, 0
        folder.mkdir()
        self.id = lab.submit(SHELL.format(directives=directives, dir=folder), nodes=nodes, args=args)
        lab.wait_running(self.id)
        self.hosts = lab.job_nodes(self.id)

    def usable(self):
        states = self.lab.node_states()
        return self.lab.job_state(self.id) == "RUNNING" and self.lab.job_nodes(self.id) == self.hosts and not any(
            word in states[host] for host in self.hosts for word in ("DOWN", "DRAIN", "FAIL", "NOT_RESP"))

    def run(self, context, argv, timeout_s=ANSWER_S, **env):
        self.count += 1
        name = self.dir / f"{self.count:03}"
        words = ["env", f"{RUN_MARK}={context.run_id}", *(f"{k}={v}" for k, v in env.items()), *argv]
        part = name.with_suffix(".part")
        part.write_text(" ".join(shlex.quote(str(word)) for word in words) + "\n")
        part.rename(name.with_suffix(".command"))
        rc = wait_until(f"the answer of {argv}", lambda: name.with_suffix(".rc").exists()
                        and name.with_suffix(".rc").read_text(), timeout_s)
        return Answer(int(rc), name.with_suffix(".out").read_text(errors="replace"),
                      name.with_suffix(".err").read_text(errors="replace"))

    def doctor(self, context, *flags, as_json=True, **how):
        argv = [context.ezpz, "doctor", "--log-dir", context.dir / "logs", *(["--json"] if as_json else [])]
        return self.run(context, [*argv, *flags], **how)

    def end(self):
        with contextlib.suppress(LabError):
            self.lab.cancel(self.id)
        self.lab.reset()


shared = None


def shell(context):
    """The job that most scenarios share; a new one when the last scenario has damaged it."""
    global shared
    if shared is None or not shared.usable():
        if shared is not None:
            shared.end()
        folder = context.dir.parent / f"shell-{time.monotonic_ns()}"
        shared = Shell(context.lab, folder)
    return shared


def alone(context, **how):
    """A job of this scenario's own."""
    global shared
    if shared is not None:
        shared.end()
        shutil.rmtree(shared.dir, ignore_errors=True)
        shared = None
    own = Shell(context.lab, context.dir / "shell", **how)
    context.at_end(own.end)
    return own


def mount_on(context, host, *argv, undo):
    """A mount that this node alone has."""
    done = context.lab.run_on(host, ["mount", *map(str, argv)])
    check_equal(done.returncode, 0, f"mount on {host} ({done.stderr})")
    context.at_end(lambda: context.lab.run_on(host, ["umount", "-l", str(undo)]))


def doctor_outside(context, *flags, **env):
    """On the host, which is no node but reaches SLURM: a login node."""
    env = {**without_jobs(context.env()), **context.lab.env(), **env}
    argv = [context.ezpz, "doctor", "--json", "--log-dir", context.dir / "logs", *flags]
    return run(argv, env, context.dir)


def with_gpus(context, job, count=4):
    """Variables that put an imitated nvidia-smi on every node: SLURM hands out GPUs that are plain files."""
    tools = context.dir / "tools"
    tools.mkdir(exist_ok=True)
    if not (tools / "nvidia-smi").exists():
        (tools / "nvidia-smi").symlink_to(FAKES / "nvidia-smi")
    path = job.run(context, ["printenv", "PATH"]).out.strip()
    return {"PATH": f"{tools}:{path}", "FAKE_GPUS": json.dumps({"gpus": [{}] * count}),
            "FAKE_GPU_CALLS": str(context.dir / "gpu-calls")}


# ---- nothing wrong


@scenario
def a_healthy_lab_has_no_error(context):
    """Inside a job every node looks at itself, and nothing is wrong with it, its site or its nodes."""
    job = shell(context)
    seen = job.doctor(context, "--all-nodes", "--nhosts", 3, "--machine", "generic", **with_gpus(context, job))
    check_equal(seen.err, "", "stderr")
    check(seen.json["health"] != "error", f"an error: {json.dumps([r for r in seen.rows.values() if r['health'] == 'error'])}")
    check_equal((seen.json["nodes_asked"], seen.json["nodes_answered"]), (4, 4), "nodes")
    for name in ("scheduler", "job", "job-hosts", "nodes", "spares", "no-kill", "time-left", "launcher",
                 "launch-plan", "log-dir", "gpus", "node-answers", "clock", "names", "alike", "log-dir-seen", "leftovers"):
        seen.expect(name, "ok")
    check_equal(seen.hosts("node-answers", "ok"), job.hosts, "hosts that answered")


@scenario
def on_a_login_node_what_can_be_is_checked(context):
    """Outside the job: SLURM answers, the user's running jobs are named, nothing is an error."""
    job = shell(context)
    seen = doctor_outside(context, "--machine", "generic")
    seen.expect("scheduler", "ok").expect("job", "ok", "not in a job", job.id)
    check("nodes" not in seen.rows and "no-kill" not in seen.rows, f"checks of a job: {sorted(seen.rows)}")


# ---- the job


@scenario
def a_script_without_no_kill_is_a_warning(context):
    """The batch script says nothing of it, and SLURM tells nowhere what sbatch was given."""
    job = alone(context, directives="", nodes=2)
    check("NoKill" not in context.lab.client("scontrol", "show", "job", job.id), "SLURM tells it after all")
    job.doctor(context).expect("no-kill", "warning", "--no-kill")


@scenario
def a_signal_that_only_the_batch_shell_hears_is_a_warning(context):
    """--signal=B: goes to a shell that passes nothing on."""
    job = alone(context, directives="#SBATCH --no-kill --signal=B:USR1@60", nodes=2)
    job.doctor(context).expect("end-signal", "warning", "B:USR1@60")


@scenario
def a_job_of_five_minutes_is_a_warning(context):
    """The end that SLURM tells is near."""
    job = alone(context, nodes=2, args=["--time=5"])
    check("00:05:00" in context.lab.job(job.id)["TimeLimit"], "the limit")
    job.doctor(context).expect("time-left", "warning", "left")


@scenario
def a_job_that_is_over_is_an_error(context):
    """A shell that outlived its job, and one of a job that never was."""
    ended = context.lab.submit("true", nodes=1)
    check_equal(context.lab.wait_job(ended, 30).state, "COMPLETED", "the job's end")
    seen = doctor_outside(context, SLURM_JOB_ID=ended, SLURM_JOB_NODELIST="nid000001")
    seen.expect("job", "error", "COMPLETED")
    check_equal(seen.code, 1, "exit code")
    seen = doctor_outside(context, SLURM_JOB_ID="99999", SLURM_JOB_NODELIST="nid000001")
    seen.expect("job", "error", "99999", "knows no such job")


# ---- the nodes as SLURM sees them


@scenario
def a_drained_node_is_a_warning(context):
    """Somebody drains a node of the running job: nothing new is to be started on it."""
    job = shell(context)
    context.lab.set_node_state(job.hosts[1], "DRAIN", "test")
    context.at_end(lambda: context.lab.set_node_state(job.hosts[1], "RESUME"))
    context.lab.wait_node_state(job.hosts[1], "DRAIN", 10)
    seen = job.doctor(context, "--nhosts", 3)
    seen.expect("nodes", "warning", job.hosts[1], "DRAIN")
    check("nid000003" not in seen.why("nodes"), seen.why("nodes"))


@scenario
def a_spare_that_was_lost_is_a_warning(context):
    """SLURM takes a DOWN node out of the job; the environment still names it."""
    job = alone(context)
    lost = job.hosts[3]
    context.lab.set_node_state(lost, "DOWN", "test")
    wait_until("the node to leave the job", lambda: lost not in context.lab.job_nodes(job.id), 20)
    seen = job.doctor(context, "--nhosts", 3)
    seen.expect("job-hosts", "warning", lost, "left the job")
    seen.expect("spares", "warning", "no spare")


# ---- the nodes as they see themselves


@scenario
def gpus_that_slurm_gives_and_nodes_lack_are_an_error_of_all_of_them(context):
    """SLURM hands out four GPUs a node, which are plain files here: every node says that it has none."""
    job = shell(context)
    check_equal(job.run(context, ["printenv", "SLURM_GPUS_ON_NODE"]).out, "4\n", "GPUs that SLURM gave")
    seen = job.doctor(context, "--all-nodes", "--machine", "generic")
    seen.expect("gpus", "error", "SLURM_GPUS_ON_NODE says 4")
    check_equal(seen.hosts("gpus", "error"), job.hosts, "hosts")
    check_equal((len(seen.groups("gpus")), seen.code), (1, 1), "groups and exit code")
    text = job.doctor(context, "--all-nodes", as_json=False).out
    check("--exclude " + ",".join(job.hosts) in text, f"the remedy names not all of them: {text}")


@scenario
def a_node_that_is_cut_off_is_unknown_and_named(context):
    """Its cable is pulled: the others answer, it is unknown and no error, and the time is kept."""
    job = alone(context)
    victim = job.hosts[2]
    slurm_job.pull_cable(job, victim)
    begun = time.monotonic()
    seen = job.doctor(context, "--all-nodes", "--nhosts", 3, "--timeout", 12, "--machine", "generic")
    check(time.monotonic() - begun < 40, f"it took {time.monotonic() - begun:.0f} s")
    seen.expect("node-answers", "unknown")
    check_equal(seen.hosts("node-answers", "unknown"), [victim], "who did not answer")
    check_equal(seen.hosts("node-answers", "ok"), [h for h in job.hosts if h != victim], "who did")
    check(all(victim not in g["hosts"] for r in seen.rows.values() for g in r["groups"] if g["health"] == "error"),
          "it was called sick")


@scenario
def a_node_that_lacks_the_binary_is_unknown_in_the_launchers_words(context):
    """On one node the folder with ezpz is empty."""
    job = shell(context)
    victim = job.hosts[1]
    empty = context.dir / "empty"
    empty.mkdir()
    mount_on(context, victim, "--bind", empty, context.ezpz.parent, undo=context.ezpz.parent)
    check(context.lab.run_on(victim, ["test", "-e", context.ezpz]).returncode != 0, "it is still there")
    seen = job.doctor(context, "--all-nodes", "--nhosts", 3)
    seen.expect("node-answers", "unknown", "No such file")
    check_equal(seen.hosts("node-answers", "unknown"), [victim], "hosts")
    check_equal(len(seen.hosts("node-answers", "ok")), 3, "the others")


@scenario
def a_node_with_another_system_is_a_warning(context):
    """One node of four was not upgraded: 3 of 4 ok, and its name."""
    job = shell(context)
    victim = job.hosts[3]
    release = context.dir / "os-release"
    release.write_text('PRETTY_NAME="Old Linux 7"\n')
    mount_on(context, victim, "--bind", release, "/etc/os-release", undo="/etc/os-release")
    check("Old Linux" in context.lab.run_on(victim, ["cat", "/etc/os-release"]).stdout, "the node is like the others")
    seen = job.doctor(context, "--all-nodes")
    seen.expect("alike", "warning", "Old Linux 7")
    check_equal(seen.hosts("alike", "warning"), [victim], "hosts")
    text = job.doctor(context, "--all-nodes", as_json=False).out
    check(f"3 of 4 nodes: ok; {victim}: operating system is Old Linux 7" in text, text)


@scenario
def a_node_that_finds_another_first_host_is_an_error(context):
    """Its hosts file has an old address of the host of rank 0; and one that has none at all."""
    job = shell(context)
    first, stale, none = job.hosts[0], job.hosts[1], job.hosts[2]
    known = context.lab.run_on(stale, ["cat", "/etc/hosts"]).stdout.splitlines()
    for host, lines in ((stale, [l if l.split()[-1] != first else f"10.255.255.1 {first}" for l in known]),
                        (none, [l for l in known if l.split()[-1] != first])):
        path = context.dir / f"hosts-{host}"
        path.write_text("\n".join(lines) + "\n")
        mount_on(context, host, "--bind", path, "/etc/hosts", undo="/etc/hosts")
    check("10.255.255.1" in context.lab.run_on(stale, ["getent", "hosts", first]).stdout, "it resolves rightly")
    seen = job.doctor(context, "--all-nodes")
    seen.expect("names", "error", "10.255.255.1", f"cannot resolve {first}")
    check_equal(seen.hosts("names", "error"), [stale, none], "hosts")
    check_equal(seen.code, 1, "exit code")


@scenario
def a_name_that_leads_to_the_slow_network_is_a_warning(context):
    """One node's own name has the address of its management network, not of its hsn0."""
    job = shell(context)
    host = job.hosts[1]
    check("hsn0" in context.lab.run_on(host, ["ip", "-br", "link"]).stdout, "there is no fast network")
    for words in (["link", "add", "mgmt0", "type", "veth", "peer", "name", "mgmt1"], ["address", "add", "10.254.0.1/24", "dev", "mgmt0"],
                  ["link", "set", "mgmt0", "up"]):
        done = context.lab.run_on(host, ["ip", *words])
        check_equal(done.returncode, 0, f"ip {words} ({done.stderr})")
    context.at_end(lambda: context.lab.run_on(host, ["ip", "link", "delete", "mgmt0"]))
    known = context.lab.run_on(host, ["cat", "/etc/hosts"]).stdout.splitlines()
    path = context.dir / "hosts"
    path.write_text("\n".join(f"10.254.0.1 {host}" if l.split()[-1] == host else l for l in known) + "\n")
    mount_on(context, host, "--bind", path, "/etc/hosts", undo="/etc/hosts")
    seen = job.doctor(context, "--all-nodes")
    seen.expect("names", "warning", "10.254.0.1 on mgmt0", "hsn0")
    check_equal(seen.hosts("names", "warning"), [host], "hosts")
    told = job.doctor(context, "--all-nodes", NCCL_SOCKET_IFNAME="hsn")
    check_equal(told.hosts("names", "warning"), [], "hosts when the variable is set")


@scenario
def a_log_directory_that_one_node_does_not_see_is_a_warning(context):
    """Something of its own is mounted over it there."""
    job = shell(context)
    victim = job.hosts[2]
    logs = context.dir / "logs"
    logs.mkdir()
    mount_on(context, victim, "-t", "tmpfs", "tmpfs", logs, undo=logs)
    seen = job.doctor(context, "--all-nodes")
    seen.expect("log-dir-seen", "warning")
    check_equal(seen.hosts("log-dir-seen", "warning"), [victim], "hosts")
    check_equal(list(logs.iterdir()), [], "what is left in it")


@scenario
def a_rank_of_an_earlier_attempt_is_a_warning(context):
    """A process of this job's first attempt still runs on one node, and its launcher is gone; and one of
    a job that is over."""
    job = shell(context)
    victim, other = job.hosts[1], job.hosts[2]
    gone = context.lab.submit("true", nodes=1, args=["--nodelist=nid000006"])
    context.lab.wait_job(gone, 30)
    marks = {victim: {"EZPZ_ATTEMPT_ID": f"{job.id}.dead.1", "RANK": "1"}, other: {"SLURM_JOB_ID": gone}}
    for host, mark in marks.items():
        env = {RUN_MARK: context.run_id, **mark}
        left = context.lab.popen_on(host, ["sleep", "300"], env=env)
        context.at_end(lambda left=left: (left.kill(), left.wait()))
        wait_until("the process", lambda: context.lab.find_processes(host, env=mark, name="sleep"), 10)
    seen = job.doctor(context, "--all-nodes")
    seen.expect("leftovers", "warning")
    by_host = {host: g["why"] for g in seen.groups("leftovers", "warning") for host in g["hosts"]}
    check_equal(sorted(by_host), [victim, other], f"hosts ({by_host})")
    check(f"{job.id}.dead.1" in by_host[victim] and f"job {gone}" in by_host[other], f"{by_host}")


@scenario
def a_running_attempt_is_in_order(context):
    """Beside an ezpz launch of the same job nothing is called left over, and the job is not disturbed."""
    job = shell(context)
    logs = context.dir / "logs"
    train = [context.toy, "--steps", 4000, "--step-ms", 50, "--receipts", context.dir / "receipts"]
    launch = ["bash", "-c", " ".join(shlex.quote(str(w)) for w in [
        context.ezpz, "launch", "--nhosts", 2, "--ppn", 1, "--log-dir", logs, "--", *train]) +
        f" > {context.dir}/train.out 2>&1 & echo $! > {context.dir}/pid"]
    job.run(context, launch)
    out = context.dir / "train.out"
    wait_until("the first steps", lambda: b"step=3" in out.read_bytes(), 30)
    running = [p for host in job.hosts[:2] for p in context.lab.find_processes(host, env={"EZPZ_ATTEMPT": "1"})]
    check(running, "no rank runs")
    seen = job.doctor(context, "--all-nodes", "--nhosts", 3)
    seen.expect("leftovers", "ok")
    check_equal(seen.json["nodes_answered"], 4, "nodes that answered beside the running step")
    job.run(context, ["bash", "-c", f"kill -TERM $(cat {context.dir}/pid)"])


@contextlib.contextmanager
def lab_around(options):
    """The binaries are copied to where all nodes see them."""
    options.jobs = 1
    binaries = options.base / "bin"
    binaries.mkdir()
    options.ezpz = Path(shutil.copy(options.ezpz, binaries))
    options.toy = Path(shutil.copy(options.toy, binaries))
    try:
        with Lab() as lab:
            options.lab = lab
            yield
    finally:
        shutil.rmtree(binaries)
        for folder in options.base.glob("shell-*"):
            shutil.rmtree(folder)


if __name__ == "__main__":
    ok, reason = Lab.available()
    sys.exit(main("doctor-lab", base=BASE, around=lab_around) if ok else skip_all("doctor-lab", reason))
