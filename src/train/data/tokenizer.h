// Text to tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::train {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  // Without marks of beginning and end.
  [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  [[nodiscard]] virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;
  // The token between documents.
  [[nodiscard]] virtual int32_t end_of_text() const = 0;
};

// A byte is a token; 256 ends a text.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

struct TokenizeResult {
  uint64_t files = 0;
  uint64_t tokens = 0;
};
// Texts into one file of tokens (train/data/token_shard.h), each text followed by end_of_text().
// Read in pieces of a megabyte or so, cut at line ends; appears whole or not at all.
Result<TokenizeResult> tokenize_files(const std::vector<std::string>& texts, const Tokenizer&,
                                      const std::string& shard_path);

// The file of tokens for a text, made in cache_dir when it is not there yet. Its name tells the
// text's path, size and time of change, so that a changed text is tokenized again. Where several
// ranks share cache_dir one calls this first; that others do too is only wasted work.
Result<std::string> cached_tokens(const std::string& text, const std::string& tokenizer_name,
                                  const Tokenizer&, const std::string& cache_dir);

}  // namespace ezpz::train
