//===- main.cpp - The command line `tessera` ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"

#include "support/atomic_file.h"
#include "support/env.h"
#include "target/target.h"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace tessera;

namespace {

/// An option given with an empty value would look like one that is not given.
void refuseEmptyValues(CLI::App &app) {
  const CLI::Validator hasText(
      [](const std::string &text) {
        return text.empty() ? std::string("found an empty value")
                            : std::string();
      },
      "");
  for (CLI::App *verb : app.get_subcommands({})) {
    for (CLI::Option *option : verb->get_options())
      if (option->get_items_expected_max() > 0)
        option->check(hasText);
    refuseEmptyValues(*verb);
  }
}

/// What debugging variables say that Tessera does not understand.
void warnAboutEnvironment() {
  std::vector<std::string> problems = support::envProblems();
  if (std::optional<std::string> isa =
          support::envText(support::EnvVariable::Isa))
    if (Result<Isa> parsed = parseIsa(*isa, /*forOtherHost=*/false);
        !parsed || *isa == "native")
      problems.push_back(fmt::format(
          "TESSERA_ISA is '{}', expected the name of an instruction-set level "
          "that this machine runs (tessera doctor); it is ignored",
          *isa));
  for (const std::string &problem : problems)
    cli::printError("tessera: warning: {}\n", problem);
}

/// Parses and acts. CLI11 reports by exceptions, which end here.
int run(int argc, char **argv) {
  CLI::App app("Tessera compiles tile kernels for this machine, runs them and "
               "proves the result.",
               "tessera");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.footer(
      "Exit status: 0 success, 1 verification failed, 2 bad usage or bad "
      "input,\n3 unsupported, 4 internal error. See docs/cli.md.");
  const std::pair<const char *, cli::Action> verbs[] = {
      {"list", cli::addList(app)},
      {"run", cli::addRun(app)},
      {"explain", cli::addExplain(app)},
      {"compile", cli::addCompile(app)},
      {"tune", cli::addTune(app)},
      {"bench", cli::addBench(app)},
      {"calibrate", cli::addCalibrate(app)},
      {"cache", cli::addCache(app)},
      {"doctor", cli::addDoctor(app)},
      {"bench-worker", cli::addBenchWorker(app)},
  };
  refuseEmptyValues(app);
  if (argc > 1 && argv[1][0] != '-' &&
      std::none_of(std::begin(verbs), std::end(verbs), [&](const auto &verb) {
        return std::string_view(argv[1]) == verb.first;
      })) {
    cli::printError(
        "tessera: error: unknown verb '{}', expected list, run, explain, "
        "compile, tune, bench, calibrate, cache or doctor\ntry: tessera "
        "--help\n",
        argv[1]);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    std::string verb;
    for (const CLI::App *sub : app.get_subcommands())
      verb = " " + sub->get_name();
    cli::printError("tessera{}: error: {}\ntry: tessera{} --help\n", verb,
                    error.what(), verb);
    return 2;
  }
  warnAboutEnvironment();
  for (const auto &[name, action] : verbs)
    if (app.got_subcommand(name))
      return action();
  return 2;
}

} // namespace

/// Output that did not arrive is an error of the call, not a success.
static int lostOutput() {
  cli::printError("tessera: error: cannot write to standard output: {}\n",
                  errno ? std::strerror(errno) : "an earlier write failed");
  return 2;
}

int main(int argc, char **argv) {
  support::removeTemporaryFilesOnSignals();
  try {
    int status = run(argc, argv);
    errno = 0;
    bool isLost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    return isLost && status == 0 ? lostOutput() : status;
  } catch (const std::system_error &error) {
    errno = error.code().value();
    return lostOutput();
  } catch (const std::bad_alloc &) {
    cli::printError("tessera: error: memory is exhausted\n");
    return 3;
  } catch (const std::exception &error) {
    cli::printError("tessera: internal error: {}\n", error.what());
    return 4;
  }
}
