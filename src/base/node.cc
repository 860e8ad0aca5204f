#include "base/node.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace ezpz {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

// The longest end of text that one of the patterns matches and that starts at or after `from`.
size_t find_suffix(const std::vector<std::string>& patterns, std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    for (const std::string& pattern : patterns) {
      if (glob_match(pattern, text.substr(at))) return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool is_ip_address(std::string_view text) {
  if (const size_t zone = text.find('%'); zone != std::string_view::npos) {
    text = text.substr(0, zone);  // fe80::1%hsn0
  }
  const std::string copy(text);
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, copy.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, copy.c_str(), bytes) == 1;
}

std::string node_key(std::string_view spelled, const NodeNaming& naming) {
  std::string_view text = trim(spelled);
  if (is_ip_address(text)) return std::string(text);
  if (text.size() > 1 && text.back() == '.')
    text.remove_suffix(1);  // a fully qualified name's root
  std::string key = lower(text);

  if (const size_t dot = key.find('.'); dot != std::string::npos) {
    if (all_digits(std::string_view(key).substr(0, dot))) return std::string(text);
    const size_t domain = find_suffix(naming.domains, key, std::max<size_t>(dot, 1));
    if (domain != std::string::npos) key.resize(domain);
  }
  const size_t label_end = std::min(key.find('.'), key.size());
  const size_t interface =
      find_suffix(naming.interfaces, std::string_view(key).substr(0, label_end), 1);
  if (interface != std::string::npos) key.erase(interface, label_end - interface);
  return key;
}

Node make_node(std::string_view spelled, const NodeNaming& naming) {
  const std::string_view text = trim(spelled);
  return {std::string(text), node_key(text, naming)};
}

std::vector<Node> make_nodes(const std::vector<std::string>& spelled, const NodeNaming& naming) {
  std::vector<Node> nodes;
  nodes.reserve(spelled.size());
  for (const std::string& name : spelled) nodes.push_back(make_node(name, naming));
  return nodes;
}

std::vector<std::string> spellings(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const Node& node : nodes) names.push_back(node.spelled);
  return names;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  // reach[i]: the pattern so far can match exactly text[0, i). One row is enough, and the cost is
  // pattern times text whatever the pattern holds.
  std::vector<char> reach(text.size() + 1, 0);
  reach[0] = 1;
  for (const char p : pattern) {
    std::vector<char> next(text.size() + 1, 0);
    for (size_t i = 0; i <= text.size(); ++i) {
      if (p == '*') {
        next[i] = static_cast<char>(reach[i] != 0 || (i > 0 && next[i - 1] != 0));
      } else if (i > 0) {
        const char c = text[i - 1];
        const bool here = reach[i - 1] != 0;
        if (p == '#') {
          next[i] = static_cast<char>(is_digit(c) && (here || next[i - 1] != 0));
        } else if (p == '?') {
          next[i] = static_cast<char>(here);
        } else {
          next[i] = static_cast<char>(here && to_lower(p) == to_lower(c));
        }
      }
    }
    reach = std::move(next);
  }
  return reach[text.size()] != 0;
}

}  // namespace ezpz
