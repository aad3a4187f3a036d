#include "client/cli/dfs_attributes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "absl/strings/escaping.h"
#include "cairn/errors.h"
#include "client/cli/mode_change.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

using Each = std::function<int(const PathArgument&, const FileStatus&)>;

int BadArgument(Shell* shell, const std::string& verb, const std::string& why) {
  *shell->err << fmt::format("-{}: {}\n", verb, why);
  return kUsage;
}

// `each` for a path, then for all below it. What fails is not gone into, as in HDFS.
int Visit(Shell* shell, const std::string& verb, const PathArgument& path, const FileStatus& status, bool recursive, const Each& each) {
  if (const int result = each(path, status); result != kSuccess) return result;
  if (!recursive || !status.is_directory) return kSuccess;
  int worst = kSuccess;
  std::string start_after;
  for (bool more = true; more && !shell->Interrupted();) {
    const absl::StatusOr<std::vector<FileStatus>> page = shell->files->ListPage(path.path, start_after, 0, &more);
    if (!page.ok()) return Complain(shell, verb, path.typed, page.status());
    if (page->empty()) break;
    start_after = BaseName(page->back().path);
    for (const FileStatus& entry : *page)
      worst = std::max(worst, Visit(shell, verb, Child(path, BaseName(entry.path)), entry, recursive, each));
  }
  return worst;
}

int VisitAll(Shell* shell, const std::string& verb, std::span<const std::string> values, bool recursive, const Each& each) {
  return ForEachPath(shell, verb, values, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, verb, path.typed, status.status());
    return Visit(shell, verb, path, *status, recursive, each);
  });
}

// "chmod: changing permissions of '/a': why".
int CannotChange(Shell* shell, const std::string& verb, const std::string& what, const PathArgument& path, const absl::Status& status) {
  *shell->err << fmt::format("{}: changing {} of '{}': {}\n", verb, what, path.typed, std::string(status.message()));
  return kFailure;
}

int Chmod(Shell* shell, const Arguments& arguments) {
  const absl::StatusOr<ModeChange> change = ModeChange::Parse(arguments.values[0]);
  if (!change.ok()) return BadArgument(shell, "chmod", "chmod : " + std::string(change.status().message()));
  const std::span<const std::string> paths(arguments.values.data() + 1, arguments.values.size() - 1);
  return VisitAll(shell, "chmod", paths, arguments.Has("R"), [&](const PathArgument& path, const FileStatus& status) {
    const uint32_t mode = change->Apply(status.mode, status.is_directory);
    if (mode == status.mode) return kSuccess;
    const absl::Status changed = shell->files->SetPermission(path.path, mode);
    return changed.ok() ? kSuccess : CannotChange(shell, "chmod", "permissions", path, changed);
  });
}

// HDFS's characters of a user or a group.
bool IsName(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./@").find(c) != std::string_view::npos;
  };
  return std::all_of(text.begin(), text.end(), allowed);
}

int ChangeOwner(Shell* shell, const std::string& verb, const Arguments& arguments, const std::string& owner, const std::string& group) {
  const std::span<const std::string> paths(arguments.values.data() + 1, arguments.values.size() - 1);
  return VisitAll(shell, verb, paths, arguments.Has("R"), [&](const PathArgument& path, const FileStatus& status) {
    // What is so already is not asked for: it may need a superuser.
    const std::string new_owner = owner == status.owner ? "" : owner;
    const std::string new_group = group == status.group ? "" : group;
    if (new_owner.empty() && new_group.empty()) return kSuccess;
    const absl::Status changed = shell->files->SetOwner(path.path, new_owner, new_group);
    return changed.ok() ? kSuccess : CannotChange(shell, verb, "ownership", path, changed);
  });
}

int Chown(Shell* shell, const Arguments& arguments) {
  const std::string& text = arguments.values[0];
  const size_t colon = text.find(':');
  const std::string owner = text.substr(0, colon);
  const std::string group = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (!IsName(owner) || !IsName(group))
    return BadArgument(shell, "chown", fmt::format("'{}' does not match expected pattern for [owner][:group].", text));
  if (owner.empty() && group.empty()) return BadArgument(shell, "chown", fmt::format("'{}' does not specify owner or group.", text));
  return ChangeOwner(shell, "chown", arguments, owner, group);
}

