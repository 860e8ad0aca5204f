// Files of tokens from an HTTP(S) server, fetched into a local cache ahead of training by a thread
// of their own, through curl. What is in the cache is never fetched again, so a second run (or one
// on nodes without a network) needs no server for it.
//
// The index, at index_url, names the files beside it (train/data/token_shard.h):
//   {"vocab_size": 32000, "shards": [{"file": "000.tok", "tokens": 1000000}, ...]}
// A copy of the index is kept too and used when the server does not answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/source.h"

namespace ezpz::train {

struct StreamIndex {
  struct Shard {
    std::string file;
    uint64_t tokens = 0;
  };
  int64_t vocab_size = 0;
  std::vector<Shard> shards;
};
Result<StreamIndex> parse_stream_index(std::string_view json, const std::string& where);

struct StreamOptions {
  std::string index_url;
  std::string cache_dir;          // may be shared by the ranks of a node: each file is fetched once
  uint64_t ahead_blocks = 2;      // fetched beyond the one in use
  double fetch_at_most_s = 3600;  // one file
  double wait_at_most_s = 600;    // a read that waits longer is an error
  double say_every_s = 10;
  // Lines such as "no data yet, waiting on the network: URL, 20 s". From read() and open().
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

class StreamSource : public TokenSource {
 public:
  static Result<std::unique_ptr<StreamSource>> open(const StreamOptions&, uint64_t seq_len);
  ~StreamSource() override;

  // The order in which blocks will be used, from the sampler's position on; starts the fetching.
  // The sampler is copied. Call it after Sampler::restore().
  void follow(const Sampler&);

  [[nodiscard]] std::vector<uint64_t> block_samples() const override;
  [[nodiscard]] Shuffle natural_shuffle() const override { return Shuffle::blocks; }
  [[nodiscard]] int64_t vocab_size() const override;
  // Waits for the sample's block when it is not in the cache, and says so.
  Status read(uint64_t sample, int64_t* tokens) override;

 private:
  struct State;
  explicit StreamSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ezpz::train
