//===- test/unit/session/session_test.cpp - Runs and their verdicts -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/session.h"

#include "kernels/elements.h"
#include "session/placement.h"
#include "tessera/npy.h"

#include "gmock/gmock.h"

namespace tessera::session {
namespace {

using ::testing::HasSubstr;

const kernels::Operator &op(std::string_view name) {
  return *kernels::findOperator(name);
}

std::string failure(const Result<RunResult> &result) {
  return result ? result->failures() : result.error().str();
}

#define EXPECT_PASSES(run)                                                     \
  do {                                                                         \
    Result<RunResult> outcome = (run);                                         \
    EXPECT_TRUE(outcome && outcome->passed()) << failure(outcome);             \
  } while (false)

/// The message of a request that must fail.
Error errorOf(std::string_view name, const RunRequest &request,
              const RunValues &values = {}) {
  Result<RunResult> result = runOperator(op(name), request, values);
  if (!result)
    return result.error();
  ADD_FAILURE() << "expected an error";
  return {};
}

//===----------------------------------------------------------------------===//
// Judging
//===----------------------------------------------------------------------===//

Result<TensorRef> noInterpreter() {
  return Error{ErrorFamily::Internal, "test", "no interpreter", {}};
}

TEST(Verify, ReportsWorstErrorAndFirstWrongElement) {
  float values[] = {1, 2.5F, 3, 9};
  TensorRef actual = TensorRef::dense(values, DType::F32, {2, 2});
  Expected expected;
  expected.floats = {
      {1, 0, false}, {2, 1, false}, {3, 0, false}, {4, 1, false}};
  Result<OutputResult> result =
      judgeOutput("y", actual, expected, noInterpreter);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->passed());
  EXPECT_EQ(result->wrong, 1);
  EXPECT_EQ(result->maxError, 5);
  EXPECT_EQ(result->bound, 1);
  EXPECT_EQ(result->boundUsed, 0.5);
  ASSERT_TRUE(result->firstWrong);
  EXPECT_EQ(result->firstWrong->index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(result->firstWrong->str(), "[1, 1]: found 9, expected 4 within 1");
}

TEST(Verify, NanMatchesNanAlone) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  float values[] = {nan, 1, nan};
  TensorRef actual = TensorRef::dense(values, DType::F32, {3});
  Expected expected;
  expected.floats = {Bounded::nan(), Bounded::nan(), Bounded::exact(1)};
  Result<OutputResult> result =
      judgeOutput("y", actual, expected, noInterpreter);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->wrong, 2);
}

TEST(Verify, UndecidedElementsAreComparedWithTheInterpreter) {
  float inf = std::numeric_limits<float>::infinity();
  float values[] = {inf, 1}, reference[] = {inf, 2};
  TensorRef actual = TensorRef::dense(values, DType::F32, {2});
  Expected expected;
  expected.floats = {Bounded::undecided(3e38L), Bounded::undecided(1)};
  Result<OutputResult> result =
      judgeOutput("y", actual, expected, [&]() -> Result<TensorRef> {
        return TensorRef::dense(reference, DType::F32, {2});
      });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->comparedWithInterpreter, 2);
  EXPECT_EQ(result->wrong, 1);
  EXPECT_FALSE(judgeOutput("y", actual, expected, noInterpreter));
}

TEST(Verify, KnownOutcomesNeedNoInterpreter) {
  float inf = std::numeric_limits<float>::infinity();
  float nan = std::numeric_limits<float>::quiet_NaN();
  float big = 0x1p127F;
  Bounded sum{big, 0x1p105L, true, bounded::PlusInfinity};
  auto wrong = [&](float found, float reference) {
    TensorRef actual = TensorRef::dense(&found, DType::F32, {1});
    Expected expected;
    expected.floats = {sum};
    Result<OutputResult> result =
        judgeOutput("y", actual, expected, [&]() -> Result<TensorRef> {
          return TensorRef::dense(&reference, DType::F32, {1});
        });
    EXPECT_TRUE(result) << (result ? "" : result.error().str());
    return result ? result->wrong : -1;
  };
  // The interpreter overflowed, another grouping need not, and the other way.
  EXPECT_EQ(wrong(big, inf), 0);
  EXPECT_EQ(wrong(inf, big), 0);
  EXPECT_EQ(wrong(-inf, big), 1);
  EXPECT_EQ(wrong(nan, inf), 1);
  EXPECT_EQ(wrong(big / 2, inf), 1);
  EXPECT_EQ(wrong(big / 2, big), 1);
}

