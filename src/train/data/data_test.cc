// Data: the order of samples, the sources, and what is refused.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "base/file.h"
#include "train/data/random_source.h"
#include "train/data/sampler.h"
#include "train/data/source.h"
#include "train/data/token_shard.h"
#include "train/data/tokenizer.h"

namespace ezpz::train {
namespace {

class Data : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ezpz-data-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

std::string write_shard(const std::string& path, uint64_t vocab, int32_t first, int32_t count) {
  Result<TokenShardWriter> writer = TokenShardWriter::open(path, vocab);
  EXPECT_TRUE(writer.ok());
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  EXPECT_TRUE(writer->append(tokens).ok());
  EXPECT_TRUE(writer->finish().ok());
  return path;
}

TEST(Permutation, EverySizeIsPermuted) {
  for (uint64_t n = 1; n < 300; ++n) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t at = permute(n, n * 77, i);
      EXPECT_LT(at, n);
      seen.insert(at);
    }
    EXPECT_EQ(seen.size(), n);
  }
}

TEST(Permutation, KeysGiveDifferentOrdersAndPlacesAreEvenlyUsed) {
  const uint64_t n = 1000;
  uint64_t same = 0;
  std::vector<double> sum(4);
  for (uint64_t i = 0; i < n; ++i) {
    same += permute(n, 1, i) == permute(n, 2, i) ? 1 : 0;
    sum[i * 4 / n] += static_cast<double>(permute(n, 3, i));
  }
  EXPECT_LT(same, 12U);  // one is expected
  for (const double quarter : sum) EXPECT_NEAR(quarter / 250, 499.5, 90);
}

// A run in pieces: each with its own number of ranks, stopped and resumed through the saved state.
std::vector<uint64_t> run_in_pieces(Shuffle shuffle, const std::vector<uint64_t>& blocks,
                                    const std::vector<std::pair<BatchLayout, int>>& pieces) {
  std::vector<uint64_t> seen;
  std::string saved;
  for (const auto& [layout, steps] : pieces) {
    Sampler sampler(blocks, 42, shuffle);
    if (!saved.empty()) {
      const Result<SamplerState> state = parse_sampler_state(saved);
      EXPECT_TRUE(state.ok());
      EXPECT_TRUE(sampler.restore(*state).ok());
    }
    for (int step = 0; step < steps; ++step) {
      for (uint64_t accum = 0; accum < layout.grad_accum; ++accum) {
        for (uint64_t rank = 0; rank < layout.dp_ranks; ++rank) {
          for (const uint64_t sample : sampler.micro_batch(layout, accum, rank)) {
            seen.push_back(sample);
          }
        }
      }
      sampler.advance(layout.samples_per_step());
    }
    saved = format_sampler_state(sampler.state());
  }
  return seen;
}

TEST(Samplers, NoSampleIsLostOrRepeatedAcrossARestartWithAnotherWorldSize) {
  const std::vector<uint64_t> blocks{17, 1, 30, 12};  // 60 samples
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::samples, Shuffle::blocks}) {
    const auto alone = run_in_pieces(shuffle, blocks, {{{1, 1, 1}, 180}});
    const auto pieces = run_in_pieces(
        shuffle, blocks, {{{2, 1, 3}, 7}, {{1, 2, 4}, 3}, {{3, 1, 1}, 10}, {{1, 3, 14}, 2}});
    EXPECT_EQ(pieces, alone);
    for (auto from = alone.begin(); from != alone.begin() + 180; from += 60) {
      const std::set<uint64_t> once(from, from + 60);
      EXPECT_EQ(once.size(), 60U);
    }
    if (shuffle != Shuffle::none) {
      EXPECT_NE(std::vector<uint64_t>(alone.begin(), alone.begin() + 60),
                std::vector<uint64_t>(alone.begin() + 60, alone.begin() + 120));
    }
  }
}

