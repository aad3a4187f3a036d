#pragma once

// A NameNode that says what a test tells it to, and remembers what it heard. One thread.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/api/datanode_namenode.h"
#include "common/error.h"

namespace cairn::datanode::testing {

class FakeNamenode : public api::DatanodeNamenode {
 public:
  template <class Up, class Down>
  struct Stream {
    std::shared_ptr<api::MessageHandler<Down>> handler;
    std::vector<Up> heard;
    bool closed = false;
    size_t queued = 0;  // What the sink shall say.

    void Say(Down message) {
      if (!closed) handler->OnMessage(std::move(message));
    }
    void Break(absl::Status status = absl::UnavailableError("cut")) {
      if (std::exchange(closed, true)) return;
      handler->OnClosed(std::move(status));
    }
  };
  using ReportStream = Stream<v1::ReportUp, v1::ReportDown>;
  using CommandStream = Stream<v1::CommandUp, v1::CommandDown>;

  // What it answers. Without an answer the call is kept and never answered.
  absl::Status register_status;
  v1::RegisterResponse register_response;
  v1::HeartbeatResponse heartbeat_response;
  absl::Status heartbeat_status;
  bool answer_heartbeats = true;
  std::vector<absl::Status> commit_statuses;  // Of the next CommitBlockRecovery calls; then OK.

  std::vector<v1::RegisterRequest> registrations;
  std::vector<std::pair<SteadyTime, v1::HeartbeatRequest>> heartbeats;
  std::vector<v1::CommitBlockRecoveryRequest> recoveries;
  std::vector<std::shared_ptr<ReportStream>> reports;
  std::vector<std::shared_ptr<CommandStream>> commands;

  explicit FakeNamenode(const Clock* clock) : clock_(clock) {
    register_response.set_cluster_id("cluster");
    register_response.set_pool_id("pool-0123456789a", 16);
    register_response.set_epoch(5);
    heartbeat_response.set_epoch(5);
  }

  void Register(api::CallContext, v1::RegisterRequest request, api::Done<v1::RegisterResponse> done) override {
    registrations.push_back(std::move(request));
    if (!register_status.ok()) return done(register_status);
    done(register_response);
  }
  void Heartbeat(api::CallContext, v1::HeartbeatRequest request, api::Done<v1::HeartbeatResponse> done) override {
    heartbeats.emplace_back(clock_->Now(), std::move(request));
    if (!answer_heartbeats) {
      unanswered_.push_back(std::move(done));
      return;
    }
    if (!heartbeat_status.ok()) return done(heartbeat_status);
    done(heartbeat_response);
  }
  void CommitBlockRecovery(api::CallContext, v1::CommitBlockRecoveryRequest request,
                           api::Done<v1::CommitBlockRecoveryResponse> done) override {
    recoveries.push_back(std::move(request));
    if (!commit_statuses.empty()) {
      absl::Status status = std::move(commit_statuses.front());
      commit_statuses.erase(commit_statuses.begin());
      if (!status.ok()) return done(std::move(status));
    }
    done(v1::CommitBlockRecoveryResponse());
  }
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    reports.push_back(std::make_shared<ReportStream>());
    reports.back()->handler = std::move(handler);
    return std::make_shared<Sink<ReportStream, v1::ReportUp>>(reports.back());
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    commands.push_back(std::make_shared<CommandStream>());
    commands.back()->handler = std::move(handler);
    return std::make_shared<Sink<CommandStream, v1::CommandUp>>(commands.back());
  }

 private:
  template <class S, class Up>
  class Sink : public api::MessageSink<Up> {
   public:
    explicit Sink(std::shared_ptr<S> stream) : stream_(std::move(stream)) {}
    bool Send(Up message) override {
      if (stream_->closed) return false;
      stream_->heard.push_back(std::move(message));
      return true;
    }
    size_t Queued() const override { return stream_->queued; }
    void Close(absl::Status status) override { stream_->Break(std::move(status)); }

   private:
    const std::shared_ptr<S> stream_;
  };

  const Clock* const clock_;
  std::vector<api::Done<v1::HeartbeatResponse>> unanswered_;
};

}  // namespace cairn::datanode::testing
