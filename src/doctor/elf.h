// What a shared library says of itself: what it needs and where it looks for it. Read, never
// loaded: ezpz is static and must not dlopen, and a library of a job may do anything when it is
// loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::doctor {

struct ElfFile {
  bool native = false;  // for this kind of machine (the loader passes others over)
  std::string soname;
  std::vector<std::string> needed;
  std::vector<std::string> rpath;    // as written: "$ORIGIN/../lib"
  std::vector<std::string> runpath;  // its presence makes the loader ignore rpath
};

// Bytes of a file: exactly size of them from offset, or false. Files may be gigabytes: only what is
// needed is asked for.
using ReadAt = std::function<bool(uint64_t offset, size_t size, char* into)>;

// 64-bit little-endian ELF. Bounded, whatever the bytes are.
Result<ElfFile> parse_elf(const ReadAt&, const std::string& name);
Result<ElfFile> read_elf(const std::string& path);

// Names in the dynamic string table that begin so ("ncclNetPlugin_v"), sorted, each once. For small
// libraries: looks at no more than 4 MiB of names.
std::vector<std::string> names_in_elf(const ReadAt&, std::string_view prefix);
std::vector<std::string> names_in_elf(const std::string& path, std::string_view prefix);

// "2.29.7" of the text "NCCL version 2.29.7+cuda13.0" in the constants of libnccl (RCCL likewise);
// empty: not told. Looks at no more than 64 MiB.
std::string nccl_version_in_elf(const ReadAt&);
std::string nccl_version_in_elf(const std::string& path);

}  // namespace ezpz::doctor
