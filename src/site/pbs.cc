#include "site/pbs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/hostlist.h"
#include "base/text.h"

namespace ezpz::site::pbs {
namespace {

using Attributes = std::map<std::string, std::string>;  // "Resource_List.walltime" -> "00:01:00"

// A clock that differs by a time zone differs by as much at least.
constexpr double kSameZone_s = 1800;
constexpr double kMaxWalltime_s = 100.0 * 365 * 86400;

// Tells every scalar of a JSON text with the keys that lead to it, as far as the text is valid. A
// document tree would hold tens of thousands of nodes to no use, and of a key that comes twice it
// would keep the last, which may be the user's.
class Scalars : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Path = std::vector<std::string>;
  using Visit = std::function<void(const Path&, const std::string&)>;
  explicit Scalars(Visit visit) : visit_(std::move(visit)) {}

  bool null() override { return true; }
  bool boolean(bool value) override { return tell(value ? "True" : "False"); }
  bool number_integer(number_integer_t value) override { return tell(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return tell(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return tell(text); }
  bool string(string_t& text) override { return tell(text); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    path_.emplace_back();
    return path_.size() <= kMaxDepth;
  }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return start_object(0); }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  static constexpr size_t kMaxDepth = 16;
  bool tell(const std::string& value) {
    if (!path_.empty()) visit_(path_, value);
    return true;
  }
  Visit visit_;
  Path path_;
};

// False when the text broke off; what came before has been told.
bool visit_scalars(std::string_view json, Scalars::Visit visit) {
  Scalars scalars(std::move(visit));
  return nlohmann::json::sax_parse(json.begin(), json.end(), &scalars);
}

// Words in the order they came, each once; a job of ten thousand hosts names each a dozen times.
class Once {
 public:
  void add(std::string_view item) {
    if (item.empty() || list_.size() >= max_hosts) return;
    if (seen_.emplace(item).second) list_.emplace_back(item);
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
  std::set<std::string, std::less<>> seen_;
};

// now_s: the server's clock when it answered, which tells whether its zone is ours. Where it is not
// (or the job was suspended meanwhile) the time it has used counts, which comes from a poll.
std::optional<double> end_of(const Attributes& job, JobPhase phase, std::optional<double> now_s) {
  const auto get = [&](const char* name) {
    const auto found = job.find(name);
    return found != job.end() ? found->second : std::string();
  };
  const auto limit_s = parse_walltime(get("Resource_List.walltime"));
  const auto start_s = parse_ctime(get("stime"));
  if (!limit_s || !start_s) return std::nullopt;
  if (!now_s || phase != JobPhase::running) return *start_s + *limit_s;
  const auto used_s = parse_walltime(get("resources_used.walltime"));
  if (std::abs(*now_s - *start_s - used_s.value_or(0)) < kSameZone_s) return *start_s + *limit_s;
  if (!used_s) return std::nullopt;
  return *now_s + *limit_s - *used_s;
}

Result<Job> job_of(const std::string& id, const Attributes& attributes,
                   std::optional<double> now_s) {
  const auto get = [&](const char* name) {
    const auto found = attributes.find(name);
    return found != attributes.end() ? found->second : std::string();
  };
  Job job;
  job.id = id;
  job.state = std::string(trim(get("job_state")));
  if (job.state.empty()) return Error{"qstat printed a job without a state", printable(id, 80), ""};
  job.phase = phase_of(job.state);
  job.hosts = hosts_of_exec_host(get("exec_host"));
  if (job.hosts.empty()) job.hosts = hosts_of_exec_vnode(get("exec_vnode"));
  job.end_time_s = end_of(attributes, job.phase, now_s);
  // Shown only where it was asked for; "job_start" tolerates losses before the start alone.
  job.no_kill = get("tolerate_node_failures") == "all";
  job.user = get("Job_Owner");
  job.user = job.user.substr(0, job.user.find('@'));
  return job;
}

}  // namespace

JobId parse_job_id(std::string_view text) {
  text = trim(text);
  const size_t dot = text.find('.');
  JobId id;
  id.sequence = std::string(text.substr(0, dot));
  if (dot != std::string_view::npos) id.server = std::string(text.substr(dot + 1));
  return id;
}

Result<Job> read_job_json(std::string_view output) {
  std::string id;
  Attributes attributes;
  std::optional<double> now_s;
  const bool valid =
      visit_scalars(output, [&](const Scalars::Path& path, const std::string& value) {
        if (path.size() == 1 && path[0] == "timestamp" && !now_s) now_s = parse_double(value);
        if (path.size() < 3 || path[0] != "Jobs") return;
        if (id.empty()) id = path[1];
        if (path[1] != id || path[2] == "Variable_List") return;
        if (path.size() == 3) attributes.emplace(path[2], value);
        if (path.size() == 4) attributes.emplace(path[2] + "." + path[3], value);
      });
  if (!valid) return Error{"qstat printed no valid JSON", printable(trim(output), 80), ""};
  if (id.empty()) return Error{"qstat printed no job", printable(trim(output), 80), ""};
  return job_of(id, attributes, now_s);
}

Result<Job> read_job_text(std::string_view output) {
  constexpr std::string_view kFirst = "Job Id: ";
  std::string id;
  Attributes attributes;
  std::string* value = nullptr;
  for (const std::string& line : split_lines(output)) {
    if (line.rfind(kFirst, 0) == 0) {
      if (!id.empty()) break;
      id = std::string(trim(line.substr(kFirst.size())));
      continue;
    }
    // Long values go on behind a tab where the wide form is not known.
    if (!line.empty() && line[0] == '\t') {
      if (value != nullptr) *value += trim(line);
      continue;
    }
    value = nullptr;
    const size_t equals = line.find(" = ");
    if (id.empty() || line.rfind("    ", 0) != 0 || equals == std::string::npos) continue;
    const auto [entry, fresh] =
        attributes.emplace(std::string(trim(line.substr(0, equals))), line.substr(equals + 3));
    if (fresh) value = &entry->second;
  }
  if (id.empty()) return Error{"qstat printed no job", printable(trim(output), 80), ""};
  return job_of(id, attributes, std::nullopt);
}

std::span<const JobSource> job_sources() {
  static const JobSource sources[] = {
      {"qstat -f -F json",
       [](const std::string& id) -> Argv {
         return {"qstat", "-f", "-F", "json", id};
       },
       read_job_json},
      {"qstat -f -w",
       [](const std::string& id) -> Argv {
         return {"qstat", "-f", "-w", id};
       },
       read_job_text},
      {"qstat -x -f -w",
       [](const std::string& id) -> Argv {
         return {"qstat", "-x", "-f", "-w", id};
       },
       read_job_text},
  };
  return sources;
}

std::vector<std::string> hosts_of_exec_host(std::string_view text) {
  Once hosts;
  for (const std::string& part : split(text, '+')) {
    // "h1/0*2", and with a port "h1.site:15002/0*2".
    hosts.add(trim(std::string_view(part).substr(0, part.find_first_of("/:"))));
  }
  return hosts.list();
}

std::vector<std::string> hosts_of_exec_vnode(std::string_view text) {
  Once hosts;
  for (const std::string& part : split(text, '+')) {
    std::string_view name(part);
    while (!name.empty() && (name.front() == '(' || name.front() == ' ')) name.remove_prefix(1);
    hosts.add(name.substr(0, name.find_first_of(":[)")));
  }
  return hosts.list();
}

std::optional<double> parse_walltime(std::string_view text) {
  double seconds = 0;
  const std::vector<std::string> parts = split(trim(text), ':');
  if (parts.size() > 3) return std::nullopt;
  for (const std::string& part : parts) {
    const auto number = parse_int(part);
    if (!number || *number < 0) return std::nullopt;
    seconds = seconds * 60 + static_cast<double>(*number);
  }
  if (seconds > kMaxWalltime_s) return std::nullopt;
  return seconds;
}

std::optional<double> parse_ctime(std::string_view text) {
  const std::string copy(trim(text));
  std::tm time = {};
  const char* rest = strptime(copy.c_str(), "%a %b %d %H:%M:%S %Y", &time);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  time.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&time);
  if (seconds == static_cast<std::time_t>(-1)) return std::nullopt;
  return static_cast<double>(seconds);
}

JobPhase phase_of(std::string_view job_state) {
  struct Letter {
    char letter;
    JobPhase phase;
  };
  static constexpr std::array<Letter, 12> letters = {{
      {'R', JobPhase::running},
      {'B', JobPhase::running},  // an array of which something runs
      {'Q', JobPhase::waiting},
      {'H', JobPhase::waiting},  // held
      {'W', JobPhase::waiting},  // for its hour
      {'T', JobPhase::waiting},  // being moved
      {'M', JobPhase::waiting},  // was moved
      {'S', JobPhase::waiting},  // suspended
      {'U', JobPhase::waiting},  // suspended for a keyboard's sake
      {'E', JobPhase::ending},
      {'F', JobPhase::ending},  // finished, well or not
      {'X', JobPhase::ending},  // the same of an array's part
  }};
  if (job_state.size() != 1) return JobPhase::unknown;
  for (const Letter& row : letters) {
    if (row.letter == job_state[0]) return row.phase;
  }
  return JobPhase::unknown;
}

Argv my_jobs_query(const std::string& user) { return {"qstat", "-u", user}; }

std::vector<std::string> read_my_jobs(std::string_view output) {
  // "Job ID  Username Queue Jobname SessID NDS TSK Memory Time S Time" under a heading and dashes.
  Once jobs;
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() < 9 || std::isdigit(static_cast<unsigned char>(words[0][0])) == 0) continue;
    if (words[words.size() - 2] != "R") continue;
    jobs.add(parse_job_id(words[0]).sequence);
  }
  return jobs.list();
}

