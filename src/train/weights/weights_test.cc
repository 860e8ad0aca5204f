// Safetensors, Hugging Face folders and PEFT adapters: what is read back, and what is refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>

#include "base/file.h"
#include "train/weights/hf_model.h"
#include "train/weights/names.h"
#include "train/weights/peft.h"

namespace ezpz::train {
namespace {

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ezpz-weights-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

std::string refusal(const std::string& json, uint64_t data_bytes) {
  const Result<SafetensorsHeader> header = parse_safetensors_header(json, data_bytes, "f");
  return header.ok() ? "accepted" : header.error().what;
}

HfConfig tiny() {
  HfConfig config;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 2;
  return config;
}

uint64_t total_elements(const std::vector<TensorSpec>& tensors) {
  uint64_t total = 0;
  for (const TensorSpec& tensor : tensors) {
    uint64_t count = 1;
    for (const int64_t dimension : tensor.shape) count *= static_cast<uint64_t>(dimension);
    total += count;
  }
  return total;
}

std::vector<float> counting(uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 97) * 0.25F;
  return values;
}

void write_model(const std::string& dir, const HfConfig& config, DType dtype, uint64_t max_bytes) {
  Result<HfModelWriter> writer = HfModelWriter::open(dir, config, dtype, max_bytes);
  ASSERT_TRUE(writer.ok()) << writer.error().one_line();
  const std::vector<float> values = counting(total_elements(model_tensors(config, dtype)));
  const Status appended = writer->append(values.data(), values.size());
  ASSERT_TRUE(appended.ok()) << appended.error().one_line();
  const Status finished = writer->finish();
  ASSERT_TRUE(finished.ok()) << finished.error().one_line();
}

TEST(DTypes, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto bits = static_cast<uint16_t>(half);
    for (const DType type : {DType::f16, DType::bf16}) {
      float value = 0;
      uint16_t back = 0;
      to_f32(type, &bits, &value, 1);
      from_f32(type, &value, &back, 1);
      if (std::isnan(value)) {
        to_f32(type, &back, &value, 1);
        ASSERT_TRUE(std::isnan(value)) << half;
      } else {
        ASSERT_EQ(back, bits) << half;
      }
    }
  }
}

TEST(DTypes, FloatsAreRoundedToTheNearestAndTiesToEven) {
  const auto through = [](DType type, float value) {
    uint16_t bits = 0;
    from_f32(type, &value, &bits, 1);
    to_f32(type, &bits, &value, 1);
    return value;
  };
  EXPECT_EQ(through(DType::f16, 2049.0F), 2048.0F);
  EXPECT_EQ(through(DType::f16, 2051.0F), 2052.0F);
  EXPECT_EQ(through(DType::f16, 65519.0F), 65504.0F);
  EXPECT_TRUE(std::isinf(through(DType::f16, 65520.0F)));
  EXPECT_EQ(through(DType::f16, 0x1p-25F), 0.0F);
  EXPECT_EQ(through(DType::f16, 0x1.8p-25F), 0x1p-24F);
  EXPECT_EQ(through(DType::bf16, 257.0F), 256.0F);
  EXPECT_EQ(through(DType::bf16, 259.0F), 260.0F);
  EXPECT_TRUE(std::isnan(through(DType::bf16, std::numeric_limits<float>::quiet_NaN())));
}

TEST(SafetensorsHeaders, ClaimsThatDoNotFitTheFileAreRefused) {
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "accepted");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )", 4), "accepted");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
            "tensor \"a\" lies outside of the file: bytes 0 to 8 of 7");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9),
            "1 bytes at the end belong to no tensor");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
            "tensor \"a\" has 8 bytes, not those of F32 [3]");
  EXPECT_EQ(
      refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      "tensor \"a\" has 0 bytes, not those of F32 [4294967296, 4294967296]");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                        "b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                    6),
            "tensor \"b\" overlaps the one before it");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                        "b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                    6),
            "tensor \"b\" leaves a hole before it");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                        "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                    1),
            "the key \"a\" stands twice");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
            "tensor \"a\" has no shape of whole numbers");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}})", 1),
            "tensor \"a\" has no dtype that is known: \"Q4\"");
  EXPECT_EQ(refusal("{", 0), "not JSON");
  EXPECT_EQ(refusal("{\"a\":" + std::string(100000, '['), 0), "JSON nested too deep");
}

