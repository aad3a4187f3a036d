// The front door of stock HDFS clients: what writers ask.

#include <gmock/gmock.h>

#include "common/error.h"
#include "tests/namenode/hadoop_fixture.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HadoopWriters : public ::testing::Test, protected HadoopFixture {
 protected:
  HadoopWriters() : HadoopFixture(4) {}

  // A new file with one block that is being written.
  hdfs::LocatedBlockProto Open(const std::string& path) {
    file_ = Ask<hdfs::FileStatusResponseProto>("create", Create(path)).fs().fileid();
    return Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock(path, file_, nullptr)).block();
  }
  static hdfs::ExtendedBlockProto WithBytes(hdfs::ExtendedBlockProto block, uint64_t bytes) {
    block.set_numbytes(bytes);
    return block;
  }
  hdfs::ExtendedBlockProto NewStamp(const hdfs::ExtendedBlockProto& block, const std::string& client = "writer") {
    hdfs::UpdateBlockForPipelineRequestProto request;
    *request.mutable_block() = block;
    request.set_clientname(client);
    return Ask<hdfs::LocatedBlockResponseProto>("updateBlockForPipeline", request).block().b();
  }

  uint64_t file_ = 0;
};

TEST_F(HadoopWriters, ABlockComesWithAPipelineAndWithoutBytes) {
  const hdfs::LocatedBlockProto block = Open("/f");
  EXPECT_EQ(block.b().numbytes(), 0u);
  EXPECT_EQ(block.b().poolid().size(), 32u);
  EXPECT_EQ(block.locs_size(), 3);
  EXPECT_EQ(block.storageids_size(), 3);
  EXPECT_EQ(block.storagetypes_size(), 3);
  EXPECT_FALSE(block.corrupt());
  EXPECT_EQ(block.locs(0).location(), "/default-rack");
  EXPECT_EQ(replicas_.asked.back().client_host, "10.0.0.9");
}

TEST_F(HadoopWriters, AWholeFileIsWrittenAndEveryStorageOfItsPipelineCounts) {
  hdfs::ExtendedBlockProto first = WithBytes(Open("/f").b(), 1 << 20);
  const auto second = Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock("/f", file_, &first)).block();
  EXPECT_NE(second.b().blockid(), first.blockid());
  // Sent again it gives the same block.
  EXPECT_EQ(Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock("/f", file_, &first)).block().b().blockid(), second.b().blockid());
  const hdfs::ExtendedBlockProto last = WithBytes(second.b(), 77);
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &last)));
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &last))) << "sent again";
  EXPECT_EQ(StatusOf("/f").fs().length(), (1u << 20) + 77);
  EXPECT_EQ(LocationsOf("/f", 0, 1).blocks(0).locs_size(), 3);
  hdfs::ExtendedBlockProto other = last;
  other.set_numbytes(78);
  EXPECT_EQ(ExceptionOf("complete", Complete("/f", file_, &other)), "LeaseExpiredException");
}

TEST_F(HadoopWriters, NoReplicaCountsThatNobodyHasReported) {
  const hdfs::LocatedBlockProto opened = Open("/f");
  const hdfs::ExtendedBlockProto block = WithBytes(opened.b(), 100);
  replicas_.silent = {1, 2, 3};
  EXPECT_FALSE(AskBool("complete", Complete("/f", file_, &block)));
  EXPECT_EQ(ExceptionOf("addBlock", AddBlock("/f", file_, &block)), "NotReplicatedYetException");
  EXPECT_FALSE(AskBool("isFileClosed", Path("/f")));
  replicas_.silent = {1, 3};
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &block)));
  const hdfs::LocatedBlocksProto located = LocationsOf("/f", 0, 1);
  ASSERT_EQ(located.blocks(0).locs_size(), 1);
  EXPECT_EQ(located.blocks(0).storageids(0), "s2");
  replicas_.silent = {1, 2, 3};
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &block))) << "it is closed, and sent again";
}

TEST_F(HadoopWriters, ACompleteWaitsForTheReports) {
  const hdfs::ExtendedBlockProto block = WithBytes(Open("/f").b(), 100);
  replicas_.silent = {1, 2, 3};
  reader_->PostAt(process_->clock().Now() + absl::Milliseconds(200), [this] { replicas_.silent = {3}; });
  reader_->PostAt(process_->clock().Now() + absl::Milliseconds(300), [this] { replicas_.silent.clear(); });
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &block)));
  EXPECT_EQ(LocationsOf("/f", 0, 1).blocks(0).locs_size(), 3);
}

