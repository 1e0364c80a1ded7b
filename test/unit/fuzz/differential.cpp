//===- fuzz/differential.cpp - One program on two machines -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "differential.h"

#include "test/unit/emulation/emulator.h"

#include "driver/program.h"
#include "plan/plan_record.h"
#include "support/bounded.h"
#include "support/float_convert.h"
#include "support/guarded_buffer.h"

#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <sys/wait.h>
#include <unistd.h>

namespace tessera::fuzz {

using support::GuardedBuffer;

namespace {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Where a view's elements lie in its buffer.
struct Layout {
  std::vector<int64_t> strides;
  int64_t origin = 0;
  int64_t elements = 1;
};

Layout makeLayout(const ViewSpec &view, const std::vector<int64_t> &extents) {
  Random random(view.seed ^ 0x51ED270B);
  Layout layout;
  size_t rank = extents.size();
  layout.strides.assign(rank, 1);
  std::vector<size_t> order; // innermost first
  for (size_t axis = rank; axis-- > 0;)
    order.push_back(axis);
  bool plain = view.plainLayout || random.chance(0.35);
  if (!plain && random.chance(0.3))
    random.shuffle(order);
  int64_t next = !plain && random.chance(0.15) ? random.between(2, 3) : 1;
  int64_t span = 1;
  for (size_t axis : order) {
    bool isBroadcast = !plain && !view.writable && random.chance(0.12);
    bool isNegative = !plain && random.chance(0.15);
    int64_t last = std::max<int64_t>(extents[axis], 1) - 1;
    if (isBroadcast) {
      layout.strides[axis] = 0;
      continue;
    }
    layout.strides[axis] = isNegative ? -next : next;
    if (isNegative)
      layout.origin += last * next;
    span += last * next;
    next *= last + 1;
    if (!plain && random.chance(0.3))
      next += random.between(1, 19);
  }
  layout.elements = span;
  return layout;
}

/// Calls `visit(offset)` for each element in row-major order.
template <typename Visit>
void forEachElement(const std::vector<int64_t> &extents, const Layout &layout,
                    Visit visit) {
  for (int64_t extent : extents)
    if (extent == 0)
      return;
  std::vector<int64_t> index(extents.size(), 0);
  while (true) {
    int64_t offset = layout.origin;
    for (size_t axis = 0; axis < index.size(); ++axis)
      offset += index[axis] * layout.strides[axis];
    visit(offset);
    size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1])
      index[--axis] = 0;
    if (axis == 0)
      return;
  }
}

double specialValue(Random &random) {
  static const std::vector<double> values = {
      0.0,    -0.0,   1.0,     -1.0,
      1e-40,  -1e-42, 3e38,    -3e38,
      65504., 1e-7,   448.0,   std::numeric_limits<double>::infinity(),
      2.5,    -0.5,   88.7,    -std::numeric_limits<double>::infinity(),
      1e30,   0.1,    -1000.0, std::numeric_limits<double>::quiet_NaN()};
  return random.pick(values);
}

void writeElement(DType type, char *address, Contents contents,
                  Random &random) {
  int64_t size = sizeInBytes(type);
  if (contents == Contents::Wild) {
    uint64_t bits = random.next();
    std::memcpy(address, &bits, size);
    return;
  }
  if (isFloat(type)) {
    double value = random.unit() * 4 - 2;
    if (contents == Contents::SmallIntegers)
      value = double(random.between(-4, 8));
    if (contents == Contents::Special && random.chance(0.15))
      value = specialValue(random);
    support::storeFloat(type, address, value);
    return;
  }
  int64_t value = random.between(-3, 12);
  if (contents == Contents::Special && random.chance(0.2))
    value = static_cast<int64_t>(
        random.chance(0.5) ? random.next() : uint64_t(1) << random.below(64));
  if (type == DType::Bool)
    value = contents == Contents::Special && random.chance(0.2)
                ? random.between(0, 255)
                : value & 1;
  std::memcpy(address, &value, size);
}

struct ArgumentSet {
  std::vector<GuardedBuffer> buffers;
  std::vector<Argument> arguments;
};

