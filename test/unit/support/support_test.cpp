//===- support_test.cpp - Tests of hashing, environment and buffers -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The hash is pinned to published vectors, so it can never change by accident.
//
//===----------------------------------------------------------------------===//

#include "support/atomic_file.h"
#include "support/env.h"
#include "support/guarded_buffer.h"
#include "support/hash.h"
#include "support/inline_vector.h"
#include "support/timing.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::support;

namespace {

/// Bytes in the order the published vectors are printed in.
std::string littleEndianHex(Hash128 hash) {
  const auto swap = [](uint64_t word) { return __builtin_bswap64(word); };
  return Hash128{swap(hash.high), swap(hash.low)}.hex();
}

Hasher referenceHasher() {
  return Hasher(0x0706050403020100, 0x0f0e0d0c0b0a0908);
}

} // namespace

TEST(Hash, MatchesPublishedVectors) {
  // SipHash-2-4-128, key 00..0f, messages of 0 and 1 bytes 00, 01, ...
  EXPECT_EQ(littleEndianHex(referenceHasher().finish()),
            "a3817f04ba25a8e66df67214c7550293");
  const unsigned char zero = 0;
  EXPECT_EQ(littleEndianHex(referenceHasher().bytes(&zero, 1).finish()),
            "da87c1d86b99af44347659119b22fc45");
}

TEST(Hash, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += static_cast<char>(i * 37);
  const Hash128 whole = hashBytes(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Hasher hasher;
    hasher.bytes(text.data(), cut);
    hasher.finish();
    hasher.bytes(text.data() + cut, text.size() - cut);
    ASSERT_EQ(hasher.finish(), whole) << cut;
  }
}

TEST(Hash, SeparatesFieldsAndLengths) {
  EXPECT_NE(Hasher().text("ab").text("c").finish(),
            Hasher().text("a").text("bc").finish());
  EXPECT_NE(Hasher().number(0.0).finish(), Hasher().number(-0.0).finish());
  std::set<Hash128> seen;
  std::string zeros;
  for (int i = 0; i < 600; ++i, zeros += '\0')
    EXPECT_TRUE(seen.insert(hashBytes(zeros)).second);
  EXPECT_EQ(seen.begin()->hex().size(), 32u);
}

TEST(Env, TableIsComplete) {
  for (size_t i = 0; i < envTable().size(); ++i) {
    const EnvEntry &entry = envTable()[i];
    EXPECT_EQ(static_cast<size_t>(entry.variable), i);
    EXPECT_TRUE(entry.name.starts_with("TESSERA_"));
    EXPECT_FALSE(entry.meaning.empty());
    EXPECT_FALSE(entry.values.empty());
  }
}

TEST(Env, ReadsTextIntegersAndFlags) {
  const auto set = [](const char *value) {
    ::setenv("TESSERA_THREADS", value, 1);
  };
  ::unsetenv("TESSERA_THREADS");
  EXPECT_EQ(envText(EnvVariable::Threads), std::nullopt);
  set("");
  EXPECT_EQ(envText(EnvVariable::Threads), std::nullopt);
  set("12");
  EXPECT_EQ(envText(EnvVariable::Threads), "12");
  EXPECT_EQ(envInteger(EnvVariable::Threads, 1, 100), 12);
  EXPECT_EQ(envInteger(EnvVariable::Threads, 13, 100), std::nullopt);
  for (const char *bad : {"12x", "x", " 1", "99999999999999999999", "-"}) {
    set(bad);
    EXPECT_EQ(envInteger(EnvVariable::Threads, 1, 100), std::nullopt) << bad;
  }
  ::unsetenv("TESSERA_THREADS");

  ::setenv("TESSERA_LOG", "1", 1);
  reloadEnvironment();
  EXPECT_TRUE(launchLogEnabled());
  ::setenv("TESSERA_LOG", "0", 1);
  EXPECT_TRUE(launchLogEnabled()) << "the value is cached";
  reloadEnvironment();
  EXPECT_FALSE(launchLogEnabled());
  ::unsetenv("TESSERA_LOG");
  reloadEnvironment();
}

