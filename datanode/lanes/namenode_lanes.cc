#include "datanode/lanes/namenode_lanes.h"

#include <utility>

namespace cairn::datanode {

NamenodeLanes::NamenodeLanes(Options options, Env* env, Channels channels, BlockStore* store, NodeIdentity* node, EventLog* events,
                             Callbacks callbacks)
    : store_(store),
      registration_executor_(env->executors().NewExecutor("registration")),
      heartbeat_executor_(env->executors().NewExecutor("heartbeat")),
      report_executor_(env->executors().NewExecutor("report")),
      command_executor_(env->executors().NewExecutor("command")),
      watchdog_executor_(env->executors().NewExecutor("watchdog")),
      watchdog_(std::make_unique<Watchdog>(watchdog_executor_.get(), options.watchdog_limit)) {
  RegistrationLane::Callbacks on_registration;
  on_registration.on_registered = [this](const v1::RegisterResponse& answer) {
    heartbeat_->Start(absl::Milliseconds(answer.heartbeat_interval_ms()));
    report_->Start();
    command_->Start();
  };
  on_registration.on_keys = callbacks.keys;
  on_registration.on_epoch = [this] { command_->EpochRaised(); };
  on_registration.on_refused = std::move(callbacks.refused);
  on_registration.on_other_cluster = std::move(callbacks.other_cluster);
  registration_ = std::make_unique<RegistrationLane>(std::move(options.registration), options.identity, registration_executor_.get(),
                                                     channels.registration, store, node, &fence_, env->NewRandom(),
                                                     std::move(on_registration), watchdog_.get());
  auto fill = [this, store, events, active_streams = std::move(callbacks.active_streams),
               slow_peers = std::move(callbacks.slow_peers)](v1::HeartbeatRequest* request) mutable {
    for (v1::StorageStatistics& storage : store->Statistics()) *request->add_storages() = std::move(storage);
    if (active_streams) request->set_active_streams(active_streams());
    if (slow_peers)
      for (v1::SlowPeer& peer : slow_peers()) *request->add_slow_peers() = std::move(peer);
    request->set_unacknowledged_events(events->kept());
    request->set_pending_deletion_blocks(store->pending_deletion_blocks());
    request->set_pending_deletion_bytes(store->pending_deletion_bytes());
    request->set_command_queue(command_->queued());
    request->set_oldest_pending_deletion_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(store->oldest_pending_deletion())));
    request->set_overdue_steps(watchdog_->overdue_steps());
    if (request->overdue_steps() > 0) request->set_last_overdue_step(watchdog_->last_overdue().step);
  };
  heartbeat_ = std::make_unique<HeartbeatLane>(options.heartbeat, options.identity, heartbeat_executor_.get(), channels.heartbeat,
                                               std::move(fill), registration_.get(), watchdog_.get());
  heartbeat_->SetBandwidthObserver(std::move(callbacks.balance_bandwidth));
  heartbeat_->SetSlowObserver(std::move(callbacks.slow));
  report_ = std::make_unique<ReportLane>(options.report, options.identity, report_executor_.get(), channels.report, store, events,
                                         env->NewRandom(), registration_.get(), watchdog_.get());
  report_->SetLatencyObserver(std::move(callbacks.report_applied));
  CommandLane::Callbacks on_command;
  on_command.transfer = std::move(callbacks.transfer);
  on_command.recover = std::move(callbacks.recover);
  on_command.keys = callbacks.keys;
  on_command.shutdown = std::move(callbacks.shutdown);
  command_ = std::make_unique<CommandLane>(options.command, options.identity, command_executor_.get(), channels.command, store, &fence_,
                                           env->NewRandom(), registration_.get(), std::move(on_command), watchdog_.get());
}

NamenodeLanes::~NamenodeLanes() {
  store_->SetVolumeObserver(nullptr);
  registration_->Close();
  heartbeat_->Close();
  report_->Close();
  command_->Close();
  // Each waits for the step under way, then drops what is queued; afterwards nobody calls into a lane.
  registration_executor_.reset();
  heartbeat_executor_.reset();
  report_executor_.reset();
  command_executor_.reset();
  watchdog_executor_.reset();
}

void NamenodeLanes::Start() {
  store_->SetVolumeObserver([this](const std::string& storage_uuid) {
    report_->WalkStorage(storage_uuid);
    registration_->RegisterAgain("a volume has come");
  });
  watchdog_->Start();
  registration_->Start();
}

}  // namespace cairn::datanode