TEST_F(Weights, ARectangleOfATensorIsReadWithoutTheRest) {
  const std::string path = dir_ + "/a.safetensors";
  Result<SafetensorsWriter> writer = SafetensorsWriter::open(
      path, {{"empty", DType::f32, {0, 3}}, {"m", DType::bf16, {6, 5}}, {"v", DType::f16, {4}}});
  ASSERT_TRUE(writer.ok()) << writer.error().one_line();
  const std::vector<float> values = counting(34);
  ASSERT_TRUE(writer->append(values.data(), 7).ok());
  EXPECT_FALSE(writer->finish().ok());  // not all of it is there
  ASSERT_TRUE(writer->append(values.data() + 7, 27).ok());
  EXPECT_FALSE(writer->append(values.data(), 1).ok());
  EXPECT_FALSE(file_exists(path));
  ASSERT_TRUE(writer->finish().ok());

  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().one_line();
  EXPECT_EQ(file->metadata().at("format"), "pt");
  const TensorInfo* m = file->find("m");
  ASSERT_NE(m, nullptr);
  float block[4];
  ASSERT_TRUE(file->read_block(*m, 2, 2, 3, 2, block).ok());
  EXPECT_EQ(block[0], values[13]);
  EXPECT_EQ(block[1], values[14]);
  EXPECT_EQ(block[2], values[18]);
  EXPECT_EQ(block[3], values[19]);
  ASSERT_TRUE(file->read_elements(*file->find("v"), 1, 3, block).ok());
  EXPECT_EQ(block[2], values[33]);
  EXPECT_FALSE(file->read_rows(*m, 5, 2, block).ok());
  EXPECT_FALSE(file->read_elements(*m, UINT64_MAX, 2, block).ok());
}

TEST_F(Weights, AFileThatWasCutShortIsRefused) {
  const std::string path = dir_ + "/a.safetensors";
  Result<SafetensorsWriter> writer = SafetensorsWriter::open(path, {{"m", DType::f32, {8}}});
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values = counting(8);
  ASSERT_TRUE(writer->append(values.data(), 8).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto size = std::filesystem::file_size(path);
  for (std::uintmax_t cut = 0; cut < size; ++cut) {
    std::filesystem::resize_file(path, size - 1 - cut);
    EXPECT_FALSE(SafetensorsFile::open(path).ok()) << cut;
  }
}

TEST_F(Weights, AWriterThatIsDroppedLeavesNothing) {
  {
    Result<SafetensorsWriter> writer =
        SafetensorsWriter::open(dir_ + "/a.safetensors", {{"m", DType::f32, {8}}});
    Result<HfModelWriter> model = HfModelWriter::open(dir_ + "/model", tiny(), DType::f32);
    const std::vector<float> values = counting(8);
    ASSERT_TRUE(writer.ok() && model.ok());
    ASSERT_TRUE(model->append(values.data(), 8).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST(Names, EveryTensorHasOneNameOnEachSide) {
  for (const TensorSpec& tensor : model_tensors(tiny(), DType::f32)) {
    const std::optional<std::string> theirs = hf_name(tensor.name);
    ASSERT_TRUE(theirs.has_value()) << tensor.name;
    EXPECT_EQ(trainer_name(*theirs), tensor.name);
  }
  EXPECT_EQ(hf_name("layers.10.w2"), "model.layers.10.mlp.down_proj.weight");
  EXPECT_EQ(hf_name("layers.01.w2"), std::nullopt);
  EXPECT_EQ(trainer_name("model.layers.1.self_attn.rotary_emb.inv_freq"), std::nullopt);
}

TEST_F(Weights, AModelInSeveralFilesIsReadBackAsItWasWritten) {
  const HfConfig config = tiny();
  write_model(dir_ + "/model", config, DType::bf16, 400);
  EXPECT_TRUE(file_exists(dir_ + "/model/model.safetensors.index.json"));
  const Result<HfModel> model = HfModel::open(dir_ + "/model");
  ASSERT_TRUE(model.ok()) << model.error().one_line();
  EXPECT_EQ(model->config().torch_dtype, "bfloat16");
  const std::vector<float> values = counting(total_elements(model_tensors(config, DType::f32)));
  uint64_t at = 0;
  for (const TensorSpec& tensor : model_tensors(config, DType::f32)) {
    const uint64_t count = total_elements({tensor});
    std::vector<float> back(count);
    ASSERT_TRUE(model->read_elements(tensor.name, 0, count, back.data()).ok());
    EXPECT_EQ(back, std::vector<float>(values.begin() + static_cast<long>(at),
                                       values.begin() + static_cast<long>(at + count)))
        << tensor.name;
    at += count;
  }
  EXPECT_FALSE(HfModelWriter::open(dir_ + "/model", config, DType::f32).ok());
}

TEST_F(Weights, TiedEmbeddingsAreTheOutputToo) {
  HfConfig config = tiny();
  config.tie_word_embeddings = true;
  write_model(dir_ + "/model", config, DType::f32, 1U << 30U);
  const Result<HfModel> model = HfModel::open(dir_ + "/model");
  ASSERT_TRUE(model.ok()) << model.error().one_line();
  EXPECT_EQ(model->find("output").tensor->name, "model.embed_tokens.weight");
}

TEST_F(Weights, AModelWithoutOneOfItsFilesIsRefusedByName) {
  write_model(dir_ + "/model", tiny(), DType::f32, 800);
  std::string second;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ + "/model")) {
    const std::string name = entry.path().filename();
    if (name.compare(0, 15, "model-00002-of-") == 0) second = name;
  }
  ASSERT_FALSE(second.empty());
  std::filesystem::remove(dir_ + "/model/" + second);
  const Result<HfModel> model = HfModel::open(dir_ + "/model");
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().one_line().find(second), std::string::npos) << model.error().one_line();
}

TEST(HfIndexes, AFileNameThatReachesOutOfTheFolderIsRefused) {
  EXPECT_TRUE(parse_hf_index(R"({"weight_map":{"a":"x.safetensors"}})", "i").ok());
  EXPECT_FALSE(parse_hf_index(R"({"weight_map":{"a":"../x.safetensors"}})", "i").ok());
  EXPECT_FALSE(parse_hf_index(R"({"weight_map":{"a":".."}})", "i").ok());
  EXPECT_FALSE(parse_hf_index(R"({"weight_map":{"a":3}})", "i").ok());
  EXPECT_FALSE(parse_hf_index(R"({"weight_map":{}})", "i").ok());
}

constexpr const char* kLlama32 = R"({"model_type":"llama","vocab_size":128256,"hidden_size":2048,
  "intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,
  "num_key_value_heads":8,"head_dim":64,"max_position_embeddings":131072,"rms_norm_eps":1e-05,
  "rope_theta":500000.0,"tie_word_embeddings":true,"hidden_act":"silu","attention_bias":false,
  "rope_scaling":{"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,
  "original_max_position_embeddings":8192,"rope_type":"llama3"},"torch_dtype":"bfloat16",
  "bos_token_id":128000,"eos_token_id":[128001,128008]})";