TEST(Verify, IntegersMustBeEqual) {
  int64_t values[] = {1, -1};
  TensorRef actual = TensorRef::dense(values, DType::I64, {2});
  Expected expected;
  expected.integers = {1, 0};
  Result<OutputResult> result =
      judgeOutput("index", actual, expected, noInterpreter);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->wrong, 1);
  EXPECT_EQ(result->maxError, 1);
}

TEST(Verify, SizesMustAgree) {
  float value = 0;
  Expected expected;
  Result<OutputResult> result = judgeOutput(
      "y", TensorRef::dense(&value, DType::F32, {1}), expected, noInterpreter);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().family, ErrorFamily::Internal);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

TEST(Session, OneCallRunsAndVerifies) {
  EXPECT_PASSES(
      runOperator(op("softmax"), {.dims = {{"rows", 3}, {"cols", 37}}}));
}

TEST(Session, OneCompilationServesManyRuns) {
  Result<CompiledOperator> compiled = CompiledOperator::create(
      op("rms_norm"), {.dims = {{"rows", 3}, {"cols", 37}}});
  ASSERT_TRUE(compiled) << compiled.error().str();
  using kernels::ValueClass;
  for (ValueClass valueClass :
       {ValueClass::Normal, ValueClass::NegativeInfinity,
        ValueClass::SprinkledNan, ValueClass::Subnormal, ValueClass::HugeOffset,
        ValueClass::SignedZeros, ValueClass::LargeMagnitude})
    EXPECT_PASSES(compiled->run({.seed = 7, .valueClass = valueClass}));
}

TEST(Session, TheInterpreterIsABackEnd) {
  Result<CompiledOperator> compiled = CompiledOperator::create(
      op("layer_norm"),
      {.dims = {{"rows", 3}, {"cols", 17}}, .backend = Backend::Interpreter});
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_EQ(compiled->compiled(), nullptr);
  EXPECT_PASSES(compiled->run());
}

TEST(Session, AnyStrideAndEitherEdge) {
  for (Edge edge : {Edge::End, Edge::Begin}) {
    EXPECT_PASSES(runOperator(
        op("add"), {.dims = {{"rows", 3}, {"cols", 17}},
                    .strides = {{"a", {0, 1}}, {"b", {-40, 2}}, {"y", {1, 5}}},
                    .edge = edge}));
  }
}

TEST(Session, OutputsMayTakeTheirInputsPlace) {
  EXPECT_PASSES(runOperator(op("softmax"), {.dims = {{"rows", 3}, {"cols", 37}},
                                            .inPlace = {{"y", "x"}}}));
}

TEST(Session, OptionalArraysAndScalars) {
  kernels::Dims dims = {{"m", 5}, {"n", 7}, {"k", 9}};
  EXPECT_PASSES(runOperator(op("gemm"), {.dims = dims}));
  EXPECT_PASSES(
      runOperator(op("gemm"), {.dims = dims,
                               .settings = {{"beta", 0.5}, {"trans_a", true}},
                               .present = {"c0"}}));
}