int Chgrp(Shell* shell, const Arguments& arguments) {
  const std::string& group = arguments.values[0];
  if (!IsName(group)) return BadArgument(shell, "chgrp", fmt::format("'{}' does not match expected pattern for group", group));
  return ChangeOwner(shell, "chgrp", arguments, "", group);
}

int Touch(Shell* shell, const Arguments& arguments) {
  std::optional<absl::Time> stamp;
  if (const std::string* text = arguments.Option("t")) {
    absl::Time parsed;
    std::string error;
    if (!absl::ParseTime("%E4Y%m%d:%H%M%S", *text, shell->zone, &parsed, &error))
      return BadArgument(shell, "touch",
                         fmt::format("Unable to parse the specified timestamp {}. The expected format is yyyyMMdd:HHmmss", *text));
    stamp = parsed;
  }
  const bool both = arguments.Has("a") == arguments.Has("m");
  return ForEachPath(shell, "touch", arguments.values, [&](const PathArgument& path) {
    const absl::StatusOr<bool> exists = shell->files->Exists(path.path);
    if (!exists.ok()) return Complain(shell, "touch", path.typed, exists.status());
    if (!*exists) {
      if (arguments.Has("c")) return kSuccess;
      CreateOptions options;
      options.create_parent = false;
      absl::StatusOr<std::unique_ptr<FileWriter>> writer = shell->files->Create(path.path, options);
      const absl::Status made = writer.ok() ? (*writer)->Close() : writer.status();
      if (!made.ok()) return Complain(shell, "touch", path.typed, made);
      if (!stamp) return kSuccess;  // It has its times.
    }
    const absl::Time time = stamp ? *stamp : shell->now();
    const std::optional<absl::Time> modification = both || arguments.Has("m") ? std::optional(time) : std::nullopt;
    const std::optional<absl::Time> access = both || arguments.Has("a") ? std::optional(time) : std::nullopt;
    const absl::Status set = shell->files->SetTimes(path.path, modification, access);
    return set.ok() ? kSuccess : Complain(shell, "touch", path.typed, set);
  });
}

// As HDFS's XAttrCodec: 0x and hexadecimal digits, 0s and base64, or text, quoted or not.
absl::StatusOr<std::string> DecodeValue(const std::string& text) {
  const std::string prefix = text.substr(0, 2);
  if (prefix == "0x" || prefix == "0X") {
    const std::string digits = text.substr(2);
    if (digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}' is not hexadecimal", text));
    return absl::HexStringToBytes(digits);
  }
  if (prefix == "0s" || prefix == "0S") {
    std::string bytes;
    if (!absl::Base64Unescape(text.substr(2), &bytes))
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}' is not base64", text));
    return bytes;
  }
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

std::string EncodeValue(const std::string& value, const std::string& encoding) {
  if (encoding == "hex") return "0x" + absl::BytesToHexString(value);
  if (encoding == "base64") return "0s" + absl::Base64Escape(value);
  return "\"" + value + "\"";
}

int Setfattr(Shell* shell, const Arguments& arguments) {
  const std::string* name = arguments.Option("n");
  const std::string* gone = arguments.Option("x");
  const std::string* text = arguments.Option("v");
  if (name != nullptr && gone != nullptr) return BadArgument(shell, "setfattr", "Can not specify both '-n name' and '-x name' option.");
  if (name == nullptr && gone == nullptr) return BadArgument(shell, "setfattr", "Must specify '-n name' or '-x name' option.");
  if (gone != nullptr && text != nullptr) return BadArgument(shell, "setfattr", "Can not specify both '-x name' and '-v value' option.");
  if (arguments.values.empty()) return BadArgument(shell, "setfattr", "<path> is missing.");
  const absl::StatusOr<std::string> value = DecodeValue(text == nullptr ? "" : *text);
  if (!value.ok()) return BadArgument(shell, "setfattr", std::string(value.status().message()));
  return ForEachPath(shell, "setfattr", arguments.values, [&](const PathArgument& path) {
    const absl::Status set =
        name != nullptr ? shell->files->SetXattr(path.path, *name, *value) : shell->files->RemoveXattr(path.path, *gone);
    return set.ok() ? kSuccess : Complain(shell, "setfattr", path.typed, set);
  });
}