TEST(HfConfigs, ALlama32IsUnderstoodAndSurvivesBeingWritten) {
  const Result<HfConfig> read = parse_hf_config(kLlama32, "c");
  ASSERT_TRUE(read.ok()) << read.error().one_line();
  const Result<HfConfig> again = parse_hf_config(format_hf_config(*read), "c");
  ASSERT_TRUE(again.ok()) << again.error().one_line();
  for (const HfConfig& config : {*read, *again}) {
    EXPECT_EQ(config.num_key_value_heads, 8);
    EXPECT_EQ(config.head_dim, 64);
    EXPECT_TRUE(config.tie_word_embeddings);
    EXPECT_EQ(config.rope_theta, 500000);
    ASSERT_TRUE(config.rope_scaling.has_value());
    EXPECT_EQ(config.rope_scaling->factor, 32);
    EXPECT_EQ(config.eos_token_ids, (std::vector<int64_t>{128001, 128008}));
  }
  uint64_t parameters = total_elements(model_tensors(*read, DType::f32));
  EXPECT_EQ(parameters, 1235814400U);  // the published size of Llama-3.2-1B
}

TEST(HfConfigs, WhatCannotBeComputedTheSameWayIsRefused) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kLlama32;
    text.replace(text.find(from), from.size(), to);
    return parse_hf_config(text, "c").ok();
  };
  EXPECT_TRUE(with("\"silu\"", "\"silu\""));
  EXPECT_FALSE(with("\"silu\"", "\"gelu\""));
  EXPECT_FALSE(with("\"llama\"", "\"mistral\""));
  EXPECT_FALSE(with("\"rope_type\":\"llama3\"", "\"rope_type\":\"yarn\""));
  EXPECT_FALSE(with("\"attention_bias\":false", "\"attention_bias\":true"));
  EXPECT_FALSE(with("\"num_key_value_heads\":8", "\"num_key_value_heads\":7"));
  EXPECT_FALSE(with("\"vocab_size\":128256", "\"vocab_size\":-1"));
  EXPECT_FALSE(with("\"vocab_size\":128256", "\"vocab_size\":1e300"));
}

