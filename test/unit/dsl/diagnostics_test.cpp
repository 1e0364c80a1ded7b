//===- dsl/diagnostics_test.cpp - Wrong kernels and what is said ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case says with next() that the mistake is on the line below; the
// diagnostic must name that line.
//
//===----------------------------------------------------------------------===//

#include "trace_text.h"

#include <source_location>
#include <stdexcept>

namespace tessera {
namespace {

using testing::HasSubstr;

unsigned marked = 0;

/// The line below the call is the one at fault.
void next(std::source_location where = std::source_location::current()) {
  marked = where.line() + 1;
}

using In = View<const Float, 2>;
using Out = View<Float, 2>;

/// The diagnostics of a kernel of one input and one output with this body.
template <typename Body> std::vector<Error> errorsOf(Body body) {
  marked = 0;
  return kernel("k", "x, y", [body](In x, Out y) { body(x, y); }).diagnostics();
}

void expectOne(const std::vector<Error> &errors, const char *code,
               const char *part) {
  ASSERT_EQ(errors.size(), 1u) << (errors.size() > 1 ? errors[1].str() : "");
  EXPECT_EQ(errors[0].family, ErrorFamily::Diagnostic);
  EXPECT_EQ(errors[0].code, code);
  EXPECT_THAT(errors[0].message, HasSubstr(part));
  EXPECT_EQ(errors[0].where.line, marked) << errors[0].str();
  EXPECT_THAT(errors[0].where.file, HasSubstr("diagnostics_test.cpp"));
}

std::string lineOf(unsigned line) {
  return "diagnostics_test.cpp:" + std::to_string(line);
}

TEST(Diagnostics, MixedTypes) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              Tile v = load(x(0, n));
              next();
              (void)(v + iota(n));
            }),
            "dsl.type", "cast()");
}

TEST(Diagnostics, NamesWhereBothOperandsWereMade) {
  unsigned first = 0, second = 0;
  std::vector<Error> errors = errorsOf([&](In x, Out) {
    Dim n = dim("n", x.extent(1));
    first = __LINE__ + 1;
    Tile v = load(x(0, n));
    second = __LINE__ + 1;
    Tile w = iota(n);
    next();
    (void)(v * w);
  });
  expectOne(errors, "dsl.type", lineOf(first).c_str());
  EXPECT_THAT(errors[0].message, HasSubstr(lineOf(second)));
  EXPECT_THAT(errors[0].message, HasSubstr("are f32"));
  EXPECT_THAT(errors[0].message, HasSubstr("and i64"));
}

TEST(Diagnostics, LiteralsOfTheWrongKind) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)(iota(n) * 0.5);
            }),
            "dsl.type", "a floating number");
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)(cast(iota(n), DType::U8) + 300);
            }),
            "dsl.type", "out of range");
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)(load(x(0, n)) & true);
            }),
            "dsl.type", "a bool");
}

TEST(Diagnostics, NumbersOutOfRange) {
  expectOne(errorsOf([](In x, Out) {
              next();
              (void)(load(x(0, 0)) * 1e300);
            }),
            "dsl.type", "out of range");
  EXPECT_TRUE(kernel("k", "x", [](In x) { (void)(load(x(0, 0)) * 1e300); })
                  .text({.storage = DType::F64})
                  .ok());
}

TEST(Diagnostics, ScatterToBool) {
  Kernel k = kernel("k", "x", [](View<bool, 1> x) {
    next();
    scatterAdd(x(0), true);
  });
  expectOne(k.diagnostics(), "dsl.type", "a view of bool");
}

TEST(Diagnostics, OperationNotDefinedForTheType) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)exp(iota(n));
            }),
            "dsl.type", "expected a floating type");
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)(load(x(0, n)) % 2);
            }),
            "dsl.type", "expected an integer type");
}

