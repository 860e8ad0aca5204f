#include "postmortem/replay.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "failover/record_json.h"
#include "postmortem/log_file.h"

namespace ezpz::postmortem {
namespace {

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int attempt_of(const Json& context) {
  const auto found = context.find("attempt");
  return found != context.end() && found->is_number_integer() ? found->get<int>() : 0;
}

void read_verdict(const Json& context, Recorded* recorded) {
  recorded->verdict = text_of(context, "verdict");
  const auto culprits = context.find("culprits");
  if (culprits == context.end() || !culprits->is_array()) return;
  for (const Json& culprit : *culprits) recorded->culprits.push_back(text_of(culprit, "host"));
}

// Judges the attempt by its log; by the journal's facts when the log is gone.
Status read_log(const std::string& path, const evidence::Grammar& grammar, Replayed* attempt) {
  if (!file_exists(path)) return success();
  Result<LogFile> log = LogFile::open(path);
  if (!log) return log.error();
  evidence::Stream stream(grammar);
  Status read = log->read_to_end([&stream](std::string_view bytes) { stream.feed(bytes); });
  if (!read) return read;
  stream.finish();
  verdict::AttemptRecord& record = attempt->autopsy.record;
  record = with_output_facts(std::move(record), stream.facts());
  record.progress = stream.progress();
  for (const auto& [host, ranks] : stream.topology().hosts()) {
    for (const int rank : ranks) record.host_of_rank[rank] = host;
  }
  attempt->log = path.substr(path.rfind('/') + 1);
  return success();
}

}  // namespace

bool Replayed::agrees() const {
  if (recorded.verdict != to_string(autopsy.verdict.kind)) return false;
  std::vector<std::string> now;
  for (const verdict::Culprit& culprit : autopsy.verdict.culprits) now.push_back(culprit.host);
  std::vector<std::string> then = recorded.culprits;
  std::sort(now.begin(), now.end());
  std::sort(then.begin(), then.end());
  return now == then;
}

bool is_job_dir(const std::string& path) { return file_exists(path + "/journal.jsonl"); }

verdict::AttemptRecord with_output_facts(verdict::AttemptRecord record,
                                         const std::vector<Fact>& output) {
  std::vector<Fact> merged;
  size_t next = 0;
  int64_t line = 0;  // of the last fact from the output before the one being placed
  for (Fact& fact : record.facts) {
    if (fact.source == Source::output) {
      line = std::max(line, fact.line);
      continue;
    }
    while (next < output.size() && output[next].line <= line) merged.push_back(output[next++]);
    merged.push_back(std::move(fact));
  }
  merged.insert(merged.end(), output.begin() + static_cast<ptrdiff_t>(next), output.end());
  record.facts = std::move(merged);
  return record;
}

Result<Replay> replay(const std::string& job_dir, const evidence::Grammar& grammar,
                      const std::function<NodeNaming(const std::string& machine)>& naming_of) {
  const Result<journal::Reading> reading = journal::read_journal(job_dir + "/journal.jsonl");
  if (!reading) return reading.error();
  Replay replay;
  replay.unreadable_lines = reading->unreadable_lines;
  std::map<int, Replayed> attempts;
  for (const journal::Event& event : reading->events) {
    const Json& context = event.context;
    if (event.name == "start") {
      replay.job_id = text_of(context, "job_id");
      replay.machine = text_of(context, "machine");
    } else if (event.name == "stop") {
      replay.stop_reason = text_of(context, "reason");
    } else if (event.name == "attempt_end") {
      attempts[attempt_of(context)].autopsy.record = failover::attempt_from_json(context);
    } else if (event.name == "verdict") {
      read_verdict(context, &attempts[attempt_of(context)].recorded);
    } else if (event.name == "decision") {
      Recorded& recorded = attempts[attempt_of(context)].recorded;
      recorded.action = text_of(context, "action");
      recorded.why = text_of(context, "why");
    }
  }
  if (attempts.empty()) {
    return Error{"no attempt has ended in this record", job_dir + "/journal.jsonl",
                 "a job that still runs: ezpz postmortem --follow " + job_dir + "/attempt-1.log"};
  }
  const NodeNaming naming = naming_of(replay.machine);
  for (auto& [number, attempt] : attempts) {
    const std::string path = job_dir + "/attempt-" + std::to_string(number) + ".log";
    if (Status read = read_log(path, grammar, &attempt); !read) return read.error();
    std::string log = std::move(attempt.log);
    attempt.autopsy = examine(std::move(attempt.autopsy.record), naming, grammar);
    attempt.log = std::move(log);
    replay.attempts.push_back(std::move(attempt));
  }
  return replay;
}

}  // namespace ezpz::postmortem
