// AdminService: the health of files, a page at a time.

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/tree_page.h"

namespace cairn::namenode {
namespace {

constexpr size_t kInodesAPage = 2000;
constexpr size_t kBlocksAPage = 2000;
constexpr size_t kBytesAPage = 2 << 20;  // Far below what a message may have.
constexpr uint64_t kIdsAtOnce = 256;

v1::FsckFile FileOf(const v1::INodeRecord& inode, const std::string& path) {
  v1::FsckFile file;
  file.set_path(path);
  file.set_inode_id(inode.id());
  file.set_length_bytes(inode.length_bytes());
  file.set_replication(inode.replication());
  file.set_under_construction(!inode.lease_holder().empty());
  file.set_holder(inode.lease_holder());
  return file;
}

class Page {
 public:
  Page(const ReadView& view, ReplicaPlane* plane, const v1::FsckRequest& request) : view_(view), plane_(plane), request_(request) {}

  absl::Status Fill(v1::FsckResponse* response) {
    if (request_.block_id() != 0) return FillBlock(response);
    std::string start_after = request_.start_after();
    if (request_.start_block() != 0) {  // The page before ended inside a file.
      ASSIGN_OR_RETURN(const bool go_on, FillRest(response));
      if (!go_on || start_after == kTheFileItself) {
        response->set_next(response->next_block() != 0 || !go_on ? start_after : "");
        return absl::OkStatus();
      }
    }
    const TreeVisit visit = [this, response](const v1::INodeRecord& inode, const std::string& path) -> absl::StatusOr<bool> {
      if (inode.type() == v1::DIRECTORY) {
        response->set_directories(response->directories() + 1);
        bytes_ += path.size();
        if (request_.with_replicas()) response->add_directory_paths(path);
        return !IsFull();
      }
      return AddFile(inode, path, 0, response);
    };
    ASSIGN_OR_RETURN(TreePage page, WalkTreePage(view_, {request_.path(), start_after, kInodesAPage}, visit));
    // The walk says behind which directory it stands, if the file was the last one there: that would not say which file has more.
    response->set_next(response->next_block() != 0 ? partial_ : std::move(page.next));
    return absl::OkStatus();
  }

 private:
  static constexpr std::string_view kTheFileItself = "/";  // `next`, where the path is a file's; no walk ends there.

  bool IsFull() const { return blocks_ >= kBlocksAPage || bytes_ >= kBytesAPage; }

  // With the blocks from `first` on, as far as they fit; false if the page is full.
  absl::StatusOr<bool> AddFile(const v1::INodeRecord& inode, const std::string& path, uint32_t first, v1::FsckResponse* response) {
    v1::FsckFile& file = *response->add_files();
    file = FileOf(inode, path);
    file.set_first_block(first);
    bytes_ += file.ByteSizeLong();
    uint32_t index = first;
    while (index < inode.block_count() && !(IsFull() && index > first)) {
      ASSIGN_OR_RETURN(const std::vector<BlockId> ids, BlockIds(view_, inode, index, kIdsAtOnce));
      if (ids.empty()) break;
      for (const BlockId id : ids) {
        ++index;
        ASSIGN_OR_RETURN(const v1::BlockRecord record, GetBlock(view_, id));
        if (record.state() != v1::RESERVED) {
          ASSIGN_OR_RETURN(*file.add_blocks(), plane_->Inspect(id, record, request_.with_replicas()));
          bytes_ += file.blocks(file.blocks_size() - 1).ByteSizeLong();
          ++blocks_;
        }
        if (IsFull()) break;
      }
    }
    if (index < inode.block_count()) {
      file.set_more_blocks(true);
      response->set_next_block(index);
      ASSIGN_OR_RETURN(partial_, BelowThePath(path));
    }
    return !IsFull();
  }

  // `path` as `next` says it.
  absl::StatusOr<std::string> BelowThePath(const std::string& path) const {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, SplitPath(request_.path()));
    if (names.empty()) return path;
    const std::string root = JoinPath(names);
    return path.size() > root.size() ? path.substr(root.size()) : std::string(kTheFileItself);
  }

  absl::StatusOr<bool> FillRest(v1::FsckResponse* response) {
    std::string path = request_.path();
    if (request_.start_after() != kTheFileItself) path = (path == "/" ? "" : path) + request_.start_after();
    const absl::StatusOr<PathWalk> walk = WalkExisting(view_, path, Caller::Trusted());
    if (KindOf(walk.status()) == ErrorKind::kNotFound) return true;  // Gone meanwhile.
    RETURN_IF_ERROR(walk.status());
    if (walk->last().is_directory() || walk->last().record->block_count() <= request_.start_block()) return true;
    return AddFile(*walk->last().record, path, request_.start_block(), response);
  }

  absl::Status FillBlock(v1::FsckResponse* response) {
    const BlockId id(request_.block_id());
    ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> record, FindBlock(view_, id));
    if (!record) return MakeError(ErrorKind::kNotFound, fmt::format("Block blk_{} does not exist", id.value()));
    ASSIGN_OR_RETURN(const ResolvedInode inode, ResolveId(view_, InodeId(record->inode_id())));
    ASSIGN_OR_RETURN(const std::string path, PathOf(view_, InodeId(record->inode_id())));
    v1::FsckFile file = FileOf(inode.record, path);
    ASSIGN_OR_RETURN(*file.add_blocks(), plane_->Inspect(id, *record, true));
    *response->add_files() = std::move(file);
    return absl::OkStatus();
  }

  const ReadView& view_;
  ReplicaPlane* const plane_;
  const v1::FsckRequest& request_;
  size_t blocks_ = 0;
  size_t bytes_ = 0;
  std::string partial_;  // The file in which the page ended, as `next` says it.
};

}  // namespace

void AdminService::Fsck(api::CallContext, v1::FsckRequest request, api::Done<v1::FsckResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (space_ == nullptr || reader_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no namespace here"));
  reader_->Post([this, request = std::move(request), done = std::move(done)]() mutable {
    v1::FsckResponse response;
    const std::shared_ptr<const ReadView> view = space_->Snapshot();
    if (absl::Status filled = Page(*view, plane_, request).Fill(&response); !filled.ok()) return done(std::move(filled));
    v1::ClusterReportResponse report;
    plane_->FillReport(&report);
    std::set<std::string> racks;
    for (const v1::DatanodeReport& node : report.datanodes()) {
      if (node.state() == v1::DEAD) continue;
      response.set_datanodes(response.datanodes() + 1);
      racks.insert(node.info().rack());
    }
    response.set_racks(static_cast<uint32_t>(racks.size()));
    response.set_default_replication(default_replication_);
    response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    done(std::move(response));
  });
}

}  // namespace cairn::namenode
