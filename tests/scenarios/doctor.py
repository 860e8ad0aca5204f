#!/usr/bin/python3
"""`ezpz doctor` on what is broken on purpose: an imitated PBS job, an imitated PALS, an imitated Lustre, and
this machine. Each scenario proves that the fault is there, then asks. No root."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from doctor_answers import doctor, in_own_mounts
from harness import Skip, check, check_equal, main, scenario, wait_until
from pbs_job import FAKES, HOSTS, SERVER, Pbs
from training import launch

GENERIC = ("--machine", "generic")


def in_pbs(context, *flags, **changes):
    """(the job, what doctor says in it)"""
    pbs = Pbs(context, **changes)
    return pbs, doctor(context, *GENERIC, *flags, env=pbs.env())


def plain(context, *flags, **how):
    """Doctor on this machine, which has no scheduler."""
    path = context.dir / "no-scheduler"
    if not path.exists():
        path.mkdir()
        for name in ("getent", "python3", "sh", "env"):
            (path / name).symlink_to(shutil.which(name))
    env = {"PATH": str(path), **how.pop("env", {})}
    return doctor(context, *GENERIC, *flags, env=env, **how)


# ---- nothing wrong


@scenario(alone=True)
def a_healthy_machine_has_no_error(context):
    """On a machine without a scheduler nothing is wrong, and it is said what was looked at."""
    seen = plain(context)
    check_equal((seen.code, seen.err), (0, ""), "exit code and stderr")
    check(seen.json["health"] != "error", f"an error: {seen.rows}")
    for name in ("scheduler", "launcher", "log-dir", "leftovers"):
        seen.expect(name, "ok")
    check_equal((seen.json["machine"]["name"], seen.json["nodes_asked"]), ("generic", 1), "machine and nodes")
    text = plain(context, as_json=False).out
    check(text.startswith("ezpz doctor on ") and "this node" in text.splitlines()[1], text)


@scenario
def a_healthy_job_has_no_error(context):
    """In a PBS job that tolerates losses, with two of four hosts active, every check of the job is ok."""
    _, seen = in_pbs(context, "--nhosts", 2, "--launcher", "local", "--hostfile", context.dir / "nodefile")
    for name in ("scheduler", "job", "job-hosts", "nodes", "no-kill", "time-left", "launch-plan", "log-dir"):
        seen.expect(name, "ok")
    check_equal(seen.json["job_id"], f"7.{SERVER}", "job")


# ---- the scheduler and the job


@scenario
def a_job_that_dies_with_its_first_node_is_a_warning(context):
    """Without tolerate_node_failures=all, and with --strict the exit code is 2."""
    pbs, seen = in_pbs(context, job={"tolerate_node_failures": None})
    check("tolerate_node_failures" not in pbs.world["jobs"][pbs.job_id], "it does tolerate")
    seen.expect("no-kill", "warning", "first lost node")
    check("tolerate_node_failures=all" in seen.groups("no-kill")[0]["remedy"], "the flag is not told")
    strict = doctor(context, *GENERIC, "--strict", "--launcher", "local", env=pbs.env())
    if strict.json["health"] == "warning":
        check_equal(strict.code, 2, "exit code of --strict")


@scenario
def a_server_that_hangs_is_unknown_in_bounded_time(context):
    """A qstat that never answers costs seconds, and what it would have told is unknown, never ok."""
    begun = time.monotonic()
    pbs, seen = in_pbs(context, hang=True)
    check(pbs.asked(), "it was never asked")
    check(time.monotonic() - begun < 15, f"it took {time.monotonic() - begun:.0f} s")
    for name in ("scheduler", "job", "nodes", "no-kill", "time-left", "job-hosts"):
        seen.expect(name, "unknown")


@scenario
def a_server_that_cannot_be_reached_is_unknown(context):
    """`cannot connect to server`, three times, is said as the reason."""
    pbs, seen = in_pbs(context, unreachable=True)
    check_equal(len(pbs.asked()), 3, "questions")
    seen.expect("scheduler", "unknown", "cannot connect to server")


@scenario
def a_job_that_nobody_knows_is_an_error(context):
    """A shell that kept PBS_JOBID of a job the server has forgotten."""
    pbs = Pbs(context)
    gone = f"99.{SERVER}"
    check(gone not in pbs.world["jobs"], "the job is there")
    seen = doctor(context, *GENERIC, env=pbs.env(PBS_JOBID=gone))
    seen.expect("job", "error", gone, "knows no such job")
    check_equal(seen.code, 1, "exit code")


@scenario
def a_job_that_is_over_is_an_error(context):
    """State F is finished, and not SLURM's failed."""
    pbs, seen = in_pbs(context, job={"job_state": "F"})
    check_equal(pbs.world["jobs"][pbs.job_id]["job_state"], "F", "state")
    seen.expect("job", "error", "state F")
    check_equal(seen.code, 1, "exit code")


