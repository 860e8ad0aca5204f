#!/usr/bin/python3
"""Lets a real Slurm go through what can happen to a job, and prints what it says, word for word.

    tests/cluster/seen.py [NAME...] > raw.md

SEEN.md holds one such run with what follows from it. Every case is one 4-node job with --exclusive
and --no-kill, whose batch script starts srun on the first two nodes; the other two are spares.
"""

import re
import signal
import sys
import time

from lab import Lab, LabTimeout

WORKER = "bash -c 'echo rank $SLURM_PROCID on $(hostname) gpus $CUDA_VISIBLE_DEVICES; exec sleep 600'"
FLAGS = (
    "-u --verbose -N2 -n4 --ntasks-per-node=2 --distribution=block --gpus-per-node=4 --cpus-per-task=4 "
    "--kill-on-bad-exit=1 --input=none"
)
# --verbose prints it before every step, always alike; SEEN.md shows it once, from the first case.
OPTION_DUMP = re.compile(r"srun: defined options\n.*?srun: end of defined options\n", re.DOTALL)
# EPOCHREALTIME is bash's clock; the seconds printed count from the start of srun.
PROLOGUE = """\
cd $SLURM_SUBMIT_DIR
printf 'nid000001\\nnid000002\\n' > active.hostfile
printf 'nid000001\\nnid000003\\n' > swapped.hostfile
printf 'nid000003\\nnid000004\\n' > spares.hostfile
printf 'nid000001\\nnid000006\\n' > foreign.hostfile
attempt() {
  echo "\\$ srun $*"
  local from=$EPOCHREALTIME
  timeout --signal=TERM --kill-after=20 $limit srun "$@"
  echo "rc $? after $(awk "BEGIN { print $EPOCHREALTIME - $from }") s"
}
rm -f go
limit=150
"""


def one_step(worker=WORKER, flags=FLAGS, hostfile="active.hostfile"):
    return f"{PROLOGUE}attempt {flags} --nodelist=$PWD/{hostfile} {worker}\n"


class Case:
    """One job and what is done to it."""

    def __init__(self, lab, script, args=()):
        self.lab = lab
        self.job = lab.submit(script, nodes=4, args=["--no-kill", *args])

    def until_ranks_run(self):
        for rank in range(4):
            self.lab.wait_output(self.job, f"rank {rank} on", 20)

    def until_srun_ends(self, timeout_s=100):
        try:
            self.lab.wait_output(self.job, "rc ", timeout_s)
        except LabTimeout as error:
            print(f"(srun had not ended {timeout_s} s later)\n{str(error).splitlines()[0]}")

    def show(self):
        print_block(self.lab.output(self.job))

    def show_end(self):
        self.lab.wait_job(self.job, 60)
        self.show()
        fields = self.lab.job(self.job)
        print("job: " + " ".join(f"{key}={fields[key]}" for key in ("JobState", "Reason", "ExitCode", "RunTime")))

    def ranks(self, node, **env):
        return self.lab.find_processes(node, {"SLURM_JOB_ID": self.job, "SLURM_STEP_ID": "0", **env}, name="sleep")

    def kill_ranks(self, node, **env):
        for pid in self.ranks(node, **env):
            self.lab.kill_process(pid)

    def srun_pid(self):
        # srun forks a second process that only watches the first.
        return min(self.lab.find_processes("nid000001", name="srun"))


def print_block(text):
    print("```\n" + OPTION_DUMP.sub("[the dump of options]\n", text.rstrip("\n")) + "\n```")


def simple(end, is_whole_job=False, **script):
    """A case that is one step and one deed in the middle of it."""

    def run(lab):
        case = Case(lab, one_step(**script))
        case.until_ranks_run()
        end(lab, case)
        if not is_whole_job:  # the batch script does not live to print srun's rc
            case.until_srun_ends()
        case.show_end()

    return run


def unattended(script, args=()):
    """A case that comes to its end by itself."""

    def run(lab):
        case = Case(lab, script, args)
        case.lab.wait_job(case.job, 240)
        case.show_end()

    return run


