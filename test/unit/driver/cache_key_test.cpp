//===- cache_key_test.cpp - What tells executables apart ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row per thing that a compilation depends on: the request that differs in
// it alone finds no executable, and is told which part of the key differs.
//
//===----------------------------------------------------------------------===//

#include "test/unit/driver/cache_folder.h"
#include "test/unit/planned_machine.h"

#include "driver/plan_file.h"
#include "support/module_identity.h"
#include "tessera/dsl.h"

#include <set>

namespace tessera {
namespace {

using namespace cachetest;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::Not;

using CacheKeys = CacheFolder;

/// %x, %y: rows by columns; %s: a scalar.
constexpr const char *text = R"(
!in = !tile.view<f32, 2, read>
!out = !tile.view<f32, 2, write>
!vec = tensor<?xf32, ["col"]>
module attributes {tile.version = 1 : i64} {
  tile.kernel @scaled(%x: !in, %y: !out, %s: f32 = 5.0) {
    %rows = tile.extent %x, 0 : !in
    %cols = tile.extent %x, 1 : !in
    tile.dim "row" = %rows
    tile.dim "col" = %cols
    tile.parallel (%row) in ["row"] {
      %v = tile.load %x[%row, "col"] : !in -> !vec
      %b = tile.broadcast %s : f32 -> !vec
      %p = arith.subf %v, %b : !vec
      tile.store %p, %y[%row, "col"] : !vec, !out
    }
  }
}
)";

struct Subject {
  std::string text = tessera::text;
  std::string file = "k.mlir";
  std::optional<Tier> tier = {};
  CompileRequest request = baseRequest();

  static CompileRequest baseRequest() {
    CompileRequest base;
    base.extents = {{4, 100}, {4, 100}, {}};
    base.isa = Isa::Avx2;
    base.threads = 2;
    base.useDiskCache = true;
    return base;
  }

