// Load on a NameNode for `./dev bench nn`: many callers over gRPC, NNThroughputBenchmark's operations on paths of 4 components.
//
//   nn_load run --namenode HOST:PORT --pid PID [--echo HOST:PORT --echo-pid PID] --phases a,b,... --base /b
//           [--operations N] [--in-flight N] [--connections N] [--files N] [--files-per-directory N] [--text]
//   nn_load first --namenode HOST:PORT --path P      waits for the first answer about P; prints the seconds it took
//   nn_load loop --namenode HOST:PORT --base /b --in-flight N     creates files until standard input ends
//
// Phases, in the order given: mkdirs, create, createWithBlock, complete, open, stat, list, rename, delete; `directories` makes what the
// files stand in. When an echo server is given its raw limits run after each phase. `--files N`: what an earlier fill or run left.
// The DataNodes are simulated: they register and send heartbeats, which is all that placement asks for.
//
// Prints one JSON array of the phases' results.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cairn/client_namenode.pb.h"
#include "common/config.h"
#include "common/env/env.h"
#include "common/rpc/grpc_client.h"
#include "tests/bench/load_layout.h"
#include "tests/bench/load_runner.h"

namespace cairn::bench {
namespace {

struct Arguments {
  std::map<std::string, std::string> values;
  bool text = false;

  std::string Get(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
  uint64_t Number(const std::string& name, uint64_t otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
  }
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "nn_load: %s\n", what.c_str());
  std::exit(1);
}

HostPort ParseAddress(const std::string& text) {
  const absl::StatusOr<HostPort> address = ParseHostPort(text);
  if (!address.ok()) Die(std::string(address.status().message()));
  return *address;
}

// Three DataNodes that have room and nothing else.
class SimulatedDatanodes {
 public:
  SimulatedDatanodes(const HostPort& namenode, Env* env) : lane_(rpc::NewDatanodeNamenode(namenode, "datanodes", env)) {
    std::random_device seed;
    for (int node = 0; node < kDatanodes; ++node) {
      v1::RegisterRequest& request = registrations_.emplace_back();
      request.set_datanode_uuid(DatanodeUuid(node));
      request.set_incarnation(uint64_t{seed()} << 32 | seed());
      request.mutable_info()->mutable_transfer()->set_host(fmt::format("10.0.0.{}", node + 1));
      request.mutable_info()->mutable_transfer()->set_port(9866);
      v1::StorageStatistics& storage = *request.add_storages();
      storage.set_storage_uuid(StorageUuid(node));
      storage.set_state(v1::HEALTHY);
      storage.set_capacity_bytes(uint64_t{1} << 50);
      storage.set_remaining_bytes(uint64_t{1} << 50);
      std::promise<absl::Status> registered;
      lane_->Register({}, request, [&](const absl::StatusOr<v1::RegisterResponse>& answer) { registered.set_value(answer.status()); });
      if (const absl::Status status = registered.get_future().get(); !status.ok())
        Die("registering a DataNode: " + std::string(status.message()));
    }
    beater_ = std::thread([this] {
      while (stop_.wait_for(std::chrono::seconds(1)) == std::future_status::timeout) Beat();
    });
  }
  ~SimulatedDatanodes() {
    stopped_.set_value();
    beater_.join();
  }

 private:
  void Beat() {
    for (const v1::RegisterRequest& node : registrations_) {
      v1::HeartbeatRequest request;
      request.set_datanode_uuid(node.datanode_uuid());
      request.set_incarnation(node.incarnation());
      *request.mutable_storages() = node.storages();
      lane_->Heartbeat({}, std::move(request), [](const absl::StatusOr<v1::HeartbeatResponse>&) {});
    }
  }

  std::unique_ptr<api::DatanodeNamenode> lane_;
  std::vector<v1::RegisterRequest> registrations_;
  std::promise<void> stopped_;
  std::future<void> stop_ = stopped_.get_future();
  std::thread beater_;
};

// Callers over a few connections; each has a retry slot of its own, as the threads of a client have.
class Load {
 public:
  Load(const Arguments& arguments, Env* env)
      : in_flight_(arguments.Number("in-flight", 64)),
        layout_{.base = arguments.Get("base", "/bench"), .files_per_directory = arguments.Number("files-per-directory", 10)},
        files_(arguments.Number("files", 0)),
        sequences_(in_flight_, 0) {
    const HostPort namenode = ParseAddress(arguments.Get("namenode"));
    const size_t connections = std::min<size_t>(arguments.Number("connections", 8), in_flight_);
    std::random_device seed;
    for (size_t i = 0; i < connections; ++i) {
      channels_.push_back(std::make_unique<rpc::GrpcChannel>(namenode, fmt::format("load-{}", i), env));
      if (!arguments.Get("echo").empty())
        echo_channels_.push_back(std::make_unique<rpc::GrpcChannel>(ParseAddress(arguments.Get("echo")), fmt::format("echo-{}", i), env));
      std::string id(16, '\0');
      for (char& c : id) c = static_cast<char>(seed());
      client_ids_.push_back(id);
    }
    opened_ms_ = absl::ToUnixMillis(env->clock().WallNow());
  }

