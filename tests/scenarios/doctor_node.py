#!/usr/bin/python3
"""What one node says of itself: `ezpz doctor-node`, the real binary on this machine with one thing broken
at a time. GPUs are those of imitated tools, libraries are real ELF files made by the compiler. Seconds."""

import json
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

from harness import Skip, check, check_equal, main, scenario

FAKES = Path(__file__).resolve().parent.parent / "fakes"
TIME_LIMIT_S = 60

# What a Perlmutter job with everything in place has set.
SETTINGS = {
    "NCCL_NET": "AWS Libfabric", "NCCL_SOCKET_IFNAME": "hsn", "NCCL_CROSS_NIC": "1", "NCCL_NET_GDR_LEVEL": "PHB",
    "FI_CXI_DISABLE_HOST_REGISTER": "1", "FI_MR_CACHE_MONITOR": "userfaultfd", "FI_CXI_DEFAULT_CQ_SIZE": "131072",
}
FOREIGN = ("NCCL_", "FI_", "CCL_", "CUDA_", "ROCR_", "HIP_", "ZE_", "MPICH_", "SLURM", "PBS_", "PALS_", "LD_",
           "PYTHON", "COMPILE", "TMPDIR", "VIRTUAL_ENV")


class Node:
    """A node to be broken: PATH holds only what the scenario puts there, and the system's own."""

    def __init__(self, context, machine, job=True):
        self.context, self.machine = context, machine
        self.bin = context.dir / "bin"
        self.bin.mkdir()
        self.env = {k: v for k, v in context.env().items() if not k.startswith(FOREIGN)}
        self.env["PATH"] = f"{self.bin}:/usr/bin:/bin:/usr/sbin:/sbin"
        self.command = []
        self.flags = []
        self.limits = None
        if job:
            self.env |= {"PBS_JOBID": "12.srv", "PBS_NODEFILE": str(self._node_file())} if machine in ("aurora",) else {
                "SLURM_JOB_ID": "57", "SLURM_JOB_NODELIST": "nid[000001-000002]", "SLURM_NNODES": "2"}

    def _node_file(self):
        path = self.context.dir / "nodefile"
        path.write_text("x4102c1s1b0n0\nx4102c1s1b0n1\n")
        return path

    def tool(self, name, **world):
        (self.bin / name).symlink_to(FAKES / name)
        self.env["FAKE_GPUS"] = json.dumps(world)
        self.env["FAKE_GPU_CALLS"] = str(self.context.dir / "gpu-calls")
        return self

    def calls(self):
        path = self.context.dir / "gpu-calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def run(self):
        """(exit code, {check: finding})"""
        argv = [str(self.context.ezpz), "doctor-node", "--machine", self.machine, "--nodes", "2", *self.flags]
        if self.command:
            argv += ["--", *self.command]
        done = subprocess.run(argv, capture_output=True, env=self.env, cwd=self.context.dir, timeout=TIME_LIMIT_S,
                              preexec_fn=self.limits)
        check_equal(done.stderr, b"", "stderr")
        check_equal(done.stdout.count(b"\n"), 1, f"lines of {done.stdout!r}")
        answer = json.loads(done.stdout)
        return done.returncode, {f["check"]: f for f in answer["findings"]}

    def expect(self, name, health, *words, remedy=None):
        code, findings = self.run()
        check(name in findings, f"no finding {name} in {sorted(findings)}")
        finding = findings[name]
        check_equal(finding["health"], health, f"health of {finding}")
        for word in words:
            check(word in finding["why"], f"'{word}' is not said: {finding}")
        if remedy is not None:
            check(remedy in finding["remedy"], f"the remedy '{remedy}' is not said: {finding}")
        check(health == "ok" or finding["remedy"], f"no remedy: {finding}")
        check_equal(code, 1 if any(f["health"] == "error" for f in findings.values()) else 0, "exit code")
        return finding


