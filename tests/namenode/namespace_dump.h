#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "namenode/store/views.h"

namespace cairn::testing {

// What is kept of one path, in the order of NodeLine. The model and the rows are brought into this form and compared.
struct NodeFacts {
  struct Block {
    uint64_t id = 0, stamp = 0, length = 0, replication = 0, charged = 0;
    std::string state;
    std::vector<uint32_t> storages;
    int64_t committed_ms = 0;
    uint64_t recovery_id = 0;
    std::optional<uint64_t> truncate_to;
    uint64_t closed_length = 0, append_from = 0, synced = 0;
  };
  bool is_directory = true;
  uint64_t id = 0;
  uint32_t mode = 0;
  std::string owner, group;
  int64_t modified_ms = 0, accessed_ms = 0;
  uint64_t replication = 0, block_size = 0, length = 0, charged = 0;
  std::string holder;
  std::vector<Block> blocks;                          // A reserved one last.
  std::vector<std::string> more;                      // "name=value" of what only some have.
  uint64_t children = 0, directories = 0, files = 0;  // Of a directory; then length and charged are its subtree's.
};
std::string XattrText(int name_space, const std::string& name, const std::string& value);  // For `more`, in their order.
std::string NodeLine(const NodeFacts& facts);

// What is kept beside the tree, in the order of CounterLine.
struct CounterFacts {
  uint64_t next_inode = 0, next_block = 0, next_stamp = 0, last_time_ms = 0, retry_rows = 0;
  std::vector<std::string> storages;  // StorageText of each, in the order of their uuids.
  std::string keep_unknown_replicas;
};
std::string StorageText(const std::string& uuid, const std::string& node, uint64_t number);
std::string CounterLine(const CounterFacts& facts);

struct NamespaceDump {
  std::map<std::string, std::string> lines;  // Path to NodeLine, from the root down.
  std::vector<std::string> broken;           // What does not fit together: one sentence each.
  std::string counters;
};

// Reads every row of the namespace and checks each reference and each total against a recount. Detached subtrees that are being freed may
// be half gone; all else must be whole. A changed replication that is still to be written to the rows of a file's blocks counts as written.
NamespaceDump DumpNamespace(const namenode::ReadView& view);

// The first lines that differ, or "".
std::string FirstDifferences(const std::map<std::string, std::string>& expected, const std::map<std::string, std::string>& actual);

}  // namespace cairn::testing
