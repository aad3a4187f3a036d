// HadoopDoor: what writers ask.

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/hadoop_conversions.h"
#include "namenode/frontdoor/hadoop_native_calls.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/store/keys.h"
#include "namenode/store/views.h"

namespace cairn::namenode {
namespace {

// Of HDFS's create and append flags; the others are hints.
constexpr uint32_t kOverwriteFlag = 0x02;
constexpr uint32_t kNewBlockFlag = 0x20;

constexpr uint32_t kAllModes = 0777;
constexpr uint32_t kFileMode = 0666;
constexpr uint32_t kOthersWrite = 022;

// Whether the client gives a block that it appends to a new stamp before it writes, as an append here asks for: Java's and libhdfs3's do,
// by the names that they bear; Go's and Rust's do not. All others begin a new block, which every client can.
bool TakesNewStamps(std::string_view client_name) { return client_name.starts_with("DFSClient_") || client_name.starts_with("libhdfs3"); }

// In HDFS's words, which operators search for.
absl::Status WithHdfsWords(const absl::Status& status, const std::string& path) {
  if (KindOf(status) != ErrorKind::kNoTargets) return status;
  return Annotate(status, fmt::format("File {} could only be written to 0 of the 1 minReplication nodes", path));
}

void Exclude(const google::protobuf::RepeatedPtrField<hdfs::DatanodeInfoProto>& nodes,
             google::protobuf::RepeatedPtrField<v1::ExcludedNode>* excluded) {
  for (const hdfs::DatanodeInfoProto& node : nodes) {
    v1::ExcludedNode& added = *excluded->Add();
    added.set_datanode_uuid(node.id().datanodeuuid());
    added.set_reason("EXCLUDED_BY_CLIENT");
  }
}

// Of no name, or one that nobody can have, it says yes: it is refused where leases are kept.
absl::StatusOr<bool> HoldsLeases(const ReadView& view, const std::string& client_name) {
  if (client_name.empty() || client_name.size() > kMaxHolderBytes) return true;
  const std::unique_ptr<Cursor> cursor = view.Scan(Family::kLease, LeaseKey(client_name, InodeId(0)), "");
  RETURN_IF_ERROR(cursor->status());
  if (!cursor->Valid()) return false;
  const std::optional<LeaseKeyParts> lease = ParseLeaseKey(cursor->key());
  return lease && lease->holder == client_name;
}

}  // namespace

void HadoopDoor::Create(const CallPtr& call, const hdfs::CreateRequestProto& request) {
  if (!request.ecpolicyname().empty()) return call->Fail({kUnsupportedException, "create: erasure coding is not supported"});
  v1::CreateRequest asked;
  asked.set_path(request.src());
  asked.set_overwrite((request.createflag() & kOverwriteFlag) != 0);
  asked.set_create_parent(request.createparent());
  asked.set_replication(request.replication());
  asked.set_block_size_bytes(request.blocksize());
  // The native call takes the mode and the umask apart, for the parents that it makes on the way.
  const uint32_t masked = request.masked().perm() & kAllModes;
  const uint32_t unmasked = request.has_unmasked() ? request.unmasked().perm() & kAllModes : kFileMode;
  uint32_t umask = masked == 0 ? kAllModes : unmasked & ~masked;
  // A mode that was chosen says little of the umask: what may be written by all because nothing was taken off it is the file, not them.
  if (unmasked != kFileMode && unmasked != kAllModes) umask |= kOthersWrite & ~masked;
  asked.set_umask(umask);
  asked.set_mode(masked | asked.umask());
  AskOnce(
      call, &api::ClientNamenode::Create, std::move(asked),
      [call](const absl::StatusOr<v1::CreateResponse>& answer) {
        if (!answer.ok()) return call->FailAsIo(answer.status());
        hdfs::FileStatusResponseProto response;
        *response.mutable_fs() = ToHadoopStatus(answer->status(), "");
        call->Answer(response);
      },
      request.clientname());
}

void HadoopDoor::AddBlock(const CallPtr& call, const hdfs::AddBlockRequestProto& request) {
  const auto add = [this, call, request](const v1::CommittedBlock* previous) {
    v1::AddBlockRequest asked;
    asked.set_path(request.src());
    asked.set_inode_id(request.fileid());
    if (previous != nullptr) *asked.mutable_previous() = *previous;
    Exclude(request.excludenodes(), asked.mutable_excluded());
    Ask(
        call, parts_.clients, &api::ClientNamenode::AddBlock, std::move(asked),
        [this, call, path = request.src()](const absl::StatusOr<v1::AddBlockResponse>& answer) {
          if (!answer.ok()) return call->FailAsIo(WithHdfsWords(answer.status(), path));
          hdfs::LocatedBlockResponseProto response;
          *response.mutable_block() = ToHadoopLocated(answer->block(), pool_name_);
          call->Answer(response);
        },
        request.clientname());
  };
  if (!request.has_previous()) return add(nullptr);
  ToCommitted(call, request.previous(), [add](const v1::CommittedBlock& previous) { add(&previous); });
}

void HadoopDoor::AbandonBlock(const CallPtr& call, const hdfs::AbandonBlockRequestProto& request) {
  v1::AbandonBlockRequest asked;
  asked.set_path(request.src());
  asked.set_inode_id(request.fileid());
  *asked.mutable_block() = FromHadoopBlock(request.b());
  Ask(call, parts_.clients, &api::ClientNamenode::AbandonBlock, std::move(asked), AnswerNothingAsIo(call), request.holder());
}

void HadoopDoor::Complete(const CallPtr& call, const hdfs::CompleteRequestProto& request) {
  const auto complete = [this, call, request](const v1::CommittedBlock* last) {
    v1::CompleteRequest asked;
    asked.set_path(request.src());
    asked.set_inode_id(request.fileid());
    if (last != nullptr) *asked.mutable_last() = *last;
    Ask(
        call, parts_.clients, &api::ClientNamenode::Complete, std::move(asked),
        [call](const absl::StatusOr<v1::CompleteResponse>& answer) {
          // Too few replicas yet: false, which clients understand as "ask again".
          const bool later = KindOf(answer.status()) == ErrorKind::kNotReplicatedYet;
          if (!answer.ok() && !later) return call->FailAsIo(answer.status());
          call->AnswerBool(!later);
        },
        request.clientname());
  };
  if (!request.has_last()) return complete(nullptr);
  ToCommitted(call, request.last(), [complete](const v1::CommittedBlock& last) { complete(&last); });
}

void HadoopDoor::Fsync(const CallPtr& call, const hdfs::FsyncRequestProto& request) {
  const auto sync = [this, call, request](const v1::Block* last) {
    v1::FsyncRequest asked;
    asked.set_path(request.src());
    asked.set_inode_id(request.fileid());
    if (last != nullptr) *asked.mutable_last_block() = *last;
    Ask(call, parts_.clients, &api::ClientNamenode::Fsync, std::move(asked), AnswerNothingAsIo(call), request.client());
  };
  if (request.lastblocklength() <= 0) return sync(nullptr);  // No length is told: only the lease is asked for.
  LookUp([this, path = request.src(), id = request.fileid()](const ReadView& view) { return FindLast(view, path, id); },
         [call, sync, length = static_cast<uint64_t>(request.lastblocklength())](const absl::StatusOr<WrittenBlock>& found) {
           if (!found.ok()) return call->FailAsIo(found.status());
           if (found->block.id() == 0) return sync(nullptr);
           v1::Block last = found->block;
           last.set_length_bytes(length);
           sync(&last);
         });
}

void HadoopDoor::RenewLease(const CallPtr& call, const hdfs::RenewLeaseRequestProto& request) {
  // Names that hold nothing are not kept: whoever makes them up would fill the room of those that do.
  const absl::StatusOr<bool> holds = HoldsLeases(*parts_.space->Snapshot(), request.clientname());
  if (!holds.ok()) return call->Fail(holds.status());
  if (!*holds) return call->Answer(hdfs::EmptyProto());
  Ask(call, parts_.clients, &api::ClientNamenode::RenewLease, v1::RenewLeaseRequest(), AnswerNothing(call), request.clientname());
}

void HadoopDoor::Append(const CallPtr& call, const hdfs::AppendRequestProto& request) {
  v1::AppendRequest asked;
  asked.set_path(request.src());
  asked.set_new_block((request.flag() & kNewBlockFlag) != 0 || !TakesNewStamps(request.clientname()));
  AskOnce(
      call, &api::ClientNamenode::Append, std::move(asked),
      [this, call](const absl::StatusOr<v1::AppendResponse>& answer) {
        if (!answer.ok()) return call->FailAsIo(answer.status());
        hdfs::AppendResponseProto response;
        *response.mutable_stat() = ToHadoopStatus(answer->status(), "");
        if (answer->has_last_block()) {
          *response.mutable_block() = ToHadoopLocated(answer->last_block(), pool_name_);
          // The replicas have the stamp of before, by which the client names them until it has taken one of its own.
          response.mutable_block()->mutable_b()->set_generationstamp(answer->old_generation_stamp());
        }
        call->Answer(response);
      },
      request.clientname());
}

void HadoopDoor::Truncate(const CallPtr& call, const hdfs::TruncateRequestProto& request) {
  v1::TruncateRequest asked;
  asked.set_path(request.src());
  asked.set_new_length_bytes(request.newlength());
  AskOnce(
      call, &api::ClientNamenode::Truncate, std::move(asked),
      [this, call, request](const absl::StatusOr<v1::TruncateResponse>& answer) {
        if (ReasonOf(answer.status()) == kTruncating) {
          // To just that length: it is the same call, sent again, and not done yet.
          return LookUp([this, path = request.src()](const ReadView& view) { return FindLast(view, path, 0); },
                        [call, request, refused = answer.status()](const absl::StatusOr<WrittenBlock>& found) {
                          if (!found.ok() || found->cut_to != request.newlength()) return call->Fail(refused);
                          call->AnswerBool(false);
                        });
        }
        if (!answer.ok()) return call->Fail(answer.status());
        call->AnswerBool(answer->done());
      },
      request.clientname());
}

void HadoopDoor::RecoverLease(const CallPtr& call, const hdfs::RecoverLeaseRequestProto& request) {
  v1::RecoverLeaseRequest asked;
  asked.set_path(request.src());
  Ask(
      call, parts_.clients, &api::ClientNamenode::RecoverLease, std::move(asked),
      [call](const absl::StatusOr<v1::RecoverLeaseResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        call->AnswerBool(answer->closed());
      },
      request.clientname());
}

}  // namespace cairn::namenode
