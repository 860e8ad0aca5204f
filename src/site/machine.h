// Machines are data: machines/*.toml, built in, each replaceable by a file of the same name in a
// directory; a new cluster is a new file there.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "base/result.h"
#include "site/environment.h"

namespace ezpz::site {

struct EnvMarker {
  std::string name;   // NERSC_HOST
  std::string value;  // glob: "perlmutter"
};

struct Machine {
  std::string name;   // "perlmutter": what --machine takes
  std::string title;  // "Perlmutter (NERSC)"
  // Globs (base/node.h). hostnames belong to this machine alone; shared_hostnames fit it but also
  // others (every HPE Cray has x1234c5s6b0n0 or nid001234), so any better sign outranks them.
  std::vector<std::string> hostnames;
  std::vector<std::string> shared_hostnames;
  std::vector<std::string> fqdns;
  std::vector<std::string> clusters;  // SLURM's ClusterName, or the server in a PBS job id
  std::vector<EnvMarker> env;
  int gpus_per_node = 0;  // devices a rank can own (tiles, GCDs); 0: none or unknown
  int cpus_per_node = 0;  // CPUs as the scheduler counts them (hardware threads); 0: unknown
  std::string scheduler;  // "slurm", "pbs", or empty: unknown
  std::string launcher;   // "srun", "pals", "openmpi", ..., or empty: unknown
  // PALS: --cpu-bind by the number of ranks on a node, as the site recommends it.
  std::map<int, std::string> cpu_bind;
  bool label_output = false;  // PALS: its messages lack the host unless lines are labelled
  // What a job there must ask for, where the site wants it said.
  std::string pbs_select;        // of each chunk: "system=polaris"
  std::string pbs_place;         // "scatter"
  std::string pbs_filesystems;   // "home:eagle"
  std::string slurm_constraint;  // "gpu"
  std::string network;  // what NCCL/RCCL must say it uses: "AWS Libfabric"; empty: no expectation
  std::string network_remedy;  // what to type where that is missing: "module load nccl/2.24.3"
  NodeNaming naming;
  std::string notes;
};

// The built-in machines, overridden and extended by *.toml in override_dir unless that is empty.
// Always holds one named "generic". Sorted by name.
Result<std::vector<Machine>> load_machines(const std::string& override_dir = "");

// One file's text; source_name is for messages ("machines/perlmutter.toml").
Result<Machine> parse_machine(std::string_view toml_text, const std::string& source_name);

// What any of these machines takes off a name, but for patterns that would take off every domain:
// for logs from a machine that nobody named.
NodeNaming naming_of_all(const std::vector<Machine>&);

// The machine of that name, or null.
const Machine* find_machine(const std::vector<Machine>&, std::string_view name);

struct Identity {
  std::string hostname;  // first label or the whole of what gethostname() said
  std::string fqdn;      // empty: unknown
  std::string cluster;   // empty: unknown
  Environment env;
};

struct Detection {
  Machine machine;     // "generic" when nothing fits
  std::string why;     // one sentence: 'host name "nid001304" matches "nid######"'
  bool known = false;  // false: generic
};

// By host name, full name, scheduler's cluster name, environment, in that order.
Detection detect_machine(const std::vector<Machine>&, const Identity&);

// --machine NAME: the error lists the names and suggests the nearest.
Result<Detection> named_machine(const std::vector<Machine>&, const std::string& name);

}  // namespace ezpz::site
