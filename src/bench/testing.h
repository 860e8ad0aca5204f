// For the tests of this folder: a directory of their own, and runs as they may be found.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/metrics_line.h"

namespace ezpz::bench {

class TestDir {
 public:
  TestDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "ezpz-bench-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;
  ~TestDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path;
};

// The series of a real run, whose first step is 33 times slower than the others.
inline const std::vector<double> published_series = {1045, 34601, 34686, 34715, 34833, 34650};

inline StepMetrics step_of(int64_t iter, double tokens_per_s, int gpus, double dt_s = 1) {
  StepMetrics step;
  step.iter = iter;
  step.loss = 13 - 0.01 * static_cast<double>(iter);
  step.dt_s = dt_s;
  step.tokens_per_s = tokens_per_s;
  step.tokens_per_s_per_gpu = tokens_per_s / gpus;
  step.mfu_percent = 5.8;
  step.tflops_per_gpu = 17.4;
  return step;
}

constexpr double test_time_s = 1787576930;  // 2026-08-24T13:08:50Z

// Steps from `first` on, a second apart.
inline std::string lines_of(const std::vector<double>& tokens_per_s, int rank = 0, int gpus = 12,
                            int64_t first = 1) {
  std::string text;
  for (size_t i = 0; i < tokens_per_s.size(); ++i) {
    const int64_t iter = first + static_cast<int64_t>(i);
    text += metrics_line(step_of(iter, tokens_per_s[i], gpus), rank,
                         test_time_s + static_cast<double>(iter));
  }
  return text;
}

}  // namespace ezpz::bench
