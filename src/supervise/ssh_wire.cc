#include "supervise/ssh_wire.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ezpz::supervise {
namespace {

constexpr std::string_view kHello = "ezpz-ssh-node ";
constexpr std::string_view kOrderMark = "ezpz-order-1";
constexpr size_t kHead_bytes = 5;
constexpr uint32_t kMaxItems = 100'000;  // variables, words of a command
constexpr int kMaxRanks = 1 << 20;

void put(std::string& to, uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>((number >> shift) & 0xffU);
}

void put(std::string& to, std::string_view text) {
  put(to, static_cast<uint32_t>(text.size()));
  to.append(text);
}

void put(std::string& to, int number) { put(to, static_cast<uint32_t>(number)); }

// Takes values off the front; after the first that is not there, all are empty and bad() is true.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : left_(bytes) {}

  uint32_t number() {
    if (left_.size() < 4) {
      fail();
      return 0;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
      value |= static_cast<uint32_t>(static_cast<unsigned char>(left_[i])) << (8 * i);
    }
    left_.remove_prefix(4);
    return value;
  }

  std::string_view text() {
    const uint32_t size = number();
    if (size > left_.size()) {
      fail();
      return {};
    }
    const std::string_view value = left_.substr(0, size);
    left_.remove_prefix(size);
    return value;
  }

  // A number from 0 to most.
  int small(int most) {
    const uint32_t value = number();
    if (value <= static_cast<uint32_t>(most)) return static_cast<int>(value);
    fail();
    return 0;
  }

  // Text for the kernel: no NUL in it.
  std::string word() {
    const std::string_view value = text();
    if (value.find('\0') != std::string_view::npos) fail();
    return std::string(value);
  }

  void fail() {
    bad_ = true;
    left_ = {};
  }
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] std::string_view left() const { return left_; }

 private:
  std::string_view left_;
  bool bad_ = false;
};

Error damaged(const char* what) {
  return Error{std::string("the other end sent ") + what, "ssh", "is ezpz the same on all hosts?"};
}

bool is_word(char byte) {
  constexpr std::array known{Word::order,   Word::signal,          Word::alive,
                             Word::started, Word::standard_output, Word::standard_error,
                             Word::ended,   Word::trouble,         Word::over};
  return std::find(known.begin(), known.end(), static_cast<Word>(byte)) != known.end();
}

bool is_variable(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos;
}

}  // namespace

std::string pack(Word word, std::string_view bytes) {
  std::string message(1, static_cast<char>(word));
  put(message, bytes);
  return message;
}

Result<std::optional<Message>> MessageReader::next() {
  if (at_ > 0 && (at_ == pending_.size() || at_ >= (1U << 16U))) {
    pending_.erase(0, at_);
    at_ = 0;
  }
  const std::string_view left = std::string_view(pending_).substr(at_);
  if (left.empty()) return std::optional<Message>();
  if (!is_word(left[0])) return damaged("no message");
  if (left.size() < kHead_bytes) return std::optional<Message>();
  const uint32_t size = Taker(left.substr(1)).number();
  if (size > kMaxMessage_bytes) return damaged("a message that is too long");
  if (left.size() < kHead_bytes + size) return std::optional<Message>();
  at_ += kHead_bytes + size;
  return std::optional<Message>(
      Message{static_cast<Word>(left[0]), std::string(left.substr(kHead_bytes, size))});
}

// On a line of its own, whatever a login shell has left unfinished.
std::string hello() { return "\n" + std::string(kHello) + std::to_string(kWireVersion) + "\n"; }

std::optional<Hello> find_hello(std::string_view seen) {
  const std::string mark = "\n" + std::string(kHello);
  for (size_t at = seen.find(mark); at != std::string_view::npos; at = seen.find(mark, at + 1)) {
    const size_t number = at + mark.size();
    const size_t end = seen.find('\n', number);
    if (end == std::string_view::npos) return std::nullopt;
    const auto version = parse_int(seen.substr(number, end - number));
    if (version && *version > 0 && *version < 1'000'000) {
      return Hello{at, end + 1, static_cast<int>(*version)};
    }
  }
  return std::nullopt;
}

