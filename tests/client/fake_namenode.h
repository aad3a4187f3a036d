#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/api/client_namenode.h"
#include "common/env/clock.h"
#include "common/error.h"

namespace cairn::client {

// A NameNode in memory, for tests of the client: files with blocks, stamps, retry rows; no
// directories. Strict: what a correct client never does is an error here. One thread.
class FakeNamenode : public api::ClientNamenode {
 public:
  struct BlockState {
    v1::Block block;
    std::vector<v1::StorageLocation> expected;
    std::set<std::string> acknowledged;  // Storages, once committed.
    bool committed = false;
  };
  struct File {
    uint64_t inode_id = 0;
    bool open = true;
    std::string holder;
    uint64_t block_size = 0;
    bool deleted_if_abandoned = false;
    std::vector<BlockState> blocks;
    uint64_t length() const {
      uint64_t sum = 0;
      for (const BlockState& b : blocks) sum += b.block.length_bytes();
      return sum;
    }
  };

  explicit FakeNamenode(const Clock* clock) : clock_(clock) {}

  // DataNodes, in the order in which they are chosen.
  std::vector<v1::StorageLocation> nodes;
  uint32_t replication = 3;
  uint64_t block_size = 1 << 20;
  std::map<std::string, File> files;
  bool tokens = true;  // Gives block tokens, which only fake DataNodes let pass.

  // What was asked, and what to do wrong.
  std::map<std::string, int> calls;                         // Requests that came, repetitions too.
  std::map<std::string, int> acted;                         // Those that acted.
  std::map<std::string, int> lose_answers;                  // Call name -> how many answers to lose after acting.
  std::map<std::string, std::vector<absl::Status>> refuse;  // Call name -> answers instead of acting.
  std::map<std::string, int> swallow;                       // Call name -> how many requests never to answer.
  bool forget_rows = false;                                 // As after 10 minutes without use.
  std::vector<std::string> abandoned;                       // Block ids.
  std::vector<v1::ReportBadReplicasRequest::Bad> bad_replicas;
  std::vector<v1::ExcludedNode> last_excluded;
  std::vector<uint64_t> released;          // Inodes whose lease their writer gave up; 0: all of a client.
  bool recovers_at_once = true;            // RecoverLease closes the file; else it is only begun.
  std::vector<v1::RequestHeader> headers;  // Of mutations, in order.
  size_t rows() const { return rows_.size(); }

#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

 private:
  std::vector<absl::AnyInvocable<void()>> swallowed_;  // Holds what would answer.
  struct Row {
    uint64_t sequence = 0;
    std::string answer;
  };
  template <class Request, class Response>
  void Serve(const char* name, bool mutation, Request request, api::Done<Response> done,
             absl::StatusOr<Response> (FakeNamenode::*act)(const Request&));
#define CAIRN_DECLARE_CALL(Name) absl::StatusOr<v1::Name##Response> Do##Name(const v1::Name##Request& request);
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

  int64_t NowMs() const { return absl::ToUnixMillis(clock_->WallNow()); }
  absl::StatusOr<v1::LocatedBlock> Allocate(File* file, const google::protobuf::RepeatedPtrField<v1::ExcludedNode>& excluded);
  absl::StatusOr<File*> Writing(const std::string& path, uint64_t inode_id, const v1::RequestHeader& header);
  absl::Status Commit(File* file, const v1::CommittedBlock& committed);
  v1::FileStatus StatusOf(const std::string& path, const File& file) const;

  const Clock* clock_;
  std::map<std::pair<std::string, uint32_t>, Row> rows_;
  uint64_t next_inode_ = 20000;
  uint64_t next_block_ = 1ull << 30;
  uint64_t next_stamp_ = 1001;
};

}  // namespace cairn::client