TEST(Session, GivenArraysImplyDimensions) {
  Result<Array> x = Array::allocate(DType::F32, {2, 5});
  ASSERT_TRUE(x);
  ASSERT_TRUE(kernels::generate(x->view(), "x", {}));
  RunRequest request;
  request.inputs["x"] = x->view();
  Result<CompiledOperator> compiled =
      CompiledOperator::create(op("softmax"), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_EQ(compiled->dims().find("cols")->second, 5);
  EXPECT_PASSES(compiled->run());
  const TensorRef *y = compiled->array("y");
  ASSERT_NE(y, nullptr);
  double total = 0;
  for (double value : kernels::loadFloats(*y))
    total += value;
  EXPECT_NEAR(total, 2, 1e-5);
}

TEST(Session, RunsAreTimed) {
  Result<RunResult> result = runOperator(
      op("copy"), {.dims = {{"rows", 3}, {"cols", 17}}}, {.timeSeconds = 1e-4});
  ASSERT_TRUE(result && result->passed()) << failure(result);
  EXPECT_GE(result->timedRuns, 3);
  EXPECT_GT(result->seconds, 0);
}

TEST(Session, WithoutVerificationNothingPasses) {
  Result<RunResult> result = runOperator(
      op("copy"), {.dims = {{"rows", 1}, {"cols", 1}}}, {.verify = false});
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->passed());
  EXPECT_TRUE(result->problems.empty());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

constexpr const char *accumulate = R"(
!in = !tile.view<f32, 2, read>
!out = !tile.view<f32, 1, write>
module attributes {tile.version = 1 : i64} {
  tile.kernel @accumulate(%x: !in, %y: !out) {
    %rows = tile.extent %x, 0 : !in
    %cols = tile.extent %x, 1 : !in
    tile.dim "row" = %rows
    tile.dim "col" = %cols
    tile.parallel (%i) in ["row"] {
      %v = tile.load %x[%i, "col"] : !in -> tensor<?xf32, ["col"]>
      %s = tile.reduce add unordered %v over ["col"]
             : tensor<?xf32, ["col"]> -> f32
      %old = tile.load %y[%i] : !out -> f32
      %new = arith.addf %s, %old : f32
      tile.store %new, %y[%i] : f32, !out
    }
  }
})";

