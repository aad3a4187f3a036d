#include "namenode/namespace/tree_page.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

// A directory on the way down, and how far its entries are done.
struct Level {
  InodeId directory;
  std::string path;  // "" for the root.
  std::string done;  // Name of the last entry that was looked at.
};

class Walk {
 public:
  Walk(const ReadView& view, const TreeQuery& query, const TreeVisit& visit) : view_(view), query_(query), visit_(visit) {}

  absl::StatusOr<TreePage> Run() {
    ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view_, query_.path, Caller::Trusted()));
    const std::string path = walk.components.empty() ? "" : walk.path();
    if (query_.start_after.empty()) {
      page_.seen += walk.last().is_directory() ? 0 : 1;
      RETURN_IF_ERROR(visit_(*walk.last().record, path.empty() ? "/" : path).status());
    }
    if (!walk.last().is_directory()) return std::move(page_);
    root_length_ = path.size();
    levels_.push_back({walk.last().id(), path, ""});
    RETURN_IF_ERROR(TakeUp());
    while (!levels_.empty()) {
      ASSIGN_OR_RETURN(const bool full, Go());
      if (!full) continue;
      page_.next = levels_.back().path.substr(root_length_) + "/" + levels_.back().done;
      break;
    }
    return std::move(page_);
  }

 private:
  // Stands where the page before ended: behind an entry with all that is below it, or, with a slash at the end, before the first entry of a
  // directory. Directories that are gone since are passed over.
  absl::Status TakeUp() {
    if (query_.start_after.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, SplitPath(query_.start_after));
    const size_t directories = query_.start_after.ends_with('/') ? names.size() : names.size() - 1;
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      levels_.back().done = name;
      if (i == directories) break;
      ASSIGN_OR_RETURN(const auto record, FindShared<v1::INodeRecord>(view_, Family::kInode, InodeKey(levels_.back().directory, name)));
      if (record == nullptr || record->type() != v1::DIRECTORY) return absl::OkStatus();
      Descend(*record, name);
    }
    return absl::OkStatus();
  }

  void Descend(const v1::INodeRecord& directory, const std::string& name) {
    levels_.push_back({InodeId(directory.id()), levels_.back().path + "/" + name, ""});
  }

  // Looks at the entries of the lowest directory, until there is another one below, or none is left, or the page is full: then true.
  absl::StatusOr<bool> Go() {
    const InodeId directory = levels_.back().directory;
    const auto cursor = view_.Scan(Family::kInode, ChildrenBegin(directory, levels_.back().done), ChildrenEnd(directory));
    for (; cursor->Valid(); cursor->Next()) {
      if (ended_ || page_.seen >= query_.max_seen) return true;
      const std::optional<InodeKeyParts> place = ParseInodeKey(cursor->key());
      v1::INodeRecord record;
      if (!place || !record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
        return CorruptRow(Family::kInode, cursor->key(), "does not parse");
      ++page_.seen;
      const std::string name(place->name);
      levels_.back().done = name;
      ASSIGN_OR_RETURN(const bool go_on, visit_(record, levels_.back().path + "/" + name));
      ended_ = !go_on;
      if (record.type() == v1::DIRECTORY) {
        Descend(record, name);
        return false;
      }
    }
    RETURN_IF_ERROR(cursor->status());
    levels_.pop_back();
    return false;
  }

  const ReadView& view_;
  const TreeQuery& query_;
  const TreeVisit& visit_;
  TreePage page_;
  std::vector<Level> levels_;
  size_t root_length_ = 0;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<TreePage> WalkTreePage(const ReadView& view, const TreeQuery& query, const TreeVisit& visit) {
  return Walk(view, query, visit).Run();
}

}  // namespace cairn::namenode