def library(path, soname, source="", needs=(), rpath=None):
    """A real shared library. needs: paths of libraries it is linked with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = ["cc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-x", "none", "-o", str(path), f"-Wl,-soname,{soname}",
            "-Wl,--no-as-needed", *map(str, needs)]
    if rpath:
        argv += [f"-Wl,-rpath,{rpath}", "-Wl,--disable-new-dtags"]
    done = subprocess.run(argv, input=source.encode(), capture_output=True, timeout=TIME_LIMIT_S)
    check_equal((done.returncode, done.stderr), (0, b""), f"the compiler on {path}")
    return path


def nccl(path, version):
    return library(path, "libnccl.so.2", f'const char what[] = "NCCL version {version}+cuda12.4";')


def plugin(folder, needs=()):
    return library(folder / "libnccl-net.so", "libnccl-net.so", "int ncclNetPlugin_v8 = 1;", needs)


def needed(path):
    """DT_NEEDED, by binutils and not by us."""
    out = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True).stdout
    return [line.split("[")[1].split("]")[0] for line in out.splitlines() if "(NEEDED)" in line]


def torch(node, version="2.13.0+cu126", cuda="'12.6'", nccl_version="2.29.7", wheel=True):
    """A torch that is all a folder tree can tell, and that says so loudly when somebody imports it."""
    site = node.context.dir / "site"
    folder = site / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f"open({str(node.context.dir / 'imported')!r}, 'w').close()\n")
    (folder / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n"
                                       "hip: Optional[str] = None\nxpu: Optional[str] = None\n")
    if wheel:
        own = nccl(site / "nvidia" / "nccl" / "lib" / "libnccl.so.2", nccl_version)
        library(folder / "lib" / "libtorch_cuda.so", "libtorch_cuda.so", needs=[own], rpath="$ORIGIN/../../nvidia/nccl/lib")
    node.env["PYTHONPATH"] = str(site)
    return folder


def four_gpus(node, *changed, **more):
    gpus = [{} for _ in range(4)]
    for i, fields in changed:
        gpus[i] = fields
    return node.tool("nvidia-smi", gpus=gpus, **more)


def perlmutter(context, **settings):
    """A Perlmutter node of a job with everything in place."""
    node = Node(context, "perlmutter")
    node.env |= {**SETTINGS, **settings}
    plugin(context.dir / "modules" / "nccl" / "plugin")
    node.env["LD_LIBRARY_PATH"] = str(context.dir / "modules" / "nccl" / "plugin")
    return node


# ---- nothing wrong


@scenario
def this_machine_has_no_error(context):
    """A machine that nobody described, without a GPU and outside any job: no error, and code 0."""
    node = Node(context, "generic", job=False)
    code, findings = node.run()
    errors = [f for f in findings.values() if f["health"] == "error"]
    check_equal((code, errors), (0, []), "exit code and errors")
    check(len(findings) >= 15, f"only {sorted(findings)}")


@scenario
def a_perlmutter_node_in_order_has_only_what_this_machine_lacks(context):
    """Four GPUs, the plugin, torch, the settings: nothing but what this machine's own limits are."""
    node = four_gpus(perlmutter(context))
    torch(node)
    code, findings = node.run()
    own = {"locked-memory", "memory", "memory-limit", "shm", "tmp", "open-files", "processes", "stack"}
    bad = [f for f in findings.values() if f["health"] != "ok" and f["check"] not in own]
    check_equal(bad, [], "findings that are not ok")
    check("4 NVIDIA devices" in findings["gpus"]["why"], findings["gpus"])
    check("2.29.7" in findings["mapped-nccl"]["why"], findings["mapped-nccl"])
    check(not (context.dir / "imported").exists(), "torch was imported")


# ---- GPUs


@scenario
def a_gpu_is_missing(context):
    """nvidia-smi lists three of Perlmutter's four GPUs: an error with both figures, and the node's name."""
    node = perlmutter(context).tool("nvidia-smi", gpus=[{}, {}, {}])
    listed = subprocess.run(["nvidia-smi", "-L"], env=node.env, capture_output=True, text=True, check=True).stdout
    check_equal(listed.count("GPU "), 3, "GPUs that the tool lists")
    node.expect("gpus", "error", "3 NVIDIA devices", "says 4", remedy="--exclude " + os.uname().nodename)