/// One set of arguments; every call makes the same contents.
Result<ArgumentSet> makeArguments(const RandomProgram &program) {
  ArgumentSet set;
  std::vector<const ViewSpec *> views = program.usedViews();
  std::vector<TensorRef> tensors;
  for (const ViewSpec *view : views) {
    std::vector<int64_t> extents = program.extents(*view);
    const ViewSpec *other = nullptr;
    size_t otherNumber = 0;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (views[i]->name == view->sameAs && tensors[i].extents == extents &&
          !overlapsItself(tensors[i]))
        other = views[otherNumber = i];
    if (other) {
      tensors.push_back(tensors[otherNumber]);
      set.arguments.push_back(tensors.back());
      continue;
    }
    Layout layout = makeLayout(*view, extents);
    int64_t size = sizeInBytes(view->dtype);
    auto edge = (view->seed >> 8) & 1 ? GuardedBuffer::Edge::End
                                      : GuardedBuffer::Edge::Begin;
    Result<GuardedBuffer> buffer =
        GuardedBuffer::create(layout.elements * size, edge);
    if (!buffer)
      return buffer.error();
    char *data = buffer->as<char>();
    Random random(view->seed);
    bool isPoisoned = view->writable && (view->seed >> 9) & 1;
    if (!isPoisoned)
      forEachElement(extents, layout, [&](int64_t offset) {
        writeElement(view->dtype, data + offset * size, view->contents, random);
      });
    TensorRef tensor;
    tensor.data = data + layout.origin * size;
    tensor.dtype = view->dtype;
    tensor.extents = extents;
    tensor.strides = layout.strides;
    tensors.push_back(tensor);
    set.arguments.push_back(tensor);
    set.buffers.push_back(std::move(*buffer));
  }
  for (const ScalarSpec *scalar : program.usedScalars())
    if (isFloat(scalar->dtype))
      set.arguments.push_back(scalar->value);
    else
      set.arguments.push_back(static_cast<int64_t>(scalar->value));
  return set;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

std::string hexBytes(const char *bytes, int64_t size) {
  std::string text = "0x";
  for (int64_t i = size; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x",
                  static_cast<unsigned char>(bytes[i]));
    text += digits;
  }
  return text;
}

std::string show(DType type, const char *bytes) {
  std::string text = hexBytes(bytes, sizeInBytes(type));
  if (isFloat(type))
    text += " (" + std::to_string(support::loadFloat(type, bytes)) + ")";
  return text;
}

bool sameElement(DType type, const char *a, const char *b) {
  if (std::memcmp(a, b, sizeInBytes(type)) == 0)
    return true;
  return isFloat(type) && std::isnan(support::loadFloat(type, a)) &&
         std::isnan(support::loadFloat(type, b));
}

class Comparison {
public:
  Comparison(const RandomProgram &program, const ArgumentSet &expected,
             const ArgumentSet &actual, const InterpretReport *oracle,
             Outcome &outcome)
      : program(program), expected(expected), actual(actual), oracle(oracle),
        outcome(outcome) {}

  bool run(const std::string &where) {
    std::vector<const ViewSpec *> views = program.usedViews();
    for (size_t number = 0; number < views.size(); ++number)
      if (views[number]->writable &&
          !compareView(number, *views[number], where))
        return false;
    return compareRest(where);
  }

private:
  bool fail(const std::string &message) {
    outcome.status = Status::Differs;
    outcome.message = message;
    return false;
  }

