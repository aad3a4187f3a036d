#pragma once

// The public face of Cairn's client library: options.h, file_system.h, file_writer.h,
// file_reader.h. Needs C++20 and Abseil.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/time/time.h"

namespace cairn {

// When a closed file survives power loss of all its DataNodes (key cairn.close.sync).
enum class CloseSync {
  kNone,  // Like HDFS: when the kernels write it back.
  kData,  // Before Close returns: every replica is on disk.
};

// Of a FileSystem. Defaults are the keys' defaults; deploy/config/ documents each.
struct ClientOptions {
  std::string user;                                         // Empty: HADOOP_USER_NAME, else the OS user.
  uint32_t replication = 0;                                 // dfs.replication; 0: the server's.
  uint64_t block_size_bytes = 0;                            // dfs.blocksize; 0: the server's.
  uint32_t umask = 022;                                     // fs.permissions.umask-mode.
  CloseSync close_sync = CloseSync::kData;                  // cairn.close.sync.
  size_t packet_bytes = 512 << 10;                          // cairn.client.packet.size: data of a packet, 64 KiB to 4 MiB.
  size_t window_bytes = 8 << 20;                            // cairn.client.window: unacknowledged bytes of a writer.
  absl::Duration retry_budget = absl::Minutes(2);           // cairn.client.retry.budget: how long an absent NameNode is waited for.
  absl::Duration call_timeout = absl::Seconds(30);          // cairn.client.call.timeout: one try of one call.
  absl::Duration connect_timeout = absl::Seconds(5);        // cairn.client.connect.timeout.
  absl::Duration socket_timeout = absl::Seconds(60);        // dfs.client.socket-timeout.
  int slow_node_threshold = 10;                             // dfs.client.mark.slownode.as.badnode.threshold; 0: never.
  absl::Duration lease_renew_interval = absl::Seconds(20);  // dfs.client.lease.renew.interval.
  absl::Duration trash_interval = absl::ZeroDuration();     // fs.trash.interval; the server's, unless it is 0, goes before it.
  bool verify_checksums = true;
  // Called once by a call that has waited 2 s for the NameNode: why, and how long it will go on trying. On a thread of the library's;
  // must not block.
  std::function<void(const std::string& why, absl::Duration left)> on_waiting;
};

// Of one new file.
struct CreateOptions {
  bool overwrite = false;
  bool create_parent = true;
  uint32_t replication = 0;       // 0: ClientOptions'.
  uint64_t block_size_bytes = 0;  // 0: ClientOptions'.
  uint32_t mode = 0666;           // Before umask.
  // A file that is not closed, whatever the reason, is deleted instead of kept as far as it was written:
  // when its writer goes without Close, or when nobody has heard of its client for the soft limit (60 s
  // unless configured).
  bool delete_if_abandoned = false;
  // From another thread: Create returns errors::IsCancelled at once. If the NameNode makes the file all
  // the same, the client gives it up when it hears of it. Later, FileWriter::Abort is for that.
  std::stop_token cancel = {};
};

// Of a file that is opened for more.
struct AppendOptions {
  bool new_block = false;  // Begin a block of its own even if the last one is not full.
};

}  // namespace cairn
