// ezpz-train: the reference workload. `ezpz train` becomes it.
#include <fmt/core.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/flops.h"
#include "site/environment.h"
#include "site/scheduler.h"
#include "train/app/run.h"
#include "train/kernels/gemm.h"
#include "train/loop/options.h"
#include "train/loop/place.h"

namespace ezpz::train {
namespace {

constexpr int kUsageError = 2;

int run(const std::vector<std::string>& words) {
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
  return ezpz::train::run(std::vector<std::string>(argv + 1, argv + argc));
}
