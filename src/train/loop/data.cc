#include "train/loop/data.h"

#include "base/file.h"
#include "base/text.h"
#include "train/data/random_source.h"
#include "train/data/sentencepiece.h"
#include "train/data/stream_source.h"
#include "train/data/token_shard.h"
#include "train/data/tokenizer.h"

namespace ezpz::train {
namespace {

bool is_url(const std::string& text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& name) {
  if (name == "byte") return make_byte_tokenizer();
  return open_sentencepiece(name);
}

struct Opened {
  std::unique_ptr<TokenSource> source;
  StreamSource* stream = nullptr;
};

Result<Opened> open_source(const TrainOptions& options,
                           const std::function<void(const std::string&)>& say) {
  const auto seq = static_cast<uint64_t>(options.seq);
  Opened opened;
  if (options.dataset == "random") {
    opened.source = std::make_unique<RandomSource>(options.shape.vocab, seq, options.seed);
    return opened;
  }
  if (is_url(options.dataset)) {
    StreamOptions stream;
    stream.index_url = options.dataset;
    stream.cache_dir = options.data_cache;
    stream.say = say;
    Result<std::unique_ptr<StreamSource>> source = StreamSource::open(stream, seq);
    if (!source) return source.error();
    opened.stream = source->get();
    opened.source = std::move(*source);
    return opened;
  }
  std::string tokens = options.dataset;
  if (!tokens.ends_with(".tok") && !is_directory(tokens)) {
    const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(options.tokenizer);
    if (!tokenizer) return tokenizer.error();
    const Result<std::string> cached =
        cached_tokens(options.dataset, options.tokenizer, **tokenizer, options.data_cache);
    if (!cached) return cached.error();
    tokens = *cached;
  }
  Result<std::unique_ptr<TokenShardSource>> source = TokenShardSource::open(tokens, seq);
  if (!source) return source.error();
  opened.source = std::move(*source);
  return opened;
}

}  // namespace

Result<Data> open_data(const TrainOptions& options,
                       const std::function<void(const std::string&)>& say) {
  Result<Opened> opened = open_source(options, say);
  if (!opened) return opened.error();
  if (opened->source->vocab_size() > options.shape.vocab) {
    return Error{"tokens up to " + std::to_string(opened->source->vocab_size()) +
                     ", and the model's vocabulary is " + std::to_string(options.shape.vocab),
                 "--dataset " + printable(options.dataset, 200), "see --vocab-size, --tokenizer"};
  }
  Sampler sampler(opened->source->block_samples(), options.seed, opened->source->natural_shuffle());
  return Data{std::move(opened->source), std::move(sampler), opened->stream};
}

}  // namespace ezpz::train
