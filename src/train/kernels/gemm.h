// Matrix products in fp32, row-major, through the machine's BLAS. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>

namespace ezpz::train {

enum class Sum { overwrite, accumulate };

// out (rows x outputs) = x (rows x inputs) * w^T; w is outputs x inputs, as every weight here.
void linear(float* out, const float* x, const float* w, int64_t rows, int64_t inputs,
            int64_t outputs, Sum sum = Sum::overwrite);
// dx (rows x inputs) = d_out * w
void linear_input_gradient(float* dx, const float* d_out, const float* w, int64_t rows,
                           int64_t inputs, int64_t outputs, Sum sum = Sum::overwrite);
// dw (outputs x inputs) = d_out^T * x
void linear_weight_gradient(float* dw, const float* d_out, const float* x, int64_t rows,
                            int64_t inputs, int64_t outputs, Sum sum);

// What this machine's BLAS does at best with the threads set: the CPU's peak that MFU is a share
// of.
double measured_peak_gflops();
// Which BLAS that is, as the loaded library tells: "OpenBLAS 0.3.21 SkylakeX openmp", or its path.
std::string blas_flavour();

// For this process: OpenMP's and so BLAS's.
void set_threads(int threads);
int threads();

}  // namespace ezpz::train
