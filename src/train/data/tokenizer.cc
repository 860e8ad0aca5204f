#include "train/data/tokenizer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "train/data/counter_rng.h"
#include "train/data/token_shard.h"

namespace ezpz::train {
namespace {

constexpr size_t kPieceBytes = 1U << 20U;

class ByteTokenizer : public Tokenizer {
 public:
  [[nodiscard]] int64_t vocab_size() const override { return 257; }
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  [[nodiscard]] std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token >= 0 && token < 256) text.push_back(static_cast<char>(token));
    }
    return text;
  }
  [[nodiscard]] int32_t end_of_text() const override { return 256; }
};

Error read_error(const std::string& path) {
  return Error{std::string("cannot read: ") + strerrordesc_np(errno), path, ""};
}

Status tokenize_text(const std::string& path, const Tokenizer& tokenizer,
                     TokenShardWriter* writer) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return read_error(path);
  std::string piece;
  while (true) {
    const size_t held = piece.size();
    piece.resize(held + kPieceBytes);
    const ssize_t n = read(fd.get(), piece.data() + held, kPieceBytes);
    if (n < 0 && errno != EINTR) return read_error(path);
    piece.resize(held + static_cast<size_t>(n < 0 ? 0 : n));
    if (n < 0) continue;
    // Up to the last line end: a tokenizer's words do not go over it. A line without end is cut
    // when it has grown to several pieces.
    size_t cut = n == 0 ? piece.size() : piece.rfind('\n') + 1;
    if (cut == 0 && piece.size() >= 16 * kPieceBytes) cut = piece.size();
    if (cut > 0) {
      Status appended = writer->append(tokenizer.encode(std::string_view(piece).substr(0, cut)));
      if (!appended) return appended;
      piece.erase(0, cut);
    }
    if (n == 0) return writer->append({tokenizer.end_of_text()});
  }
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

Result<TokenizeResult> tokenize_files(const std::vector<std::string>& texts,
                                      const Tokenizer& tokenizer, const std::string& shard_path) {
  Result<TokenShardWriter> writer =
      TokenShardWriter::open(shard_path, static_cast<uint64_t>(tokenizer.vocab_size()));
  if (!writer) return writer.error();
  for (const std::string& text : texts) {
    if (Status done = tokenize_text(text, tokenizer, &*writer); !done) return done.error();
  }
  const TokenizeResult result{texts.size(), writer->tokens()};
  if (Status done = writer->finish(); !done) return done.error();
  return result;
}

Result<std::string> cached_tokens(const std::string& text, const std::string& tokenizer_name,
                                  const Tokenizer& tokenizer, const std::string& cache_dir) {
  struct stat info {};
  if (stat(text.c_str(), &info) != 0) return read_error(text);
  char* resolved = realpath(text.c_str(), nullptr);
  if (resolved == nullptr) return read_error(text);
  const std::string identity =
      std::string(resolved) + '\n' + tokenizer_name + '\n' + std::to_string(info.st_size) + '\n' +
      std::to_string(info.st_mtim.tv_sec) + '.' + std::to_string(info.st_mtim.tv_nsec);
  free(resolved);
  uint64_t hash = 0;
  for (const char c : identity) hash = mix64(hash * 257 + static_cast<unsigned char>(c) + 1);
  char name[32];
  snprintf(name, sizeof name, "%016llx.tok", static_cast<unsigned long long>(hash));
  const std::string path = cache_dir + "/" + name;
  if (TokenShard::open(path).ok()) return path;
  if (Status made = make_directories(cache_dir); !made) return made.error();
  Result<TokenizeResult> done = tokenize_files({text}, tokenizer, path);
  if (!done) return done.error();
  return path;
}

}  // namespace ezpz::train