TEST(Diagnostics, PoisonSilencesWhatFollows) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              Tile bad = exp(iota(n));
              Tile worse = sqrt(bad) + load(x(0, n));
              for (auto i : serial(n))
                worse = worse + load(x(0, i));
              if_(sum(worse, n) > 0, [&] { worse = bad; });
              store(y(0, n), worse);
            }),
            "dsl.type", "exp()");
}

TEST(Diagnostics, ReductionOverAForeignDimension) {
  unsigned declared = 0;
  std::vector<Error> errors = errorsOf([&](In x, Out) {
    Dim n = dim("n", x.extent(1));
    declared = __LINE__ + 1;
    Dim m = dim("m", x.extent(0));
    next();
    (void)sum(load(x(0, n)), m);
  });
  expectOne(errors, "dsl.dimension", lineOf(declared).c_str());
}

TEST(Diagnostics, StoreOfTooManyDimensions) {
  unsigned other = 0;
  std::vector<Error> errors = errorsOf([&](In x, Out y) {
    Dim n = dim("n", x.extent(1));
    other = __LINE__ + 1;
    Dim m = dim("n", x.extent(1));
    next();
    store(y(0, n), load(x(0, n)) * load(x(0, m)));
  });
  expectOne(errors, "dsl.dimension", "'n_1' (declared at");
  EXPECT_THAT(errors[0].message, HasSubstr(lineOf(other)));
}

TEST(Diagnostics, StoreOfATileToOneElement) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              store(y(0, 0), load(x(0, n)));
            }),
            "dsl.dimension", "which the access does not; it is a scalar");
}

TEST(Diagnostics, ReductionOfABlockAlongTheWhole) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              for (auto i : parallel(blocks(n, 8))) {
                next();
                store(y(0, 0), sum(load(x(0, i)), n));
              }
            }),
            "dsl.dimension",
            "a tile over [n_block]; reduce along the block, the dim() of its "
            "coordinate");
}

TEST(Diagnostics, StoreToAReadOnlyView) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              store(x(0, n), 1.0);
            }),
            "dsl.read-only", "read-only view");
}

TEST(Diagnostics, ViewThatIsNeverStoredTo) {
  next();
  Kernel k = kernel("k", "x, y", [](In x, Out) { (void)load(x(0, 0)); });
  expectOne(k.diagnostics(), "dsl.unstored",
            "writable view 'y' is never stored to; store a tile into it, or "
            "declare it View<const ...>");
  next();
  Kernel empty = kernel("k", "y", [](Out) {});
  expectOne(empty.diagnostics(), "dsl.unstored", "'y'");
  // Reading it writes nothing either.
  next();
  Kernel reads = kernel("k", "y", [](Out y) { (void)load(y(0, 0)); });
  expectOne(reads.diagnostics(), "dsl.unstored", "'y'");
  // An output that the call leaves out needs no store, one that it wants does.
  next();
  Kernel optional = kernel(
      "k", "y, z", [](Out y, OptionalView<Float, 1>) { store(y(0, 0), 1.0); });
  EXPECT_TRUE(optional.diagnostics().empty());
  expectOne(optional.diagnostics({.present = {"z"}}), "dsl.unstored", "'z'");
  EXPECT_TRUE(
      kernel("k", "y", [](Out y) { scatterAdd(y(0, 0), 1.0); }).text().ok());
  EXPECT_TRUE(kernel("k", "y",
                     [](Out y) {
                       if_(load(y(0, 0)) > 0, [&] { store(y(0, 0), 1.0); });
                     })
                  .text()
                  .ok());
}

TEST(Diagnostics, StoreOfAnotherType) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              store(y(0, n), iota(n));
            }),
            "dsl.type", "is i64, expected f32; convert with cast()");
}

TEST(Diagnostics, TwoAxesOfOneDimension) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)load(x(n, n));
            }),
            "dsl.subscript", "two axes");
}

