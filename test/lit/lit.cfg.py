# The text tests: each .mlir (or .test) file says in its RUN lines what is run
# and, through FileCheck, what must come out.

import os
import sys

import lit.formats

config.name = "Tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = config.tessera_source_dir + "/test/lit"
config.test_exec_root = config.tessera_binary_dir + "/test/lit"

config.environment["PATH"] = os.pathsep.join(
    [config.tessera_binary_dir + "/bin", config.llvm_tools_dir,
     config.environment.get("PATH", "")])
# Plans that a user has tuned are no part of what is tested.
config.environment["TESSERA_PLAN_DIR"] = "off"
# And no executable that an earlier build or test left.
config.environment["TESSERA_CACHE_DIR"] = "off"
for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# What the user calibrated is none of the tests' business.
config.environment["TESSERA_CALIBRATION"] = "off"

# %status N COMMAND: succeeds if the exit status is N, and passes on all output.
config.substitutions.append(("%status", '"%s" %s/cli/Inputs/status.py' % (
    sys.executable, config.test_source_root)))
config.substitutions.append(("%python", sys.executable))
# %bin is the folder of the built programs, for tests that change PATH.
config.substitutions.append(("%bin", config.tessera_binary_dir + "/bin"))
# %examples is the folder of sample kernels and arrays, %source the repository.
config.substitutions.append(("%examples", config.tessera_source_dir + "/examples"))
config.substitutions.append(("%source", config.tessera_source_dir))
