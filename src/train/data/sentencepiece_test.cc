// SentencePiece models made here, piece by piece, with what the original makes of the same texts.
#include "train/data/sentencepiece.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstring>

namespace ezpz::train {
namespace {

std::string field(unsigned number, unsigned wire) {
  std::string tag;
  unsigned value = number << 3U | wire;
  while (value >= 128) {
    tag.push_back(static_cast<char>(value | 128U));
    value >>= 7U;
  }
  return tag + static_cast<char>(value);
}

std::string text_field(unsigned number, const std::string& bytes) {
  return field(number, 2) + static_cast<char>(bytes.size()) + bytes;  // below 128 bytes
}

std::string number_field(unsigned number, unsigned value) {
  return field(number, 0) + static_cast<char>(value);
}

class Maker {
 public:
  void piece(const std::string& text, float score, unsigned kind = 1) {
    std::string bytes(sizeof score, '\0');
    memcpy(bytes.data(), &score, sizeof score);
    model_ += text_field(1, text_field(1, text) + field(2, 5) + bytes + number_field(3, kind));
  }
  std::string end(unsigned type, bool byte_fallback, const std::string& charsmap = "") {
    const std::string trainer = number_field(3, type) + number_field(35, byte_fallback ? 1 : 0);
    const std::string normalizer =
        (charsmap.empty() ? "" : text_field(2, charsmap)) + number_field(3, 1) + number_field(4, 0);
    return model_ + text_field(2, trainer) + text_field(3, normalizer);
  }

 private:
  std::string model_;
};

const std::string kBlank = "\xe2\x96\x81";

// Ids: 0 <unk>, 1 <s>, 2 </s>, 3-258 bytes, then these.
enum : int32_t { kByte0 = 3, kB = 259, kA, kBb, kAb, kBab, kC, kAbc, kSep };

std::string model(unsigned type, bool bytes = true) {
  Maker maker;
  maker.piece("<unk>", 0, 2);
  maker.piece("<s>", 0, 3);
  maker.piece("</s>", 0, 3);
  for (unsigned i = 0; i < 256; ++i) {
    char name[8];
    snprintf(name, sizeof name, "<0x%02X>", i);
    maker.piece(name, 0, 6);
  }
  maker.piece("b", -8);
  maker.piece("a", -7);
  maker.piece(kBlank + "b", -3);
  maker.piece("ab", -2);
  maker.piece(kBlank + "ab", -4);
  maker.piece("c", -9);
  maker.piece("abc", -5);
  maker.piece("<sep>", 0, 4);
  maker.piece(kBlank, -6);
  return maker.end(type, bytes);
}

std::vector<int32_t> encode(const std::string& bytes, const std::string& text) {
  const auto tokenizer = parse_sentencepiece(bytes, "m");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().one_line();
  return (*tokenizer)->encode(text);
}

TEST(SentencePieces, BpeMergesTheBestPairFirst) {
  EXPECT_EQ(encode(model(2), "ab"), (std::vector<int32_t>{kBab}));
  EXPECT_EQ(encode(model(2), "abc"), (std::vector<int32_t>{kBab, kC}));  // "_ab" before "abc"
  EXPECT_EQ(encode(model(2), "babc"), (std::vector<int32_t>{kBb, kAbc}));
  EXPECT_EQ(encode(model(2), "bb ab"), (std::vector<int32_t>{kBb, kB, kBab}));
  EXPECT_EQ(encode(model(2), ""), std::vector<int32_t>{});
}

TEST(SentencePieces, UnigramTakesTheBestSum) {
  // "_" "abc" is -11, "_ab" "c" is -13.
  EXPECT_EQ(encode(model(1), "abc"), (std::vector<int32_t>{kSep + 1, kAbc}));
  EXPECT_EQ(encode(model(1), "ab"), (std::vector<int32_t>{kBab}));
}

TEST(SentencePieces, AUsersPieceIsNeverCutOrMerged) {
  EXPECT_EQ(encode(model(2), "a<sep>b"), (std::vector<int32_t>{kSep + 1, kA, kSep, kB}));
  EXPECT_EQ(encode(model(1), "a<sep>b"), (std::vector<int32_t>{kSep + 1, kA, kSep, kB}));
}

TEST(SentencePieces, WhatIsNotKnownIsItsBytesOrUnknown) {
  EXPECT_EQ(encode(model(2), "b\xc3\xa9"),
            (std::vector<int32_t>{kBb, kByte0 + 0xc3, kByte0 + 0xa9}));
  EXPECT_EQ(encode(model(2), "b\xff"),
            (std::vector<int32_t>{kBb, kByte0 + 0xef, kByte0 + 0xbf, kByte0 + 0xbd}));
  EXPECT_EQ(encode(model(2, false), "b\xc3\xa9x"), (std::vector<int32_t>{kBb, 0}));
}

TEST(SentencePieces, DecodingGivesTheTextBack) {
  const auto tokenizer = parse_sentencepiece(model(2), "m");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->end_of_text(), 2);
  for (const std::string text : {"abc bab  c", "<sep> d\xc3\xa9j\xc3\xa0 vu\n", "a"}) {
    EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(text)), text);
  }
}

TEST(SentencePieces, ModelsThatWouldBeReadWronglyAreRefused) {
  const std::string whole = model(2);
  EXPECT_FALSE(parse_sentencepiece("", "m").ok());
  EXPECT_FALSE(parse_sentencepiece("{\"model\":1}", "m").ok());
  EXPECT_FALSE(parse_sentencepiece(whole.substr(0, whole.size() - 1), "m").ok());
  EXPECT_FALSE(parse_sentencepiece(model(4), "m").ok());
  Maker maker;
  maker.piece("<unk>", 0, 2);
  EXPECT_FALSE(parse_sentencepiece(maker.end(2, false, "map"), "m").ok());
}

}  // namespace
}  // namespace ezpz::train