@scenario
def a_suspended_job_is_an_error(context):
    """State S: nothing would run."""
    _, seen = in_pbs(context, job={"job_state": "S"})
    seen.expect("job", "error", "state S")


@scenario
def hosts_that_differ_from_the_schedulers_are_a_warning(context):
    """The node file names h1 to h4, exec_host h1, h2, h3 and h9."""
    pbs, seen = in_pbs(context, job={"exec_host": "h1/0*2+h2/0*2+h3/0*2+h9/0*2"})
    check("h9" not in pbs.node_file.read_text(), "the node file names h9")
    seen.expect("job-hosts", "warning", "h4 left the job", "h9 is not in the environment")


@scenario
def two_jobs_in_one_environment_are_a_warning(context):
    """SLURM's and PBS's variables name jobs of different numbers; look-alikes of one do not count."""
    pbs = Pbs(context)
    both = pbs.env(SLURM_JOB_ID="4242")
    check(both["PBS_JOBID"].split(".")[0] != both["SLURM_JOB_ID"], "one number")
    doctor(context, *GENERIC, env=both).expect("scheduler", "warning", "4242", pbs.job_id)
    alike = doctor(context, *GENERIC, env=pbs.env(SLURM_JOB_ID="7"))
    check("two jobs" not in alike.why("scheduler"), f"a look-alike was blamed: {alike.why('scheduler')}")


@scenario
def a_job_without_its_schedulers_commands_is_a_warning(context):
    """PBS_JOBID is set, and neither qstat nor pbsnodes is in PATH."""
    pbs = Pbs(context)
    check(shutil.which("qstat", path="/usr/bin:/bin") is None, "there is a qstat")
    seen = doctor(context, *GENERIC, env=pbs.env(PATH="/usr/bin:/bin"))
    seen.expect("scheduler", "warning", "qstat", "pbsnodes")


@scenario
def a_machine_without_its_scheduler_is_a_warning(context):
    """Perlmutter without squeue: its table says slurm."""
    seen = plain(context, "--machine", "perlmutter")
    seen.expect("scheduler", "warning", "slurm")


@scenario
def a_job_that_ends_soon_is_a_warning(context):
    """Five minutes left are hardly enough for a relaunch."""
    _, seen = in_pbs(context, started_s=time.time() - 600, walltime="00:15:00")
    seen.expect("time-left", "warning", "left")
    check(re.search(r"[45]m \d+s left", seen.why("time-left")), seen.why("time-left"))


# ---- the hosts


@scenario
def a_dead_node_that_would_run_ranks_is_an_error(context):
    """pbsnodes calls active h2 down though the job lists it."""
    pbs, seen = in_pbs(context, "--nhosts", 3, states={"h2": "job-busy,down"})
    check("h2" in pbs.node_file.read_text(), "h2 is not in the job")
    seen.expect("nodes", "error", "h2 (job-busy,down)")
    check("--exclude h2" in seen.groups("nodes")[0]["remedy"], "it is not said how to leave it out")
    check_equal(seen.code, 1, "exit code")
    seen = doctor(context, *GENERIC, "--nhosts", 3, "--exclude", "h2", env=pbs.env())
    check(seen.health("nodes") == "ok", f"left out, h2 is still blamed: {seen.why('nodes')}")


@scenario
def a_dead_spare_is_a_warning(context):
    """The same of h4 when h1 to h3 are active: it will not be used."""
    _, seen = in_pbs(context, "--nhosts", 2, states={"h4": "down"})
    seen.expect("spares", "warning", "h4 (down)", "1 of 2 spares")
    seen.expect("nodes", "ok")


