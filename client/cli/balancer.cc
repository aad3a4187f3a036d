#include "client/cli/balancer.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/str_split.h"
#include "client/cli/format.h"
#include "common/api/balance.h"
#include "common/error.h"
#include "common/line_words.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

constexpr absl::Duration kAskEvery = absl::Seconds(1);
constexpr absl::Duration kRowEvery = absl::Seconds(30);
constexpr absl::Duration kPatience = absl::Minutes(2);  // With a NameNode that does not answer.

constexpr char kUsageText[] = R"(Usage: cairn balancer
	[-policy <policy>]	datanode; blockpool is the same here
	[-threshold <threshold>]	percentage of capacity that a DataNode may be off the mean (10)
	[-exclude [-f <hosts-file> | <comma-separated list of hosts>]]	leaves these DataNodes out
	[-include [-f <hosts-file> | <comma-separated list of hosts>]]	only these take part
	[-source [-f <hosts-file> | <comma-separated list of hosts>]]	only these give
	[-idleiterations <idleiterations>]	iterations in a row that move nothing before it gives up (5; -1: never)
	[-bandwidth <bytes per second>]	what a DataNode may use for it, while it runs
	[-max-moves <moves>]	replicas on their way from or to one DataNode at once
	[-runDuringUpgrade]	has no effect
)";

absl::Status Wrong(std::string why) { return MakeError(ErrorKind::kInvalidArgument, std::move(why)); }

template <class T>
std::optional<T> ParseNumber(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Words of a file, a host each; '#' begins a comment, as in dfs.hosts.
absl::StatusOr<std::vector<std::string>> HostsOfFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Wrong(fmt::format("{}: cannot be read", path));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> hosts;
  for (const std::vector<std::string>& words : LineWords(text))
    for (const std::string& word : words)
      for (const auto& host : absl::StrSplit(word, ',', absl::SkipEmpty())) hosts.emplace_back(host);
  return hosts;
}

class Parser {
 public:
  explicit Parser(std::span<const std::string> words) : words_(words) {}

  absl::StatusOr<v1::BalanceRequest> Parse() {
    v1::BalanceRequest request;
    request.set_threshold(10);
    while (at_ < words_.size()) {
      const std::string& option = words_[at_++];
      RETURN_IF_ERROR(ParseOne(option, &request));
    }
    if (request.include_size() > 0 && request.exclude_size() > 0)
      return Wrong("-exclude and -include options cannot be specified together.");
    return request;
  }

