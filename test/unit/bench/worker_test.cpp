//===- test/unit/bench/worker_test.cpp - Worker processes and shared memory
//---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/memory.h"
#include "bench/core/peers.h"
#include "bench/core/serve.h"
#include "bench/core/worker.h"

#include "gmock/gmock.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace tessera::bench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A worker that is a line of shell; $TESSERA_BENCH_REPLY is its reply channel.
std::unique_ptr<Worker> shell(const std::string &script) {
  Result<std::unique_ptr<Worker>> worker =
      Worker::start({{"/bin/sh", "-c", script}, {}, {}, ""});
  EXPECT_TRUE(worker) << worker.error().str();
  return worker ? std::move(*worker) : nullptr;
}

std::string failureOf(const std::string &script, double seconds = 20) {
  std::unique_ptr<Worker> worker = shell(script);
  Result<json> reply = worker->ask({{"do", "describe"}}, seconds);
  EXPECT_FALSE(reply) << script;
  EXPECT_FALSE(worker->isAlive());
  // A dead worker keeps failing.
  EXPECT_FALSE(worker->ask({{"do", "run"}}, seconds));
  return reply ? std::string() : reply.error().message;
}

TEST(BenchWorker, AnswersAndIsStopped) {
  std::unique_ptr<Worker> worker = shell(
      "while read line; do echo \"{\\\"status\\\": \\\"ok\\\", \\\"got\\\": "
      "$line}\" >&3; done");
  for (int i = 0; i < 3; ++i) {
    Result<json> reply = worker->ask({{"do", i}}, 20);
    ASSERT_TRUE(reply) << reply.error().str();
    EXPECT_EQ((*reply)["got"]["do"], i);
    worker->stop();
    worker->resume();
  }
}

TEST(BenchWorker, EveryWayToFailIsTold) {
  EXPECT_THAT(failureOf("read line; kill -SEGV $$"), HasSubstr("signal 11"));
  EXPECT_THAT(failureOf("read line; exit 7"), HasSubstr("status 7"));
  EXPECT_THAT(failureOf("read line; echo nonsense >&3; sleep 60"),
              HasSubstr("garbage"));
  EXPECT_THAT(failureOf("read line; echo '{\"x\": 1}' >&3; sleep 60"),
              HasSubstr("garbage"));
  EXPECT_THAT(failureOf("read line; sleep 60", 0.3),
              HasSubstr("no answer within 0.3 s"));
  EXPECT_THAT(failureOf("exec 3>&-; sleep 60", 20), HasSubstr("closed"));
  EXPECT_THAT(failureOf("exec /no/such/program"), HasSubstr("not found"));
  Result<std::unique_ptr<Worker>> missing =
      Worker::start({{"/no/such/program"}, {}, {}, ""});
  ASSERT_TRUE(missing);
  EXPECT_THAT((*missing)->ask({{"do", "describe"}}, 20).error().message,
              HasSubstr("not found"));
}

TEST(BenchMemory, ArraysAreApartAndGuarded) {
  Result<SharedMemory> made = SharedMemory::create(
      {{"x", DType::F32, {3, 5}, false, 0}, {"m", DType::Bool, {7}, false, 0}},
      {{"y", DType::F32, {3, 5}, true, 0}}, 3);
  ASSERT_TRUE(made) << made.error().str();
  SharedMemory memory = std::move(*made);
  EXPECT_TRUE(memory.guardsIntact());
  std::memset(memory.data() + memory.inputs()[0].offset, 1, 60);
  for (int arm = 0; arm < 3; ++arm) {
    memory.poison(arm);
    const SharedArray &y = memory.outputs(arm)[0];
    // Each arm's output stands in the same place of its page.
    EXPECT_EQ(y.offset % 4096, memory.outputs(0)[0].offset % 4096);
    EXPECT_EQ(memory.data()[y.offset], 0xff);
  }
  EXPECT_TRUE(memory.guardsIntact());

  // Another process sees the same bytes.
  Result<SharedMemory> other = SharedMemory::open(memory.path(), memory.size());
  ASSERT_TRUE(other) << other.error().str();
  EXPECT_EQ(other->data()[memory.inputs()[0].offset], 1);
  // One byte before and one behind.
  for (int64_t at :
       {memory.outputs(1)[0].offset - 1, memory.outputs(1)[0].offset + 60}) {
    unsigned char before = other->data()[at];
    other->data()[at] ^= 1;
    EXPECT_FALSE(memory.guardsIntact()) << at;
    other->data()[at] = before;
  }
  EXPECT_TRUE(memory.guardsIntact());
  EXPECT_FALSE(SharedMemory::open("/no/such/file", 4096));
}

