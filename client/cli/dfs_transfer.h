#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs that move bytes: put (copyFromLocal), get (copyToLocal), cat.
//
// A file is written as <dst>._COPYING_ and renamed when it is whole; after an error or an interrupt
// that one is removed, so <dst> is either the whole file or not touched. The same holds for get, on
// the local side.
std::vector<Verb> TransferVerbs();

// Appends a local file, or standard input for "-", to an open file; does not close it.
absl::Status AppendLocal(Shell* shell, const std::string& local, FileWriter* writer);

}  // namespace cairn::cli