@scenario
def an_offline_node_is_a_warning(context):
    """Somebody has taken h1 out of service; it runs until the job ends."""
    _, seen = in_pbs(context, states={"h1": "offline,job-busy"})
    seen.expect("nodes", "warning", "h1 (offline,job-busy)")


@scenario
def a_restarted_server_accuses_nobody(context):
    """It calls every node down, the one that asks among them: unknown, no error."""
    here = socket.gethostname()
    hosts = (here, "h2", "h3")
    pbs, seen = in_pbs(context, hosts=hosts, states={host: "state-unknown,down" for host in hosts})
    seen.expect("nodes", "unknown", "even this host")


@scenario
def an_answer_about_some_nodes_is_not_one_about_all(context):
    """pbsnodes breaks off in the middle: the state of the others is unknown."""
    _, seen = in_pbs(context, broken_nodes="h3")
    seen.expect("nodes", "unknown", "2 of 4 hosts")


@scenario
def a_hostfile_with_a_foreign_host_is_an_error(context):
    """h9 is not in the job."""
    pbs = Pbs(context)
    (context.dir / "hosts.txt").write_text("h1\nh9\n")
    check("h9" not in pbs.node_file.read_text(), "the job has h9")
    seen = doctor(context, *GENERIC, "--hostfile", "hosts.txt", env=pbs.env())
    seen.expect("hostfile", "error", "h9")
    check_equal(seen.code, 1, "exit code")


@scenario
def a_node_file_that_is_gone_is_a_warning(context):
    """PBS_NODEFILE names a file that is not there; the hosts come from qstat."""
    pbs = Pbs(context)
    pbs.node_file.unlink()
    seen = doctor(context, *GENERIC, env=pbs.env())
    seen.expect("hostfile", "warning", "nodefile").expect("job-hosts", "warning")
    check_equal(seen.json["hosts"], list(HOSTS), "hosts")


@scenario
def an_empty_hostfile_is_an_error(context):
    """Nothing but a comment in it."""
    (context.dir / "hosts.txt").write_text("# none yet\n\n")
    plain(context, "--hostfile", "hosts.txt").expect("hostfile", "error", "empty", "hosts.txt")


@scenario
def a_missing_hostfile_is_an_error(context):
    """A path that is not there."""
    check(not (context.dir / "nowhere.txt").exists(), "it is there")
    plain(context, "--hostfile", "nowhere.txt").expect("hostfile", "error", "nowhere.txt")


@scenario
def a_host_listed_twice_is_a_warning(context):
    """Two spellings of one node count as one."""
    (context.dir / "hosts.txt").write_text("n1\nn2\nn1.site.gov\n")
    plain(context, "--hostfile", "hosts.txt").expect("hostfile", "warning", "more than once", "n1.site.gov")


@scenario
def no_spare_is_a_warning(context):
    """All four hosts are active."""
    _, seen = in_pbs(context, "--nhosts", 4)
    seen.expect("spares", "warning", "no spare")
    _, seen = in_pbs(context)
    seen.expect("spares", "unknown", "was not said")


@scenario
def more_hosts_than_there_are_is_an_error(context):
    """--nhosts 9 in a job of four: what ezpz launch would refuse is refused here."""
    pbs = Pbs(context)
    refused = subprocess.run(
        [context.ezpz, "launch", "--launcher", "pals", "--nhosts", "9", "--", "true"],
        env=context.env(**pbs.env()), cwd=context.dir, capture_output=True, timeout=30)
    check_equal(refused.returncode, 2, f"launch's exit code ({refused.stderr})")
    seen = doctor(context, *GENERIC, "--nhosts", 9, "--launcher", "pals", env=pbs.env())
    seen.expect("launch-plan", "error", "9")


