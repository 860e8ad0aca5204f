// One machine, whatever it is called: "x1921c7s1b0n0-hsn0.hsn.cm.site.gov" and "x1921c7s1b0n0" are
// the same node. Compare keys, write spellings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ezpz {

// What may be taken off a name; a machine's table says it (site/machine.h). In both lists '*'
// stands for any text and '#' for one or more digits.
struct NodeNaming {
  std::vector<std::string> domains;     // ".hsn.cm.*", ".chn.perlmutter.nersc.gov", ".*"
  std::vector<std::string> interfaces;  // "-hsn#": at the end of the first label
};

// Lower case, without the domain and interface that naming names. An IP address (v4 or v6) comes
// back as it went in, and so does a name whose first label is only digits: it may be a cut address.
std::string node_key(std::string_view spelled, const NodeNaming& naming);

bool is_ip_address(std::string_view text);

struct Node {
  std::string
      spelled;      // as the scheduler or the hostfile wrote it; what hostfiles are written with
  std::string key;  // node_key() of it
  friend bool operator==(const Node& a, const Node& b) { return a.key == b.key; }
};

Node make_node(std::string_view spelled, const NodeNaming& naming);
std::vector<Node> make_nodes(const std::vector<std::string>& spelled, const NodeNaming& naming);
std::vector<std::string> spellings(const std::vector<Node>& nodes);

// Anchored match: '*' any text, '?' one character, '#' one or more digits; letters of any case.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace ezpz
