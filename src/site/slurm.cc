#include "site/slurm.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include "base/hostlist.h"
#include "base/text.h"

namespace ezpz::site::slurm {
namespace {

// One record of `scontrol show ... -o`: "Key=value Key=value ...". Values may hold spaces and even
// "Key=" (JobName is the user's text), so what follows such a value is looked for behind it.
class Record {
 public:
  explicit Record(std::string_view text) : text_(" " + std::string(text)) {
    for (char& c : text_) {
      if (std::isspace(static_cast<unsigned char>(c)) != 0) c = ' ';
    }
    text_ += ' ';
  }

  // Forgets everything before the last " key=" that `before_key` still follows.
  void skip_user_text(const std::string& key, const std::string& before_key) {
    const size_t end = text_.find(" " + before_key + "=");
    if (end == std::string::npos) return;
    const size_t at = text_.rfind(" " + key + "=", end);
    if (at != std::string::npos) text_.erase(0, at);
  }

  [[nodiscard]] std::optional<std::string> get(const std::string& key) const {
    const std::string mark = " " + key + "=";
    const size_t at = text_.find(mark);
    if (at == std::string::npos) return std::nullopt;
    const size_t start = at + mark.size();
    std::string value = text_.substr(start, text_.find(' ', start) - start);
    if (value.empty() || value == "(null)" || value == "N/A") return std::nullopt;
    return value;
  }

 private:
  std::string text_;
};

// The records of an output: one a line with -o, separated by blank lines without.
std::vector<std::string> records(std::string_view output, std::string_view first_key) {
  std::vector<std::string> found;
  for (const std::string& line : split_lines(output)) {
    if (line.substr(0, first_key.size()) == first_key) {
      found.push_back(line);
    } else if (!found.empty()) {
      found.back() += " " + line;
    }
  }
  return found;
}

std::vector<std::string> hosts_of(const std::optional<std::string>& list) {
  if (!list) return {};
  Result<std::vector<std::string>> hosts = expand_hostlist(*list);
  return hosts.ok() ? *std::move(hosts) : std::vector<std::string>{};
}

JobPhase phase_of(std::string_view state) {
  if (state == "RUNNING") return JobPhase::running;
  if (state == "PENDING") return JobPhase::waiting;
  return state.empty() ? JobPhase::unknown : JobPhase::ending;
}

// Counts what a device list like "0,1,2,3" or "0-3,7" names; 0 when it is not one.
int count_devices(const std::string& list) {
  int count = 0;
  for (const std::string& item : split(list, ',')) {
    const size_t dash = item.find('-', 1);
    const auto first = parse_int(item.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 1023) return 0;
    count += static_cast<int>(*last - *first + 1);
  }
  return count;
}

// "4", "a100:4", "gpu:a100:3,gpu:h100:1": the numbers behind the last colon, summed.
int count_gres(const std::string& text) {
  int count = 0;
  for (const std::string& item : split(text, ',')) {
    const size_t colon = item.rfind(':');
    const auto number = parse_int(colon == std::string::npos ? item : item.substr(colon + 1));
    if (!number || *number < 0 || *number > 1024) return 0;
    count += static_cast<int>(*number);
  }
  return count;
}

}  // namespace

Argv job_query(const std::string& job_id) {
  // The user's SLURM_TIME_FORMAT would change how the end time is printed.
  return {"env", "SLURM_TIME_FORMAT=standard", "scontrol", "show", "job", "-o", job_id};
}

Result<Job> read_job(std::string_view output) {
  const std::vector<std::string> found = records(output, "JobId=");
  if (found.empty()) {
    return Error{"scontrol printed no job", printable(trim(output), 80), "is the job over?"};
  }
  Record record(found[0]);
  Job job;
  job.id = record.get("JobId").value_or("");
  record.skip_user_text("UserId", "GroupId");
  job.user = record.get("UserId").value_or("");
  job.user = job.user.substr(0, job.user.find('('));
  job.state = record.get("JobState").value_or("");
  job.phase = phase_of(job.state);
  job.hosts = hosts_of(record.get("NodeList"));
  if (const auto end = record.get("EndTime")) job.end_time_s = parse_time(*end);
  // HetJobId stands in front of the user's text; PackJobId before SLURM 20.02.
  const Record whole(found[0].substr(0, found[0].find(" JobName=")));
  job.heterogeneous = whole.get("HetJobId").has_value() || whole.get("PackJobId").has_value();
  if (job.state.empty()) {
    return Error{"scontrol printed a job without a state", printable(found[0], 80), ""};
  }
  return job;
}

Argv batch_script_query(const std::string& job_id) {
  return {"scontrol", "write", "batch_script", job_id, "-"};
}

std::optional<bool> read_no_kill(std::string_view batch_script) {
  std::optional<bool> no_kill;
  for (const std::string& line : split_lines(batch_script)) {
    if (line.rfind("#SBATCH", 0) != 0) {
      const std::string_view text = trim(line);
      if (!text.empty() && text[0] != '#') break;  // sbatch stops reading at the first command
      continue;
    }
    for (const std::string& word : split_words(line)) {
      if (word == "#SBATCH") continue;
      if (word[0] == '#') break;
      if (word == "--no-kill" || word == "-k") no_kill = true;
      if (word == "--no-kill=off") no_kill = false;
    }
  }
  return no_kill;
}

namespace {

// "RUNNING|2026-11-29T17:03:17|nid[000002-000004]": a state (of which sacct may say more,
// "CANCELLED by 0"), an end and a host list.
Result<Job> read_job_fields(std::string_view output, const char* program) {
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> fields = split(trim(line), '|');
    if (fields.size() < 3 || fields[0].empty()) continue;
    Job job;
    job.state = fields[0].substr(0, fields[0].find(' '));
    job.phase = phase_of(job.state);
    job.end_time_s = parse_time(fields[1]);
    job.hosts = hosts_of(fields[2]);
    return job;
  }
  return Error{std::string(program) + " printed no job", printable(trim(output), 80), ""};
}

}  // namespace

