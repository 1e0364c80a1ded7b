//===- calibration_test.cpp - Tests of the file of what was measured ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is used as it was written, or not at all, and every way in which it
// can be wrong is named.
//
//===----------------------------------------------------------------------===//

#include "target/calibration.h"

#include "support/hash.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"

#include "nlohmann/json.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace tessera;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace {

const Processor processor = {"GenuineIntel", 6, 207, 2, "Some \"CPU\""};

class CalibrationTest : public testing::Test {
protected:
  CalibrationTest()
      : folder(std::filesystem::temp_directory_path() /
               ("tessera-calibration-" + std::to_string(::getpid()))),
        path((folder / "of/mine.json").string()) {
    calibration.processor = processor;
    calibration.measured = "2026-11-30T17:00:00Z";
    calibration.machine = *findMachine(processor);
    calibration.machine.provenance = "measured here";
    calibration.machine.core[2].divideCycles = 10.1;
  }
  ~CalibrationTest() override { std::filesystem::remove_all(folder); }

  void write() {
    Result<void> status = writeCalibration(path, calibration);
    ASSERT_TRUE(status) << status.error().message;
  }
  std::string content() const {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void replace(const std::string &text) { std::ofstream(path) << text; }

  /// Changes a field and makes the hash right again.
  void change(const std::function<void(json &)> &edit) {
    write();
    json document = json::parse(content());
    edit(document);
    document.erase("hash");
    document["hash"] = support::hashBytes(document.dump()).hex();
    replace(document.dump());
  }

  /// What is wrong with the file; the choice then is the row's, with a warning.
  std::string problem(const Processor &reader = processor) {
    Result<std::optional<Calibration>> read = readCalibration(path, reader);
    MachineChoice choice =
        chooseMachine(reader, {}, genericMachine(Isa::X86_64), path);
    EXPECT_NE(choice.machine.provenance, "measured here");
    EXPECT_FALSE(read);
    if (read)
      return "";
    EXPECT_EQ(choice.warning, read.error().message);
    EXPECT_THAT(
        read.error().message,
        AllOf(HasSubstr("the calibration file '" + path + "' is ignored: "),
              HasSubstr("; run `tessera calibrate` again, or delete "
                        "the file")));
    return read.error().message;
  }

  std::filesystem::path folder;
  std::string path;
  Calibration calibration;
};

} // namespace

TEST_F(CalibrationTest, RoundTrip) {
  write();
  Result<std::optional<Calibration>> read = readCalibration(path, processor);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->processor, processor);
  EXPECT_EQ((*read)->measured, calibration.measured);
  EXPECT_EQ((*read)->machine.provenance, "measured here");
  EXPECT_EQ(contentHash((*read)->machine), contentHash(calibration.machine));
  EXPECT_EQ(calibrationText(**read), content());
  MachineChoice choice =
      chooseMachine(processor, {}, genericMachine(Isa::X86_64), path);
  EXPECT_EQ(choice.warning, "");
  EXPECT_EQ(choice.machine.core[2].divideCycles, 10.1);
  EXPECT_EQ(choice.reason,
            "measured on 2026-11-30T17:00:00Z, in '" + path + "'");
}

TEST_F(CalibrationTest, FiguresHaveUnits) {
  json document = json::parse(calibrationText(calibration));
  for (const auto &[key, value] : document["machine"]["core"]["512"].items())
    EXPECT_TRUE(document["units"].contains(key)) << key;
  for (const auto &[key, value] : document["machine"]["memory"]["L2"].items())
    EXPECT_TRUE(document["units"].contains(key)) << key;
}

TEST_F(CalibrationTest, AMissingFileIsNoProblem) {
  Result<std::optional<Calibration>> read = readCalibration(path, processor);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->has_value());
  MachineChoice choice =
      chooseMachine(processor, {}, genericMachine(Isa::X86_64), path);
  EXPECT_EQ(choice.warning, "");
  EXPECT_EQ(choice.machine.name, "sapphire-rapids");
}