  bool compareView(size_t number, const ViewSpec &view,
                   const std::string &where) {
    const auto &a = std::get<TensorRef>(expected.arguments[number]);
    const auto &b = std::get<TensorRef>(actual.arguments[number]);
    const std::vector<Bounded> *bounds = nullptr;
    if (oracle)
      for (const auto &output : oracle->outputs)
        if (output.argument == number)
          bounds = &output.elements;
    int64_t size = sizeInBytes(view.dtype), i = 0;
    bool good = true;
    Layout layout{a.strides, 0, 0};
    forEachElement(a.extents, layout, [&](int64_t offset) {
      int64_t position = i++;
      const char *x = static_cast<const char *>(a.data) + offset * size;
      const char *y = static_cast<const char *>(b.data) + offset * size;
      ++outcome.compared;
      if (!good || sameElement(view.dtype, x, y))
        return;
      std::string bound;
      if (bounds) {
        const Bounded &allowed = (*bounds)[position];
        double value;
        if (isFloat(view.dtype)) {
          value = support::loadFloat(view.dtype, y);
        } else {
          int64_t bits = 0;
          std::memcpy(&bits, y, size);
          value = 0;
          if (allowed.leftRange) {
            ++outcome.undecided;
            return;
          }
          (void)bits;
        }
        if (isFloat(view.dtype)) {
          bounded::Verdict verdict = bounded::judge(allowed, value, view.dtype);
          if (verdict == bounded::Verdict::Accept)
            return;
          // The interpreter has another value, so a known outcome is due.
          if (verdict == bounded::Verdict::Undecided && allowed.isUnknown()) {
            ++outcome.undecided;
            return;
          }
          char text[100];
          std::snprintf(text, sizeof text, ", oracle %.17Lg within %.3Lg",
                        allowed.value, allowed.radius);
          bound = text;
        }
      }
      good = fail(where + ": %" + view.name + " at element " +
                  std::to_string(position) + ": interpreter " +
                  show(view.dtype, x) + ", compiled " + show(view.dtype, y) +
                  bound);
    });
    return good;
  }

  /// Bytes that belong to no writable view must be as they were.
  bool compareRest(const std::string &where) {
    Result<ArgumentSet> fresh = makeArguments(program);
    if (!fresh)
      return fail(fresh.error().str());
    std::vector<const ViewSpec *> views = program.usedViews();
    for (size_t buffer = 0; buffer < actual.buffers.size(); ++buffer) {
      const GuardedBuffer &memory = actual.buffers[buffer];
      std::vector<bool> isElement(memory.size(), false);
      for (size_t number = 0; number < views.size(); ++number) {
        const auto &tensor = std::get<TensorRef>(actual.arguments[number]);
        int64_t base = static_cast<char *>(tensor.data) - memory.as<char>();
        if (!views[number]->writable || base < 0 || base >= memory.size())
          continue;
        int64_t size = sizeInBytes(tensor.dtype);
        forEachElement(tensor.extents, Layout{tensor.strides, 0, 0},
                       [&](int64_t offset) {
                         for (int64_t k = 0; k < size; ++k)
                           isElement[base + offset * size + k] = true;
                       });
      }
      const char *now = memory.as<char>();
      const char *before = fresh->buffers[buffer].as<char>();
      for (int64_t i = 0; i < memory.size(); ++i)
        if (!isElement[i] && now[i] != before[i])
          return fail(where + ": wrote to byte " + std::to_string(i) +
                      " of buffer " + std::to_string(buffer) +
                      ", which no writable view holds");
      if (!memory.slackIntact())
        return fail(where + ": wrote beside buffer " + std::to_string(buffer));
    }
    return true;
  }

  const RandomProgram &program;
  const ArgumentSet &expected, &actual;
  const InterpretReport *oracle;
  Outcome &outcome;
};

} // namespace

/// Decisions at random among those that are legal, or are not followed.
static PlanChoices randomChoices(const Plan &plan, Random &random) {
  PlanChoices choices;
  choices.keeping = static_cast<Keeping>(random.below(3));
  choices.passes = random.chance(0.5) ? Passes::Joined : Passes::Separate;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan &stage = plan.stages[i];
    choices.together[i] = random.between(1, stage.order.mostTogether);
    choices.prefetch[i] = static_cast<Prefetch>(random.below(3));
    if (stage.order.interior > 0)
      choices.edges[i] = random.chance(0.7) ? Edges::Apart : Edges::Checked;
    if (stage.order.mostSplits > 1 && random.chance(0.6))
      choices.splits[i] =
          random.between(1, std::min<int64_t>(stage.order.mostSplits, 7));
    for (const NestPlan &nest : stage.nests) {
      NestChoice &choice = choices.nests[nest.id];
      const NestAlternatives &can = nest.alternatives;
      if (!can.vectorDims.empty() && random.chance(0.7))
        choice.vectorDim = random.pick(can.vectorDims);
      if (random.chance(0.8))
        choice.unroll = random.between(1, std::max<int64_t>(can.mostUnroll, 4));
      if (random.chance(0.5))
        choice.tail = static_cast<TailForm>(random.below(3));
      if (random.chance(0.5))
        choice.tileRows = random.between(1, 8);
      if (random.chance(0.5))
        choice.packs = random.chance(0.5);
      if (random.chance(0.5))
        choice.reducedBlock = random.between(1, 9);
      if (can.hasEpilogue && random.chance(0.5))
        choice.epilogue = random.chance(0.5);
      if (can.transposes && random.chance(0.3))
        choice.transposes = random.chance(0.5);
      if (can.storesAround && random.chance(0.3))
        choice.storesAround = true;
    }
  }
  return choices;
}