std::span<const JobSource> job_sources() {
  static const JobSource sources[] = {
      {"scontrol show job", job_query, read_job},
      {"squeue",
       [](const std::string& job_id) -> Argv {
         return {"env",     "SLURM_TIME_FORMAT=standard", "squeue", "-h", "-j", job_id, "-o",
                 "%T|%e|%N"};
       },
       [](std::string_view output) { return read_job_fields(output, "squeue"); }},
      {"sacct",
       [](const std::string& job_id) -> Argv {
         return {"env", "SLURM_TIME_FORMAT=standard", "sacct", "-n", "-P", "-X", "-j", job_id,
                 "-o",  "State,End,NodeList"};
       },
       [](std::string_view output) { return read_job_fields(output, "sacct"); }},
  };
  return sources;
}

Argv my_jobs_query(const std::string& user) {
  return {"squeue", "-h", "-u", user, "-t", "RUNNING", "-o", "%A"};
}

std::vector<std::string> read_my_jobs(std::string_view output) {
  std::vector<std::string> jobs;
  for (const std::string& word : split_words(output)) {
    if (parse_int(word) && std::find(jobs.begin(), jobs.end(), word) == jobs.end()) {
      jobs.push_back(word);
    }
  }
  return jobs;
}

Argv nodes_query(const std::vector<std::string>& hosts) {
  return {"scontrol", "show", "node", "-o", compress_hostlist(hosts)};
}

std::map<std::string, std::string> read_nodes(std::string_view output) {
  std::map<std::string, std::string> states;
  for (const std::string& line : records(output, "NodeName=")) {
    const Record record(line);
    const auto name = record.get("NodeName");
    const auto state = record.get("State");
    if (name && state) states[*name] = *state;
  }
  return states;
}

Argv steps_query(const std::string& job_id) { return {"scontrol", "show", "step", "-o", job_id}; }

std::vector<Step> read_steps(std::string_view output) {
  std::vector<Step> steps;
  for (const std::string& line : records(output, "StepId=")) {
    const Record record(line);
    Step step;
    step.id = record.get("StepId").value_or("");
    const size_t dot = step.id.rfind('.');
    if (dot == std::string::npos || !parse_int(step.id.substr(dot + 1))) continue;
    step.state = record.get("State").value_or("");
    step.hosts = hosts_of(record.get("NodeList"));
    steps.push_back(std::move(step));
  }
  return steps;
}

Argv cluster_query() { return {"scontrol", "show", "config"}; }

std::optional<std::string> read_cluster(std::string_view output) {
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() >= 3 && words[0] == "ClusterName" && words[1] == "=") return words[2];
  }
  return std::nullopt;
}

std::optional<std::vector<int>> expand_counts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string& item : split(trim(text), ',')) {
    const size_t open = item.find('(');
    const auto count = parse_int(item.substr(0, open));
    long times = 1;
    if (open != std::string::npos) {
      if (item.compare(open, 2, "(x") != 0 || item.back() != ')') return std::nullopt;
      times = parse_int(item.substr(open + 2, item.size() - open - 3)).value_or(0);
    }
    if (!count || *count < 0 || *count > 1'000'000 || times < 1) return std::nullopt;
    if (counts.size() + static_cast<size_t>(times) > max_hosts) return std::nullopt;
    counts.insert(counts.end(), static_cast<size_t>(times), static_cast<int>(*count));
  }
  return counts;
}

std::optional<double> parse_time(std::string_view text) {
  const std::string copy(trim(text));
  std::tm time = {};
  const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  time.tm_isdst = -1;  // SLURM prints local time without saying which
  const std::time_t seconds = std::mktime(&time);
  if (seconds == static_cast<std::time_t>(-1)) return std::nullopt;
  return static_cast<double>(seconds);
}

int gpus_on_node(const Environment& env) {
  struct Form {
    const char* name;
    int (*count)(const std::string&);
  };
  static constexpr std::array<Form, 4> forms = {{{"SLURM_GPUS_ON_NODE", count_gres},
                                                 {"SLURM_JOB_GPUS", count_devices},
                                                 {"SLURM_STEP_GPUS", count_devices},
                                                 {"SLURM_GPUS_PER_NODE", count_gres}}};
  for (const Form& form : forms) {
    const auto value = get(env, form.name);
    if (!value) continue;
    if (const int count = form.count(*value); count > 0) return count;
  }
  return 0;
}

}  // namespace ezpz::site::slurm
