#include "train/data/stream_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "train/data/fetch.h"
#include "train/data/token_shard.h"
#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr size_t kMaxIndexBytes = 64U << 20U;
constexpr double kIndexAtMost_s = 60;
constexpr double kFirstPause_s = 0.25;
constexpr double kLongestPause_s = 30;
constexpr double kOther_s = 0.1;  // until we look whether another rank has fetched it

std::string beside(const std::string& url, const std::string& file) {
  return url.substr(0, url.rfind('/') + 1) + file;
}

std::string seconds_text(double seconds) {
  return std::to_string(static_cast<long>(seconds)) + " s";
}

}  // namespace

Result<StreamIndex> parse_stream_index(std::string_view text, const std::string& where) {
  const Result<StrictJson> parsed = parse_strict_json(text, where);
  if (!parsed) return parsed.error();
  StreamIndex index;
  const auto vocab = json_uint(*parsed, "vocab_size");
  if (!vocab || *vocab == 0 || *vocab > INT32_MAX) return Error{"no vocab_size", where, ""};
  index.vocab_size = static_cast<int64_t>(*vocab);
  const auto shards = parsed->find("shards");
  if (shards == parsed->end() || !shards->is_array() || shards->empty()) {
    return Error{"no shards", where, ""};
  }
  uint64_t total = 0;
  for (const StrictJson& entry : *shards) {
    const auto file = json_text(entry, "file");
    const auto tokens = json_uint(entry, "tokens");
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!file || file->empty() || (*file)[0] == '.' || (*file)[0] == '-' || file->size() > 200 ||
        file->find_first_not_of(kPlain) != std::string::npos) {
      return Error{"a shard's \"file\" is not a plain file name", where, ""};
    }
    if (!tokens || __builtin_add_overflow(total, *tokens, &total) || total > (uint64_t{1} << 56U)) {
      return Error{"a shard's \"tokens\" is not a number of tokens", where, ""};
    }
    index.shards.push_back({*file, *tokens});
  }
  return index;
}

struct StreamSource::State {
  StreamOptions options;
  StreamIndex index;
  uint64_t seq_len = 0;
  std::vector<uint64_t> blocks;
  std::string curl;
  std::map<size_t, TokenShard> open;  // by the reading thread only

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Sampler> order;
  uint64_t ordinal = 0;  // of the block in use
  bool ending = false;
  std::string trouble;  // why the last fetch failed
  std::thread thread;

  [[nodiscard]] std::string path(size_t block) const {
    return options.cache_dir + "/" + index.shards[block].file;
  }
  [[nodiscard]] Result<TokenShard> cached(size_t block) const {
    Result<TokenShard> shard = TokenShard::open(path(block));
    if (!shard) return shard;
    if (shard->header().tokens != index.shards[block].tokens ||
        static_cast<int64_t>(shard->header().vocab_size) != index.vocab_size) {
      return Error{"the file is not what the index says", path(block), "remove it from the cache"};
    }
    return shard;
  }
  bool is_ending() {
    const std::lock_guard<std::mutex> lock(mutex);
    return ending;
  }

  enum class Outcome { there, other, failed };
  Outcome fetch_block(size_t block, std::string* why);
  void run();
  void wait(std::unique_lock<std::mutex>& lock, double seconds) {
    changed.wait_for(lock, std::chrono::duration<double>(seconds));
  }
};

