// Matrix products in fp32, row-major, through the machine's BLAS. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>

namespace ezpz::train {

enum class Sum { overwrite, accumulate };

// A matrix, or some columns of a wider one: rows are stride elements apart.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
};
struct ConstMatrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
};

// out (rows x outputs) = scale * x (rows x inputs) * w^T; w is outputs x inputs, as every weight
// here.
void linear(Matrix out, ConstMatrix x, ConstMatrix w, Sum sum, float scale = 1);
// dx (rows x inputs) = scale * d_out * w
void linear_input_gradient(Matrix dx, ConstMatrix d_out, ConstMatrix w, Sum sum, float scale = 1);
// dw (outputs x inputs) = scale * d_out^T * x
void linear_weight_gradient(Matrix dw, ConstMatrix d_out, ConstMatrix x, Sum sum, float scale = 1);

// What this machine's BLAS does at best with the threads set: the CPU's peak that MFU is a share
// of.
double measured_peak_gflops();
// Which BLAS that is, as the loaded library tells: "OpenBLAS 0.3.21 SkylakeX openmp", or its path.
std::string blas_flavour();

// OpenBLAS chooses its kernels by the processor's model and takes those of 2004 for one that is
// newer than itself: six times slower where this was seen (0.3.21 on a Xeon of a later generation,
// 22 against 127 GFLOP/s). The core it should be told by OPENBLAS_CORETYPE, which it reads when it
// is loaded; empty: it has chosen well, or it is another library.
std::string better_blas_core();

// For this process: OpenMP's and so BLAS's.
void set_threads(int threads);
int threads();

}  // namespace ezpz::train
