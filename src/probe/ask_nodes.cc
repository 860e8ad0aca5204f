#include "probe/ask_nodes.h"

#include <deque>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "launch/plan.h"

namespace ezpz::probe {

Argv srun_argv(const std::vector<Node>& hosts, const Argv& command, bool overlap,
               int gpus_per_node) {
  const std::string count = std::to_string(hosts.size());
  // Nothing of the job's resources is asked for but what is stated: a check must not wait for GPUs
  // or memory. The job's own wishes are in the environment and contradict that ("Invalid Trackable
  // RESource", seen in a job with --gpus-per-node), or imply -c.
  Argv argv{"env"};
  for (const std::string& name : launch::srun_job_variables()) {
    argv.insert(argv.end(), {"-u", name});
  }
  const Argv srun{
      "srun",
      "-N" + count,
      "-n" + count,
      "--ntasks-per-node=1",
      "--distribution=block",
      gpus_per_node > 0 ? "--gpus-per-node=" + std::to_string(gpus_per_node) : "--gres=none",
      "--mem=0",
      "--input=none",
      "--kill-on-bad-exit=0",
      "--export=ALL",
      "--nodelist=" + join(spellings(hosts), ",")};
  argv.insert(argv.end(), srun.begin(), srun.end());
  if (overlap) argv.emplace_back("--overlap");
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

namespace {

// Questions under way. Shared with the helpers: one that was given up answers when nobody listens.
struct Round : std::enable_shared_from_this<Round> {
  Round(Loop& loop_, const AskSpec& spec_, const NodeNaming& naming_)
      : loop(loop_), spec(spec_), naming(naming_) {}

  Loop& loop;
  const AskSpec spec;
  const NodeNaming naming;
  AskResult result;
  std::deque<Node> waiting;
  size_t in_flight = 0;
  size_t started = 0;
  bool together_done = false;
  bool over = false;  // ask_nodes() has returned: an answer that comes now changes nothing

  [[nodiscard]] bool given_up() const { return spec.give_up && spec.give_up(); }

  // One host has a name of its own, several say who they are.
  [[nodiscard]] Result<Argv> through_launcher(const std::vector<Node>& hosts) const {
    if (spec.reach == Reach::srun) {
      return srun_argv(hosts, spec.command(""), spec.overlap, spec.gpus_per_node);
    }
    return spec.beside(hosts, spec.command(hosts.size() == 1 ? hosts[0].spelled : ""));
  }

  void collect(const std::string& output, double asked_s) {
    const double answered_s = wall_s();
    for (Said& said : spec.read(output)) {
      result.answered[node_key(said.node, naming)] = {std::move(said.text), asked_s, answered_s};
    }
  }

  void ask_together() {
    const Result<Argv> argv = through_launcher(spec.hosts);
    if (!argv) {
      result.trouble = argv.error().one_line();
      together_done = true;
      return;
    }
    const double asked_s = wall_s();
    start_helper(loop, *argv, spec.together_s,
                 [self = shared_from_this(), asked_s](const HelperResult& together) {
                   if (self->over) return;
                   self->together_done = true;
                   if (together.started) {
                     ++self->started;
                     self->collect(together.out, asked_s);
                   } else {
                     self->result.trouble = together.trouble;
                   }
                 });
    loop.run_until([this] { return together_done || given_up(); });
  }

  void ask_more() {
    while (!waiting.empty() && in_flight < static_cast<size_t>(spec.at_once)) {
      const Node host = waiting.front();
      waiting.pop_front();
      const Result<Argv> argv = spec.reach == Reach::local
                                    ? Result<Argv>(spec.command(host.spelled))
                                    : through_launcher({host});
      if (!argv) {
        result.refused[host.key] = argv.error().one_line();
        continue;
      }
      ++in_flight;
      const double asked_s = wall_s();
      start_helper(loop, *argv, spec.alone_s,
                   [self = shared_from_this(), host, asked_s](const HelperResult& alone) {
                     if (self->over) return;
                     --self->in_flight;
                     self->take(host, alone, asked_s);
                     if (!self->given_up()) self->ask_more();
                   });
    }
  }

  void take(const Node& host, const HelperResult& alone, double asked_s) {
    if (alone.started) ++started;
    collect(alone.out, asked_s);
    if (result.answered.contains(host.key)) return;
    if (alone.started && !alone.timed_out) {
      result.refused[host.key] = alone.trouble.empty() ? "no report" : alone.trouble;
    } else {
      result.silent.push_back(host.key);
      result.trouble = alone.trouble;
    }
  }
};

}  // namespace

AskResult ask_nodes(Loop& loop, const AskSpec& spec, const NodeNaming& naming) {
  auto round = std::make_shared<Round>(loop, spec, naming);
  if (spec.hosts.empty()) {
    round->result.ran = true;
    return round->result;
  }
  // mpiexec fails, or says nothing, for all hosts when it cannot reach one: few are asked each
  // alone.
  const bool few = spec.reach == Reach::launcher && spec.alone_tries &&
                   spec.hosts.size() <= static_cast<size_t>(spec.at_once);
  if (spec.reach != Reach::local && !few && (spec.hosts.size() > 1 || !spec.alone_tries)) {
    round->ask_together();
    if (round->together_done && round->started == 0) {
      round->over = true;
      return round->result;
    }
  }
  if (spec.alone_tries && !round->given_up()) {
    for (const Node& host : spec.hosts) {
      if (!round->result.answered.contains(host.key)) round->waiting.push_back(host);
    }
    round->ask_more();
    loop.run_until([&round] {
      return (round->in_flight == 0 && round->waiting.empty()) || round->given_up();
    });
  }
  round->over = true;
  round->result.ran = round->started > 0;
  round->result.given_up = round->given_up();
  if (round->result.given_up) round->result.trouble = "given up: a stop was asked for";
  return round->result;
}

}  // namespace ezpz::probe
