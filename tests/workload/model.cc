#include "workload/model.h"

#include <cinttypes>
#include <cstdio>

namespace toy {
namespace {

// Cheap reproducible noise in [-0.5, 0.5): splitmix64 of the three numbers.
double noise(int64_t step, int rank, int i) {
  uint64_t x = (static_cast<uint64_t>(step) << 20U) ^ (static_cast<uint64_t>(rank) << 8U) ^
               static_cast<uint64_t>(i);
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  x ^= x >> 31U;
  return static_cast<double>(x >> 11U) * 0x1p-53 - 0.5;
}

uint32_t checksum(const std::string& text) {  // FNV-1a
  uint32_t sum = 2166136261U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  return sum;
}

std::string body(const Model& model) {
  char piece[64];
  snprintf(piece, sizeof piece, "toy_train checkpoint 1\nstep %" PRId64 "\n", model.step);
  std::string text = piece;
  for (const double weight : model.weights) {
    snprintf(piece, sizeof piece, "%a\n", weight);
    text += piece;
  }
  return text;
}

}  // namespace

Vector Model::gradient(int rank, int world_size) const {
  Vector share{};
  for (int i = 0; i < width; ++i) {
    share[i] = (weights[i] + 0.1 * noise(step + 1, rank, i)) / world_size;
  }
  return share;
}

void Model::apply(const Vector& summed) {
  for (int i = 0; i < width; ++i) weights[i] -= 0.02 * summed[i];
  ++step;
}

double Model::loss() const {
  double sum = 0;
  for (const double weight : weights) sum += weight * weight;
  return sum / width;
}

std::string Model::to_text() const {
  const std::string text = body(*this);
  char sum[32];
  snprintf(sum, sizeof sum, "checksum %08" PRIx32 "\n", checksum(text));
  return text + sum;
}

bool Model::from_text(const std::string& text, Model* out) {
  Model read;
  int at = 0;
  if (sscanf(text.c_str(), "toy_train checkpoint 1\nstep %" SCNd64 "\n%n", &read.step, &at) != 1 ||
      at == 0) {
    return false;
  }
  for (double& weight : read.weights) {
    int used = 0;
    if (sscanf(text.c_str() + at, "%la\n%n", &weight, &used) != 1 || used == 0) return false;
    at += used;
  }
  if (read.to_text() != text) return false;
  *out = read;
  return true;
}

}  // namespace toy
