// Any bytes are a checkpoint's manifest, a shard's description, a stream's index, a sampler's state
// or a file of tokens, a tokenizer, or an error; a manifest that covers its tensors still does when
// written again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "train/checkpoint/manifest.h"
#include "train/data/sampler.h"
#include "train/data/sentencepiece.h"
#include "train/data/stream_source.h"
#include "train/data/token_shard.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz::train;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto manifest = parse_manifest(text, "f"); manifest.ok()) {
    const auto again = parse_manifest(format_manifest(*manifest), "f");
    if (!again.ok() || format_manifest(*again) != format_manifest(*manifest)) abort();
    if (check_coverage(*manifest, "f").ok() != check_coverage(*again, "f").ok()) abort();
  }
  if (const auto file = parse_shard_file(text, "f"); file.ok()) {
    if (!parse_shard_file(format_shard_file(*file), "f").ok()) abort();
  }
  if (const auto index = parse_stream_index(text, "f"); index.ok()) {
    for (const auto& shard : index->shards) {
      if (shard.file.find('/') != std::string::npos || shard.file[0] == '.') abort();
    }
  }
  if (const auto state = parse_sampler_state(text); state.ok()) {
    if (!parse_sampler_state(format_sampler_state(*state)).ok()) abort();
  }
  if (const auto tokenizer = parse_sentencepiece(text, "f"); tokenizer.ok()) {
    for (const int32_t token : (*tokenizer)->encode(text.substr(0, 200))) {
      if (token < 0 || token >= (*tokenizer)->vocab_size()) abort();
    }
  }
  const auto tokens = parse_token_shard_header(text.substr(0, 64), size, "f");
  if (tokens.ok() && tokens->tokens * tokens->token_bytes + 64 != size) abort();
  return 0;
}
