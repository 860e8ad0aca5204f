// Checkpoints: whatever happens while one is written, the old one or the new one is there whole;
// whatever is damaged is noticed; whatever sharding wrote it, any other can read it.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "base/file.h"
#include "train/checkpoint/crc32c.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/load.h"
#include "train/checkpoint/save.h"

namespace ezpz::train {
namespace {

namespace fs = std::filesystem;

// Threads as ranks.
class Team {
 public:
  explicit Team(int size) : size_(size) {}
  Ranks ranks(int rank) {
    Ranks result;
    result.rank = rank;
    result.world_size = size_;
    result.all_agree = [this](bool mine) { return meet(mine, nullptr).first; };
    result.from_rank_0 = [this, rank](const std::string& text) {
      return Result<std::string>(meet(true, rank == 0 ? &text : nullptr).second);
    };
    return result;
  }

 private:
  std::pair<bool, std::string> meet(bool mine, const std::string* text) {
    std::unique_lock<std::mutex> lock(mutex_);
    all_ = all_ && mine;
    if (text != nullptr) text_ = *text;
    const int round = round_;
    if (++here_ == size_) {
      result_ = {all_, text_};
      all_ = true;
      here_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round; });
    }
    return result_;
  }
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool all_ = true;
  std::string text_;
  std::pair<bool, std::string> result_;
  int here_ = 0;
  int round_ = 0;
};

template <class Body>
void on_ranks(int size, Body body) {
  Team team(size);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { body(team.ranks(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

// "w" is a matrix of 7 x 6, "v" a vector of 5; every value tells its step.
const std::vector<TensorSpec> kTensors{{"w", DType::f32, {7, 6}}, {"v", DType::bf16, {5}}};

struct Values {
  std::array<float, 42> w{};
  std::array<uint16_t, 5> v{};
};

Values values_of(int64_t step) {
  Values values;
  for (size_t i = 0; i < values.w.size(); ++i) values.w[i] = static_cast<float>(step * 1000) + i;
  for (size_t i = 0; i < values.v.size(); ++i) values.v[i] = static_cast<uint16_t>(step * 10 + i);
  return values;
}

// The parts of one rank: w by columns over tp ranks, each of those flat over dp ranks; v flat over
// dp on the first tp rank.
struct Shards {
  std::vector<Part> parts;
  std::vector<std::vector<char>> data;
};

Shards shards_of(const Values& values, int tp, int dp, int rank) {
  const auto t = static_cast<uint64_t>(rank / dp);
  const auto d = static_cast<uint64_t>(rank % dp);
  const auto dps = static_cast<uint64_t>(dp);
  const uint64_t columns = 6 / static_cast<uint64_t>(tp);
  Shards shards;
  const uint64_t size = 7 * columns;
  const uint64_t per = (size + dps - 1) / dps;
  Part w{"w", 0, 7, t * columns, columns, std::min(size, d * per), 0};
  w.count = std::min(size, (d + 1) * per) - w.first;
  std::vector<char> bytes;
  for (uint64_t i = w.first; i < w.first + w.count; ++i) {
    const float value = values.w[i / columns * 6 + w.first_column + i % columns];
    bytes.insert(bytes.end(), reinterpret_cast<const char*>(&value),
                 reinterpret_cast<const char*>(&value) + sizeof value);
  }
  shards.parts.push_back(w);
  shards.data.push_back(bytes);
  if (t == 0) {
    const uint64_t each = (5 + dps - 1) / dps;
    Part v{"v", 0, 0, 0, 0, std::min<uint64_t>(5, d * each), 0};
    v.count = std::min<uint64_t>(5, (d + 1) * each) - v.first;
    const char* from = reinterpret_cast<const char*>(values.v.data() + v.first);
    shards.parts.push_back(v);
    shards.data.emplace_back(from, from + v.count * 2);
  }
  return shards;
}

Snapshot snapshot_of(const Shards& shards, int64_t step) {
  Snapshot snapshot;
  snapshot.step = step;
  snapshot.tensors = kTensors;
  snapshot.state = "{\"at\":" + std::to_string(step) + "}";
  for (size_t i = 0; i < shards.parts.size(); ++i) {
    snapshot.parts.push_back({shards.parts[i], shards.data[i].data()});
  }
  return snapshot;
}

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ezpz-checkpoint-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    options_.root = root_ + "/checkpoints";
    options_.warn = [this](const std::string& line) { warnings_ += line + "\n"; };
  }
  void TearDown() override { fs::remove_all(root_); }

  Status save(int64_t step, int tp = 1, int dp = 1) {
    const Values values = values_of(step);
    Status status = success();
    std::mutex mutex;
    on_ranks(tp * dp, [&](const Ranks& ranks) {
      const Shards shards = shards_of(values, tp, dp, ranks.rank);
      const auto saved = save_checkpoint(options_, ranks, snapshot_of(shards, step));
      const std::lock_guard<std::mutex> lock(mutex);
      if (!saved.ok()) status = saved.error();
    });
    return status;
  }

  // What a resume on so many ranks finds: the step, 0 when nothing, -1 on an error. Every value is
  // compared with that step's.
  int64_t resume(int tp = 1, int dp = 1) {
    int64_t step = 0;
    std::mutex mutex;
    warnings_.clear();
    on_ranks(tp * dp, [&](const Ranks& ranks) {
      int64_t mine = 0;
      ResumeHandlers handlers;
      handlers.load = [&](CheckpointReader& reader) -> Status {
        const int64_t at = reader.manifest().step;
        const Shards wanted = shards_of(values_of(at), tp, dp, ranks.rank);
        for (size_t i = 0; i < wanted.parts.size(); ++i) {
          std::vector<char> bytes(wanted.data[i].size());
          if (Status read = reader.read(wanted.parts[i], bytes.data()); !read) return read;
          EXPECT_EQ(bytes, wanted.data[i]);
        }
        mine = at;
        return success();
      };
      handlers.warn = [&](const std::string& line) {
        const std::lock_guard<std::mutex> lock(mutex);
        warnings_ += line + "\n";
      };
      const auto found = resume_newest(options_.root, ranks, handlers);
      const std::lock_guard<std::mutex> lock(mutex);
      step = !found.ok() ? -1 : found->has_value() ? mine : 0;
    });
    return step;
  }

  std::set<std::string> names() const {
    const std::vector<std::string> list = list_names(options_.root);
    return {list.begin(), list.end()};
  }
  std::string file(int64_t step, const std::string& name) const {
    return options_.root + "/" + step_name(step) + "/" + name;
  }

  std::string root_;
  SaveOptions options_;
  std::string warnings_;
};

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283U);
  EXPECT_EQ(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283U);
  const std::array<char, 32> zeros{};
  EXPECT_EQ(crc32c(0, zeros.data(), zeros.size()), 0x8a9136aaU);
}

