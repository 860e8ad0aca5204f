#include "train/data/token_shard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace ezpz::train {
namespace {

constexpr std::string_view kMagic = "EZPZTOK1";
constexpr std::string_view kEnding = ".tok";
constexpr size_t kFlushBytes = 1U << 20U;

template <class T>
T load(std::string_view bytes, size_t at) {
  T value;
  memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void store(std::string* bytes, size_t at, T value) {
  memcpy(bytes->data() + at, &value, sizeof value);
}

Error system_error(const std::string& what, const std::string& where) {
  return Error{what + ": " + strerrordesc_np(errno), where, ""};
}

std::string format_header(const TokenShardHeader& header) {
  std::string bytes(kTokenShardHeaderBytes, '\0');
  bytes.replace(0, kMagic.size(), kMagic);
  store(&bytes, 8, header.token_bytes);
  store(&bytes, 16, header.vocab_size);
  store(&bytes, 24, header.tokens);
  return bytes;
}

std::vector<std::string> shard_paths(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) return {path};
  std::vector<std::string> paths;
  if (DIR* folder = opendir(path.c_str()); folder != nullptr) {
    while (const dirent* entry = readdir(folder)) {
      const std::string_view name = entry->d_name;
      if (name.size() > kEnding.size() && name.substr(name.size() - kEnding.size()) == kEnding) {
        paths.push_back(path + "/" + entry->d_name);
      }
    }
    closedir(folder);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Result<TokenShardHeader> parse_token_shard_header(std::string_view bytes, uint64_t file_bytes,
                                                  const std::string& where) {
  if (bytes.size() < kTokenShardHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return Error{"not a file of tokens", where, "make one with ezpz-train tokenize"};
  }
  TokenShardHeader header;
  header.token_bytes = load<uint32_t>(bytes, 8);
  header.vocab_size = load<uint64_t>(bytes, 16);
  header.tokens = load<uint64_t>(bytes, 24);
  if ((header.token_bytes != 2 && header.token_bytes != 4) || header.vocab_size == 0 ||
      header.vocab_size > INT32_MAX || load<uint32_t>(bytes, 12) != 0) {
    return Error{"a file of tokens of a kind that is not known", where, ""};
  }
  uint64_t expected = 0;
  if (__builtin_mul_overflow(header.tokens, header.token_bytes, &expected) ||
      __builtin_add_overflow(expected, kTokenShardHeaderBytes, &expected) ||
      expected != file_bytes) {
    return Error{"the file has " + std::to_string(file_bytes) + " bytes, its header says " +
                     std::to_string(header.tokens) + " tokens of " +
                     std::to_string(header.token_bytes),
                 where, "was it copied whole?"};
  }
  return header;
}

Result<TokenShard> TokenShard::open(const std::string& path) {
  TokenShard shard;
  shard.path_ = path;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return system_error("cannot read", path);
  char start[kTokenShardHeaderBytes];
  const ssize_t n = pread(fd.get(), start, sizeof start, 0);
  if (n < 0) return system_error("cannot read", path);
  const auto bytes = static_cast<uint64_t>(info.st_size);
  Result<TokenShardHeader> header =
      parse_token_shard_header({start, static_cast<size_t>(n)}, bytes, path);
  if (!header) return header.error();
  shard.header_ = *header;
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return system_error("cannot map", path);
  shard.map_ = static_cast<const unsigned char*>(map);
  shard.bytes_ = bytes;
  return shard;
}

TokenShard::TokenShard(TokenShard&& other) noexcept { *this = std::move(other); }

TokenShard& TokenShard::operator=(TokenShard&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(header_, other.header_);
  std::swap(map_, other.map_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

TokenShard::~TokenShard() {
  if (map_ != nullptr) munmap(const_cast<unsigned char*>(map_), bytes_);
}

Status TokenShard::read(uint64_t first, uint64_t count, int64_t* out) const {
  if (first > header_.tokens || count > header_.tokens - first) {
    return Error{"tokens beyond the end were asked for", path_, ""};
  }
  const unsigned char* from = map_ + kTokenShardHeaderBytes + first * header_.token_bytes;
  uint64_t largest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t token = 0;
    memcpy(&token, from + i * header_.token_bytes, header_.token_bytes);
    largest = std::max<uint64_t>(largest, token);
    out[i] = token;
  }
  if (count > 0 && largest >= header_.vocab_size) {
    return Error{"token " + std::to_string(largest) + " is not in a vocabulary of " +
                     std::to_string(header_.vocab_size),
                 path_, "the file is damaged; make it anew"};
  }
  return success();
}

struct TokenShardWriter::State {
  std::string path;
  std::string temporary;
  Fd fd;
  TokenShardHeader header;
  std::string buffer;
};

TokenShardWriter::TokenShardWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenShardWriter::TokenShardWriter(TokenShardWriter&&) noexcept = default;

TokenShardWriter::~TokenShardWriter() {
  if (state_ && state_->fd) unlink(state_->temporary.c_str());
}

Result<TokenShardWriter> TokenShardWriter::open(const std::string& path, uint64_t vocab_size) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->temporary = path + ".tmp." + std::to_string(getpid());
  state->header.vocab_size = vocab_size;
  state->header.token_bytes = vocab_size <= 65536 ? 2 : 4;
  state->fd = Fd(::open(state->temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!state->fd) return system_error("cannot write", state->temporary);
  state->buffer = format_header(state->header);
  return TokenShardWriter(std::move(state));
}

uint64_t TokenShardWriter::tokens() const { return state_->header.tokens; }

Status TokenShardWriter::append(const std::vector<int32_t>& tokens) {
  State& state = *state_;
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<uint64_t>(token) >= state.header.vocab_size) {
      return Error{"token " + std::to_string(token) + " is not in the vocabulary", state.path, ""};
    }
    char bytes[sizeof token];
    memcpy(bytes, &token, sizeof token);
    state.buffer.append(bytes, state.header.token_bytes);
  }
  state.header.tokens += tokens.size();
  if (state.buffer.size() < kFlushBytes) return success();
  if (!write_all(state.fd.get(), state.buffer)) return system_error("cannot write", state.path);
  state.buffer.clear();
  return success();
}

Status TokenShardWriter::finish() {
  State& state = *state_;
  const std::string header = format_header(state.header);
  if (!write_all(state.fd.get(), state.buffer) ||
      pwrite(state.fd.get(), header.data(), header.size(), 0) !=
          static_cast<ssize_t>(header.size()) ||
      fsync(state.fd.get()) != 0 || rename(state.temporary.c_str(), state.path.c_str()) != 0) {
    return system_error("cannot write", state.path);
  }
  state.fd.reset();
  return success();
}

Result<std::unique_ptr<TokenShardSource>> TokenShardSource::open(const std::string& path,
                                                                 uint64_t seq_len) {
  std::unique_ptr<TokenShardSource> source(new TokenShardSource);
  source->seq_len_ = seq_len;
  uint64_t total = 0;
  for (const std::string& file : shard_paths(path)) {
    Result<TokenShard> shard = TokenShard::open(file);
    if (!shard) return shard.error();
    const auto vocab = static_cast<int64_t>(shard->header().vocab_size);
    if (source->vocab_size_ != 0 && source->vocab_size_ != vocab) {
      return Error{"its vocabulary is not that of the files before it", file, ""};
    }
    source->vocab_size_ = vocab;
    const uint64_t tokens = shard->header().tokens;
    source->blocks_.push_back(tokens == 0 ? 0 : (tokens - 1) / seq_len);
    total += source->blocks_.back();
    source->shards_.push_back(*std::move(shard));
  }
  if (source->shards_.empty()) {
    return Error{"no files of tokens (*.tok)", path, "make some with ezpz-train tokenize"};
  }
  if (total == 0) {
    return Error{"too few tokens for one sample of " + std::to_string(seq_len + 1), path,
                 "give a shorter --seq-len or more text"};
  }
  return source;
}

Status TokenShardSource::read(uint64_t sample, int64_t* tokens) {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (sample < blocks_[i]) return shards_[i].read(sample * seq_len_, seq_len_ + 1, tokens);
    sample -= blocks_[i];
  }
  return Error{"a sample beyond the end was asked for", "", ""};
}

}  // namespace ezpz::train
