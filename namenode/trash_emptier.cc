#include "namenode/trash_emptier.h"

#include <atomic>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/error.h"
#include "common/status.h"
#include "common/trash.h"
#include "namenode/background_loop.h"
#include "namenode/namespace/namespace_queries.h"

namespace cairn::namenode {
namespace {

constexpr int kCheckpointAttempts = 1000;

}  // namespace

struct TrashEmptier::State : std::enable_shared_from_this<TrashEmptier::State> {
  // One thing to do for a user.
  struct Action {
    std::string path;
    bool make_checkpoint = false;  // Of `path`, the trash; else `path` is an old checkpoint, to be deleted.
    int attempt = 0;
  };

  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(std::move(options_in)),
        every(TrashCheckpointInterval(options.interval, options.checkpoint_interval)),
        space(space_in),
        executor(executor_in) {}

  Options options;       // The executor's once started, as `every`.
  absl::Duration every;  // 0: there is no trash.
  NamespaceAccess* const space;
  Executor* const executor;
  std::atomic<uint64_t> passes{0};
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> deleted{0};

  // The executor's from here.
  std::optional<Options> next_options;  // From the next pass on.
  absl::Time pass_time;
  std::string after_user;  // Users up to this name are looked at.
  bool more_users = false;
  std::deque<Action> actions;
  bool in_flight = false;
  BackgroundLoop loop{executor};

  // To the next multiple of the interval, so that a NameNode that is restarted often empties the trash all the same.
  void Schedule() {
    if (next_options) {
      options = *std::exchange(next_options, std::nullopt);
      every = TrashCheckpointInterval(options.interval, options.checkpoint_interval);
    }
    if (loop.stopping() || every <= absl::ZeroDuration()) return;
    const absl::Duration since = executor->clock().WallNow() - absl::UnixEpoch();
    const absl::Duration rest = since % every;
    loop.RunAfter(every - rest, [self = shared_from_this()] { self->Begin(); });
  }

  void Begin() {
    if (loop.stopping()) return;
    pass_time = executor->clock().WallNow();
    after_user.clear();
    more_users = true;
    Continue();
  }

  void Continue() {
    while (actions.empty() && more_users) NextUsers();
    if (!actions.empty()) return Do(actions.front());
    ++passes;
    Schedule();
  }

  // The next page of users.
  void NextUsers() {
    const std::shared_ptr<const ReadView> view = space->Snapshot();
    const absl::StatusOr<Listing> users = ListDirectory(*view, kHomes, after_user, options.names_per_page);
    more_users = users.ok() && users->has_more;
    if (!users.ok()) {
      if (KindOf(users.status()) != ErrorKind::kNotFound)
        spdlog::warn("the trash is not emptied: {}", std::string(users.status().message()));
      return;
    }
    for (const v1::FileStatus& user : users->entries) {
      after_user = user.path();
      if (user.is_directory()) LookAt(*view, TrashOf(user.path()));
    }
  }

  void LookAt(const ReadView& view, const std::string& trash) {
    const absl::StatusOr<v1::FileStatus> itself = StatusOfPath(view, trash);
    if (!itself.ok() || !itself->is_directory()) return;
    bool has_current = false;
    std::string after;
    for (bool more = true; more;) {
      const absl::StatusOr<Listing> page = ListDirectory(view, trash, after, options.names_per_page);
      if (!page.ok()) return;
      for (const v1::FileStatus& entry : page->entries) {
        after = entry.path();
        if (after == kTrashCurrent) {
          has_current = true;
        } else if (const std::optional<absl::Time> time = TrashCheckpointTime(after); !time) {
          spdlog::warn("Unexpected item in trash: {}/{}. Ignoring.", trash, after);
        } else if (pass_time - *time > options.interval) {
          actions.push_back(Action{.path = trash + "/" + after});
        }
      }
      more = page->has_more;
    }
    if (has_current) actions.push_back(Action{.path = trash, .make_checkpoint = true});
  }

  void Do(const Action& action) {
    v1::Mutation mutation;
    mutation.set_user(options.user);
    mutation.set_superuser(true);
    *mutation.mutable_limits() = options.limits;
    if (action.make_checkpoint) {
      mutation.mutable_rename()->set_source(fmt::format("{}/{}", action.path, kTrashCurrent));
      mutation.mutable_rename()->set_destination(CheckpointOf(action));
    } else {
      mutation.mutable_delete_()->set_path(action.path);
      mutation.mutable_delete_()->set_recursive(true);
    }
    in_flight = true;
    space->Submit(std::move(mutation), [self = shared_from_this()](absl::StatusOr<v1::MutationResult> result) {
      self->executor->Post([self, result = std::move(result)] { self->Finish(result); });
    });
  }

  std::string CheckpointOf(const Action& action) const {
    return fmt::format("{}/{}", action.path, TrashCheckpointName(pass_time, action.attempt));
  }

  void Finish(const absl::StatusOr<v1::MutationResult>& result) {
    in_flight = false;
    Action& action = actions.front();
    const std::string what = action.make_checkpoint ? CheckpointOf(action) : action.path;
    const bool again =
        action.make_checkpoint && KindOf(result.status()) == ErrorKind::kAlreadyExists && action.attempt < kCheckpointAttempts;
    if (result.ok()) {
      ++(action.make_checkpoint ? made : deleted);
      spdlog::info("{} trash checkpoint: {}", action.make_checkpoint ? "Created" : "Deleted", what);
    } else if (!again) {
      spdlog::warn("Couldn't {} checkpoint: {} Ignoring. {}", action.make_checkpoint ? "create" : "delete", what,
                   std::string(result.status().message()));
    }
    if (again) {
      ++action.attempt;
    } else {
      actions.pop_front();
    }
    if (loop.Ended()) return;
    Continue();
  }
};

TrashEmptier::TrashEmptier(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(std::move(options), space, executor)) {}

TrashEmptier::~TrashEmptier() = default;

void TrashEmptier::Start() {
  state_->executor->Post([state = state_] { state->Schedule(); });
}

void TrashEmptier::Reload(Options options) {
  state_->executor->Post([state = state_, options = std::move(options)]() mutable {
    state->next_options = std::move(options);
    if (state->in_flight) return;  // A pass ends with what it began with: its end takes them over.
    state->loop.CancelPause();
    state->Schedule();
  });
}

TrashEmptier::Stats TrashEmptier::stats() const {
  return {.passes = state_->passes.load(), .checkpoints_made = state_->made.load(), .checkpoints_deleted = state_->deleted.load()};
}

void TrashEmptier::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable { state->loop.Stop(state->in_flight, std::move(then)); });
}

}  // namespace cairn::namenode