TEST_F(Checkpoints, AnyShardingReadsWhatAnyOtherWrote) {
  const std::vector<std::pair<int, int>> layouts{{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 2}, {1, 8}};
  int64_t step = 1;
  for (const auto& [tp, dp] : layouts) {
    const Status saved = save(step, tp, dp);
    ASSERT_TRUE(saved.ok()) << saved.error().one_line();
    for (const auto& [tp2, dp2] : layouts)
      EXPECT_EQ(resume(tp2, dp2), step) << tp << dp << tp2 << dp2;
    EXPECT_EQ(warnings_, "");
    ++step;
  }
}

TEST_F(Checkpoints, OnlyTheNewestStayAndForeignFilesAreNotTouched) {
  ASSERT_TRUE(save(1).ok());
  for (const char* foreign : {"/step-1", "/notes", "/.step-x.partial"}) {
    fs::create_directory(options_.root + foreign);
  }
  for (int64_t step = 2; step <= 5; ++step) ASSERT_TRUE(save(step).ok());
  EXPECT_EQ(names(), (std::set<std::string>{".step-x.partial", "notes", "step-00000004",
                                            "step-00000005", "step-1"}));
}

TEST_F(Checkpoints, ARunThatWentBackResumesFromWhatItSavedLast) {
  options_.keep = 1;
  ASSERT_TRUE(save(10).ok());
  ASSERT_TRUE(save(5).ok());
  EXPECT_EQ(resume(), 5);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005"}));
}

TEST_F(Checkpoints, SavingAStepAgainReplacesIt) {
  ASSERT_TRUE(save(3, 1, 4).ok());
  ASSERT_TRUE(save(3, 1, 1).ok());
  EXPECT_EQ(resume(), 3);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000003"}));
  EXPECT_FALSE(file_exists(file(3, "shard-00003.bin")));
}

