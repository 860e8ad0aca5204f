// Which network the ranks use, as their own lines tell it (Event::network), held against the one
// they should use. Pure: the running job, the verdict and the report ask the same questions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/attempt.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {

// The same network, whatever its spelling: case aside, and "Libfabric" is "AWS Libfabric".
bool same_network(std::string_view a, std::string_view b);

// What ranks said, and on which hosts (keys, in the order they spoke).
struct NetworkUse {
  std::string name;
  std::vector<std::string> hosts;
  size_t fact = kNoFact;  // the first that says so, when asked of an attempt's facts
};
std::vector<NetworkUse> uses_of(Event equipment, const std::vector<Fact>&, const NodeKey&);

// A network that is not the expected one.
struct WrongNetwork {
  std::string name;                // the first wrong one's
  std::vector<std::string> hosts;  // with a wrong one
  std::vector<std::string> right;  // hosts that only ever named the expected one
  std::vector<size_t> facts;
  // One host differs from all its peers: it is that host and not the environment.
  [[nodiscard]] bool one_alone() const { return hosts.size() == 1 && !right.empty(); }
};
std::optional<WrongNetwork> wrong_network(const NetworkWish&, const std::vector<Fact>&,
                                          const NodeKey&);

// "NCCL uses Socket instead of AWS Libfabric on nid1 and nid2"
std::string in_words(const WrongNetwork&, const NetworkWish&);

}  // namespace ezpz::verdict
