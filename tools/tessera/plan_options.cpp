//===- plan_options.cpp - Options of how a kernel is compiled -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"

namespace tessera::cli {

void addPlanOption(CLI::App &verb, CommonOptions &options) {
  verb.add_option("--plan", options.plan,
                  "apply a saved plan instead of searching one; what cannot be "
                  "applied is an error")
      ->type_name("FILE");
}

void addSavePlanOption(CLI::App &verb, CommonOptions &options) {
  verb.add_option("--save-plan", options.savePlan,
                  "write the plan, for --plan; - for standard output")
      ->type_name("FILE");
}

void addPrepackedOption(CLI::App &verb, CommonOptions &options) {
  verb.add_option("--prepacked", options.prepacked,
                  "an array that is packed once, before the launch; an error "
                  "where no contraction can take its vectors from it. Repeat "
                  "for several")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void addVendorOption(CLI::App &verb, CommonOptions &options) {
  verb.add_option("--vendor", options.vendor,
                  "hand the whole kernel to a library; an error where it is "
                  "not proved to be a product that the library offers "
                  "(default none)")
      ->type_name("none|cblas|onednn");
}

void addThreadsOption(CLI::App &verb, CommonOptions &options,
                      const std::string &help) {
  verb.add_option("--threads", options.threads,
                  help + ", at most 4096 (default: TESSERA_THREADS, or all "
                         "cores)")
      ->type_name("N");
}

} // namespace tessera::cli
