// The checks of a node on a node that is well, and with one thing broken at a time.
#include <gtest/gtest.h>

#include <functional>

#include "doctor/look.h"
#include "doctor/testing.h"

namespace ezpz::doctor {
namespace {

constexpr uint64_t kGiB = 1ULL << 30U;

using Break = std::function<void(NodeSight*, NodeContext*)>;

Finding after(const char* check, const Break& breaks, const char* machine = "perlmutter") {
  NodeSight sight = a_healthy_node();
  NodeContext context = in_a_job_on(machine);
  breaks(&sight, &context);
  const std::vector<Finding> findings = check_node(sight, context);
  const Finding* finding = finding_of(findings, check);
  EXPECT_NE(finding, nullptr) << check;
  return finding == nullptr ? Finding() : *finding;
}

bool says(const Finding& finding, const char* text) {
  return finding.why.find(text) != std::string::npos;
}

TEST(CheckNode, AHealthyNodeHasNothingButOk) {
  for (const Finding& finding : check_node(a_healthy_node(), in_a_job_on("perlmutter"))) {
    EXPECT_EQ(finding.health, Health::ok) << finding.check << ": " << finding.why;
    EXPECT_EQ(finding.remedy, "") << finding.check;
    EXPECT_NE(finding.why, "") << finding.check;
  }
}

TEST(CheckNode, ANodeThatNothingWasSeenOfIsNowhereOkButWhereTheEnvironmentSays) {
  for (const Finding& finding : check_node(NodeSight(), in_a_job_on("perlmutter"))) {
    const bool of_environment = finding.check == "gpu-visibility" || finding.check == "mpich-gtl" ||
                                finding.check.starts_with("known-issue");
    EXPECT_TRUE(of_environment || finding.health == Health::unknown)
        << finding.check << ": " << finding.why;
    EXPECT_TRUE(finding.health == Health::ok || !finding.remedy.empty()) << finding.check;
  }
}

TEST(CheckNode, HostileTextIsNeverToldRaw) {
  NodeSight sight = a_healthy_node();
  const std::string evil = "x\x1b]0;owned\x07\ny";
  for (auto& [name, value] : sight.env) value = evil;
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "NCCL_NET_PLUGIN", "MPICH_GPU_SUPPORT_ENABLED"}) {
    sight.env[name] = evil;
  }
  sight.hostname = evil;
  sight.gpus->tool_trouble = {evil};
  sight.gpus->source = evil;
  sight.gpus->health[0].lost = true;
  sight.gpus->health[0].name = evil;
  sight.limits.tmp_path = evil;
  sight.limits.core_pattern = evil;
  sight.limits.core_size = kUnlimited;
  sight.python->path = evil;
  Torch torch = torch_of(sight);
  torch.path = torch.version = torch.cuda = torch.mapped_because = evil;
  torch.mapped_nccl = FoundLibrary{evil, evil, {evil}, evil, {evil}};
  set_torch(&sight, torch);
  sight.python->mpi4py = std::optional<MpiUser>(MpiUser{evil, {evil}, false});
  sight.libraries.net_plugin_name = evil;
  sight.libraries.net_plugin =
      std::optional<FoundLibrary>(FoundLibrary{evil, evil, {evil}, "", {evil}});
  sight.libraries.asked_nccl = std::optional<FoundLibrary>(FoundLibrary{evil, evil, {}, "", {}});
  NodeContext context = in_a_job_on("perlmutter");
  context.command = {evil, "--lora-rank", "8", "--lora-target", evil, "--compile", evil};
  for (const Finding& finding : check_node(sight, context)) {
    for (const std::string* text : {&finding.check, &finding.why, &finding.remedy}) {
      for (const unsigned char byte : *text) EXPECT_GE(byte, 0x20) << finding.check;
    }
  }
}

// ---- the network plugin

TEST(NetworkPlugin, AMissingOneIsAnErrorWithItsPriceAndTheMachinesRemedy) {
  const Break gone = [](NodeSight* sight, NodeContext*) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>();
    sight->env.erase("NCCL_NET");
  };
  const Finding finding = after("network-plugin", gone);
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "8.3 times slower"));
  EXPECT_EQ(finding.remedy, "module load nccl/2.24.3");
  EXPECT_EQ(after("network-plugin", gone, "aurora").health, Health::ok) << "oneCCL needs none";
}

TEST(NetworkPlugin, ANameThatForbidsTheFallbackFailsAtTheStart) {
  const Finding finding = after("network-plugin", [](NodeSight* sight, NodeContext* context) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>();
    context->nodes = 1;
  });
  EXPECT_EQ(finding.health, Health::error) << "one node or many";
  EXPECT_TRUE(says(finding, "fails when the job starts"));
}

