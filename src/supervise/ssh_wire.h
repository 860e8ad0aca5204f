// What ssh-run and ssh-node say to each other over one ssh. Pure. Both sides read what the other
// (or a login shell in between) sends as hostile: bounded, checked, an error or a value.
//
// To the node:   order, then signal and alive. The end of the input ends its ranks.
// To the launcher: a line of hello behind whatever the login shell has printed; then started,
// output, ended for each rank, trouble (why nothing, or not all, can be done), and over at the end.
//
// A message is its type (1 byte), its length (4, least first), its bytes. Not JSON: values of
// variables and arguments are bytes, not text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit.h"
#include "base/process.h"
#include "base/result.h"

namespace ezpz::supervise {

enum class Word : char {
  order = 'O',
  signal = 'S',
  alive = 'A',
  started = 'R',
  standard_output = '1',
  standard_error = '2',
  ended = 'X',
  trouble = 'T',
  over = 'Z',
};

struct Message {
  Word word;
  std::string bytes;
};

inline constexpr size_t kMaxMessage_bytes = 16U << 20U;

std::string pack(Word, std::string_view bytes);

// Takes a stream apart, however it was cut.
class MessageReader {
 public:
  void feed(std::string_view bytes) { pending_.append(bytes); }
  // The next whole message, or none yet; an error is for good.
  Result<std::optional<Message>> next();
  // Given back unread: what came behind the hello, to begin with.
  [[nodiscard]] bool empty() const { return at_ == pending_.size(); }

 private:
  std::string pending_;
  size_t at_ = 0;
};

// The other side speaks the same words, or says by this that it does not.
inline constexpr int kWireVersion = 1;
std::string hello();
struct Hello {
  size_t begin = 0;  // of what stands before it
  size_t end = 0;
  int version = 0;
};
std::optional<Hello> find_hello(std::string_view seen);

// What a node is to do. Everything a rank gets is in here.
struct NodeOrder {
  std::string host;  // who the node is, as the hostfile spells it
  std::string folder;
  int node = 0;
  int first_rank = 0;
  int ranks = 0;
  int world_size = 0;
  std::string master_addr;
  int master_port = 0;   // 0: none
  double silence_s = 0;  // how long the launcher may say nothing before it is taken for lost
  std::map<std::string, std::string> env;
  Argv command;
};

std::string pack(const NodeOrder&);  // the bytes of a Word::order
Result<NodeOrder> read_order(std::string_view bytes);

// The variables of one of its ranks; local counts from 0.
EnvChanges variables_of(const NodeOrder&, int local);

struct RankOutput {
  int rank = 0;
  std::string_view bytes;
};
std::string pack_output(Word, int rank, std::string_view bytes);
std::optional<RankOutput> read_output(const Message&);

struct RankEnd {
  int rank = 0;
  Exit exit;
};
std::string pack_end(int rank, Exit);
std::optional<RankEnd> read_end(const Message&);

}  // namespace ezpz::supervise