TEST_F(HadoopWriters, AFileIsFoundByItsIdWhereverItWent) {
  const hdfs::ExtendedBlockProto block = WithBytes(Open("/f").b(), 5);
  hdfs::RenameRequestProto rename;
  rename.set_src("/f");
  rename.set_dst("/g");
  ASSERT_TRUE(AskBool("rename", rename));
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &block)));
  EXPECT_EQ(StatusOf("/g").fs().length(), 5u);
}

TEST_F(HadoopWriters, CreateRefusesAsHdfsDoes) {
  ASSERT_TRUE(Mkdirs("/d"));
  WriteFile("/closed");
  Open("/open");
  EXPECT_EQ(ExceptionOf("create", Create("/closed")), "FileAlreadyExistsException");
  EXPECT_EQ(ExceptionOf("create", Create("/d", 3)), "FileAlreadyExistsException");
  EXPECT_EQ(ExceptionOf("create", Create("/open", 1, "other")), "AlreadyBeingCreatedException");
  EXPECT_EQ(ExceptionOf("create", Create("/open")), "AlreadyBeingCreatedException");
  EXPECT_EQ(ExceptionOf("create", Create("/closed/below")), "ParentNotDirectoryException");
  hdfs::CreateRequestProto request = Create("/no/parent");
  request.set_createparent(false);
  EXPECT_EQ(ExceptionOf("create", request), "FileNotFoundException");
  request = Create("/small");
  request.set_blocksize(1000);
  EXPECT_EQ(ExceptionOf("create", request), "IOException");
  request = Create("/striped");
  request.set_ecpolicyname("RS-6-3-1024k");
  EXPECT_EQ(ExceptionOf("create", request), "UnsupportedOperationException");
  EXPECT_EQ(ExceptionOf("create", Create("/" + std::string(300, 'n'))), "FSLimitException$PathComponentTooLongException");
}

TEST_F(HadoopWriters, CreateTakesModesAsTheyComeAndGivesParentsThoseOfTheUmask) {
  hdfs::CreateRequestProto request = Create("/d/e/f");
  request.mutable_masked()->set_perm(0640);
  request.mutable_unmasked()->set_perm(0666);
  Ask<hdfs::FileStatusResponseProto>("create", request);
  EXPECT_EQ(StatusOf("/d/e/f").fs().permission().perm(), 0640u);
  EXPECT_EQ(StatusOf("/d").fs().permission().perm(), 0751u);
  request = Create("/own/f");
  request.mutable_masked()->set_perm(0600);
  request.mutable_unmasked()->set_perm(0600);
  Ask<hdfs::FileStatusResponseProto>("create", request);
  EXPECT_EQ(StatusOf("/own/f").fs().permission().perm(), 0600u);
  EXPECT_EQ(StatusOf("/own").fs().permission().perm(), 0755u);
  request = Create("/shared/f");
  request.mutable_masked()->set_perm(0662);
  request.mutable_unmasked()->set_perm(0662);
  EXPECT_EQ(Ask<hdfs::FileStatusResponseProto>("create", request).fs().permission().perm(), 0662u);
  request = Create("/closed-to-all");
  request.mutable_masked()->set_perm(0);
  EXPECT_EQ(Ask<hdfs::FileStatusResponseProto>("create", request).fs().permission().perm(), 0u);
}

TEST_F(HadoopWriters, OverwritingGivesANewFileAndARepetitionTheSame) {
  WriteFile("/f", 10);
  const uint64_t before = StatusOf("/f").fs().fileid();
  const uint64_t created = Ask<hdfs::FileStatusResponseProto>("create", Create("/f", 3), 700).fs().fileid();
  EXPECT_NE(created, before);
  EXPECT_EQ(Ask<hdfs::FileStatusResponseProto>("create", Create("/f", 3), 700, 1).fs().fileid(), created);
  EXPECT_EQ(StatusOf("/f").fs().length(), 0u);
}

