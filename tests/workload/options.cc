#include "workload/options.h"

#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>
#include <system_error>

namespace toy {
namespace {

constexpr const char* help_text =
    R"(usage: toy_train [flags]
A little distributed training job for tests: ranks meet at MASTER_ADDR:MASTER_PORT, every step is a
sum over all ranks, rank 0 prints, checkpoints and resumes. Who it is comes from RANK, LOCAL_RANK,
WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, EZPZ_NODE and EZPZ_ATTEMPT; without RANK it is a
world of one.

training
  --steps N               train to step N (20)
  --step-ms M             time a step takes (50)
  --checkpoint DIR        save to and resume from DIR/toy.ckpt
  --checkpoint-every K    save every K steps (5)
  --rendezvous-s S        give up when not all ranks have met by then (30)
  --on-peer-loss hang|exit
                          a dead peer leaves the others hanging (default), or they exit 1
  --ignore-term           outlive SIGTERM; otherwise it means: checkpoint, then die of it
  --no-save-on-term       die of SIGTERM without that checkpoint
  --metrics-dir DIR       each rank writes DIR/metrics-R.jsonl, as if a rank had 64 tokens a step;
                          "run" is $EZPZ_RUN_DIR
  --receipts DIR          each rank records what happened to it in DIR/attempt-A.rank-R

faults; each leaves a receipt before it acts. A step may be a list, one for each attempt: 7,6,5
  --exit-at-step S        leave with --exit-code instead of finishing step S
  --exit-code C           (1)
  --segv-at-step S        die of SIGSEGV
  --kill-self-at-step S   die of SIGKILL
  --hang-at-step S        stop for ever, silently
  --exit-before-first-step C
                          leave with code C before meeting the others
  --exit-rank R[,R...]    only these ranks do it (all); also --fault-rank, for every fault
  --exit-on-attempt A     only in attempt A (every); also --fault-on-attempt
  --exit-on-host H        only on the node H (any); also --fault-on-host

other trouble
  --write-file PATH       one rank writes to PATH in every step; on a frozen filesystem it then
                          cannot be killed
  --write-rank R          which one (0)
  --write-on-attempt A    only in attempt A (every)
  --print-junk            bytes that are not text: invalid UTF-8, NUL, colour inside words, \r bars
  --burst-mb N            N MiB of numbered lines as fast as they go, before the first step
)";

[[noreturn]] void usage_error(const std::string& what) {
  fprintf(stderr, "toy_train: %s (see --help)\n", what.c_str());
  exit(2);
}

template <class Int>
Int parse_number(std::string_view text, std::string_view flag) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    usage_error(std::string(flag) + ": not a number: " + std::string(text));
  }
  return value;
}

