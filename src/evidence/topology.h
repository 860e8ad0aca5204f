// Which rank ran on which host, as the output itself tells. Unknown stays unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ezpz::evidence {

class Topology {
 public:
  void place(int rank, const std::string& host);
  void set_world_size(int size);
  [[nodiscard]] std::optional<std::string> host_of(int rank) const;
  [[nodiscard]] std::optional<int> world_size() const { return world_size_; }
  // Hosts by lowest rank, each with its ranks in ascending order.
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>> hosts() const;
  [[nodiscard]] bool empty() const { return host_of_rank_.empty(); }

 private:
  std::map<int, std::string> host_of_rank_;
  std::optional<int> world_size_;
};

}  // namespace ezpz::evidence