 private:
  absl::Status ParseOne(const std::string& option, v1::BalanceRequest* request) {
    if (option == "-runDuringUpgrade") return absl::OkStatus();
    if (option == "-blockpools" || option == "-asService") return Wrong(fmt::format("{} is not supported", option));
    if (option == "-exclude") return ParseHosts(option, request->mutable_exclude());
    if (option == "-include") return ParseHosts(option, request->mutable_include());
    if (option == "-source") return ParseHosts(option, request->mutable_sources());
    ASSIGN_OR_RETURN(const std::string value, Value(option));
    if (option == "-policy") {
      if (value != "datanode" && value != "blockpool") return Wrong(fmt::format("Cannot parse string \"{}\"", value));
      return absl::OkStatus();
    }
    if (option == "-threshold") {
      const std::optional<double> threshold = ParseNumber<double>(value);
      if (!threshold) return Wrong(fmt::format("Expecting a number in (0.0, 100.0]: {}", value));
      if (!(*threshold > 0 && *threshold <= 100)) return Wrong(fmt::format("Number out of range: threshold = {}", value));
      request->set_threshold(*threshold);
      return absl::OkStatus();
    }
    if (option == "-bandwidth") {
      const absl::StatusOr<int64_t> bandwidth = ParseQuota(value, true);
      if (!bandwidth.ok() || *bandwidth <= 0 || !api::IsBalanceRate(static_cast<uint64_t>(*bandwidth))) {
        return Wrong(fmt::format("-bandwidth {}: a number of bytes from {} on is needed", value, api::kLeastBalanceBytesPerSecond));
      }
      request->set_bytes_per_second(static_cast<uint64_t>(*bandwidth));
      return absl::OkStatus();
    }
    const std::optional<int32_t> number = ParseNumber<int32_t>(value);
    if (option == "-idleiterations") {
      if (!number || *number == 0 || *number < -1) return Wrong(fmt::format("-idleiterations {}: a number, or -1, is needed", value));
      request->set_idle_iterations(*number);
      return absl::OkStatus();
    }
    if (!number || *number < 1 || *number > int32_t{api::kMostBalanceMoves})
      return Wrong(fmt::format("-max-moves {}: a number from 1 to {} is needed", value, api::kMostBalanceMoves));
    request->set_max_moves(static_cast<uint32_t>(*number));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Value(const std::string& option) {
    for (const char* known : {"-policy", "-threshold", "-bandwidth", "-idleiterations", "-max-moves", "-f"}) {
      if (option != known) continue;
      if (at_ == words_.size()) return Wrong(fmt::format("{} value is missing: args = {}", option.substr(1), fmt::join(words_, " ")));
      return words_[at_++];
    }
    return Wrong(fmt::format("args = {}: unknown option {}", fmt::join(words_, " "), option));
  }

  absl::Status ParseHosts(const std::string& option, google::protobuf::RepeatedPtrField<std::string>* hosts) {
    if (at_ == words_.size()) return Wrong(fmt::format("List of nodes of {} is missing", option));
    std::vector<std::string> found;
    if (words_[at_] == "-f") {
      ++at_;
      ASSIGN_OR_RETURN(const std::string path, Value("-f"));
      ASSIGN_OR_RETURN(found, HostsOfFile(path));
    } else {
      for (const auto& word : absl::StrSplit(words_[at_++], ',', absl::SkipEmpty())) found.emplace_back(word);
    }
    // An empty list would stand for all.
    if (found.empty()) return Wrong(fmt::format("{} names no DataNode", option));
    for (std::string& host : found) *hosts->Add() = std::move(host);
    return absl::OkStatus();
  }

  const std::span<const std::string> words_;
  size_t at_ = 0;
};

// As Java writes a moment for an American: "Nov 30, 2026 7:22:11 AM".
std::string MomentText(absl::Time time, absl::TimeZone zone) {
  const absl::CivilSecond at = absl::ToCivilSecond(time, zone);
  const int hour = at.hour() % 12 == 0 ? 12 : at.hour() % 12;
  return fmt::format("{} {}, {} {}:{:02}:{:02} {}", absl::FormatTime("%b", time, zone), at.day(), at.year(), hour, at.minute(), at.second(),
                     at.hour() < 12 ? "AM" : "PM");
}

std::string ElapsedText(absl::Duration elapsed) {
  if (elapsed < absl::Seconds(1)) return fmt::format("{:.1f} milliseconds", absl::ToDoubleMilliseconds(elapsed));
  if (elapsed < absl::Minutes(1)) return fmt::format("{:.3f} seconds", absl::ToDoubleSeconds(elapsed));
  if (elapsed < absl::Hours(1)) return fmt::format("{:.2f} minutes", absl::ToDoubleMinutes(elapsed));
  return fmt::format("{:.2f} hours", absl::ToDoubleHours(elapsed));
}

// The NameNode is not there now, but may soon be.
bool IsAway(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kCancelled || (kind == ErrorKind::kNone && IsRetriable(status));
}

// Drives one run to its end, and prints it.
class Driver {
 public:
  Driver(const BalancerTarget& target, Shell* shell, v1::BalanceRequest request)
      : target_(target), shell_(shell), request_(std::move(request)), heard_(shell->now()) {
    request_.set_run(target.run);
  }

  int Run() {
    *shell_->out << "Time Stamp               Iteration#  Bytes Already Moved  Bytes Left To Move  Bytes Being Moved  NameNode\n";
    shell_->out->flush();
    for (;;) {
      if (shell_->Interrupted()) return Stop();
      const absl::StatusOr<v1::BalanceResponse> response = target_.ask(request_);
      if (!response.ok()) {
        if (ReasonOf(response.status()) == "BALANCER_RUNNING") {
          *shell_->out << "Another balancer is running. Exiting...\n";
          return kAlreadyRunning;
        }
        // One that restarts in the middle may begin in safe mode, which takes its time; but it is there.
        const bool is_safe = asked_well_ && KindOf(response.status()) == ErrorKind::kSafeMode;
        if (is_safe) heard_ = shell_->now();
        if (!(is_safe || IsAway(response.status())) || shell_->now() - heard_ >= kPatience) {
          *shell_->out << fmt::format("{}.  Exiting ...\n", std::string(response.status().message()));
          return kIoException;
        }
      } else {
        heard_ = shell_->now();
        asked_well_ = true;
        Follow(*response);
        if (response->outcome() != v1::BalanceResponse::RUNNING) return End(response->outcome());
      }
      shell_->Wait(kAskEvery);
    }
  }