std::string pack(const NodeOrder& order) {
  std::string bytes;
  put(bytes, kOrderMark);
  put(bytes, order.host);
  put(bytes, order.folder);
  put(bytes, order.node);
  put(bytes, order.first_rank);
  put(bytes, order.ranks);
  put(bytes, order.world_size);
  put(bytes, order.master_addr);
  put(bytes, order.master_port);
  put(bytes, static_cast<uint32_t>(order.silence_s * 1000));
  put(bytes, static_cast<uint32_t>(order.env.size()));
  for (const auto& [name, value] : order.env) {
    put(bytes, name);
    put(bytes, value);
  }
  put(bytes, static_cast<uint32_t>(order.command.size()));
  for (const std::string& word : order.command) put(bytes, word);
  return bytes;
}

Result<NodeOrder> read_order(std::string_view bytes) {
  Taker take(bytes);
  if (take.text() != kOrderMark) return damaged("an order of another version");
  NodeOrder order;
  order.host = take.word();
  order.folder = take.word();
  order.node = take.small(kMaxRanks);
  order.first_rank = take.small(kMaxRanks);
  order.ranks = take.small(kMaxRanks);
  order.world_size = take.small(kMaxRanks);
  order.master_addr = take.word();
  order.master_port = take.small(65535);
  order.silence_s = take.number() / 1000.0;
  const uint32_t variables = take.number();
  if (variables > kMaxItems) take.fail();
  for (uint32_t i = 0; i < variables && !take.bad(); ++i) {
    std::string name = take.word();
    if (!is_variable(name)) take.fail();
    order.env[std::move(name)] = take.word();
  }
  const uint32_t words = take.number();
  if (words > kMaxItems) take.fail();
  for (uint32_t i = 0; i < words && !take.bad(); ++i) order.command.push_back(take.word());
  const bool sensible = !take.bad() && take.left().empty() && !order.host.empty() &&
                        !order.command.empty() && !order.command[0].empty() && order.ranks > 0 &&
                        order.silence_s > 0 && order.first_rank + order.ranks <= order.world_size;
  if (!sensible) return damaged("a damaged order");
  return order;
}

EnvChanges variables_of(const NodeOrder& order, int local) {
  EnvChanges changes{{"RANK", std::to_string(order.first_rank + local)},
                     {"LOCAL_RANK", std::to_string(local)},
                     {"WORLD_SIZE", std::to_string(order.world_size)},
                     {"LOCAL_WORLD_SIZE", std::to_string(order.ranks)},
                     {"NODE_RANK", std::to_string(order.node)},
                     {"MASTER_ADDR", order.master_addr},
                     {"EZPZ_NODE", order.host}};
  if (order.master_port > 0) changes["MASTER_PORT"] = std::to_string(order.master_port);
  return changes;
}

std::string pack_output(Word word, int rank, std::string_view bytes) {
  std::string message(1, static_cast<char>(word));
  put(message, static_cast<uint32_t>(bytes.size() + 4));
  put(message, rank);
  message.append(bytes);
  return message;
}

std::optional<RankOutput> read_output(const Message& message) {
  Taker take(message.bytes);
  const int rank = take.small(kMaxRanks);
  if (take.bad()) return std::nullopt;
  return RankOutput{rank, std::string_view(message.bytes).substr(4)};
}

std::string pack_end(int rank, Exit exit) {
  std::string bytes;
  put(bytes, rank);
  put(bytes, exit.signal != 0 ? 0 : exit.code);
  put(bytes, exit.signal);
  put(bytes, exit.core ? 1 : 0);
  return pack(Word::ended, bytes);
}

std::optional<RankEnd> read_end(const Message& message) {
  Taker take(message.bytes);
  RankEnd end;
  end.rank = take.small(kMaxRanks);
  end.exit.code = take.small(255);
  end.exit.signal = take.small(127);
  end.exit.core = take.small(1) == 1;
  if (take.bad() || !take.left().empty()) return std::nullopt;
  if (end.exit.signal != 0) end.exit.code = -1;
  return end;
}

}  // namespace ezpz::supervise