@scenario
def the_driver_and_its_library_do_not_fit(context):
    """nvidia-smi fails with NVML's own message: told in its words, as an error."""
    fault = "Failed to initialize NVML: Driver/library version mismatch"
    node = perlmutter(context).tool("nvidia-smi", fail=fault, code=18)
    failed = subprocess.run(["nvidia-smi", "-L"], env=node.env, capture_output=True, text=True, check=False)
    check_equal((failed.returncode, failed.stdout.strip()), (18, fault), "the tool's answer")
    node.expect("gpus", "error", fault, remedy="--exclude")


@scenario
def a_gpu_has_uncorrectable_errors(context):
    """Uncorrectable ECC errors of one GPU: an error that names it."""
    node = four_gpus(perlmutter(context), (2, {"ecc.errors.uncorrected.volatile.total": "7"}))
    node.expect("gpu-health", "error", "GPU 2", "7 uncorrectable", remedy="--exclude")
    check(any("ecc.errors" in " ".join(c) for c in node.calls()), f"nobody asked for errors: {node.calls()}")


@scenario
def a_gpu_waits_for_its_rows_to_be_remapped(context):
    """A pending row remap is a warning: the GPU needs a reset."""
    node = four_gpus(perlmutter(context), (1, {"remapped_rows.pending": "Yes"}))
    node.expect("gpu-health", "warning", "GPU 1", "remapped", remedy="report the node")
    check(any("--query-remapped-rows" in c[0] for c in node.calls()), f"nobody asked for rows: {node.calls()}")


@scenario
def an_old_driver_does_not_know_a_field(context):
    """A field that the driver does not know is left out, and the rest is asked without it."""
    node = four_gpus(perlmutter(context), (3, {"ecc.errors.uncorrected.volatile.total": "1"}), unknown=["retired_pages.pending"])
    node.expect("gpu-health", "error", "GPU 3", "1 uncorrectable")
    refused = [c for c in node.calls() if "retired_pages.pending" in c[0]]
    check(refused and len(node.calls()) > len(refused), f"the fault was never there: {node.calls()}")


@scenario
def a_tool_that_hangs_is_given_up(context):
    """nvidia-smi hangs, as it does with a GPU that fell off the bus: given up in time and told."""
    node = perlmutter(context).tool("nvidia-smi", gpus=[], hang=True)
    node.flags = ["--patience", "1"]
    start = time.monotonic()
    node.expect("gpus", "error", "nvidia-smi")
    check(node.calls(), "the tool was never asked")
    check(time.monotonic() - start < 30, "it was not given up in time")


@scenario
def aurora_counts_tiles(context):
    """Six cards of two tiles are Aurora's twelve; with five an error says ten."""
    node = Node(context, "aurora").tool("xpu-smi", count=6)
    if any(Path("/sys/class/drm").glob("card*")):
        raise Skip("this machine has display cards of its own")
    node.expect("gpus", "ok", "12 Intel devices on 6 cards")
    node.env["FAKE_GPUS"] = json.dumps({"count": 5})
    node.expect("gpus", "error", "10 Intel devices", "says 12")


@scenario
def frontier_has_lost_a_die(context):
    """rocm-smi lists seven of eight dies."""
    node = Node(context, "frontier").tool("rocm-smi", count=7)
    if Path("/sys/class/kfd").exists():
        raise Skip("this machine has AMD GPUs")
    node.expect("gpus", "error", "7 AMD devices", "says 8")


@scenario
def a_variable_hides_devices(context):
    """CUDA_VISIBLE_DEVICES left from an earlier run shows one of four."""
    node = four_gpus(perlmutter(context, CUDA_VISIBLE_DEVICES="0"))
    node.expect("gpu-visibility", "warning", "1 of 4", remedy="unset CUDA_VISIBLE_DEVICES")


# ---- the network plugin


@scenario
def the_network_plugin_is_missing(context):
    """No libnccl-net on the search path: an error with the price, and what to type."""
    node = four_gpus(perlmutter(context))
    del node.env["LD_LIBRARY_PATH"], node.env["NCCL_NET"]
    check("libnccl-net" not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout,
          "this machine has a plugin of its own")
    node.expect("network-plugin", "error", "libnccl-net.so", "8.3 times slower", remedy="module load nccl/2.24.3")
    node.env["NCCL_NET"] = "AWS Libfabric"
    node.expect("network-plugin", "error", "fails when the job starts", remedy="module load nccl/2.24.3")


