//===- fuzz/large_program_test.cpp - What compiling takes
//------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs with very much in them are compiled in a bounded time and memory,
// or refused with the limit that they exceed, and compute what others would. A
// share of the programs in the suite, many in the soak:
//
//   TESSERA_LARGE_FIRST=n    the soak's first seed
//   TESSERA_LARGE_COUNT=n    programs of each kind that a soak compiles, 40
//
//===----------------------------------------------------------------------===//

#include "differential.h"
#include "large_program.h"

#include "driver/program.h"
#include "plan/plan_record.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace tessera::fuzz {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double mostSeconds = 2;
constexpr int64_t mostMegabytes = 500;

// Sanitizers make code several times as slow and memory as large.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) ||       \
    __has_feature(thread_sanitizer)
constexpr bool isMeasured = false;
#else
constexpr bool isMeasured = true;
#endif

double secondsOfProcess() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// A line of /proc/self/status in megabytes.
int64_t megabytes(const std::string &line) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;)
    if (name == line + ":") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  ADD_FAILURE() << "/proc/self/status has no line " << line;
  return 0;
}

/// Measures what a scope takes.
class Meter {
public:
  Meter() : start(secondsOfProcess()), before(megabytes("VmRSS")) {
    // From here on, the largest size is that of this scope.
    std::ofstream("/proc/self/clear_refs") << "5";
  }
  double seconds() const { return secondsOfProcess() - start; }
  int64_t growth() const { return megabytes("VmHWM") - before; }

private:
  double start;
  int64_t before;
};

/// Arguments that nothing touches: compiling looks at extents and strides.
std::vector<Argument> untouched(const RandomProgram &program, bool oddStrides) {
  std::vector<Argument> arguments;
  uintptr_t address = uintptr_t(1) << 32;
  for (const ViewSpec *view : program.usedViews()) {
    TensorRef tensor;
    tensor.data = reinterpret_cast<void *>(address); // NOLINT
    address += uintptr_t(1) << 34;
    tensor.dtype = view->dtype;
    tensor.extents = program.extents(*view);
    tensor.strides.resize(tensor.extents.size());
    int64_t next = oddStrides ? 3 : 1;
    for (size_t axis = tensor.extents.size(); axis-- > 0;) {
      tensor.strides[axis] = next;
      next = next * tensor.extents[axis] + (oddStrides ? 7 : 0);
    }
    arguments.push_back(tensor);
  }
  return arguments;
}

struct Case {
  RandomProgram program;
  Isa isa = Isa::Avx512;
  bool oddStrides = false;
  std::string what;
};

Case caseOf(LargeKind kind, uint64_t seed, int64_t mostLength) {
  Random random(seed * largeKinds + uint64_t(kind));
  static const std::vector<LargeShape> shapes = {
      {1, 0, 10'000'000}, {10'000'000, 0, 1}, {3, 33, 5},  {64, 0, 1003},
      {4, 0, 4096},       {7, 5, 129},        {512, 0, 17}};
  static const std::vector<DType> types = {DType::F32, DType::BF16, DType::F64};
  static const std::vector<Isa> isas = {Isa::Avx512, Isa::Avx2};
  const LargeShape shape = random.pick(shapes);
  const DType type = random.pick(types);
  const int64_t length = random.between(mostLength / 4, mostLength);
  Case result;
  result.isa = random.pick(isas);
  result.oddStrides = random.chance(0.2);
  result.program = generateLarge(kind, length, type, shape, random.next());
  result.what =
      std::string(name(kind)) + ", seed " + std::to_string(seed) + ", length " +
      std::to_string(length) + ", " + std::string(tessera::name(type)) + ", " +
      std::string(tessera::name(result.isa)) + ", " +
      std::to_string(shape.rows) + " x " + std::to_string(shape.middle) +
      " x " + std::to_string(shape.columns) +
      (result.oddStrides ? ", odd strides" : "");
  return result;
}

