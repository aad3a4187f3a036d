// The command line `cairn`. See client/cli/shell.h for how a command is built up.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cairn/file_system.h"
#include "client/cli/admin_call.h"
#include "client/cli/balancer.h"
#include "client/cli/balancer_bandwidth.h"
#include "client/cli/cli_options.h"
#include "client/cli/datanode_verbs.h"
#include "client/cli/debug_verbs.h"
#include "client/cli/dfs_append.h"
#include "client/cli/dfs_attributes.h"
#include "client/cli/dfs_blocks.h"
#include "client/cli/dfs_change.h"
#include "client/cli/dfs_list.h"
#include "client/cli/dfs_remove.h"
#include "client/cli/dfs_transfer.h"
#include "client/cli/dfs_usage.h"
#include "client/cli/dfsadmin.h"
#include "client/cli/dfsadmin_image.h"
#include "client/cli/dfsadmin_nodes.h"
#include "client/cli/dfsadmin_orphans.h"
#include "client/cli/dfsadmin_quota.h"
#include "client/cli/dfsadmin_reclaim.h"
#include "client/cli/dfsadmin_reconfig.h"
#include "client/cli/dfsadmin_safe_mode.h"
#include "client/cli/fsck.h"
#include "client/cli/shell.h"
#include "client/cli/signals.h"
#include "client/src/user_name.h"
#include "common/config.h"
#include "common/env/env.h"
#include "common/env/real_network.h"
#include "common/mutex.h"

namespace cairn::cli {
namespace {

constexpr char kHelp[] = R"(usage: cairn [-fs cairn://host:port] [-conf FILE] [-D key=value] COMMAND

  dfs         files and directories: cairn dfs -help
  dfsadmin    the cluster: cairn dfsadmin -help
  fsck        the health of files: cairn fsck -help
  balancer    moves replicas from full DataNodes to empty ones: cairn balancer -help
  debug       what only trouble calls for: cairn debug -help
  namespace   check|dump|compact DIR
              looks at a namespace that no NameNode has open, or compacts it
  minicluster --datanodes N --dir D
              a cluster in one process, for tests of your own
  --version   the version
  --help      this
)";

// Tells whom a command waits for: once in a while, as one long copy may meet more than one restart.
class WaitingLine {
 public:
  WaitingLine(const Clock* clock, const HostPort& namenode) : clock_(clock), namenode_(namenode.ToString()) {}

  void Say(const std::string& why, absl::Duration left) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      MutexLock lock(mu_);
      const SteadyTime now = clock_->Now();
      if (said_ && now - *said_ < kEvery) return;
      said_ = now;
    }
    const std::string reason = why.starts_with(namenode_ + ": ") ? why.substr(namenode_.size() + 2) : why;
    // Not std::cerr, which the command's own thread may be writing to.
    fmt::print(stderr, "cairn: waiting for NameNode {}: {}; giving up in {:.0f} s\n", namenode_, reason, absl::ToDoubleSeconds(left));
  }

 private:
  static constexpr absl::Duration kEvery = absl::Seconds(30);
  const Clock* const clock_;
  const std::string namenode_;
  Mutex mu_;
  std::optional<SteadyTime> said_ ABSL_GUARDED_BY(mu_);
};

// Programs of their own beside this one, so that the command line links no server.
int RunBeside(const std::vector<std::string>& words, const char* name_of_program, const char* variable) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path program = self.parent_path() / name_of_program;
  if (const char* elsewhere = std::getenv(variable)) program = elsewhere;
  std::string name = program.string();
  std::vector<std::string> arguments(words.begin() + 1, words.end());
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(name.c_str(), argv.data());
  std::cerr << fmt::format("{}: {} cannot be run: {}\n", words[0], name, std::error_code(errno, std::generic_category()).message());
  return kFailure;
}

std::vector<Verb> DfsVerbs() {
  std::vector<Verb> verbs = ListVerbs();
  for (auto more : {ChangeVerbs(), AppendVerbs(), AttributeVerbs(), RemoveVerbs(), TransferVerbs(), UsageVerbs(), BlockVerbs()})
    verbs.insert(verbs.end(), more.begin(), more.end());
  return verbs;
}

bool OnlyAsksForHelp(const std::vector<std::string>& words) {
  if (words.size() < 2) return words[0] != "balancer";
  return words[1] == "-help" || words[1] == "--help" || words[1] == "-usage" || words[1] == "--usage";
}