/// Whether reductions are computed about a reference.
static bool joins(const Plan &plan) {
  for (const StagePlan &stage : plan.stages)
    for (const NestPlan &nest : stage.nests)
      if (!nest.law.empty())
        return true;
  return false;
}

static Outcome runAsGiven(const RandomProgram &program,
                          const std::vector<Isa> &isas) {
  Outcome outcome;
  auto stop = [&](Status status, const std::string &message) {
    outcome.status = status;
    outcome.message = message;
    return outcome;
  };
  Result<Program> parsed = Program::fromText(program.text(), "k.mlir");
  if (!parsed)
    return stop(Status::Invalid, parsed.error().str());

  Result<ArgumentSet> expected = makeArguments(program);
  if (!expected)
    return stop(Status::Invalid, expected.error().str());
  InterpretOptions options;
  options.stepLimit = 20'000'000;
  options.checkRaces = true;
  options.checkBounds = true;
  InterpretReport report;
  Result<void> strict =
      parsed->interpret(expected->arguments, options, &report);
  if (!strict)
    return stop(Status::Invalid, "interpreter: " + strict.error().str());
  if (!report.conflicts.empty())
    return stop(Status::Races, report.conflicts[0].toError().str());
  if (std::optional<Error> finding = report.firstFinding())
    return stop(Status::Invalid, "interpreter: " + finding->str());

  outcome.exact = program.isExact();
  // What plans that join reductions may give has bounds of its own.
  InterpretReport oracle, joined;
  auto interpretOracle = [&](InterpretReport &into, bool joins) {
    Result<ArgumentSet> scratch = makeArguments(program);
    InterpretOptions oracleOptions;
    oracleOptions.mode = interp::Mode::Oracle;
    oracleOptions.stepLimit = options.stepLimit;
    if (joins)
      for (auto [storage, rules] :
           {std::pair(DType::F32, &oracleOptions.arithmeticF32),
            std::pair(DType::F64, &oracleOptions.arithmeticF64)}) {
        *rules = Arithmetic::forTier(storage);
        (*rules)->aboutReference = true;
        (*rules)->allowShift();
      }
    return parsed->interpret(scratch->arguments, oracleOptions, &into);
  };
  if (!outcome.exact) {
    if (Result<void> run = interpretOracle(oracle, false); !run)
      return stop(Status::Invalid, "oracle: " + run.error().str());
  }

  for (Isa isa : isas) {
    std::string where(name(isa));
    Result<ArgumentSet> actual = makeArguments(program);
    if (!actual)
      return stop(Status::Invalid, actual.error().str());
    CompileRequest request;
    request.isa = isa;
    Result<CompiledKernel> compiled =
        parsed->compileFor(actual->arguments, request);
    if (!compiled)
      return stop(compiled.error().family == ErrorFamily::Unsupported
                      ? Status::Unsupported
                      : Status::Differs,
                  where + ": compile: " + compiled.error().str());
    LaunchOptions launch;
    launch.threads = program.seed % 3 == 0 ? 2 : 1;
    Result<void> run =
        emulation::launch(isa, *compiled, actual->arguments, launch);
    if (!run)
      return stop(Status::Differs, where + ": launch: " + run.error().str());
    // What a plan may give: that of any, or of one that joins reductions.
    auto compare = [&](const Plan &plan, const ArgumentSet &found,
                       const std::string &what) {
      const InterpretReport *bounds = outcome.exact ? nullptr : &oracle;
      if (bounds && joins(plan)) {
        if (joined.outputs.empty())
          if (Result<void> made = interpretOracle(joined, true); !made) {
            stop(Status::Invalid, "oracle: " + made.error().str());
            return false;
          }
        bounds = &joined;
      }
      return Comparison(program, *expected, found, bounds, outcome).run(what);
    };
    if (!compare(*compiled->plan, *actual, where))
      return outcome;

    Random random(program.seed ^ 0x9D2C5680);
    for (int64_t number = 0; number < program.plans; ++number) {
      request.choices = std::make_shared<const PlanChoices>(
          randomChoices(*compiled->plan, random));
      Result<ArgumentSet> fresh = makeArguments(program);
      if (!fresh)
        return stop(Status::Invalid, fresh.error().str());
      Result<CompiledKernel> other =
          parsed->compileFor(fresh->arguments, request);
      // More memory than there may be is one plan's affair.
      if (!other && other.error().family == ErrorFamily::Unsupported)
        continue;
      std::string with = where + ", plan " + std::to_string(number);
      if (!other)
        return stop(Status::Differs,
                    with + ": compile: " + other.error().str());
      with += " (" + other->planSummary +
              ", keeping: " + std::string(name(other->plan->keeping)) +
              ", passes: " + std::string(name(other->plan->passes)) + ")";
      if (Result<void> ran = other->executable.launch(fresh->arguments, launch);
          !ran)
        return stop(Status::Differs, with + ": launch: " + ran.error().str());
      ++outcome.plans;
      if (!compare(*other->plan, *fresh, with))
        return outcome;
    }
  }
  return outcome;
}

