#include "site/hostfile.h"

#include <map>
#include <set>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/text.h"

namespace ezpz::site {
namespace {

constexpr size_t max_hostfile_bytes = 16U << 20U;

// "host slots=4", "host:4", "host" -> the host part.
std::string_view host_part(std::string_view line) {
  std::string_view host = line.substr(0, line.find_first_of(" \t"));
  const size_t colon = host.rfind(':');
  // One colon and a number behind it is a count; several are an IPv6 address.
  if (colon != std::string_view::npos && host.find(':') == colon &&
      parse_int(host.substr(colon + 1))) {
    host = host.substr(0, colon);
  }
  return host;
}

}  // namespace

Result<Hostfile> parse_hostfile(std::string_view text, const std::string& path,
                                const NodeNaming& naming) {
  Hostfile file;
  std::set<std::string> seen;
  int number = 0;
  for (const std::string& raw : split_lines(text)) {
    ++number;
    const std::string_view line = trim(std::string_view(raw).substr(0, raw.find('#')));
    if (line.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const Result<std::vector<std::string>> names = expand_hostlist(
        line.find('[') != std::string_view::npos || line.find(',') != std::string_view::npos
            ? line
            : host_part(line));
    if (!names.ok()) {
      return Error{names.error().what + " at " + names.error().where, where, names.error().hint};
    }
    for (const std::string& name : *names) {
      Node node = make_node(name, naming);
      if (!seen.insert(node.key).second) {
        file.duplicates.push_back(node.spelled);
        continue;
      }
      if (file.hosts.size() == max_hosts) {
        return Error{"more than " + std::to_string(max_hosts) + " hosts", where, ""};
      }
      file.hosts.push_back(std::move(node));
    }
  }
  if (file.hosts.empty()) return Error{"hostfile is empty", path, "list one host per line"};
  return file;
}

Result<Hostfile> read_hostfile(const std::string& path, const NodeNaming& naming) {
  const Result<std::string> text = read_file(path, max_hostfile_bytes);
  if (!text.ok()) return Error{"cannot read the hostfile", path, text.error().what};
  return parse_hostfile(*text, path, naming);
}

std::string format_hostfile(const std::vector<Node>& hosts) {
  std::string text;
  for (const Node& host : hosts) text += host.spelled + "\n";
  return text;
}

Result<std::vector<Node>> within_allocation(const std::vector<Node>& hosts,
                                            const std::vector<Node>& allocation,
                                            const std::string& path) {
  if (allocation.empty()) return hosts;
  std::map<std::string, const Node*> known;
  for (const Node& node : allocation) known.emplace(node.key, &node);
  std::vector<Node> inside;
  std::vector<std::string> outside;
  for (const Node& host : hosts) {
    const auto found = known.find(host.key);
    if (found == known.end()) {
      outside.push_back(host.spelled);
    } else {
      inside.push_back(*found->second);
    }
  }
  if (outside.empty()) return inside;
  const bool one = outside.size() == 1;
  return Error{std::string(one ? "a host is" : "hosts are") +
                   " not in this job's allocation: " + printable(compress_hostlist(outside), 200),
               path, "the job has " + printable(compress_hostlist(spellings(allocation)), 200)};
}

}  // namespace ezpz::site
