#include "client/cli/fsck.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FsckTest : public ::testing::Test {
 protected:
  FsckTest() {
    FsckTarget target;
    target.ask = [this](const v1::FsckRequest& request) -> absl::StatusOr<v1::FsckResponse> {
      asked_.push_back(request);
      if (!error_.ok()) return error_;
      return pages_.at(asked_.size() - 1);
    };
    target.bad = [this](const v1::ListBadBlocksRequest&) -> absl::StatusOr<v1::ListBadBlocksResponse> { return bad_; };
    target.wall_now = [] { return absl::FromUnixSeconds(1'800'000'000); };
    target.namenode = "cairn://nn:8021";
    verbs_.push_back(FsckVerb(std::move(target)));
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.user = "ann";
  }
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "-fsck");
    return RunVerb("cairn", verbs_, words, &shell_);
  }
  v1::FsckResponse& AddPage(const std::string& next, uint64_t directories) {
    v1::FsckResponse& page = pages_.emplace_back();
    page.set_next(next);
    page.set_directories(directories);
    page.set_datanodes(3);
    page.set_racks(2);
    page.set_default_replication(3);
    return page;
  }
  static v1::FsckFile& AddFile(v1::FsckResponse* page, const std::string& path, uint64_t length) {
    v1::FsckFile& file = *page->add_files();
    file.set_path(path);
    file.set_length_bytes(length);
    file.set_replication(3);
    return file;
  }
  // A page with the blocks of a large file from `first` on; another one has those from `next` on, unless that is 0.
  v1::FsckFile& AddPart(const std::string& next_path, uint32_t first, uint32_t next) {
    v1::FsckResponse& page = AddPage(next_path, first == 0 ? 1 : 0);
    page.set_next_block(next);
    v1::FsckFile& file = AddFile(&page, "/a", 300);
    file.set_inode_id(7);
    file.set_first_block(first);
    file.set_more_blocks(next != 0);
    return file;
  }
  static v1::FsckBlock& AddBlock(v1::FsckFile* file, uint64_t id, uint64_t length, uint32_t live) {
    v1::FsckBlock& block = *file->add_blocks();
    block.mutable_block()->set_id(id);
    block.mutable_block()->set_generation_stamp(1001);
    block.mutable_block()->set_length_bytes(length);
    block.set_state(v1::COMMITTED);
    block.set_wanted(3);
    block.set_live(live);
    block.set_under_replicated(live < 3);
    block.set_missing(live == 0);
    return block;
  }
  static void AddReplica(v1::FsckBlock* block, const std::string& host, bool live, v1::NodeAdminState state = v1::NODE_NORMAL) {
    v1::FsckReplica& replica = *block->add_replicas();
    replica.mutable_location()->set_storage_uuid("DS-" + host);
    replica.mutable_location()->mutable_datanode()->mutable_transfer()->set_host(host);
    replica.mutable_location()->mutable_datanode()->mutable_transfer()->set_port(9866);
    replica.mutable_location()->mutable_datanode()->set_rack("/r1");
    replica.set_node(v1::LIVE);
    replica.set_admin_state(state);
    replica.set_state(v1::FINALIZED);
    replica.set_live(live);
  }

  std::vector<v1::FsckRequest> asked_;
  std::vector<v1::FsckResponse> pages_;
  v1::ListBadBlocksResponse bad_;
  absl::Status error_;
  std::ostringstream out_, err_;
  Shell shell_;
  std::vector<Verb> verbs_;
};

TEST_F(FsckTest, SumsUpAllPagesInHdfssWords) {
  v1::FsckResponse& first = AddPage("/a", 2);
  AddBlock(&AddFile(&first, "/a", 100), 1024, 100, 3);
  v1::FsckResponse& second = AddPage("", 0);
  AddBlock(&AddFile(&second, "/b", 50), 1040, 50, 2);
  AddFile(&second, "/open", 9).set_under_construction(true);
  EXPECT_EQ(Run({"/"}), kSuccess);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[1].start_after(), "/a");
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("FSCK started by ann for path / at Fri Jan 15 08:00:00 UTC 2027\n"));
  EXPECT_THAT(text, HasSubstr("/b:  Under replicated blk_1040_1001. Target Replicas is 3 but found 2 live replica(s), 0 decommissioned "
                              "replica(s), 0 decommissioning replica(s).\n"));
  EXPECT_THAT(text, HasSubstr("\nStatus: HEALTHY\n Number of data-nodes:\t3\n Number of racks:\t\t2\n Total dirs:\t\t\t2\n"));
  EXPECT_THAT(text, HasSubstr(" Total size:\t150 B (Total open files size: 9 B)\n Total files:\t2 (Files currently being written: 1)\n"
                              " Total blocks (validated):\t2 (avg. block size 75 B)\n Minimally replicated blocks:\t2 (100.0 %)\n"
                              " Over-replicated blocks:\t0 (0.0 %)\n Under-replicated blocks:\t1 (50.0 %)\n"
                              " Mis-replicated blocks:\t\t0 (0.0 %)\n Default replication factor:\t3\n Average block replication:\t2.5\n"
                              " Missing blocks:\t\t0\n Corrupt blocks:\t\t0\n Missing replicas:\t\t1 (16.66667 %)\n"));
  EXPECT_TRUE(text.ends_with("\n\nThe filesystem under path '/' is HEALTHY\n")) << text;
  EXPECT_THAT(text, Not(HasSubstr("/open")));
}