def lost(deed):
    """A node is lost; then what Slurm answers, and which new steps can start."""

    body = f"attempt {FLAGS} --nodelist=$PWD/active.hostfile {WORKER}\nuntil [ -e go ]; do sleep 0.2; done\nlimit=40\n"
    quick = "bash -c 'echo rank $SLURM_PROCID on $(hostname); sleep 1'"
    short = FLAGS.replace(" --verbose", "")
    body += f"attempt {FLAGS} --nodelist=$PWD/swapped.hostfile {quick}\n"
    for more in ("--exclude=nid000002 ", "--overlap ", "--overlap --exclude=nid000002 "):
        body += f"attempt {short} {more}--nodelist=$PWD/swapped.hostfile {quick}\n"
    body += f"attempt {short} --nodelist=$PWD/spares.hostfile {quick}\n"
    body += f"attempt {short} --nodelist=$PWD/active.hostfile {quick}\n"
    body += "env | grep -E '^SLURM_(NNODES|JOB_NODELIST|JOB_NUM_NODES|NTASKS|TASKS_PER_NODE|JOB_CPUS_PER_NODE)='\n"

    def run(lab):
        case = Case(lab, PROLOGUE + body)
        case.until_ranks_run()
        began = time.monotonic()
        deed(lab)
        wait_lost(lab, began)
        case.until_srun_ends(60)
        case.show()
        show_queries(lab, case.job)
        print("Then, in the same job:")
        before = len(lab.output(case.job))
        (lab.workdir / "go").touch()
        lab.wait_job(case.job, 400)
        print_block(lab.output(case.job)[before:])

    return run


def waits_long(lab):
    """How long a plain step on a survivor waits, and what it says meanwhile."""
    body = f"attempt {FLAGS} --nodelist=$PWD/active.hostfile {WORKER}\n"
    body += f"attempt {FLAGS} --nodelist=$PWD/swapped.hostfile {WORKER}\n"
    case = Case(lab, PROLOGUE + body)
    case.until_ranks_run()
    lab.lose_node("nid000002")
    case.lab.wait_job(case.job, 200)
    case.show_end()


def after_loss(lab):
    """Which kind of step starts on a survivor, and which one makes all others start again."""
    plain = FLAGS.replace(" --verbose", "")
    not_exact = plain.replace(" --cpus-per-task=4", "")
    swapped = f"--nodelist=$PWD/swapped.hostfile {WORKER.replace('600', '1')}"
    for first in (
        f"{not_exact} {swapped}",
        f"{plain} --overlap {swapped}",
        f"{not_exact} --exact {swapped}",
        "-N1 -n1 --nodelist=nid000001 hostname",
    ):
        body = f"attempt {plain} --nodelist=$PWD/active.hostfile {WORKER}\nlimit=15\n"
        body += f"attempt {first}\nattempt {plain} {swapped}\n"
        case = Case(lab, PROLOGUE + body)
        case.until_ranks_run()
        lab.lose_node("nid000002")
        lab.wait_job(case.job, 90)
        case.show()
        lab.reset()


def wait_lost(lab, began):
    try:
        lab.wait_node_state("nid000002", "DOWN", 90)
        print(f"The node was DOWN after {time.monotonic() - began:.1f} s.")
    except LabTimeout:
        print("The node did not become DOWN within 90 s.")


def show_queries(lab, job):
    for query in (
        f"scontrol show job {job}",
        "scontrol show node nid000002",
        "squeue -s",
        f"scontrol show step {job}.0",
        "sinfo -N -o '%N %T %E'",
        f"squeue -j {job} -h -o '%T %e %L %N %D'",
    ):
        print_block(f"$ {query}\n" + lab.client("bash", "-c", f"{query} 2>&1 || echo rc $?"))


def drain_then_cancel(lab, case):
    lab.set_node_state("nid000002", "DRAIN", "bad GPU")
    time.sleep(3)
    print_block("$ sinfo -N -o '%N %T %E'\n" + lab.client("sinfo", "-N", "-o", "%N %T %E"))
    lab.cancel(f"{case.job}.0")


def first_node_lost(lab):
    case = Case(lab, one_step())
    case.until_ranks_run()
    began = time.monotonic()
    lab.kill_node("nid000001")
    lab.wait_node_state("nid000001", "DOWN", 90)
    print(f"The node was DOWN after {time.monotonic() - began:.1f} s.")
    time.sleep(15)
    case.show()
    print_block(f"$ scontrol show job {case.job}\n" + lab.client("scontrol", "show", "job", case.job))


def spare_lost(lab):
    case = Case(lab, one_step(worker=WORKER.replace("600", "40")))
    case.until_ranks_run()
    lab.kill_node("nid000003")
    lab.wait_node_state("nid000003", "DOWN", 90)
    case.until_srun_ends()
    case.show_end()


def without_no_kill(lab):
    job = lab.submit(one_step(), nodes=4, args=["--no-requeue"])
    for rank in range(4):
        lab.wait_output(job, f"rank {rank} on", 20)
    lab.kill_node("nid000002")
    print(lab.wait_job(job, 90))
    print_block(lab.output(job))


