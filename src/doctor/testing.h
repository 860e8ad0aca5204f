// For tests: a node with nothing wrong, to be broken one thing at a time, and small ELF files.
#pragma once

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/elf.h"
#include "doctor/node_sight.h"

namespace ezpz::doctor {

inline site::Machine a_machine(const std::string& name) {
  const auto machines = site::load_machines();
  return *site::find_machine(*machines, name);
}

inline NodeSight a_healthy_node() {
  constexpr uint64_t gib = 1ULL << 30U;
  NodeSight sight;
  sight.hostname = "nid001304";
  Gpus gpus;
  gpus.vendor = GpuVendor::nvidia;
  gpus.devices = gpus.cards = gpus.on_bus = 4;
  gpus.source = "nvidia-smi -L";
  gpus.driver = "550.127.08";
  gpus.driver_cuda = "12.4";
  for (int i = 0; i < 4; ++i) {
    GpuHealth health;
    health.name = "GPU " + std::to_string(i);
    health.compute_mode = "Default";
    health.uncorrected_ecc = health.remapped_rows = 0;
    health.remapping_pending = health.remapping_failed = false;
    gpus.health.push_back(health);
  }
  sight.gpus = gpus;
  Limits& limits = sight.limits;
  limits.locked_memory = limits.stack = limits.processes = kUnlimited;
  limits.open_files = limits.open_files_hard = uint64_t{65536};
  limits.core_size = uint64_t{0};
  limits.core_pattern = std::string("core");
  limits.shm = Space{128 * gib, 120 * gib, false};
  limits.tmp_path = "/tmp";
  limits.tmp = Space{100 * gib, 90 * gib, false};
  limits.working_folder = Space{1000 * gib, 900 * gib, true};
  limits.memory_total = 256 * gib;
  limits.memory_available = 240 * gib;
  limits.swap_total = limits.swap_free = uint64_t{0};
  limits.cgroup_memory = kUnlimited;
  sight.libraries.net_plugin_name = "libnccl-net.so";
  sight.libraries.net_plugin = std::optional<FoundLibrary>(
      FoundLibrary{"/opt/nccl/plugin/lib/libnccl-net.so", "", {}, "", {"ncclNetPlugin_v8"}});
  sight.libraries.asked_nccl = std::optional<FoundLibrary>();
  Torch torch;
  torch.path = "/env/lib/python3.11/site-packages/torch";
  torch.version = "2.13.0+cu126";
  torch.cuda = "12.6";
  torch.mapped_nccl = FoundLibrary{"/env/nvidia/nccl/lib/libnccl.so.2", "2.29.7", {}, "", {}};
  torch.mapped_because = "RPATH of libtorch_cuda.so";
  Python python;
  python.path = "/env/bin/python3";
  python.version = "3.11.7";
  python.torch = std::optional<Torch>(torch);
  python.mpi4py =
      std::optional<MpiUser>(MpiUser{"/env/mpi4py/MPI.so", {"libmpi_gnu_123.so.12"}, false});
  sight.python = python;
  sight.program = std::optional<MpiUser>();
  sight.env = {{"NCCL_NET", "AWS Libfabric"},
               {"NCCL_SOCKET_IFNAME", "hsn"},
               {"NCCL_CROSS_NIC", "1"},
               {"NCCL_NET_GDR_LEVEL", "PHB"},
               {"FI_CXI_DISABLE_HOST_REGISTER", "1"},
               {"FI_MR_CACHE_MONITOR", "userfaultfd"},
               {"FI_CXI_DEFAULT_CQ_SIZE", "131072"},
               {"CCL_PROCESS_LAUNCHER", "pmix"},
               {"CCL_ATL_TRANSPORT", "mpi"}};
  return sight;
}

// The torch of that node, to be changed; put it back with set_torch().
inline Torch torch_of(const NodeSight& sight) { return **sight.python->torch; }
inline void set_torch(NodeSight* sight, const std::optional<Torch>& torch) {
  sight->python->torch = torch;
}

inline NodeContext in_a_job_on(const std::string& machine) {
  NodeContext context;
  context.machine = a_machine(machine);
  context.nodes = 2;
  context.in_job = true;
  context.issues = *load_known_issues();
  return context;
}

inline const Finding* finding_of(const std::vector<Finding>& findings, const std::string& check) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& f) { return f.check == check; });
  return found == findings.end() ? nullptr : &*found;
}

struct ElfPlan {
  std::string soname = {};
  std::vector<std::string> needed = {};
  std::string rpath = {};
  std::string runpath = {};
  std::vector<std::string> names = {};  // in the string table beside
  std::string constants = {};           // a read-only section
  Elf64_Half machine = EM_X86_64;
};

inline std::string make_elf(const ElfPlan& plan) {
  std::string strings(1, '\0');
  const auto put = [&strings](const std::string& text) {
    const size_t at = strings.size();
    strings += text + '\0';
    return at;
  };
  std::vector<Elf64_Dyn> entries;
  const auto add = [&entries](Elf64_Sxword tag, uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    entries.push_back(entry);
  };
  for (const std::string& needed : plan.needed) add(DT_NEEDED, put(needed));
  if (!plan.soname.empty()) add(DT_SONAME, put(plan.soname));
  if (!plan.rpath.empty()) add(DT_RPATH, put(plan.rpath));
  if (!plan.runpath.empty()) add(DT_RUNPATH, put(plan.runpath));
  for (const std::string& name : plan.names) put(name);

  constexpr uint64_t base = 0x400000;  // addresses are not offsets
  const uint64_t dynamic_at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const uint64_t dynamic_size = (entries.size() + 3) * sizeof(Elf64_Dyn);
  const uint64_t strings_at = dynamic_at + dynamic_size;
  const uint64_t constants_at = strings_at + strings.size();
  const uint64_t sections_at = constants_at + plan.constants.size();
  add(DT_STRTAB, base + strings_at);
  add(DT_STRSZ, strings.size());
  add(DT_NULL, 0);

  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = plan.machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = sections_at;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_vaddr = base;
  load.p_filesz = sections_at;
  Elf64_Phdr dynamic{};
  dynamic.p_type = PT_DYNAMIC;
  dynamic.p_offset = dynamic_at;
  dynamic.p_filesz = dynamic_size;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_flags = SHF_ALLOC;
  section.sh_offset = constants_at;
  section.sh_size = plan.constants.size();

  std::string bytes;
  const auto append = [&bytes](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  append(&header, sizeof header);
  append(&load, sizeof load);
  append(&dynamic, sizeof dynamic);
  append(entries.data(), entries.size() * sizeof(Elf64_Dyn));
  bytes += strings + plan.constants;
  append(&section, sizeof section);
  return bytes;
}

inline ReadAt reader_of(const std::string& bytes) {
  return [bytes](uint64_t offset, size_t size, char* into) {
    if (offset > bytes.size() || size > bytes.size() - offset) return false;
    memcpy(into, bytes.data() + offset, size);
    return true;
  };
}

}  // namespace ezpz::doctor
