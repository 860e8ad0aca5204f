#include "train/kernels/gemm.h"

#include <cblas.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ezpz::train {
namespace {

float beta_of(Sum sum) { return sum == Sum::accumulate ? 1.0F : 0.0F; }

int narrow(int64_t n) { return static_cast<int>(n); }

}  // namespace

void linear(float* out, const float* x, const float* w, int64_t rows, int64_t inputs,
            int64_t outputs, Sum sum) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow(rows), narrow(outputs),
              narrow(inputs), 1.0F, x, narrow(inputs), w, narrow(inputs), beta_of(sum), out,
              narrow(outputs));
}

void linear_input_gradient(float* dx, const float* d_out, const float* w, int64_t rows,
                           int64_t inputs, int64_t outputs, Sum sum) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(rows), narrow(inputs),
              narrow(outputs), 1.0F, d_out, narrow(outputs), w, narrow(inputs), beta_of(sum), dx,
              narrow(inputs));
}

void linear_weight_gradient(float* dw, const float* d_out, const float* x, int64_t rows,
                            int64_t inputs, int64_t outputs, Sum sum) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, narrow(outputs), narrow(inputs),
              narrow(rows), 1.0F, d_out, narrow(outputs), x, narrow(inputs), beta_of(sum), dw,
              narrow(inputs));
}

double measured_peak_gflops() {
  constexpr int64_t kSize = 1024;
  constexpr int kTries = 5;
  const std::vector<float> a(kSize * kSize, 0.5F);
  const std::vector<float> b(kSize * kSize, 0.25F);
  std::vector<float> c(kSize * kSize);
  double best_s = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    linear(c.data(), a.data(), b.data(), kSize, kSize, kSize);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best_s = std::min(best_s, took.count());
  }
  return 2.0 * kSize * kSize * kSize / best_s / 1e9;
}

std::string blas_flavour() {
  const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  if (void* config = symbol("openblas_get_config")) {
    // "OpenBLAS 0.3.21 NO_LAPACKE ... Prescott": the core named here is that of the build machine.
    std::string text = reinterpret_cast<char* (*)()>(config)();
    text = text.substr(0, text.find(' ', text.find(' ') + 1));
    if (void* core = symbol("openblas_get_corename")) {
      text += std::string(" ") + reinterpret_cast<char* (*)()>(core)();
    }
    if (void* kind = symbol("openblas_get_parallel")) {
      const int parallel = reinterpret_cast<int (*)()>(kind)();
      text += parallel == 2 ? " openmp" : parallel == 1 ? " pthread" : " sequential";
    }
    return text;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&cblas_sgemm), &info) != 0 && info.dli_fname != nullptr) {
    return info.dli_fname;
  }
  return "unknown";
}

void set_threads(int threads) { omp_set_num_threads(std::max(1, threads)); }

int threads() { return omp_get_max_threads(); }

}  // namespace ezpz::train
