// A real little distributed training job, small enough to be killed in every way a test can think
// of. See options.cc for what it can be told to do.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>

#include "bench/metrics_log.h"
#include "workload/collective.h"
#include "workload/fault.h"
#include "workload/files.h"
#include "workload/model.h"
#include "workload/noise.h"
#include "workload/options.h"
#include "workload/receipts.h"
#include "workload/waiting.h"

namespace toy {
namespace {

std::string format(const char* pattern, int64_t step) {
  char text[96];
  snprintf(text, sizeof text, pattern, step);
  return text;
}

class Trainer {
 public:
  Trainer(const Options& options, const Identity& me)
      : options_(options), me_(me), receipts_(options.receipts_dir, me) {}

  int run() {
    receipts_.start();
    catch_signals([this](int signal) { handle(signal); });
    fault_before_first_step(options_.fault, me_, receipts_);
    // All ranks know each other, or the run ends here.
    meet();
    // All ranks hold the same model: the last checkpoint's, or a fresh one.
    resume();
    open_metrics();
    if (me_.rank == 0) print_burst(options_.burst_mb);
    while (model_.step < options_.steps) train_step();
    if (saved_step_ != model_.step) save();
    receipts_.add("done");
    if (me_.rank == 0) print(format("training complete at step %" PRId64 "\n", model_.step));
    return 0;
  }

 private:
  void meet() {
    std::string trouble;
    if (ranks_.meet(me_, options_.rendezvous_s, &trouble)) return;
    fprintf(stderr, "toy_train: rank %d: %s\n", me_.rank, trouble.c_str());
    receipts_.add("no_rendezvous", "\"why\":" + json_string(trouble));
    exit(1);
  }

  void resume() {
    std::string text;
    if (me_.rank == 0 && !options_.checkpoint_dir.empty() && read_all(checkpoint_path(), &text)) {
      if (Model::from_text(text, &model_)) {
        saved_step_ = model_.step;
        print(format("resumed from checkpoint step=%" PRId64 "\n", model_.step));
      } else {
        print("checkpoint is not whole, starting afresh\n");
      }
    }
    if (!ranks_.broadcast(&model_)) lose_peer();
    receipts_.add("ready", format("\"step\":%" PRId64, model_.step));
  }

  void open_metrics() {
    if (options_.metrics_dir.empty()) return;
    ezpz::Result<ezpz::bench::MetricsLog> log =
        ezpz::bench::MetricsLog::open(options_.metrics_dir, me_.rank);
    if (!log) {
      fprintf(stderr, "toy_train: %s\n", log.error().one_line().c_str());
      exit(1);
    }
    metrics_.emplace(std::move(*log));
  }

  void write_metrics(double began_s) {
    if (!metrics_) return;
    constexpr double tokens_per_rank = 64;
    ezpz::bench::StepMetrics step;
    step.iter = model_.step;
    step.loss = model_.loss();
    step.dt_s = now_s() - began_s;
    step.tokens_per_s_per_gpu = tokens_per_rank / step.dt_s;
    step.tokens_per_s = step.tokens_per_s_per_gpu * me_.world_size;
    if (const ezpz::Status written = metrics_->write(step); !written) {
      fprintf(stderr, "toy_train: %s\n", written.error().one_line().c_str());
    }
  }

  void train_step() {
    const int64_t step = model_.step + 1;
    const double began_s = now_s();
    sleep_until(now_s() + static_cast<double>(options_.step_ms) * 1e-3);
    fault_at_step(options_.fault, me_, step, receipts_);
    write_to_file();
    Vector gradient = model_.gradient(me_.rank, me_.world_size);
    if (!ranks_.all_reduce(&gradient)) lose_peer();
    model_.apply(gradient);
    write_metrics(began_s);
    if (me_.rank == 0) print(step_line(step, model_.loss(), options_.print_junk));
    receipts_.add("step", format("\"step\":%" PRId64, step));
    if (step % options_.checkpoint_every == 0) save();
  }

  void save() {
    if (me_.rank != 0 || options_.checkpoint_dir.empty()) return;
    make_directories(options_.checkpoint_dir);
    if (!replace_file(checkpoint_path(), model_.to_text())) {
      fprintf(stderr, "toy_train: cannot save: [Errno %d] %s: '%s'\n", errno, strerror(errno),
              checkpoint_path().c_str());
      receipts_.add("save_failed");
      exit(1);
    }
    saved_step_ = model_.step;
    print(format("saved checkpoint step=%" PRId64 "\n", model_.step));
    receipts_.add("saved", format("\"step\":%" PRId64, model_.step));
  }

  void write_to_file() {
    if (options_.write_file.empty() || me_.rank != options_.write_rank) return;
    if (options_.write_attempt && *options_.write_attempt != me_.attempt) return;
    if (write_fd_ < 0) {
      write_fd_ = open(options_.write_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      receipts_.add("writing", "\"path\":" + json_string(options_.write_file));
    }
    const std::string block(65536, 'w');
    if (pwrite(write_fd_, block.data(), block.size(), 0) < 0) {
      fprintf(stderr, "toy_train: cannot write: %s: '%s'\n", strerror(errno),
              options_.write_file.c_str());
      exit(1);
    }
  }

  // Runs inside a wait: the model is that of the last finished step.
  void handle(int signal_number) {
    receipts_.add("signal", "\"signal\":" + std::to_string(signal_number));
    if (signal_number == SIGUSR1 || signal_number == SIGUSR2) return;
    if (options_.ignore_term) return;
    if (options_.save_on_term && saved_step_ != model_.step && model_.step > 0) save();
    signal(signal_number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(signal_number);
  }

  [[noreturn]] void lose_peer() {
    receipts_.add("peer_lost", format("\"step\":%" PRId64, model_.step + 1));
    if (!options_.exit_on_peer_loss) sleep_forever();
    // The peer may have left because all of us are told to: then our own SIGTERM is near.
    sleep_until(now_s() + 0.3);
    fprintf(stderr, "toy_train: rank %d: a peer is gone at step %" PRId64 "\n", me_.rank,
            model_.step + 1);
    exit(1);
  }

  [[nodiscard]] std::string checkpoint_path() const {
    return options_.checkpoint_dir + "/toy.ckpt";
  }

  Options options_;
  Identity me_;
  Receipts receipts_;
  Collective ranks_;
  Model model_;
  int64_t saved_step_ = 0;
  int write_fd_ = -1;
  std::optional<ezpz::bench::MetricsLog> metrics_;
};

}  // namespace
}  // namespace toy

int main(int argc, char** argv) {
  const toy::Options options = toy::parse_options(argc, argv);
  return toy::Trainer(options, toy::identity_from_environment()).run();
}