TEST(Env, NamesMisspelledVariables) {
  ::setenv("TESSERA_LOGG", "1", 1);
  const auto unknown = unknownEnvVariables();
  EXPECT_NE(std::find(unknown.begin(), unknown.end(), "TESSERA_LOGG"),
            unknown.end());
  ::unsetenv("TESSERA_LOGG");
}

TEST(Env, NamesBadValues) {
  const auto problems = [](const char *variable, const char *value) {
    ::setenv(variable, value, 1);
    std::vector<std::string> found = envProblems();
    ::unsetenv(variable);
    return found;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(problems("TESSERA_THREADS", "none"),
            Lines{"TESSERA_THREADS is 'none', expected 1 to 4096; it is "
                  "ignored"});
  EXPECT_EQ(problems("TESSERA_LOG", "yes"),
            Lines{"TESSERA_LOG is 'yes', expected 0 or 1; it is taken as 1"});
  EXPECT_EQ(problems("TESSERA_DUMP_DIR", "/nowhere"),
            Lines{"TESSERA_DUMP_DIR is '/nowhere', expected a directory; "
                  "nothing is written"});
  EXPECT_EQ(problems("TESSERA_BENCH_DIR", "/nowhere"),
            Lines{"TESSERA_BENCH_DIR is '/nowhere', expected a directory; it "
                  "is ignored"});
  EXPECT_EQ(problems("TESSERA_LOGG", "1").size(), 1u);
  for (const char *good : {"1", "4096", ""})
    EXPECT_EQ(problems("TESSERA_THREADS", good), Lines{}) << good;
}

class AtomicFileTest : public testing::Test {
protected:
  AtomicFileTest()
      : folder(std::filesystem::temp_directory_path() /
               ("tessera_atomic_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  ~AtomicFileTest() override { std::filesystem::remove_all(folder); }
  std::string path(const char *name) const { return (folder / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      found.push_back(entry.path().filename().string());
    return found;
  }

  std::filesystem::path folder;
};

TEST_F(AtomicFileTest, AppearsWhenCommitted) {
  {
    Result<AtomicFile> dropped = AtomicFile::create(path("a"));
    ASSERT_TRUE(dropped.ok());
    EXPECT_TRUE(dropped->write("xyz", 3).ok());
    EXPECT_EQ(names().size(), 1u);
  }
  EXPECT_EQ(names().size(), 0u);
  Result<AtomicFile> kept = AtomicFile::create(path("a"));
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(kept->write("xyz", 3).ok());
  EXPECT_TRUE(kept->commit().ok());
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(std::filesystem::file_size(path("a")), 3u);
  EXPECT_EQ(AtomicFile::create(folder.string()).error().message,
            "cannot write '" + folder.string() +
                "': it is a directory, expected a regular file or a new name");
}

TEST_F(AtomicFileTest, DescriptorsAreNotReplaced) {
  const int file = ::open(path("kept").c_str(), O_WRONLY | O_CREAT, 0666);
  ASSERT_GE(file, 0);
  const std::string number = std::to_string(file);
  std::filesystem::create_symlink("/dev/fd/" + number, folder / "link");
  for (const std::string &name :
       {"/dev/fd/" + number, "/proc/self/fd/" + number,
        "/proc/" + std::to_string(::getpid()) + "/fd/" + number,
        "/proc/thread-self/fd/" + number, path("link")}) {
    EXPECT_TRUE(isDescriptorPath(name)) << name;
    EXPECT_FALSE(AtomicFile::create(name).ok()) << name;
  }
  ::close(file);
  std::filesystem::create_symlink("kept", folder / "plain");
  std::filesystem::create_symlink("round", folder / "round");
  for (const std::string &name : {path("kept"), path("plain"), path("round"),
                                  path("new"), path("no/new"), std::string()})
    EXPECT_FALSE(isDescriptorPath(name)) << name;
}

/// The exit status of a child that raises `number`, which `disposition` meets
/// when it starts, with two unfinished files in `folder`. 7: it survived.
static int raiseWithUnfinishedFiles(const std::filesystem::path &folder,
                                    int number, void (*disposition)(int)) {
  const pid_t child = ::fork();
  if (child == 0) {
    // What started the tests may ignore or block signals (nohup, CI).
    ::signal(number, disposition);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, number);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    removeTemporaryFilesOnSignals();
    {
      Result<AtomicFile> a = AtomicFile::create((folder / "a").string());
      Result<AtomicFile> b = AtomicFile::create((folder / "b").string());
      if (a.ok() && b.ok() && a->write("x", 1).ok())
        ::raise(number);
    }
    ::_exit(7);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(AtomicFileTest, SignalsRemoveWhatIsUnfinished) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const int status = raiseWithUnfinishedFiles(folder, number, SIG_DFL);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(names(), std::vector<std::string>{});
  }
}

TEST_F(AtomicFileTest, IgnoredSignalsStayIgnored) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const int status = raiseWithUnfinishedFiles(folder, number, SIG_IGN);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    EXPECT_EQ(names(), std::vector<std::string>{});
  }
}

TEST(GuardedBuffer, IsPoisonedAndTouchesItsEdge) {
  for (auto edge : {GuardedBuffer::Edge::End, GuardedBuffer::Edge::Begin}) {
    for (int64_t bytes : {0, 1, 4, 4096, 4100, 70000}) {
      Result<GuardedBuffer> buffer = GuardedBuffer::create(bytes, edge);
      ASSERT_TRUE(buffer.ok());
      ASSERT_EQ(buffer->size(), bytes);
      for (int64_t i = 0; i < bytes; ++i)
        ASSERT_EQ(buffer->as<unsigned char>()[i], 0xff);
      if (bytes % 4 == 0 && bytes > 0) {
        EXPECT_TRUE(std::isnan(buffer->as<float>()[bytes / 4 - 1]));
      }
      const auto address = reinterpret_cast<uintptr_t>(buffer->data());
      const uintptr_t touching =
          edge == GuardedBuffer::Edge::End ? address + bytes : address;
      EXPECT_EQ(touching % 4096, 0u);
      std::memset(buffer->data(), 0, static_cast<size_t>(bytes));
      EXPECT_TRUE(buffer->slackIntact());
      buffer->poison();
      GuardedBuffer moved = std::move(*buffer);
      EXPECT_EQ(moved.size(), bytes);
    }
  }
  EXPECT_EQ(GuardedBuffer::create(-1).error().family, ErrorFamily::Unsupported);
}

TEST(GuardedBuffer, SlackTellsOfStrayWrites) {
  Result<GuardedBuffer> buffer = GuardedBuffer::create(100);
  ASSERT_TRUE(buffer.ok());
  EXPECT_TRUE(buffer->slackIntact());
  buffer->as<char>()[-1] = 0;
  EXPECT_FALSE(buffer->slackIntact());
}

TEST(GuardedBufferDeathTest, FaultsPastItsEdge) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto buffer = GuardedBuffer::create(100);
        *reinterpret_cast<volatile char *>(buffer->as<char>() + 100) = 1;
      },
      "");
  EXPECT_DEATH(
      {
        auto buffer = GuardedBuffer::create(100, GuardedBuffer::Edge::Begin);
        *reinterpret_cast<volatile char *>(buffer->as<char>() - 1) = 1;
      },
      "");
}

TEST(InlineVector, GrowsOutOfItself) {
  InlineVector<int, 4> vector;
  EXPECT_TRUE(vector.empty());
  for (int i = 0; i < 20; ++i) {
    vector.push_back(i);
    ASSERT_EQ(vector.size(), static_cast<size_t>(i) + 1);
    for (int k = 0; k <= i; ++k)
      ASSERT_EQ(vector[static_cast<size_t>(k)], k);
  }
  vector.truncate(10);
  EXPECT_EQ(vector.size(), 10u);
  EXPECT_EQ(vector[9], 9);
  vector.truncate(3);
  EXPECT_EQ(vector[2], 2);
  int sum = 0;
  for (int value : vector)
    sum += value;
  EXPECT_EQ(sum, 3);
}

TEST(Timing, NeverGoesBack) {
  const Stopwatch watch;
  int64_t previous = nowNanoseconds();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = nowNanoseconds();
    ASSERT_GE(now, previous);
    previous = now;
  }
  EXPECT_GE(watch.nanoseconds(), 0);
}
