#include "common/env/real_program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Shell(const std::string& script, absl::Duration timeout = absl::Seconds(30)) {
  return RunRealProgram({"/bin/sh", "-c", script, "sh", "first", "two words"}, timeout);
}

TEST(RealProgram, AnswersWhatItWritesAndTakesItsWordsAsTheyAre) {
  const absl::StatusOr<std::string> said = Shell("printf '%s|%s' \"$1\" \"$2\"; cat; echo to-log >/dev/null");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(*said, "first|two words");  // And there is no input.
}

TEST(RealProgram, FailuresSayWhat) {
  EXPECT_THAT(std::string(Shell("echo half; exit 3").status().message()), HasSubstr("it ended with code 3"));
  EXPECT_THAT(std::string(Shell("kill -9 $$").status().message()), HasSubstr("signal 9 has ended it"));
  EXPECT_THAT(std::string(RunRealProgram({"/no/such/program"}, absl::Seconds(5)).status().message()),
              HasSubstr("/no/such/program: it cannot be started: No such file"));
  EXPECT_THAT(std::string(Shell("head -c 2000000 /dev/zero").status().message()), HasSubstr("more than 1048576 bytes"));
}

TEST(RealProgram, WhatTakesTooLongIsEndedWithAllThatItStarted) {
  // The child of the shell holds the pipe: only its end closes it.
  const absl::StatusOr<std::string> said = Shell("sleep 600 & sleep 600", absl::Milliseconds(200));
  EXPECT_EQ(said.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Shell("exec >&-; sleep 600", absl::Milliseconds(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace cairn