/// What is refused says which limit it exceeds.
void expectRefusal(const Error &error) {
  EXPECT_EQ(error.code, "unsupported.size") << error.str();
  EXPECT_EQ(error.family, ErrorFamily::Unsupported);
  EXPECT_THAT(error.message, HasSubstr("more than "));
}

struct Totals {
  int64_t programs = 0, refused = 0;
  double seconds = 0;
  int64_t growth = 0;
};

void compileWithin(const Case &one, Totals &totals) {
  SCOPED_TRACE(one.what);
  const std::string text = one.program.text();
  const std::vector<Argument> arguments =
      untouched(one.program, one.oddStrides);
  const Meter meter;
  Result<Program> program = Program::fromText(text, "large.mlir");
  ASSERT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.isa = one.isa;
  request.machine = plannedMachine();
  request.useTunedPlans = false;
  Result<CompiledKernel> compiled = program->compileFor(arguments, request);
  const double seconds = meter.seconds();
  const int64_t growth = meter.growth();
  ++totals.programs;
  totals.seconds = std::max(totals.seconds, seconds);
  totals.growth = std::max(totals.growth, growth);
  if (!compiled) {
    ++totals.refused;
    expectRefusal(compiled.error());
  }
  if (!isMeasured)
    return;
  EXPECT_LT(seconds, mostSeconds);
  EXPECT_LT(growth, mostMegabytes);
}

void report(const Totals &totals) {
  std::cout << totals.programs << " programs, " << totals.refused
            << " refused; at most " << totals.seconds << " s and "
            << totals.growth << " MB\n";
}

class LargePrograms : public testing::TestWithParam<int> {};

TEST_P(LargePrograms, AreCompiledInBoundedTimeAndMemory) {
  Totals totals;
  compileWithin(caseOf(LargeKind(GetParam()), 1, 300), totals);
  report(totals);
  EXPECT_EQ(totals.refused, 0);
}
INSTANTIATE_TEST_SUITE_P(Kinds, LargePrograms,
                         testing::Range(0, int(largeKinds)));