@scenario
def another_mpiexec_than_the_machines_is_an_error(context):
    """On Sunspot the mpiexec in PATH must be PALS'; a conda environment has put MPICH's there."""
    pbs = Pbs(context)
    folder = context.dir / "bin"
    folder.mkdir()
    for name in ("qstat", "pbsnodes", "pbs_world.py"):
        (folder / name).symlink_to(FAKES / name)
    mpiexec = folder / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho 'HYDRA build details:'\n")
    mpiexec.chmod(0o755)
    env = pbs.env(PATH=f"{folder}:/usr/bin:/bin")
    check_equal(shutil.which("mpiexec", path=env["PATH"]), str(mpiexec), "the first mpiexec")
    seen = doctor(context, "--machine", "sunspot", env=env)
    seen.expect("launcher", "error", "Hydra")
    check_equal(seen.code, 1, "exit code")
    (folder / "mpiexec").unlink()
    (folder / "mpiexec").symlink_to(FAKES / "mpiexec")
    doctor(context, "--machine", "sunspot", env=env).expect("launcher", "ok", str(mpiexec))


# ---- the log directory


def mount_tmpfs(folder, size, then=""):
    return f"mount -t tmpfs -o size={size} tmpfs {folder}\n{then}"


def check_can_mount(context):
    done = subprocess.run([*in_own_mounts("mount -t tmpfs tmpfs /mnt"), "true"], capture_output=True, timeout=20)
    if done.returncode != 0:
        raise Skip(f"no mounts of one's own here: {done.stderr.decode().strip()}")


@scenario
def a_full_log_directory_is_an_error(context):
    """A file system without a free block: said with the figures, and that it cannot be written."""
    check_can_mount(context)
    logs = context.dir / "logs"
    logs.mkdir()
    fill = f"dd if=/dev/zero of={logs}/fill bs=64k 2>/dev/null || true\ndf {logs} | grep -q 100%"
    seen = doctor(context, *GENERIC, "--log-dir", logs, prefix=in_own_mounts(mount_tmpfs(logs, "1m", fill)))
    seen.expect("log-dir", "error", str(logs))
    check("No space left" in seen.why("log-dir") or "full" in seen.why("log-dir"), seen.why("log-dir"))
    check_equal(seen.code, 1, "exit code")


@scenario
def a_log_directory_without_inodes_is_an_error(context):
    """Bytes enough, and no file can be made."""
    check_can_mount(context)
    logs = context.dir / "logs"
    logs.mkdir()
    few = f"mount -t tmpfs -o size=2g,nr_inodes=4 tmpfs {logs}\ntouch {logs}/a {logs}/b {logs}/c\n! touch {logs}/d 2>/dev/null"
    doctor(context, *GENERIC, "--log-dir", logs, prefix=in_own_mounts(few)).expect("log-dir", "error", str(logs))


@scenario
def a_nearly_full_log_directory_is_a_warning(context):
    """Some hundred megabytes are left."""
    check_can_mount(context)
    logs = context.dir / "logs"
    logs.mkdir()
    seen = doctor(context, *GENERIC, "--log-dir", logs, prefix=in_own_mounts(mount_tmpfs(logs, "300m")))
    seen.expect("log-dir", "warning", "300 MiB", "nearly full")


@scenario
def a_read_only_log_directory_is_an_error(context):
    """A mount that may only be read."""
    check_can_mount(context)
    logs = context.dir / "logs"
    logs.mkdir()
    frozen = f"mount --bind {logs} {logs}\nmount -o remount,bind,ro {logs}\n! touch {logs}/x 2>/dev/null"
    seen = doctor(context, *GENERIC, "--log-dir", logs, prefix=in_own_mounts(frozen))
    seen.expect("log-dir", "error", "Read-only file system")


@scenario
def a_log_directory_that_is_a_file_is_an_error(context):
    """Somebody's file has its name."""
    (context.dir / "logs").write_text("not a folder")
    plain(context, "--log-dir", "logs/run").expect("log-dir", "error", "not a folder")


@scenario
def doctor_leaves_nothing_behind(context):
    """Neither a folder that was not there, nor a file in one that was."""
    (context.dir / "there").mkdir()
    plain(context, "--log-dir", "there").expect("log-dir", "ok")
    plain(context, "--log-dir", "not/there").expect("log-dir", "ok")
    left = sorted(p.name for p in context.dir.rglob("*") if "no-scheduler" not in str(p))
    check_equal(left, ["there"], "what is there afterwards")