Argv nodes_query(const std::vector<std::string>&) { return {"pbsnodes", "-a", "-F", "json"}; }

std::map<std::string, std::string> read_nodes(std::string_view output) {
  struct Host {
    Once names;
    Once words;
  };
  std::map<std::string, Host> hosts;  // by the name PBS gives the host
  std::string vnode;
  std::string host;
  std::string moms;
  std::string state;
  const auto close = [&] {
    if (vnode.empty() || state.empty()) return;
    const std::string of_vnode = vnode.substr(0, vnode.find('['));
    Host& entry = hosts[host.empty() ? of_vnode : host];
    entry.names.add(host);
    entry.names.add(of_vnode);
    for (const std::string& mom : split(moms, ',')) entry.names.add(trim(mom));
    for (const std::string& word : split(state, ',')) entry.words.add(trim(word));
  };
  visit_scalars(output, [&](const Scalars::Path& path, const std::string& value) {
    if (path.size() < 3 || path[0] != "nodes") return;
    if (path[1] != vnode) {
      close();
      vnode = path[1];
      host.clear();
      moms.clear();
      state.clear();
    }
    const bool attribute = path.size() == 3;
    if (attribute && path[2] == "state" && state.empty()) state = value;
    if (attribute && path[2] == "Mom" && moms.empty()) moms = value;
    const bool resource = path.size() == 4 && path[2] == "resources_available";
    if (resource && path[3] == "host" && host.empty()) host = value;
  });
  close();
  std::map<std::string, std::string> states;
  for (const auto& [key, entry] : hosts) {
    for (const std::string& name : entry.names.list()) {
      states.emplace(name, join(entry.words.list(), ","));
    }
  }
  return states;
}

bool is_passing_trouble(std::string_view error_text) {
  static constexpr std::array<std::string_view, 4> texts = {
      "communication failure", "cannot connect to server", "premature end of message",
      "end of file"};
  const std::string text = lower(error_text);
  return std::any_of(texts.begin(), texts.end(),
                     [&](std::string_view known) { return text.find(known) != std::string::npos; });
}

}  // namespace ezpz::site::pbs