TEST(NetworkPlugin, OneNodeNeedsNone) {
  const Finding finding = after("network-plugin", [](NodeSight* sight, NodeContext* context) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>();
    sight->env.erase("NCCL_NET");
    context->nodes = 1;
  });
  EXPECT_EQ(finding.health, Health::ok);
}

TEST(NetworkPlugin, OneThatTheLoaderWouldRefuseIsAnErrorThatNamesWhatIsMissing) {
  const Finding finding = after("network-plugin", [](NodeSight* sight, NodeContext*) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>(
        FoundLibrary{"/p/libnccl-net.so", "", {"libfabric.so.1"}, "", {}});
  });
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "libfabric.so.1"));
}

TEST(NetworkPlugin, AFileThatIsNoPluginIsAnError) {
  const Finding finding = after("network-plugin", [](NodeSight* sight, NodeContext*) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>(
        FoundLibrary{"/p/libnccl-net.so", "", {}, "not an ELF file", {}});
  });
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "not an ELF file"));
}

TEST(NetworkPlugin, AVariableThatAvoidsItIsTold) {
  const auto with = [](const char* name, const char* value) {
    return after("network-plugin",
                 [=](NodeSight* sight, NodeContext*) { sight->env[name] = value; });
  };
  EXPECT_EQ(with("NCCL_NET", "Socket").health, Health::error);
  EXPECT_EQ(with("NCCL_NET", "Socket").remedy, "export NCCL_NET='AWS Libfabric'");
  EXPECT_EQ(with("NCCL_NET", "Another").health, Health::warning);
  EXPECT_EQ(with("NCCL_NET", "aws libfabric").health, Health::ok);
  EXPECT_EQ(with("NCCL_NET_PLUGIN", "none").health, Health::error);
}

TEST(NetworkPlugin, AFolderThatDoesNotAnswerMakesItUnknown) {
  const Finding finding = after("network-plugin", [](NodeSight* sight, NodeContext*) {
    sight->libraries.net_plugin = std::optional<FoundLibrary>();
    sight->libraries.silent_folders = {"/hung/lib"};
  });
  EXPECT_EQ(finding.health, Health::unknown);
  EXPECT_TRUE(says(finding, "/hung/lib"));
}

// ---- torch and its NCCL

Finding with_torch(const char* check, const std::function<void(Torch*)>& breaks) {
  return after(check, [&](NodeSight* sight, NodeContext*) {
    Torch torch = torch_of(*sight);
    breaks(&torch);
    set_torch(sight, torch);
  });
}

TEST(TorchCheck, ABuildForOtherGpusIsAnError) {
  EXPECT_EQ(with_torch("torch", [](Torch* t) { t->cuda = ""; }).health, Health::error);
  const Finding finding = with_torch("torch", [](Torch* t) {
    t->cuda = "";
    t->hip = "6.2";
  });
  EXPECT_TRUE(says(finding, "ROCm 6.2"));
  EXPECT_TRUE(says(finding, "NVIDIA"));
}

TEST(TorchCheck, ABuildForANewerCudaThanTheDriversIsAWarning) {
  const Finding finding = with_torch("torch", [](Torch* t) { t->cuda = "13.0"; });
  EXPECT_EQ(finding.health, Health::warning);
  EXPECT_TRUE(says(finding, "CUDA 12.4 at most"));
  EXPECT_EQ(with_torch("torch", [](Torch* t) { t->cuda = "12.8"; }).health, Health::ok)
      << "a newer minor version runs";
}

TEST(TorchCheck, AnInterpreterWithoutTorchIsUnknownAndNotOk) {
  const Break none = [](NodeSight* sight, NodeContext*) { set_torch(sight, std::nullopt); };
  EXPECT_EQ(after("torch", none).health, Health::unknown);
  EXPECT_EQ(after("mapped-nccl", none).health, Health::unknown);
}

TEST(MappedNccl, AModuleThatIsInertIsToldWithBothVersions) {
  const auto asked = [](const char* version) -> Break {
    return [=](NodeSight* sight, NodeContext*) {
      sight->libraries.asked_nccl = std::optional<FoundLibrary>(
          FoundLibrary{"/opt/nccl/2.24.3/lib/libnccl.so.2", version, {}, "", {}});
    };
  };
  const Finding finding = after("mapped-nccl", asked("2.24.3"));
  EXPECT_EQ(finding.health, Health::warning);
  EXPECT_TRUE(says(finding, "maps NCCL 2.29.7"));
  EXPECT_TRUE(says(finding, "2.24.3 (/opt/nccl/2.24.3/lib/libnccl.so.2), is inert"));
  EXPECT_TRUE(says(finding, "RPATH of libtorch_cuda.so"));
  EXPECT_EQ(after("mapped-nccl", asked("2.29.7")).health, Health::ok) << "the same either way";
}

