// What the live world asks the scheduler, each question bounded and allowed to fail.
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "failover/live_attempt.h"
#include "failover/live_world.h"

namespace ezpz::failover {
namespace {

constexpr double kSchedulerPatience_s = 5;  // for an answer that somebody waits for
constexpr double kAnswersAge_s = 10;        // older answers are asked for again at the end

}  // namespace

// One question between attempts; given up when a stop is asked for meanwhile.
HelperResult LiveWorld::ask(const Argv& argv) {
  struct Answer {
    bool here = false;
    HelperResult result;
  };
  auto answer = std::make_shared<Answer>();
  start_helper(loop_, argv, kSchedulerPatience_s, [answer](HelperResult got) {
    answer->result = std::move(got);
    answer->here = true;
  });
  const int stops_before = stops_;
  loop_.run_until([&] { return answer->here || stops_ != stops_before; });
  if (!answer->here) answer->result.trouble = "not awaited: a stop was asked for";
  return answer->result;
}

void LiveWorld::ask_scheduler(Attempt& attempt) {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.job_query == nullptr || settings_.job_id.empty()) return;
  attempt.asked_s = monotonic_s();
  attempt.view.trouble.clear();
  attempt.questions_open += 2;
  start_helper(loop_, scheduler.job_query(settings_.job_id), site::query_timeout_s,
               [this, &attempt, alive = std::weak_ptr<int>(attempt.alive),
                &scheduler](const HelperResult& result) {
                 if (alive.expired()) return;
                 --attempt.questions_open;
                 const Result<site::slurm::Job> job =
                     result.usable() ? scheduler.read_job(result.out)
                                     : Result<site::slurm::Job>(Error{result.trouble, "", ""});
                 if (!job) {
                   attempt.view.trouble.push_back("job: " + job.error().one_line());
                   return;
                 }
                 note_job(*job, attempt.view);
               });
  start_helper(loop_, scheduler.nodes_query(attempt.hosts), site::query_timeout_s,
               [this, &attempt, alive = std::weak_ptr<int>(attempt.alive),
                &scheduler](const HelperResult& result) {
                 if (alive.expired()) return;
                 --attempt.questions_open;
                 if (!result.usable()) {
                   attempt.view.trouble.push_back("nodes: " + result.trouble);
                   return;
                 }
                 for (const auto& [host, state] : scheduler.read_nodes(result.out)) {
                   attempt.view.node_states[node_key(host)] = state;
                 }
               });
}

void LiveWorld::await_scheduler(Attempt& attempt) {
  const bool old = attempt.asked_s == 0 || monotonic_s() - attempt.asked_s > kAnswersAge_s;
  if (attempt.questions_open == 0 && old) ask_scheduler(attempt);
  bool expired = false;
  const Loop::TimerId timer = loop_.after(kSchedulerPatience_s, [&] { expired = true; });
  loop_.run_until([&] { return attempt.questions_open == 0 || expired; });
  loop_.cancel(timer);
  if (attempt.questions_open > 0) {
    attempt.view.trouble.push_back("the scheduler has not answered in time");
  }
  for (const std::string& trouble : attempt.view.trouble) {
    record("unknown", {{"what", "scheduler"}, {"why", trouble}});
  }
}

NodeStates LiveWorld::node_states(const std::vector<Node>& hosts) {
  NodeStates known;
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.nodes_query == nullptr || settings_.job_id.empty()) return known;
  const HelperResult nodes = ask(scheduler.nodes_query(spellings(hosts)));
  const HelperResult job = ask(scheduler.job_query(settings_.job_id));
  if (!nodes.usable()) known.trouble = nodes.trouble;
  for (const auto& [host, state] : scheduler.read_nodes(nodes.out)) {
    known.states[node_key(host)] = state;
  }
  // A node that was lost is out of the job for good, though its state may be IDLE again (seen).
  const Result<site::slurm::Job> view = job.usable()
                                            ? scheduler.read_job(job.out)
                                            : Result<site::slurm::Job>(Error{job.trouble, "", ""});
  if (!view) {
    known.trouble = view.error().one_line();
  } else if (!view->hosts.empty()) {
    std::set<std::string> ours;
    for (const std::string& host : view->hosts) ours.insert(node_key(host));
    for (const Node& host : hosts) {
      if (!ours.contains(host.key)) known.states[host.key] = std::string(site::kNotInJob);
    }
  }
  return known;
}

std::optional<double> LiveWorld::time_left_s() {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.job_query == nullptr || settings_.job_id.empty()) return std::nullopt;
  const HelperResult result = ask(scheduler.job_query(settings_.job_id));
  const Result<site::slurm::Job> job =
      result.usable() ? scheduler.read_job(result.out)
                      : Result<site::slurm::Job>(Error{result.trouble, "", ""});
  if (!job) {
    record("unknown", {{"what", "time left"}, {"why", job.error().one_line()}});
    return std::nullopt;
  }
  const std::optional<double> end_s = planned_end_s(*job);
  if (!end_s) return std::nullopt;
  return *end_s - wall_s();
}

}  // namespace ezpz::failover
