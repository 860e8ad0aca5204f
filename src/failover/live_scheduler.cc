// What the live world asks the scheduler, each question bounded and allowed to fail.
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "failover/live_attempt.h"
#include "failover/live_world.h"
#include "site/ask.h"

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
  site::start_question(loop_, argv, kSchedulerPatience_s, [answer](HelperResult got) {
    answer->result = std::move(got);
    answer->here = true;
  });
  const int stops_before = stops_;
  loop_.run_until([&] { return answer->here || stops_ != stops_before; });
  if (!answer->here) answer->result.trouble = "not awaited: a stop was asked for";
  return answer->result;
}

// An answer that cannot be read (PBS's JSON, when the user's own text breaks it) is asked for again
// in the next form; a scheduler that does not answer is not asked again.
void LiveWorld::ask_job(std::function<void(Result<site::Job>)> done, size_t form) {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  const site::JobSource& source = scheduler.job_sources[form];
  site::start_question(loop_, source.query(settings_.job_id), site::query_timeout_s,
                       [this, alive = std::weak_ptr<int>(alive_), done = std::move(done), form,
                        &scheduler](const HelperResult& result) {
                         if (alive.expired()) return;
                         if (!result.usable()) return done(Error{result.trouble, "", ""});
                         Result<site::Job> job = scheduler.job_sources[form].read(result.out);
                         if (!job && form + 1 < scheduler.job_sources.size())
                           return ask_job(done, form + 1);
                         done(std::move(job));
                       });
}

Result<site::Job> LiveWorld::job_now() {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  Result<site::Job> job = Error{"nobody answered", settings_.job_id, ""};
  for (const site::JobSource& source : scheduler.job_sources) {
    const HelperResult result = ask(source.query(settings_.job_id));
    if (!result.usable()) return Error{result.trouble, "", ""};
    job = source.read(result.out);
    if (job) break;
  }
  return job;
}

// The states of nodes as an answer tells them, by our names for them. A PBS server that was
// restarted calls every node down until its mom has reported, the very host that asks among them:
// such an answer is not believed.
Result<std::map<std::string, std::string>> LiveWorld::read_states(const std::string& answer) {
  std::map<std::string, std::string> states;
  for (const auto& [host, state] : site::scheduler(settings_.scheduler).read_nodes(answer)) {
    states[node_key(host)] = state;
  }
  const auto here = states.find(node_key(site::own_hostname()));
  const bool forgetful = settings_.scheduler == site::SchedulerKind::pbs;
  if (forgetful && here != states.end() && !site::is_usable(here->second)) {
    return Error{
        "the scheduler calls this very host " + here->second + ": its node states are not believed",
        here->first, ""};
  }
  return states;
}

bool LiveWorld::can_ask() const {
  return !site::scheduler(settings_.scheduler).job_sources.empty() && !settings_.job_id.empty();
}

void LiveWorld::ask_scheduler(Attempt& attempt) {
  if (!can_ask()) return;
  attempt.asked_s = monotonic_s();
  attempt.view.trouble.clear();
  attempt.questions_open += 2;
  const std::weak_ptr<int> alive = attempt.alive;
  ask_job([this, &attempt, alive](const Result<site::Job>& job) {
    if (alive.expired()) return;
    --attempt.questions_open;
    if (!job) {
      attempt.view.trouble.push_back("job: " + job.error().one_line());
      return;
    }
    note_job(*job, attempt.view);
  });
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  site::start_question(
      loop_, scheduler.nodes_query(attempt.hosts), site::query_timeout_s,
      [this, &attempt, alive](const HelperResult& result) {
        if (alive.expired()) return;
        --attempt.questions_open;
        if (!result.usable()) {
          attempt.view.trouble.push_back("nodes: " + result.trouble);
          return;
        }
        const auto states = read_states(result.out);
        if (!states) {
          attempt.view.trouble.push_back("nodes: " + states.error().one_line());
          return;
        }
        for (const std::string& host : attempt.hosts) {
          const auto state = states->find(node_key(host));
          if (state != states->end())
            attempt.view.node_states.insert_or_assign(state->first, state->second);
        }
        if (attempt.view.node_states.empty()) {
          attempt.view.trouble.emplace_back("nodes: the answer names none of the job's hosts");
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
  // What it said before holds where it says nothing now.
  if (!attempt.view.end_time_s) attempt.view.end_time_s = settings_.planned_end_s;
  for (const std::string& trouble : attempt.view.trouble) {
    record("unknown", {{"what", "scheduler"}, {"why", trouble}});
  }
}

NodeStates LiveWorld::node_states(const std::vector<Node>& hosts) {
  NodeStates known;
  if (!can_ask()) return known;
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  const HelperResult nodes = ask(scheduler.nodes_query(spellings(hosts)));
  if (!nodes.usable()) known.trouble = nodes.trouble;
  // SLURM's scontrol fails when it does not know one host, and still tells of the others.
  const auto states = read_states(nodes.out);
  if (states) {
    for (const Node& host : hosts) {
      const auto state = states->find(host.key);
      if (state != states->end()) known.states[host.key] = state->second;
    }
  } else {
    known.trouble = states.error().one_line();
  }
  if (!scheduler.lost_hosts_leave_the_job) return known;
  // A node that was lost is out of the job for good, though its state may be IDLE again (seen).
  const Result<site::Job> view = job_now();
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
  if (!can_ask()) return std::nullopt;
  const Result<site::Job> job = job_now();
  if (!job) record("unknown", {{"what", "time left"}, {"why", job.error().one_line()}});
  // Who does not answer now has mostly answered at the start.
  const std::optional<double> end_s = job ? planned_end_s(*job) : settings_.planned_end_s;
  if (!end_s) return std::nullopt;
  return *end_s - wall_s();
}

}  // namespace ezpz::failover