TEST(Session, TextIsVerifiedByTheInterpreter) {
  Result<Program> program = Program::fromText(accumulate, "accumulate.mlir");
  ASSERT_TRUE(program) << program.error().str();
  // A writable view that is read begins with the values given for it.
  float y[] = {100, 200};
  RunRequest request;
  request.dims = {{"row", 2}, {"col", 33}};
  request.inputs["y"] = TensorRef::dense(y, DType::F32, {2});
  Result<CompiledOperator> compiled =
      CompiledOperator::create(std::move(*program), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_PASSES(compiled->run());
  EXPECT_GT(kernels::loadFloats(*compiled->array("y"))[1], 100);
}

TEST(Session, TextNeedsItsExtents) {
  Result<Program> program = Program::fromText(accumulate, "accumulate.mlir");
  ASSERT_TRUE(program);
  Result<RunResult> result =
      runProgram(std::move(*program), {.dims = {{"row", 2}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().family, ErrorFamily::Usage);
  EXPECT_EQ(result.error().message,
            "dimension 'col' of kernel 'accumulate' is not known; give --dims "
            "col=N, or an array that has it: --input x=FILE.npy");
}

/// Rows of x in the order of ids: axis 0 of x is no dimension.
constexpr const char *take = R"(
!m = !tile.view<f32, 2, read>
!o = !tile.view<f32, 2, write>
!i = !tile.view<i64, 1, read>
!t = tensor<?xi64, ["token"]>
module attributes {tile.version = 1 : i64} {
  tile.kernel @take(%x: !m, %ids: !i, %y: !o) {
    %cols = tile.extent %x, 1 : !m
    %n = tile.extent %ids, 0 : !i
    tile.dim "token" = %n
    tile.dim "col" = %cols
    %id = tile.load %ids["token"] : !i -> !t
    %r = tile.load %x[%id, "col"] at(!t)
           : !m -> tensor<?x?xf32, ["token", "col"]>
    tile.store %r, %y["token", "col"]
      : tensor<?x?xf32, ["token", "col"]>, !o
  }
})";

TEST(Session, TextExtentsFollowFromGivenArraysAndDimensions) {
  float x[5 * 3] = {};
  int64_t ids[] = {4, 0};
  for (int i = 0; i < 15; ++i)
    x[i] = static_cast<float>(i);
  const TensorRef table = TensorRef::dense(x, DType::F32, {5, 3});
  const TensorRef rows = TensorRef::dense(ids, DType::I64, {2});
  auto attempt = [&](kernels::Dims dims, Arrays inputs) {
    Result<Program> program = Program::fromText(take, "take.mlir");
    EXPECT_TRUE(program) << program.error().str();
    RunRequest request;
    request.dims = std::move(dims);
    request.inputs = std::move(inputs);
    return runProgram(std::move(*program), request);
  };
  EXPECT_PASSES(attempt({}, {{"x", table}, {"ids", rows}}));
  EXPECT_PASSES(attempt({{"token", 2}}, {{"x", table}}));
  EXPECT_PASSES(attempt({{"col", 3}}, {{"x", table}, {"ids", rows}}));

  auto refusal = [&](kernels::Dims dims, Arrays inputs) {
    Result<RunResult> result = attempt(std::move(dims), std::move(inputs));
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(refusal({}, {{"x", table}}),
            "dimension 'token' of kernel 'take' is not known; give --dims "
            "token=N, or an array that has it: --input ids=FILE.npy, "
            "--input y=FILE.npy");
  EXPECT_EQ(refusal({{"token", 2}}, {}),
            "extent 0 of 'x' is no dimension of the kernel and does not follow "
            "from any; give the array with --input x=FILE.npy, or make the "
            "extent a dimension that --dims can give: %n = tile.extent %x, 0, "
            "then tile.dim \"n\" = %n");
  EXPECT_EQ(refusal({{"col", 4}}, {{"x", table}, {"ids", rows}}),
            "dimension 'col' is 4, but axis 1 of the given array 'x' has "
            "extent 3");
  EXPECT_THAT(refusal({{"row", 4}}, {{"x", table}, {"ids", rows}}),
              HasSubstr("has no dimension 'row'; it has token, col"));
}

constexpr const char *multiplyAdd = R"(
!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>
!vec = tensor<?xf32, ["n"]>
module attributes {tile.version = 1 : i64} {
  tile.kernel @multiply_add(%a: !in, %b: !in, %c: !in, %y: !out) {
    %e = tile.extent %a, 0 : !in
    tile.dim "n" = %e
    %x = tile.load %a["n"] : !in -> !vec
    %z = tile.load %b["n"] : !in -> !vec
    %w = tile.load %c["n"] : !in -> !vec
    %p = arith.mulf %x, %z : !vec
    %s = arith.addf %p, %w : !vec
    tile.store %s, %y["n"] : !vec, !out
  }
})";

// Fused, the product that overflows comes back; the interpreter rounds it.
TEST(Session, AFusedProductMayAvoidAnOverflow) {
  Result<Program> program = Program::fromText(multiplyAdd, "fma.mlir");
  ASSERT_TRUE(program) << program.error().str();
  std::vector<float> a(37, 0x1p64F), b(37, 0x1p64F), c(37, -0x1p127F);
  c[3] = 0x1p127F;
  RunRequest request;
  for (auto [name, values] : {std::pair{"a", &a}, {"b", &b}, {"c", &c}})
    request.inputs[name] = TensorRef::dense(values->data(), DType::F32, {37});
  EXPECT_PASSES(runProgram(std::move(*program), request));
}

// Whatever order a plan takes, in f32 and in storage types.
TEST(Session, SumsThatOverflowInSomeOrderAreAccepted) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    std::vector<float> values;
    for (int64_t i = 0; i < 3 * 67; ++i)
      values.push_back((i % 67 < 34) == (i < 67) ? 0x1.8p127F : -0x1.8p127F);
    Result<Array> x = Array::allocate(dtype, {3, 67});
    ASSERT_TRUE(x);
    kernels::forEachElement(x->view(), [&](void *address, int64_t i) {
      kernels::storeFloatElement(dtype, address, values[i]);
    });
    for (const char *name : {"row_sum", "row_mean", "softmax"}) {
      RunRequest request{.dtype = dtype};
      request.inputs["x"] = x->view();
      EXPECT_PASSES(runOperator(op(name), request));
    }
  }
}

