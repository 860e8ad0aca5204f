// Any bytes are a safetensors header, an index, a model's or an adapter's configuration, or an
// error; and what was accepted is within its file and survives being written.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "train/weights/hf_model.h"
#include "train/weights/names.h"
#include "train/weights/peft.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz::train;
  if (size < 2) return 0;
  const uint64_t bytes = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto header = parse_safetensors_header(text, bytes, "f"); header.ok()) {
    uint64_t end = 0;
    for (const TensorInfo& tensor : header->tensors) {
      if (tensor.begin != end || tensor.end > bytes) abort();
      if (tensor.elements() * dtype_bytes(tensor.dtype) != tensor.end - tensor.begin) abort();
      end = tensor.end;
      trainer_name(tensor.name);
      peft_trainer_name(tensor.name);
    }
    if (end != bytes) abort();
  }
  if (const auto index = parse_hf_index(text, "f"); index.ok()) {
    if (!parse_hf_index(format_hf_index(*index), "f").ok()) abort();
  }
  if (const auto config = parse_hf_config(text, "f"); config.ok()) {
    const auto again = parse_hf_config(format_hf_config(*config), "f");
    if (!again.ok() || format_hf_config(*again) != format_hf_config(*config)) abort();
  }
  if (const auto config = parse_peft_config(text, "f"); config.ok()) {
    if (!parse_peft_config(format_peft_config(*config), "f").ok()) abort();
  }
  return 0;
}