@scenario
def records_in_memory_are_a_warning_for_a_job_of_many(context):
    """A log directory on tmpfs is gone with its host."""
    check_can_mount(context)
    logs = context.dir / "logs"
    logs.mkdir()
    pbs = Pbs(context)
    seen = doctor(context, *GENERIC, "--log-dir", logs, env=pbs.env(),
                  prefix=in_own_mounts(mount_tmpfs(logs, "2g")))
    seen.expect("log-dir", "warning", "memory", "tmpfs")


# ---- Lustre

GIB = 1 << 20  # in KiB


def on_lustre(context, *flags, **world):
    world = {"mount": str(context.dir), "mdt": [[100 * GIB, GIB]], **world}
    (context.dir / "lustre.json").write_text(json.dumps(world))
    env = {"PATH": f"{FAKES}:{os.environ['PATH']}", "FAKE_LUSTRE": str(context.dir / "lustre.json")}
    shown = ""
    if not world.get("hang"):
        asked = ["lfs", "df", str(context.dir)]
        shown = subprocess.run(asked, env={**os.environ, **env}, capture_output=True, text=True, timeout=20).stdout
    return shown, doctor(context, *GENERIC, *flags, env=env)


@scenario
def a_full_target_behind_a_healthy_df_is_an_error(context):
    """One of four storage targets is full, files lie on all of them, and the whole is hardly used."""
    ost = [[1000 * GIB, 10 * GIB], [1000 * GIB, 20 * GIB], [100 * GIB, 100 * GIB], [1000 * GIB, 10 * GIB]]
    shown, seen = on_lustre(context, ost=ost, stripes={"count": -1, "offset": -1})
    check("OST0002_UUID" in shown and "100%" in shown, shown)
    seen.expect("lustre", "error", "OST0002", "1 of 5", "5 % used")
    check("OST0001" not in seen.why("lustre"), seen.why("lustre"))


@scenario
def a_full_target_that_new_files_avoid_is_a_warning(context):
    """The same where a file lies on one target that Lustre chooses; and an error where that is the
    full one."""
    ost = [[1000 * GIB, 10 * GIB], [100 * GIB, 100 * GIB]]
    _, seen = on_lustre(context, ost=ost, stripes={"count": 1, "offset": -1})
    seen.expect("lustre", "warning", "OST0001")
    _, seen = on_lustre(context, ost=ost, stripes={"count": 1, "offset": 1})
    seen.expect("lustre", "error", "OST0001", "from OST 1 on")


@scenario
def a_target_whose_server_is_away_is_a_warning(context):
    """Files on it hang."""
    shown, seen = on_lustre(context, ost=[[1000 * GIB, 10 * GIB], None])
    check("inactive device" in shown, shown)
    seen.expect("lustre", "warning", "OST0001", "do not answer")


@scenario
def a_healthy_lustre_is_ok_and_a_silent_one_unknown(context):
    """With room everywhere nothing is wrong; an lfs that hangs is given up."""
    _, seen = on_lustre(context, ost=[[1000 * GIB, 500 * GIB]] * 3)
    seen.expect("lustre", "ok", "3 storage targets", "50 % used")
    begun = time.monotonic()
    _, seen = on_lustre(context, ost=[], hang=True)
    check(time.monotonic() - begun < 20, "it took too long")
    seen.expect("lustre", "unknown")


# ---- nodes through a launcher


class Pals:
    """A PBS job on Sunspot, imitated, and a mpiexec that may spoil what it passes on."""

    def __init__(self, context, spoil="", hosts=tuple(f"x1921c7s{n}b0n0" for n in range(1, 5))):
        self.context, self.hosts = context, hosts
        self.pbs = Pbs(context, hosts=hosts)
        folder = context.dir / "bin"
        folder.mkdir()
        for name in ("qstat", "pbsnodes", "pbs_world.py"):
            (folder / name).symlink_to(FAKES / name)
        mpiexec = folder / "mpiexec"
        # Between ezpz and the stand-in: spoil sees the words and, of what comes back, the text.
        mpiexec.write_text(f"""#!/usr/bin/python3
import re, subprocess, sys, time
words = sys.argv[1:]
hosts = next((w.split("=", 1)[1] for w in words if w.startswith("--hosts=")), "")
def change(text): return text
{spoil}
done = subprocess.run([{str(FAKES / "mpiexec")!r}, *words], stdout=subprocess.PIPE)
sys.stdout.write(change(done.stdout.decode()))
sys.exit(done.returncode)
""")
        mpiexec.chmod(0o755)
        self.env = self.pbs.env(PATH=f"{folder}:{os.environ['PATH']}")

    def doctor(self, *flags, **how):
        return doctor(self.context, "--machine", "sunspot", "--all-nodes", *flags, env=self.env, **how)