//===----------------------------------------------------------------------===//
// Races and broken promises
//===----------------------------------------------------------------------===//

/// A kernel with `body` in a parallel region over the elements of x.
Program inParallel(const std::string &body) {
  Result<Program> program =
      Program::fromText(
          R"(!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>
module attributes {tile.version = 1 : i64} {
  tile.kernel @suspect(%x: !in, %y: !out) {
    %e = tile.extent %x, 0 : !in
    tile.dim "n" = %e
    %zero = arith.constant 0 : index
    %far = arith.constant 1000000 : index
    tile.parallel (%i) in ["n"] {
)" + body + "\n}\n}\n}\n",
          "suspect.mlir");
  EXPECT_TRUE(program) << program.error().str();
  return std::move(*program);
}

Result<RunResult> checkedRun(const std::string &body, int64_t n = 9,
                             Backend backend = Backend::Cpu) {
  std::vector<float> x(n, 1), y(n, 2);
  RunRequest request;
  request.backend = backend;
  request.inputs["x"] = TensorRef::dense(x.data(), DType::F32, {n});
  request.inputs["y"] = TensorRef::dense(y.data(), DType::F32, {n});
  return runProgram(inParallel(body), request, {.checkAccesses = true});
}

TEST(Accesses, ARaceIsFoundBeforeTheLaunch) {
  for (Backend backend : {Backend::Cpu, Backend::Interpreter}) {
    Result<RunResult> result =
        checkedRun("%v = tile.load %x[%i] : !in -> f32\n"
                   "tile.store %v, %y[%zero] : f32, !out",
                   9, backend);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().family, ErrorFamily::Diagnostic);
    EXPECT_EQ(result.error().code, "program.race");
    EXPECT_EQ(result.error().where.line, 11u);
    for (const char *part : {"kernel 'suspect'", "element [0] of 'y'", "n=0",
                             "n=1", "suspect.mlir:11"})
      EXPECT_THAT(result.error().message, HasSubstr(part));
  }
}

TEST(Accesses, ABrokenPromiseNeverReachesTheLaunch) {
  Result<RunResult> result =
      checkedRun("%o = arith.addi %i, %far : index\n"
                 "%v = tile.load %x[%o] promised : !in -> f32\n"
                 "tile.store %v, %y[%i] : f32, !out");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "program.out-of-bounds");
  EXPECT_THAT(result.error().message, HasSubstr("kernel 'suspect'"));
  EXPECT_THAT(result.error().message, HasSubstr("index 1000000"));
}