TEST(Samplers, WithBlocksEachIsUsedUpBeforeTheNext) {
  const std::vector<uint64_t> blocks{4, 7, 5};
  const std::vector<uint64_t> begin{0, 4, 11, 16};
  const Sampler sampler(blocks, 7, Shuffle::blocks);
  for (uint64_t index = 0; index < 48; ++index) {
    const uint64_t block = sampler.block_at(sampler.block_ordinal(index));
    EXPECT_GE(sampler.sample_at(index), begin[block]);
    EXPECT_LT(sampler.sample_at(index), begin[block + 1]);
  }
}

TEST(Samplers, AStateOfOtherDataIsRefused) {
  Sampler sampler({60}, 42, Shuffle::samples);
  EXPECT_TRUE(sampler.restore({42, 60, 13}).ok());
  EXPECT_EQ(sampler.position(), 13U);
  EXPECT_FALSE(sampler.restore({42, 61, 13}).ok());
  EXPECT_FALSE(sampler.restore({43, 60, 13}).ok());
  EXPECT_FALSE(parse_sampler_state("{\"seed\":1}").ok());
  EXPECT_FALSE(parse_sampler_state("[").ok());
}

TEST(RandomText, IsTheSameForASampleInAnyOrderAndDiffersBetweenSamples) {
  RandomSource source(32000, 64, 5);
  std::vector<int64_t> a(65);
  std::vector<int64_t> b(65);
  std::vector<int64_t> c(65);
  ASSERT_TRUE(source.read(7, a.data()).ok());
  ASSERT_TRUE(source.read(8, b.data()).ok());
  ASSERT_TRUE(source.read(7, c.data()).ok());
  EXPECT_EQ(a, c);
  EXPECT_NE(a, b);
  const auto [least, most] = std::minmax_element(a.begin(), a.end());
  EXPECT_GE(*least, 0);
  EXPECT_LT(*most, 32000);
  EXPECT_GT(*most, 16000);  // the whole vocabulary is used
}

TEST(RandomText, CanBeLearnedDownToItsEntropy) {
  RandomSource source(32000, 511, 5);
  std::map<int64_t, std::map<int64_t, double>> counts;
  std::vector<int64_t> tokens(512);
  for (uint64_t sample = 0; sample < 400; ++sample) {
    ASSERT_TRUE(source.read(sample, tokens.data()).ok());
    for (size_t i = 0; i + 1 < tokens.size(); ++i) ++counts[tokens[i]][tokens[i + 1]];
  }
  double loss = 0;
  double total = 0;
  for (const auto& [word, followers] : counts) {
    double sum = 0;
    for (const auto& [next, count] : followers) sum += count;
    for (const auto& [next, count] : followers) loss -= count * std::log(count / sum);
    total += sum;
  }
  EXPECT_NEAR(loss / total, RandomSource::entropy_nats(), 0.05);
}

TEST(RandomText, ASmallVocabularyIsKeptTo) {
  RandomSource source(3, 100, 1);
  std::vector<int64_t> tokens(101);
  ASSERT_TRUE(source.read(0, tokens.data()).ok());
  for (const int64_t token : tokens) EXPECT_LT(token, 3);
}

TEST_F(Data, SamplesOfShardsShareOneTokenAndLoseNone) {
  write_shard(dir_ + "/a.tok", 100, 0, 10);  // 3 samples of 3 + 1
  write_shard(dir_ + "/b.tok", 100, 50, 8);  // 2
  write_shard(dir_ + "/c.txt", 100, 0, 50);
  const auto source = TokenShardSource::open(dir_, 3);
  ASSERT_TRUE(source.ok()) << source.error().one_line();
  EXPECT_EQ((*source)->block_samples(), (std::vector<uint64_t>{3, 2}));
  int64_t tokens[4];
  ASSERT_TRUE((*source)->read(2, tokens).ok());
  EXPECT_EQ(std::vector<int64_t>(tokens, tokens + 4), (std::vector<int64_t>{6, 7, 8, 9}));
  ASSERT_TRUE((*source)->read(4, tokens).ok());
  EXPECT_EQ(std::vector<int64_t>(tokens, tokens + 4), (std::vector<int64_t>{53, 54, 55, 56}));
  EXPECT_FALSE((*source)->read(5, tokens).ok());
  EXPECT_FALSE(TokenShardSource::open(dir_, 10).ok());
  EXPECT_FALSE(TokenShardSource::open(dir_ + "/nothing", 3).ok());
}