  size_t in_flight() const { return in_flight_; }
  const Layout& layout() const { return layout_; }
  void SetFiles(uint64_t files) { files_ = files; }

  Issue IssueOf(const std::string& phase, uint64_t operations) {
    const auto path = [this](uint64_t file) { return layout_.FilePath(file); };
    if (phase == "directories")
      return [this](size_t caller, uint64_t i, auto done) { Mkdirs(caller, layout_.DirectoryPath(i), std::move(done)); };
    if (phase == "mkdirs")
      return [this](size_t caller, uint64_t i, auto done) { Mkdirs(caller, layout_.FilePath(i, 'm'), std::move(done)); };
    if (phase == "create")
      return [this](size_t caller, uint64_t i, auto done) { Create(caller, layout_.FilePath(i, 'c'), nullptr, std::move(done)); };
    if (phase == "createWithBlock") {
      opened_.assign(operations, {});
      return [this, path](size_t caller, uint64_t i, auto done) { Create(caller, path(i), &opened_[i], std::move(done)); };
    }
    if (phase == "complete") return [this](size_t caller, uint64_t i, auto done) { Complete(caller, &opened_.at(i), std::move(done)); };
    if (phase == "open")
      return [this](size_t caller, uint64_t i, auto done) {
        v1::GetBlockLocationsRequest request;
        request.set_path(layout_.FilePath(Scattered(i)));
        request.set_length_bytes(UINT64_MAX);
        Call<v1::GetBlockLocationsRequest, v1::GetBlockLocationsResponse>(
            caller, "GetBlockLocations", std::move(request), std::move(done), [](const v1::GetBlockLocationsResponse& response) {
              return response.blocks_size() == 1 ? absl::OkStatus() : absl::InternalError("an open file has not one block");
            });
      };
    if (phase == "stat")
      return [this](size_t caller, uint64_t i, auto done) {
        v1::GetFileInfoRequest request;
        request.set_path(layout_.FilePath(Scattered(i)));
        Call<v1::GetFileInfoRequest, v1::GetFileInfoResponse>(caller, "GetFileInfo", std::move(request), std::move(done));
      };
    if (phase == "list")
      return [this](size_t caller, uint64_t i, auto done) {
        v1::ListRequest request;
        request.set_path(layout_.DirectoryPath(layout_.Directory(Scattered(i))));
        Call<v1::ListRequest, v1::ListResponse>(caller, "List", std::move(request), std::move(done));
      };
    if (phase == "listTop")
      return [this](size_t caller, uint64_t, auto done) {
        v1::ListRequest request;
        request.set_path("/");
        Call<v1::ListRequest, v1::ListResponse>(caller, "List", std::move(request), std::move(done));
      };
    if (phase == "rename")
      return [this](size_t caller, uint64_t i, auto done) {
        v1::RenameRequest request;
        request.set_source(layout_.FilePath(i));
        request.set_destination(layout_.FilePath(i, 'r'));
        Mutate<v1::RenameRequest, v1::RenameResponse>(caller, "Rename", std::move(request), std::move(done));
      };
    if (phase == "delete")
      return [this](size_t caller, uint64_t i, auto done) {
        v1::DeleteRequest request;
        request.set_path(layout_.FilePath(i, 'r'));
        Mutate<v1::DeleteRequest, v1::DeleteResponse>(caller, "Delete", std::move(request), std::move(done));
      };
    if (phase == "deleteTree")
      return [this](size_t caller, uint64_t, auto done) {
        v1::DeleteRequest request;
        request.set_path(layout_.base);
        request.set_recursive(true);
        Mutate<v1::DeleteRequest, v1::DeleteResponse>(caller, "Delete", std::move(request), std::move(done));
      };
    if (phase.starts_with("Echo") || phase.starts_with("Write") || phase.starts_with("Scan"))
      return [this, path, method = "/cairn.v1.Bench/" + phase](size_t caller, uint64_t i, auto done) {
        v1::GetFileInfoRequest request;
        request.set_path(path(i));
        *request.mutable_header() = Header(caller);
        request.mutable_header()->set_sequence(i);
        echo_channels_[caller % echo_channels_.size()]->Call<v1::GetFileInfoRequest, v1::GetFileInfoResponse>(
            method, {}, request,
            [done = std::move(done)](const absl::StatusOr<v1::GetFileInfoResponse>& response) mutable { done(response.status()); });
      };
    Die("no phase \"" + phase + "\"");
  }