Outcome runOnce(const RandomProgram &program, const std::vector<Isa> &isas) {
  Outcome outcome = runAsGiven(program, isas);
  if (outcome.status != Status::Races)
    return outcome;
  // Memory that views share may have made the race.
  RandomProgram separate = program;
  for (ViewSpec &view : separate.views)
    view.sameAs.clear();
  outcome = runAsGiven(separate, isas);
  if (outcome.status == Status::Races)
    outcome.status = Status::Invalid;
  return outcome;
}

//===----------------------------------------------------------------------===//
// Crashes
//===----------------------------------------------------------------------===//

static std::string announced;

extern "C" void tesseraFuzzDied(int signal) {
  const char *head = "\nrandom program: died of a signal in\n";
  (void)!write(2, head, std::strlen(head));
  (void)!write(2, announced.data(), announced.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void announce(const std::string &text) {
  announced = text;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    std::signal(signal, text.empty() ? SIG_DFL : tesseraFuzzDied);
}

Outcome runInChild(const RandomProgram &program, const std::vector<Isa> &isas) {
  Outcome outcome;
  int channel[2];
  if (pipe(channel) != 0)
    return {Status::Invalid, "no pipe"};
  pid_t child = fork();
  if (child == 0) {
    announce("");
    alarm(static_cast<unsigned>(20 * (1 + program.plans)));
    // Diagnostics of a dying child are of no interest.
    if (!freopen("/dev/null", "w", stderr))
      _exit(9);
    Outcome result = runOnce(program, isas);
    std::string message = std::to_string(result.exact) + " " +
                          std::to_string(result.compared) + " " +
                          std::to_string(result.undecided) + " " +
                          std::to_string(result.plans) + " " + result.message;
    (void)!write(channel[1], message.data(), message.size());
    _exit(static_cast<int>(result.status));
  }
  close(channel[1]);
  char text[4096];
  ssize_t count;
  while ((count = read(channel[0], text, sizeof text)) > 0)
    outcome.message.append(text, static_cast<size_t>(count));
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) {
    int exact = 0, used = 0;
    std::sscanf(outcome.message.c_str(),
                "%d %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &exact,
                &outcome.compared, &outcome.undecided, &outcome.plans, &used);
    outcome.exact = exact != 0;
    outcome.message.erase(0, static_cast<size_t>(used));
    outcome.status = static_cast<Status>(WEXITSTATUS(status));
  } else {
    outcome.status = Status::Differs;
    outcome.message = "died of signal " + std::to_string(WTERMSIG(status));
  }
  return outcome;
}

} // namespace tessera::fuzz
