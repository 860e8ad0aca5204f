// Which file the dynamic loader would map for a library's name, by its rules (ld.so(8)): preloaded
// ones, DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the system's folders. Nothing is loaded.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf.h"

namespace ezpz::doctor {

struct SearchPath {
  std::vector<std::string> preload;          // LD_PRELOAD: names or paths
  std::vector<std::string> library_path;     // LD_LIBRARY_PATH
  std::map<std::string, std::string> cache;  // ldconfig -p: name -> path
  std::vector<std::string> system_folders = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
  // Of libraries that the process has loaded before: a name found there counts as loaded.
  std::vector<std::string> loaded_folders;
};

// "libfoo.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libfoo.so.1" of every line; what is for
// another kind of machine is left out.
std::map<std::string, std::string> parse_ldconfig(std::string_view output);

struct Mapped {
  std::string path;
  std::string because;  // "LD_PRELOAD", "RPATH of libtorch_cuda.so", "LD_LIBRARY_PATH", ...
};

// The file at a path, when it is a library of this kind of machine.
using LibraryAt = std::function<std::optional<ElfFile>(const std::string& path)>;
LibraryAt libraries_on_disk();

class Loader {
 public:
  Loader(SearchPath path, LibraryAt library_at)
      : path_(std::move(path)), library_at_(std::move(library_at)) {}

  // For a library asked for by name alone: dlopen() from a program without an RPATH.
  [[nodiscard]] std::optional<Mapped> find(const std::string& name) const;
  // For one that the file `by` needs.
  [[nodiscard]] std::optional<Mapped> find(const std::string& name, const std::string& by,
                                           const ElfFile& by_file) const;
  // All that a library needs, and what those need, ...
  struct Closure {
    std::vector<std::string> names;    // found, itself left out
    std::vector<std::string> missing;  // not found: the loader would refuse the library
  };
  [[nodiscard]] Closure closure_of(const std::string& path) const;

 private:
  [[nodiscard]] std::optional<Mapped> in_folders(const std::vector<std::string>& folders,
                                                 const std::string& name,
                                                 const std::string& because) const;
  [[nodiscard]] std::optional<Mapped> behind_library_path(const std::string& name) const;
  [[nodiscard]] std::optional<Mapped> preloaded(const std::string& name) const;

  SearchPath path_;
  LibraryAt library_at_;
};

}  // namespace ezpz::doctor
