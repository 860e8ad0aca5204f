// "network-plugin": NCCL or RCCL reaches a network such as Slingshot through a plugin only. Without
// it it falls back to TCP and says nothing: 8.3 times slower between nodes was measured, and
// published.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/node_sight.h"
#include "doctor/safe_text.h"

namespace ezpz::doctor {
namespace {

constexpr const char* kCheck = "network-plugin";

bool is_built_in(const std::string& network) {
  const std::string name = lower(network);
  return name == "socket" || name == "ib";
}

std::string remedy_of(const site::Machine& machine) {
  if (!machine.network_remedy.empty()) return machine.network_remedy;
  return "put the folder that holds libnccl-net.so on LD_LIBRARY_PATH";
}

// Drivers' own libraries are on nodes with a device only.
bool is_drivers(const std::string& library) {
  return library.starts_with("libcuda.so") || library.starts_with("libnvidia-ml.so") ||
         library.starts_with("libze_loader.so");
}

std::string price(const site::Machine& machine) {
  return fmt::format(
      "NCCL then uses TCP and not {}, without an error: measured 8.3 times slower "
      "between nodes",
      machine.network);
}

Finding nothing_found(const NodeSight& sight, const NodeContext& context) {
  const Libraries& libraries = sight.libraries;
  const std::string name = printable(libraries.net_plugin_name, 120);
  const auto net = site::get(sight.env, "NCCL_NET");
  if (!libraries.silent_folders.empty()) {
    return {kCheck, Health::unknown,
            fmt::format("no {} found, but {} of LD_LIBRARY_PATH did not answer", name,
                        printable(join(libraries.silent_folders, ", "), 200)),
            "see whether the file system of that folder hangs", ""};
  }
  if (net && !is_built_in(*net)) {
    return {kCheck, Health::error,
            fmt::format("no {} on the library search path, and {} forbids NCCL to do without: it "
                        "fails when the job starts",
                        name, shown("NCCL_NET", *net)),
            remedy_of(context.machine), ""};
  }
  if (context.machine.network.empty()) {
    return {kCheck, Health::ok, "this machine's table names no network that needs a plugin of NCCL",
            "", ""};
  }
  if (context.nodes == 1) {
    return {kCheck, Health::ok,
            fmt::format("no {} found, but the job has one node; before a job of several: {}", name,
                        remedy_of(context.machine)),
            "", ""};
  }
  return {kCheck, Health::error,
          fmt::format("no {} on the library search path: {}", name, price(context.machine)),
          remedy_of(context.machine), ""};
}

// The plugin is there: can it be loaded, and will it be used?
Finding found(const FoundLibrary& plugin, const NodeSight& sight, const NodeContext& context) {
  const std::string path = printable(plugin.path, 200);
  if (!plugin.unfit.empty()) {
    return {kCheck, Health::error,
            fmt::format("{} cannot be used: {}; {}", path, printable(plugin.unfit, 120),
                        price(context.machine)),
            remedy_of(context.machine), ""};
  }
  if (!plugin.missing.empty()) {
    const bool only_drivers = std::all_of(plugin.missing.begin(), plugin.missing.end(), is_drivers);
    return {kCheck, only_drivers && !context.in_job ? Health::warning : Health::error,
            fmt::format("{} cannot be loaded: it needs {}, which the loader does not find; {}",
                        path, printable(join(plugin.missing, ", "), 200), price(context.machine)),
            "load the modules it was built with (ldd " + path + " lists what is missing)", ""};
  }
  const auto net = site::get(sight.env, "NCCL_NET");
  const std::string& wanted = context.machine.network;
  if (net && lower(*net) != lower(wanted)) {
    return {kCheck, is_built_in(*net) ? Health::error : Health::warning,
            fmt::format("{} is there, but {} where this machine's table says '{}'{}", path,
                        shown("NCCL_NET", *net), wanted,
                        is_built_in(*net) ? ": " + price(context.machine) : ""),
            "export NCCL_NET='" + wanted + "'", ""};
  }
  std::string text = path;
  if (!plugin.interfaces.empty())
    text += " (" + printable(join(plugin.interfaces, ", "), 200) + ")";
  text += ", and all it needs is found";
  text += net ? "; " + shown("NCCL_NET", *net)
              : "; with NCCL_NET='" + wanted + "' NCCL would stop rather than fall back to TCP";
  return {kCheck, Health::ok, text, "", ""};
}

}  // namespace

std::vector<Finding> check_network_plugin(const NodeSight& sight, const NodeContext& context) {
  const site::Machine& machine = context.machine;
  const auto net = site::get(sight.env, "NCCL_NET");
  const auto plugin_variable = site::get(sight.env, "NCCL_NET_PLUGIN");
  if (!machine.network.empty() && plugin_variable && lower(*plugin_variable) == "none" &&
      context.nodes != 1) {
    return {{kCheck, Health::error,
             shown("NCCL_NET_PLUGIN", *plugin_variable) + " forbids the plugin: " + price(machine),
             "unset NCCL_NET_PLUGIN", ""}};
  }
  if (!sight.libraries.net_plugin) {
    return {{kCheck, Health::unknown,
             "the plugin could not be looked for: " + sight.libraries.net_plugin.why_not(),
             "look for libnccl-net.so in the folders of LD_LIBRARY_PATH", ""}};
  }
  if (!*sight.libraries.net_plugin) return {nothing_found(sight, context)};
  if (machine.network.empty()) {
    return {{kCheck, Health::ok,
             printable((*sight.libraries.net_plugin)->path, 200) +
                 " is there; this machine's table does not ask for one",
             "", ""}};
  }
  return {found(**sight.libraries.net_plugin, sight, context)};
}

}  // namespace ezpz::doctor