TEST(MappedNccl, TellsTheOtherWaysATorchMayHaveItsNccl) {
  EXPECT_EQ(with_torch("mapped-nccl", [](Torch* t) { t->nccl_built_in = true; }).health,
            Health::ok);
  const Finding nowhere =
      with_torch("mapped-nccl", [](Torch* t) { t->nccl_nowhere = "libnccl.so.2"; });
  EXPECT_EQ(nowhere.health, Health::error);
  EXPECT_TRUE(says(nowhere, "libnccl.so.2"));
}

// ---- MPICH's GPU library

TEST(MpichGtl, GpuSupportWithoutItsLibraryIsAnErrorWithTheRemedy) {
  const Break on = [](NodeSight* sight, NodeContext*) {
    sight->env["MPICH_GPU_SUPPORT_ENABLED"] = "1";
  };
  const Finding finding = after("mpich-gtl", on);
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(finding.remedy.starts_with("export MPICH_GPU_SUPPORT_ENABLED=0"));
  EXPECT_TRUE(says(finding, "libmpi_gnu_123.so.12"));
}

TEST(MpichGtl, IsOkWhereItIsLinkedOrOffOrNobodyHasMpi) {
  const auto health = [](const char* value, const std::optional<MpiUser>& user) {
    return after("mpich-gtl",
                 [&](NodeSight* sight, NodeContext*) {
                   sight->env["MPICH_GPU_SUPPORT_ENABLED"] = value;
                   sight->python->mpi4py = user;
                 })
        .health;
  };
  const MpiUser linked{"/m/MPI.so", {"libmpi_gnu_123.so.12"}, true};
  const MpiUser open_mpi{"/m/MPI.so", {"libmpi.so.40"}, false};
  const MpiUser unlinked{"/m/MPI.so", {"libmpi.so.12"}, false};
  EXPECT_EQ(health("1", linked), Health::ok);
  EXPECT_EQ(health("1", open_mpi), Health::ok);
  EXPECT_EQ(health("1", std::nullopt), Health::ok);
  EXPECT_EQ(health("0", unlinked), Health::ok);
  EXPECT_EQ(health("1", unlinked), Health::error);
}

TEST(MpichGtl, TheUsersOwnProgramCountsMoreThanPythons) {
  const Finding finding = after("mpich-gtl", [](NodeSight* sight, NodeContext*) {
    sight->env["MPICH_GPU_SUPPORT_ENABLED"] = "1";
    sight->program = std::optional<MpiUser>(MpiUser{"./solver", {"libmpi_cray.so.12"}, true});
  });
  EXPECT_EQ(finding.health, Health::ok);
  EXPECT_TRUE(says(finding, "./solver"));
}

TEST(MpichGtl, IsUnknownWhereItCouldNotBeSeen) {
  const Finding finding = after("mpich-gtl", [](NodeSight* sight, NodeContext*) {
    sight->env["MPICH_GPU_SUPPORT_ENABLED"] = "1";
    sight->python = Seen<Python>::not_seen("python3 did not answer in 10 s");
  });
  EXPECT_EQ(finding.health, Health::unknown);
}

// ---- limits

