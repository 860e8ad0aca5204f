#include "train/kernels/gemm.h"

#include <ATen/Parallel.h>
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

void* symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

}  // namespace

void linear(Matrix out, ConstMatrix x, ConstMatrix w, Sum sum, float scale) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow(out.rows), narrow(out.columns),
              narrow(x.columns), scale, x.data, narrow(x.stride), w.data, narrow(w.stride),
              beta_of(sum), out.data, narrow(out.stride));
}

void linear_input_gradient(Matrix dx, ConstMatrix d_out, ConstMatrix w, Sum sum, float scale) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(dx.rows), narrow(dx.columns),
              narrow(d_out.columns), scale, d_out.data, narrow(d_out.stride), w.data,
              narrow(w.stride), beta_of(sum), dx.data, narrow(dx.stride));
}

void linear_weight_gradient(Matrix dw, ConstMatrix d_out, ConstMatrix x, Sum sum, float scale) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, narrow(dw.rows), narrow(dw.columns),
              narrow(x.rows), scale, d_out.data, narrow(d_out.stride), x.data, narrow(x.stride),
              beta_of(sum), dw.data, narrow(dw.stride));
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
    linear({c.data(), kSize, kSize, kSize}, {a.data(), kSize, kSize, kSize},
           {b.data(), kSize, kSize, kSize}, Sum::overwrite);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best_s = std::min(best_s, took.count());
  }
  return 2.0 * kSize * kSize * kSize / best_s / 1e9;
}

std::string better_blas_core() {
#ifdef __x86_64__
  void* core = symbol("openblas_get_corename");
  if (core == nullptr) return "";
  const std::string chosen = reinterpret_cast<char* (*)()>(core)();
  if (chosen != "Prescott") return "";
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

std::string blas_flavour() {
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

void set_threads(int threads) {
  // Libtorch must be told, too: unless it was, its first operator on a thread sets OpenMP to 1
  // (which left half of two cores idle, with every number right).
  at::set_num_threads(std::max(1, threads));
  omp_set_num_threads(std::max(1, threads));
}

int threads() { return omp_get_max_threads(); }

}  // namespace ezpz::train
