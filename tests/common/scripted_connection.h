#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "common/env/network.h"

namespace cairn::testing {

// A connection whose peer is a list of portions: each Read gets one after the other, as if they had arrived apart, then the end of the
// stream. Counts calls, so that tests can see how many system calls the same bytes would have cost.
class ScriptedConnection : public Connection {
 public:
  explicit ScriptedConnection(std::deque<std::string> portions) : portions_(std::move(portions)) {}

  Awaitable<absl::StatusOr<size_t>> Read(std::span<char> into, size_t at_least, SteadyTime) override {
    ++reads;
    size_t count = 0;
    while (count < at_least && !portions_.empty()) {
      ++portions_taken;
      std::string& portion = portions_.front();
      const size_t part = std::min(portion.size(), into.size() - count);
      std::memcpy(into.data() + count, portion.data(), part);
      count += part;
      if (part == portion.size()) {
        portions_.pop_front();
      } else {
        portion.erase(0, part);
      }
    }
    co_return count;
  }
  Awaitable<absl::Status> Write(std::vector<std::span<const char>>, SteadyTime) override { co_return absl::OkStatus(); }
  Awaitable<absl::Status> SendFile(File*, uint64_t, uint64_t, SteadyTime) override { co_return absl::OkStatus(); }
  void Close() override {}
  std::string peer() const override { return "10.0.0.1:50000"; }
  std::string peer_address() const override { return "10.0.0.1"; }
  Executor& executor() const override { std::terminate(); }

  size_t reads = 0;
  size_t portions_taken = 0;

 private:
  std::deque<std::string> portions_;
};

// Runs a coroutine that waits for nothing but itself.
template <class T>
T RunToEnd(Awaitable<T> body) {
  boost::asio::io_context context;
  std::optional<T> result;
  const auto done = [&result](std::exception_ptr failed, T value) {
    if (failed) std::rethrow_exception(failed);
    result.emplace(std::move(value));
  };
  boost::asio::co_spawn(context, std::move(body), done);
  context.run();
  return std::move(*result);
}

}  // namespace cairn::testing