TEST(BenchMemory, RequestsMustLieWithin) {
  Result<SharedMemory> memory =
      SharedMemory::create({{"x", DType::F32, {4}, false, 0}}, {}, 0);
  ASSERT_TRUE(memory);
  auto arrays = [&](json list) {
    return requestArrays({{"arrays", std::move(list)}}, *memory);
  };
  json good = {
      {"name", "x"}, {"dtype", "f32"}, {"extents", {4}}, {"offset", 0}};
  EXPECT_TRUE(arrays(json::array({good})));
  json far = good;
  far["offset"] = memory->size() - 8;
  EXPECT_FALSE(arrays(json::array({far})));
  json odd = good;
  odd["dtype"] = "f31";
  EXPECT_FALSE(arrays(json::array({odd})));
  EXPECT_FALSE(requestArrays(json::object(), *memory));
}

class BenchPeers : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "bench_peers_test";
    std::filesystem::create_directories(folder);
    setenv("TESSERA_PEERS_DIR", folder.c_str(), 1);
  }
  void TearDown() override { unsetenv("TESSERA_PEERS_DIR"); }
  void write(const std::string &text) {
    std::ofstream(folder + "/peers.json") << text;
  }
  std::string folder;
};

TEST_F(BenchPeers, AreReadAndChosen) {
  write(R"({"peers": [
    {"name": "a", "status": "ok", "command": ["{peers}/x", "{tessera}"]},
    {"name": "b", "status": "missing", "why": "no wheel"}]})");
  Result<std::vector<Peer>> peers = installedPeers();
  ASSERT_TRUE(peers) << peers.error().str();
  ASSERT_EQ(peers->size(), 2u);
  EXPECT_EQ((*peers)[0].command[0], folder + "/x");
  EXPECT_EQ((*peers)[0].command[1].front(), '/');
  EXPECT_EQ(selectPeers(*peers, "all")->size(), 2u);
  EXPECT_EQ(selectPeers(*peers, "none")->size(), 0u);
  EXPECT_EQ(selectPeers(*peers, "b")->at(0).why, "no wheel");
  EXPECT_THAT(
      selectPeers(*peers, "c").error().message,
      HasSubstr("unknown peer 'c', expected all, none, or some of a, b"));
  EXPECT_THAT(selectPeers(*peers, "a,a").error().message, HasSubstr("twice"));
}

TEST_F(BenchPeers, MalformedFilesAreUsageErrors) {
  for (const char *text : {"", "[]", R"({"peers": [{}]})",
                           R"({"peers": [{"name": "a", "status": "ok"}]})",
                           R"({"peers": [{"name": 3, "status": "ok"}]})"}) {
    write(text);
    Result<std::vector<Peer>> peers = installedPeers();
    ASSERT_FALSE(peers) << text;
    EXPECT_THAT(peers.error().message, HasSubstr("peers.json"));
    EXPECT_THAT(peers.error().message,
                testing::Not(HasSubstr("json.exception")));
  }
  write(R"({"peers": [{"name": "a", "status": "missing", "why": 3}]})");
  EXPECT_THAT(installedPeers().error().message,
              HasSubstr("peers.json': peers[0]: field 'why' is 3, expected a "
                        "text; run ./dev peers again"));
}

TEST_F(BenchPeers, NamesAreDistinct) {
  write(R"({"peers": [{"name": "a", "status": "missing"},
                      {"name": "a", "status": "missing"}]})");
  EXPECT_THAT(installedPeers().error().message,
              HasSubstr("peers[1]: peer 'a' stands there twice"));
  for (const char *name : {"", "a/b"}) {
    write(json{{"peers", {{{"name", name}, {"status", "missing"}}}}}.dump());
    EXPECT_THAT(installedPeers().error().message,
                HasSubstr("expected a name without '/'"));
  }
}

TEST(BenchPlugin, WrongFilesAreRefused) {
  EXPECT_THAT(loadPlugin("/no/such/plugin.so").error().message,
              HasSubstr("cannot load the plug-in"));
}

} // namespace
} // namespace tessera::bench
