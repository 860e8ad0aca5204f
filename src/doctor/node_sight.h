// What one node can say of itself: everything the node-local checks read, and the checks.
//
//   look_at_node()  the only part that touches the system (look_*.cc); every child process and
//   every
//                   path that may lie on a file system that hangs is bounded in time
//   check_node()    pure: what was seen -> findings, one file a topic (gpus.cc, limits.cc, ...)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/process.h"
#include "base/result.h"
#include "doctor/check.h"
#include "doctor/known_issues.h"
#include "site/environment.h"
#include "site/machine.h"

namespace ezpz::doctor {

// What was seen, or why it could not be.
template <class T>
class Seen {
 public:
  Seen() = default;                            // nobody looked
  Seen(T value) : value_(std::move(value)) {}  // NOLINT: a value has been seen
  static Seen not_seen(const std::string& because) {
    Seen seen;
    seen.why_not_ = because;
    return seen;
  }
  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  T* operator->() { return &*value_; }
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  std::optional<T> value_;
  std::string why_not_ = "nobody looked";
};

// ---- GPUs

enum class GpuVendor { none, nvidia, amd, intel };

// What a tool or the kernel tells of one device's hardware. Nothing: not told.
struct GpuHealth {
  std::string name;  // "GPU 2 (00000000:C1:00.0)"
  std::string bus_id;
  bool lost = false;
  std::optional<long> uncorrected_ecc;  // since the driver was loaded
  std::optional<long> retired_pages;    // double-bit
  std::optional<bool> retirement_pending;
  std::optional<long> remapped_rows;  // for uncorrectable errors
  std::optional<bool> remapping_pending;
  std::optional<bool> remapping_failed;
  std::string compute_mode;  // "Default", "Prohibited"
};

struct Gpus {
  GpuVendor vendor = GpuVendor::none;
  int devices = 0;     // that a rank can own: GPUs, MI250X dies, PVC tiles
  int cards = 0;       // 0: not told apart
  std::string source;  // who said so: "nvidia-smi -L", "/sys/class/kfd"
  int on_bus = 0;      // of this vendor, by the kernel's list of PCI devices
  bool mig = false;    // NVIDIA's, cut into instances
  std::vector<GpuHealth> health;
  // A tool that is there and fails, in its own words: "nvidia-smi: Failed to initialize NVML: ..."
  std::vector<std::string> tool_trouble;
  std::string driver;       // version; empty: not told
  std::string driver_cuda;  // newest CUDA that the driver serves, "12.4"; empty: not told
};

// ---- limits

constexpr uint64_t kUnlimited = UINT64_MAX;

struct Space {
  uint64_t total = 0;   // bytes
  uint64_t free = 0;    // to this user
  bool shared = false;  // a file system that other nodes see too (Lustre, GPFS, NFS, ...)
};

struct Limits {
  Seen<uint64_t> locked_memory;  // bytes; kUnlimited
  Seen<uint64_t> open_files;
  Seen<uint64_t> open_files_hard;
  Seen<uint64_t> processes;
  Seen<uint64_t> stack;      // bytes
  Seen<uint64_t> core_size;  // bytes
  Seen<Space> shm;           // /dev/shm
  std::string tmp_path;
  Seen<Space> tmp;
  Seen<Space> working_folder;
  Seen<uint64_t> memory_total;
  Seen<uint64_t> memory_available;
  Seen<uint64_t> swap_total;
  Seen<uint64_t> swap_free;
  Seen<uint64_t> cgroup_memory;       // the lowest limit above this process; kUnlimited
  Seen<uint64_t> cgroup_memory_used;  // under that limit
  Seen<std::string> core_pattern;
};

// ---- libraries

// One that a search came to.
struct FoundLibrary {
  std::string path;
  std::string version;                  // empty: not told
  std::vector<std::string> missing;     // what it needs, and the loader would not find
  std::string unfit;                    // why it cannot be loaded at all ("not an ELF file", ...)
  std::vector<std::string> interfaces;  // of a NCCL plugin: "ncclNetPlugin_v8"
};

struct Libraries {
  // The file of NCCL's (or RCCL's) network plugin; no value inside: none is on the search path.
  Seen<std::optional<FoundLibrary>> net_plugin;
  std::string net_plugin_name;  // what was searched for: "libnccl-net.so"
  // libnccl.so.2 / librccl.so.1 on LD_LIBRARY_PATH: what a module put there.
  Seen<std::optional<FoundLibrary>> asked_nccl;
  std::vector<std::string> silent_folders;  // of the search path, that did not answer in time
};

// ---- Python

// Something that is linked with MPI: mpi4py's extension module, or the user's own program.
struct MpiUser {
  std::string path;
  std::vector<std::string> mpi_libraries;  // libmpi*.so that it needs
  bool gtl = false;                        // libmpi_gtl_* is among what they need, or preloaded
};

struct Torch {
  std::string path;     // its folder
  std::string version;  // "2.8.0+cu126"; empty: not told
  std::string cuda;     // "12.6"; empty: not built with it
  std::string hip;
  std::string xpu;
  // The NCCL that its library maps, by the loader's rules.
  Seen<FoundLibrary> mapped_nccl;
  bool nccl_built_in = false;  // into its library: no file is mapped
  std::string nccl_nowhere;    // the name its library needs and the loader would not find
  std::string mapped_because;  // "RPATH of libtorch_cuda.so", "LD_PRELOAD", "LD_LIBRARY_PATH", ...
};

struct Python {
  std::string path;                  // the interpreter asked
  std::string version;               // "3.11.7"
  Seen<std::optional<Torch>> torch;  // no value inside: it has none
  Seen<std::optional<MpiUser>> mpi4py;
};

struct NodeSight {
  std::string hostname;
  site::Environment env;
  Seen<Gpus> gpus;
  Limits limits;
  Libraries libraries;
  Seen<Python> python;
  // The command's program when it is a binary linked with MPI; no value inside: it is something
  // else.
  Seen<std::optional<MpiUser>> program;
};

struct NodeRequest {
  // The user's command, as after `--`; empty: none given. Its interpreter is the Python asked when
  // its first word is one (python3, /path/.venv/bin/python).
  Argv command;
  std::string python;      // ask this one instead; empty: the command's, else python3 of PATH
  double patience_s = 10;  // for each child, and for the file systems together
};

// Seconds at the worst; whatever fails is in the sight as not seen.
NodeSight look_at_node(Loop&, const NodeRequest&);

// What the checks need beside the sight.
struct NodeContext {
  site::Machine machine;
  Argv command;         // the user's; empty: none given
  int nodes = 0;        // that the job is to run on; 0: unknown
  bool in_job = false;  // on a node of a job; else perhaps a login node, which has other hardware
  std::vector<KnownIssue> issues;  // load_known_issues()
};

// Every node-local check, always in the same order. Texts hold no control bytes and no value of a
// variable that may be a secret.
std::vector<Finding> check_node(const NodeSight&, const NodeContext&);

// By topic, each at least one finding.
std::vector<Finding> check_gpus(const NodeSight&, const NodeContext&);
std::vector<Finding> check_limits(const NodeSight&, const NodeContext&);
std::vector<Finding> check_network_plugin(const NodeSight&, const NodeContext&);
std::vector<Finding> check_torch(const NodeSight&, const NodeContext&);
std::vector<Finding> check_mapped_nccl(const NodeSight&, const NodeContext&);
std::vector<Finding> check_mpich_gtl(const NodeSight&, const NodeContext&);
std::vector<Finding> check_known_issues(const NodeSight&, const NodeContext&);

}  // namespace ezpz::doctor
