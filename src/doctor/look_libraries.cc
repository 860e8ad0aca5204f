// Which files the loader would map: NCCL's network plugin, the NCCL of torch, the MPI of mpi4py.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "doctor/look.h"

namespace ezpz::doctor {
namespace {

namespace fs = std::filesystem;

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

// "2.24.3" of libnccl.so.2.24.3: the file behind the links; what names no minor is no version.
std::string version_in_name(const std::string& path) {
  const std::string real = real_path(path);
  const std::string name = real.substr(real.rfind('/') + 1);
  const size_t at = name.find(".so.");
  if (at == std::string::npos) return "";
  const std::string version = name.substr(at + 4);
  return std::count(version.begin(), version.end(), '.') >= 2 ? version : "";
}

FoundLibrary nccl_at(const std::string& path) {
  FoundLibrary library;
  library.path = path;
  library.version = nccl_version_in_elf(path);
  if (library.version.empty()) library.version = version_in_name(path);
  return library;
}

// The plugin's file name, by NCCL's rules: NCCL_NET_PLUGIN is a suffix, a file name or a path.
std::vector<std::string> plugin_names(const site::Environment& env) {
  const auto named = site::get(env, "NCCL_NET_PLUGIN");
  if (!named) return {"libnccl-net.so", "librccl-net.so"};
  if (named->find('/') != std::string::npos || named->ends_with(".so")) return {*named};
  return {"libnccl-net-" + *named + ".so", "librccl-net-" + *named + ".so", *named};
}

const char* const kTorchLibraries[] = {"libtorch_cuda.so", "libtorch_hip.so"};
const char* const kNcclNames[] = {"libnccl.so.2", "librccl.so.1"};

bool has_gtl(const std::string& name) {
  return name.substr(name.rfind('/') + 1).starts_with("libmpi_gtl_");
}

}  // namespace

Libraries look_at_libraries(const site::Environment& env, const SearchPath& search,
                            const std::vector<std::string>& loaded_folders) {
  Libraries libraries;
  SearchPath of_plugin = search;
  of_plugin.loaded_folders = loaded_folders;
  const Loader plain(search, libraries_on_disk());
  const Loader loader(of_plugin, libraries_on_disk());
  const std::vector<std::string> names = plugin_names(env);
  libraries.net_plugin_name = names[0];
  std::optional<FoundLibrary> plugin;
  for (const std::string& name : names) {
    const std::optional<Mapped> mapped = plain.find(name);
    if (!mapped) continue;
    plugin = FoundLibrary{mapped->path, "", loader.closure_of(mapped->path).missing, "", {}};
    plugin->interfaces = names_in_elf(mapped->path, "ncclNetPlugin_v");
    if (plugin->interfaces.empty()) plugin->unfit = "it exports no ncclNetPlugin_v*";
    break;
  }
  // A file of that name that the loader would pass over, or that it cannot use.
  for (const std::string& folder : search.library_path) {
    const std::string path = folder + "/" + names[0];
    if (plugin || !file_exists(path)) continue;
    const Result<ElfFile> file = read_elf(path);
    const std::string why = !file ? file.error().what : "it is for another kind of processor";
    plugin = FoundLibrary{path, "", {}, why, {}};
  }
  libraries.net_plugin = plugin;

  std::optional<FoundLibrary> asked;
  for (const char* name : kNcclNames) {
    for (const std::string& folder : search.library_path) {
      const std::string path = folder + "/" + name;
      const Result<ElfFile> file = read_elf(path);
      if (!asked && file && file->native) asked = nccl_at(path);
    }
  }
  libraries.asked_nccl = asked;
  return libraries;
}

Torch look_at_torch(const PythonAnswer& python, const SearchPath& search) {
  Torch torch;
  torch.path = python.torch_folder;
  const Result<std::string> text = read_file(torch.path + "/version.py", 64U << 10U);
  if (text) {
    TorchVersion version = parse_torch_version(*text);
    torch.version = std::move(version.version);
    torch.cuda = std::move(version.cuda);
    torch.hip = std::move(version.hip);
    torch.xpu = std::move(version.xpu);
  }
  const Loader loader(search, libraries_on_disk());
  torch.mapped_nccl =
      Seen<FoundLibrary>::not_seen("torch has neither libtorch_cuda.so nor libtorch_hip.so");
  for (const char* library : kTorchLibraries) {
    const std::string path = torch.path + "/lib/" + library;
    const Result<ElfFile> file = read_elf(path);
    if (!file) continue;
    torch.nccl_built_in = true;
    torch.mapped_nccl = Seen<FoundLibrary>::not_seen(std::string(library) +
                                                     " has NCCL built in: no other is mapped");
    for (const std::string& needed : file->needed) {
      if (!needed.starts_with("libnccl.so") && !needed.starts_with("librccl.so")) continue;
      torch.nccl_built_in = false;
      const std::optional<Mapped> mapped = loader.find(needed, path, *file);
      if (!mapped) {
        torch.nccl_nowhere = needed;
        torch.mapped_nccl = Seen<FoundLibrary>::not_seen(
            std::string(library) + " needs " + printable(needed, 80) + ", which is nowhere");
        return torch;
      }
      torch.mapped_nccl = nccl_at(mapped->path);
      torch.mapped_because = mapped->because;
      return torch;
    }
    return torch;
  }
  return torch;
}

MpiUser look_at_mpi(const std::string& module, const SearchPath& search) {
  MpiUser user;
  user.path = module;
  const Loader loader(search, libraries_on_disk());
  const Loader::Closure closure = loader.closure_of(module);
  for (const std::vector<std::string>* names : {&closure.names, &closure.missing}) {
    for (const std::string& name : *names) {
      if (has_gtl(name)) {
        user.gtl = true;
      } else if (name.starts_with("libmpi")) {
        user.mpi_libraries.push_back(name);
      }
    }
  }
  for (const std::string& name : search.preload) user.gtl = user.gtl || has_gtl(name);
  return user;
}

}  // namespace ezpz::doctor