TEST(Diagnostics, FloatSubscript) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              (void)load(x(load(x(0, n)), n));
            }),
            "dsl.subscript", "expected integers");
}

TEST(Diagnostics, AxisOutOfRange) {
  expectOne(errorsOf([](In x, Out) {
              next();
              (void)x.extent(2);
            }),
            "dsl.axis", "axis 2 of a view with 2 axes, expected 0 to 1");
  Kernel k = kernel("k", "x", [](View<const Float, 1> x) {
    next();
    (void)x.extent(1);
  });
  expectOne(k.diagnostics(), "dsl.axis",
            "axis 1 of a view with 1 axis, expected 0");
}

TEST(Diagnostics, NegativeExtentAndBlock) {
  expectOne(errorsOf([](In, Out) {
              next();
              dim("n", -1);
            }),
            "dsl.dimension", "expected at least 0");
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              next();
              Blocks b = blocks(n, 0);
              for (auto i : parallel(b))
                (void)load(x(0, i));
            }),
            "dsl.dimension", "block size is 0");
}

TEST(Diagnostics, AssignmentInsideParallel) {
  unsigned made = 0, loop = 0;
  std::vector<Error> errors = errorsOf([&](In x, Out) {
    Dim n = dim("n", x.extent(1));
    made = __LINE__ + 1;
    Tile total = load(x(0, 0));
    loop = __LINE__ + 1;
    for (auto i : parallel(n)) {
      next();
      total = total + load(x(0, i));
    }
    (void)(total + 1);
  });
  expectOne(errors, "dsl.assign", lineOf(made).c_str());
  EXPECT_THAT(errors[0].message, HasSubstr(lineOf(loop)));
  EXPECT_THAT(errors[0].message, HasSubstr("parallel"));
}

TEST(Diagnostics, CarryThatChangesItsType) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1)), k = dim("k", 4);
              Tile total = 0.0;
              for (auto i : serial(k)) {
                next();
                total = total + load(x(i, n));
              }
            }),
            "dsl.carry", "full()");
}

TEST(Diagnostics, UseOfAValueOfAnEndedLoop) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              Tile last;
              for (auto i : serial(n))
                last = load(x(0, i));
              next();
              store(y(0, 0), last);
            }),
            "dsl.out-of-scope", "region that has ended");
}

TEST(Diagnostics, UseOfALoopVariableAfterItsLoop) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              Coord kept;
              for (auto i : parallel(n))
                kept = i;
              next();
              store(y(0, kept), 1.0);
            }),
            "dsl.out-of-scope", "region that has ended");
}

TEST(Diagnostics, UseBeforeAValue) {
  expectOne(errorsOf([](In, Out y) {
              Tile nothing;
              next();
              store(y(0, 0), nothing);
            }),
            "dsl.no-value", "before it is assigned");
  expectOne(errorsOf([](In x, Out) {
              Dim nothing;
              next();
              (void)load(x(0, nothing));
            }),
            "dsl.no-dimension", "before dim()");
}

TEST(Diagnostics, BreakOutOfALoop) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              for (auto i : serial(n)) {
                store(y(0, i), load(x(0, i)));
                break;
              }
            }),
            "dsl.break", "left by break or return");
}

TEST(Diagnostics, ReturnOutOfNestedLoops) {
  std::vector<Error> errors = errorsOf([](In x, Out y) {
    Dim n = dim("n", x.extent(1)), m = dim("m", x.extent(0));
    for (auto j : parallel(m))
      for (auto i : serial(n)) {
        store(y(j, i), load(x(j, i)));
        return;
      }
  });
  EXPECT_EQ(errors.size(), 2u);
}

