// What nvidia-smi, rocm-smi and xpu-smi print, read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/node_sight.h"

namespace ezpz::doctor {

// nvidia-smi -L
struct NvidiaList {
  int gpus = 0;
  int mig_instances = 0;
};
NvidiaList parse_nvidia_list(std::string_view output);

// The fields asked of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`, in this order;
// those that a driver does not know are left out and asked without.
std::vector<std::string> nvidia_fields();
// The field a driver does not know: Field "x" is not a valid field to query.
std::optional<std::string> unknown_nvidia_field(std::string_view output);
std::vector<GpuHealth> parse_nvidia_health(std::string_view output,
                                           const std::vector<std::string>& fields,
                                           std::string* driver);

// `nvidia-smi --query-remapped-rows=... --format=csv,noheader`: put to the GPUs of the same bus id.
std::string nvidia_remapped_fields();
void add_nvidia_remapped(std::string_view output, std::vector<GpuHealth>*);

// "CUDA Version : 12.4" of `nvidia-smi -q -d COMPUTE`; empty: not told.
std::string parse_nvidia_cuda(std::string_view output);

// GPUs of `rocm-smi --showid`: "GPU[0] : ..." lines.
int parse_rocm_list(std::string_view output);

struct XpuList {
  int cards = 0;
  int tiles = 0;  // by the cards' names
};
// xpu-smi discovery: a table, one "Device Name: ..." a card.
XpuList parse_xpu_list(std::string_view output);

// "ue: 3\nce: 12\n" of amdgpu's .../ras/umc_err_count.
std::optional<long> parse_ras_uncorrected(std::string_view text);

// The line of a failing tool that says most: its first that is neither empty nor a rule.
std::string complaint(std::string_view out, std::string_view err);

}  // namespace ezpz::doctor
