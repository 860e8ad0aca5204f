#include "train/data/sentencepiece.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/file.h"

namespace ezpz::train {
namespace {

constexpr size_t kMaxModelBytes = 256U << 20U;
constexpr std::string_view kSpace = "\xe2\x96\x81";        // what stands for a blank in the pieces
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // what stands for bytes that are no text
constexpr size_t kMaxPieceBytes = 4096;
constexpr float kUnknownPenalty = 10;

enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Piece {
  std::string text;
  float score = 0;
  Kind kind = Kind::normal;
};

// The fields of a protocol buffer message, one after another.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  uint32_t number = 0;
  uint64_t value = 0;      // of a whole number, or the bits of a fixed one
  std::string_view bytes;  // of a text or message

  // False at the end, or when the rest makes no sense; broken() tells which.
  bool next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!varint(&tag) || tag > UINT32_MAX) return fail();
    number = static_cast<uint32_t>(tag >> 3U);
    switch (tag & 7U) {
      case 0:
        return varint(&value) || fail();
      case 1:
        return fixed(8) || fail();
      case 2: {
        uint64_t size = 0;
        if (!varint(&size) || size > rest_.size()) return fail();
        bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
      case 5:
        return fixed(4) || fail();
      default:
        return fail();
    }
  }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  bool fail() {
    broken_ = true;
    return false;
  }
  bool varint(uint64_t* out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *out |= static_cast<uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return true;
    }
    return false;
  }
  bool fixed(size_t size) {
    if (rest_.size() < size) return false;
    value = 0;
    memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  std::string_view rest_;
  bool broken_ = false;
};

struct Model {
  std::vector<Piece> pieces;
  bool bpe = false;
  bool byte_fallback = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  int32_t unknown = 0;
  int32_t end = -1;
};

bool read_piece(std::string_view bytes, Model* model) {
  Piece piece;
  Fields fields(bytes);
  while (fields.next()) {
    if (fields.number == 1) piece.text = fields.bytes;
    if (fields.number == 2) {
      const auto bits = static_cast<uint32_t>(fields.value);
      memcpy(&piece.score, &bits, sizeof piece.score);
    }
    if (fields.number == 3) piece.kind = static_cast<Kind>(fields.value);
  }
  if (piece.text.size() > kMaxPieceBytes) return false;
  model->pieces.push_back(std::move(piece));
  return !fields.broken();
}

Result<Model> read_model(std::string_view bytes, const std::string& where) {
  const Error wrong{"not a SentencePiece model", where, ""};
  Model model;
  uint64_t type = 1;
  bool normalizes = false;
  bool suffix = false;
  Fields fields(bytes);
  while (fields.next()) {
    if (fields.number == 1 && !read_piece(fields.bytes, &model)) return wrong;
    if (fields.number == 2) {
      Fields trainer(fields.bytes);
      while (trainer.next()) {
        if (trainer.number == 3) type = trainer.value;
        if (trainer.number == 24) suffix = trainer.value != 0;
        if (trainer.number == 35) model.byte_fallback = trainer.value != 0;
        if (trainer.number == 40) model.unknown = static_cast<int32_t>(trainer.value);
        if (trainer.number == 42) model.end = static_cast<int32_t>(trainer.value);
      }
      if (trainer.broken()) return wrong;
    }
    if (fields.number == 3) {
      Fields normalizer(fields.bytes);
      while (normalizer.next()) {
        if (normalizer.number == 2) normalizes = !normalizer.bytes.empty();
        if (normalizer.number == 3) model.add_dummy_prefix = normalizer.value != 0;
        if (normalizer.number == 4) model.remove_extra_whitespaces = normalizer.value != 0;
        if (normalizer.number == 5) model.escape_whitespaces = normalizer.value != 0;
      }
      if (normalizer.broken()) return wrong;
    }
  }
  if (fields.broken() || model.pieces.empty()) return wrong;
  const std::string hint = "tokenize the text with its own tools into files of tokens";
  if (type != 1 && type != 2)
    return Error{"a SentencePiece model of words or characters", where, hint};
  if (normalizes) return Error{"a SentencePiece model that normalizes characters", where, hint};
  if (suffix) return Error{"a SentencePiece model with blanks behind the words", where, hint};
  model.bpe = type == 2;
  const auto size = static_cast<int32_t>(std::min<size_t>(model.pieces.size(), INT32_MAX));
  // The numbers in the trainer's part are what was asked for; the pieces' kinds are what is there.
  for (int32_t id = 0; id < size; ++id) {
    if (model.pieces[static_cast<size_t>(id)].kind == Kind::unknown) model.unknown = id;
    if (model.pieces[static_cast<size_t>(id)].text == "</s>") model.end = id;
  }
  if (model.unknown < 0 || model.unknown >= size) return wrong;
  if (model.end < 0 || model.end >= size) model.end = model.unknown;
  return model;
}

