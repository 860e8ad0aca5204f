#include "evidence/windows.h"

#include <algorithm>
#include <array>
#include <queue>
#include <string_view>

namespace ezpz::evidence {
namespace {

// What a training log is made of: a sample to count in, not a grammar. Only the choice of windows
// depends on it, never a result. Failures stand in it for the words that near misses are made of.
constexpr std::string_view kTypicalLog =
    R"(step=1200 loss=2.345678 tokens/s=51234.1 lr=3.0e-04 grad_norm=0.712 mem=31.2GiB elapsed=12.34s
step: 40  loss:  4.50812  grad_norm:  1.2036  memory: 41.36GiB(87.04%)  tps: 5,123  tflops: 61.01  mfu: 19.56%
[rank12]:[titan] 2031-06-10 21:49:11,000 - root - INFO - step: 10  loss: 11.8207  memory: 30.12GiB(37.9%)
[2031-06-10 21:49:11,000] [INFO] [Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]
[2031-06-10 21:49:12,113] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | forward: 120.5 | backward: 240.7
 iteration       10/  500000 | consumed samples:  2560 | elapsed time per iteration (ms): 350.2 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: 9.87E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
{'loss': 2.2519, 'grad_norm': 0.7031, 'learning_rate': 1.98e-05, 'epoch': 0.02}
{"epoch": 1, "step": 250, "loss": 2.25, "samples_per_second": 41.2, "time": "2031-06-10T21:49:11.031Z"}
  5%|#5        | 45/100 [00:02<00:38,  2.45it/s, loss=2.1, v_num=0]
Epoch [1/5], Step [100/600], Loss: 0.5012, train accuracy: 0.912, val accuracy: 0.887
epoch 3 step 1200 train loss 0.4131 eval loss 0.5219 ppl 12.31 dt 350.12ms tok/sec 183201.44
nid001304:119233:119410 [0] NCCL INFO Channel 00/08 :    0   1   2   3   4   5   6   7
nid001304:119233:119410 [1] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] 2/8/-1->0->-1
nid001304:119233:119410 [2] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
nid001304:119233:119410 [3] NCCL INFO comm 0x55d3f2a0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId c1000 commId 0x9e5ad0 - Init COMPLETE
nid001304:119233:119410 [0] NCCL INFO NET/OFI Using aws-ofi-nccl 1.7.1; Libfabric provider cxi, plugin libnccl-net.so
nid001304:119233:119410 [0] NCCL INFO Channel 04/0 : 3[3] -> 0[0] via P2P/CUMEM/read; Setting affinity for GPU 0 to ff
rank 3: batch 1200 shape torch.Size([1, 2048]) dtype torch.bfloat16 device cuda:3 done in 0.35 s
12: INFO: worker 7 finished shard 00041 of the data set; loading the next one from /scratch/data/train/shard-00042.parquet
127: DEBUG:root:all_reduce of layers.11.feed_forward.w2.weight (8192, 11008) took 1.204 ms on stream 7
/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 8 worker processes in total.
INFO 06-10 21:49:11 model parameters: 1,986,215,936 trainable, checkpoint saved to /scratch/run/step-00001200 in 2.91 seconds
saving checkpoint at step 1200 to out/checkpoints; validation starts; evaluating model; memory allocated 30.1 GB, reserved 38.0 GB
W0610 21:49:11.031000 22791 torch/distributed/run.py:792] setting OMP_NUM_THREADS environment variable for each process to be 1
ERROR: error: failed, could not connect; timed out; WARNING: warning: exception caught, retrying; process terminated, connection closed by remote host
I0610 21:49:11.031000 22791 rank 3 host nid001304 gpu 0 util 98 temp 61 power 402.1 W clock 1980 MHz throughput 183.2 samples/s
)";

char folded(char c) { return static_cast<char>(static_cast<unsigned char>(c) | 0x20U); }