def check_can_unshare():
    enter = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--uts"]
    if subprocess.run([*enter, "true"], capture_output=True, timeout=20).returncode != 0:
        raise Skip("no host names of one's own here")


@scenario
def every_node_looks_at_itself_through_the_launcher(context):
    """Four hosts under PALS: each answers, and what it says is one row a check."""
    check_can_unshare()
    pals = Pals(context)
    seen = pals.doctor("--nhosts", 3)
    check_equal((seen.json["nodes_asked"], seen.json["nodes_answered"]), (4, 4), f"nodes ({seen.rows['node-answers']})")
    check_equal(seen.hosts("node-answers", "ok"), sorted(pals.hosts), "hosts that answered")
    for name in ("clock", "alike", "log-dir-seen", "working-dir"):
        seen.expect(name, "ok")
    seen.expect("spares", "ok", "x1921c7s4b0n0")
    check(not list(context.dir.glob(".ezpz-doctor*")), "the mark was left behind")


@scenario
def a_wrong_clock_is_a_warning_that_names_the_host(context):
    """The third host is two minutes ahead (its report is altered on the way: no clock of a machine can be
    set for one process)."""
    check_can_unshare()
    ahead = 'def change(text):\n' \
            '    if "s3b" not in hosts: return text\n' \
            '    return re.sub(r\'"(began_s|answered_s)":(\\d+)\', lambda m: f\'"{m[1]}":{int(m[2]) + 120}\', text)'
    pals = Pals(context, spoil=ahead)
    seen = pals.doctor("--nhosts", 3)
    seen.expect("clock", "warning", "ahead")
    check_equal(seen.hosts("clock", "warning"), ["x1921c7s3b0n0"], "hosts")
    check_equal(len(seen.hosts("clock", "ok")), 3, "hosts whose clock is right")
    least, most = map(float, re.search(r"by ([\d.]+) to ([\d.]+) s", seen.why("clock", "warning")).groups())
    check(least <= 120 <= most and most - least < 30, f"{least} to {most} s do not hold 120 s closely")
    text = pals.doctor("--nhosts", 3, as_json=False).out
    check("3 of 4 nodes: ok; x1921c7s3b0n0: its clock is ahead" in text, text)


@scenario
def a_host_that_the_launcher_refuses_is_unknown_and_named(context):
    """mpiexec fails for one host; the others answer, and nothing is called sick."""
    check_can_unshare()
    refuse = 'if "s2b" in hosts:\n    sys.exit("launch failed on x1921c7s2b0n0: No route to host")'
    seen = Pals(context, spoil=refuse).doctor("--nhosts", 3)
    seen.expect("node-answers", "unknown", "No route to host")
    check_equal(seen.hosts("node-answers", "unknown"), ["x1921c7s2b0n0"], "hosts")
    check_equal(seen.json["nodes_answered"], 3, "answers")
    check_equal([n for n, r in seen.rows.items() if r["health"] == "error" and "x1921c7s2b0n0" in json.dumps(r)], [],
                "errors about the silent host")


@scenario
def a_host_that_never_answers_is_unknown_in_bounded_time(context):
    """One mpiexec hangs: the time is kept and the host named."""
    check_can_unshare()
    pals = Pals(context, spoil='if "s4b" in hosts: time.sleep(600)')
    begun = time.monotonic()
    seen = pals.doctor("--timeout", 8)
    check(time.monotonic() - begun < 25, f"it took {time.monotonic() - begun:.0f} s")
    seen.expect("node-answers", "unknown", "did not answer within 8 s")
    check_equal(seen.hosts("node-answers", "unknown"), ["x1921c7s4b0n0"], "hosts")