@scenario
def the_plugin_needs_a_library_that_is_not_there(context):
    """A plugin that was built with a libfabric which no module has loaded cannot be loaded: named."""
    node = four_gpus(perlmutter(context))
    folder = context.dir / "modules" / "nccl" / "plugin"
    fabric = library(context.dir / "fabric" / "libfabric.so.99", "libfabric.so.99", "int fi_version;")
    path = plugin(folder, needs=[fabric])
    check_equal(needed(path), ["libfabric.so.99"], "what the plugin needs")
    shutil.rmtree(context.dir / "fabric")
    loaded = subprocess.run(["/usr/bin/ldd", str(path)], env=node.env, capture_output=True, text=True, check=False).stdout
    check("libfabric.so.99 => not found" in loaded, f"the loader finds it: {loaded}")
    node.expect("network-plugin", "error", "libfabric.so.99", remedy="ldd")


@scenario
def the_plugin_is_no_library(context):
    """A text file of the plugin's name, such as a pointer of a broken copy."""
    node = four_gpus(perlmutter(context))
    path = context.dir / "modules" / "nccl" / "plugin" / "libnccl-net.so"
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    node.expect("network-plugin", "error", "not an ELF file")


@scenario
def nccl_is_told_to_use_tcp(context):
    """NCCL_NET=Socket on a machine with Slingshot."""
    node = four_gpus(perlmutter(context, NCCL_NET="Socket"))
    node.expect("network-plugin", "error", "NCCL_NET='Socket'", "8.3 times slower", remedy="export NCCL_NET='AWS Libfabric'")


# ---- torch and its NCCL


@scenario
def the_nccl_module_is_inert(context):
    """A module's libnccl on LD_LIBRARY_PATH loses to the one in torch's RPATH: both versions are told."""
    node = four_gpus(perlmutter(context))
    torch(node, nccl_version="2.29.7")
    module = nccl(context.dir / "modules" / "nccl" / "lib" / "libnccl.so.2", "2.24.3")
    node.env["LD_LIBRARY_PATH"] += f":{module.parent}"
    # The loader itself is the witness.
    by = context.dir / "site" / "torch" / "lib" / "libtorch_cuda.so"
    traced = subprocess.run(["/usr/bin/ldd", str(by)], env=node.env, capture_output=True, text=True, check=True).stdout
    check("nvidia/nccl/lib/libnccl.so.2" in traced, f"the loader does not take torch's own: {traced}")
    node.expect("mapped-nccl", "warning", "2.29.7", "2.24.3", "is inert", "RPATH of libtorch_cuda.so", remedy="LD_PRELOAD")
    node.env["LD_PRELOAD"] = str(module)
    finding = node.run()[1]["mapped-nccl"]
    check_equal(finding["health"], "ok", f"preloaded: {finding}")
    check("2.24.3" in finding["why"], f"the preloaded one is not what is mapped: {finding}")
    check(not (context.dir / "imported").exists(), "torch was imported")


@scenario
def torch_was_built_for_cpus(context):
    """A CPU build of torch on a node with NVIDIA's GPUs."""
    node = four_gpus(perlmutter(context))
    torch(node, version="2.8.0+cpu", cuda="None", wheel=False)
    node.expect("torch", "error", "2.8.0+cpu", "CPUs only", "NVIDIA")


@scenario
def torch_is_newer_than_the_driver(context):
    """A torch for CUDA 13 over a driver for CUDA 12."""
    node = four_gpus(perlmutter(context), cuda="12.4")
    torch(node, version="2.13.0+cu130", cuda="'13.0'")
    node.expect("torch", "warning", "CUDA 13.0", "12.4")


@scenario
def compile_on_an_old_torch(context):
    """--compile with torch 2.8 is a known issue, with 2.13 it is none, and the module is not imported."""
    node = four_gpus(perlmutter(context))
    folder = torch(node, version="2.8.0+cu126")
    node.command = ["python3", "train.py", "--compile"]
    node.expect("known-issue:compile-fsdp2-old-torch", "warning", "torch 2.8.0+cu126", "aborts", remedy="pytorch/2.13.0")
    (folder / "version.py").write_text("__version__ = '2.13.0+cu126'\ncuda = '12.6'\n")
    check("known-issue:compile-fsdp2-old-torch" not in node.run()[1], "told with torch 2.13")
    check(not (context.dir / "imported").exists(), "torch was imported")


