// The stream against a server of this test's own on the loopback: slow, failing, absent.
#include "train/data/stream_source.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/process.h"
#include "train/data/token_shard.h"

namespace ezpz::train {
namespace {

// Serves what it was given, one request a connection; counts requests; holds back what it is told
// to.
class Server {
 public:
  Server() {
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/data/";
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      held_.clear();
      changed_.notify_all();
    }
    thread_.join();
  }
  const std::string& url() const { return url_; }
  void put(const std::string& name, const std::string& content) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_[name] = content;
  }
  void hold(const std::string& name, bool held) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_[name] = held;
    changed_.notify_all();
  }
  int requests(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_[name];
  }

 private:
  void serve() {
    while (true) {
      pollfd ready{listener_.get(), POLLIN, 0};
      poll(&ready, 1, 20);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (ending_) return;
      }
      if ((ready.revents & POLLIN) == 0) continue;
      const Fd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::string request;
      char buffer[1024];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::read(peer.get(), buffer, sizeof buffer);
        if (n <= 0) break;
        request.append(buffer, static_cast<size_t>(n));
      }
      const size_t from = request.find("/data/");
      if (from == std::string::npos) continue;
      const std::string name = request.substr(from + 6, request.find(' ', from) - from - 6);
      std::unique_lock<std::mutex> lock(mutex_);
      ++requests_[name];
      changed_.wait(lock, [&] { return ending_ || !held_[name]; });
      const bool known = files_.count(name) != 0;
      const std::string body = known ? files_[name] : "";
      lock.unlock();
      const std::string head = std::string("HTTP/1.0 ") + (known ? "200 OK" : "404 Not Found") +
                               "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
      write_all(peer.get(), head + body);
    }
  }

  Fd listener_;
  std::string url_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::map<std::string, std::string> files_;
  std::map<std::string, bool> held_;
  std::map<std::string, int> requests_;
  std::thread thread_;
};

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    if (find_program("curl").empty()) GTEST_SKIP() << "no curl here";
    std::string name = testing::TempDir() + "ezpz-stream-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    std::string shards;
    for (int i = 0; i < 4; ++i) {
      const std::string file = std::to_string(i) + ".tok";
      Result<TokenShardWriter> writer = TokenShardWriter::open(dir_ + "/" + file, 1000);
      ASSERT_TRUE(writer.ok());
      std::vector<int32_t> tokens;
      tokens.reserve(7);
      for (int k = 0; k < 7; ++k) tokens.push_back(i * 100 + k);
      ASSERT_TRUE(writer->append(tokens).ok() && writer->finish().ok());
      server_.put(file, *read_file(dir_ + "/" + file));
      shards += (i == 0 ? "" : ",") + ("{\"file\":\"" + file + "\",\"tokens\":7}");
    }
    server_.put("index.json", "{\"vocab_size\":1000,\"shards\":[" + shards + "]}");
    options_.index_url = server_.url() + "index.json";
    options_.cache_dir = dir_ + "/cache";
    options_.ahead_blocks = 1;
    options_.say_every_s = 1;  // the first word at once
    options_.say = [this](const std::string& line) {
      said_ += line + "\n";
      if (on_said_) on_said_();
    };
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Every sample of an epoch, in the sampler's order: the first tokens.
  std::vector<int64_t> read_epoch(StreamSource& source, uint64_t seed) {
    const Sampler sampler(source.block_samples(), seed, source.natural_shuffle());
    source.follow(sampler);
    std::vector<int64_t> seen;
    int64_t tokens[4];
    for (uint64_t i = 0; i < sampler.samples(); ++i) {
      const Status read = source.read(sampler.sample_at(i), tokens);
      EXPECT_TRUE(read.ok()) << read.error().one_line();
      if (!read.ok()) break;
      seen.push_back(tokens[0]);
    }
    return seen;
  }

  std::string dir_;
  Server server_;
  StreamOptions options_;
  std::string said_;
  std::function<void()> on_said_;
};

TEST_F(Streams, EachFileIsFetchedOnceAndTheCacheServesWithoutTheServer) {
  std::vector<int64_t> first;
  {
    const auto source = StreamSource::open(options_, 3);
    ASSERT_TRUE(source.ok()) << source.error().one_line();
    first = read_epoch(**source, 5);
    EXPECT_EQ(first.size(), 8U);
  }
  options_.index_url = "http://127.0.0.1:1/data/index.json";
  const auto again = StreamSource::open(options_, 3);
  ASSERT_TRUE(again.ok()) << again.error().one_line();
  EXPECT_EQ(read_epoch(**again, 5), first);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(server_.requests(std::to_string(i) + ".tok"), 1);
  EXPECT_NE(said_.find("does not answer"), std::string::npos);
}

TEST_F(Streams, AReadThatWaitsSaysThatItWaitsOnTheNetworkAndGoesOnWhenItComes) {
  const auto source = StreamSource::open(options_, 3);
  ASSERT_TRUE(source.ok());
  for (int i = 0; i < 4; ++i) server_.hold(std::to_string(i) + ".tok", true);
  on_said_ = [&] {
    for (int i = 0; i < 4; ++i) server_.hold(std::to_string(i) + ".tok", false);
  };
  EXPECT_EQ(read_epoch(**source, 5).size(), 8U);
  EXPECT_NE(said_.find("no data yet, waiting on the network: http://127.0.0.1:"), std::string::npos)
      << said_;
}

TEST_F(Streams, AWaitHasALimitAndItsErrorTellsWhy) {
  server_.put("index.json", R"({"vocab_size":1000,"shards":[{"file":"gone.tok","tokens":7}]})");
  options_.wait_at_most_s = 1;
  const auto source = StreamSource::open(options_, 3);
  ASSERT_TRUE(source.ok());
  (*source)->follow(Sampler((*source)->block_samples(), 1, Shuffle::blocks));
  int64_t tokens[4];
  const Status read = (*source)->read(0, tokens);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().one_line().find("waited on the network"), std::string::npos);
  EXPECT_NE(read.error().one_line().find("404"), std::string::npos) << read.error().one_line();
}

TEST_F(Streams, AFileThatIsNotWhatTheIndexSaysIsNotUsed) {
  server_.put("0.tok", "not tokens");
  options_.wait_at_most_s = 1;
  const auto source = StreamSource::open(options_, 3);
  ASSERT_TRUE(source.ok());
  (*source)->follow(Sampler((*source)->block_samples(), 1, Shuffle::none));
  int64_t tokens[4];
  EXPECT_FALSE((*source)->read(0, tokens).ok());
}

TEST_F(Streams, WithoutAServerAndACacheTheErrorNamesTheServer) {
  options_.index_url = "http://127.0.0.1:1/data/index.json";
  const auto source = StreamSource::open(options_, 3);
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.error().one_line().find("http://127.0.0.1:1/"), std::string::npos);
}

TEST(StreamIndexes, AFileNameThatLeavesTheCacheIsRefused) {
  const auto fine = [](const std::string& file) {
    return parse_stream_index(
               "{\"vocab_size\":10,\"shards\":[{\"file\":\"" + file + "\",\"tokens\":7}]}", "i")
        .ok();
  };
  EXPECT_TRUE(fine("a-1.tok"));
  for (const char* file : {"../a.tok", "/etc/passwd", "", ".a", "-o", "a/b", "a%2fb", "a b"}) {
    EXPECT_FALSE(fine(file)) << file;
  }
}

}  // namespace
}  // namespace ezpz::train