TEST(Diagnostics, ExceptionsOfTheAuthor) {
  Kernel k = kernel("k", "x, y", [](In x, Out) {
    Dim n = dim("n", x.extent(1));
    Tile total = 0.0;
    for (auto i : serial(n)) {
      total = total + load(x(0, i));
      throw std::runtime_error("no idea");
    }
  });
  std::vector<Error> errors = k.diagnostics();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, "dsl.exception");
  EXPECT_THAT(errors[0].message, HasSubstr("no idea"));
  std::vector<Error> others =
      kernel("k", "x, y", [](In, Out) { throw 1; }).diagnostics();
  EXPECT_EQ(others.size(), 1u);
  // The thread can trace again.
  EXPECT_TRUE(kernel("k", "x", [](In) {}).text().ok());
}

TEST(Diagnostics, StageOutsideAPipeline) {
  expectOne(errorsOf([](In, Out) {
              next();
              stage("load");
            }),
            "dsl.stage", "outside of a pipeline");
}

TEST(Diagnostics, ReductionThatIsNone) {
  expectOne(errorsOf([](In x, Out) {
              Tile total = 0.0;
              for (auto i : reduction(dim("n", x.extent(1)))) {
                next();
                total = load(x(0, i)) - total;
              }
            }),
            "dsl.reduction", "by one operation");
}

TEST(Diagnostics, ReductionOfNothing) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              for (auto i : reduction(n))
                store(y(0, i), load(x(0, i)));
            }),
            "dsl.reduction", "combines nothing");
}

TEST(Diagnostics, NegativeWindow) {
  expectOne(errorsOf([](In x, Out y) {
              Dim n = dim("n", x.extent(1));
              next();
              for (auto i : pipeline(n, -1))
                store(y(0, i), load(x(0, i)));
            }),
            "dsl.pipeline", "at least 0");
}

TEST(Diagnostics, ConditionWithDimensions) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1));
              Tile v = load(x(0, n));
              next();
              if_(v > 0, [&] { v = 2.0; });
            }),
            "dsl.type", "use select()");
}

TEST(Diagnostics, BranchesThatDisagree) {
  expectOne(errorsOf([](In x, Out) {
              Tile v = load(x(0, 0));
              if_(v > 0, [&] {
                next();
                v = 2;
              });
            }),
            "dsl.branch", "expected one type");
}

TEST(Diagnostics, CombinerOfAnotherType) {
  std::vector<Error> errors = errorsOf([](In x, Out) {
    Dim n = dim("n", x.extent(1));
    (void)reduce(load(x(0, n)), n, 0, [](Tile a, Tile b) { return a > b; });
  });
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0].message, HasSubstr("a combiner returns bool"));
}

TEST(Diagnostics, StorageTypesAreNotComputedIn) {
  expectOne(errorsOf([](In x, Out) {
              next();
              (void)cast(load(x(0, 0)), DType::BF16);
            }),
            "dsl.type", "roundTo()");
}

TEST(Diagnostics, GatherAndContractOverForeignDimensions) {
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1)), m = dim("m", x.extent(0));
              next();
              (void)contract(load(x(m, n)), load(x(0, n)), m);
            }),
            "dsl.dimension", "the right operand");
  expectOne(errorsOf([](In x, Out) {
              Dim n = dim("n", x.extent(1)), m = dim("m", x.extent(0));
              next();
              (void)gather(load(x(m, n)), iota(n), m);
            }),
            "dsl.dimension", "share dimension 'n'");
}

TEST(Diagnostics, AbsentView) {
  Kernel k =
      kernel("k", "x, y", [](OptionalView<const Float, 1> x, View<Float, 1> y) {
        next();
        store(y(0), load(x(0)));
      });
  expectOne(k.diagnostics(), "dsl.absent", "present()");
  EXPECT_TRUE(k.text({.present = {"x"}}).ok());
}

TEST(Diagnostics, SeveralAreCounted) {
  Kernel k = kernel("k", "x, y", [](In x, Out) {
    (void)x.extent(3);
    (void)x.extent(4);
  });
  Result<std::string> text = k.text();
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("(and 1 more)"));
}

} // namespace
} // namespace tessera
