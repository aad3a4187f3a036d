#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "absl/time/time.h"
#include "common/env/env.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {

// The seeds of a property test: as many sequences as fit into its time. Those of the everyday run are 1, 2, 3 ...; ./dev test --long gives
// each test an hour and seeds that no run had before. CAIRN_SEED=N runs that one alone.
//
//   PropertyRun runs("Suite.Name", absl::Seconds(10));
//   while (const std::optional<uint64_t> seed = runs.NextSeed()) {
//     ...
//     ASSERT_TRUE(ok) << runs.Replay();
//   }
class PropertyRun {
 public:
  PropertyRun(std::string name, absl::Duration everyday)
      : name_(std::move(name)), only_(NumberFromEnvironment("CAIRN_SEED", 0)), budget_(LongRun() ? absl::Hours(1) : everyday) {
    if (LongRun()) next_ = static_cast<uint64_t>(absl::ToUnixMicros(env_->clock().WallNow()));
    if (only_ != 0) next_ = only_;
    first_ = next_;
  }
  ~PropertyRun() {
    if (done_ > 0) std::printf("%s: %llu sequences, seeds from %llu\n", name_.c_str(), Number(done_), Number(first_));
  }
  PropertyRun(const PropertyRun&) = delete;
  PropertyRun& operator=(const PropertyRun&) = delete;

  std::optional<uint64_t> NextSeed() {
    if (done_ > 0 && (only_ != 0 || env_->clock().Now() >= began_ + budget_)) return std::nullopt;
    ++done_;
    return next_++;
  }
  // For the message of a failure: how to run the last seed again.
  std::string Replay() const { return fmt::format("seed {}\nreplay: CAIRN_SEED={} ./dev test --filter '{}'", next_ - 1, next_ - 1, name_); }

 private:
  static unsigned long long Number(uint64_t value) { return value; }

  const std::string name_;
  const uint64_t only_;
  const absl::Duration budget_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  const SteadyTime began_ = env_->clock().Now();
  uint64_t first_ = 1;
  uint64_t next_ = 1;
  uint64_t done_ = 0;
};

}  // namespace cairn::testing