TEST_F(Checkpoints, DamageIsNamedAndAnOlderOneIsTaken) {
  const auto damage = [&](const char* what, const std::function<void()>& act,
                          const std::string& said) {
    fs::remove_all(options_.root);
    ASSERT_TRUE(save(1, 1, 2).ok());
    ASSERT_TRUE(save(2, 1, 2).ok());
    act();
    EXPECT_EQ(resume(1, 3), 1) << what;
    EXPECT_NE(warnings_.find("step-00000002"), std::string::npos) << what << warnings_;
    EXPECT_NE(warnings_.find(said), std::string::npos) << what << warnings_;
  };
  const auto flip = [&](const std::string& path, long at) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(at);
    stream.put(byte);
  };
  damage(
      "bit", [&] { flip(file(2, "shard-00001.bin"), 17); }, "checksum of tensor \"w\"");
  damage(
      "manifest", [&] { flip(file(2, "manifest.json"), 60); }, "checksum of the manifest");
  damage(
      "cut", [&] { fs::resize_file(file(2, "shard-00000.bin"), 9); }, "has 9 bytes");
  damage(
      "gone", [&] { fs::remove(file(2, "shard-00000.bin")); }, "a shard is missing");
  damage(
      "no manifest", [&] { fs::remove(file(2, "manifest.json")); }, "manifest.json");
}

TEST_F(Checkpoints, WhenNoneIsWholeThatIsAnErrorAndNotANewStart) {
  EXPECT_EQ(resume(), 0);
  ASSERT_TRUE(save(1).ok());
  fs::remove(file(1, "shard-00000.bin"));
  EXPECT_EQ(resume(), -1);
  EXPECT_EQ(resume(1, 2), -1);
}

TEST_F(Checkpoints, OneThatDoesNotFitTheModelIsRefusedAndNotSkipped) {
  ASSERT_TRUE(save(1).ok());
  ASSERT_TRUE(save(2).ok());
  ResumeHandlers handlers;
  handlers.check = [](const Manifest&) -> Status { return Error{"another model", "", ""}; };
  handlers.load = [](CheckpointReader&) { return success(); };
  const auto found = resume_newest(options_.root, Ranks{}, handlers);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().what, "another model");
}

TEST_F(Checkpoints, PartsThatLeaveAHoleOrMeetAreNotAnnounced) {
  const Values values = values_of(1);
  for (const int64_t change : {-1, 1}) {
    Snapshot snapshot;
    snapshot.step = 1;
    snapshot.tensors = kTensors;
    snapshot.parts = {{{"w", 0, 0, 0, 0, 0, static_cast<uint64_t>(21 + change)}, values.w.data()},
                      {{"w", 0, 0, 0, 0, 21, 21}, values.w.data()},
                      {{"v", 0, 0, 0, 0, 0, 5}, values.v.data()}};
    EXPECT_FALSE(save_checkpoint(options_, Ranks{}, snapshot).ok());
    EXPECT_EQ(names(), std::set<std::string>{});
  }
}

// Does something to the disk's n-th call.
class HookedDisk : public Disk {
 public:
  explicit HookedDisk(std::function<int(int)> hook) : hook_(std::move(hook)) {}
  int make_directory(const std::string& p) override {
    return run([&] { return Disk::make_directory(p); });
  }
  int create(const std::string& p, int* fd) override {
    *fd = -1;
    return run([&] { return Disk::create(p, fd); });
  }
  int write(int fd, const void* data, size_t bytes) override {
    // Half of it may be there when the end comes.
    return run([&] {
      if (const int number = Disk::write(fd, data, bytes / 2)) return number;
      if (const int number = hook_(calls_++)) return number;
      return Disk::write(fd, static_cast<const char*>(data) + bytes / 2, bytes - bytes / 2);
    });
  }
  int sync(int fd) override {
    return run([&] { return Disk::sync(fd); });
  }
  int sync_directory(const std::string& p) override {
    return run([&] { return Disk::sync_directory(p); });
  }
  int rename(const std::string& a, const std::string& b) override {
    return run([&] { return Disk::rename(a, b); });
  }
  int exchange(const std::string& a, const std::string& b) override {
    if (!can_exchange) return EINVAL;
    return run([&] { return Disk::exchange(a, b); });
  }
  int remove_file(const std::string& p) override {
    return run([&] { return Disk::remove_file(p); });
  }
  int remove_directory(const std::string& p) override {
    return run([&] { return Disk::remove_directory(p); });
  }
  bool can_exchange = true;

