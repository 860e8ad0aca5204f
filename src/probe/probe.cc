#include "probe/probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "base/text.h"

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
  // Nothing of the job's resources is asked for: a check must not wait for GPUs or memory.
  Argv argv{"srun",
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
  if (overlap) argv.insert(argv.begin() + 1, "--overlap");
  for (const std::string& word : check_command(self_path, check)) argv.push_back(word);
  return argv;
}

Argv local_check_argv(const Node& host, const std::string& self_path, const CheckRequest& check) {
  CheckRequest named = check;
  named.node = host.spelled;
  return check_command(self_path, named);
}

ProbeResult run_probe(Loop& loop, const ProbeSpec& spec, const NodeNaming& naming) {
  ProbeResult result;
  if (spec.hosts.empty()) {
    result.ran = true;
    return result;
  }
  if (spec.reach == Reach::srun && (spec.hosts.size() > 1 || !spec.alone_tries)) {
    const HelperResult together =
        run_helper(loop, srun_check_argv(spec.hosts, spec.self_path, spec.check, spec.overlap),
                   spec.together_s);
    if (!together.started) {
      result.trouble = together.trouble;
      return result;
    }
    collect(together.out, naming, result);
  }

  if (!spec.alone_tries) {
    result.ran = true;
    return result;
  }
  std::deque<Node> waiting;
  for (const Node& host : spec.hosts) {
    if (!result.answered.contains(host.key)) waiting.push_back(host);
  }
  size_t in_flight = 0;
  size_t started = 0;
  const size_t asked = waiting.size();
  std::function<void()> start_more = [&] {
    while (!waiting.empty() && in_flight < static_cast<size_t>(spec.at_once)) {
      const Node host = waiting.front();
      waiting.pop_front();
      ++in_flight;
      const Argv argv = spec.reach == Reach::srun
                            ? srun_check_argv({host}, spec.self_path, spec.check, spec.overlap)
                            : local_check_argv(host, spec.self_path, spec.check);
      start_helper(loop, argv, spec.alone_s, [&, host](HelperResult alone) {
        --in_flight;
        if (alone.started) ++started;
        collect(alone.out, naming, result);
        if (!result.answered.contains(host.key)) {
          if (alone.started && !alone.timed_out) {
            result.refused[host.key] = alone.trouble.empty() ? "no report" : alone.trouble;
          } else {
            result.silent.push_back(host.key);
            result.trouble = alone.trouble;
          }
        }
        start_more();
      });
    }
  };
  start_more();
  loop.run_until([&] { return in_flight == 0 && waiting.empty(); });
  result.ran = asked == 0 || started > 0;
  return result;
}

}  // namespace ezpz::probe
