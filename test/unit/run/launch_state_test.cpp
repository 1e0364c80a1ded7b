//===- test/unit/run/launch_state_test.cpp - Bits under any launch --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits of compiled operators depend on the data alone: not on the number of
// threads, the pool, the caller's floating-point state, launches at the same
// time or a fork.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "kernels/generate.h"
#include "tessera/npy.h"

#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <xmmintrin.h>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::CompiledOperator;
using session::RunRequest;
using session::RunValues;

using Bits = std::vector<std::vector<unsigned char>>;

/// The outputs as the last run left them.
Bits outputBits(const CompiledOperator &compiled) {
  Bits bits;
  for (const session::ArrayParameter &array : compiled.arrays())
    if (array.isOutput)
      bits.push_back(bytesOf(*compiled.array(array.name)));
  return bits;
}

class LaunchState : public testing::TestWithParam<Subject> {
protected:
  /// Extents whose grid is worth several threads.
  Dims largeDims() const {
    const kernels::Operator &op = *GetParam().op;
    Dims dims = smallDims(op);
    if (op.name == "attention")
      dims = {{"b", 2},  {"hq", 4}, {"hkv", 2}, {"q", 33},
              {"k", 65}, {"d", 32}, {"dv", 33}};
    else if (dims.count("m"))
      for (const char *name : {"m", "n", "k"})
        dims.find(name)->second = 99;
    else if (op.name == "embedding")
      dims = {{"tokens", 4001}, {"vocab", 97}, {"cols", 129}};
    else if (dims.count("h"))
      for (const char *name : {"c", "h", "w"})
        dims.find(name)->second = 29;
    else {
      dims.find("rows")->second = 391;
      dims.find("cols")->second = 1537;
    }
    return admissible(op, dims);
  }

  std::optional<CompiledOperator> compile(const Dims &dims, DType dtype) const {
    auto compiled = CompiledOperator::create(
        *GetParam().op, requestFor(GetParam(), dims, dtype));
    if (!compiled) {
      ADD_FAILURE() << compiled.error().str();
      return std::nullopt;
    }
    return std::move(*compiled);
  }

  /// Runs without the oracle.
  static Bits run(CompiledOperator &compiled, RunValues values) {
    values.verify = false;
    auto result = compiled.run(values);
    if (!result)
      ADD_FAILURE() << result.error().str();
    else
      EXPECT_TRUE(result->problems.empty()) << result->failures();
    return outputBits(compiled);
  }
};

/// The control bits: rounding, flush to zero, denormals are zero, masks.
constexpr unsigned controlBits = 0xffc0;

/// A host's pool: plain threads, made anew by every job.
class HostPool : public TaskPool {
public:
  int threads() const override { return 3; }
  void run(int64_t count, int threads, Task task, void *context) override {
    ++jobs;
    most = std::max(most, threads);
    std::atomic<int64_t> next = 0;
    auto work = [&](int worker) {
      const unsigned before = _mm_getcsr();
      if (state)
        _mm_setcsr(*state);
      for (int64_t index; (index = next++) < count;)
        task(context, index, worker);
      if (state && (_mm_getcsr() & controlBits) != *state)
        ++statesLost;
      _mm_setcsr(before);
    };
    std::vector<std::thread> others;
    for (int worker = 1; worker < threads; ++worker)
      others.emplace_back(work, worker);
    work(0);
    for (std::thread &other : others)
      other.join();
  }
  int jobs = 0;
  int most = 0;
  /// The floating-point state that the pool's threads have of their own.
  std::optional<unsigned> state;
  std::atomic<int> statesLost = 0;
};

TEST_P(LaunchState, ThreadsAndPoolsGiveTheSameBits) {
  std::optional<CompiledOperator> compiled = compile(largeDims(), DType::F32);
  ASSERT_TRUE(compiled);
  RunValues values;
  values.threads = 1;
  const Bits alone = run(*compiled, values);
  // More threads than this machine has.
  std::unique_ptr<TaskPool> many = makeTaskPool(7);
  for (int threads : {2, 3, 7, 0}) {
    values.threads = threads;
    values.pool = many.get();
    EXPECT_EQ(run(*compiled, values), alone) << threads << " threads";
  }
  HostPool host;
  values.threads = 0;
  values.pool = &host;
  EXPECT_EQ(run(*compiled, values), alone) << "the host's pool";
  EXPECT_GT(host.jobs, 0) << "the extents are too small for this test";
  EXPECT_LE(host.most, 3);
  host.most = 0;
  values.threads = 2;
  EXPECT_EQ(run(*compiled, values), alone) << "two threads of the host's pool";
  EXPECT_LE(host.most, 2);
}