TEST(LimitChecks, EachIsToldWithItsFiguresAndARemedy) {
  struct Row {
    const char* check;
    std::function<void(Limits*)> breaks;
    Health health;
    const char* figures;
  };
  for (const Row& row : std::vector<Row>{
           {"shm",
            [](Limits* l) {
              l->shm = Space{64 << 20U, 60 << 20U, false};
            },
            Health::warning, "60.0 MiB free of 64.0 MiB"},
           {"shm",
            [](Limits* l) {
              l->shm = Space{64 << 20U, 4096, false};
            },
            Health::error, "4.0 KiB free"},
           {"tmp",
            [](Limits* l) {
              l->tmp = Space{kGiB, 0, false};
            },
            Health::error, "0 B free"},
           {"locked-memory", [](Limits* l) { l->locked_memory = uint64_t{65536}; }, Health::warning,
            "64.0 KiB"},
           {"open-files", [](Limits* l) { l->open_files = uint64_t{1024}; }, Health::warning,
            "1024"},
           {"open-files", [](Limits* l) { l->open_files = uint64_t{64}; }, Health::error, "64"},
           {"processes", [](Limits* l) { l->processes = uint64_t{512}; }, Health::warning, "512"},
           {"stack", [](Limits* l) { l->stack = uint64_t{1 << 20U}; }, Health::warning, "1.0 MiB"},
           {"core-dumps", [](Limits* l) { l->core_size = kUnlimited; }, Health::warning,
            "unlimited"},
           {"memory", [](Limits* l) { l->memory_available = 2 * kGiB; }, Health::warning,
            "2.0 GiB of memory available of 256.0 GiB"},
           {"memory", [](Limits* l) { l->memory_available = 50 * kGiB; }, Health::warning,
            "most of the node's memory"},
           {"memory-limit",
            [](Limits* l) {
              l->cgroup_memory = 8 * kGiB;
              l->cgroup_memory_used = 7 * kGiB;
            },
            Health::warning, "8.0 GiB of memory (7.0 GiB used)"},
           {"memory-limit", [](Limits* l) { l->cgroup_memory = 64 * kGiB; }, Health::warning,
            "of the node's 256.0 GiB"},
       }) {
    const Finding finding =
        after(row.check, [&](NodeSight* sight, NodeContext*) { row.breaks(&sight->limits); });
    EXPECT_EQ(finding.health, row.health) << row.check << ": " << finding.why;
    EXPECT_TRUE(says(finding, row.figures)) << finding.why;
    EXPECT_NE(finding.remedy, "") << row.check;
  }
}

TEST(LimitChecks, CoreFilesThatGoToAProgramOrALocalFolderAreFine) {
  const auto health = [](const char* pattern, bool shared) {
    return after("core-dumps",
                 [&](NodeSight* sight, NodeContext*) {
                   sight->limits.core_size = kUnlimited;
                   sight->limits.core_pattern = std::string(pattern);
                   sight->limits.working_folder = Space{kGiB, kGiB, shared};
                 })
        .health;
  };
  EXPECT_EQ(health("core.%p", true), Health::warning);
  EXPECT_EQ(health("core.%p", false), Health::ok);
  EXPECT_EQ(health("|/usr/lib/systemd/systemd-coredump %P", true), Health::ok);
  EXPECT_EQ(health("/var/crash/core.%p", true), Health::ok);
}

TEST(LimitChecks, OpenFilesAreRaisedToTheHardLimitWhereThatHelps) {
  const auto remedy = [](uint64_t hard) {
    return after("open-files",
                 [&](NodeSight* sight, NodeContext*) {
                   sight->limits.open_files = uint64_t{1024};
                   sight->limits.open_files_hard = hard;
                 })
        .remedy;
  };
  EXPECT_EQ(remedy(51200), "ulimit -n 51200");
  EXPECT_EQ(remedy(2048), "ask the site to raise nofile");
}

// ---- asking Python

TEST(AskPython, ItsAnswerIsFoundBehindWhateverElseItPrints) {
  const auto answer = parse_python_answer(
      "hello from sitecustomize\nezpz-python {\"version\": \"3.11.7\", \"torch\": \"/e/torch\", "
      "\"mpi4py\": \"\", \"modules\": [], \"folders\": [\"/e/torch/lib\", 7]}\nbye\n");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->version, "3.11.7");
  EXPECT_EQ(answer->torch_folder, "/e/torch");
  EXPECT_EQ(answer->library_folders, std::vector<std::string>{"/e/torch/lib"});
  EXPECT_FALSE(parse_python_answer("Traceback\n").ok());
  EXPECT_FALSE(parse_python_answer("ezpz-python {\"version\": ").ok());
}

TEST(AskPython, TorchTellsItsVersionInAFile) {
  const TorchVersion torch = parse_torch_version(
      "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda']\n"
      "__version__ = '2.8.0+cu126'\ndebug = False\ncuda: Optional[str] = '12.6'\n"
      "git_version = 'abc'\nhip: Optional[str] = None\n");
  EXPECT_EQ(torch.version, "2.8.0+cu126");
  EXPECT_EQ(torch.cuda, "12.6");
  EXPECT_EQ(torch.hip, "");
}

TEST(AskPython, TheCommandsOwnInterpreterIsAsked) {
  EXPECT_EQ(interpreter_of({"python3", "train.py"}), "python3");
  EXPECT_EQ(interpreter_of({"/e/bin/python3.11", "-m", "x"}), "/e/bin/python3.11");
  EXPECT_EQ(interpreter_of({"env", "A=1", "python", "x.py"}), "python");
  EXPECT_EQ(interpreter_of({"./python-like-solver"}), "");
  EXPECT_EQ(interpreter_of({}), "");
}

}  // namespace
}  // namespace ezpz::doctor
