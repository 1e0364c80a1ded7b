//===- compile.cpp - tessera compile --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/header.h"
#include "tools/tessera/link.h"

#include "fmt/format.h"

#include <filesystem>
#include <set>

namespace tessera::cli {

namespace {

struct CompileOptions {
  CommonOptions common;
  std::vector<std::string> emit;
  std::string path;
};

Error usage(std::string code, std::string message) {
  return {ErrorFamily::Usage, "usage." + code, std::move(message), {}};
}

/// The layout of a packed array belongs to one plan; only the executable of
/// that plan can make it.
std::string packsNothing(const std::string &option) {
  return option +
         ": an object file packs no arrays for its callers; expected arrays as "
         "they are, or compile() in C++ with CompileOptions::prepacked, whose "
         "executable has pack()";
}

Result<int> compile(const CompileOptions &options) {
  if (!options.common.prepacked.empty())
    return usage("prepacked", packsNothing("--prepacked"));
  Result<std::vector<std::string>> emit = splitList("--emit", options.emit);
  if (!emit)
    return emit.error();
  std::set<std::string> kinds;
  for (const std::string &kind : *emit) {
    if (kind == "ptx" || kind == "cubin" || kind == "msl")
      return Error{ErrorFamily::Unsupported,
                   "unsupported.emit",
                   fmt::format("--emit {}: this build emits obj, so and "
                               "header only",
                               kind),
                   {}};
    if (kind != "obj" && kind != "so" && kind != "header")
      return usage("emit",
                   fmt::format("--emit {}: expected obj, so or header", kind));
    if (!kinds.insert(kind).second)
      return usage("duplicate",
                   fmt::format("--emit: '{}' is given twice", kind));
  }
  if (kinds.count("obj") && kinds.count("so"))
    return usage("emit", "--emit obj,so: -o names one of them, expected one");
  bool both = kinds.size() == 2;
  if (both && options.path == "-")
    return usage("file",
                 "-o -: standard output takes one of obj, so and header, "
                 "expected the name of a file");
  std::string headerPath =
      both
          ? std::filesystem::path(options.path).replace_extension(".h").string()
          : options.path;
  if (both && headerPath == options.path)
    return usage("file",
                 fmt::format("-o {}: expected the name of the object or "
                             "library, the header's ends in .h",
                             options.path));
  SubjectOptions how{.compileOnly = true,
                     .writesArrays = false,
                     .files = {{options.path, "-o"}}};
  if (both)
    how.files.emplace_back(headerPath, "the header of -o");
  Result<Subject> subject = makeSubject(options.common, how);
  if (!subject)
    return subject.error();
  Isa isa = subject->request.isa;
  subject->request.machineFacts = !options.common.json.empty();
  Result<session::Compilation> compiled =
      subject->compile(session::Assume::LastAxisAdjacent);
  if (!compiled)
    return compiled.error();
  if (!compiled->kernel.executable.info().packs.empty())
    return usage("prepacked", packsNothing("--plan " + options.common.plan));
  if (kinds.count("obj"))
    if (Result<void> status =
            writeFile(options.path, compiled->kernel.object, "-o");
        !status)
      return status.error();
  if (kinds.count("so")) {
    const std::string name =
        options.path == "-"
            ? ""
            : std::filesystem::path(options.path).filename().string();
    Result<std::string> library =
        linkShared(compiled->kernel.object, getTarget(isa), name);
    if (!library)
      return library.error();
    if (Result<void> status = writeFile(options.path, *library, "-o"); !status)
      return status.error();
  }
  if (kinds.count("header"))
    if (Result<void> status = writeFile(
            headerPath, makeHeader(compiled->kernel, getTarget(isa)), "-o");
        !status)
      return status.error();
  if (Result<void> status =
          writeReport(options.common, compiled->kernel.report);
      !status)
    return status.error();
  if (Result<void> status = writePlanFile(options.common, compiled->kernel);
      !status)
    return status.error();
  return 0;
}

} // namespace

Action addCompile(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App *verb = app.add_subcommand(
      "compile",
      "an object file or shared library and a C header for other programs");
  addCompileOnlyOptions(
      *verb, options->common,
      "with a first stage that checks data-dependent indices (off)");
  verb->add_option("--emit", options->emit,
                   "obj, so or header; with obj,header or so,header -o names "
                   "the object or library and the header stands beside it")
      ->type_name("obj|so|header")
      ->allow_extra_args(false)
      ->required();
  verb->add_option("-o", options->path, "the file to write")
      ->type_name("PATH")
      ->required();
  addThreadsOption(*verb, options->common, "threads to plan for");
  addPlanOption(*verb, options->common);
  addVendorOption(*verb, options->common);
  // Not offered, and answered with what to do instead.
  verb->add_option("--prepacked", options->common.prepacked)->group("");
  addSavePlanOption(*verb, options->common);
  verb->footer("Example:\n"
               "  tessera compile softmax --dims rows=64,cols=1000 --isa avx2 "
               "--emit obj,header -o softmax.o\n"
               "  cc main.c softmax.o");
  return [options] {
    Result<int> status = compile(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