// The cache may be shared: whoever holds the lock of a file fetches it.
StreamSource::State::Outcome StreamSource::State::fetch_block(size_t block, std::string* why) {
  if (cached(block).ok()) return Outcome::there;
  const Fd lock(::open((path(block) + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock) {
    *why = "cannot write to the cache " + options.cache_dir;
    return Outcome::failed;
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return Outcome::other;
  if (cached(block).ok()) return Outcome::there;
  const std::string url = beside(options.index_url, index.shards[block].file);
  Status done =
      fetch(curl, url, path(block), options.fetch_at_most_s, [this] { return is_ending(); });
  if (!done) {
    *why = done.error().one_line();
    return Outcome::failed;
  }
  const Result<TokenShard> shard = cached(block);
  if (shard.ok()) return Outcome::there;
  *why = shard.error().one_line();
  unlink(path(block).c_str());
  return Outcome::failed;
}

void StreamSource::State::run() {
  double pause_s = kFirstPause_s;
  std::unique_lock<std::mutex> lock(mutex);
  while (!ending) {
    const uint64_t from = ordinal;
    const uint64_t until = from + options.ahead_blocks;
    Outcome outcome = Outcome::there;
    for (uint64_t k = from; k <= until && !ending && ordinal == from; ++k) {
      const size_t block = order->block_at(k);
      lock.unlock();
      std::string why;
      outcome = fetch_block(block, &why);
      lock.lock();
      trouble = why;
      changed.notify_all();
      if (outcome != Outcome::there) break;
    }
    if (ending || ordinal != from) continue;
    if (outcome == Outcome::there) {
      pause_s = kFirstPause_s;
      changed.wait(lock, [&] { return ending || ordinal != from; });
    } else if (outcome == Outcome::other) {
      wait(lock, kOther_s);
    } else {
      changed.wait_for(lock, std::chrono::duration<double>(pause_s), [&] { return ending; });
      pause_s = std::min(kLongestPause_s, 2 * pause_s);
    }
  }
}

StreamSource::StreamSource(std::unique_ptr<State> state) : state_(std::move(state)) {}

StreamSource::~StreamSource() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

Result<std::unique_ptr<StreamSource>> StreamSource::open(const StreamOptions& options,
                                                         uint64_t seq_len) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->seq_len = seq_len;
  state->curl = find_program("curl");
  if (Status made = make_directories(options.cache_dir); !made) return made.error();
  const std::string copy = options.cache_dir + "/index.json";
  if (!file_exists(copy)) options.say("fetching the index of the data: " + options.index_url);
  const Status fetched =
      fetch(state->curl, options.index_url, copy, kIndexAtMost_s, [] { return false; });
  if (!fetched) {
    if (!file_exists(copy)) return fetched.error();
    options.say("the data's server does not answer, going on with what is in the cache: " +
                fetched.error().one_line());
  }
  Result<std::string> text = read_file(copy, kMaxIndexBytes);
  if (!text) return text.error();
  Result<StreamIndex> index = parse_stream_index(*text, options.index_url);
  if (!index) return index.error();
  state->index = *std::move(index);
  uint64_t total = 0;
  for (const StreamIndex::Shard& shard : state->index.shards) {
    state->blocks.push_back(shard.tokens == 0 ? 0 : (shard.tokens - 1) / seq_len);
    total += state->blocks.back();
  }
  if (total == 0)
    return Error{"too few tokens for one sample", options.index_url, "give a shorter --seq-len"};
  return std::unique_ptr<StreamSource>(new StreamSource(std::move(state)));
}

void StreamSource::follow(const Sampler& sampler) {
  State& state = *state_;
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.order = sampler;
  state.ordinal = sampler.block_ordinal(sampler.position());
  state.changed.notify_all();
  if (!state.thread.joinable()) state.thread = std::thread([&state] { state.run(); });
}

std::vector<uint64_t> StreamSource::block_samples() const { return state_->blocks; }

int64_t StreamSource::vocab_size() const { return state_->index.vocab_size; }

Status StreamSource::read(uint64_t sample, int64_t* tokens) {
  State& state = *state_;
  size_t block = 0;
  while (block < state.blocks.size() && sample >= state.blocks[block])
    sample -= state.blocks[block++];
  if (block == state.blocks.size()) return Error{"a sample beyond the end was asked for", "", ""};
  const std::string url = beside(state.options.index_url, state.index.shards[block].file);
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (!state.order) return Error{"a stream was read before follow()", url, ""};
    // A rank's own samples only go forward, by less than an epoch at once.
    for (uint64_t k = state.ordinal; k < state.ordinal + 2 * state.blocks.size(); ++k) {
      if (state.order->block_at(k) != block) continue;
      if (k != state.ordinal) {
        state.ordinal = k;
        state.changed.notify_all();
      }
      break;
    }
  }
  auto found = state.open.find(block);
  const double began_s = monotonic_s();
  double said_s = began_s - state.options.say_every_s + 1;  // the first time after a second
  while (found == state.open.end()) {
    std::unique_lock<std::mutex> lock(state.mutex);
    Result<TokenShard> shard = state.cached(block);
    if (shard.ok()) {
      if (state.open.size() > state.options.ahead_blocks + 2) state.open.clear();
      found = state.open.emplace(block, *std::move(shard)).first;
      break;
    }
    const double now_s = monotonic_s();
    const std::string trouble = state.trouble.empty() ? "" : "; " + state.trouble;
    if (now_s - began_s > state.options.wait_at_most_s) {
      return Error{
          "no data after " + seconds_text(now_s - began_s) + ", waited on the network" + trouble,
          url, "can this node reach the server? copy the data into the cache from one that can"};
    }
    if (now_s - said_s >= state.options.say_every_s) {
      said_s = now_s;
      lock.unlock();
      std::string text = "no data yet, waiting on the network: ";
      text += url;
      text += ", ";
      text += seconds_text(now_s - began_s);
      state.options.say(text += trouble);
      lock.lock();
    }
    state.wait(lock, kOther_s);
  }
  return found->second.read(sample * state.seq_len, state.seq_len + 1, tokens);
}

}  // namespace ezpz::train
