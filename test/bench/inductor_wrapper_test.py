#===- inductor_wrapper_test.py - Which generated code is understood -----===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/peers"))

from python import inductor_wrapper  # noqa: E402

KERNELS = """
cpp_fused_sum_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0) {}
''')
cpp_fused_div_1 = async_compile.cpp_pybinding(
    ['float*', 'const float*', 'const float*'], r'''
extern "C"  void  kernel(float* in_out_ptr0, const float* a, const float* b) {}
''')
cpp_fused_ints_2 = async_compile.cpp_pybinding(
    ['const float*', 'float*', 'const int64_t'], r'''x''')
"""


def module(*statements, arguments="arg0_1, = args"):
    body = "\n".join(f"        {s}" for s in
                     (arguments, "args.clear()", *statements))
    return (f"{KERNELS}\nclass Runner:\n    def other(self):\n        pass\n"
            f"    def call(self, args):\n{body}\n")


def read(*statements, **options):
    return inductor_wrapper.read(module(*statements, **options))


INPUT = "assert_size_stride(arg0_1, (4, 8), (8, 1))"
BUFFER = "buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)"
SUMS = "buf1 = empty_strided_cpu((4, 1), (1, 4), torch.float32)"


class Understood(unittest.TestCase):
    def test_one_kernel(self):
        wrapper = read(INPUT, BUFFER, "cpp_fused_sum_0(arg0_1, buf0)",
                       "del arg0_1", "return (buf0, )")
        self.assertEqual(len(wrapper.arguments), 1)
        self.assertEqual(len(wrapper.calls), 1)
        self.assertEqual(wrapper.calls[0].arguments[0].storage.argument, 0)
        self.assertIs(wrapper.calls[0].arguments[1].storage,
                      wrapper.results[0].storage)
        self.assertEqual(wrapper.results[0].storage.bytes, 4 * 8 * 4)
        self.assertEqual(wrapper.scratch(), [])

    def test_several_kernels_and_scratch(self):
        wrapper = read(INPUT, SUMS, "cpp_fused_sum_0(arg0_1, buf1)", BUFFER,
                       "cpp_fused_div_1(buf0, arg0_1, buf1)", "del buf1",
                       "return (buf0, )")
        self.assertEqual([call.kernel.name for call in wrapper.calls],
                         ["cpp_fused_sum_0", "cpp_fused_div_1"])
        self.assertEqual([(s.name, s.bytes) for s in wrapper.scratch()],
                         [("buf1", 16)])

    def test_aliases(self):
        wrapper = read(
            INPUT, SUMS, "cpp_fused_sum_0(arg0_1, buf1)",
            "buf2 = reinterpret_tensor(buf1, (4, ), (1, ), 0); del buf1",
            "buf3 = buf2; del buf2  # reuse",
            "cpp_fused_div_1(buf3, arg0_1, reinterpret_tensor(buf3, (1, ), "
            "(1, ), 2))", "return (buf3, )")
        first, _, last = wrapper.calls[1].arguments
        self.assertIs(wrapper.results[0].storage, first.storage)
        self.assertIs(last.storage, first.storage)
        self.assertEqual(last.offset, 8)
        self.assertEqual(wrapper.scratch(), [])

    def test_function_without_class(self):
        source = module(INPUT, BUFFER, "cpp_fused_sum_0(arg0_1, buf0)",
                        "return (buf0, )")
        start = source.index("    def call")
        lines = [line[4:] for line in source[start:].splitlines()]
        source = source[:source.index("class")] + "\n".join(lines).replace(
            "(self, args)", "(args)")
        self.assertEqual(len(inductor_wrapper.read(source).calls), 1)


class Refused(unittest.TestCase):
    def refuse(self, part, *statements, **options):
        with self.assertRaises(inductor_wrapper.NotUnderstood) as caught:
            read(*statements, **options)
        self.assertIn(part, str(caught.exception))

    def test_call_of_a_library(self):
        self.refuse("no generated kernel", INPUT, BUFFER,
                    "extern_kernels.mm(arg0_1, arg0_1, out=buf0)",
                    "return (buf0, )")

    def test_aten_result(self):
        self.refuse("unknown", INPUT, "buf0 = torch.ops.aten.sort(arg0_1)",
                    "return (buf0, )")

    def test_arguments_that_are_no_pointers(self):
        self.refuse("other than pointers", INPUT, BUFFER,
                    "cpp_fused_ints_2(arg0_1, buf0, 8)", "return (buf0, )")

    def test_number_of_arguments(self):
        self.refuse("another number", INPUT, BUFFER,
                    "cpp_fused_sum_0(arg0_1, buf0, buf0)", "return (buf0, )")

    def test_unknown_extent(self):
        self.refuse("not constant", INPUT,
                    "buf0 = empty_strided_cpu((s0, 8), (8, 1), torch.float32)",
                    "cpp_fused_sum_0(arg0_1, buf0)", "return (buf0, )")

    def test_memory_of_another_kind(self):
        self.refuse("unknown", INPUT,
                    "buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)",
                    "cpp_fused_sum_0(arg0_1, buf0)", "return (buf0, )")
        self.refuse("unknown type", INPUT,
                    "buf0 = empty_strided_cpu((4, 8), (8, 1), torch.complex64)",
                    "cpp_fused_sum_0(arg0_1, buf0)", "return (buf0, )")

    def test_name_after_its_end(self):
        self.refuse("unknown name", INPUT, BUFFER, "del buf0",
                    "cpp_fused_sum_0(arg0_1, buf0)", "return (buf0, )")

    def test_loop_and_condition(self):
        self.refuse("unknown statement", INPUT, BUFFER,
                    "for i in range(2): cpp_fused_sum_0(arg0_1, buf0)",
                    "return (buf0, )")

    def test_writes_to_an_argument(self):
        self.refuse("writes to an argument", INPUT,
                    "cpp_fused_sum_0(arg0_1, arg0_1)", "return (arg0_1, )")

    def test_results(self):
        run = "cpp_fused_sum_0(arg0_1, buf0)"
        self.refuse("returns an argument", INPUT, BUFFER, run,
                    "return (arg0_1, )")
        self.refuse("share their memory", INPUT, BUFFER, run,
                    "return (buf0, buf0, )")
        self.refuse("not dense", INPUT,
                    "buf0 = empty_strided_cpu((4, 8), (1, 4), torch.float32)",
                    run, "return (buf0, )")
        self.refuse("not dense", INPUT, BUFFER, run,
                    "return (reinterpret_tensor(buf0, (2, 8), (8, 1), 0), )")
        self.refuse("returns nothing", INPUT, BUFFER, run)
        self.refuse("calls no kernel", INPUT, BUFFER, "return (buf0, )")
        self.refuse("after it returned", INPUT, BUFFER, run,
                    "return (buf0, )", run)


if __name__ == "__main__":
    unittest.main()