 private:
  using Finish = absl::AnyInvocable<void(absl::Status)>;
  // A file being written.
  struct Opened {
    std::string path;
    uint64_t inode_id = 0;
    v1::LocatedBlock block;
  };

  // Any order but the one in which they were made; each once.
  uint64_t Scattered(uint64_t i) const { return files_ == 0 ? i : (i * 2654435761u) % files_; }

  v1::RequestHeader Header(size_t caller) const {
    v1::RequestHeader header;
    header.set_client_id(client_ids_[caller % channels_.size()]);
    header.set_user("bench");
    header.set_client_name(client_name_);
    return header;
  }

  template <class Request, class Response>
  void Call(size_t caller, const char* method, Request request, Finish done,
            absl::AnyInvocable<absl::Status(const Response&)> check = nullptr) {
    if (!request.has_header()) *request.mutable_header() = Header(caller);
    channels_[caller % channels_.size()]->template Call<Request, Response>(
        std::string("/cairn.v1.ClientNamenode/") + method, {}, request,
        [done = std::move(done), check = std::move(check)](const absl::StatusOr<Response>& response) mutable {
          done(response.ok() && check ? check(*response) : response.status());
        });
  }

  template <class Request, class Response>
  void Mutate(size_t caller, const char* method, Request request, Finish done,
              absl::AnyInvocable<absl::Status(const Response&)> check = nullptr) {
    v1::RequestHeader& header = *request.mutable_header();
    header = Header(caller);
    header.set_slot(static_cast<uint32_t>(caller / channels_.size()));
    header.set_sequence(++sequences_[caller]);
    header.set_slot_opened_ms(opened_ms_);
    Call<Request, Response>(caller, method, std::move(request), std::move(done), std::move(check));
  }

  void Mkdirs(size_t caller, const std::string& path, Finish done) {
    v1::MkdirsRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    Mutate<v1::MkdirsRequest, v1::MkdirsResponse>(caller, "Mkdirs", std::move(request), std::move(done));
  }

  void Create(size_t caller, const std::string& path, Opened* opened, Finish done) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    request.set_with_first_block(opened != nullptr);
    Mutate<v1::CreateRequest, v1::CreateResponse>(caller, "Create", std::move(request), std::move(done),
                                                  [opened, path](const v1::CreateResponse& response) {
                                                    if (opened == nullptr) return absl::OkStatus();
                                                    opened->path = path;
                                                    opened->inode_id = response.status().inode_id();
                                                    opened->block = response.first_block();
                                                    return absl::OkStatus();
                                                  });
  }

  void Complete(size_t caller, const Opened* opened, Finish done) {
    v1::CompleteRequest request;
    request.set_path(opened->path);
    request.set_inode_id(opened->inode_id);
    *request.mutable_last()->mutable_block() = opened->block.block();
    request.mutable_last()->mutable_block()->set_length_bytes(1000);
    for (const v1::StorageLocation& location : opened->block.locations())
      request.mutable_last()->add_acknowledged_storages(location.storage_uuid());
    Mutate<v1::CompleteRequest, v1::CompleteResponse>(caller, "Complete", std::move(request), std::move(done));
  }