int Run(std::vector<std::string> words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(std::move(words), ConfigSources::FromEnvironment());
  if (!line.ok()) {
    std::cerr << "cairn: " << std::string(line.status().message()) << "\n";
    return kUsage;
  }
  const std::vector<std::string>& rest = line->words;
  if (rest.empty()) {
    std::cerr << kHelp;
    return kUsage;
  }
  if (rest[0] == "--version" || rest[0] == "-version" || rest[0] == "version") {
    std::cout << "Cairn " << CAIRN_VERSION << "\n";
    return kSuccess;
  }
  if (rest[0] == "--help" || rest[0] == "-help" || rest[0] == "-h" || rest[0] == "help") {
    std::cout << kHelp;
    return kSuccess;
  }
  if (rest[0] == "minicluster") return RunBeside(rest, "cairn-minicluster", "CAIRN_MINICLUSTER");
  if (rest[0] == "namespace") return RunBeside(rest, "cairn-namespace", "CAIRN_NAMESPACE");
  if (rest[0] != "dfs" && rest[0] != "fs" && rest[0] != "dfsadmin" && rest[0] != "debug" && rest[0] != "fsck" && rest[0] != "balancer") {
    std::cerr << fmt::format("cairn: unknown command '{}'\n{}", rest[0], kHelp);
    return kUsage;
  }

  const bool admin = rest[0] == "dfsadmin";
  Shell shell;
  shell.out = &std::cout;
  shell.err = &std::cerr;
  shell.read_input = ReadStandardInput;
  shell.zone = absl::LocalTimeZone();
  const std::span<const std::string> verb(rest.data() + 1, rest.size() - 1);
  const std::unique_ptr<Env> env = NewRealEnv();
  shell.now = [&env] { return env->clock().WallNow(); };
  std::unique_ptr<FileSystem> files;
  HostPort namenode;
  std::shared_ptr<WaitingLine> waiting;
  if (!OnlyAsksForHelp(rest)) {
    const absl::StatusOr<Config> config = Config::Load(line->config);
    if (!config.ok()) {
      std::cerr << fmt::format("{}: {}\n", rest[0], std::string(config.status().message()));
      return kUsage;
    }
    const absl::StatusOr<HostPort> address = NamenodeAddress(line->address, *config);
    if (!address.ok()) {
      std::cerr << fmt::format("{}: {}\n", rest[0], std::string(address.status().message()));
      return kUsage;
    }
    namenode = *address;
    // A wrong name stays wrong: no use in trying it for as long as an absent NameNode.
    if (const absl::Status resolves = CheckResolves(namenode.host); !resolves.ok()) {
      std::cerr << fmt::format("{}: NameNode {}: {}\n", rest[0], namenode.ToString(), std::string(resolves.message()));
      return kFailure;
    }
    shell.address = fmt::format("cairn://{}", namenode.ToString());
    ClientOptions options = ClientOptionsOf(*config);
    waiting = std::make_shared<WaitingLine>(&env->clock(), namenode);
    options.on_waiting = [waiting](const std::string& why, absl::Duration left) { waiting->Say(why, left); };
    const char* user = std::getenv("HADOOP_USER_NAME");
    shell.user = options.user = user != nullptr && *user != '\0' ? user : client::OsUserName(&env->files());
    absl::StatusOr<std::unique_ptr<FileSystem>> connected = FileSystem::Connect(namenode.ToString(), options);
    if (!connected.ok()) {
      std::cerr << fmt::format("{}: {}\n", rest[0], std::string(connected.status().message()));
      return kFailure;
    }
    files = *std::move(connected);
    shell.files = files.get();
  }
  shell.interrupted = CatchInterrupts();
  shell.wait = [&env, &shell](absl::Duration duration) {
    const SteadyTime end = env->clock().Now() + duration;
    while (!shell.Interrupted() && env->clock().Now() < end)  // A signal wakes nobody here: look often.
      env->BlockUntil([] { return false; }, std::min(end, env->clock().Now() + absl::Milliseconds(100)));
  };
  // HDFS writes the verbs of debug without a dash, and people forget that of dfsadmin's.
  std::vector<std::string> dashed(verb.begin(), verb.end());
  if (!dashed.empty() && !dashed[0].starts_with('-')) dashed[0] = fmt::format("-{}", dashed[0]);
  int result = kSuccess;
  if (admin) {
    const AdminTarget target{.env = env.get(), .namenode = namenode, .user = shell.user};
    const auto now = [&env] { return env->clock().WallNow(); };
    std::vector<Verb> verbs =
        AdminVerbs([&target] { return CallAdmin(target, &api::NamenodeAdmin::ClusterReport, v1::ClusterReportRequest()); }, now);
    verbs.push_back(
        ReclaimVerb([&target](v1::ReclaimRequest request) { return CallAdmin(target, &api::NamenodeAdmin::Reclaim, std::move(request)); }));
    verbs.push_back(OrphansVerb(
        [&target](v1::ListOrphansRequest request) { return CallAdmin(target, &api::NamenodeAdmin::ListOrphans, std::move(request)); }));
    verbs.push_back(SafeModeVerb(
        [&target](v1::SafeModeRequest request) { return CallAdmin(target, &api::NamenodeAdmin::SafeMode, std::move(request)); }));
    AskNodes nodes;
    nodes.report = [&target] { return CallAdmin(target, &api::NamenodeAdmin::ClusterReport, v1::ClusterReportRequest()); };
    nodes.set = [&target](v1::SetNodeAdminRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::SetNodeAdmin, std::move(request));
    };
    nodes.refresh = [&target] { return CallAdmin(target, &api::NamenodeAdmin::RefreshNodes, v1::RefreshNodesRequest()); };
    nodes.blockers = [&target](v1::ListNodeBlockersRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::ListNodeBlockers, std::move(request));
    };
    nodes.bad = [&target](v1::ListBadBlocksRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::ListBadBlocks, std::move(request));
    };
    for (Verb& more : NodeVerbs(std::move(nodes), now)) verbs.push_back(std::move(more));
    for (Verb& quota : QuotaVerbs()) verbs.push_back(std::move(quota));
    AskImage image;
    image.save = [&target](v1::SaveNamespaceRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::SaveNamespace, std::move(request));
    };
    image.get = [&target](v1::GetImageRequest request) { return CallAdmin(target, &api::NamenodeAdmin::GetImage, std::move(request)); };
    image.read = [&target](v1::ReadImageRequest request) { return CallAdmin(target, &api::NamenodeAdmin::ReadImage, std::move(request)); };
    image.confirm = [&target](v1::ConfirmRollbackRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::ConfirmRollback, std::move(request));
    };
    for (Verb& more : ImageVerbs(image, &env->files())) verbs.push_back(std::move(more));
    verbs.push_back(ReconfigVerb(
        [target](const HostPort& address, v1::ReconfigureRequest request) {
          AdminTarget other = target;
          other.namenode = address;
          return CallAdmin(other, &api::NamenodeAdmin::Reconfigure, std::move(request));
        },
        [&env, &shell](const HostPort& datanode, v1::ReconfigureRequest request) {
          return AskDatanodeReconfigure(env.get(), datanode, shell.user, std::move(request), absl::Minutes(2));
        }));
    const AskDatanode ask_datanode = [&env, &shell](const HostPort& datanode) {
      return AskDatanodeInfo(env.get(), datanode, shell.user, absl::Seconds(30));
    };
    for (Verb& more : DatanodeVerbs(ask_datanode)) verbs.push_back(std::move(more));
    const SetBandwidth set_bandwidth = [&target](uint64_t bytes_per_second) {
      v1::SetBalancerBandwidthRequest request;
      request.set_bytes_per_second(bytes_per_second);
      return CallAdmin(target, &api::NamenodeAdmin::SetBalancerBandwidth, std::move(request)).status();
    };
    for (Verb& more : BandwidthVerbs(set_bandwidth, ask_datanode)) verbs.push_back(std::move(more));
    result = RunVerb("cairn dfsadmin", verbs, dashed, &shell);
  } else if (rest[0] == "fsck") {
    const AdminTarget target{.env = env.get(), .namenode = namenode, .user = shell.user};
    FsckTarget fsck;
    fsck.ask = [&target](v1::FsckRequest request) { return CallAdmin(target, &api::NamenodeAdmin::Fsck, std::move(request)); };
    fsck.bad = [&target](v1::ListBadBlocksRequest request) {
      return CallAdmin(target, &api::NamenodeAdmin::ListBadBlocks, std::move(request));
    };
    fsck.wall_now = [&env] { return env->clock().WallNow(); };
    fsck.namenode = shell.address;
    // The one verb of its group: its name has been said already.
    std::vector<std::string> whole = {"-fsck"};
    whole.insert(whole.end(), verb.begin(), verb.end());
    if (OnlyAsksForHelp(rest)) whole = {"-help", "fsck"};
    result = RunVerb("cairn", {FsckVerb(std::move(fsck))}, whole, &shell);
  } else if (rest[0] == "balancer") {
    const AdminTarget target{.env = env.get(), .namenode = namenode, .user = shell.user};
    BalancerTarget balancer;
    balancer.ask = [&target](v1::BalanceRequest request) { return CallAdmin(target, &api::NamenodeAdmin::Balance, std::move(request)); };
    balancer.namenode = shell.address;
    balancer.run = env->NewRandom().Next() | 1;  // Not 0.
    result = RunBalancer(balancer, &shell, verb);
  } else if (rest[0] == "debug") {
    result = RunVerb("cairn debug", DebugVerbs(), dashed, &shell);
  } else {
    result = RunVerb("cairn dfs", DfsVerbs(), verb, &shell);
  }
  std::cout.flush();
  if (!std::cout && result == kSuccess) result = kFailure;
  return shell.Interrupted() ? kInterruptedExit : result;
}

}  // namespace
}  // namespace cairn::cli

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return cairn::cli::Run(std::vector<std::string>(argv + 1, argv + argc));
}