@scenario
def a_python_that_does_not_answer_is_unknown(context):
    """An interpreter that hangs makes what rests on it unknown: neither ok nor an error."""
    node = four_gpus(perlmutter(context))
    stuck = context.dir / "python3.11"
    stuck.write_text("#!/bin/sh\nexec sleep 3600\n")
    stuck.chmod(0o755)
    node.command = [str(stuck), "train.py", "--compile"]
    node.flags = ["--patience", "1"]
    node.expect("torch", "unknown")
    node.expect("mapped-nccl", "unknown")
    node.expect("known-issue:compile-fsdp2-old-torch", "unknown", "not known")


# ---- MPI


def mpi4py(node, gtl):
    site = node.context.dir / "mpisite"
    mpi = library(node.context.dir / "mpi" / "libmpi_gnu_123.so.12", "libmpi_gnu_123.so.12", "int MPI_Init;")
    needs = [mpi]
    if gtl:
        needs.append(library(node.context.dir / "mpi" / "libmpi_gtl_cuda.so.0", "libmpi_gtl_cuda.so.0", "int gtl;"))
    module = library(site / "mpi4py" / "MPI.cpython-311-x86_64-linux-gnu.so", "MPI.so", needs=needs)
    (site / "mpi4py" / "__init__.py").write_text("raise SystemExit('imported')\n")
    node.env["PYTHONPATH"] = str(site)
    return module


@scenario
def mpich_wants_a_gpu_library_that_nobody_linked(context):
    """MPICH_GPU_SUPPORT_ENABLED=1 and an mpi4py without libmpi_gtl: an error with the variable to set."""
    node = four_gpus(perlmutter(context, MPICH_GPU_SUPPORT_ENABLED="1"))
    module = mpi4py(node, gtl=False)
    check_equal(needed(module), ["libmpi_gnu_123.so.12"], "what mpi4py needs")
    node.expect("mpich-gtl", "error", "libmpi_gnu_123.so.12", "segmentation fault",
                remedy="export MPICH_GPU_SUPPORT_ENABLED=0")
    node.env["MPICH_GPU_SUPPORT_ENABLED"] = "0"
    node.expect("mpich-gtl", "ok")


@scenario
def mpich_finds_its_gpu_library(context):
    """The same with libmpi_gtl linked is in order."""
    node = four_gpus(perlmutter(context, MPICH_GPU_SUPPORT_ENABLED="1"))
    check("libmpi_gtl_cuda.so.0" in needed(mpi4py(node, gtl=True)), "libmpi_gtl is not linked")
    node.expect("mpich-gtl", "ok", "libmpi_gtl")


# ---- limits


def limit(which, amount):
    def set_it():
        resource.setrlimit(which, (amount, resource.getrlimit(which)[1]))

    return set_it


@scenario
def few_files_may_be_open(context):
    """ulimit -n 512: a warning with the figure, and the hard limit to raise it to."""
    node = Node(context, "generic", job=False)
    node.limits = limit(resource.RLIMIT_NOFILE, 512)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    node.expect("open-files", "warning", "open files: 512", remedy=f"ulimit -n {hard}" if hard >= 4096 else "ask the site")


@scenario
def the_stack_is_small(context):
    """ulimit -s 1024."""
    node = Node(context, "generic", job=False)
    node.limits = limit(resource.RLIMIT_STACK, 1 << 20)
    node.expect("stack", "warning", "1.0 MiB", remedy="ulimit -s")


@scenario
def little_memory_may_be_locked(context):
    """64 KiB of locked memory on a machine whose network registers memory."""
    node = four_gpus(perlmutter(context))
    node.limits = limit(resource.RLIMIT_MEMLOCK, 64 << 10)
    node.expect("locked-memory", "warning", "64.0 KiB", remedy="ulimit -l unlimited")