template <class Int>
std::vector<Int> parse_list(std::string_view text, std::string_view flag) {
  std::vector<Int> numbers;
  for (;;) {
    const size_t comma = text.find(',');
    numbers.push_back(parse_number<Int>(text.substr(0, comma), flag));
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int> parse_attempt(std::string_view text, std::string_view flag) {
  if (text == "every") return std::nullopt;
  return parse_number<int>(text, flag);
}

// The flag's value, or nothing when word is another flag.
class Reader {
 public:
  Reader(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  bool next() {
    if (at_ == words_.size()) return false;
    word_ = words_[at_++];
    return true;
  }
  [[nodiscard]] bool is(std::string_view name) const { return word_ == name; }
  std::string value() {
    if (at_ == words_.size()) usage_error(word_ + ": a value is missing");
    return words_[at_++];
  }
  template <class Int>
  Int number() {
    return parse_number<Int>(value(), word_);
  }
  [[nodiscard]] const std::string& word() const { return word_; }

 private:
  std::vector<std::string> words_;
  size_t at_ = 0;
  std::string word_;
};

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

bool read_training_flag(Reader& reader, Options& options) {
  if (reader.is("--steps")) {
    options.steps = reader.number<int64_t>();
  } else if (reader.is("--step-ms")) {
    options.step_ms = reader.number<int64_t>();
  } else if (reader.is("--checkpoint")) {
    options.checkpoint_dir = reader.value();
  } else if (reader.is("--checkpoint-every")) {
    options.checkpoint_every = reader.number<int64_t>();
    if (options.checkpoint_every == 0) usage_error("--checkpoint-every: must be at least 1");
  } else if (reader.is("--rendezvous-s")) {
    options.rendezvous_s = static_cast<double>(reader.number<int>());
  } else if (reader.is("--on-peer-loss")) {
    const std::string word = reader.value();
    if (word != "hang" && word != "exit") usage_error("--on-peer-loss: hang or exit, not " + word);
    options.exit_on_peer_loss = word == "exit";
  } else if (reader.is("--ignore-term")) {
    options.ignore_term = true;
  } else if (reader.is("--no-save-on-term")) {
    options.save_on_term = false;
  } else if (reader.is("--metrics-dir")) {
    options.metrics_dir = reader.value();
    if (options.metrics_dir == "run") options.metrics_dir = variable("EZPZ_RUN_DIR");
  } else if (reader.is("--receipts")) {
    options.receipts_dir = reader.value();
  } else {
    return false;
  }
  return true;
}

bool read_fault_flag(Reader& reader, Fault& fault) {
  const auto at_step = [&](FaultKind kind) {
    fault.kind = kind;
    fault.at_step = parse_list<int64_t>(reader.value(), reader.word());
  };
  if (reader.is("--exit-at-step")) {
    at_step(FaultKind::exit);
  } else if (reader.is("--segv-at-step")) {
    at_step(FaultKind::segv);
  } else if (reader.is("--kill-self-at-step")) {
    at_step(FaultKind::kill_self);
  } else if (reader.is("--hang-at-step")) {
    at_step(FaultKind::hang);
  } else if (reader.is("--exit-before-first-step")) {
    fault.kind = FaultKind::exit_before_first_step;
    fault.exit_code = reader.number<int>();
  } else if (reader.is("--exit-code")) {
    fault.exit_code = reader.number<int>();
  } else if (reader.is("--exit-rank") || reader.is("--fault-rank")) {
    fault.ranks = parse_list<int>(reader.value(), reader.word());
  } else if (reader.is("--exit-on-attempt") || reader.is("--fault-on-attempt")) {
    fault.attempt = parse_attempt(reader.value(), reader.word());
  } else if (reader.is("--exit-on-host") || reader.is("--fault-on-host")) {
    fault.host = reader.value();
  } else {
    return false;
  }
  return true;
}

bool read_trouble_flag(Reader& reader, Options& options) {
  if (reader.is("--write-file")) {
    options.write_file = reader.value();
  } else if (reader.is("--write-rank")) {
    options.write_rank = reader.number<int>();
  } else if (reader.is("--write-on-attempt")) {
    options.write_attempt = parse_attempt(reader.value(), reader.word());
  } else if (reader.is("--print-junk")) {
    options.print_junk = true;
  } else if (reader.is("--burst-mb")) {
    options.burst_mb = reader.number<int64_t>();
  } else {
    return false;
  }
  return true;
}

int number_variable(const char* name, int otherwise) {
  const std::string value = variable(name);
  return value.empty() ? otherwise : parse_number<int>(value, name);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Reader reader(argc, argv);
  while (reader.next()) {
    if (reader.is("--help")) {
      fputs(help_text, stdout);
      exit(0);
    }
    if (!read_training_flag(reader, options) && !read_fault_flag(reader, options.fault) &&
        !read_trouble_flag(reader, options)) {
      usage_error("unknown flag " + reader.word());
    }
  }
  return options;
}

Identity identity_from_environment() {
  Identity me;
  char hostname[256] = "";
  gethostname(hostname, sizeof hostname - 1);
  me.hostname = hostname;
  me.host = variable("EZPZ_NODE");
  me.attempt = number_variable("EZPZ_ATTEMPT", 1);
  if (variable("RANK").empty()) return me;
  me.rank = number_variable("RANK", 0);
  me.local_rank = number_variable("LOCAL_RANK", 0);
  me.world_size = number_variable("WORLD_SIZE", 1);
  me.node_rank = number_variable("NODE_RANK", 0);
  me.master_addr = variable("MASTER_ADDR");
  me.master_port = number_variable("MASTER_PORT", 0);
  if (me.rank >= me.world_size) usage_error("RANK is not below WORLD_SIZE");
  if (me.world_size > 1 && (me.master_addr.empty() || me.master_port == 0)) {
    usage_error("MASTER_ADDR and MASTER_PORT must be set");
  }
  return me;
}

}  // namespace toy
