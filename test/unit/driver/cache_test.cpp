//===- cache_test.cpp - Executables on disk -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is found is what was kept, and what cannot be trusted is compiled again.
//
//===----------------------------------------------------------------------===//

#include "test/unit/driver/cache_folder.h"

#include "driver/plan_store.h"
#include "plan/plan.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace tessera {
namespace {

using namespace cachetest;
using session::Compilation;
using session::RunRequest;
using testing::HasSubstr;
using testing::IsEmpty;

using ExecutablesOnDisk = CacheFolder;

const RunRequest softmaxRequest = {.dims = {{"rows", 17}, {"cols", 65}}};

//===----------------------------------------------------------------------===//
// What is found
//===----------------------------------------------------------------------===//

TEST_F(ExecutablesOnDisk, AreWhatCompilingMakes) {
  const std::pair<const char *, RunRequest> cases[] = {
      {"softmax", softmaxRequest},
      // Tunables that are chosen.
      {"gemm", {.dims = {{"m", 128}, {"n", 64}, {"k", 96}}, .threads = 16}},
      // A stage that only checks indices, with its messages.
      {"embedding", {}},
      // An array that is packed, by a function of the object.
      {"gemm", {.dims = {{"m", 16}, {"n", 96}, {"k", 70}}, .prepacked = {"b"}}},
  };
  for (const auto &[op, request] : cases) {
    const Compilation plain = compiledWith(op, request);
    const Compilation first = compiledWith(op, cached(request));
    const Compilation again = compiledWith(op, cached(request));
    EXPECT_EQ(plain.kernel.cache.origin, ExecutableOrigin::Compiled);
    EXPECT_EQ(first.kernel.cache.origin, ExecutableOrigin::Compiled);
    EXPECT_EQ(first.kernel.cache.whyNotKept, "");
    ASSERT_EQ(again.kernel.cache.origin, ExecutableOrigin::Disk)
        << op << ": " << again.kernel.cache.whyCompiled;
    EXPECT_EQ(first.kernel.object, plain.kernel.object) << op;
    EXPECT_EQ(again.kernel.object, plain.kernel.object) << op;
    EXPECT_EQ(again.kernel.report, first.kernel.report);
    EXPECT_EQ(again.kernel.planSummary, plain.kernel.planSummary);
    EXPECT_EQ(again.kernel.planSource, plain.kernel.planSource);
    EXPECT_EQ(again.kernel.cache.key, first.kernel.cache.key);
    EXPECT_EQ(again.kernel.work.flops, plain.kernel.work.flops);
    EXPECT_EQ(again.kernel.work.bytesRead, plain.kernel.work.bytesRead);
    EXPECT_EQ(again.kernel.summation.partials, plain.kernel.summation.partials);
    const ExecutableInfo &found = again.kernel.executable.info();
    const ExecutableInfo &made = plain.kernel.executable.info();
    EXPECT_EQ(found.kernel, made.kernel);
    EXPECT_EQ(found.alias, made.alias);
    EXPECT_EQ(found.parameters.size(), made.parameters.size());
    ASSERT_EQ(found.stages.size(), made.stages.size());
    for (size_t i = 0; i < found.stages.size(); ++i) {
      EXPECT_NE(found.stages[i].entry, nullptr);
      EXPECT_EQ(found.stages[i].symbol, made.stages[i].symbol);
      EXPECT_EQ(found.stages[i].programs, made.stages[i].programs);
      EXPECT_EQ(found.stages[i].scratchBytes, made.stages[i].scratchBytes);
      EXPECT_EQ(found.stages[i].nanosecondsPerProgram,
                made.stages[i].nanosecondsPerProgram);
    }
    ASSERT_EQ(found.checks.size(), made.checks.size());
    for (size_t i = 0; i < found.checks.size(); ++i)
      EXPECT_EQ(found.checks[i].str(), made.checks[i].str());
    ASSERT_EQ(found.packs.size(), made.packs.size());
    for (size_t i = 0; i < found.packs.size(); ++i)
      EXPECT_EQ(found.packs[i].tag, made.packs[i].tag);
  }
}

TEST_F(ExecutablesOnDisk, AreRight) {
  for (std::string_view op : {"softmax", "gemm", "embedding", "attention"}) {
    const kernels::Operator &entry = *kernels::findOperator(op);
    RunRequest request = cached({});
    ASSERT_TRUE(session::compileOperator(entry, request));
    Result<session::CompiledOperator> compiled =
        session::CompiledOperator::create(entry, request);
    ASSERT_TRUE(compiled) << compiled.error().str();
    EXPECT_EQ(compiled->compiled()->cache.origin, ExecutableOrigin::Disk);
    Result<session::RunResult> run = compiled->run();
    ASSERT_TRUE(run) << run.error().str();
    EXPECT_TRUE(run->passed()) << run->failures();
  }
}

TEST_F(ExecutablesOnDisk, ServeCompile) {
  const Kernel kernel = kernels::findOperator("copy")->kernel();
  std::vector<float> x(15, 2.5F), y(15);
  const std::vector<Argument> arguments = {
      TensorRef::dense(x.data(), DType::F32, {3, 5}),
      TensorRef::dense(y.data(), DType::F32, {3, 5})};
  auto origin = [&](const CompileOptions &options = {}) {
    CompileRecord record;
    std::fill(y.begin(), y.end(), 0.0F);
    Result<Executable> made = compile(kernel, arguments, options, &record);
    EXPECT_TRUE(made) << made.error().str();
    EXPECT_TRUE(made && made->launch(arguments));
    EXPECT_EQ(x, y);
    return record;
  };
  clearCompileCache();
  const CompileRecord first = origin();
  EXPECT_EQ(first.origin, ExecutableOrigin::Compiled);
  EXPECT_EQ(first.whyCompiled, "there is no entry of this key");
  EXPECT_EQ(first.whyNotKept, "");
  EXPECT_EQ(first.key.size(), 32u);
  EXPECT_EQ(origin().origin, ExecutableOrigin::Memory);
  EXPECT_EQ(origin().key, first.key);
  clearCompileCache();
  EXPECT_EQ(origin().origin, ExecutableOrigin::Disk);
  clearCompileCache();
  CompileOptions own;
  own.diskCache = false;
  EXPECT_EQ(origin(own).origin, ExecutableOrigin::Compiled);
  clearCompileCache();
}

/// Kernels whose plans are made, measured or looked at are compiled.
TEST_F(ExecutablesOnDisk, AreLeftAloneUnlessTheyAreAskedFor) {
  compiledWith("softmax", softmaxRequest);
  EXPECT_THAT(files(), IsEmpty());
  RunRequest shown = cached(softmaxRequest);
  shown.stageText = [](const char *, std::string) {};
  EXPECT_EQ(compiledWith("softmax", shown).kernel.cache.whyNotKept,
            "stages of the compilation are asked for");
  RunRequest chosen = cached(softmaxRequest);
  chosen.choices = std::make_shared<const PlanChoices>();
  EXPECT_EQ(compiledWith("softmax", chosen).kernel.cache.whyCompiled,
            "the plan is a caller's");
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(ExecutablesOnDisk, AreOffWhereTheVariableSaysSo) {
  ::setenv("TESSERA_CACHE_DIR", "off", 1);
  for (int i = 0; i < 2; ++i) {
    const Compilation made = compiledWith("softmax", cached(softmaxRequest));
    EXPECT_EQ(made.kernel.cache.origin, ExecutableOrigin::Compiled);
    EXPECT_THAT(made.kernel.cache.whyNotKept, HasSubstr("off"));
  }
  EXPECT_FALSE(fs::exists("off"));
  EXPECT_TRUE(listExecutables().empty());
}

//===----------------------------------------------------------------------===//
// What is not taken
//===----------------------------------------------------------------------===//

TEST_F(ExecutablesOnDisk, AreCompiledAgainWhereTheyAreDamaged) {
  const Compilation first = compiledWith("softmax", cached(softmaxRequest));
  const fs::path path = onlyFile();
  const std::string whole = read(path);
  std::vector<std::string> damages = {"", "TESSERAX", "#!/bin/sh\n",
                                      whole + "x", std::string(200, '\0')};
  for (size_t part : {1, 2, 3, 7, 8, 9})
    damages.push_back(whole.substr(0, whole.size() * part / 10));
  // Every byte of the head, and some of what follows.
  for (size_t at = 0; at < whole.size(); at += at < 48 ? 1 : 997) {
    std::string altered = whole;
    altered[at] ^= 0x20;
    damages.push_back(std::move(altered));
  }
  for (const std::string &damage : damages) {
    write(path, damage);
    Result<CachedExecutable> decoded = decodeEntry(damage);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, "cache.damaged");
  }
  for (size_t i = 0; i < damages.size(); i += 9) {
    write(path, damages[i]);
    const Compilation made = compiledWith("softmax", cached(softmaxRequest));
    EXPECT_EQ(made.kernel.cache.origin, ExecutableOrigin::Compiled) << i;
    EXPECT_THAT(made.kernel.cache.whyCompiled, HasSubstr("was removed: found"));
    EXPECT_EQ(made.kernel.object, first.kernel.object);
    EXPECT_EQ(
        compiledWith("softmax", cached(softmaxRequest)).kernel.cache.origin,
        ExecutableOrigin::Disk);
  }
}

TEST_F(ExecutablesOnDisk, OfAnotherKeyOrVersionAreCompiledAgain) {
  compiledWith("softmax", cached(softmaxRequest));
  const fs::path path = onlyFile();
  const std::string whole = read(path);
  // A good file of another shape under this name.
  RunRequest other = cached({.dims = {{"rows", 17}, {"cols", 66}}});
  const Compilation others = compiledWith("softmax", other);
  const fs::path otherPath = folder / (others.kernel.cache.key + ".tse");
  fs::copy_file(otherPath, path, fs::copy_options::overwrite_existing);
  EXPECT_THAT(
      compiledWith("softmax", cached(softmaxRequest)).kernel.cache.whyCompiled,
      HasSubstr("found the entry of another key"));
  // The version stands behind the mark.
  std::string newer = whole;
  newer[8] = char(cacheEntryVersion + 1);
  write(path, newer);
  EXPECT_THAT(
      compiledWith("softmax", cached(softmaxRequest)).kernel.cache.whyCompiled,
      HasSubstr("found version 2 of its form, expected 1"));
}

TEST_F(ExecutablesOnDisk, ThatOthersMayWriteAreNotRun) {
  auto origin = [&] {
    return compiledWith("softmax", cached(softmaxRequest)).kernel.cache.origin;
  };
  auto whyNot = [&] {
    return compiledWith("softmax", cached(softmaxRequest))
        .kernel.cache.whyCompiled;
  };
  EXPECT_EQ(origin(), ExecutableOrigin::Compiled);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  const fs::path path = onlyFile();
  EXPECT_EQ(fs::status(path).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(origin(), ExecutableOrigin::Disk);

  fs::permissions(path, fs::perms(0620));
  EXPECT_THAT(whyNot(), HasSubstr("others may write it (mode 620)"));
  // It was replaced.
  EXPECT_EQ(origin(), ExecutableOrigin::Disk);

  fs::permissions(folder, fs::perms(0707));
  EXPECT_THAT(whyNot(), HasSubstr("others may write it (mode 707)"));
  EXPECT_THAT(cacheProblem(), HasSubstr("others may write it"));
  EXPECT_THAT(
      compiledWith("softmax", cached(softmaxRequest)).kernel.cache.whyNotKept,
      HasSubstr("others may write it"));
  fs::permissions(folder, fs::perms(0700));
  EXPECT_EQ(origin(), ExecutableOrigin::Disk);
  EXPECT_EQ(cacheProblem(), "");

  fs::rename(path, root / "elsewhere");
  fs::create_symlink(root / "elsewhere", path);
  EXPECT_THAT(whyNot(), HasSubstr("it is a symbolic link"));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THAT(whyNot(), HasSubstr("it is no regular file"));
  fs::remove(path);

  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file to somebody else";
  EXPECT_EQ(origin(), ExecutableOrigin::Compiled);
  ASSERT_EQ(::chown(path.c_str(), 12345, ::getegid()), 0);
  EXPECT_THAT(whyNot(), HasSubstr("it belongs to user 12345, expected 0"));
  ASSERT_EQ(::chown(folder.c_str(), 12345, ::getegid()), 0);
  EXPECT_THAT(whyNot(), HasSubstr("it belongs to user 12345, expected 0"));
}

TEST_F(ExecutablesOnDisk, AreDispensable) {
  auto compiled = [] {
    return compiledWith("softmax", cached(softmaxRequest)).kernel.cache;
  };
  // A file where the folder should be, and a folder that nobody can make.
  write(folder, "mine");
  EXPECT_THAT(compiled().whyNotKept, HasSubstr("it is no directory"));
  EXPECT_EQ(read(folder), "mine");
  ::setenv("TESSERA_CACHE_DIR", "/proc/tessera/executables", 1);
  EXPECT_THAT(compiled().whyNotKept,
              HasSubstr("'/proc/tessera/executables' is not used: "));
  EXPECT_THAT(cacheProblem(), HasSubstr("'/proc/tessera/executables' "));

  // A disk that is full after some bytes.
  const fs::path full = root / "full";
  ::setenv("TESSERA_CACHE_DIR", full.c_str(), 1);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const CompileRecord record = compiled();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(record.origin, ExecutableOrigin::Compiled);
  EXPECT_THAT(record.whyNotKept, HasSubstr("cannot write"));
  EXPECT_TRUE(fs::is_empty(full)) << "an unfinished file was left";
  EXPECT_EQ(compiled().whyNotKept, "");
  EXPECT_EQ(compiled().origin, ExecutableOrigin::Disk);
}

//===----------------------------------------------------------------------===//
// What a compilation reads beside its key
//===----------------------------------------------------------------------===//

TEST_F(ExecutablesOnDisk, FollowTunedPlans) {
  const fs::path plans = root / "plans";
  ::setenv("TESSERA_PLAN_DIR", plans.c_str(), 1);
  const RunRequest request = {.dims = {{"rows", 64}, {"cols", 1000}}};
  auto compiled = [&] { return compiledWith("softmax", cached(request)); };
  EXPECT_EQ(compiled().kernel.planSource, "search");
  EXPECT_EQ(compiled().kernel.cache.origin, ExecutableOrigin::Disk);

  PlanChoices choices;
  const Compilation searched = compiledWith("softmax", request);
  for (const NestPlan &nest : searched.kernel.plan->stages[0].nests)
    choices.nests[nest.id].unroll = 1;
  RunRequest other = request;
  other.choices = std::make_shared<const PlanChoices>(choices);
  const Compilation made = compiledWith("softmax", other);
  Result<std::string> stored =
      storeTunedPlan(*made.kernel.plan, *made.kernel.subject,
                     {made.kernel.subject->key, tuningCpu(), tuningCompiler(),
                      2e-6, 1e-6, 0.01});
  ASSERT_TRUE(stored) << stored.error().str();

  const Compilation tuned = compiled();
  EXPECT_EQ(tuned.kernel.planSource, "tuned");
  EXPECT_EQ(tuned.kernel.cache.whyCompiled, "there is a tuned plan now");
  EXPECT_NE(tuned.kernel.object, searched.kernel.object);
  const Compilation again = compiled();
  EXPECT_EQ(again.kernel.cache.origin, ExecutableOrigin::Disk);
  EXPECT_EQ(again.kernel.planSource, "tuned");
  EXPECT_EQ(again.kernel.object, tuned.kernel.object);
  // Those who take no tuned plans have an entry of their own.
  RunRequest plain = cached(request);
  plain.useTunedPlans = false;
  EXPECT_EQ(compiledWith("softmax", plain).kernel.planSource, "search");

  // One that cannot be read is warned about by every process.
  write(*stored, "{");
  EXPECT_EQ(compiled().kernel.planSource, "search");
  EXPECT_EQ(compiled().kernel.cache.whyNotKept,
            "there is a tuned plan that cannot be applied");
  fs::remove(*stored);
  EXPECT_EQ(compiled().kernel.cache.whyCompiled,
            "its tuned plan has changed or is gone");
  EXPECT_EQ(compiled().kernel.cache.origin, ExecutableOrigin::Disk);
  EXPECT_EQ(compiled().kernel.planSource, "search");
  ::setenv("TESSERA_PLAN_DIR", "off", 1);
}

/// A kernel may be another one with the values that were chosen, though it is
/// the same with the first ones.
TEST_F(ExecutablesOnDisk, AreTracedAgainWithChosenTunables) {
  const RunRequest request = {.dims = {{"m", 128}, {"n", 128}, {"k", 128}},
                              .threads = 16};
  compiledWith("gemm", cached(request));
  Result<CachedExecutable> entry = decodeEntry(read(onlyFile()));
  ASSERT_TRUE(entry);
  ASSERT_FALSE(entry->chosen.empty());
  EXPECT_EQ(compiledWith("gemm", cached(request)).kernel.cache.origin,
            ExecutableOrigin::Disk);
  entry->chosenIr[0] ^= 1;
  EXPECT_EQ(storeExecutable(*entry), "");
  EXPECT_THAT(compiledWith("gemm", cached(request)).kernel.cache.whyCompiled,
              HasSubstr("with the values of its tunables has changed"));
  EXPECT_EQ(compiledWith("gemm", cached(request)).kernel.cache.origin,
            ExecutableOrigin::Disk);
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// An entry with a key and a size of its own.
CachedExecutable madeUp(const std::string &name, size_t bytes) {
  CachedExecutable entry;
  entry.key.parts = {{"kernel", "made_up"}, {"ir", name}};
  entry.object = std::string(bytes, name.empty() ? '\0' : name[0]);
  return entry;
}

TEST_F(ExecutablesOnDisk, TakeNoMoreThanTheirLimit) {
  ::setenv("TESSERA_CACHE_MIB", "1", 1);
  constexpr size_t size = 150 << 10;
  auto age = [&](const CachedExecutable &entry, int minutes) {
    const fs::path path = folder / (entry.key.name() + ".tse");
    fs::last_write_time(path, fs::file_time_type::clock::now() -
                                  std::chrono::minutes(minutes));
  };
  auto isThere = [&](const std::string &name) {
    return fs::exists(folder / (madeUp(name, 0).key.name() + ".tse"));
  };
  for (int i = 0; i < 6; ++i) {
    const CachedExecutable entry = madeUp(std::to_string(i), size);
    ASSERT_EQ(storeExecutable(entry), "");
    age(entry, 60 - i);
  }
  // The oldest is used, what is nobody's stays, what was left goes.
  EXPECT_TRUE(findExecutable(madeUp("0", 0).key).entry);
  write(folder / "notes.txt", std::string(size, 'n'));
  const fs::path left = folder / (madeUp("9", 0).key.name() + ".tse.12-3.tmp");
  write(left, "unfinished");
  fs::last_write_time(left,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_EQ(storeExecutable(madeUp("6", size)), "");
  EXPECT_TRUE(isThere("0"));
  EXPECT_FALSE(isThere("1"));
  EXPECT_TRUE(isThere("5"));
  EXPECT_TRUE(isThere("6"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
  EXPECT_FALSE(fs::exists(left));
  for (int i = 10; i < 40; ++i) {
    ASSERT_EQ(storeExecutable(madeUp(std::to_string(i), size)), "");
    int64_t bytes = 0;
    for (const CacheFile &file : listExecutables())
      bytes += file.bytes;
    EXPECT_LE(bytes, 1 << 20) << i;
    EXPECT_TRUE(isThere(std::to_string(i)));
  }
  EXPECT_THAT(storeExecutable(madeUp("large", 2 << 20)),
              HasSubstr("bytes are more than all entries may take (1048576)"));
}

TEST_F(ExecutablesOnDisk, AreListedAndCleared) {
  EXPECT_TRUE(listExecutables().empty());
  compiledWith("softmax", cached(softmaxRequest));
  ASSERT_EQ(storeExecutable(madeUp("a", 10)), "");
  write(folder / "notes.txt", "mine");
  std::vector<CacheFile> list = listExecutables();
  ASSERT_EQ(list.size(), 2u);
  // The last used first.
  ASSERT_TRUE(list[0].entry && list[1].entry);
  EXPECT_EQ(list[0].entry->key.value("kernel"), "made_up");
  EXPECT_EQ(list[1].entry->key.value("kernel"), "softmax");
  EXPECT_EQ(list[1].entry->extents.size(), 2u);
  write(list[0].path, "x");
  EXPECT_FALSE(listExecutables()[0].entry);
  Result<int64_t> cleared = clearExecutables();
  ASSERT_TRUE(cleared) << cleared.error().str();
  EXPECT_EQ(*cleared, 2);
  EXPECT_THAT(files(), testing::ElementsAre("notes.txt"));
}

/// Readers see one writer's bytes or another's, and no mixture.
TEST_F(ExecutablesOnDisk, BearSeveralWriters) {
  constexpr int writers = 3, times = 60;
  const CacheKey key = madeUp("shared", 0).key;
  std::vector<pid_t> children;
  for (int number = 0; number < writers; ++number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int failures = 0;
      for (int i = 0; i < times; ++i) {
        CachedExecutable entry = madeUp("shared", 0);
        entry.object =
            std::string(size_t(20000 + 1000 * i), char('a' + number));
        failures += !storeExecutable(entry).empty();
      }
      ::_exit(failures);
    }
    children.push_back(child);
  }
  int found = 0;
  for (size_t running = children.size(); running > 0;) {
    const CacheLookup lookup = findExecutable(key);
    if (lookup.entry) {
      ++found;
      const std::string &object = lookup.entry->object;
      EXPECT_EQ(object, std::string(object.size(), object[0]));
    } else {
      EXPECT_EQ(lookup.reason, "there is no entry of this key");
      EXPECT_EQ(found, 0) << "an entry was there before";
    }
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      --running;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }
  EXPECT_TRUE(findExecutable(key).entry);
  EXPECT_EQ(files().size(), 1u) << "unfinished files were left";
}

} // namespace
} // namespace tessera