 private:
  void Follow(const v1::BalanceResponse& response) {
    // The NameNode has restarted, and counts anew.
    const bool is_another =
        response.epoch() != last_.epoch() || response.iteration() < last_.iteration() || response.moved_bytes() < last_.moved_bytes();
    if (is_another) {
      iterations_before_ += last_.iteration();
      bytes_before_ += last_.moved_bytes();
    }
    const bool is_new = is_another || response.iteration() != last_.iteration();
    const bool is_late = response.moved_bytes() != shown_bytes_ && heard_ - shown_at_ >= kRowEvery;
    const bool is_last = response.outcome() != v1::BalanceResponse::RUNNING && response.moved_bytes() != shown_bytes_;
    last_ = response;
    if (response.iteration() > 0 && (is_new || is_late || is_last)) PrintRow();
  }

  void PrintRow() {
    shown_at_ = heard_;
    shown_bytes_ = last_.moved_bytes();
    *shell_->out << fmt::format("{:<24} {:>10}  {:>19}  {:>18}  {:>17}  {}\n", MomentText(heard_, shell_->zone),
                                iterations_before_ + last_.iteration(), CapacityText(bytes_before_ + last_.moved_bytes()),
                                CapacityText(last_.left_bytes()), CapacityText(last_.being_moved_bytes()), target_.namenode);
    shell_->out->flush();
  }

  int End(v1::BalanceResponse::Outcome outcome) {
    int code = kIoException;
    switch (outcome) {
      case v1::BalanceResponse::BALANCED:
        *shell_->out << "The cluster is balanced. Exiting...\n";
        code = kSuccess;
        break;
      case v1::BalanceResponse::NO_MOVE_BLOCK:
        *shell_->out << "No block can be moved. Exiting...\n";
        code = kNoMoveBlock;
        break;
      case v1::BalanceResponse::NO_MOVE_PROGRESS:
        *shell_->out << fmt::format("No block has been moved for {} iterations. Exiting...\n",
                                    request_.idle_iterations() == 0 ? 5 : request_.idle_iterations());
        code = kNoMoveProgress;
        break;
      default: *shell_->out << "The run was stopped.  Exiting ...\n"; break;
    }
    const absl::Time now = shell_->now();
    *shell_->out << fmt::format("{:<24} Balancing took {}\n", MomentText(now, shell_->zone), ElapsedText(now - started_));
    return code;
  }

  int Stop() {
    request_.set_stop(true);
    IgnoreError(target_.ask(request_).status(), "without its driver the run ends by itself");
    *shell_->err << "balancer: Interrupted; what is under way ends by itself\n";
    return kIoException;
  }

  const BalancerTarget& target_;
  Shell* const shell_;
  v1::BalanceRequest request_;
  absl::Time heard_;  // The NameNode's last answer.
  const absl::Time started_ = heard_;
  absl::Time shown_at_;
  uint64_t shown_bytes_ = 0;
  bool asked_well_ = false;
  v1::BalanceResponse last_;
  // Of NameNodes that have restarted meanwhile.
  uint32_t iterations_before_ = 0;
  uint64_t bytes_before_ = 0;
};

}  // namespace

int RunBalancer(const BalancerTarget& target, Shell* shell, std::span<const std::string> words) {
  if (words.size() == 1 && (words[0] == "-help" || words[0] == "--help" || words[0] == "-h")) {
    *shell->out << kUsageText;
    return kSuccess;
  }
  absl::StatusOr<v1::BalanceRequest> request = Parser(words).Parse();
  if (!request.ok()) {
    *shell->err << fmt::format("balancer: {}\n{}", std::string(request.status().message()), kUsageText);
    return kIllegalArguments;
  }
  return Driver(target, shell, *std::move(request)).Run();
}

}  // namespace cairn::cli