TEST(Rope, Llama3KeepsFastPairsAndSlowsTheSlowOnes) {
  const Result<HfConfig> config = parse_hf_config(kLlama32, "c");
  ASSERT_TRUE(config.ok());
  const std::vector<double> stretched = rope_frequencies(*config);
  HfConfig plain = *config;
  plain.rope_scaling.reset();
  const std::vector<double> kept = rope_frequencies(plain);
  ASSERT_EQ(stretched.size(), 32U);
  EXPECT_EQ(kept[0], 1.0);
  EXPECT_EQ(stretched[0], kept[0]);
  EXPECT_DOUBLE_EQ(stretched[31], kept[31] / 32);
  bool mixed = false;
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_LE(stretched[i], kept[i]);
    EXPECT_GE(stretched[i], kept[i] / 32);
    mixed = mixed || (stretched[i] < kept[i] && stretched[i] > kept[i] / 32 * 1.001);
  }
  EXPECT_TRUE(mixed);
}

TEST(Peft, NamesAndConfigurationsSurviveTheRoundTrip) {
  EXPECT_EQ(peft_name("layers.3.wq.lora_a"),
            "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(peft_trainer_name("base_model.model.model.layers.3.mlp.down_proj.lora_B.weight"),
            "layers.3.w2.lora_b");
  EXPECT_EQ(peft_name("layers.3.wq"), std::nullopt);
  PeftConfig config;
  config.r = 16;
  config.lora_alpha = 32;
  config.targets = *lora_targets("attn,mlp");
  const Result<PeftConfig> back = parse_peft_config(format_peft_config(config), "a");
  ASSERT_TRUE(back.ok()) << back.error().one_line();
  EXPECT_EQ(back->scaling(), 2);
  EXPECT_EQ(back->targets.size(), 7U);
  EXPECT_FALSE(lora_targets("attn,head").ok());
  EXPECT_FALSE(
      parse_peft_config(
          R"({"peft_type":"LORA","r":8,"lora_alpha":8,"use_dora":true,"target_modules":["q_proj"]})",
          "a")
          .ok());
}

TEST_F(Weights, AMergedAdapterIsTheWeightPlusItsScaledProduct) {
  const HfConfig config = tiny();
  write_model(dir_ + "/model", config, DType::f32, 1U << 30U);
  PeftConfig peft;
  peft.r = 2;
  peft.lora_alpha = 6;
  peft.targets = {"wk"};
  {
    Result<SafetensorsWriter> writer =
        write_peft_adapter(dir_ + "/adapter", config, peft, DType::f32);
    ASSERT_TRUE(writer.ok()) << writer.error().one_line();
    const std::vector<float> values =
        counting(total_elements(adapter_tensors(config, peft, DType::f32)));
    ASSERT_TRUE(writer->append(values.data(), values.size()).ok());
    ASSERT_TRUE(writer->finish().ok());
  }
  const Status merged =
      merge_peft_adapter(dir_ + "/model", dir_ + "/adapter", dir_ + "/merged", DType::f32);
  ASSERT_TRUE(merged.ok()) << merged.error().one_line();
  const Result<HfModel> before = HfModel::open(dir_ + "/model");
  const Result<HfModel> after = HfModel::open(dir_ + "/merged");
  const Result<PeftAdapter> adapter = read_peft_adapter(dir_ + "/adapter", config);
  ASSERT_TRUE(before.ok() && after.ok() && adapter.ok());
  float a[16];
  float b[8];
  float old_values[32];
  float new_values[32];
  ASSERT_TRUE(adapter->file.read_rows(*adapter->find("layers.1.wk.lora_a"), 0, 2, a).ok());
  ASSERT_TRUE(adapter->file.read_rows(*adapter->find("layers.1.wk.lora_b"), 0, 4, b).ok());
  ASSERT_TRUE(before->read_elements("layers.1.wk", 0, 32, old_values).ok());
  ASSERT_TRUE(after->read_elements("layers.1.wk", 0, 32, new_values).ok());
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      const float product = b[i * 2] * a[j] + b[i * 2 + 1] * a[8 + j];
      EXPECT_FLOAT_EQ(new_values[i * 8 + j], old_values[i * 8 + j] + 3 * product);
    }
  }
  ASSERT_TRUE(before->read_elements("layers.1.wq", 0, 32, old_values).ok());
  ASSERT_TRUE(after->read_elements("layers.1.wq", 0, 32, new_values).ok());
  EXPECT_TRUE(std::equal(std::begin(old_values), std::end(old_values), new_values));
}

}  // namespace
}  // namespace ezpz::train
