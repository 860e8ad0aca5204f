"""The files that slurmctld, slurmd and munged read, as text, and the lab's fixed shape."""

import os
import stat
from pathlib import Path

NODES = tuple(f"nid{n:06d}" for n in range(1, 7))
HEAD = "ezpzctl"
GPUS_PER_NODE = 4
CPUS_PER_NODE = 8
MEMORY_MB = 4000

# cred_expire: a requeued batch job waits until its old credential cannot be used any more. The
# default of 120 s would make every requeue in a test that slow.
SLURM_CONF = """\
ClusterName=ezpzlab
SlurmctldHost={head}({head_address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={dir}/munge/socket,cred_expire=10
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/state/slurmctld.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdSpoolDir={dir}/node/%n/spool
SlurmdPidFile={dir}/node/%n/slurmd.pid
SlurmdLogFile={dir}/log/%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
# Neither cgroups nor real cores are there to be handed out: eight CPUs a node are declared, not found.
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=30
InactiveLimit=0
KillWait=5
UnkillableStepTimeout=25
BatchStartTimeout=10
MessageTimeout=5
TCPTimeout=2
# A mail program that is there, or slurmctld complains.
MailProg=/bin/true
MinJobAge=300
OverTimeLimit=0
# Every node is spoken to directly, so that a dead one never stands in the way of a living one.
TreeWidth=65533
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=1
DefMemPerNode={memory}
NodeName=DEFAULT CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
{node_lines}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=30 State=UP
"""

# Slurm counts these files, hands them out and sets CUDA_VISIBLE_DEVICES; nothing ever opens them.
GRES_CONF = "AutoDetect=off\nName=gpu File={dir}/gpu/gpu[0-{last}]\n"


def write_all(directory, addresses):
    """Writes every file and folder; addresses maps NODES and HEAD to their 10.x addresses."""
    root = Path(directory)
    _make_folders(root)
    (root / "slurm.conf").write_text(_slurm_conf(root, addresses))
    (root / "gres.conf").write_text(GRES_CONF.format(dir=root, last=GPUS_PER_NODE - 1))
    # Only there so that slurmd never looks for the one of the machine.
    (root / "cgroup.conf").write_text("CgroupAutomount=no\n")
    (root / "hosts").write_text(_hosts(addresses))
    for gpu in range(GPUS_PER_NODE):
        # slurmd complains about anything but a device, so each is one more name of /dev/null.
        os.mknod(root / "gpu" / f"gpu{gpu}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    key = root / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)


def _make_folders(root):
    # munged refuses a socket that not everybody can reach; 0711 lets through, but shows nothing.
    root.chmod(0o711)
    for name in ("munge", "state", "log", "gpu", "work"):
        (root / name).mkdir()
    (root / "munge").chmod(0o711)
    for node in (*NODES, HEAD):
        for name in ("spool", "tmp"):
            (root / "node" / node / name).mkdir(parents=True)
        (root / "node" / node / "tmp").chmod(0o1777)


def _slurm_conf(root, addresses):
    node_lines = "\n".join(f"NodeName={node} NodeAddr={addresses[node]}" for node in NODES)
    return SLURM_CONF.format(
        dir=root,
        head=HEAD,
        head_address=addresses[HEAD],
        memory=MEMORY_MB,
        cpus=CPUS_PER_NODE,
        gpus=GPUS_PER_NODE,
        node_lines=node_lines,
    )


def _hosts(addresses):
    lines = ["127.0.0.1 localhost"] + [f"{address} {name}" for name, address in addresses.items()]
    return "\n".join(lines) + "\n"