TEST_F(FsckTest, MissingBlocksMakeItCorruptWithExitCodeOne) {
  v1::FsckResponse& page = AddPage("", 1);
  v1::FsckFile& file = AddFile(&page, "/a", 150);
  AddBlock(&file, 1024, 100, 0).set_corrupt(1);
  AddBlock(&file, 1040, 50, 3);
  EXPECT_EQ(Run({"/a"}), kFailure);
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("\n/a: CORRUPT blk_1024_1001\n/a: MISSING 1 blocks of total size 100 B."));
  EXPECT_THAT(text, HasSubstr("\nStatus: CORRUPT\n"));
  EXPECT_THAT(text, HasSubstr("  UNDER MIN REPL'D BLOCKS:\t1 (50.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("  CORRUPT FILES:\t1\n  MISSING BLOCKS:\t1\n  MISSING SIZE:\t\t100 B\n  CORRUPT BLOCKS: \t1\n"));
  EXPECT_TRUE(text.ends_with("The filesystem under path '/a' is CORRUPT\n"));
}

TEST_F(FsckTest, OptionsBehindThePathShowFilesBlocksAndPlaces) {
  for (int i = 0; i < 3; ++i) {
    v1::FsckResponse& page = AddPage("", 1);
    page.add_directory_paths("/d");
    v1::FsckBlock& block = AddBlock(&AddFile(&page, "/d/a", 100), 1024, 100, 2);
    AddReplica(&block, "h1", true);
    AddReplica(&block, "h2", false, v1::DECOMMISSIONING);
  }
  EXPECT_EQ(Run({"/d", "-files", "-blocks", "-locations"}), kSuccess);
  EXPECT_TRUE(asked_[0].with_replicas());
  EXPECT_THAT(out_.str(), HasSubstr("/d <dir>\n/d/a 100 bytes, replicated: replication=3, 1 block(s): \n/d/a:  Under replicated"));
  EXPECT_THAT(out_.str(), HasSubstr("0 decommissioned replica(s), 1 decommissioning replica(s).\n"
                                    "0. blk_1024_1001 len=100 Live_repl=2  [DatanodeInfoWithStorage[h1:9866,DS-h1,DISK]]\n"));
  EXPECT_EQ(Run({"/d", "-racks"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("[/r1/h1:9866]"));
  EXPECT_EQ(Run({"-replicaDetails", "/d"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("[DatanodeInfoWithStorage[h1:9866,DS-h1,DISK](LIVE), "
                                    "DatanodeInfoWithStorage[h2:9866,DS-h2,DISK](DECOMMISSIONING)]"));
}

TEST_F(FsckTest, OpenFilesAreValidatedOnRequest) {
  v1::FsckFile& file = AddFile(&AddPage("", 1), "/open", 5);
  file.set_under_construction(true);
  AddBlock(&file, 1024, 5, 0).set_state(v1::UNDER_CONSTRUCTION);
  EXPECT_EQ(Run({"/", "-openforwrite", "-files", "-blocks"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("/open 5 bytes, replicated: replication=3, 1 block(s), OPENFORWRITE:  OK\n"
                                    "0. blk_1024_1001 len=5 UNDER_CONSTRUCTION Expected_repl=3\n"));
}

TEST_F(FsckTest, CorruptFilesAreListedBelowThePath) {
  for (const char* path : {"/d/b", "/d/a", "/da", "/d/a"}) {
    v1::BadBlock& block = *bad_.add_blocks();
    block.mutable_block()->set_id(1024 + 16 * static_cast<uint64_t>(bad_.blocks_size()));
    block.set_path(path);
  }
  EXPECT_EQ(Run({"/d", "-list-corruptfileblocks"}), kSuccess);
  EXPECT_EQ(out_.str(),
            "The list of corrupt files under path '/d' are:\nblk_1056\t/d/a\nblk_1088\t/d/a\nblk_1040\t/d/b\n"
            "The filesystem under path '/d' has 2 CORRUPT files\n");
}

TEST_F(FsckTest, BlockIdTellsOfOneBlockAndItsNodesByExitCode) {
  v1::FsckBlock& block = AddBlock(&AddFile(&AddPage("", 0), "/a", 1), 1024, 1, 1);
  AddReplica(&block, "h1", true);
  AddReplica(&block, "h2", false, v1::DECOMMISSIONED);
  EXPECT_EQ(Run({"-blockId", "blk_1024_1001"}), 2);
  EXPECT_EQ(asked_[0].block_id(), 1024u);
  EXPECT_THAT(out_.str(), HasSubstr("Block Id: blk_1024\nBlock belongs to: /a\nNo. of Expected Replica: 3\nNo. of live Replica: 1\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Block replica on datanode/rack: h1/r1 is HEALTHY\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Block replica on datanode/rack: h2/r1 is DECOMMISSIONED\n"));
  EXPECT_THAT(out_.str(), HasSubstr("FSCK started by ann at Fri Jan 15 08:00:00 UTC 2027\n\nBlock Id: "));
  EXPECT_THAT(out_.str(), HasSubstr("No. of decommissioned Replica: 1\nNo. of decommissioning Replica: 0\n"
                                    "No. of entering maintenance Replica: 0\nNo. of in maintenance Replica: 0\nNo. of corrupted"));
  EXPECT_EQ(Run({"-blockId", "blk_x"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("Incorrect blockId format: blk_x\n"));
  error_ = MakeError(ErrorKind::kNotFound, "no");
  EXPECT_EQ(Run({"-blockId", "7"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("Block blk_7 does not exist\n"));
}

TEST_F(FsckTest, FilesThatComeInPartsAreOneFile) {
  AddBlock(&AddPart("/a", 0, 1), 1024, 100, 3);
  AddBlock(&AddPart("/a", 1, 2), 1040, 100, 2);
  AddBlock(&AddPart("", 2, 0), 1056, 100, 0);
  AddBlock(&AddFile(&pages_.back(), "/b", 50), 1072, 50, 3);
  EXPECT_EQ(Run({"/", "-files", "-blocks"}), kFailure);
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[2].start_after(), "/a");
  EXPECT_EQ(asked_[2].start_block(), 2u);
  EXPECT_THAT(out_.str(), HasSubstr("/a 300 bytes, replicated: replication=3, 3 block(s): \n/a:  Under replicated blk_1040_1001."));
  EXPECT_THAT(out_.str(), HasSubstr("\n/a: MISSING 1 blocks of total size 100 B.\n0. blk_1024_1001 len=100 Live_repl=3\n1. blk_1040_1001 "
                                    "len=100 Live_repl=2\n2. blk_1056_1001 len=100 MISSING!\n"));
  EXPECT_THAT(out_.str(), HasSubstr(" Total files:\t2\n Total blocks (validated):\t4 "));
}

TEST_F(FsckTest, WrongWordsAndErrors) {
  EXPECT_EQ(Run({"/a", "/b"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("fsck: can only operate on one path at a time '/b'"));
  EXPECT_EQ(Run({"/a", "-move"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("fsck: Illegal option '-move'"));
  EXPECT_EQ(Run({}), kUsage);
  EXPECT_EQ(Run({"-files"}), kUsage);
  error_ = MakeError(ErrorKind::kNotFound, "no such path");
  EXPECT_EQ(Run({"/gone"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("Path '/gone' does not exist\n"));
  error_ = MakeError(ErrorKind::kPermission, "Access denied for user ann. Superuser privilege is required");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"/"}, {"-blockId", "blk_1024"}}) {
    err_.str("");
    EXPECT_EQ(Run(words) & 255, 255);  // As HDFS's, to the shell.
    EXPECT_THAT(err_.str(), HasSubstr("fsck: Access denied for user ann"));
    EXPECT_THAT(err_.str(), Not(HasSubstr("Usage")));  // It was used well.
  }
  error_ = absl::UnavailableError("no NameNode");
  EXPECT_EQ(Run({"/"}), kFailure);
}

}  // namespace
}  // namespace cairn::cli