@scenario(root="mounts a small file system")
def tmp_is_full(context):
    """TMPDIR on a file system without room: an error with the figures."""
    folder = context.dir / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True, timeout=TIME_LIMIT_S)
    context.at_end(lambda: subprocess.run(["umount", str(folder)], check=True, timeout=TIME_LIMIT_S))
    (folder / "filler").write_bytes(b"x" * (1 << 20))
    check_equal(os.statvfs(folder).f_bavail, 0, "blocks free")
    node = Node(context, "generic", job=False)
    node.env["TMPDIR"] = str(folder)
    node.expect("tmp", "error", str(folder), "0 B free of 1.0 MiB", remedy="TMPDIR")


@scenario
def tmp_is_not_there(context):
    """A TMPDIR that does not exist was not seen, and is not called healthy."""
    node = Node(context, "generic", job=False)
    node.env["TMPDIR"] = str(context.dir / "nowhere")
    check(not (context.dir / "nowhere").exists(), "it is there")
    node.expect("tmp", "unknown", "No such file")


# ---- known issues, hostile text


@scenario
def a_recommended_setting_is_missing(context):
    """FI_MR_CACHE_MONITOR unset on Slingshot, with the deadlock it stands for; on one node nobody asks."""
    node = four_gpus(perlmutter(context))
    del node.env["FI_MR_CACHE_MONITOR"]
    finding = node.expect("known-issue:mr-cache-monitor", "warning", "deadlock", "FI_MR_CACHE_MONITOR is not set",
                          remedy="export FI_MR_CACHE_MONITOR=userfaultfd")
    check("libfabric" in finding["reference"], finding)


@scenario
def a_lora_that_hangs(context):
    """--lora-rank 8 with attn,mlp on Perlmutter: an error before the job; with rank 32 none."""
    node = four_gpus(perlmutter(context))
    node.command = ["python3", "-m", "train", "--lora-rank=8", "--lora-target", "attn,mlp"]
    node.expect("known-issue:lora-small-rank-hang", "error", "--lora-rank 8", remedy="--lora-rank 18")
    node.command[3] = "--lora-rank=32"
    check("known-issue:lora-small-rank-hang" not in node.run()[1], "told of rank 32")


@scenario
def a_sites_own_known_issues(context):
    """--known-issues-dir adds a file, and a mistake in it is told with its line."""
    folder = context.dir / "issues"
    folder.mkdir()
    rule = '[[issue]]\nid = "ours"\nvariables = { OUR_SWITCH = "on" }\ntext = "it breaks"\nremedy = "unset OUR_SWITCH"\n'
    (folder / "site.toml").write_text(rule)
    node = Node(context, "generic", job=False)
    node.flags = ["--known-issues-dir", str(folder)]
    check("known-issue:ours" not in node.run()[1], "told without its cause")
    node.env["OUR_SWITCH"] = "on"
    node.expect("known-issue:ours", "warning", "it breaks", remedy="unset OUR_SWITCH")
    (folder / "site.toml").write_text(rule.replace("remedy", "remady"))
    done = subprocess.run([str(context.ezpz), "doctor-node", *node.flags], capture_output=True, text=True, env=node.env,
                          timeout=TIME_LIMIT_S, check=False)
    check_equal(done.returncode, 2, "exit code")
    check("site.toml:5" in done.stderr and "did you mean 'remedy'" in done.stderr, done.stderr)


@scenario
def values_cannot_speak_to_the_terminal_nor_tell_secrets(context):
    """Control bytes of a variable are not printed raw, and a secret beside them is not printed at all."""
    node = four_gpus(perlmutter(context, FI_MR_CACHE_MONITOR="\x1b]0;owned\x07", NCCL_SOCKET_IFNAME="\x9bx\n",
                                CUDA_VISIBLE_DEVICES="\x1b[2J", HF_TOKEN="hf_hunter2", PBS_JOBCOOKIE="hunter2"))
    node.env["LD_LIBRARY_PATH"] += ":/no/\x1b[31mwhere"
    _, findings = node.run()
    check("known-issue:mr-cache-monitor" in findings, "the value was never looked at")
    for finding in findings.values():
        text = " ".join(finding.values())
        check("hunter2" not in text, f"a secret is told: {finding}")
        check(not [c for c in text if ord(c) < 32 or ord(c) == 127], f"control bytes: {finding!r}")


if __name__ == "__main__":
    raise SystemExit(main("doctor_node"))