TEST_F(HadoopWriters, NodesThatFailedAreNotGivenAgain) {
  Open("/f");
  hdfs::AddBlockRequestProto request;
  hdfs::AbandonBlockRequestProto abandon;
  *abandon.mutable_b() = LocationsOf("/f", 0, 1).lastblock().b();
  abandon.set_src("/f");
  abandon.set_holder("writer");
  abandon.set_fileid(file_);
  Ask<hdfs::EmptyProto>("abandonBlock", abandon);
  Ask<hdfs::EmptyProto>("abandonBlock", abandon);  // Again.
  request = AddBlock("/f", file_, nullptr);
  for (const char* node : {"d1", "d2"}) request.add_excludenodes()->mutable_id()->set_datanodeuuid(node);
  for (auto& node : *request.mutable_excludenodes()) {
    node.mutable_id()->set_ipaddr("");
    node.mutable_id()->set_hostname("");
    node.mutable_id()->set_xferport(0);
    node.mutable_id()->set_infoport(0);
    node.mutable_id()->set_ipcport(0);
  }
  const auto block = Ask<hdfs::LocatedBlockResponseProto>("addBlock", request).block();
  ASSERT_EQ(block.locs_size(), 2);
  EXPECT_EQ(block.locs(0).id().datanodeuuid(), "d3");
  replicas_.live.clear();
  abandon.mutable_b()->CopyFrom(block.b());
  Ask<hdfs::EmptyProto>("abandonBlock", abandon);
  const auto failure = std::get<ipc::Failure>(Send("addBlock", AddBlock("/f", file_, nullptr)));
  EXPECT_EQ(failure.exception, "java.io.IOException");
  EXPECT_THAT(failure.message, HasSubstr("could only be written to 0 of the 1 minReplication nodes"));
}

TEST_F(HadoopWriters, AStampThatNobodyUsedChangesNothing) {
  const hdfs::ExtendedBlockProto block = WithBytes(Open("/f").b(), 9);
  const hdfs::ExtendedBlockProto stamped = NewStamp(block);
  EXPECT_GT(stamped.generationstamp(), block.generationstamp());
  EXPECT_EQ(stamped.numbytes(), 9u);
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &block)));
}

TEST_F(HadoopWriters, ARebuiltPipelineIsWhatCounts) {
  const hdfs::LocatedBlockProto opened = Open("/f");
  hdfs::UpdatePipelineRequestProto update;
  update.set_clientname("writer");
  *update.mutable_oldblock() = opened.b();
  *update.mutable_newblock() = WithBytes(NewStamp(opened.b()), 100);
  *update.add_newnodes() = opened.locs(1).id();
  update.add_storageids(opened.storageids(1));
  Ask<hdfs::EmptyProto>("updatePipeline", update, 800);
  Ask<hdfs::EmptyProto>("updatePipeline", update, 800, 1);
  const hdfs::ExtendedBlockProto old = WithBytes(opened.b(), 200);
  EXPECT_EQ(ExceptionOf("complete", Complete("/f", file_, &old)), "IOException") << "the stamp of before";
  const hdfs::ExtendedBlockProto last = WithBytes(update.newblock(), 200);
  EXPECT_TRUE(AskBool("complete", Complete("/f", file_, &last)));
  const hdfs::LocatedBlocksProto located = LocationsOf("/f", 0, 1);
  ASSERT_EQ(located.blocks(0).locs_size(), 1);
  EXPECT_EQ(located.blocks(0).storageids(0), opened.storageids(1));
}

TEST_F(HadoopWriters, ANodeThatWasAddedCountsAlthoughItsStorageIsNotNamed) {
  const hdfs::LocatedBlockProto opened = Open("/f");
  hdfs::UpdatePipelineRequestProto update;
  update.set_clientname("writer");
  *update.mutable_oldblock() = opened.b();
  *update.mutable_newblock() = NewStamp(opened.b());
  *update.add_newnodes() = opened.locs(2).id();
  *update.add_newnodes() = opened.locs(0).id();
  update.mutable_newnodes(1)->set_datanodeuuid("d4");
  Ask<hdfs::EmptyProto>("updatePipeline", update);
  const hdfs::ExtendedBlockProto last = WithBytes(update.newblock(), 5);
  ASSERT_TRUE(AskBool("complete", Complete("/f", file_, &last)));
  const hdfs::LocatedBlockProto located = LocationsOf("/f", 0, 1).blocks(0);
  EXPECT_THAT(std::vector<std::string>(located.storageids().begin(), located.storageids().end()), ElementsAre("s3", "s4"));
}

