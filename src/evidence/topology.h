// Which rank ran on which host, as the output itself tells. Unknown stays unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ezpz::evidence {

class Topology {
 public:
  // What a launcher or a program says of a rank of the job; the last word counts.
  void place(int rank, const std::string& host);
  // A line's label named both; counts where nobody says more.
  void place_by_label(int rank, const std::string& host);
  // A member of a communicator of `size` ranks. Its ranks are the job's only when it is the whole
  // job: the largest one told of and told of whole, as large as the world where that is known, with
  // room for every rank placed otherwise, and without two hosts that claim one rank.
  void place_in_group(int rank, int size, const std::string& host);
  void set_world_size(int size);

  [[nodiscard]] std::optional<std::string> host_of(int rank) const;
  [[nodiscard]] std::optional<int> world_size() const { return world_size_; }
  // Hosts by lowest rank, each with its ranks in ascending order.
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>> hosts() const;
  // Only what was placed by word, without communicators and labels: those may number ranks anew.
  [[nodiscard]] const std::map<int, std::string>& placed() const { return placed_; }
  [[nodiscard]] bool empty() const;

 private:
  using Hosts = std::map<int, std::string>;
  [[nodiscard]] bool group_is_the_job() const;
  [[nodiscard]] Hosts all() const;

  Hosts placed_;
  Hosts labelled_;
  Hosts group_;
  int group_size_ = 0;
  bool group_contradicts_itself_ = false;
  std::optional<int> world_size_;
};

}  // namespace ezpz::evidence