def requeued(lab):
    script = "echo restarts: $SLURM_RESTART_COUNT on $SLURM_JOB_NODELIST\n"
    job = lab.submit(script + "srun bash -c 'echo rank $SLURM_PROCID; exec sleep 600'", nodes=4)
    for rank in range(4):
        lab.wait_output(job, f"rank {rank}", 20)
    print_block(lab.output(job))
    lab.kill_node("nid000002")
    lab.wait_node_state("nid000002", "DOWN", 90)
    began = time.monotonic()
    print("Once the node is DOWN:", lab.job_state(job), lab.job(job)["Reason"])
    lab.wait_output(job, "restarts: 1", 150)
    print(f"{lab.job_state(job)} again {time.monotonic() - began:.1f} s later; its output file is new:")
    print_block(lab.output(job))


def dead_at_launch(deed):
    """A spare is lost, and a step is started on it before Slurm knows."""

    def run(lab):
        body = "until [ -e go ]; do sleep 0.1; done\n"
        body += f"attempt {FLAGS} --nodelist=$PWD/swapped.hostfile {WORKER}\n"
        case = Case(lab, PROLOGUE + body)
        lab.wait_running(case.job)
        deed(lab)
        (lab.workdir / "go").touch()
        case.until_srun_ends()
        case.show_end()

    return run


def signalled_srun(number):
    return simple(lambda lab, case: lab.kill_process(case.srun_pid(), number))


STUBBORN = """bash -c 'trap "" TERM; echo rank $SLURM_PROCID on $(hostname); while :; do sleep 1; done'"""
ONE_ENDS = "bash -c 'echo rank $SLURM_PROCID on $(hostname); [ $SLURM_PROCID = {} ] && {{ sleep 1; {}; }}; sleep 600'"

CASES = {
    "start and normal end": unattended(one_step(worker=WORKER.replace("600", "1"))),
    "start and normal end without --verbose": unattended(
        one_step(worker=WORKER.replace("600", "1"), flags=FLAGS.replace(" --verbose", ""))
    ),
    "all ranks of the second node SIGKILLed": simple(lambda lab, case: case.kill_ranks("nid000002")),
    "one rank SIGKILLed": simple(lambda lab, case: case.kill_ranks("nid000002", SLURM_PROCID="3")),
    "exit 1 of rank 3": unattended(one_step(worker=ONE_ENDS.format(3, "exit 1"))),
    "segmentation fault of rank 2": unattended(one_step(worker=ONE_ENDS.format(2, "kill -SEGV $$"))),
    "missing program": unattended(one_step(worker="/no/such/program")),
    "a host that is not in the allocation": unattended(one_step(hostfile="foreign.hostfile")),
    "no such hostfile": unattended(one_step(hostfile="nothing.hostfile")),
    "time limit of the job": unattended(one_step(), ["--time=1"]),
    "scancel of the step": simple(lambda lab, case: lab.cancel(f"{case.job}.0")),
    "scancel of the step, ranks ignore SIGTERM": simple(lambda lab, case: lab.cancel(f"{case.job}.0"), worker=STUBBORN),
    "scancel of the job": simple(lambda lab, case: lab.cancel(case.job), is_whole_job=True),
    "srun gets SIGTERM": signalled_srun(signal.SIGTERM),
    "srun gets SIGKILL": signalled_srun(signal.SIGKILL),
    "the second node is killed (every process at once)": lost(lambda lab: lab.kill_node("nid000002")),
    "the second node loses power (no packet more)": lost(lambda lab: lab.kill_node("nid000002", silent=True)),
    "slurmd and slurmstepd of the second node die, its ranks live": lost(
        lambda lab: lab.kill_node_daemons("nid000002")
    ),
    "the second node's cable is pulled": lost(lambda lab: lab.cable_pull("nid000002")),
    "an administrator sets the second node DOWN": lost(lambda lab: lab.set_node_state("nid000002", "DOWN")),
    "a plain step on a survivor, waited for 150 s": waits_long,
    "after a node loss: which step starts, and which one heals": after_loss,
    "an administrator drains the second node": simple(drain_then_cancel),
    "a step starts on a killed node before Slurm knows": dead_at_launch(lambda lab: lab.kill_node("nid000003")),
    "a step starts on a node without slurmd before Slurm knows": dead_at_launch(
        lambda lab: lab.kill_node_daemons("nid000003")
    ),
    "a step starts on a node off the network before Slurm knows": dead_at_launch(
        lambda lab: lab.cable_pull("nid000003")
    ),
    "a spare node is killed": spare_lost,
    "the first node (of the batch script) is killed": first_node_lost,
    "a node is killed, job without --no-kill, --no-requeue": without_no_kill,
    "a node is killed, job without --no-kill": requeued,
}


def main(names):
    unknown = set(names) - set(CASES)
    if unknown:
        sys.exit(f"seen.py: no such case: {', '.join(unknown)}")
    with Lab() as lab:
        for name in names or CASES:
            print(f"\n## {name[0].upper()}{name[1:]}", flush=True)
            try:
                CASES[name](lab)
            except LabTimeout as error:
                print(f"(gave up: {error})")
            lab.reset()
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