TEST_F(HadoopWriters, AnAdditionalNodeComesAfterThoseThatAreThere) {
  const hdfs::LocatedBlockProto opened = Open("/f");
  hdfs::GetAdditionalDatanodeRequestProto request;
  request.set_src("/f");
  *request.mutable_blk() = opened.b();
  *request.mutable_existings() = opened.locs();
  *request.mutable_existingstorageuuids() = opened.storageids();
  request.set_numadditionalnodes(1);
  request.set_clientname("writer");
  request.set_fileid(file_);
  const auto block = Ask<hdfs::LocatedBlockResponseProto>("getAdditionalDatanode", request).block();
  ASSERT_EQ(block.locs_size(), 4);
  EXPECT_EQ(block.locs(0).id().datanodeuuid(), opened.locs(0).id().datanodeuuid());
  EXPECT_EQ(block.locs(3).id().datanodeuuid(), "d4");
  EXPECT_EQ(block.storageids_size(), 4);
  EXPECT_EQ(block.storagetypes_size(), 4);
}

TEST_F(HadoopWriters, AFileThatIsWrittenShowsItsLastBlock) {
  const hdfs::LocatedBlockProto opened = Open("/f");
  hdfs::FsyncRequestProto sync;
  sync.set_src("/f");
  sync.set_client("writer");
  sync.set_fileid(file_);
  Ask<hdfs::EmptyProto>("fsync", sync);
  EXPECT_EQ(StatusOf("/f").fs().length(), 0u);
  sync.set_lastblocklength(300);
  Ask<hdfs::EmptyProto>("fsync", sync);
  EXPECT_EQ(StatusOf("/f").fs().length(), 300u);
  const hdfs::LocatedBlocksProto located = LocationsOf("/f", 0, 1 << 30);
  EXPECT_TRUE(located.underconstruction());
  EXPECT_FALSE(located.islastblockcomplete());
  EXPECT_EQ(located.filelength(), 0u) << "clients add the last block's themselves";
  EXPECT_EQ(located.lastblock().b().numbytes(), 300u);
  EXPECT_EQ(located.lastblock().locs_size(), 3);
  EXPECT_FALSE(AskBool("isFileClosed", Path("/f")));
  sync.set_client("other");
  EXPECT_EQ(ExceptionOf("fsync", sync), "LeaseExpiredException");
}

TEST_F(HadoopWriters, ABlockThatIsKnownToNobodyIsNoLongerOnes) {
  const hdfs::ExtendedBlockProto block = WithBytes(Open("/f").b(), 3);
  hdfs::DeleteRequestProto remove;
  remove.set_src("/f");
  remove.set_recursive(false);
  ASSERT_TRUE(AskBool("delete", remove));
  EXPECT_EQ(ExceptionOf("complete", Complete("/f", file_, &block)), "LeaseExpiredException");
  hdfs::ExtendedBlockProto unknown = block;
  unknown.set_blockid(16 << 20);
  EXPECT_EQ(ExceptionOf("complete", Complete("/f", file_, &unknown)), "LeaseExpiredException");
}

TEST_F(HadoopWriters, AnAppendNamesItsBlockByTheStampThatTheReplicasHave) {
  WriteFile("/f", 100);
  const hdfs::ExtendedBlockProto before = LocationsOf("/f", 0, 1).blocks(0).b();
  hdfs::AppendRequestProto append;
  append.set_src("/f");
  const std::string client = "DFSClient_NONMAPREDUCE_7_1";
  append.set_clientname(client);
  const auto opened = Ask<hdfs::AppendResponseProto>("append", append);
  EXPECT_EQ(opened.stat().blocksize(), uint64_t{1} << 20);
  EXPECT_EQ(opened.block().b().generationstamp(), before.generationstamp());
  EXPECT_EQ(opened.block().b().numbytes(), 100u);
  EXPECT_EQ(opened.block().locs_size(), 3);
  hdfs::UpdatePipelineRequestProto update;
  update.set_clientname(client);
  *update.mutable_oldblock() = opened.block().b();
  *update.mutable_newblock() = NewStamp(opened.block().b(), client);
  for (int i = 0; i < 3; ++i) {
    *update.add_newnodes() = opened.block().locs(i).id();
    update.add_storageids(opened.block().storageids(i));
  }
  Ask<hdfs::EmptyProto>("updatePipeline", update);
  const hdfs::ExtendedBlockProto last = WithBytes(update.newblock(), 150);
  hdfs::CompleteRequestProto complete = Complete("/f", opened.stat().fileid(), &last);
  complete.set_clientname(client);
  EXPECT_TRUE(AskBool("complete", complete));
  EXPECT_EQ(StatusOf("/f").fs().length(), 150u);
  append.set_src("/none");
  EXPECT_EQ(ExceptionOf("append", append), "FileNotFoundException");
  append.set_src("/");
  EXPECT_EQ(ExceptionOf("append", append), "FileAlreadyExistsException");
}

