#include "probe/probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/text.h"
#include "launch/plan.h"

namespace ezpz::probe {
namespace {

Argv check_command(const std::string& self_path, const CheckRequest& check) {
  Argv argv{self_path, "node-check"};
  if (!check.node.empty()) argv.push_back("--node=" + check.node);
  if (!check.attempt_id.empty()) {
    argv.push_back("--attempt-id=" + check.attempt_id);
    argv.push_back(fmt::format("--wait={:.1f}", check.wait_s));
    if (check.clear) argv.push_back("--clear");
  }
  return argv;
}

void collect(const std::string& output, const NodeNaming& naming, ProbeResult& result) {
  for (const std::string& line : split_lines(output)) {
    if (auto report = parse_report(line)) {
      const std::string key = node_key(report->node, naming);
      result.answered[key] = std::move(*report);
    }
  }
}

}  // namespace

Argv srun_check_argv(const std::vector<Node>& hosts, const std::string& self_path,
                     const CheckRequest& check, bool overlap) {
  const std::string count = std::to_string(hosts.size());
  // Nothing of the job's resources is asked for: a check must not wait for GPUs or memory. The
  // job's own wishes are in the environment and contradict that ("Invalid Trackable RESource", seen
  // in a job with --gpus-per-node), or imply -c.
  Argv argv{"env"};
  for (const std::string& name : launch::srun_job_variables()) {
    argv.insert(argv.end(), {"-u", name});
  }
  const Argv srun{"srun",
                  "-N" + count,
                  "-n" + count,
                  "--ntasks-per-node=1",
                  "--distribution=block",
                  "--gres=none",
                  "--mem=0",
                  "--input=none",
                  "--kill-on-bad-exit=0",
                  "--export=ALL",
                  "--nodelist=" + join(spellings(hosts), ",")};
  argv.insert(argv.end(), srun.begin(), srun.end());
  if (overlap) argv.emplace_back("--overlap");
  for (const std::string& word : check_command(self_path, check)) argv.push_back(word);
  return argv;
}

Argv local_check_argv(const Node& host, const std::string& self_path, const CheckRequest& check) {
  CheckRequest named = check;
  named.node = host.spelled;
  return check_command(self_path, named);
}

namespace {

// A probe under way. Shared with the helpers: one that was given up answers when nobody listens.
struct Probe : std::enable_shared_from_this<Probe> {
  Probe(Loop& loop_, const ProbeSpec& spec_, const NodeNaming& naming_)
      : loop(loop_), spec(spec_), naming(naming_) {}

  Loop& loop;
  const ProbeSpec spec;
  const NodeNaming naming;
  ProbeResult result;
  std::deque<Node> waiting;
  size_t in_flight = 0;
  size_t started = 0;
  bool together_done = false;
  bool over = false;  // run_probe() has returned: an answer that comes now changes nothing

  [[nodiscard]] bool given_up() const { return spec.give_up && spec.give_up(); }

  // One host has a name of its own, several say who they are.
  [[nodiscard]] Result<Argv> through_launcher(const std::vector<Node>& hosts) const {
    if (spec.reach == Reach::srun) {
      return srun_check_argv(hosts, spec.self_path, spec.check, spec.overlap);
    }
    CheckRequest check = spec.check;
    if (hosts.size() == 1) check.node = hosts[0].spelled;
    return spec.beside(hosts, check_command(spec.self_path, check));
  }

  void ask_together() {
    const Result<Argv> argv = through_launcher(spec.hosts);
    if (!argv) {
      result.trouble = argv.error().one_line();
      together_done = true;
      return;
    }
    start_helper(loop, *argv, spec.together_s,
                 [self = shared_from_this()](const HelperResult& together) {
                   if (self->over) return;
                   self->together_done = true;
                   if (together.started) {
                     ++self->started;
                     collect(together.out, self->naming, self->result);
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
                                    ? local_check_argv(host, spec.self_path, spec.check)
                                    : through_launcher({host});
      if (!argv) {
        result.refused[host.key] = argv.error().one_line();
        continue;
      }
      ++in_flight;
      start_helper(loop, *argv, spec.alone_s,
                   [self = shared_from_this(), host](const HelperResult& alone) {
                     if (self->over) return;
                     --self->in_flight;
                     self->take(host, alone);
                     if (!self->given_up()) self->ask_more();
                   });
    }
  }

  void take(const Node& host, const HelperResult& alone) {
    if (alone.started) ++started;
    collect(alone.out, naming, result);
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

ProbeResult run_probe(Loop& loop, const ProbeSpec& spec, const NodeNaming& naming) {
  auto probe = std::make_shared<Probe>(loop, spec, naming);
  if (spec.hosts.empty()) {
    probe->result.ran = true;
    return probe->result;
  }
  // mpiexec fails, or says nothing, for all hosts when it cannot reach one: few are asked each
  // alone.
  const bool few = spec.reach == Reach::launcher && spec.alone_tries &&
                   spec.hosts.size() <= static_cast<size_t>(spec.at_once);
  if (spec.reach != Reach::local && !few && (spec.hosts.size() > 1 || !spec.alone_tries)) {
    probe->ask_together();
    if (probe->together_done && probe->started == 0) {
      probe->over = true;
      return probe->result;
    }
  }
  if (spec.alone_tries && !probe->given_up()) {
    for (const Node& host : spec.hosts) {
      if (!probe->result.answered.contains(host.key)) probe->waiting.push_back(host);
    }
    probe->ask_more();
    loop.run_until([&probe] {
      return (probe->in_flight == 0 && probe->waiting.empty()) || probe->given_up();
    });
  }
  probe->over = true;
  probe->result.ran = probe->started > 0;
  probe->result.given_up = probe->given_up();
  if (probe->result.given_up) probe->result.trouble = "given up: a stop was asked for";
  return probe->result;
}

}  // namespace ezpz::probe
