#include "client/cli/fsck.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.h"

namespace cairn::cli {
namespace {

// What HDFS's fsck ends with when access is denied: 255 to the shell, and no synopsis.
constexpr int kRefused = -1;

struct FsckOptions {
  std::string path = "/";
  bool files = false;
  bool blocks = false;
  bool locations = false;
  bool racks = false;
  bool details = false;
  bool open = false;
  bool list_corrupt = false;
  std::vector<uint64_t> block_ids;
};

// As Java prints the share of two whole numbers: 33.333332 shows as 33.33; "0.0", "100.0".
std::string Share(uint64_t part, uint64_t whole) {
  const double percent = whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  const std::string text = fmt::format("{:.7g}", percent);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string Ratio(double value) {
  const std::string text = fmt::format("{:.7g}", value);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string DateText(absl::Time time) { return absl::FormatTime("%a %b %d %H:%M:%S UTC %Y", time, absl::UTCTimeZone()); }

std::string NameOf(const v1::Block& block) { return fmt::format("blk_{}_{}", block.id(), block.generation_stamp()); }

bool IsOpen(const v1::FsckBlock& block) { return block.state() != v1::COMMITTED; }

// A healthy block has no good copy less than one; what is corrupt everywhere is missing, too.
bool IsCorrupt(const v1::FsckBlock& block) { return block.missing() && block.corrupt() > 0; }

std::string ReplicaText(const v1::FsckReplica& replica, const FsckOptions& options) {
  const v1::DatanodeInfo& node = replica.location().datanode();
  const std::string address = fmt::format("{}:{}", node.transfer().host(), node.transfer().port());
  if (options.racks && !options.details) return fmt::format("{}/{}", node.rack(), address);
  std::string text = fmt::format("DatanodeInfoWithStorage[{},{},DISK]", address, replica.location().storage_uuid());
  if (!options.details) return text;
  const char* state = "LIVE";
  if (replica.node() == v1::DEAD) {
    state = "DEAD";
  } else if (replica.admin_state() == v1::DECOMMISSIONED) {
    state = "DECOMMISSIONED";
  } else if (replica.admin_state() == v1::DECOMMISSIONING) {
    state = "DECOMMISSIONING";
  } else if (replica.admin_state() == v1::IN_MAINTENANCE) {
    state = "MAINTENANCE";
  } else if (replica.admin_state() == v1::ENTERING_MAINTENANCE) {
    state = "ENTERING MAINTENANCE";
  } else if (replica.corrupt()) {
    state = "CORRUPT";
  } else if (replica.excess()) {
    state = "EXCESS";
  } else if (replica.stale()) {
    state = "STALE_NODE";
  }
  return fmt::format("{}({})", text, state);
}

class Summary {
 public:
  explicit Summary(const FsckOptions& options) : options_(options) {}

  // What is to be printed of the file, if anything.
  std::string Add(const v1::FsckFile& file) {
    if (file.under_construction() && !options_.open) {
      ++open_files_;
      open_bytes_ += file.length_bytes();
      open_blocks_ += static_cast<uint64_t>(file.blocks_size());
      return "";
    }
    ++files_;
    bytes_ += file.length_bytes();
    std::string head = fmt::format("{} {} bytes, replicated: replication={}, {} block(s){}: ", file.path(), file.length_bytes(),
                                   file.replication(), file.blocks_size(), file.under_construction() ? ", OPENFORWRITE" : "");
    std::string troubles, lines;
    uint64_t missing = 0, missing_bytes = 0, corrupt = 0;
    for (int i = 0; i < file.blocks_size(); ++i) {
      const v1::FsckBlock& block = file.blocks(i);
      ++blocks_;
      const bool gone = block.missing() && !IsOpen(block);
      if (!IsOpen(block)) {
        minimal_ += gone ? 0 : 1;
        over_ += block.live() > block.wanted() ? 1 : 0;
        live_ += block.live();
        if (!gone) wanted_ += block.wanted();
        if (block.under_replicated() && !gone) {
          ++under_;
          missing_replicas_ += block.live() < block.wanted() ? block.wanted() - block.live() : 0;
          troubles += fmt::format(
              "\n{}:  Under replicated {}. Target Replicas is {} but found {} live replica(s), {} decommissioned replica(s), "
              "{} decommissioning replica(s).",
              file.path(), NameOf(block.block()), block.wanted(), block.live(), Count(block, v1::DECOMMISSIONED),
              Count(block, v1::DECOMMISSIONING));
        }
        if (block.mis_replicated()) {
          ++mis_;
          troubles +=
              fmt::format("\n{}: Replica placement policy is violated for {}. Block should be additionally replicated on 1 more rack(s).",
                          file.path(), NameOf(block.block()));
        }
        if (gone) {
          ++missing;
          missing_bytes += block.block().length_bytes();
        }
        if (IsCorrupt(block)) {
          ++corrupt;
          troubles += fmt::format("\n{}: CORRUPT {}", file.path(), NameOf(block.block()));
        }
      }
      if (options_.blocks) lines += BlockLine(i, block);
    }
    missing_blocks_ += missing;
    missing_bytes_ += missing_bytes;
    corrupt_blocks_ += corrupt;
    if (missing > 0) {
      ++corrupt_files_;
      troubles += fmt::format("\n{}: MISSING {} blocks of total size {} B.", file.path(), missing, missing_bytes);
    }
    if (!options_.files) return troubles.empty() ? "" : troubles + "\n";
    return head + (troubles.empty() ? " OK" : troubles) + "\n" + lines + (options_.blocks ? "\n" : "");
  }

  void AddDirectories(uint64_t count) { directories_ += count; }
  bool healthy() const { return missing_blocks_ == 0; }

  std::string Text(const v1::FsckResponse& last) const {
    std::string text = fmt::format("\nStatus: {}\n", healthy() ? "HEALTHY" : "CORRUPT");
    text += fmt::format(" Number of data-nodes:\t{}\n Number of racks:\t\t{}\n", last.datanodes(), last.racks());
    text += fmt::format(" Total dirs:\t\t\t{}\n Total symlinks:\t\t0\n", directories_);
    text += fmt::format("\nReplicated Blocks:\n Total size:\t{} B{}\n", bytes_,
                        open_bytes_ > 0 ? fmt::format(" (Total open files size: {} B)", open_bytes_) : "");
    text += fmt::format(" Total files:\t{}{}\n", files_,
                        open_files_ > 0 ? fmt::format(" (Files currently being written: {})", open_files_) : "");
    text += fmt::format(" Total blocks (validated):\t{}", blocks_);
    if (blocks_ > 0) text += fmt::format(" (avg. block size {} B)", bytes_ / blocks_);
    if (open_blocks_ > 0) text += fmt::format(" (Total open file blocks (not validated): {})", open_blocks_);
    text += "\n";
    if (!healthy()) {
      text += "  ********************************\n";
      text += fmt::format("  UNDER MIN REPL'D BLOCKS:\t{} ({} %)\n  dfs.namenode.replication.min:\t1\n", missing_blocks_,
                          Share(missing_blocks_, blocks_));
      text += fmt::format("  CORRUPT FILES:\t{}\n  MISSING BLOCKS:\t{}\n  MISSING SIZE:\t\t{} B\n", corrupt_files_, missing_blocks_,
                          missing_bytes_);
      if (corrupt_blocks_ > 0) text += fmt::format("  CORRUPT BLOCKS: \t{}\n", corrupt_blocks_);
      text += "  ********************************\n";
    }
    text += fmt::format(" Minimally replicated blocks:\t{} ({} %)\n", minimal_, Share(minimal_, blocks_));
    text += fmt::format(" Over-replicated blocks:\t{} ({} %)\n", over_, Share(over_, blocks_));
    text += fmt::format(" Under-replicated blocks:\t{} ({} %)\n", under_, Share(under_, blocks_));
    text += fmt::format(" Mis-replicated blocks:\t\t{} ({} %)\n", mis_, Share(mis_, blocks_));
    text += fmt::format(" Default replication factor:\t{}\n", last.default_replication());
    text += fmt::format(" Average block replication:\t{}\n",
                        Ratio(blocks_ == 0 ? 0 : static_cast<double>(live_) / static_cast<double>(blocks_)));
    text += fmt::format(" Missing blocks:\t\t{}\n Corrupt blocks:\t\t{}\n", missing_blocks_, corrupt_blocks_);
    text += fmt::format(" Missing replicas:\t\t{} ({} %)\n", missing_replicas_, Share(missing_replicas_, wanted_));
    text += " Blocks queued for replication:\t" + std::to_string(under_) + "\n";
    text += "\nErasure Coded Block Groups:\n Total size:\t0 B\n Total files:\t0\n Total block groups (validated):\t0\n";
    text += " Minimally erasure-coded block groups:\t0\n Over-erasure-coded block groups:\t0\n Under-erasure-coded block groups:\t0\n";
    text += " Unsatisfactory placement block groups:\t0\n Average block group size:\t0.0\n Missing block groups:\t\t0\n";
    text += " Corrupt block groups:\t\t0\n Missing internal blocks:\t0\n Blocks queued for replication:\t0\n";
    return text;
  }

 private:
  static size_t Count(const v1::FsckBlock& block, v1::NodeAdminState state) {
    size_t count = 0;
    for (const v1::FsckReplica& replica : block.replicas()) count += replica.admin_state() == state ? 1 : 0;
    return count;
  }
  std::string BlockLine(int index, const v1::FsckBlock& block) const {
    std::string line = fmt::format("{}. {} len={}", index, NameOf(block.block()), block.block().length_bytes());
    if (IsOpen(block)) {
      line += fmt::format(" {} Expected_repl={}", block.state() == v1::UNDER_RECOVERY ? "UNDER_RECOVERY" : "UNDER_CONSTRUCTION",
                          block.wanted());
    } else if (block.missing()) {
      line += " MISSING!";
    } else {
      line += fmt::format(" Live_repl={}", block.live());
    }
    if (options_.locations || options_.racks || options_.details) {
      std::vector<std::string> places;
      for (const v1::FsckReplica& replica : block.replicas())
        if (options_.details || replica.live() || IsOpen(block)) places.push_back(ReplicaText(replica, options_));
      line += fmt::format("  [{}]", fmt::join(places, ", "));
    }
    return line + "\n";
  }

  const FsckOptions& options_;
  uint64_t files_ = 0, directories_ = 0, blocks_ = 0, bytes_ = 0;
  uint64_t open_files_ = 0, open_bytes_ = 0, open_blocks_ = 0;
  uint64_t minimal_ = 0, over_ = 0, under_ = 0, mis_ = 0, live_ = 0, wanted_ = 0, missing_replicas_ = 0;
  uint64_t missing_blocks_ = 0, missing_bytes_ = 0, corrupt_blocks_ = 0, corrupt_files_ = 0;
};

int Refused(Shell* shell, const absl::Status& status) {
  *shell->err << fmt::format("fsck: {}\n", std::string(status.message()));
  return KindOf(status) == ErrorKind::kPermission ? kRefused : kFailure;
}

int ShowBlock(const FsckTarget& target, Shell* shell, uint64_t id) {
  v1::FsckRequest request;
  request.set_block_id(id);
  const absl::StatusOr<v1::FsckResponse> page = target.ask(std::move(request));
  if (KindOf(page.status()) == ErrorKind::kNotFound) {
    *shell->out << fmt::format("\nBlock blk_{} does not exist\n", id);
    return kSuccess;
  }
  if (!page.ok() || page->files_size() != 1 || page->files(0).blocks_size() != 1) {
    return Refused(shell, page.ok() ? absl::UnknownError(fmt::format("blk_{}: no answer", id)) : page.status());
  }
  const v1::FsckFile& file = page->files(0);
  const v1::FsckBlock& block = file.blocks(0);
  *shell->out << fmt::format("\nBlock Id: blk_{}\nBlock belongs to: {}\nNo. of Expected Replica: {}\nNo. of live Replica: {}\n", id,
                             file.path(), block.wanted(), block.live());
  size_t excess = 0, stale = 0;
  std::map<v1::NodeAdminState, size_t> leaving;
  for (const v1::FsckReplica& replica : block.replicas()) {
    excess += replica.excess() ? 1 : 0;
    stale += replica.stale() ? 1 : 0;
    ++leaving[replica.admin_state()];
  }
  *shell->out << fmt::format(
      "No. of excess Replica: {}\nNo. of stale Replica: {}\nNo. of decommissioned Replica: {}\nNo. of decommissioning Replica: {}\n"
      "No. of entering maintenance Replica: {}\nNo. of in maintenance Replica: {}\nNo. of corrupted Replica: {}\n",
      excess, stale, leaving[v1::DECOMMISSIONED], leaving[v1::DECOMMISSIONING], leaving[v1::ENTERING_MAINTENANCE],
      leaving[v1::IN_MAINTENANCE], block.corrupt());
  int result = kSuccess;
  for (const v1::FsckReplica& replica : block.replicas()) {
    const v1::DatanodeInfo& node = replica.location().datanode();
    const char* status = "HEALTHY";
    int code = kSuccess;
    if (replica.corrupt()) {
      status = "CORRUPT";
      code = 1;
    } else if (replica.admin_state() == v1::DECOMMISSIONED) {
      status = "DECOMMISSIONED";
      code = 2;
    } else if (replica.admin_state() == v1::DECOMMISSIONING) {
      status = "DECOMMISSIONING";
      code = 3;
    } else if (replica.admin_state() == v1::IN_MAINTENANCE) {
      status = "IN MAINTENANCE";
      code = 4;
    } else if (replica.admin_state() == v1::ENTERING_MAINTENANCE) {
      status = "ENTERING MAINTENANCE";
      code = 5;
    } else if (replica.stale()) {
      status = "STALE";
      code = 6;
    }
    *shell->out << fmt::format("Block replica on datanode/rack: {}{} is {}\n", node.transfer().host(), node.rack(), status);
    result = code;  // As HDFS: what the last line says.
  }
  if (block.replicas().empty() && block.missing()) return 1;
  return result;
}

int ListCorrupt(const FsckTarget& target, Shell* shell, const FsckOptions& options) {
  std::set<std::pair<std::string, uint64_t>> found;
  v1::ListBadBlocksRequest request;
  request.set_kind(v1::ListBadBlocksRequest::MISSING);
  const std::string below = options.path == "/" ? "/" : options.path + "/";
  for (;;) {
    const absl::StatusOr<v1::ListBadBlocksResponse> page = target.bad(request);
    if (!page.ok()) return Refused(shell, page.status());
    for (const v1::BadBlock& block : page->blocks())
      if (block.path() == options.path || block.path().starts_with(below)) found.insert({block.path(), block.block().id()});
    if (page->next() == 0 || shell->Interrupted()) break;
    request.set_start_after(page->next());
  }
  if (!found.empty()) *shell->out << fmt::format("The list of corrupt files under path '{}' are:\n", options.path);
  std::set<std::string> files;
  for (const auto& [path, id] : found) {
    *shell->out << fmt::format("blk_{}\t{}\n", id, path);
    files.insert(path);
  }
  *shell->out << fmt::format("The filesystem under path '{}' has {} CORRUPT files\n", options.path, files.size());
  return kSuccess;
}

int Check(const FsckTarget& target, Shell* shell, const FsckOptions& options) {
  const absl::Time began = target.wall_now();
  *shell->err << fmt::format("Connecting to namenode via {}\n", target.namenode);
  *shell->out << fmt::format("FSCK started by {} for path {} at {}\n\n", shell->user, options.path, DateText(began));
  Summary summary(options);
  v1::FsckRequest request;
  request.set_path(options.path);
  request.set_with_replicas(options.files);
  absl::StatusOr<v1::FsckResponse> page;
  std::optional<v1::FsckFile> open;  // Whose other blocks are still to come.
  do {
    if (shell->Interrupted()) return kFailure;
    page = target.ask(request);
    if (KindOf(page.status()) == ErrorKind::kNotFound && request.start_after().empty()) {
      *shell->out << fmt::format("FSCK ended at {} in {} milliseconds\n\n\nPath '{}' does not exist\n", DateText(target.wall_now()),
                                 absl::ToInt64Milliseconds(target.wall_now() - began), options.path);
      return kSuccess;
    }
    if (!page.ok()) return Refused(shell, page.status());
    summary.AddDirectories(page->directories());
    for (const std::string& directory : page->directory_paths()) *shell->out << fmt::format("{} <dir>\n", directory);
    for (const v1::FsckFile& file : page->files()) {
      // One of very many blocks comes in parts.
      if (open && open->inode_id() == file.inode_id()) {
        open->mutable_blocks()->MergeFrom(file.blocks());
        if (file.more_blocks()) continue;
        *shell->out << summary.Add(*std::exchange(open, std::nullopt));
        continue;
      }
      if (open) *shell->out << summary.Add(*std::exchange(open, std::nullopt));  // It went meanwhile.
      if (file.more_blocks()) {
        open = file;
      } else {
        *shell->out << summary.Add(file);
      }
    }
    request.set_start_after(page->next());
    request.set_start_block(page->next_block());
  } while (!page->next().empty());
  if (open) *shell->out << summary.Add(*open);
  *shell->out << summary.Text(*page);
  *shell->out << fmt::format("FSCK ended at {} in {} milliseconds\n\n\nThe filesystem under path '{}' is {}\n", DateText(target.wall_now()),
                             absl::ToInt64Milliseconds(target.wall_now() - began), options.path, summary.healthy() ? "HEALTHY" : "CORRUPT");
  return summary.healthy() ? kSuccess : kFailure;
}

// "blk_1073741824", "blk_1073741824_1001", or the number alone.
std::optional<uint64_t> ParseBlockId(const std::string& word) {
  const size_t begin = word.starts_with("blk_") ? 4 : 0;
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(word.data() + begin, word.data() + word.size(), id);
  if (error != std::errc() || id == 0 || (end != word.data() + word.size() && *end != '_')) return std::nullopt;
  return id;
}

int Run(const FsckTarget& target, Shell* shell, const Arguments& arguments) {
  FsckOptions options;
  bool has_path = false, ids = false;
  int worst = kSuccess;
  for (const std::string& word : arguments.values) {
    if (!word.starts_with('-')) {
      if (ids) {
        const std::optional<uint64_t> id = ParseBlockId(word);
        if (!id) {
          *shell->out << fmt::format("Incorrect blockId format: {}\n", word);
          continue;
        }
        options.block_ids.push_back(*id);
      } else if (std::exchange(has_path, true)) {
        *shell->err << fmt::format("fsck: can only operate on one path at a time '{}'\n", word);
        return kUsage;
      } else {
        options.path = ResolvePath(*shell, word).path;
      }
      continue;
    }
    ids = word == "-blockId";
    if (word == "-files") {
      options.files = true;
    } else if (word == "-blocks") {
      options.blocks = true;
    } else if (word == "-locations") {
      options.locations = true;
    } else if (word == "-racks") {
      options.racks = true;
    } else if (word == "-replicaDetails") {
      options.details = true;
    } else if (word == "-openforwrite") {
      options.open = true;
    } else if (word == "-list-corruptfileblocks") {
      options.list_corrupt = true;
    } else if (!ids) {
      *shell->err << fmt::format("fsck: Illegal option '{}'\n", word);
      return kUsage;
    }
  }
  // Each brings what it stands on.
  options.blocks |= options.locations || options.racks || options.details;
  options.files |= options.blocks;
  if (!options.block_ids.empty()) *shell->out << fmt::format("FSCK started by {} at {}\n", shell->user, DateText(target.wall_now()));
  for (const uint64_t id : options.block_ids) {
    const int shown = ShowBlock(target, shell, id);
    if (shown == kRefused) return kRefused;
    worst = std::max(worst, shown);
  }
  if (ids || !options.block_ids.empty()) return worst;
  if (!has_path) {
    *shell->err << "fsck: a path is needed\n";
    return kUsage;
  }
  return options.list_corrupt ? ListCorrupt(target, shell, options) : Check(target, shell, options);
}

}  // namespace

Verb FsckVerb(FsckTarget target) {
  Verb verb;
  verb.name = "fsck";
  verb.synopsis =
      "<path> [-list-corruptfileblocks | [-files [-blocks [-locations | -racks | -replicaDetails]]]] [-openforwrite] | -blockId <id> ...";
  verb.help =
      "The health of all files below a path: blocks without a good replica, with too few, or with corrupt ones. Changes nothing. "
      "-openforwrite: files that are being written, too. For superusers.";
  verb.unknown_flags_are_values = true;
  verb.least = 1;
  verb.run = [target = std::move(target)](Shell* shell, const Arguments& arguments) { return Run(target, shell, arguments); };
  return verb;
}

}  // namespace cairn::cli