TEST_F(HadoopWriters, AnAppendOfAFullBlockBeginsANewOne) {
  WriteFile("/full", 1 << 20);
  WriteFile("/empty");
  for (const char* path : {"/full", "/empty"}) {
    hdfs::AppendRequestProto append;
    append.set_src(path);
    append.set_clientname("writer");
    const auto opened = Ask<hdfs::AppendResponseProto>("append", append);
    EXPECT_FALSE(opened.has_block());
    EXPECT_TRUE(opened.has_stat());
  }
}

TEST_F(HadoopWriters, AClientThatKeepsTheStampsOfBlocksAppendsInANewOne) {
  WriteFile("/f", 100);
  hdfs::AppendRequestProto append;
  append.set_src("/f");
  append.set_clientname("go-hdfs-abcdefgh");
  const auto opened = Ask<hdfs::AppendResponseProto>("append", append);
  EXPECT_FALSE(opened.has_block());
  hdfs::AddBlockRequestProto add = AddBlock("/f", opened.stat().fileid(), nullptr);
  add.set_clientname(append.clientname());
  const hdfs::ExtendedBlockProto last = WithBytes(Ask<hdfs::LocatedBlockResponseProto>("addBlock", add).block().b(), 11);
  hdfs::CompleteRequestProto complete = Complete("/f", opened.stat().fileid(), &last);
  complete.set_clientname(append.clientname());
  EXPECT_TRUE(AskBool("complete", complete));
  EXPECT_EQ(StatusOf("/f").fs().length(), 111u);
  EXPECT_EQ(LocationsOf("/f", 0, 1000).blocks_size(), 2);
}

TEST_F(HadoopWriters, TruncateSaysWhetherItIsDone) {
  WriteFile("/f", 100);
  hdfs::TruncateRequestProto truncate;
  truncate.set_src("/f");
  truncate.set_clientname("writer");
  truncate.set_newlength(101);
  EXPECT_EQ(ExceptionOf("truncate", truncate), "HadoopIllegalArgumentException");
  truncate.set_newlength(100);
  EXPECT_TRUE(AskBool("truncate", truncate));
  truncate.set_newlength(0);
  EXPECT_TRUE(AskBool("truncate", truncate));
  EXPECT_EQ(StatusOf("/f").fs().length(), 0u);
  WriteFile("/g", 100);
  truncate.set_src("/g");
  truncate.set_newlength(50);
  EXPECT_FALSE(AskBool("truncate", truncate)) << "its block has to be cut";
  EXPECT_FALSE(AskBool("truncate", truncate)) << "sent again, as a new call";
  truncate.set_newlength(40);
  EXPECT_EQ(ExceptionOf("truncate", truncate), "AlreadyBeingCreatedException");
  truncate.set_src("/none");
  EXPECT_EQ(ExceptionOf("truncate", truncate), "FileNotFoundException");
}

TEST_F(HadoopWriters, LeasesAreRenewedAndRecovered) {
  hdfs::RenewLeaseRequestProto renew;
  renew.set_clientname("nobody yet");
  EXPECT_EQ(ExceptionOf("renewLease", renew), "none");
  EXPECT_EQ(leases_.stats().holders, 0u) << "a name that holds nothing takes no room";
  renew.set_clientname("");
  EXPECT_NE(ExceptionOf("renewLease", renew), "none");
  Ask<hdfs::FileStatusResponseProto>("create", Create("/f"));
  world_.RunFor(absl::Seconds(10));
  EXPECT_GE(leases_.SilenceOf("writer").idle, absl::Seconds(10));
  renew.set_clientname("write");
  EXPECT_EQ(ExceptionOf("renewLease", renew), "none");
  renew.set_clientname("writer");
  EXPECT_EQ(ExceptionOf("renewLease", renew), "none");
  EXPECT_LT(leases_.SilenceOf("writer").idle, absl::Seconds(1));
  EXPECT_EQ(leases_.stats().holders, 1u);
  hdfs::RecoverLeaseRequestProto recover;
  recover.set_src("/f");
  recover.set_clientname("other");
  EXPECT_TRUE(AskBool("recoverLease", recover)) << "it has no block that would have to be recovered";
  EXPECT_TRUE(AskBool("isFileClosed", Path("/f")));
  recover.set_src("/none");
  EXPECT_EQ(ExceptionOf("recoverLease", recover), "FileNotFoundException");
}

}  // namespace
}  // namespace cairn::namenode