TEST_F(Data, ALargeVocabularyTakesFourBytes) {
  write_shard(dir_ + "/a.tok", 256128, 256000, 128);
  const auto shard = TokenShard::open(dir_ + "/a.tok");
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ(shard->header().token_bytes, 4U);
  int64_t last = 0;
  ASSERT_TRUE(shard->read(127, 1, &last).ok());
  EXPECT_EQ(last, 256127);
}

TEST_F(Data, AShardThatIsNotWholeOrHoldsOtherTokensIsRefused) {
  const std::string path = write_shard(dir_ + "/a.tok", 100, 0, 20);
  {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(kTokenShardHeaderBytes + 6);
    stream.put(static_cast<char>(100));
  }
  const auto shard = TokenShard::open(path);
  ASSERT_TRUE(shard.ok());
  int64_t tokens[20];
  EXPECT_TRUE(shard->read(4, 16, tokens).ok());
  EXPECT_FALSE(shard->read(0, 20, tokens).ok());
  EXPECT_FALSE(shard->read(UINT64_MAX, 2, tokens).ok());
  std::filesystem::resize_file(path, 80);
  EXPECT_FALSE(TokenShard::open(path).ok());
  std::filesystem::resize_file(path, 10);
  EXPECT_FALSE(TokenShard::open(path).ok());
  EXPECT_FALSE(TokenShardWriter::open(dir_ + "/b.tok", 10)->append({10}).ok());
  EXPECT_FALSE(file_exists(dir_ + "/b.tok"));
}

TEST_F(Data, ATextIsTokenizedOnceAndAgainWhenItChanges) {
  const std::string text = dir_ + "/t.txt";
  const auto tokenizer = make_byte_tokenizer();
  ASSERT_TRUE(write_file_atomically(text, std::string(3'000'000, 'x') + "\n\xff"
                                                                        "end")
                  .ok());
  const auto first = cached_tokens(text, "byte", *tokenizer, dir_ + "/cache");
  ASSERT_TRUE(first.ok()) << first.error().one_line();
  const auto shard = TokenShard::open(*first);
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ(shard->header().tokens, 3'000'006U);
  int64_t tail[6];
  ASSERT_TRUE(shard->read(3'000'000, 6, tail).ok());
  EXPECT_EQ(std::vector<int64_t>(tail, tail + 6),
            (std::vector<int64_t>{'\n', 0xff, 'e', 'n', 'd', 256}));
  const auto written = std::filesystem::last_write_time(*first);
  EXPECT_EQ(*cached_tokens(text, "byte", *tokenizer, dir_ + "/cache"), *first);
  EXPECT_EQ(std::filesystem::last_write_time(*first), written);
  ASSERT_TRUE(write_file_atomically(text, "other").ok());
  const auto second = cached_tokens(text, "byte", *tokenizer, dir_ + "/cache");
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, *first);
}

TEST_F(Data, BatchesAreInputsAndTheirNextTokens) {
  write_shard(dir_ + "/a.tok", 100, 0, 13);
  const auto source = TokenShardSource::open(dir_, 3);
  ASSERT_TRUE(source.ok());
  Sampler sampler((*source)->block_samples(), 1, Shuffle::none);
  Batches batches(**source, sampler, {1, 1, 2}, 3);
  int64_t inputs[3];
  int64_t targets[3];
  ASSERT_TRUE(batches.fill(0, 1, inputs, targets).ok());
  EXPECT_EQ(inputs[0], 3);
  EXPECT_EQ(targets[2], 6);
  batches.end_step();
  ASSERT_TRUE(batches.fill(0, 0, inputs, targets).ok());
  EXPECT_EQ(inputs[0], 6);
}

}  // namespace
}  // namespace ezpz::train