int64_t fromEnvironment(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

class LargeProgramsSoak : public testing::TestWithParam<int> {};

TEST_P(LargeProgramsSoak, AreCompiledInBoundedTimeAndMemory) {
  const int64_t first = fromEnvironment("TESSERA_LARGE_FIRST", 100);
  const int64_t count = fromEnvironment("TESSERA_LARGE_COUNT", 40);
  Totals totals;
  for (int64_t seed = first; seed < first + count; ++seed)
    compileWithin(caseOf(LargeKind(GetParam()), uint64_t(seed),
                         seed % 4 == 0 ? 3000 : 600),
                  totals);
  report(totals);
  // Most are no larger than what is compiled.
  EXPECT_LE(3 * totals.refused, totals.programs);
}
INSTANTIATE_TEST_SUITE_P(Kinds, LargeProgramsSoak,
                         testing::Range(0, int(largeKinds)));

/// Of small arrays with any strides, and what they hold beside the arrays.
void agree(LargeKind kind, int64_t length, DType type, uint64_t seed) {
  std::vector<Isa> isas = {hostIsa()};
  if (hostIsa() != Isa::Avx2 && hostRuns(Isa::Avx2))
    isas.push_back(Isa::Avx2);
  const RandomProgram program =
      generateLarge(kind, length, type, {2, seed % 3 == 0 ? 3 : 0, 37}, seed);
  const Outcome outcome = runOnce(program, isas);
  EXPECT_EQ(outcome.status, Status::Agrees)
      << name(kind) << ", seed " << seed << ": " << outcome.message;
  EXPECT_LT(outcome.undecided * 5, outcome.compared) << name(kind);
}

TEST(LargeProgramsRun, AgreeWithTheInterpreter) {
  agree(LargeKind::Functions, 60, DType::F32, 1);
  agree(LargeKind::FanOut, 120, DType::BF16, 2);
  agree(LargeKind::ManyReductions, 60, DType::F64, 3);
}

TEST(LargeProgramsRunSoak, AgreeWithTheInterpreter) {
  for (uint64_t seed = 10; seed < 16; ++seed)
    for (int kind = 0; kind < largeKinds; ++kind)
      for (DType type : {DType::F32, DType::BF16, DType::F64})
        // What depends on a hundred sums, one upon another, has bounds that
        // decide nothing.
        agree(LargeKind(kind),
              LargeKind(kind) == LargeKind::Reductions ? 8 : 150, type,
              seed * 31 + uint64_t(kind));
}

//===----------------------------------------------------------------------===//
// Functions that are called
//===----------------------------------------------------------------------===//

constexpr int64_t elements = 77;

/// `length` times the function, one after another.
std::string chainOf(const std::string &function, const std::string &element,
                    bool strict, int64_t length) {
  const std::string in = "!tile.view<" + element + ", 1, read>";
  const std::string out = "!tile.view<" + element + ", 1, write>";
  const std::string type = tileType(element, {"c"});
  std::string text =
      "module attributes {tile.version = 1 : i64} {\n"
      "tile.kernel @k(%x: " +
      in + ", %y: " + out + ")" + (strict ? " tier(strict)" : "") +
      " {\n%n = tile.extent %x, 0 : " + in +
      "\ntile.dim \"c\" = %n\n%v0 = tile.load %x[\"c\"] : " + in + " -> " +
      type + "\n";
  for (int64_t i = 0; i < length; ++i)
    text += "%v" + std::to_string(i + 1) + " = " + function + " %v" +
            std::to_string(i) + " : " + type + "\n";
  return text + "tile.store %v" + std::to_string(length) +
         ", %y[\"c\"] : " + type + ", " + out + "\n}\n}\n";
}

template <typename Float> std::vector<Float> argumentsOfFunctions() {
  std::vector<Float> values = {
      Float(0),   Float(-0.0), Float(1e-40), Float(INFINITY), Float(-INFINITY),
      Float(NAN), Float(3e38), Float(-700),  Float(88.8),     Float(1e9)};
  Random random(7);
  while (int64_t(values.size()) < elements)
    values.push_back(Float((random.unit() * 2 - 1) *
                           std::pow(2.0, double(random.between(-20, 20)))));
  return values;
}

/// The text's kernel, run once or again and again on what it gave before.
template <typename Float>
void apply(const std::string &text, Isa isa, int64_t times, bool calls,
           std::vector<Float> &values) {
  Result<Program> program = Program::fromText(text, "k.mlir");
  ASSERT_TRUE(program.ok()) << program.error().str();
  constexpr DType type = sizeof(Float) == 4 ? DType::F32 : DType::F64;
  std::vector<Float> results(values.size());
  const std::vector<int64_t> extents = {elements}, strides = {1};
  CompileRequest request;
  request.isa = isa;
  std::optional<CompiledKernel> compiled;
  for (int64_t time = 0; time < times; ++time) {
    const std::vector<Argument> arguments = {
        TensorRef{values.data(), type, extents, strides},
        TensorRef{results.data(), type, extents, strides}};
    if (!compiled) {
      Result<CompiledKernel> made = program->compileFor(arguments, request);
      ASSERT_TRUE(made.ok()) << made.error().str();
      compiled.emplace(std::move(*made));
    }
    Result<void> run = compiled->executable.launch(arguments);
    ASSERT_TRUE(run.ok()) << run.error().str();
    std::swap(values, results);
  }
  if (calls)
    EXPECT_THAT(compiled->report, HasSubstr("remark.calls"));
  else
    EXPECT_THAT(compiled->report, Not(HasSubstr("remark.calls")));
}

struct CalledFunction {
  const char *name;
  /// Uses that are more than are evaluated in their place.
  int64_t uses;
};
const std::vector<CalledFunction> calledFunctions = {
    {"math.sin", 30},    {"math.cos", 30},     {"math.exp", 160},
    {"math.exp2", 200},  {"math.expm1", 90},   {"math.tanh", 160},
    {"math.erf", 100},   {"math.log", 120},    {"math.log2", 120},
    {"math.log1p", 100}, {"math.rsqrt", 2200}, {"tile.sigmoid", 160}};

template <typename Float>
void expectSameBits(const std::string &element, const CalledFunction &function,
                    Isa isa, bool strict) {
  SCOPED_TRACE(std::string(function.name) + " " + element + " " +
               std::string(tessera::name(isa)) + (strict ? " strict" : ""));
  std::vector<Float> once = argumentsOfFunctions<Float>(), often = once;
  apply(chainOf(function.name, element, strict, function.uses), isa, 1,
        /*calls=*/true, once);
  apply(chainOf(function.name, element, strict, 1), isa, function.uses,
        /*calls=*/false, often);
  for (int64_t i = 0; i < elements; ++i)
    EXPECT_TRUE(
        std::memcmp(&once[size_t(i)], &often[size_t(i)], sizeof(Float)) == 0 ||
        (std::isnan(once[size_t(i)]) && std::isnan(often[size_t(i)])))
        << i << ": " << once[size_t(i)] << " " << often[size_t(i)];
}

TEST(CalledFunctions, HaveTheBitsOfThoseInPlace) {
  bool strict = false;
  for (const CalledFunction &function : calledFunctions) {
    if (function.uses > 500)
      continue;
    for (Isa isa : {Isa::Avx512, Isa::Avx2})
      if (hostRuns(isa))
        expectSameBits<float>("f32", function, isa, strict = !strict);
  }
}

/// The predicted time of one tile of a chain.
double predictedOf(int64_t uses) {
  Result<Program> program = Program::fromText(
      chainOf("math.tanh", "f32", /*strict=*/false, uses), "k.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.extents = {{1000}, {1000}};
  request.isa = Isa::Avx512;
  request.machine = plannedMachine();
  Result<CompiledKernel> compiled = program->compile(request);
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  for (const PlanCandidate &candidate : compiled->plan->candidates)
    if (candidate.code == "chosen")
      return candidate.nanoseconds.value_or(0);
  return 0;
}

// Calls take what they call, and a little more.
TEST(CalledFunctions, HaveAPrice) {
  const double inPlace = predictedOf(40), called = predictedOf(400);
  EXPECT_GT(called, 9 * inPlace);
  EXPECT_LT(called, 30 * inPlace);
}

TEST(CalledFunctionsSoak, HaveTheBitsOfThoseInPlace) {
  for (const CalledFunction &function : calledFunctions)
    for (Isa isa : hostIsas())
      for (bool strict : {false, true}) {
        expectSameBits<float>("f32", function, isa, strict);
        expectSameBits<double>("f64", function, isa, strict);
      }
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

Result<CompiledKernel> compileLarge(LargeKind kind, int64_t length,
                                    LargeShape shape, DType type = DType::F32) {
  const RandomProgram large = generateLarge(kind, length, type, shape, 5);
  Result<Program> program = Program::fromText(large.text(), "large.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.isa = Isa::Avx512;
  request.machine = plannedMachine();
  return program->compileFor(untouched(large, false), request);
}

/// Sums of squares of what is left of a row by the ones before: each loop
/// evaluates again what they did, where rows are too long to be kept.
std::string sumsOfSquares(int64_t sums) {
  const std::string in = "!tile.view<f32, 1, read>";
  const std::string out = "!tile.view<f32, 1, write>";
  const std::string type = tileType("f32", {"c"});
  std::string text =
      "module attributes {tile.version = 1 : i64} {\n"
      "tile.kernel @k(%x: " +
      in + ", %y: " + out + ") {\n%n = tile.extent %x, 0 : " + in +
      "\ntile.dim \"c\" = %n\n%v0 = tile.load %x[\"c\"] : " + in + " -> " +
      type + "\n";
  for (int64_t i = 0; i < sums; ++i) {
    const std::string n = std::to_string(i);
    text += "%q" + n + " = arith.mulf %v" + n + ", %v" + n + " : " + type +
            "\n%s" + n + " = tile.reduce add unordered %q" + n +
            " over [\"c\"] : " + type + " -> f32\n%b" + n +
            " = tile.broadcast %s" + n + " : f32 -> " + type + "\n%v" +
            std::to_string(i + 1) + " = arith.subf %v" + n + ", %b" + n +
            " : " + type + "\n";
  }
  return text + "tile.store %v" + std::to_string(sums) +
         ", %y[\"c\"] : " + type + ", " + out + "\n}\n}\n";
}

TEST(LargeProgramLimits, AreNamedBeforeAnythingIsRealized) {
  const Meter meter;
  auto refused = [](const Result<CompiledKernel> &compiled,
                    const std::string &limit) {
    ASSERT_FALSE(compiled.ok()) << limit;
    expectRefusal(compiled.error());
    EXPECT_THAT(compiled.error().message, HasSubstr(limit));
  };
  refused(compileLarge(LargeKind::Arithmetic, 40000, {4, 0, 1000}),
          "operations, more than 30000");
  refused(compileLarge(LargeKind::Reductions, 6000, {4, 0, 1000}),
          "is more than 1000000");
  Result<Program> squares = Program::fromText(sumsOfSquares(400), "k.mlir");
  ASSERT_TRUE(squares.ok()) << squares.error().str();
  CompileRequest request;
  request.extents = {{10'000'000}, {10'000'000}};
  refused(squares->compile(request), "loops that evaluate");
  // Realizing them would take several seconds.
  if (isMeasured)
    EXPECT_LT(meter.seconds(), mostSeconds);
}

// Blocks are made of structured loops and branches in memory that is linear in
// their number.
TEST(LargeProgramLimits, ManyLoopsTakeLittleMemory) {
  const Meter meter;
  Result<Program> program = Program::fromText(sumsOfSquares(550), "k.mlir");
  ASSERT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.extents = {{1003}, {1003}};
  Result<CompiledKernel> compiled = program->compile(request);
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  if (isMeasured)
    EXPECT_LT(meter.growth(), 150);
}

TEST(LargeProgramLimits, LongCodeIsShortenedAndSaysSo) {
  Result<CompiledKernel> usual =
      compileLarge(LargeKind::LongLived, 60, {64, 0, 1003});
  ASSERT_TRUE(usual.ok()) << usual.error().str();
  for (const char *remark : {"remark.calls", "remark.short", "remark.long"})
    EXPECT_THAT(usual->report, Not(HasSubstr(remark)));

  Result<CompiledKernel> large =
      compileLarge(LargeKind::LongLived, 1200, {64, 0, 1003});
  ASSERT_TRUE(large.ok()) << large.error().str();
  EXPECT_THAT(large->report, HasSubstr("remark.short"));
  EXPECT_THAT(large->report, Not(HasSubstr("remark.long")));
  EXPECT_EQ(large->plan->candidates[0].code, "admission.instructions");
  for (const StagePlan &stage : large->plan->stages)
    for (const NestPlan &nest : stage.nests)
      EXPECT_LE(nest.unroll, 2) << nest.roots;

  Result<CompiledKernel> longer =
      compileLarge(LargeKind::LongLived, 5000, {64, 0, 1003});
  ASSERT_TRUE(longer.ok()) << longer.error().str();
  EXPECT_THAT(longer->report, HasSubstr("remark.long"));
}

} // namespace
} // namespace tessera::fuzz