 private:
  template <class Call>
  int run(Call call) {
    if (const int number = hook_(calls_++)) return number;
    return call();
  }
  std::function<int(int)> hook_;
  int calls_ = 0;
};

// Kills a process that saves a step, at its n-th call, for every n; after each the old or the new
// checkpoint is whole, and the next save works. Gives how many calls there were.
class Killed : public Checkpoints {
 protected:
  int kill_everywhere(int64_t old_step, int64_t new_step, bool can_exchange) {
    options_.keep = 1;  // so that the old one is removed, and that may be cut off too
    for (int n = 0; n < 500; ++n) {
      fs::remove_all(options_.root);
      EXPECT_TRUE(save(old_step).ok());
      const pid_t child = fork();
      if (child == 0) {
        HookedDisk disk([n](int call) {
          if (call == n) raise(SIGKILL);
          return 0;
        });
        disk.can_exchange = can_exchange;
        options_.disk = &disk;
        const Values values = values_of(new_step);
        const Shards shards = shards_of(values, 1, 1, 0);
        const bool saved = save_checkpoint(options_, Ranks{}, snapshot_of(shards, new_step)).ok();
        _exit(saved ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
      clean_leftovers(options_.root);
      const int64_t found = resume();
      EXPECT_TRUE(found == old_step || found == new_step) << "killed at call " << n;
      EXPECT_EQ(warnings_, "") << "killed at call " << n;
      for (const std::string& name : names()) EXPECT_NE(name[0], '.') << name << " at " << n;
      if (!killed) {
        EXPECT_EQ(found, new_step);
        return n;
      }
      if (HasFailure()) return n;
    }
    return 0;
  }
};

TEST_F(Killed, AtAnyCallTheOldOrTheNewCheckpointIsWhole) {
  EXPECT_GT(kill_everywhere(1, 2, true), 15);
}

TEST_F(Killed, AtAnyCallOfReplacingAStepOneOfThemIsWhole) {
  EXPECT_GT(kill_everywhere(1, 1, true), 15);
}

TEST_F(Killed, AtAnyCallOfReplacingWithoutAnExchangeOneOfThemIsWhole) {
  EXPECT_GT(kill_everywhere(1, 1, false), 15);
}

TEST_F(Killed, AtARandomMomentOfManySavesTheRestIsWhole) {
  unsigned seed = 1;
  for (int round = 0; round < 20; ++round) {
    fs::remove_all(options_.root);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t step = 1;; ++step) {
        const Values values = values_of(step);
        const Shards shards = shards_of(values, 1, 1, 0);
        if (!save_checkpoint(options_, Ranks{}, snapshot_of(shards, step)).ok()) _exit(1);
        if (::write(ends[1], &step, sizeof step) != sizeof step) _exit(1);
      }
    }
    close(ends[1]);
    // After so many saves, and a moment that differs.
    int64_t told = 0;
    for (int i = 0; i <= round % 4; ++i)
      ASSERT_EQ(::read(ends[0], &told, sizeof told), sizeof told);
    usleep(static_cast<useconds_t>(rand_r(&seed) % 20000));
    kill(child, SIGKILL);
    int64_t more = 0;
    while (::read(ends[0], &more, sizeof more) == sizeof more) told = more;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    clean_leftovers(options_.root);
    // What was announced is there, or one that was on its way.
    EXPECT_GE(resume(), told);
    EXPECT_EQ(warnings_, "");
  }
}

TEST_F(Checkpoints, AFullOrBrokenDiskLeavesTheOldOneAndNothingElse) {
  for (const int number : {ENOSPC, EIO}) {
    int n = 0;
    for (; n < 500; ++n) {
      fs::remove_all(options_.root);
      ASSERT_TRUE(save(1).ok());
      bool struck = false;
      HookedDisk disk([&](int call) {
        if (call != n) return 0;
        struck = true;
        return number;
      });
      options_.disk = &disk;
      const Status saved = save(2);
      options_.disk = &Disk::real();
      if (!struck) break;
      const int64_t found = resume();
      EXPECT_TRUE(found == 2 || (found == 1 && !saved.ok())) << n << " " << found << saved.ok();
      if (!saved.ok()) {
        EXPECT_NE(saved.error().one_line().find(strerrordesc_np(number)), std::string::npos);
      }
      clean_leftovers(options_.root);
      ASSERT_TRUE(save(3).ok()) << n;
      EXPECT_EQ(resume(), 3);
    }
    EXPECT_GT(n, 15);
  }
}

