// Bytes that doctor reads on a node: shared libraries, what GPU tools and Python print, known
// issues.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "doctor/elf.h"
#include "doctor/gpu_tools.h"
#include "doctor/known_issues.h"
#include "doctor/loader.h"
#include "doctor/look.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz::doctor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const ReadAt read = [&text](uint64_t offset, size_t wanted, char* into) {
    if (offset > text.size() || wanted > text.size() - offset) return false;
    memcpy(into, text.data() + offset, wanted);
    return true;
  };
  (void)parse_elf(read, "fuzz");
  (void)names_in_elf(read, "ncclNetPlugin_v");
  (void)nccl_version_in_elf(read);
  (void)parse_ldconfig(text);
  (void)parse_nvidia_list(text);
  (void)unknown_nvidia_field(text);
  std::string driver;
  auto gpus = parse_nvidia_health(text, nvidia_fields(), &driver);
  add_nvidia_remapped(text, &gpus);
  (void)parse_nvidia_cuda(text);
  (void)parse_rocm_list(text);
  (void)parse_xpu_list(text);
  (void)parse_ras_uncorrected(text);
  (void)complaint(text, text);
  (void)parse_python_answer(text);
  (void)parse_torch_version(text);
  (void)parse_known_issues(text, "fuzz.toml");
  return 0;
}