TEST(Accesses, CleanProgramsPassAndLargeOnesAreSkipped) {
  std::string copy = "%v = tile.load %x[%i] : !in -> f32\n"
                     "tile.store %v, %y[%i] : f32, !out";
  Result<RunResult> result = checkedRun(copy);
  EXPECT_TRUE(result && result->passed()) << failure(result);
  EXPECT_EQ(result->raceCheck, "passed");
  result = checkedRun(copy, maxCheckedElements);
  EXPECT_TRUE(result && result->passed()) << failure(result);
  EXPECT_EQ(result->raceCheck, "skipped, too large");
  result =
      runOperator(op("gemm"), {.dims = {{"m", 300}, {"n", 300}, {"k", 300}}},
                  {.verify = false, .checkAccesses = true});
  ASSERT_TRUE(result) << failure(result);
  EXPECT_EQ(result->raceCheck, "skipped, too large") << "too many steps";
  result = runOperator(op("copy"), {.dims = {{"rows", 2}, {"cols", 2}}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->raceCheck, "") << "not asked for";
}

//===----------------------------------------------------------------------===//
// Wrong requests
//===----------------------------------------------------------------------===//

TEST(SessionErrors, NameWhatIsWrong) {
  kernels::Dims dims = {{"rows", 2}, {"cols", 5}};
  EXPECT_THAT(errorOf("softmax", {.dims = {{"rows", 2}}}).message,
              HasSubstr("dimension 'cols' is not given"));
  EXPECT_THAT(errorOf("softmax", {.dims = {{"rows", 2}, {"kols", 5}}}).message,
              HasSubstr("no dimension 'kols'"));
  EXPECT_THAT(errorOf("rope", {.dims = dims}).message,
              HasSubstr("expected an even number"));
  EXPECT_THAT(errorOf("softmax", {.dims = dims, .dtype = DType::I32}).message,
              HasSubstr("not made for i32"));
  EXPECT_THAT(
      errorOf("softmax", {.dims = dims, .settings = {{"eps", 1.0}}}).message,
      HasSubstr("no scalar 'eps'"));
  EXPECT_THAT(errorOf("softmax", {.dims = dims, .present = {"mask"}}).message,
              HasSubstr("no optional parameter 'mask'"));
  EXPECT_THAT(errorOf("softmax", {.dims = {{"rows", int64_t{1} << 40},
                                           {"cols", int64_t{1} << 40}}})
                  .message,
              HasSubstr("more than 2^63 bytes"));
}

TEST(SessionErrors, ArraysMustFit) {
  float data[10] = {};
  auto with = [&](const char *name, TensorRef tensor, kernels::Dims dims = {}) {
    RunRequest request;
    request.dims = std::move(dims);
    request.inputs[name] = std::move(tensor);
    return request;
  };
  TensorRef matrix = TensorRef::dense(data, DType::F32, {2, 5});
  EXPECT_THAT(errorOf("softmax", with("z", matrix)).message,
              HasSubstr("no input 'z'"));
  EXPECT_THAT(errorOf("softmax", with("y", matrix)).message,
              HasSubstr("'y' is an output"));
  EXPECT_THAT(
      errorOf("softmax", with("x", TensorRef::dense(data, DType::F32, {10})))
          .message,
      HasSubstr("found rank 1 [10], expected rank 2"));
  EXPECT_THAT(
      errorOf("softmax", with("x", TensorRef::dense(data, DType::I32, {2, 5})))
          .message,
      HasSubstr("found i32, expected f32"));
  EXPECT_THAT(errorOf("softmax", with("x", matrix, {{"cols", 6}})).message,
              HasSubstr("axis 1 has extent 5, expected 6 (cols = 6)"));
  RunRequest two = with("x", matrix);
  two.inputs["w"] = TensorRef::dense(data, DType::F32, {4});
  EXPECT_THAT(errorOf("rms_norm", two).message, HasSubstr("from input 'w'"));
}

TEST(SessionErrors, ValuesOutOfRangeAreReportedBeforeAnythingIsWritten) {
  int64_t ids[] = {0, 9};
  RunRequest request;
  request.dims = {{"tokens", 2}, {"vocab", 3}, {"cols", 4}};
  request.inputs["ids"] = TensorRef::dense(ids, DType::I64, {2});
  Error error = errorOf("embedding", request);
  EXPECT_EQ(error.family, ErrorFamily::Launch);
}

TEST(Placement, CopiesBeginAtMultiplesOf64AndShareAsBefore) {
  std::vector<float> memory(5000, 1.5f);
  TensorRef first = TensorRef::dense(memory.data() + 1, DType::F32, {7, 33});
  TensorRef inside = TensorRef::dense(memory.data() + 34, DType::F32, {33});
  TensorRef other = TensorRef::dense(memory.data() + 1003, DType::F32, {9});
  Placement placed({first, inside, int64_t(3), other});
  auto view = [&](size_t i) {
    return std::get<TensorRef>(placed.arguments()[i]);
  };
  auto address = [&](size_t i) {
    return reinterpret_cast<uintptr_t>(view(i).data);
  };
  EXPECT_EQ(address(0) % 64, 0u);
  EXPECT_EQ(address(1), address(0) + 33 * sizeof(float));
  EXPECT_EQ(address(3) % 64, 0u);
  EXPECT_NE(address(3) % 4096, address(0) % 4096);
  EXPECT_EQ(std::get<int64_t>(placed.arguments()[2]), 3);
  EXPECT_EQ(static_cast<float *>(view(3).data)[8], 1.5f);
}

} // namespace
} // namespace tessera::session
