//===- test/unit/run/far_test.cpp - Elements far apart --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small views whose byte offsets pass 2^31 and 2^32, in sparse mappings.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "kernels/elements.h"
#include "kernels/generate.h"

#include <cstring>
#include <sys/mman.h>

namespace tessera::runtest {
namespace {

/// Address space of which only the touched pages are memory.
class Sparse {
public:
  explicit Sparse(int64_t bytes) : bytes(static_cast<size_t>(bytes)) {
    memory = mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() {
    if (ok())
      munmap(memory, bytes);
  }
  Sparse(const Sparse &) = delete;
  Sparse &operator=(const Sparse &) = delete;
  bool ok() const { return memory != MAP_FAILED; }

  /// A view of f32 whose rows lie `rowStride` elements apart; its last row is
  /// first in memory where the stride is negative.
  TensorRef view(int64_t rows, int64_t cols, int64_t rowStride) const {
    auto *data = static_cast<float *>(memory);
    if (rowStride < 0)
      data -= (rows - 1) * rowStride;
    TensorRef result = TensorRef::dense(data, DType::F32, {rows, cols});
    result.strides[0] = rowStride;
    return result;
  }

private:
  size_t bytes;
  void *memory;
};

class Far : public testing::TestWithParam<Machine> {};

TEST_P(Far, OffsetsPastTwoAndFourGigabytes) {
  constexpr int64_t rows = 4, cols = 37;
  // In elements of four bytes: rows on either side of 2^31 and 2^32 bytes.
  for (int64_t stride :
       {int64_t{1} << 29, (int64_t{1} << 30) + 3, (int64_t{1} << 32) + 7}) {
    const int64_t bytes = ((rows - 1) * stride + cols) * 4;
    Sparse from(bytes), to(bytes);
    if (!from.ok() || !to.ok())
      GTEST_SKIP() << "no address space for " << bytes << " bytes";
    for (int64_t sign : {1, -1})
      for (const char *name : {"copy", "softmax", "transpose", "row_sum"}) {
        const kernels::Operator &op = *kernels::findOperator(name);
        const std::string_view operatorName = name;
        TensorRef x = from.view(rows, cols, sign * stride);
        TensorRef y = to.view(rows, cols, sign * stride);
        std::vector<float> near(static_cast<size_t>(rows * cols));
        if (operatorName == "transpose")
          y = TensorRef::dense(near.data(), DType::F32, {cols, rows});
        if (operatorName == "row_sum")
          y = TensorRef::dense(near.data(), DType::F32, {rows});
        ASSERT_TRUE(kernels::generate(x, "x", {}).ok());

        // The same elements next to each other.
        session::RunRequest request = requestFor(
            {&op, GetParam()}, {{"rows", rows}, {"cols", cols}}, DType::F32);
        auto compact = session::CompiledOperator::create(op, request);
        ASSERT_TRUE(compact.ok()) << compact.error().str();
        session::RunValues values;
        values.inputs["x"] = x;
        ASSERT_TRUE(compact->run(values).ok());

        const std::vector<Argument> arguments = {x, y};
        if (GetParam().backend == session::Backend::Cpu) {
          CompileRequest compile;
          compile.isa = GetParam().isa;
          auto kernel = compact->program().compileFor(arguments, compile);
          ASSERT_TRUE(kernel.ok()) << kernel.error().str();
          auto launched = kernel->executable.launch(arguments);
          ASSERT_TRUE(launched.ok()) << launched.error().str();
        } else {
          ASSERT_TRUE(compact->program().interpret(arguments, {}).ok());
        }
        EXPECT_EQ(bytesOf(y), bytesOf(*compact->array("y")))
            << name << " with rows " << sign * stride << " elements apart";
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Run, Far, testing::ValuesIn(machines()),
                         [](const auto &info) { return info.param.name(); });

} // namespace
} // namespace tessera::runtest