// How long the character is that begins with this byte; a byte that begins none is one by itself.
size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t wanted = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < wanted; ++i) {
    if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) return 1;
  }
  return wanted;
}

class SentencePiece : public Tokenizer {
 public:
  explicit SentencePiece(Model model) : model_(std::move(model)) {
    byte_ids_.assign(256, -1);
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const Piece& piece = model_.pieces[i];
      const auto id = static_cast<int32_t>(i);
      unsigned byte = 0;
      if (piece.kind == Kind::byte && sscanf(piece.text.c_str(), "<0x%2X>", &byte) == 1) {
        byte_ids_[byte & 0xffU] = id;
      }
      if (piece.kind != Kind::normal && piece.kind != Kind::user_defined) continue;
      ids_.emplace(piece.text, id);
      longest_ = std::max(longest_, piece.text.size());
      least_score_ = std::min(least_score_, piece.score);
      most_score_ = std::max(most_score_, piece.score);
      if (piece.kind == Kind::user_defined && !piece.text.empty()) users_.push_back(piece.text);
    }
    // The longest that fits is taken.
    std::stable_sort(users_.begin(), users_.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
  }

  [[nodiscard]] int64_t vocab_size() const override {
    return static_cast<int64_t>(model_.pieces.size());
  }
  [[nodiscard]] int32_t end_of_text() const override { return model_.end; }

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    const std::string prepared = prepare(text);
    std::vector<int32_t> tokens;
    if (model_.bpe) {
      encode_bpe(prepared, &tokens);
    } else {
      encode_unigram(prepared, &tokens);
    }
    return tokens;
  }

  [[nodiscard]] std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || token >= vocab_size()) continue;
      const Piece& piece = model_.pieces[static_cast<size_t>(token)];
      unsigned byte = 0;
      if (piece.kind == Kind::byte && sscanf(piece.text.c_str(), "<0x%2X>", &byte) == 1) {
        text.push_back(static_cast<char>(byte));
      } else if (piece.kind == Kind::normal || piece.kind == Kind::user_defined) {
        text += piece.text;
      }
    }
    for (size_t at = 0; (at = text.find(kSpace, at)) != std::string::npos; ++at) {
      text.replace(at, kSpace.size(), " ");
    }
    if (model_.add_dummy_prefix && !text.empty() && text[0] == ' ') text.erase(0, 1);
    return text;
  }

 private:
  [[nodiscard]] std::string prepare(std::string_view text) const {
    const std::string_view blank = model_.escape_whitespaces ? kSpace : std::string_view(" ");
    std::string result;
    if (model_.remove_extra_whitespaces) {
      while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
      while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    }
    if (text.empty()) return result;
    if (model_.add_dummy_prefix) result += blank;
    bool after_blank = false;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = character_bytes(text.substr(at));
      const char c = text[at];
      if (c == ' ') {
        if (!after_blank || !model_.remove_extra_whitespaces) result += blank;
      } else if (bytes == 1 && static_cast<unsigned char>(c) >= 0x80) {
        result += kReplacement;
      } else {
        result += text.substr(at, bytes);
      }
      after_blank = c == ' ';
      at += bytes;
    }
    return result;
  }

  // A user's own piece at the start of text, which is never cut or merged; 0 bytes when none is.
  [[nodiscard]] size_t user_bytes(std::string_view text) const {
    for (const std::string& user : users_) {
      if (text.substr(0, user.size()) == user) return user.size();
    }
    return 0;
  }

  void add(std::string_view piece, std::vector<int32_t>* tokens) const {
    const auto found = ids_.find(std::string(piece));
    if (found != ids_.end()) {
      tokens->push_back(found->second);
    } else if (model_.byte_fallback) {
      for (const char c : piece) {
        const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
        tokens->push_back(id >= 0 ? id : model_.unknown);
      }
    } else if (tokens->empty() || tokens->back() != model_.unknown) {
      tokens->push_back(model_.unknown);  // neighbours that are not known are one
    }
  }

  // Merges the pair with the best score, the leftmost of several, until none is a piece.
  void encode_bpe(std::string_view text, std::vector<int32_t>* tokens) const {
    struct Symbol {
      std::string_view text;
      int previous;
      int next;
      bool fixed;
    };
    struct Merge {
      float score;
      int left;
      int right;
      size_t bytes;
      bool operator<(const Merge& other) const {
        return score < other.score || (score == other.score && left > other.left);
      }
    };
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < text.size();) {
      const size_t user = user_bytes(text.substr(at));
      const size_t bytes = user > 0 ? user : character_bytes(text.substr(at));
      const int index = static_cast<int>(symbols.size());
      symbols.push_back({text.substr(at, bytes), index - 1, index + 1, user > 0});
      at += bytes;
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    std::priority_queue<Merge> merges;
    const auto consider = [&](int left, int right) {
      if (left < 0 || right < 0) return;
      const Symbol& a = symbols[static_cast<size_t>(left)];
      const Symbol& b = symbols[static_cast<size_t>(right)];
      if (a.fixed || b.fixed) return;
      const size_t bytes = a.text.size() + b.text.size();
      if (bytes > longest_) return;
      const auto found = ids_.find(std::string(a.text.data(), bytes));
      if (found == ids_.end()) return;
      merges.push({model_.pieces[static_cast<size_t>(found->second)].score, left, right, bytes});
    };
    for (size_t i = 1; i < symbols.size(); ++i)
      consider(static_cast<int>(i) - 1, static_cast<int>(i));
    while (!merges.empty()) {
      const Merge merge = merges.top();
      merges.pop();
      Symbol& left = symbols[static_cast<size_t>(merge.left)];
      Symbol& right = symbols[static_cast<size_t>(merge.right)];
      // One of the two has been merged with another since.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != merge.bytes) {
        continue;
      }
      left.text = std::string_view(left.text.data(), merge.bytes);
      right.text = {};
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = merge.left;
      consider(left.previous, merge.left);
      consider(merge.left, left.next);
    }
    for (int i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      add(symbols[static_cast<size_t>(i)].text, tokens);
    }
  }

  // The cut with the best sum of scores.
  void encode_unigram(std::string_view text, std::vector<int32_t>* tokens) const {
    struct Best {
      float score = -std::numeric_limits<float>::infinity();
      size_t from = 0;
    };
    std::vector<Best> best(text.size() + 1);
    best[0].score = 0;
    const auto offer = [&](size_t from, size_t to, float score) {
      if (best[from].score + score > best[to].score) best[to] = {best[from].score + score, from};
    };
    std::string piece;
    for (size_t at = 0; at < text.size();) {
      const size_t one = character_bytes(text.substr(at));
      bool single = false;
      for (size_t bytes = one; bytes <= longest_ && at + bytes <= text.size();) {
        piece.assign(text, at, bytes);
        if (const auto found = ids_.find(piece); found != ids_.end()) {
          const Piece& known = model_.pieces[static_cast<size_t>(found->second)];
          const float score = known.kind == Kind::user_defined
                                  ? static_cast<float>(bytes) * most_score_ - 0.1F
                                  : known.score;
          offer(at, at + bytes, score);
          single = single || bytes == one;
        }
        if (at + bytes == text.size()) break;
        bytes += character_bytes(text.substr(at + bytes));
      }
      if (!single) offer(at, at + one, least_score_ - kUnknownPenalty);
      at += one;
    }
    std::vector<std::string_view> cut;
    for (size_t at = text.size(); at > 0; at = best[at].from) {
      cut.push_back(text.substr(best[at].from, at - best[at].from));
    }
    for (auto it = cut.rbegin(); it != cut.rend(); ++it) add(*it, tokens);
  }

  Model model_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<int32_t> byte_ids_;
  std::vector<std::string> users_;
  size_t longest_ = 0;
  float least_score_ = std::numeric_limits<float>::max();
  float most_score_ = std::numeric_limits<float>::lowest();
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> parse_sentencepiece(std::string_view bytes,
                                                       const std::string& where) {
  Result<Model> model = read_model(bytes, where);
  if (!model) return model.error();
  return std::unique_ptr<Tokenizer>(std::make_unique<SentencePiece>(*std::move(model)));
}

Result<std::unique_ptr<Tokenizer>> open_sentencepiece(const std::string& path) {
  Result<std::string> bytes = read_file(path, kMaxModelBytes);
  if (!bytes) return bytes.error();
  return parse_sentencepiece(*bytes, path);
}

}  // namespace ezpz::train
