// Pre-tokenized data: a file of 64 header bytes and then token after token, 2 or 4 bytes each,
// little-endian.
//
//   bytes  0-7   "EZPZTOK1"
//         8-11   bytes per token, 2 or 4
//        12-15   0
//        16-23   vocabulary: every token is below it
//        24-31   number of tokens
//        32-63   0
//
// A folder of such files ("*.tok", in the order of their names) is one set of data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/source.h"

namespace ezpz::train {

struct TokenShardHeader {
  uint32_t token_bytes = 2;
  uint64_t vocab_size = 0;
  uint64_t tokens = 0;
};
constexpr uint64_t kTokenShardHeaderBytes = 64;

// Of the first 64 bytes; file_bytes must be what the header makes it.
Result<TokenShardHeader> parse_token_shard_header(std::string_view bytes, uint64_t file_bytes,
                                                  const std::string& where);

// A mapped file; pages come as they are used.
class TokenShard {
 public:
  static Result<TokenShard> open(const std::string& path);
  TokenShard(TokenShard&&) noexcept;
  TokenShard& operator=(TokenShard&&) noexcept;
  ~TokenShard();

  [[nodiscard]] const TokenShardHeader& header() const { return header_; }
  // Tokens first .. first + count; an error for those outside, and for a token that is not below
  // the vocabulary.
  Status read(uint64_t first, uint64_t count, int64_t* out) const;

 private:
  TokenShard() = default;
  std::string path_;
  TokenShardHeader header_;
  const unsigned char* map_ = nullptr;
  uint64_t bytes_ = 0;
};

// Writes one; it appears when finish() succeeded. Tokens are 2 bytes when the vocabulary allows.
class TokenShardWriter {
 public:
  static Result<TokenShardWriter> open(const std::string& path, uint64_t vocab_size);
  TokenShardWriter(TokenShardWriter&&) noexcept;
  ~TokenShardWriter();
  Status append(const std::vector<int32_t>& tokens);
  [[nodiscard]] uint64_t tokens() const;
  Status finish();

 private:
  struct State;
  explicit TokenShardWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Samples of seq_len + 1 tokens; neighbours share one, so that every token but the first of a shard
// is a target once. A shard's last tokens that fill no sample are left out.
class TokenShardSource : public TokenSource {
 public:
  // A file, or a folder of *.tok.
  static Result<std::unique_ptr<TokenShardSource>> open(const std::string& path, uint64_t seq_len);
  [[nodiscard]] std::vector<uint64_t> block_samples() const override { return blocks_; }
  [[nodiscard]] int64_t vocab_size() const override { return vocab_size_; }
  Status read(uint64_t sample, int64_t* tokens) override;

 private:
  std::vector<TokenShard> shards_;
  std::vector<uint64_t> blocks_;
  uint64_t seq_len_ = 0;
  int64_t vocab_size_ = 0;
};

}  // namespace ezpz::train
