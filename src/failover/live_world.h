// The real world of the failover loop: a launcher's processes, the scheduler's answers, the disk,
// the terminal and the signals that come to ezpz.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "evidence/stream.h"
#include "failover/world.h"
#include "journal/journal.h"
#include "journal/scribe.h"
#include "launch/plan.h"
#include "probe/probe.h"
#include "site/scheduler.h"
#include "supervise/keeper.h"
#include "supervise/supervisor.h"

namespace ezpz::failover {

struct LiveSettings {
  const launch::Launcher* launcher = nullptr;
  // What does not change between attempts; hosts, attempt, port and the like are filled in.
  launch::Request request;
  supervise::Settings supervise;
  site::SchedulerKind scheduler = site::SchedulerKind::none;
  std::string job_id;
  // How steps of this job are named: "57", and "56_1" for a task of an array.
  std::vector<std::string> step_job_ids;
  verdict::NetworkWish network;
  bool network_lines_are_ours = false;  // ezpz set NCCL_DEBUG: the lines go to the log only
  bool watch_network = false;  // several hosts, and an expectation: to be told of at the end
  std::string network_unseen;  // why no line may come: the user's own NCCL_DEBUG
  std::string nccl_asked;      // the version that the environment names; empty: none
  bool failover = false;       // a failover run: its end is announced
  std::optional<double> planned_end_s;  // of the job, wall clock, as known so far
  NodeNaming naming;
  std::string job_dir;  // empty: nothing is written
  // What the journal is told of attempts, networks, swaps and the end, for another record.
  std::function<void(std::string_view name, const Json& context)> on_event;
  std::string run_salt;  // keeps apart what two runs of a job would otherwise name alike
};

// The processes beside ezpz that must exist before anything else is started.
struct Helpers {
  explicit Helpers(Loop& loop) : keeper(loop), terminal(loop), disk(loop) {}
  Status start();
  supervise::Keeper keeper;
  journal::Scribe terminal;
  journal::Scribe disk;
};

class LiveWorld : public World {
 public:
  // loop and helpers must outlive the world. Takes over SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
  // SIGUSR2. grammar is called once, when the first launcher has been started: compiling the
  // patterns takes longer than starting a rank.
  using GrammarSource = std::function<evidence::Grammar()>;
  LiveWorld(Loop& loop, Helpers& helpers, GrammarSource grammar, LiveSettings settings);
  ~LiveWorld() override;

  AttemptOutcome run_attempt(const AttemptInput&) override;
  NodeStates node_states(const std::vector<Node>&) override;
  std::optional<double> time_left_s() override;
  verdict::ProbeOutcome probe(const std::vector<Node>&) override;
  FenceOutcome fence(const std::vector<Node>& kept, const std::vector<Node>& fresh) override;
  void pause(double seconds) override;
  bool stop_requested() override { return stop_signal_ != 0; }
  bool end_announced() override;
  void record(std::string_view name, const Json& context) override;
  void publish_bad_nodes(const std::string& text) override;
  void say(const std::string& line) override;
  std::string node_key(std::string_view spelled) override;
  std::string remedy_of(std::string_view pattern) override {
    return std::string(grammar().remedy(pattern));
  }

  [[nodiscard]] int stop_signal() const { return stop_signal_; }
  // A stop came when the launcher had ended and only its output was on its way.
  [[nodiscard]] bool stopped_after_the_end() const { return stopped_after_the_end_; }
  // Prints "FAILOVER STOP: <reason>" unless it has been printed: the scheduler may leave us only
  // seconds, so a walltime or a cancel is announced while the attempt still ends.
  void announce_stop(const std::string& reason);

 private:
  struct Attempt;
  void tell(std::string_view name, const Json& context);
  const evidence::Grammar& grammar();
  [[nodiscard]] std::string run_id() const;  // what every attempt's id begins with
  void on_stop_signal(int signal);
  void write_own_line(std::string line);
  HelperResult ask(const Argv&);
  void ask_job(std::function<void(Result<site::Job>)> done, size_t form = 0);
  Result<site::Job> job_now();
  Result<std::map<std::string, std::string>> read_states(const std::string& answer);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] bool is_our_step(const std::string& step_id) const;
  void tell_losses(const supervise::Outcome&, int attempt, int log_opened);
  void note_silent_exit(Attempt&, const Exit&);
  void ask_about_the_end();
  void consider_early_end(const std::string& job_state, double planned_end_s);
  std::optional<double> planned_end_s(const site::Job&);
  void note_job(const site::Job&, verdict::SchedulerView&);
  Result<launch::Plan> make_plan(const AttemptInput&, std::string* hostfile_trouble);
  void listen(Attempt&, const launch::Plan&);
  void ask_scheduler(Attempt&);
  void await_scheduler(Attempt&);
  void note_placement(Attempt&, const launch::Plan&, bool at_the_end);
  void hear_of_equipment(Attempt&, const Fact&);
  void settle_network(Attempt&, bool at_the_end);
  probe::ProbeSpec probe_spec(const std::vector<Node>& hosts) const;
  bool stale_step_on(const std::vector<Node>& hosts, std::string* trouble);

  Loop& loop_;
  Helpers& helpers_;
  LiveSettings settings_;
  GrammarSource grammar_source_;
  std::optional<evidence::Grammar> grammar_;
  std::unique_ptr<journal::Journal> journal_;
  Attempt* current_ = nullptr;
  std::string last_step_id_;
  std::string stop_announced_;
  int stop_signal_ = 0;  // the first that came
  int stops_ = 0;        // how many came
  bool stopped_after_the_end_ = false;
  bool version_told_ = false;   // that another NCCL is used than was asked for
  double end_announced_s_ = 0;  // monotonic; 0: never
  bool at_line_start_ = true;   // what the terminal has so far ends with a newline
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for answers that come after us
};

}  // namespace ezpz::failover
