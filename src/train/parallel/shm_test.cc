#include "train/parallel/shm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "train/parallel/testing.h"

namespace ezpz::train {
namespace {

std::string file_name() {
  static int number = 0;
  return "/dev/shm/ezpz-train-test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

// Each rank is a thread with the file opened for itself, as processes have it.
void on_shm(int ranks, const std::function<void(Comm*)>& body, const ShmLimits& limits = {}) {
  const std::string path = file_name();
  ASSERT_TRUE(create_shm_file(path, ranks));
  std::vector<std::unique_ptr<Comm>> comms;
  for (int r = 0; r < ranks; ++r) comms.push_back(open_shm(path, r, ranks, limits));
  unlink(path.c_str());
  std::vector<std::thread> threads;
  for (auto& comm : comms) {
    ASSERT_NE(comm, nullptr);
    threads.emplace_back([&] {
      set_threads(1);
      body(comm.get());
      comm.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Longer than a window, and not a multiple of it.
constexpr int64_t kLong = 700001;

TEST(SharedMemory, GathersEveryRanksPartInOrder) {
  on_shm(3, [](Comm* comm) {
    std::vector<float> shard(kLong), full(3 * kLong);
    std::iota(shard.begin(), shard.end(), static_cast<float>(comm->rank()) * 1e6F);
    for (int again = 0; again < 3; ++again) {
      comm->wait(comm->all_gather(full.data(), shard.data(), kLong));
      for (int r = 0; r < 3; ++r) {
        EXPECT_EQ(full[static_cast<size_t>(r * kLong + kLong - 1)],
                  static_cast<float>(r) * 1e6F + static_cast<float>(kLong - 1));
      }
    }
  });
}

TEST(SharedMemory, ReducesToTheMeanOfTheRanksOwnPart) {
  on_shm(3, [](Comm* comm) {
    std::vector<float> full(3 * kLong), shard(kLong);
    for (size_t i = 0; i < full.size(); ++i) {
      full[i] = static_cast<float>(i % 1000) + static_cast<float>(comm->rank()) * 3;
    }
    comm->wait(comm->reduce_scatter_mean(shard.data(), full.data(), kLong));
    bool right = true;
    for (int64_t i = 0; i < kLong; ++i) {
      const auto at = static_cast<size_t>(comm->rank() * kLong + i);
      right = right &&
              std::abs(shard[static_cast<size_t>(i)] - (static_cast<float>(at % 1000) + 3)) < 1e-3F;
    }
    EXPECT_TRUE(right);
  });
}

TEST(SharedMemory, SumsFindsTheLargestAndBroadcasts) {
  on_shm(4, [](Comm* comm) {
    std::vector<double> sum(kLong, comm->rank() + 0.5);
    comm->wait(comm->all_reduce_sum(sum.data(), kLong));
    EXPECT_EQ(sum.front(), 8);
    EXPECT_EQ(sum.back(), 8);
    float top = static_cast<float>(-comm->rank());
    comm->wait(comm->all_reduce_max(&top, 1));
    EXPECT_EQ(top, 0);
    float from_two = static_cast<float>(comm->rank());
    comm->wait(comm->broadcast(&from_two, 1, 2));
    EXPECT_EQ(from_two, 2);
  });
}

TEST(SharedMemory, ADeadPeerIsNoticedInMillisecondsNotAtTheTimeLimit) {
  std::chrono::steady_clock::time_point died;
  on_shm(2, [&](Comm* comm) {
    comm->barrier();
    if (comm->rank() == 0) {
      died = std::chrono::steady_clock::now();
      return;  // its file is closed, as the kernel does for a process that dies
    }
    try {
      comm->barrier();
      FAIL() << "nobody came, and nobody was missed";
    } catch (const PeersLost& lost) {
      EXPECT_STREQ(lost.what(), "shared memory: rank 0 is dead");
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - died;
    EXPECT_LT(took.count(), 10);  // of a limit of 300
  });
}

TEST(SharedMemory, APeerThatLivesButDoesNotComeIsGivenUpAtTheTimeLimit) {
  ShmLimits limits;
  limits.answer_s = 0.05;
  testing::Hub done(2);
  on_shm(
      2,
      [&](Comm* comm) {
        if (comm->rank() == 1) {
          EXPECT_THROW(comm->barrier(), PeersLost);
        }
        done.meet();
      },
      limits);
}

TEST(SharedMemory, AGroupOfSeveralNodesStaysAsItIs) {
  testing::on_ranks(2, testing::Planted::nothing, [](Comm* comm) {
    auto* hub = dynamic_cast<testing::ThreadComm*>(comm)->hub();
    auto group =
        std::make_unique<testing::ThreadComm>(hub, comm->rank(), testing::Planted::nothing);
    Comm* before = group.get();
    const auto apart = over_shm(std::move(group), comm->rank() == 0 ? "nid1" : "nid2");
    EXPECT_EQ(apart.get(), before);
    group = std::make_unique<testing::ThreadComm>(hub, comm->rank(), testing::Planted::nothing);
    before = group.get();
    const auto together = over_shm(std::move(group), "nid1");
    EXPECT_NE(together.get(), before);
    double sum = comm->rank() + 1;
    together->wait(together->all_reduce_sum(&sum, 1));
    EXPECT_EQ(sum, 3);
  });
}

}  // namespace
}  // namespace ezpz::train
