// ezpz-train: the reference workload. `ezpz train` becomes it.
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/flops.h"
#include "site/environment.h"
#include "site/scheduler.h"
#include "train/app/run.h"
#include "train/app/tokenize.h"
#include "train/kernels/gemm.h"
#include "train/loop/options.h"
#include "train/loop/place.h"

namespace ezpz::train {
namespace {

constexpr int kUsageError = 2;

// OpenBLAS can be told only before it is loaded: by becoming this program again.
void use_better_blas_core(char** argv) {
  const char* name = "OPENBLAS_CORETYPE";
  if (getenv(name) != nullptr) return;
  const std::string core = better_blas_core();
  if (core.empty()) return;
  // By its own path, for by this link it would be called "exe" from then on.
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return;
  self[length] = 0;
  setenv(name, core.c_str(), 1);
  execv(self, argv);
  unsetenv(name);  // it works without, slowly
}

int run(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "tokenize") {
    return tokenize_command({words.begin() + 1, words.end()});
  }
  const Result<Parsed> parsed = parse_options(words);
  if (!parsed) {
    log::error(parsed.error().one_line());
    return kUsageError;
  }
  if (parsed->help) {
    write_all(1, parsed->help_text);
    return 0;
  }
  const Result<Place> place = place_of(site::current_environment(), site::own_hostname());
  if (!place) {
    log::error(place.error().one_line());
    return kUsageError;
  }
  const TrainOptions& options = parsed->options;
  set_threads(options.threads > 0 ? options.threads : threads_of(*place));
  return train(options, *place);
}

}  // namespace
}  // namespace ezpz::train

int main(int argc, char** argv) {
  ezpz::train::use_better_blas_core(argv);
  return ezpz::train::run(std::vector<std::string>(argv + 1, argv + argc));
}
