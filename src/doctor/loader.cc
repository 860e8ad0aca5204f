#include "doctor/loader.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostLibraries = 512;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

void replace_all(std::string* text, std::string_view what, const std::string& by) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size()))
    text->replace(at, what.size(), by);
}

// An RPATH's folders with the loader's own words replaced.
std::vector<std::string> expanded(const std::vector<std::string>& folders, const std::string& by) {
  std::vector<std::string> result;
  for (std::string folder : folders) {
    for (const char* origin : {"${ORIGIN}", "$ORIGIN"}) replace_all(&folder, origin, folder_of(by));
    for (const char* lib : {"${LIB}", "$LIB"}) replace_all(&folder, lib, "lib64");
    if (!folder.empty()) result.push_back(std::move(folder));
  }
  return result;
}

}  // namespace

std::map<std::string, std::string> parse_ldconfig(std::string_view output) {
#if defined(__aarch64__)
  constexpr std::string_view native = "AArch64";
#else
  constexpr std::string_view native = "x86-64";
#endif
  std::map<std::string, std::string> cache;
  for (const std::string& line : split_lines(output)) {
    const size_t arrow = line.find(" => ");
    const size_t kind = line.find(" (");
    if (arrow == std::string::npos || kind == std::string::npos || kind > arrow) continue;
    if (std::string_view(line).substr(kind, arrow - kind).find(native) == std::string_view::npos) {
      continue;
    }
    const std::string path(trim(std::string_view(line).substr(arrow + 4)));
    // The first of a name is the one the loader takes.
    cache.emplace(trim(std::string_view(line).substr(0, kind)), path);
  }
  return cache;
}

LibraryAt libraries_on_disk() {
  // One library is asked for many times over.
  auto known = std::make_shared<std::map<std::string, std::optional<ElfFile>>>();
  return [known](const std::string& path) {
    const auto found = known->find(path);
    if (found != known->end()) return found->second;
    std::optional<ElfFile> library;
    Result<ElfFile> file = read_elf(path);
    if (file && file->native) library = *std::move(file);
    (*known)[path] = library;
    return library;
  };
}

std::optional<Mapped> Loader::in_folders(const std::vector<std::string>& folders,
                                         const std::string& name,
                                         const std::string& because) const {
  for (const std::string& folder : folders) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (library_at_(path)) return Mapped{path, because};
  }
  return std::nullopt;
}

std::optional<Mapped> Loader::preloaded(const std::string& name) const {
  for (const std::string& entry : path_.preload) {
    std::optional<Mapped> mapped;
    if (entry.find('/') != std::string::npos) {
      const auto library = library_at_(entry);
      if (!library || (library->soname != name && file_name(entry) != name)) continue;
      return Mapped{entry, "LD_PRELOAD"};
    }
    if (entry != name) continue;
    mapped = in_folders(path_.library_path, entry, "LD_PRELOAD");
    if (!mapped) mapped = behind_library_path(entry);
    if (mapped) return Mapped{mapped->path, "LD_PRELOAD"};
  }
  return std::nullopt;
}

std::optional<Mapped> Loader::behind_library_path(const std::string& name) const {
  const auto cached = path_.cache.find(name);
  if (cached != path_.cache.end() && library_at_(cached->second)) {
    return Mapped{cached->second, "the loader's cache"};
  }
  return in_folders(path_.system_folders, name, "the system's folders");
}

std::optional<Mapped> Loader::find(const std::string& name) const {
  return find(name, "", ElfFile());
}

std::optional<Mapped> Loader::find(const std::string& name, const std::string& by,
                                   const ElfFile& by_file) const {
  if (name.find('/') != std::string::npos) {
    if (library_at_(name)) return Mapped{name, "its path"};
    return std::nullopt;
  }
  if (auto mapped = preloaded(name)) return mapped;
  if (auto mapped = in_folders(path_.loaded_folders, name, "loaded before")) return mapped;
  if (by_file.runpath.empty()) {
    const auto folders = expanded(by_file.rpath, by);
    if (auto mapped = in_folders(folders, name, "RPATH of " + file_name(by))) return mapped;
  }
  if (auto mapped = in_folders(path_.library_path, name, "LD_LIBRARY_PATH")) return mapped;
  const auto folders = expanded(by_file.runpath, by);
  if (auto mapped = in_folders(folders, name, "RUNPATH of " + file_name(by))) return mapped;
  return behind_library_path(name);
}

Loader::Closure Loader::closure_of(const std::string& path) const {
  Closure closure;
  std::set<std::string> seen;
  std::deque<std::string> to_do = {path};
  // The RPATH of whoever loads a library counts for what that needs, too.
  const std::optional<ElfFile> first = library_at_(path);
  while (!to_do.empty() && seen.size() < kMostLibraries) {
    const std::string by = to_do.front();
    to_do.pop_front();
    const std::optional<ElfFile> file = library_at_(by);
    if (!file) continue;
    for (const std::string& name : file->needed) {
      if (!seen.insert(name).second) continue;
      std::optional<Mapped> mapped = find(name, by, *file);
      if (!mapped && first && first->runpath.empty()) {
        mapped = in_folders(expanded(first->rpath, path), name, "");
      }
      if (!mapped) {
        closure.missing.push_back(name);
        continue;
      }
      closure.names.push_back(name);
      to_do.push_back(mapped->path);
    }
  }
  return closure;
}

}  // namespace ezpz::doctor