int Getfattr(Shell* shell, const Arguments& arguments) {
  const std::string* name = arguments.Option("n");
  if (name == nullptr && !arguments.Has("d")) return BadArgument(shell, "getfattr", "Must specify '-n name' or '-d' option.");
  const std::string encoding = arguments.Option("e") == nullptr ? "text" : *arguments.Option("e");
  if (encoding != "text" && encoding != "hex" && encoding != "base64")
    return BadArgument(shell, "getfattr", fmt::format("Invalid/unsupported encoding option specified: {}", encoding));
  if (arguments.values.empty()) return BadArgument(shell, "getfattr", "<path> is missing.");
  return VisitAll(shell, "getfattr", arguments.values, arguments.Has("R"), [&](const PathArgument& path, const FileStatus&) {
    *shell->out << "# file: " << path.typed << "\n";
    const std::vector<std::string> names = name == nullptr ? std::vector<std::string>() : std::vector<std::string>{*name};
    const auto xattrs = shell->files->GetXattrs(path.path, names);
    if (!xattrs.ok()) return Complain(shell, "getfattr", path.typed, xattrs.status());
    for (const auto& [key, value] : *xattrs)
      *shell->out << (value.empty() ? key : fmt::format("{}={}", key, EncodeValue(value, encoding))) << "\n";
    return kSuccess;
  });
}

}  // namespace

std::vector<Verb> AttributeVerbs() {
  std::vector<Verb> verbs(6);
  verbs[0].name = "chmod";
  verbs[0].synopsis = "[-R] <MODE[,MODE]... | OCTALMODE> PATH...";
  verbs[0].help = "Changes permissions: 755, 1777, u+rwx, go=rX, a-w. -R: with everything below.";
  verbs[0].flags = {"R"};
  verbs[0].unknown_flags_are_values = true;  // "-w" is a mode.
  verbs[0].least = 2;
  verbs[0].run = Chmod;
  verbs[1].name = "chown";
  verbs[1].synopsis = "[-R] [OWNER][:[GROUP]] PATH...";
  verbs[1].help = "Changes owner and group. The owner is changed by superusers only. -R: with everything below.";
  verbs[1].flags = {"R"};
  verbs[1].least = 2;
  verbs[1].run = Chown;
  verbs[2].name = "chgrp";
  verbs[2].synopsis = "[-R] GROUP PATH...";
  verbs[2].help = "Changes the group, to one that the owner is in. -R: with everything below.";
  verbs[2].flags = {"R"};
  verbs[2].least = 2;
  verbs[2].run = Chgrp;
  verbs[3].name = "touch";
  verbs[3].synopsis = "[-a] [-m] [-t TIMESTAMP (yyyyMMdd:HHmmss) ] [-c] <path> ...";
  verbs[3].help =
      "Sets access and modification times to now, or to a time; makes a file that is not there. -a, -m: only the one. -c: makes nothing.";
  verbs[3].flags = {"a", "m", "c"};
  verbs[3].options = {"t"};
  verbs[3].least = 1;
  verbs[3].run = Touch;
  verbs[4].name = "setfattr";
  verbs[4].synopsis = "{-n name [-v value] | -x name} <path>";
  verbs[4].help =
      "Sets or removes an extended attribute (user.name). A value is text, quoted or not, 0x and hexadecimal, or 0s and base64.";
  verbs[4].options = {"n", "v", "x"};
  verbs[4].most = 1;
  verbs[4].run = Setfattr;
  verbs[5].name = "getfattr";
  verbs[5].synopsis = "[-R] {-n name | -d} [-e en] <path>";
  verbs[5].help = "Shows an extended attribute, or all (-d). -e: text, hex or base64. -R: with everything below.";
  verbs[5].flags = {"R", "d"};
  verbs[5].options = {"n", "e"};
  verbs[5].most = 1;
  verbs[5].run = Getfattr;
  return verbs;
}

}  // namespace cairn::cli