TEST_F(Checkpoints, OneRanksFullDiskIsEveryRanksError) {
  ASSERT_TRUE(save(1, 1, 3).ok());
  const Values values = values_of(2);
  std::mutex mutex;
  std::vector<std::string> errors;
  HookedDisk full([](int call) { return call == 1 ? ENOSPC : 0; });
  on_ranks(3, [&](const Ranks& ranks) {
    SaveOptions options = options_;
    if (ranks.rank == 1) options.disk = &full;
    const Shards shards = shards_of(values, 1, 3, ranks.rank);
    const auto saved = save_checkpoint(options, ranks, snapshot_of(shards, 2));
    const std::lock_guard<std::mutex> lock(mutex);
    errors.push_back(saved.ok() ? "saved" : saved.error().one_line());
  });
  int named = 0;
  for (const std::string& error : errors) {
    EXPECT_NE(error, "saved");
    named += error.find("No space left") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(named, 1);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000001"}));
}

TEST_F(Checkpoints, ARealLimitOnFileSizeLeavesTheOldOne) {
  ASSERT_TRUE(save(1).ok());
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64, 64};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(save(2).ok() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000001"}));
  EXPECT_EQ(resume(), 1);
}

// Nothing is renamed before it and its directory are on the disk.
class OrderDisk : public Disk {
 public:
  int create(const std::string& p, int* fd) override {
    const int number = Disk::create(p, fd);
    open_[*fd] = p;
    dirty_.insert(p);
    dirty_.insert(p.substr(0, p.rfind('/')));
    return number;
  }
  int sync(int fd) override {
    dirty_.erase(open_[fd]);
    return Disk::sync(fd);
  }
  int sync_directory(const std::string& p) override {
    dirty_.erase(p);
    if (p == root) root_synced = true;
    return Disk::sync_directory(p);
  }
  int rename(const std::string& a, const std::string& b) override {
    for (const std::string& path : dirty_) EXPECT_NE(path.compare(0, a.size(), a), 0) << path;
    ++renames;
    root_synced = false;
    return Disk::rename(a, b);
  }
  std::string root;
  bool root_synced = false;
  int renames = 0;

 private:
  std::map<int, std::string> open_;
  std::set<std::string> dirty_;
};

TEST_F(Checkpoints, NothingIsRenamedBeforeItIsOnTheDisk) {
  OrderDisk disk;
  disk.root = options_.root;
  options_.disk = &disk;
  ASSERT_TRUE(save(1).ok());
  EXPECT_EQ(disk.renames, 1);
  EXPECT_TRUE(disk.root_synced);
}

TEST_F(Checkpoints, AnAsynchronousSaveTellsItsErrorWithTheNextOne) {
  const Values values = values_of(1);
  const Shards shards = shards_of(values, 1, 1, 0);
  int strike = 1;
  HookedDisk disk([&](int) { return strike != 0 ? std::exchange(strike, 0) * ENOSPC : 0; });
  options_.disk = &disk;
  std::string announced;
  {
    AsyncSaver saver(options_, Ranks{}, [&](const std::string& dir) { announced = dir; });
    EXPECT_TRUE(saver.save(snapshot_of(shards, 1)).ok());
    const Status second = saver.save(snapshot_of(shards, 2));
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().one_line().find("No space left"), std::string::npos);
    EXPECT_TRUE(saver.finish(60).ok());
    EXPECT_FALSE(saver.busy());
  }
  EXPECT_EQ(announced, options_.root + "/step-00000002");
}

TEST_F(Checkpoints, ASaveThatHangsIsGivenUpAfterItsTime) {
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  bool entered = false;
  auto disk = std::make_shared<HookedDisk>([&](int) {
    std::unique_lock<std::mutex> lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return released; });
    return 0;
  });
  options_.disk = disk.get();
  const Values values = values_of(1);
  const Shards shards = shards_of(values, 1, 1, 0);
  AsyncSaver saver(options_, Ranks{}, {});
  EXPECT_TRUE(saver.save(snapshot_of(shards, 1)).ok());
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  EXPECT_FALSE(saver.finish(0.01).ok());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    released = true;
    changed.notify_all();
  }
  EXPECT_TRUE(saver.finish(60).ok());
}

}  // namespace
}  // namespace ezpz::train