TEST_P(LaunchState, WorkersFloatingPointStateIsKeptAndUnused) {
  std::optional<CompiledOperator> compiled = compile(largeDims(), DType::F32);
  ASSERT_TRUE(compiled);
  RunValues values;
  values.valueClass = ValueClass::Subnormal;
  values.threads = 1;
  const Bits expected = run(*compiled, values);
  HostPool host;
  host.state = _MM_MASK_MASK | _MM_ROUND_UP | _MM_FLUSH_ZERO_ON | 0x40u;
  values.threads = 0;
  values.pool = &host;
  EXPECT_EQ(run(*compiled, values), expected);
  EXPECT_GT(host.jobs, 0) << "the extents are too small for this test";
  EXPECT_EQ(host.statesLost, 0);
}

TEST_P(LaunchState, AddressesDoNotMatter) {
  const kernels::Operator &op = *GetParam().op;
  Dims dims = smallDims(op);
  dims.find(op.dims.back())->second = 4 * GetParam().machine.lanes() + 7;
  RunRequest request = requestFor(GetParam(), admissible(op, dims), DType::F32);
  Bits first;
  // Arrays that begin at a page, and arrays that end at one.
  for (session::Edge edge : {session::Edge::Begin, session::Edge::End}) {
    request.edge = edge;
    auto compiled = CompiledOperator::create(op, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    Bits bits = run(*compiled, {});
    if (first.empty())
      first = bits;
    EXPECT_EQ(bits, first);
  }
}

/// Sets the caller's floating-point state for a while.
class WithState {
public:
  explicit WithState(unsigned bits) : before(_mm_getcsr()) {
    _mm_setcsr((before & ~controlBits) | bits);
  }
  ~WithState() { _mm_setcsr(before); }
  WithState(const WithState &) = delete;
  WithState &operator=(const WithState &) = delete;

private:
  unsigned before;
};

TEST_P(LaunchState, CallersFloatingPointStateIsKeptAndUnused) {
  const kernels::Operator &op = *GetParam().op;
  Dims dims = smallDims(op);
  dims.find(op.dims.back())->second = 2 * GetParam().machine.lanes() + 4;
  std::optional<CompiledOperator> compiled =
      compile(admissible(op, dims), DType::F32);
  ASSERT_TRUE(compiled);
  const Executable &executable = compiled->compiled()->executable;
  for (ValueClass valueClass : {ValueClass::Normal, ValueClass::Subnormal}) {
    RunValues values;
    values.valueClass = valueClass;
    const Bits expected = run(*compiled, values);
    // The arrays stay as run() left them; only the outputs are made again.
    std::vector<Argument> arguments;
    for (const ProgramParameter &parameter : compiled->program().parameters()) {
      if (parameter.isView)
        arguments.emplace_back(*compiled->array(parameter.name));
      else
        std::visit([&](auto number) { arguments.emplace_back(number); },
                   parameter.defaultValue);
    }
    constexpr unsigned masked = _MM_MASK_MASK;
    for (unsigned bits :
         {masked | _MM_FLUSH_ZERO_ON | 0x40u, masked | _MM_ROUND_UP,
          masked | _MM_ROUND_DOWN | 0x40u,
          masked | _MM_ROUND_TOWARD_ZERO | _MM_FLUSH_ZERO_ON}) {
      unsigned found = 0;
      Result<void> status;
      {
        WithState state(bits);
        status = executable.launch(arguments);
        found = _mm_getcsr();
      }
      ASSERT_TRUE(status.ok()) << status.error().str();
      EXPECT_EQ(found & controlBits, bits);
      EXPECT_EQ(outputBits(*compiled), expected)
          << kernels::name(valueClass) << " values under MXCSR " << bits;
    }
  }
}

TEST_P(LaunchState, CompilesTheSameUnderAnyFloatingPointState) {
  const kernels::Operator &op = *GetParam().op;
  RunRequest request = requestFor(GetParam(), smallDims(op), DType::F32);
  auto expected = session::compileOperator(op, request);
  ASSERT_TRUE(expected.ok()) << expected.error().str();
  std::optional<Result<session::Compilation>> compiled;
  {
    WithState state(_MM_MASK_MASK | _MM_ROUND_UP | _MM_FLUSH_ZERO_ON | 0x40u);
    compiled.emplace(session::compileOperator(op, request));
  }
  ASSERT_TRUE(compiled->ok()) << compiled->error().str();
  EXPECT_TRUE((*compiled)->kernel.object == expected->kernel.object);
}

/// Every operator at one of the levels in turn: how programs are spread over
/// threads is the same at all. Products at every one.
std::vector<Subject> subjectsInTurn() {
  std::vector<Subject> all = subjects(cpuMachines()), result;
  std::map<const kernels::Operator *, std::vector<Subject>> byOperator;
  for (const Subject &subject : all)
    byOperator[subject.op].push_back(subject);
  for (const Subject &subject : all) {
    const std::vector<Subject> &own = byOperator[subject.op];
    const Subject &chosen = own[stableHash(subject.op->name) % own.size()];
    if (sumsProducts(*subject.op) || subject.machine.isa == chosen.machine.isa)
      result.push_back(subject);
  }
  return result;
}

std::string subjectName(const testing::TestParamInfo<Subject> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, LaunchState, testing::ValuesIn(subjectsInTurn()),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(Soak, LaunchState,
                         testing::ValuesIn(subjects(cpuMachines())),
                         subjectName);

TEST(InterpreterState, CallersFloatingPointStateIsKeptAndUnused) {
  for (const kernels::Operator &op : kernels::operators()) {
    RunRequest request;
    request.backend = session::Backend::Interpreter;
    request.dims = smallDims(op);
    auto compiled = CompiledOperator::create(op, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    RunValues values;
    values.valueClass = ValueClass::Subnormal;
    values.verify = false;
    ASSERT_TRUE(compiled->run(values).ok());
    const Bits expected = outputBits(*compiled);
    std::vector<Argument> arguments;
    for (const ProgramParameter &parameter : compiled->program().parameters()) {
      if (parameter.isView)
        arguments.emplace_back(*compiled->array(parameter.name));
      else
        std::visit([&](auto number) { arguments.emplace_back(number); },
                   parameter.defaultValue);
    }
    const unsigned bits =
        _MM_MASK_MASK | _MM_ROUND_UP | _MM_FLUSH_ZERO_ON | 0x40u;
    unsigned found = 0;
    {
      WithState state(bits);
      EXPECT_TRUE(compiled->program().interpret(arguments, {}).ok());
      found = _mm_getcsr();
    }
    EXPECT_EQ(found & controlBits, bits) << op.name;
    EXPECT_EQ(outputBits(*compiled), expected) << op.name;
  }
}

//===----------------------------------------------------------------------===//
// Several launches
//===----------------------------------------------------------------------===//

/// softmax of 400 x 513 on this host's best level, with arrays for several
/// launches at once.
class SeveralLaunches : public testing::Test {
protected:
  static constexpr int64_t rows = 400, cols = 513;

  void SetUp() override {
    auto result =
        session::compileOperator(*kernels::findOperator("softmax"),
                                 {.dims = {{"rows", rows}, {"cols", cols}}});
    ASSERT_TRUE(result.ok()) << result.error().str();
    kernel.emplace(std::move(result->kernel));
    x = std::vector<float>(static_cast<size_t>(rows * cols));
    ASSERT_TRUE(kernels::generate(ref(x), "x", {}).ok());
    expected = output();
    ASSERT_TRUE(launch(expected, {.threads = 1}));
  }

  static TensorRef ref(std::vector<float> &values) {
    return TensorRef::dense(values.data(), DType::F32, {rows, cols});
  }
  std::vector<float> output() const {
    return std::vector<float>(x.size(), -1.0f);
  }
  bool launch(std::vector<float> &y, const LaunchOptions &options = {}) {
    const std::vector<Argument> arguments = {ref(x), ref(y)};
    return kernel->executable.launch(arguments, options).ok();
  }

  std::optional<CompiledKernel> kernel;
  std::vector<float> x, expected;
};

TEST_F(SeveralLaunches, FromEightThreadsAtOnce) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 5; ++i) {
        std::vector<float> y = output();
        if (!launch(y, {.threads = caller % 3}) || y != expected)
          ++wrong;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SeveralLaunches, PreparedRunsAgreeWithLaunches) {
  std::vector<float> y = output();
  const std::vector<Argument> arguments = {ref(x), ref(y)};
  auto prepared = kernel->executable.prepare(arguments);
  ASSERT_TRUE(prepared.ok());
  for (int i = 0; i < 3; ++i) {
    std::fill(y.begin(), y.end(), -1.0f);
    ASSERT_TRUE(prepared->run().ok());
    EXPECT_EQ(y, expected);
  }
}

TEST(SeveralCompiles, FromFourThreadsAtOnce) {
  constexpr const char *names[] = {"softmax", "layer_norm", "gemm", "cumsum"};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  callers.reserve(std::size(names));
  for (const char *name : names)
    callers.emplace_back([&, name] {
      const kernels::Operator &op = *kernels::findOperator(name);
      RunRequest request;
      request.dims = smallDims(op);
      std::string first;
      for (int i = 0; i < 3; ++i) {
        auto compiled = session::compileOperator(op, request);
        if (!compiled) {
          ++wrong;
          return;
        }
        if (first.empty())
          first = compiled->kernel.object;
        if (compiled->kernel.object != first)
          ++wrong;
        auto result = session::runOperator(op, request);
        if (!result || !result->passed())
          ++wrong;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SeveralLaunches, InAChildAfterFork) {
  // The pool has workers by now; the child has none of them.
  std::vector<float> y = output();
  ASSERT_TRUE(launch(y));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30); // A child that hangs fails by this signal.
    bool isRight = true;
    for (int i = 0; i < 3; ++i) {
      std::vector<float> own = output();
      isRight &= launch(own) && own == expected;
    }
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(launch(y));
  EXPECT_EQ(y, expected);
}

} // namespace
} // namespace tessera::runtest
