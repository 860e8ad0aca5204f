#include "doctor/elf.h"

#include <gtest/gtest.h>

#include "doctor/loader.h"
#include "doctor/testing.h"

namespace ezpz::doctor {
namespace {

ElfFile parsed(const ElfPlan& plan) { return *parse_elf(reader_of(make_elf(plan)), "libx.so"); }

TEST(Elf, TellsWhatALibraryNeedsAndWhereItLooks) {
  const ElfFile file = parsed({.soname = "libtorch_cuda.so",
                               .needed = {"libnccl.so.2", "libc.so.6"},
                               .rpath = "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib"});
  EXPECT_TRUE(file.native);
  EXPECT_EQ(file.soname, "libtorch_cuda.so");
  EXPECT_EQ(file.needed, (std::vector<std::string>{"libnccl.so.2", "libc.so.6"}));
  EXPECT_EQ(file.rpath, (std::vector<std::string>{"$ORIGIN", "$ORIGIN/../../nvidia/nccl/lib"}));
  EXPECT_TRUE(file.runpath.empty());
}

TEST(Elf, ALibraryOfAnotherProcessorIsNotNative) {
  EXPECT_FALSE(parsed({.soname = "libx.so", .machine = EM_S390}).native);
}

TEST(Elf, WhatIsNoElfFileIsAnErrorThatNamesIt) {
  const auto file = parse_elf(reader_of("#!/bin/sh\nexit 1\n"), "/opt/libnccl-net.so");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().what, "not an ELF file");
  EXPECT_EQ(file.error().where, "/opt/libnccl-net.so");
}

TEST(Elf, ATruncatedFileIsReadAsFarAsItGoes) {
  const std::string whole = make_elf({.soname = "libx.so", .needed = {"liby.so"}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    (void)parse_elf(reader_of(part), "part");
    (void)names_in_elf(reader_of(part), "nccl");
    (void)nccl_version_in_elf(reader_of(part));
  }
}

TEST(Elf, TellsTheInterfacesOfAPlugin) {
  const std::string bytes =
      make_elf({.soname = "libnccl-net.so",
                .names = {"ncclNetPlugin_v9", "ncclNetPlugin_v8", "ncclCollNetPlugin_v8", "free"}});
  EXPECT_EQ(names_in_elf(reader_of(bytes), "ncclNetPlugin_v"),
            (std::vector<std::string>{"ncclNetPlugin_v8", "ncclNetPlugin_v9"}));
}

TEST(Elf, TellsTheVersionOfNcclFromItsConstants) {
  const auto version = [](const std::string& text) {
    return nccl_version_in_elf(reader_of(make_elf({.constants = text})));
  };
  EXPECT_EQ(version("junk NCCL version %s\n NCCL version 2.29.7+cuda13.0"), "2.29.7");
  EXPECT_EQ(version("RCCL version 2.20.5+hip6.2"), "2.20.5");
  EXPECT_EQ(version("no such thing"), "");
  // Across the border of two reads.
  EXPECT_EQ(version(std::string((1U << 20U) - 7, 'x') + "NCCL version 2.24.3+cuda12.4"), "2.24.3");
}

// ---- the loader's search

struct Disk {
  std::map<std::string, ElfFile> files;
  void put(const std::string& path, const ElfPlan& plan) { files[path] = parsed(plan); }
  [[nodiscard]] LibraryAt at() const {
    return [this](const std::string& path) {
      const auto found = files.find(path);
      const bool there = found != files.end() && found->second.native;
      return there ? std::optional<ElfFile>(found->second) : std::nullopt;
    };
  }
};

Disk torch_and_a_module() {
  Disk disk;
  disk.put("/env/nvidia/nccl/lib/libnccl.so.2", {.soname = "libnccl.so.2"});
  disk.put("/modules/nccl/2.24.3/lib/libnccl.so.2", {.soname = "libnccl.so.2"});
  return disk;
}

std::string mapped_by(const Disk& disk, const SearchPath& search, const ElfPlan& torch) {
  const Loader loader(search, disk.at());
  const auto mapped = loader.find("libnccl.so.2", "/env/torch/lib/libtorch_cuda.so", parsed(torch));
  return mapped ? mapped->path + " by " + mapped->because : "nowhere";
}

TEST(Loader, AnRpathComesBeforeLdLibraryPathAndARunpathBehindIt) {
  const Disk disk = torch_and_a_module();
  SearchPath search;
  search.library_path = {"/modules/nccl/2.24.3/lib"};
  EXPECT_EQ(mapped_by(disk, search, {.rpath = "/env/nvidia/nccl/lib"}),
            "/env/nvidia/nccl/lib/libnccl.so.2 by RPATH of libtorch_cuda.so");
  EXPECT_EQ(mapped_by(disk, search, {.runpath = "/env/nvidia/nccl/lib"}),
            "/modules/nccl/2.24.3/lib/libnccl.so.2 by LD_LIBRARY_PATH");
  EXPECT_EQ(mapped_by(disk, search, {.rpath = "/env/nvidia/nccl/lib", .runpath = "/nothing/here"}),
            "/modules/nccl/2.24.3/lib/libnccl.so.2 by LD_LIBRARY_PATH")
      << "a RUNPATH makes the loader ignore the RPATH";
}

TEST(Loader, OriginIsTheFolderOfTheLibraryThatNeedsIt) {
  Disk disk;
  disk.put("/env/torch/lib/libnccl.so.2", {.soname = "libnccl.so.2"});
  EXPECT_EQ(mapped_by(disk, {}, {.rpath = "${ORIGIN}"}),
            "/env/torch/lib/libnccl.so.2 by RPATH of libtorch_cuda.so");
}

TEST(Loader, APreloadedLibraryOfThatNameWins) {
  Disk disk = torch_and_a_module();
  SearchPath search;
  search.preload = {"/modules/nccl/2.24.3/lib/libnccl.so.2"};
  EXPECT_EQ(mapped_by(disk, search, {.rpath = "/env/nvidia/nccl/lib"}),
            "/modules/nccl/2.24.3/lib/libnccl.so.2 by LD_PRELOAD");
  search.preload = {"/lib/libjemalloc.so"};
  EXPECT_EQ(mapped_by(disk, search, {.rpath = "/env/nvidia/nccl/lib"}),
            "/env/nvidia/nccl/lib/libnccl.so.2 by RPATH of libtorch_cuda.so");
}

TEST(Loader, PassesOverALibraryOfAnotherProcessor) {
  Disk disk = torch_and_a_module();
  disk.put("/wrong/libnccl.so.2", {.soname = "libnccl.so.2", .machine = EM_S390});
  SearchPath search;
  search.library_path = {"/wrong", "/modules/nccl/2.24.3/lib"};
  EXPECT_EQ(mapped_by(disk, search, {}),
            "/modules/nccl/2.24.3/lib/libnccl.so.2 by LD_LIBRARY_PATH");
}

TEST(Loader, TellsWhatIsMissingHoweverDeepItIsNeeded) {
  Disk disk;
  disk.put("/p/libnccl-net.so", {.needed = {"libfabric.so.1", "libc.so.6"}, .rpath = "/fabric"});
  disk.put("/fabric/libfabric.so.1", {.needed = {"libcxi.so.1", "libc.so.6", "libfabric.so.1"}});
  disk.put("/lib64/libc.so.6", {});
  const Loader loader({}, disk.at());
  const Loader::Closure closure = loader.closure_of("/p/libnccl-net.so");
  EXPECT_EQ(closure.missing, std::vector<std::string>{"libcxi.so.1"});
  EXPECT_EQ(closure.names, (std::vector<std::string>{"libfabric.so.1", "libc.so.6"}));
}

TEST(Loader, WhatTorchHasLoadedBeforeIsNotMissing) {
  Disk disk;
  disk.put("/p/libnccl-net.so", {.needed = {"libcudart.so.12"}});
  disk.put("/env/nvidia/cuda_runtime/lib/libcudart.so.12", {});
  EXPECT_EQ(Loader({}, disk.at()).closure_of("/p/libnccl-net.so").missing.size(), 1U);
  SearchPath search;
  search.loaded_folders = {"/env/nvidia/cuda_runtime/lib"};
  EXPECT_TRUE(Loader(search, disk.at()).closure_of("/p/libnccl-net.so").missing.empty());
}

TEST(Loader, ReadsTheCacheAsLdconfigPrintsIt) {
  const auto cache = parse_ldconfig(
      "2 libs found in cache `/etc/ld.so.cache'\n"
      "\tlibfabric.so.1 (libc6) => /lib/i386-linux-gnu/libfabric.so.1\n"
      "\tlibfabric.so.1 (libc6,x86-64) => /opt/cray/libfabric.so.1\n"
      "\tlibfabric.so.1 (libc6,x86-64) => /usr/lib64/libfabric.so.1\n"
      "garbage => \n");
#if !defined(__aarch64__)
  EXPECT_EQ(cache.at("libfabric.so.1"), "/opt/cray/libfabric.so.1");
  EXPECT_EQ(cache.size(), 1U);
#endif
}

}  // namespace
}  // namespace ezpz::doctor