@scenario
def one_node_of_another_kind_is_a_warning(context):
    """One host reports another kernel than its peers (altered on the way)."""
    check_can_unshare()
    other = 'def change(text):\n' \
            '    if "s1b" not in hosts: return text\n' \
            '    return re.sub(r\'("kernel":")(.)\', lambda m: m[1] + ("9" if m[2] != "9" else "8"), text)'
    seen = Pals(context, spoil=other).doctor()
    seen.expect("alike", "warning", "kernel")
    check_equal(seen.hosts("alike", "warning"), ["x1921c7s1b0n0"], "hosts")


@scenario
def answers_that_are_cut_off_are_no_answers(context):
    """Half of a report is none: unknown, never ok."""
    check_can_unshare()
    half = 'def change(text):\n    return text[: len(text) // 2] if "s1b" in hosts else text'
    seen = Pals(context, spoil=half).doctor("--timeout", 10)
    check_equal(seen.hosts("node-answers", "unknown"), ["x1921c7s1b0n0"], "hosts")


# ---- leftovers


@scenario(alone=True)
def a_process_of_an_attempt_that_is_over_is_a_warning(context):
    """A rank whose ezpz is gone still runs: it is named by its pid."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = subprocess.Popen(["sleep", "60"], env=context.env(EZPZ_ATTEMPT_ID=f"local-{dead.pid}.1a2b.1", RANK="0"))
    context.at_end(lambda: (left.kill(), left.wait()))
    check(not Path(f"/proc/{dead.pid}").exists(), "its ezpz lives")
    wait_until("the process's environment", lambda: b"EZPZ_ATTEMPT_ID" in Path(f"/proc/{left.pid}/environ").read_bytes(), 5)
    seen = plain(context)
    named = within(left.pid, seen.why("leftovers", "warning"))
    check(named, f"pid {left.pid} is not named: {seen.why('leftovers')}")


def within(pid, text):
    """Is the pid in one of the ranges that the text names?"""
    return any(int(a) <= pid <= int(b or a) for a, b in re.findall(r"(\d+)(?:-(\d+))?", text))


@scenario(alone=True)
def a_running_attempt_is_no_leftover(context):
    """While ezpz launch runs here its ranks are in order."""
    job = launch(context, steps=2000)
    job.wait_step(2)
    pids = [receipt.start["pid"] for receipt in job.receipts(1).values()]
    seen = plain(context)
    blamed = [pid for pid in pids if within(pid, seen.why("leftovers", "warning"))]
    check_equal(blamed, [], "ranks called leftovers")
    job.signal(15)
    job.wait(40)


# ---- how it is said


@scenario
def errors_come_first_and_each_trouble_says_what_to_do(context):
    """For a person: errors, warnings, unknown, then a line for each check that is fine."""
    pbs = Pbs(context, states={"h2": "down"}, job={"tolerate_node_failures": None})
    text = doctor(context, *GENERIC, env=pbs.env(), as_json=False).out
    words = [line.split()[0] for line in text.splitlines() if re.match(r"(error|warning|unknown|ok) ", line)]
    order = ["error", "warning", "unknown", "ok"]
    check_equal(words, sorted(words, key=order.index), "order")
    check({"error", "warning", "ok"} <= set(words), text)
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if re.match(r"(error|warning|unknown) ", line):
            check(lines[i + 1].strip().startswith("do: "), f"no remedy behind {line!r}")


@scenario
def what_others_write_is_never_printed_raw(context):
    """Escapes in a job's state and in a path come out harmless."""
    pbs = Pbs(context, states={"h2": "down,\x1b[31mred"})
    name = "logs\x1b[31m"
    text = doctor(context, *GENERIC, "--log-dir", name, env=pbs.env(), as_json=False).out
    check("h2" in text and "\x1b" not in text, repr(text))


@scenario
def bad_usage_is_code_2_and_one_line(context):
    """An unknown machine, a spare count that is no number, an empty log directory."""
    for flags in (["--machine", "perlmuter"], ["--spare-nodes", "few"], ["--log-dir", ""], ["--timeout", "0.5"], ["--al-nodes"]):
        seen = doctor(context, *flags)
        check_equal((seen.code, seen.out, len(seen.err.splitlines())), (2, "", 1), f"{flags}: {seen.err}")


if __name__ == "__main__":
    sys.exit(main("doctor", base=Path("/var/tmp")))