TEST_F(CalibrationTest, DamagedFiles) {
  write();
  const std::string whole = content();
  for (size_t size :
       {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 3}) {
    replace(whole.substr(0, size));
    EXPECT_THAT(problem(), HasSubstr("damaged or cut off")) << size;
  }
  replace(std::string(100'000, '['));
  EXPECT_THAT(problem(), HasSubstr("damaged or cut off"));
  // Such values overflow the stack when they are destroyed.
  replace(std::string(400'000, '[') + std::string(400'000, ']'));
  EXPECT_THAT(problem(), HasSubstr("more than 16 levels of nesting"));
  std::string nested;
  for (int level = 0; level < 100'000; ++level)
    nested += "{\"a\":";
  replace(nested + "1" + std::string(100'000, '}'));
  EXPECT_THAT(problem(), HasSubstr("more than 16 levels of nesting"));
  replace("[1, 2]");
  EXPECT_THAT(problem(), HasSubstr("it is no calibration"));
  replace("{\"schema\": \"tessera-bench\"}");
  EXPECT_THAT(problem(), HasSubstr("it is no calibration"));
  std::string edited = whole;
  edited.replace(edited.find("10.1"), 4, "10.2");
  replace(edited);
  EXPECT_THAT(problem(), HasSubstr("its hash does not match its content"));
}

TEST_F(CalibrationTest, OtherVersions) {
  change([](json &document) { document["schemaVersion"] = 99; });
  EXPECT_THAT(problem(), HasSubstr("it has version 99, this build of Tessera "
                                   "reads version " +
                                   std::to_string(calibrationVersion)));
}

TEST_F(CalibrationTest, OtherProcessors) {
  write();
  Processor other = processor;
  other.stepping = 3;
  EXPECT_THAT(problem(other), HasSubstr("it was measured on Some \"CPU\" "
                                        "(GenuineIntel family 6 model 207 "
                                        "stepping 2), and this is Some"));
  EXPECT_THAT(problem({}), HasSubstr("and this is a processor that does not "
                                     "say what it is"));
}

TEST_F(CalibrationTest, LongTextIsCutOff) {
  change([](json &document) {
    document["processor"]["name"] = std::string(500'000, 'x');
  });
  EXPECT_LT(problem().size(), 1000u);
}

TEST_F(CalibrationTest, ImplausibleAndMissingFigures) {
  change([](json &document) {
    document["machine"]["core"]["256"]["addLatency"] = -4;
  });
  EXPECT_THAT(problem(), HasSubstr("addLatency of 256 is -4, expected 0.5 to "
                                   "100 cycles"));
  change([](json &document) {
    document["machine"]["memory"]["L3"]["read"] = 1e300;
  });
  EXPECT_THAT(problem(), HasSubstr("read of L3 is 1e+300"));
  // What NaN becomes in JSON.
  change([](json &document) {
    document["machine"]["core"]["256"]["gigahertz"] = nullptr;
  });
  EXPECT_THAT(problem(), HasSubstr("its field 'gigahertz' is no number"));
  change([](json &document) {
    document["machine"]["core"]["256"].erase("gigahertz");
  });
  EXPECT_THAT(problem(), HasSubstr("its field 'gigahertz' is missing"));
  change([](json &document) { document["machine"]["memory"] = 7; });
  EXPECT_THAT(problem(), HasSubstr("its field 'L1' is missing"));
  change([](json &document) { document["processor"]["family"] = "six"; });
  EXPECT_THAT(problem(), HasSubstr("its field 'family' is no whole number"));
}

TEST_F(CalibrationTest, NoFileOfOurs) {
  std::filesystem::create_directories(path);
  EXPECT_THAT(problem(), HasSubstr("it is no regular file"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(problem(), HasSubstr("it is no regular file"));
  std::filesystem::remove(path);
  replace(std::string((1 << 20) + 1, ' '));
  EXPECT_THAT(problem(), HasSubstr("it has 1048577 bytes"));
}

TEST_F(CalibrationTest, UnwritablePlaces) {
  path = "/proc/tessera/calibration.json";
  Result<void> status = writeCalibration(path, calibration);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("cannot write '" + path));
}

TEST_F(CalibrationTest, ImplausibleFiguresAreNotWritten) {
  calibration.machine.core[0].gigahertz = 0;
  Result<void> status = writeCalibration(path, calibration);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("gigahertz of 128 is 0"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CalibrationTest, PathOfTheUser) {
  const char *home = std::getenv("HOME");
  const std::string savedHome = home ? home : "";
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_EQ(calibrationPath(), "") << "the tests say off";
  ::setenv("TESSERA_CALIBRATION", "some/file", 1);
  EXPECT_EQ(calibrationPath(), "some/file");
  ::unsetenv("TESSERA_CALIBRATION");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(calibrationPath(), "/home/me/.config/tessera/calibration.json");
  ::setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_EQ(calibrationPath(), "/home/me/.config/tessera/calibration.json");
  ::setenv("XDG_CONFIG_HOME", "/etc/mine", 1);
  EXPECT_EQ(calibrationPath(), "/etc/mine/tessera/calibration.json");
  ::unsetenv("XDG_CONFIG_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(calibrationPath(), "");
  ::setenv("HOME", savedHome.c_str(), 1);
  ::setenv("TESSERA_CALIBRATION", "off", 1);
}