  const size_t in_flight_;
  const Layout layout_;
  uint64_t files_;
  int64_t opened_ms_ = 0;
  std::vector<std::unique_ptr<rpc::GrpcChannel>> channels_;
  std::vector<std::unique_ptr<rpc::GrpcChannel>> echo_channels_;
  std::vector<std::string> client_ids_;
  const std::string client_name_ = fmt::format("nn_load-{}", getpid());  // One lease holder: any caller may complete a file.
  std::vector<uint64_t> sequences_;                                      // By caller, who makes one call at a time.
  std::vector<Opened> opened_;
};

void Must(const PhaseResult& result) {
  if (!result.status.ok()) Die(result.name + ": " + std::string(result.status.message()));
}

// What runs on the echo server after a phase: an empty call; and one that does with the store what this one cannot do without.
std::vector<std::string> RawLimitsOf(const std::string& phase) {
  // Rows: as a call writes on the average, rounded down; what the calls of a batch share counts once.
  static const std::map<std::string, std::string> kStore = {{"mkdirs", "Write4"},   {"create", "Write4"}, {"createWithBlock", "Write5"},
                                                            {"complete", "Write4"}, {"rename", "Write4"}, {"delete", "Write4"},
                                                            {"list", "Scan"}};
  std::vector<std::string> limits = {"Echo"};
  if (const auto store = kStore.find(phase); store != kStore.end()) limits.push_back(store->second);
  return limits;
}

int Run(const Arguments& arguments, Env* env) {
  Load load(arguments, env);
  const SimulatedDatanodes datanodes(ParseAddress(arguments.Get("namenode")), env);
  const auto pid = static_cast<pid_t>(arguments.Number("pid", 0));
  const auto echo_pid = static_cast<pid_t>(arguments.Number("echo-pid", 0));
  const uint64_t operations = arguments.Number("operations", 20000);
  std::vector<std::string> results;
  const auto note = [&](const PhaseResult& result) {
    Must(result);
    if (arguments.text) std::fprintf(stderr, "%s", ToText(result).c_str());
    results.push_back(ToJson(result));
  };
  std::istringstream phases(arguments.Get("phases"));
  for (std::string phase; std::getline(phases, phase, ',');) {
    if (phase == "directories") {
      const uint64_t directories = (operations + load.layout().files_per_directory - 1) / load.layout().files_per_directory;
      Must(RunPhase(phase, directories, load.in_flight(), pid, load.IssueOf(phase, directories)));
      continue;
    }
    const uint64_t count = phase == "deleteTree" ? 1 : operations;
    note(RunPhase(phase, count, std::min<size_t>(load.in_flight(), count), pid, load.IssueOf(phase, count)));
    if (phase == "createWithBlock") load.SetFiles(operations);
    if (echo_pid == 0) continue;
    for (const std::string& raw : RawLimitsOf(phase))
      note(RunPhase(raw, operations, load.in_flight(), echo_pid, load.IssueOf(raw, operations)));
  }
  std::printf("[");
  for (size_t i = 0; i < results.size(); ++i) std::printf("%s%s", i == 0 ? "" : ",\n ", results[i].c_str());
  std::printf("]\n");
  return 0;
}

int First(const Arguments& arguments, Env* env) {
  const double begin = NowSeconds();
  for (;;) {
    // A channel of its own each time: none waits out a back-off.
    rpc::GrpcChannel channel(ParseAddress(arguments.Get("namenode")), "first", env);
    v1::GetFileInfoRequest request;
    request.set_path(arguments.Get("path", "/"));
    request.mutable_header()->set_user("bench");
    std::promise<absl::Status> answered;
    channel.Call<v1::GetFileInfoRequest, v1::GetFileInfoResponse>(
        "/cairn.v1.ClientNamenode/GetFileInfo", {}, request,
        [&](const absl::StatusOr<v1::GetFileInfoResponse>& response) { answered.set_value(response.status()); });
    const absl::Status status = answered.get_future().get();
    if (status.ok()) break;
    if (status.code() != absl::StatusCode::kUnavailable || NowSeconds() - begin > 120) Die(std::string(status.message()));
    // Nobody tells when another process begins to listen: it is asked again and again, and the figure is as exact as that.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::printf("{\"seconds\": %.4f}\n", NowSeconds() - begin);
  return 0;
}

int CreateLoop(const Arguments& arguments, Env* env) {
  Load load(arguments, env);
  std::atomic<bool> stop{false};
  std::thread waiter([&] {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    stop.store(true);
  });
  const uint64_t most = arguments.Number("operations", 2000000);
  const PhaseResult result = RunPhase("create", most, load.in_flight(), static_cast<pid_t>(arguments.Number("pid", 0)),
                                      load.IssueOf("create", most), [&] { return stop.load(); });
  waiter.join();
  Must(result);
  std::printf("%s\n", ToJson(result).c_str());
  return 0;
}

[[noreturn]] void Usage() {
  std::fprintf(stderr, "usage: nn_load run|first|loop --namenode HOST:PORT [--NAME VALUE ...] [--text]; see the head of nn_load.cc\n");
  std::exit(255);
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  using cairn::bench::Usage;
  if (argc < 2) Usage();
  cairn::bench::Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--text")
      arguments.text = true;
    else if (flag.rfind("--", 0) == 0 && i + 1 < argc)
      arguments.values[flag.substr(2)] = argv[++i];
    else
      Usage();
  }
  if (arguments.Get("namenode").empty()) Usage();
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  const std::string mode = argv[1];
  if (mode == "run") return cairn::bench::Run(arguments, env.get());
  if (mode == "first") return cairn::bench::First(arguments, env.get());
  if (mode == "loop") return cairn::bench::CreateLoop(arguments, env.get());
  Usage();
}