// How often windows occur in typical logs: as counted, and as pairs of bytes let expect.
class Commonness {
 public:
  Commonness() {
    std::string text(kTypicalLog);
    std::transform(text.begin(), text.end(), text.begin(), folded);
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      pairs_[index(text[i], text[i + 1])] += 1;
      singles_[static_cast<unsigned char>(text[i]) % 128U] += 1;
    }
    for (size_t i = 0; i + kWindow <= text.size(); ++i) counted_.push_back(window_at(&text[i]));
    std::sort(counted_.begin(), counted_.end());
  }

  // Expected occurrences in a text as long as the sample.
  [[nodiscard]] double of(uint32_t window) const {
    const auto [first, last] = std::equal_range(counted_.begin(), counted_.end(), window);
    std::array<char, kWindow> bytes;
    std::memcpy(bytes.data(), &window, kWindow);
    double expected = single(bytes[0]);
    for (size_t i = 0; i + 1 < kWindow; ++i) {
      expected *= (pairs_[index(bytes[i], bytes[i + 1])] + 0.05) / (single(bytes[i]) + 2);
    }
    return static_cast<double>(last - first) + expected;
  }

 private:
  static size_t index(char a, char b) {
    return (static_cast<unsigned char>(a) % 128U) * 128U + static_cast<unsigned char>(b) % 128U;
  }
  [[nodiscard]] double single(char c) const {
    return singles_[static_cast<unsigned char>(c) % 128U] + 0.5;
  }

  std::vector<double> pairs_ = std::vector<double>(size_t{128} * 128);
  std::array<double, 128> singles_{};
  std::vector<uint32_t> counted_;
};

// A window of a literal, in the order of windows, literals, places; one number sorts fast.
class Place {
 public:
  Place(uint32_t window, size_t literal, size_t at)
      : packed_(uint64_t{window} << 32 | literal << 16 | at) {}
  [[nodiscard]] uint32_t window() const { return static_cast<uint32_t>(packed_ >> 32); }
  [[nodiscard]] size_t literal() const { return packed_ >> 16 & 0xffffU; }
  [[nodiscard]] size_t at() const { return packed_ & 0xffffU; }
  bool operator<(const Place& other) const { return packed_ < other.packed_; }

 private:
  uint64_t packed_;
};

// All the places of one window.
struct Group {
  size_t first;
  size_t last;
  double cost;
};

struct Offer {
  double cost_per_literal;
  size_t group;
  bool operator<(const Offer& other) const { return cost_per_literal > other.cost_per_literal; }
};

std::vector<Place> all_places(const std::vector<std::string>& literals) {
  std::vector<Place> places;
  for (size_t i = 0; i < literals.size(); ++i) {
    const size_t length = std::min(literals[i].size(), size_t{1} << 16);
    for (size_t at = 0; at + kWindow <= length; ++at) {
      places.emplace_back(fold_window(window_at(literals[i].data() + at)), i, at);
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<Group> group(const std::vector<Place>& places) {
  // What a window costs by being there: it makes the filter let more of everything through.
  constexpr double kCostOfAnyWindow = 0.1;
  static const Commonness common;
  std::vector<Group> groups;
  for (size_t i = 0; i < places.size();) {
    size_t end = i;
    while (end < places.size() && places[end].window() == places[i].window()) ++end;
    groups.push_back({i, end, common.of(places[i].window()) + kCostOfAnyWindow});
    i = end;
  }
  return groups;
}

}  // namespace

std::vector<size_t> choose_windows(const std::vector<std::string>& literals) {
  const std::vector<Place> places = all_places(literals);
  const std::vector<Group> groups = group(places);
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> chosen(literals.size(), kNone);
  // The literals that a group would serve, each once.
  const auto serve = [&](const Group& group, bool assign) {
    size_t served = 0;
    size_t last = kNone;
    for (size_t i = group.first; i < group.last && served < kMostLiteralsPerWindow; ++i) {
      const Place& place = places[i];
      const size_t literal = place.literal();
      if (literal == last || chosen[literal] != kNone) continue;
      last = literal;
      ++served;
      if (assign) chosen[literal] = place.at();
    }
    return served;
  };
  // A greedy cover: again and again the window that is cheapest for each literal it serves. An
  // offer only gets worse as others are taken, so it is looked at again when it is at the top.
  std::priority_queue<Offer> offers;
  const auto offer = [&](size_t index) {
    const size_t served = serve(groups[index], false);
    if (served > 0) offers.push({groups[index].cost / static_cast<double>(served), index});
  };
  for (size_t i = 0; i < groups.size(); ++i) offer(i);
  while (!offers.empty()) {
    const Offer best = offers.top();
    offers.pop();
    const size_t served = serve(groups[best.group], false);
    if (served == 0) continue;
    const double cost = groups[best.group].cost / static_cast<double>(served);
    if (cost > best.cost_per_literal) {
      offers.push({cost, best.group});
      continue;
    }
    serve(groups[best.group], true);
    offer(best.group);
  }
  return chosen;
}

}  // namespace ezpz::evidence
