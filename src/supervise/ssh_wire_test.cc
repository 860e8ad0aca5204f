#include "supervise/ssh_wire.h"

#include <gtest/gtest.h>

namespace ezpz::supervise {
namespace {

NodeOrder an_order() {
  NodeOrder order;
  order.host = "nid000002";
  order.folder = "/home/me/a folder";
  order.node = 1;
  order.first_rank = 2;
  order.ranks = 2;
  order.world_size = 4;
  order.master_addr = "nid000001";
  order.master_port = 23456;
  order.silence_s = 60;
  order.env = {{"HF_TOKEN", "a\nb=c'\"$(x)\xff"}, {"EMPTY", ""}};
  order.command = {"python3", "", "a b\n\x01"};
  return order;
}

std::vector<Message> all_of(MessageReader& reader) {
  std::vector<Message> found;
  while (true) {
    Result<std::optional<Message>> next = reader.next();
    if (!next || !*next) return found;
    found.push_back(**next);
  }
}

TEST(SshWire, AnOrderArrivesAsItWasGivenWhateverBytesItHolds) {
  const NodeOrder order = an_order();
  const Result<NodeOrder> back = read_order(pack(order));
  ASSERT_TRUE(back.ok()) << back.error().one_line();
  EXPECT_EQ(back->host, order.host);
  EXPECT_EQ(back->folder, order.folder);
  EXPECT_EQ(back->env, order.env);
  EXPECT_EQ(back->command, order.command);
  EXPECT_EQ(back->silence_s, 60);
  EXPECT_EQ(pack(*back), pack(order));
}

TEST(SshWire, AnOrderThatLacksAByteOrHasOneTooManyIsRefused) {
  const std::string whole = pack(an_order());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_order(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(read_order(whole + '\0').ok());
}

TEST(SshWire, AnOrderThatMakesNoSenseIsRefused) {
  const auto refused = [](void (*change)(NodeOrder&)) {
    NodeOrder order = an_order();
    change(order);
    return !read_order(pack(order)).ok();
  };
  EXPECT_FALSE(refused([](NodeOrder&) {}));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.host.clear(); }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.command.clear(); }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.command[0].clear(); }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.ranks = 0; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.ranks = -1; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.first_rank = 3; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.silence_s = 0; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.env["A=B"] = "x"; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.env[""] = "x"; }));
  EXPECT_TRUE(refused([](NodeOrder& o) { o.command[1] = std::string("a\0b", 3); }));
}

TEST(SshWire, MessagesAreTheSameHoweverTheStreamWasCut) {
  const std::string stream = pack(Word::signal, "\x0f") + pack(Word::alive, "") +
                             pack_output(Word::standard_output, 7, std::string(70'000, 'x')) +
                             pack_end(7, Exit{3, 0, false});
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, stream.size()}) {
    MessageReader reader;
    std::vector<Message> seen;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (Message& message : all_of(reader)) seen.push_back(std::move(message));
    }
    ASSERT_EQ(seen.size(), 4U) << piece;
    EXPECT_EQ(seen[0].bytes, "\x0f");
    EXPECT_EQ(seen[1].word, Word::alive);
    const auto output = read_output(seen[2]);
    ASSERT_TRUE(output.has_value());
    EXPECT_EQ(output->rank, 7);
    EXPECT_EQ(output->bytes.size(), 70'000U);
    EXPECT_EQ(read_end(seen[3])->exit.code, 3);
  }
}

TEST(SshWire, WhatIsNoMessageIsAnErrorAndNeverASize) {
  for (const std::string& bytes :
       {std::string("bash: fork: retry\n"), std::string("O\xff\xff\xff\xff")}) {
    MessageReader reader;
    reader.feed(bytes);
    EXPECT_FALSE(reader.next().ok());
  }
}

TEST(SshWire, AnEndKeepsSignalAndCoreApartFromACode) {
  MessageReader reader;
  reader.feed(pack_end(4, Exit{-1, 11, true}) + pack_end(5, Exit{139, 0, false}));
  const std::vector<Message> seen = all_of(reader);
  ASSERT_EQ(seen.size(), 2U);
  const auto crashed = read_end(seen[0]);
  EXPECT_EQ(crashed->exit.signal, 11);
  EXPECT_EQ(crashed->exit.code, -1);
  EXPECT_TRUE(crashed->exit.core);
  const auto exited = read_end(seen[1]);
  EXPECT_EQ(exited->exit.signal, 0);
  EXPECT_EQ(exited->exit.code, 139);
  EXPECT_FALSE(read_end({Word::ended, "short"}).has_value());
}

TEST(SshWire, TheHelloIsFoundBehindWhateverALoginShellPrints) {
  const std::string greeting = "Welcome\nezpz-ssh-node is fun\nezpz-ssh-node 9x\nno end of line";
  const auto found = find_hello(greeting + hello() + "rest");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->version, kWireVersion);
  EXPECT_EQ(found->begin, greeting.size());
  EXPECT_EQ((greeting + hello() + "rest").substr(found->end), "rest");
  EXPECT_FALSE(find_hello(greeting).has_value());
  EXPECT_FALSE(find_hello("\nezpz-ssh-node 1").has_value()) << "it may go on";
  EXPECT_EQ(find_hello("\nezpz-ssh-node 22\n")->version, 22);
}

TEST(SshWire, RanksGetTheSameVariablesAsFromAnyLauncher) {
  const EnvChanges variables = variables_of(an_order(), 1);
  const EnvChanges wanted{{"RANK", "3"},
                          {"LOCAL_RANK", "1"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"NODE_RANK", "1"},
                          {"MASTER_ADDR", "nid000001"},
                          {"MASTER_PORT", "23456"},
                          {"EZPZ_NODE", "nid000002"}};
  EXPECT_EQ(variables, wanted);
}

}  // namespace
}  // namespace ezpz::supervise
