#include "launch/inherit.h"

#include <algorithm>
#include <array>

namespace ezpz::launch {
namespace {

constexpr std::array<std::string_view, 26> names = {"PATH",
                                                    "LD_LIBRARY_PATH",
                                                    "LD_PRELOAD",
                                                    "LIBRARY_PATH",
                                                    "CPATH",
                                                    "VIRTUAL_ENV",
                                                    "LANG",
                                                    "TZ",
                                                    "MODULEPATH",
                                                    "LOADEDMODULES",
                                                    "http_proxy",
                                                    "https_proxy",
                                                    "no_proxy",
                                                    "all_proxy",
                                                    "HTTP_PROXY",
                                                    "HTTPS_PROXY",
                                                    "NO_PROXY",
                                                    "ALL_PROXY",
                                                    "XDG_CACHE_HOME",
                                                    "SLURM_JOB_ID",
                                                    "PBS_JOBID",
                                                    "PBS_NODEFILE",
                                                    "REQUESTS_CA_BUNDLE",
                                                    "CURL_CA_BUNDLE",
                                                    "SSL_CERT_FILE",
                                                    "SSL_CERT_DIR"};

constexpr std::array<std::string_view, 62> prefixes = {
    "EZPZ_", "PYTHON", "CONDA_", "MAMBA_", "LC_",
    // communication
    "NCCL_", "RCCL_", "OFI_", "FI_", "CCL_", "GLOO_", "UCX_", "UCC_", "MPICH_", "MPIR_", "I_MPI_",
    "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "HYDRA_", "PALS_",
    // devices
    "CUDA_", "NVIDIA_", "NVTE_", "HIP_", "HSA_", "ROCR_", "ROCM_", "MIOPEN_", "ZE_", "ZES_", "ZEX_",
    "SYCL_", "ONEAPI_", "ONEDNN_", "INTEL_", "IPEX_", "IGC_", "NEO",
    // threads and memory
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "MALLOC_",
    // frameworks and their services
    "TORCH", "PYTORCH_", "TRITON_", "XLA_", "JAX_", "TF_", "DEEPSPEED_", "DS_", "ACCELERATE_",
    "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TOKENIZERS_", "WANDB_", "MLFLOW_", "DATASETS_"};

}  // namespace

bool goes_along(std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> inherited_names(const site::Environment& env) {
  std::vector<std::string> found;
  for (const auto& [name, value] : env) {
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    });
    if (plain && goes_along(name)) found.push_back(name);
  }
  return found;
}

}  // namespace ezpz::launch