  Result<Program> program() const {
    Result<Program> made = Program::fromText(text, file);
    if (made && tier)
      made->setTier(*tier);
    return made;
  }
  Result<CompiledKernel> compile() const {
    Result<Program> made = program();
    return made ? made->compile(request) : Result<CompiledKernel>(made.error());
  }
};

void replace(std::string &in, const std::string &from, const std::string &to) {
  const size_t at = in.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  in.replace(at, from.size(), to);
}

struct Change {
  const char *what;
  std::vector<std::string> parts;
  void (*apply)(Subject &);
};

const Change changes[] = {
    {"operation",
     {"ir"},
     [](Subject &s) { replace(s.text, "arith.subf", "arith.mulf"); }},
    {"operands",
     {"ir"},
     [](Subject &s) {
       replace(s.text, "arith.subf %v, %b", "arith.subf %b, %v");
     }},
    {"default",
     {"ir", "parameters"},
     [](Subject &s) { replace(s.text, "5.0", "5.5"); }},
    {"name of a dimension",
     {"ir"},
     [](Subject &s) {
       replace(s.text, "\"row\" =", "\"raw\" =");
       replace(s.text, "[\"row\"]", "[\"raw\"]");
     }},
    {"name of a parameter",
     {"ir", "parameters"},
     [](Subject &s) {
       replace(s.text, "%s: f32", "%t: f32");
       replace(s.text, "broadcast %s", "broadcast %t");
     }},
    {"pins",
     {"ir"},
     [](Subject &s) {
       replace(s.text, "%s: f32 = 5.0) {",
               "%s: f32 = 5.0) attributes {tile.schedule = {unroll = 2 : "
               "i64}} {");
     }},
    {"tier", {"ir"}, [](Subject &s) { s.tier = Tier::Strict; }},
    {"line",
     {"lines"},
     [](Subject &s) {
       replace(s.text, "      tile.store", "\n      tile.store");
     }},
    {"file", {"lines"}, [](Subject &s) { s.file = "other.mlir"; }},
    {"extents",
     {"extents"},
     [](Subject &s) { s.request.extents = {{5, 100}, {5, 100}, {}}; }},
    {"strides",
     {"strides"},
     [](Subject &s) {
       s.request.unitStride = {{false, true}, {false, false}, {}};
     }},
    {"overlap",
     {"alias"},
     [](Subject &s) { s.request.alias = AliasMode::InPlace; }},
    {"level", {"target"}, [](Subject &s) { s.request.isa = Isa::X86_64; }},
    {"description of the machine",
     {"machine"},
     [](Subject &s) {
       static Machine other = *plannedMachine();
       other.memory[0].read *= 2;
       s.request.machine = &other;
     }},
    {"threads", {"threads"}, [](Subject &s) { s.request.threads = 3; }},
    {"checks of indices",
     {"validate"},
     [](Subject &s) { s.request.validate = true; }},
    {"packed arrays",
     {"prepacked"},
     [](Subject &s) { s.request.prepacked = {"x"}; }},
    {"tuned plans",
     {"plan"},
     [](Subject &s) { s.request.useTunedPlans = false; }},
    {"saved plan",
     {"plan"},
     [](Subject &s) { s.request.savedPlan = PlanText{"p.json", "{}"}; }},
    {"facts about the code",
     {"machine facts"},
     [](Subject &s) { s.request.machineFacts = true; }},
};

/// What differs between a subject and what is on disk.
std::vector<std::string> differences(const Subject &subject) {
  Result<Program> program = subject.program();
  EXPECT_TRUE(program) << program.error().str();
  if (!program)
    return {};
  Result<CacheState> state = program->cacheState(subject.request);
  EXPECT_TRUE(state) << state.error().str();
  if (!state)
    return {};
  std::vector<std::string> parts;
  for (const CacheState::Difference &one : state->differences) {
    EXPECT_NE(one.found, one.wanted);
    parts.push_back(one.part);
  }
  EXPECT_EQ(state->isHit, parts.empty());
  EXPECT_EQ(state->path.empty(), false);
  return parts;
}

TEST_F(CacheKeys, HaveEverythingThatDecides) {
  Result<CompiledKernel> kept = Subject().compile();
  ASSERT_TRUE(kept) << kept.error().str();
  EXPECT_THAT(differences(Subject()), IsEmpty());
  std::set<std::string> seen;
  for (const Change &change : changes) {
    Subject subject;
    change.apply(subject);
    EXPECT_THAT(differences(subject), ElementsAreArray(change.parts))
        << change.what;
    seen.insert(change.parts.begin(), change.parts.end());
  }
  // What no request can change is changed below.
  seen.insert(
      {"kernel", "form", "tessera", "llvm", "processor", "choice of tunables"});
  Result<CachedExecutable> entry = decodeEntry(read(onlyFile()));
  ASSERT_TRUE(entry);
  for (const CacheKey::Part &part : entry->key.parts)
    EXPECT_TRUE(seen.count(part.name)) << "no row changes " << part.name;
}

/// Each part by itself makes another key, and an entry that has it otherwise is
/// told apart by it.
TEST_F(CacheKeys, DifferInEveryPart) {
  ASSERT_TRUE(Subject().compile());
  Result<CachedExecutable> entry = decodeEntry(read(onlyFile()));
  ASSERT_TRUE(entry);
  std::set<std::string> names = {entry->key.name()};
  for (size_t i = 0; i < entry->key.parts.size(); ++i) {
    CachedExecutable other = *entry;
    other.key.parts[i].value += "x";
    EXPECT_TRUE(names.insert(other.key.name()).second);
    if (other.key.parts[i].name == "kernel")
      continue;
    ASSERT_TRUE(clearExecutables());
    ASSERT_EQ(storeExecutable(other), "");
    EXPECT_THAT(differences(Subject()), ElementsAre(entry->key.parts[i].name));
    Result<CompiledKernel> compiled = Subject().compile();
    ASSERT_TRUE(compiled);
    EXPECT_EQ(compiled->cache.origin, ExecutableOrigin::Compiled);
  }
  EXPECT_NE(entry->key.value("tessera"), "");
  EXPECT_NE(entry->key.value("llvm"), "");
}

TEST_F(CacheKeys, AreThoseOfOtherProcesses) {
  ASSERT_TRUE(Subject().compile());
  const std::string name = onlyFile().filename().string();
  ASSERT_TRUE(clearExecutables());
  // Values and attributes have other addresses here.
  std::vector<Result<Program>> others;
  for (int i = 0; i < 3; ++i)
    others.push_back(Program::fromText(text, "other.mlir"));
  ASSERT_TRUE(Subject().compile());
  EXPECT_EQ(onlyFile().filename().string(), name);
}

/// Signs of scalars are known to the author's function alone.
TEST_F(CacheKeys, HaveTheTypesOfScalars) {
  const Kernel isSigned =
      kernel("fill", "y, n",
             [](View<int64_t, 1> y, Scalar<int32_t>) { store(y(0), Tile(7)); });
  const Kernel isUnsigned =
      kernel("fill", "y, n", [](View<int64_t, 1> y, Scalar<uint32_t>) {
        store(y(0), Tile(7));
      });
  CompileRequest request;
  request.extents = {{8}, {}};
  request.useDiskCache = true;
  Result<Program> first = Program::fromKernel(isSigned, {});
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_TRUE(first->compile(request));
  Result<Program> second = Program::fromKernel(isUnsigned, {});
  ASSERT_TRUE(second) << second.error().str();
  Result<CacheState> state = second->cacheState(request);
  ASSERT_TRUE(state) << state.error().str();
  std::vector<std::string> parts;
  for (const CacheState::Difference &one : state->differences)
    parts.push_back(one.part);
  EXPECT_THAT(parts, testing::Contains("parameters"));
}

/// With tunables to choose, the program and what the trace fixes are parts.
TEST_F(CacheKeys, HaveTheCodeThatIsTracedWithOtherTunables) {
  session::RunRequest request = {.dims = {{"m", 64}, {"n", 64}, {"k", 64}}};
  compiledWith("gemm", cached(request));
  Result<CachedExecutable> entry = decodeEntry(read(onlyFile()));
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->key.value("choice of tunables"),
              testing::HasSubstr(support::programIdentity()));
  ASSERT_TRUE(clearExecutables());
  compiledWith("softmax", cached({}));
  entry = decodeEntry(read(onlyFile()));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->key.value("choice of tunables"), "none to choose");
}

TEST(ModuleIdentity, TellsBuildsApart) {
  static int inProgram = 0;
  const std::string own = support::moduleIdentity(&inProgram);
  EXPECT_EQ(own, support::programIdentity());
  EXPECT_THAT(own, testing::StartsWith("build "));
  const std::string libc =
      support::moduleIdentity(reinterpret_cast<const void *>(&std::getenv));
  EXPECT_NE(libc, "");
  EXPECT_NE(libc, own);
  const auto onHeap = std::make_unique<int>();
  EXPECT_EQ(support::moduleIdentity(onHeap.get()), "");
  EXPECT_EQ(support::moduleIdentity(nullptr), "");
}

} // namespace
} // namespace tessera
